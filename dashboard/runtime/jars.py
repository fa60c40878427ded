"""The jars that Kafka and Spark need in addition to PySpark's: locked by SHA-256, downloaded once, cached.

`jars.lock` in the project's root names each jar; `manage.py lock_jars` writes it from SETS. Ivy, which PySpark
includes, downloads them from Maven Central; ADDRESSES_FROM names an environment variable with the path of an Ivy
settings file, for a mirror.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from xml.sax.saxutils import quoteattr

from dashboard import resources
from dashboard.runtime import JarMismatch, PartFailed, PartMissing
from dashboard.runtime.java import find_java, trust_options
from dashboard.runtime.layout import Layout, cache_folder
from dashboard.runtime.process import Command, run

LOCK_FILE = resources.ROOT / "jars.lock"
ADDRESSES_FROM = "SCHEMADESK_IVY_SETTINGS"


@dataclass(frozen=True, order=True)
class Jar:
    """A jar by its coordinates; `sha256` is hexadecimal, `size` in bytes, `sets` names the sets that use it."""

    org: str
    name: str
    revision: str
    sha256: str = ""
    size: int = 0
    sets: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """The path below the cache folder."""
        return Path(self.org) / self.name / self.revision / f"{self.name}-{self.revision}.jar"

    def __str__(self) -> str:
        return f"{self.org}:{self.name}:{self.revision}"


@dataclass(frozen=True)
class JarSet:
    """Jars that are used together: the requested ones, and whether to include their runtime dependencies."""

    roots: tuple[tuple[str, str, str], ...]
    transitive: bool


SETS = {
    "kafka": JarSet(
        (("org.apache.kafka", "kafka_2.13", "4.1.2"), ("org.slf4j", "slf4j-simple", "1.7.36")), transitive=True
    ),
    # PySpark includes the rest. Its kafka-clients would work, but these versions are tested together.
    "spark": JarSet(
        (
            ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
            ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
            ("org.apache.spark", "spark-avro_2.13", "4.1.1"),
            ("org.apache.kafka", "kafka-clients", "3.9.1"),
            ("org.apache.commons", "commons-pool2", "2.12.0"),
        ),
        transitive=False,
    ),
    # Kafka Connect in the broker's version, with the extension that protects its REST API with a password.
    "connect": JarSet(
        (
            ("org.apache.kafka", "connect-runtime", "4.1.2"),
            ("org.apache.kafka", "connect-basic-auth-extension", "4.1.2"),
            ("org.slf4j", "slf4j-simple", "1.7.36"),
        ),
        transitive=True,
    ),
    # Plugins exclude what Connect itself has (its API, Kafka's client, Jackson, slf4j): a second copy of those
    # in a plugin's class loader would not be the same classes.
    "debezium": JarSet(
        (
            ("io.debezium", "debezium-api", "3.7.0.Final"),
            ("io.debezium", "debezium-config", "3.7.0.Final"),
            ("io.debezium", "debezium-connect-plugins", "3.7.0.Final"),
            ("io.debezium", "debezium-connector-common", "3.7.0.Final"),
            ("io.debezium", "debezium-connector-postgres", "3.7.0.Final"),
            ("io.debezium", "debezium-openlineage-api", "3.7.0.Final"),
            ("io.debezium", "debezium-util", "3.7.0.Final"),
            ("com.datadoghq", "sketches-java", "0.8.2"),
            ("com.fasterxml.jackson.datatype", "jackson-datatype-jsr310", "2.21.2"),
            ("com.google.protobuf", "protobuf-java", "3.25.5"),
            ("org.checkerframework", "checker-qual", "3.55.1"),
            ("org.postgresql", "postgresql", "42.7.13"),
        ),
        transitive=False,
    ),
    # Apicurio's converter, the only one on Maven Central that writes registry-framed Avro.
    "apicurio": JarSet(
        (
            ("io.apicurio", "apicurio-registry-utils-converter", "2.6.13.Final"),
            ("io.apicurio", "apicurio-registry-serdes-avro-serde", "2.6.2.Final"),
            ("io.apicurio", "apicurio-registry-serde-common", "2.6.13.Final"),
            ("io.apicurio", "apicurio-registry-schema-resolver", "2.6.13.Final"),
            ("io.apicurio", "apicurio-registry-client", "2.6.2.Final"),
            ("io.apicurio", "apicurio-registry-common", "2.6.13.Final"),
            ("io.apicurio", "apicurio-common-rest-client-common", "0.1.18.Final"),
            ("io.apicurio", "apicurio-common-rest-client-jdk", "0.1.18.Final"),
            ("org.apache.avro", "avro", "1.12.0"),
        ),
        transitive=False,
    ),
}


def locked_jars(set_name: str, lock_file: Path = LOCK_FILE) -> list[Jar]:
    """Return the jars of a set in the lock file. Raises PartFailed if there are none."""
    try:
        rows = tomllib.loads(lock_file.read_text(encoding="utf-8"))["jar"]
        jars = [Jar(**{**row, "sets": tuple(row["sets"])}) for row in rows]
    except (OSError, KeyError, TypeError, tomllib.TOMLDecodeError) as error:
        raise PartFailed(f"{lock_file} can't be read: {error!r}. Restore it from version control.") from error
    chosen = [jar for jar in jars if set_name in jar.sets]
    if not chosen:
        raise PartFailed(f"{lock_file} has no jars for {set_name!r}. Regenerate it with manage.py lock_jars.")
    return chosen


def jar_files(set_name: str, cache: Path | None = None) -> list[Path]:
    """Return the cache paths of a set's jars, once provided."""
    return [(cache or cache_folder() / "jars") / jar.path for jar in locked_jars(set_name)]


