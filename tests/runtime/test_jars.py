"""jars.lock and the cache: nothing but what the lock names gets in."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dashboard.runtime import JarMismatch, PartFailed, jars, kafka_connect
from dashboard.runtime.jars import Jar
from dashboard.runtime.layout import Layout
from dashboard.runtime.process import Watchdog

CONTENT = b"a jar"
JAR = Jar("org.example", "thing", "1.0", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT), ("kafka",))
OTHER = Jar("org.example", "other", "2.0-1", hashlib.sha256(b"other").hexdigest(), 5, ("kafka",))


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Layout]:
    monkeypatch.setenv("SCHEMADESK_CACHE", str(tmp_path / "cache"))
    watchdog = Watchdog()
    watchdog.start()
    yield Layout.at(tmp_path / "data", watchdog)
    watchdog.close()


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "locked_jars", lambda name: [JAR, OTHER])


def put(folder: Path, jar: Jar, content: bytes) -> Path:
    path = folder / jar.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def comes(monkeypatch: pytest.MonkeyPatch, **contents: bytes) -> list[list[Jar]]:
    """Stands in for Ivy: these contents come, by the jar's name; gives what was asked for."""
    requests: list[list[Jar]] = []

    def fetch(requested: list[Jar], folder: Path, layout: Layout, part: str, *, transitive: bool) -> None:
        requests.append(list(requested))
        for jar in requested:
            if jar.name in contents:
                put(folder, jar, contents[jar.name])

    monkeypatch.setattr(jars, "ask_ivy", fetch)
    return requests


def cached(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "cache").rglob("*") if path.is_file())


def test_the_lock_file_names_all_sets_completely() -> None:
    for name, jar_set in jars.SETS.items():
        locked = jars.locked_jars(name)
        assert {(jar.org, jar.name, jar.revision) for jar in locked} >= set(jar_set.roots)
        assert all(re.fullmatch("[0-9a-f]{64}", jar.sha256) and jar.size > 0 for jar in locked)
        if not jar_set.transitive:
            assert len(locked) == len(jar_set.roots)
    assert len(jars.locked_jars("kafka")) > 40


@pytest.mark.parametrize("plugin", kafka_connect.PLUGINS)
def test_a_plugin_of_kafka_connect_has_no_second_copy_of_what_connect_has(plugin: str) -> None:
    def modules(name: str) -> set[tuple[str, str]]:
        return {(jar.org, jar.name) for jar in jars.locked_jars(name)}

    assert not modules(plugin) & modules("connect")


def test_kafka_connect_is_of_the_brokers_version() -> None:
    def version(name: str) -> set[str]:
        return {jar.revision for jar in jars.locked_jars(name) if jar.org == "org.apache.kafka"}

    assert version("connect") == version("kafka")


def test_the_lock_file_names_no_host() -> None:
    assert "//" not in jars.LOCK_FILE.read_text()


def test_jars_that_match_are_kept_and_not_fetched_again(
    layout: Layout, lock: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = comes(monkeypatch, thing=CONTENT, other=b"other")
    jars.provide("kafka", layout, "kafka")
    jars.provide("kafka", layout, "kafka")
    assert requests == [[JAR, OTHER]]
    assert cached(tmp_path) == ["other-2.0-1.jar", "thing-1.0.jar"]


def test_only_what_is_missing_is_fetched(
    layout: Layout, lock: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "cache" / "jars", JAR, CONTENT)
    requests = comes(monkeypatch, other=b"other")
    jars.provide("kafka", layout, "kafka")
    assert requests == [[OTHER]]


def test_one_tampered_jar_and_nothing_is_kept(
    layout: Layout, lock: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    comes(monkeypatch, thing=CONTENT, other=b"something else")
    with pytest.raises(JarMismatch) as caught:
        jars.provide("kafka", layout, "kafka")
    for word in ("org.example:other:2.0-1", OTHER.sha256, hashlib.sha256(b"something else").hexdigest()):
        assert word in caught.value.message
    assert cached(tmp_path) == []


def test_a_jar_that_does_not_come_is_named(
    layout: Layout, lock: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    comes(monkeypatch, thing=CONTENT)
    with pytest.raises(PartFailed, match=r"org\.example:other:2\.0-1"):
        jars.provide("kafka", layout, "kafka")
    assert cached(tmp_path) == []


def test_a_jar_that_was_changed_in_the_cache_is_refused(layout: Layout, lock: None, tmp_path: Path) -> None:
    path = put(tmp_path / "cache" / "jars", JAR, b"changed")
    put(tmp_path / "cache" / "jars", OTHER, b"other")
    with pytest.raises(JarMismatch, match=str(path)):
        jars.provide("kafka", layout, "kafka")


def test_the_real_ivy_without_a_network_says_what_to_do(
    layout: Layout, lock: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "settings.xml"
    nowhere = f'<filesystem name="here"><artifact pattern="{tmp_path}/none/[artifact].[ext]"/></filesystem>'
    settings.write_text(
        f'<ivysettings><settings defaultResolver="here"/><resolvers>{nowhere}</resolvers></ivysettings>'
    )
    monkeypatch.setenv(jars.ADDRESSES_FROM, str(settings))
    with pytest.raises(PartFailed, match=rf"can't be downloaded.*{jars.ADDRESSES_FROM}.*--without kafka,spark"):
        jars.provide("kafka", layout, "kafka")
    assert cached(tmp_path) == []


def test_the_real_ivy_fetches_from_the_place_that_its_settings_name(
    layout: Layout, lock: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for jar, content in ((JAR, CONTENT), (OTHER, b"other")):
        put(tmp_path / "mirror", jar, content)
    settings = tmp_path / "settings.xml"
    pattern = f"{tmp_path}/mirror/[organisation]/[module]/[revision]/[artifact]-[revision].[ext]"
    mirror = f'<filesystem name="mirror"><artifact pattern="{pattern}"/></filesystem>'
    settings.write_text(
        f'<ivysettings><settings defaultResolver="mirror"/><resolvers>{mirror}</resolvers></ivysettings>'
    )
    monkeypatch.setenv(jars.ADDRESSES_FROM, str(settings))
    jars.provide("kafka", layout, "kafka")
    assert cached(tmp_path) == ["other-2.0-1.jar", "thing-1.0.jar"]


@pytest.mark.parametrize("text", ["", "not toml [", '[[jar]]\norg = "x"\n', '[[jar]]\nsets = ["kafka"]\nwrong = 1\n'])
def test_a_lock_file_that_cannot_be_used_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "jars.lock"
    path.write_text(text)
    with pytest.raises(PartFailed, match=str(path)):
        jars.locked_jars("kafka", path)


@pytest.mark.parametrize(
    ("proxy", "options"),
    [
        ("", []),
        ("http://proxy.example:3128", ["-Dhttps.proxyHost=proxy.example", "-Dhttps.proxyPort=3128"]),
        ("http://user:secret@proxy.example", ["-Dhttps.proxyHost=proxy.example", "-Dhttps.proxyPort=80"]),
    ],
)
def test_the_proxy_of_the_environment_is_passed_to_java(
    monkeypatch: pytest.MonkeyPatch, proxy: str, options: list[str]
) -> None:
    monkeypatch.delenv("https_proxy", raising=False)
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    assert jars._proxy() == options
