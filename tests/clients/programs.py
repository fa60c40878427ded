"""Small programs around clients of other languages: built once in the product's cache, then started.

Each has a folder here with its sources and its lock file. A build is kept under the digest of that folder and the
tool's version, so a second run finds it. The tools reach their registries as the machine has set them up.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from dashboard.runtime.layout import cache_folder
from tests import toolchains

HERE = Path(__file__).parent
SCHEMAS = HERE / "schemas"
#: A cold build of the largest, in seconds: about 180 with two cores; CI's may be busy.
LONGEST_BUILD = 1500
LONGEST_RUN = 120
#: what running the tools by hand leaves in the folders
NOT_SOURCES = ("node_modules", "target", "clients", "Cargo.lock")
KEPT_SECONDS = 7 * 24 * 3600


class ProgramFailed(Exception):
    """A program couldn't be built or ended with an error; the message has the end of what it said."""


@dataclass(frozen=True)
class Language:
    """How a language's program is built and started."""

    client: str
    tools: tuple[str, ...]
    build: Callable[[Path], None]
    command: Callable[[Path], list[str]]


def _build_node(folder: Path) -> None:
    _run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], folder)


def _build_go(folder: Path) -> None:
    # GOTOOLCHAIN: an older Go says what it lacks and fetches no other one. Without C and what debuggers read it builds
    # in less time.
    words = ["-mod=readonly", "-p", "2", "-ldflags=-s -w", "-gcflags=all=-dwarf=false", "-o", "clients", "."]
    _run(["go", "build", *words], folder, GOTOOLCHAIN="local", CGO_ENABLED="0")


def _build_rust(folder: Path) -> None:
    (folder / "Cargo.lock").write_text(_with_sources(folder))
    target = str(folder.parent / "rust-target")  # shared: a change of our sources doesn't build the crates again
    _run(["cargo", "build", "--locked", "-j", "2"], folder, CARGO_TARGET_DIR=target)
    shutil.copy2(Path(target) / "debug" / "schemadesk-clients", folder / "clients")


def _with_sources(folder: Path) -> str:
    """Cargo.lock from crates.lock: every package with a checksum is from the registry that Cargo itself names."""
    answer = _run(["cargo", "metadata", "--no-deps", "--offline", "--format-version", "1"], folder)
    (source,) = {item["source"] for item in json.loads(answer)["packages"][0]["dependencies"]}
    lock = (folder / "crates.lock").read_text()
    return lock.replace("\nchecksum = ", f'\nsource = "{source}"\nchecksum = ')


LANGUAGES = {
    "node": Language("@kafkajs/confluent-schema-registry", ("node", "npm"), _build_node, lambda at: ["node", f"{at}/main.js"]),
    "go": Language("franz-go's sr", ("go",), _build_go, lambda at: [f"{at}/clients"]),
    "rust": Language("schema_registry_converter", ("cc", "cargo", "rustc"), _build_rust, lambda at: [f"{at}/clients"]),
}  # fmt: skip


@cache
def built(name: str) -> tuple[str, ...]:
    """The command that starts the program, which is built if it isn't yet. Raises ProgramFailed."""
    language = LANGUAGES[name]
    base = cache_folder() / "clients"
    base.mkdir(parents=True, exist_ok=True)
    folder = base / f"{name}-{_digest(name)}"
    with _only_one_at_a_time(base / f"{name}.lock"):
        if not folder.exists():
            _forget_unused(base, name)
            fresh = Path(tempfile.mkdtemp(prefix=f"new-{name}-", dir=base))
            try:
                shutil.copytree(HERE / name, fresh, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*NOT_SOURCES))
                language.build(fresh)
                fresh.rename(folder)
            finally:
                shutil.rmtree(fresh, ignore_errors=True)
        os.utime(folder)
    return tuple(language.command(folder))


def _forget_unused(base: Path, name: str) -> None:
    """Removes builds of the program that nobody started for a while; another clone may be using the newer ones."""
    for old in base.glob(f"{name}-{'[0-9a-f]' * 16}"):
        if time.time() - old.stat().st_mtime > KEPT_SECONDS:
            shutil.rmtree(old)


def _digest(name: str) -> str:
    """Of the program's files and the version of the tool that builds it."""
    found = hashlib.sha256()
    for path in sorted((HERE / name).rglob("*")):
        if path.is_file() and not set(path.relative_to(HERE / name).parts) & set(NOT_SOURCES):
            found.update(f"{path.relative_to(HERE)}\0".encode() + path.read_bytes())
    version = ["go", "version"] if name == "go" else [LANGUAGES[name].tools[-1], "--version"]
    found.update(_run(version, HERE).encode())
    return found.hexdigest()[:16]


@contextmanager
def _only_one_at_a_time(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def run(name: str, *words: str, **environment: str) -> list[dict[str, Any]]:
    """What the program says, a dictionary a step. Raises ProgramFailed."""
    output = _run([*built(name), *words], HERE, seconds=LONGEST_RUN, SCHEMAS=str(SCHEMAS), **environment)
    return [json.loads(line) for line in output.splitlines()]


def run_python(release: str, *words: str, **environment: str) -> list[dict[str, Any]]:
    """The same of the Python program with a release of its client, in this environment's Python. Raises ProgramFailed."""
    command = [sys.executable, "-P", str(HERE / "python" / "main.py"), *words]
    output = _run(command, HERE, seconds=LONGEST_RUN, PYTHONPATH=str(python_release(release)), **environment)
    return [json.loads(line) for line in output.splitlines()]


@cache
def python_release(release: str) -> Path:
    """The folder that the release of confluent-kafka is installed into, alone. Raises ProgramFailed."""
    lock = HERE / "python" / "releases" / f"{release}.txt"
    base = cache_folder() / "clients"
    base.mkdir(parents=True, exist_ok=True)
    folder = base / f"python-{release}-{hashlib.sha256(lock.read_bytes()).hexdigest()[:16]}"
    with _only_one_at_a_time(base / "python.lock"):
        if not folder.exists():
            fresh = Path(tempfile.mkdtemp(prefix="new-python-", dir=base))
            try:
                wanted = ["--only-binary", ":all:", "--no-deps", "--require-hashes", "-r", str(lock)]
                _run(["pip", "--python", sys.executable, "install", "--quiet", "--target", str(fresh), *wanted], HERE)
                fresh.rename(folder)
            finally:
                shutil.rmtree(fresh, ignore_errors=True)
    return folder


def _run(command: list[str], folder: Path, *, seconds: int = LONGEST_BUILD, **environment: str) -> str:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=toolchains.environment() | environment,
            capture_output=True,
            encoding="utf-8",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ProgramFailed(f"{' '.join(command)} took longer than {seconds} s.") from error
    if done.returncode:
        said = "\n".join((done.stdout + done.stderr).splitlines()[-40:])
        raise ProgramFailed(f"{' '.join(command)} ended with {done.returncode}:\n{said}")
    return done.stdout