def provide(set_name: str, layout: Layout, part: str) -> None:
    """Ensure that the jars of a set are in the cache with the locked content.

    Raises JarMismatch if the content of one differs, PartFailed if they can't be downloaded. Only verified jars enter
    the cache.
    """
    cache = cache_folder() / "jars"
    missing = []
    for jar in locked_jars(set_name):
        if (cache / jar.path).exists():
            verify(jar, cache / jar.path)
        else:
            missing.append(jar)
    if not missing:
        return
    megabytes = sum(jar.size for jar in missing) / 1e6
    layout.say(part, f"downloading {len(missing)} jars ({megabytes:.0f} MB) to {cache}")
    with _fetched(missing, layout, part) as folder:
        install(missing, folder, cache)
    layout.say(part, f"{len(missing)} jars downloaded and verified")


def verify(jar: Jar, path: Path) -> None:
    """Raise JarMismatch if the file's content isn't the locked one."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != jar.sha256:
        raise JarMismatch(
            f"Jar {jar} ({path}) doesn't match jars.lock: expected SHA-256 {jar.sha256}, got {digest}. If the file "
            "is in the cache, delete it and start again. If it was just downloaded, don't trust its source."
        )


def install(jars: Sequence[Jar], folder: Path, cache: Path) -> None:
    """Move jars from `folder` to the cache after verifying all of them. Raises JarMismatch."""
    for jar in jars:
        if not (folder / jar.path).exists():
            raise PartFailed(f"Jar {jar} was not found in the repository that jars are downloaded from.")
        verify(jar, folder / jar.path)
    for jar in jars:
        (cache / jar.path).parent.mkdir(parents=True, exist_ok=True)
        (folder / jar.path).replace(cache / jar.path)


@contextmanager
def _fetched(jars: Sequence[Jar], layout: Layout, part: str) -> Iterator[Path]:
    """Yield a folder with the downloaded jars, on the cache's file system; remove it afterwards."""
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="fetch-", dir=cache))
    try:
        ask_ivy(jars, folder, layout, part, transitive=False)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def ask_ivy(
    jars: Sequence[Jar], folder: Path, layout: Layout, part: str, *, transitive: bool, cache: Path | None = None
) -> None:
    """Download the jars (with dependencies if `transitive`) into `folder` at `Jar.path`, in one JVM.

    Jars in `cache` aren't downloaded again. Raises PartFailed with the end of Ivy's log, PartMissing if PySpark has no
    Ivy.
    """
    (folder / "ivy.xml").write_text(_module(jars, transitive), encoding="utf-8")
    cache = cache or folder / "ivy-cache"
    settings_path = os.environ.get(ADDRESSES_FROM)
    settings = Path(settings_path) if settings_path else folder / "settings.xml"
    if not settings_path:
        settings.write_text(_settings(cache, poms=transitive), encoding="utf-8")
    pattern = f"{folder}/[organisation]/[module]/[revision]/[artifact]-[revision].[ext]"
    options = ["-settings", str(settings), "-ivy", str(folder / "ivy.xml"), "-cache", str(cache)]
    java = [find_java().program, *_proxy(), *trust_options(folder)]
    argv = [*java, "-jar", str(_ivy()), *options, "-confs", "default", "-retrieve", pattern]
    environment = {**layout.plain_environment(), **_java_options()}
    command = Command([*argv, "-types", "jar", "bundle"], environment, folder)
    try:
        run(command, layout.log(f"{part}-jars"), layout.watchdog, seconds=900)
    except PartFailed as error:
        left_out = "connect" if part == "connect" else "kafka,spark"
        raise PartFailed(
            f"The jars for {part} can't be downloaded. The first start needs network access. You can set "
            f"{ADDRESSES_FROM} to an Ivy settings file with a mirror, or use `up --without {left_out}`. "
            f"{error.message}"
        ) from error


