"""The programs' lock files pin everything and name no address; a program that fails is reported with its output."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.clients import programs
from tests.clients.programs import HERE


def test_every_program_has_its_lock() -> None:
    packages = json.loads((HERE / "node" / "package-lock.json").read_text())["packages"]
    (root,) = (packages.pop(name) for name in [""])
    assert root["dependencies"] == {"@kafkajs/confluent-schema-registry": "4.1.0"}
    assert all("integrity" in item and "resolved" not in item for item in packages.values())
    crates = (HERE / "rust" / "crates.lock").read_text().split("[[package]]")[1:]
    without = [crate.split('"')[1] for crate in crates if "checksum = " not in crate]
    assert without == ["schemadesk-clients"], "all but our own have a checksum"
    assert "source = " not in "".join(crates), "Cargo puts the registry's address back"
    sums = (HERE / "go" / "go.sum").read_text()
    required = [line.split() for line in (HERE / "go" / "go.mod").read_text().splitlines() if line.startswith("\t")]
    assert required
    assert [name for name, version, *_ in required if f"{name} {version} h1:" not in sums] == []


def test_a_program_that_fails_is_reported_with_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(programs.ProgramFailed, match=r"ended with 3:\nlast words"):
        programs._run(["sh", "-c", "echo last words >&2; exit 3"], tmp_path)
    with pytest.raises(programs.ProgramFailed, match="took longer than 1 s"):
        programs._run(["sleep", "30"], tmp_path, seconds=1)


def test_nothing_of_this_process_reaches_a_program_but_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", "secret")
    said = programs._run(["env"], tmp_path, REGISTRY_TOKEN="t").splitlines()
    assert "REGISTRY_TOKEN=t" in said
    assert f"PATH={os.environ['PATH']}" in said
    assert not [line for line in said if line.startswith("SECRET_KEY=")]
