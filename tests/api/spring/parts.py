"""Spring's own server and clients, unmodified, from the jars that `jars.lock` in this folder names.

    python -m tests.api.spring.parts lock

writes that file anew: Maven, which has to be on PATH, resolves the versions that Spring Boot's own list names.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dashboard.runtime.jars import Jar, ask_ivy, install, locked_jars, verify
from dashboard.runtime.layout import Layout, cache_folder, free_port
from dashboard.runtime.process import Watchdog

HERE = Path(__file__).parent
LOCK_FILE = HERE / "jars.lock"
SET = "spring"
ROOTS = ("spring-cloud-stream-schema-server", "spring-cloud-stream-schema")
RELEASE = "2.2.1.RELEASE"
BOOT = "2.1.6.RELEASE"  # the one that this release was built with
SERVER = "org.springframework.cloud.stream.schema.server.SchemaRegistryServerApplication"
#: Spring of that age makes proxies in ways that Java closed in version 16
OPENED = ("--add-opens=java.base/java.lang=ALL-UNNAMED",)


def class_path() -> str:
    """The jars, fetched once into the product's cache and verified. Raises PartFailed, JarMismatch."""
    cache = cache_folder() / "jars"
    jars = locked_jars(SET, LOCK_FILE)
    missing = [jar for jar in jars if not (cache / jar.path).exists()]
    if missing:
        _fetch(missing, cache)
    for jar in jars:
        verify(jar, cache / jar.path)
    return os.pathsep.join(str(cache / jar.path) for jar in jars)


def _fetch(jars: list[Jar], cache: Path) -> None:
    cache.mkdir(parents=True, exist_ok=True)
    watchdog = Watchdog()
    folder = Path(tempfile.mkdtemp(prefix="spring-", dir=cache.parent))
    try:
        watchdog.start()
        ask_ivy(jars, folder, Layout.at(folder / "base", watchdog, durable=False), SET, transitive=False)
        install(jars, folder, cache)
    finally:
        watchdog.close()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def spring_server(*options: str, seconds: float = 90) -> Iterator[str]:
    """Spring's server with its embedded database, on a port of loopback; gives its address, and ends it afterwards."""
    port = free_port()
    argv = ["java", *OPENED, "-cp", class_path(), SERVER, f"--server.port={port}", "--server.address=127.0.0.1"]
    address = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen([*argv, *options], stdout=log, stderr=log)
        try:
            _wait(address, server, seconds)
            yield address
        finally:
            server.terminate()
            server.wait(60)


def _wait(address: str, server: subprocess.Popen[bytes], seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if server.poll() is not None:
            raise RuntimeError(f"Spring's server ended with {server.returncode}")
        try:
            urllib.request.urlopen(f"{address}/schemas/1", timeout=30)
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.3)
    raise RuntimeError(f"Spring's server didn't answer in {seconds:.0f} s")


POM = """<project><modelVersion>4.0.0</modelVersion>
<groupId>schemadesk</groupId><artifactId>jars</artifactId><version>1</version>
<dependencyManagement><dependencies><dependency><groupId>org.springframework.boot</groupId>
<artifactId>spring-boot-dependencies</artifactId><version>{boot}</version><type>pom</type><scope>import</scope>
</dependency></dependencies></dependencyManagement><dependencies>{dependencies}</dependencies></project>"""
DEPENDENCY = (
    "<dependency><groupId>org.springframework.cloud</groupId><artifactId>{name}</artifactId>"
    "<version>{release}</version></dependency>"
)


def write_lock() -> int:
    """Resolves the jars with Maven and writes the lock file; gives how many there are."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dependencies = "".join(DEPENDENCY.format(name=root, release=RELEASE) for root in ROOTS)
        (folder / "pom.xml").write_text(POM.format(boot=BOOT, dependencies=dependencies))
        store = folder / "store"
        argv = ["mvn", "-q", "-B", f"-Dmaven.repo.local={store}", "dependency:build-classpath"]
        subprocess.run([*argv, f"-Dmdep.outputFile={folder / 'path'}"], cwd=folder, check=True)
        rows = sorted(_row(Path(path).relative_to(store), Path(path)) for path in _class_path(folder))
    head = "# Written by `python -m tests.api.spring.parts lock`: Spring's schema server and clients, and what they need.\n"
    LOCK_FILE.write_text(head + "".join(rows))
    return len(rows)


def _class_path(folder: Path) -> list[str]:
    return (folder / "path").read_text().strip().split(os.pathsep)


def _row(place: Path, path: Path) -> str:
    *org, name, revision, _ = place.parts
    data = path.read_bytes()
    fields = {"org": ".".join(org), "name": name, "revision": revision, "sha256": hashlib.sha256(data).hexdigest()}
    values = {**fields, "size": len(data), "sets": [SET]}
    return "\n[[jar]]\n" + "\n".join(f"{key} = {json.dumps(value)}" for key, value in values.items()) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] != ["lock"]:
        sys.exit(__doc__)
    print(f"{write_lock()} jars")