def _ivy() -> Path:
    import pyspark

    jars = sorted((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    if not jars:
        raise PartMissing(
            "PySpark's `jars` folder has no ivy-*.jar, which is needed to download jars. Reinstall PySpark."
        )
    return jars[-1]


def _proxy() -> list[str]:
    """Return Java options for the proxy in the environment, which a JVM ignores."""
    proxy = urlsplit(os.environ.get("HTTPS_PROXY") or os.environ.get("https_proxy") or "")
    if not proxy.hostname:
        return []
    return [f"-Dhttps.proxyHost={proxy.hostname}", f"-Dhttps.proxyPort={proxy.port or 80}"]


def _java_options() -> dict[str, str]:
    return {name: os.environ[name] for name in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS") if name in os.environ}


def _module(jars: Iterable[Jar], transitive: bool) -> str:
    # For a module with a POM, `master` is its jar and `runtime` its dependencies; without one, `default` is everything.
    configuration = "default->master,runtime" if transitive else "default->default"
    rows = "".join(
        f"<dependency org={quoteattr(jar.org)} name={quoteattr(jar.name)} rev={quoteattr(jar.revision)} "
        f'transitive="{str(transitive).lower()}" conf="{configuration}"/>'
        for jar in jars
    )
    head = '<info organisation="schemadesk" module="jars"/><configurations><conf name="default"/></configurations>'
    return f'<ivy-module version="2.0">{head}<dependencies>{rows}</dependencies></ivy-module>'


def _settings(cache: Path, *, poms: bool) -> str:
    """Return Ivy's settings. Without POMs, each jar takes one request; its SHA-256 is verified here."""
    resolver = f'name="central" m2compatible="true" usepoms="{str(poms).lower()}" useMavenMetadata="false"'
    return (
        '<ivysettings><property name="ivy.checksums" value=""/><settings defaultResolver="central"/>'
        f"<caches defaultCacheDir={quoteattr(str(cache))}/>"
        f"<resolvers><ibiblio {resolver}/></resolvers></ivysettings>"
    )


def write_lock(layout: Layout, lock_file: Path = LOCK_FILE) -> list[Jar]:
    """Resolve SETS, download every jar, and write the lock file from the result. Raises PartFailed."""
    locked: dict[tuple[str, str, str], Jar] = {}
    for set_name, jar_set in SETS.items():
        folder = Path(tempfile.mkdtemp(prefix="lock-", dir=layout.data))
        roots = [Jar(*root) for root in jar_set.roots]
        layout.say(set_name, f"resolving {', '.join(map(str, roots))}")
        # Sets share jars, so that each jar is downloaded once. With and without POMs are two caches.
        cache = layout.data / f"ivy-cache-{'with' if jar_set.transitive else 'without'}-descriptions"
        ask_ivy(roots, folder, layout, set_name, transitive=jar_set.transitive, cache=cache)
        for path in sorted(folder.glob("*/*/*/*.jar")):
            org, name, revision, _ = path.relative_to(folder).parts
            sets = (*(locked[org, name, revision].sets if (org, name, revision) in locked else ()), set_name)
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            locked[org, name, revision] = Jar(org, name, revision, digest, path.stat().st_size, sets)
        shutil.rmtree(folder)
    jars = sorted(locked.values())
    head = "# Written by `manage.py lock_jars` from the table SETS in dashboard/runtime/jars.py.\n"
    lock_file.write_text(head + "".join(map(_row, jars)), encoding="utf-8")
    return jars


def _row(jar: Jar) -> str:
    fields = {"org": jar.org, "name": jar.name, "revision": jar.revision, "sha256": jar.sha256, "size": jar.size}
    lines = [f"{name} = {json.dumps(value)}" for name, value in {**fields, "sets": list(jar.sets)}.items()]
    return "\n[[jar]]\n" + "\n".join(lines) + "\n"
