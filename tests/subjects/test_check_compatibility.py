"""The command that CI calls: what it prints, and its exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from registry.access.roles import Actor
from registry.subjects.names import SubjectName
from registry.subjects.services import register_version

V1 = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
WIDER = {**V1, "fields": [*V1["fields"], {"name": "note", "type": ["null", "string"], "default": None}]}
BREAKING = {**V1, "fields": [{"name": "id", "type": "string"}]}


@pytest.fixture
def write(tmp_path: Path):
    def make(name: str, schema: object) -> str:
        path = tmp_path / name
        path.write_text(schema if isinstance(schema, str) else json.dumps(schema, indent=2))
        return str(path)

    return make


def code_of(*words: str) -> int:
    try:
        call_command("check_compatibility", *words)
    except SystemExit as end:
        return int(end.code or 0)
    except CommandError as error:
        return error.returncode
    return 0


@pytest.mark.requirement("GOO-2", "CARD-2")
def test_against_a_subject_under_its_level(
    registries: None, system: Actor, write, capsys: pytest.CaptureFixture[str]
) -> None:
    register_version(registry="dev", subject=SubjectName(".", "orders"), text=json.dumps(V1), by=system)
    assert code_of(write("a", WIDER), "--subject", "orders") == 0
    assert "compatible under BACKWARD, checked against version 1" in capsys.readouterr().out
    assert code_of(write("b", BREAKING), "--subject", "orders") == 1
    shown = capsys.readouterr().out
    assert shown.startswith("incompatible under BACKWARD")
    assert "at Order.id (line " in shown
    assert "cure: " in shown
    assert code_of(write("c", V1), "--subject", "nothing-yet") == 0


def test_against_files_under_any_level(write, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = write("old", WIDER), write("new", V1)
    assert code_of(new, "--against", old, "--level", "FULL_TRANSITIVE", "--json") == 0
    assert json.loads(capsys.readouterr().out)["is_compatible"] is True
    assert code_of(write("x", BREAKING), "--against", old, new, "--level", "FULL_TRANSITIVE", "--json") == 1
    report = json.loads(capsys.readouterr().out)
    assert report["versions"] == [2, 1]
    assert {item["against_version"] for item in report["items"]} == {1, 2}


@pytest.mark.parametrize(
    ("text", "words"),
    [('{\n "type": "recor"}', "line 2"), ("", "empty"), ("{", "line 1")],
)
def test_what_cannot_be_checked_is_another_code(write, text: str, words: str) -> None:
    with pytest.raises(CommandError, match=words) as refused:
        call_command("check_compatibility", write("new", text), "--against", write("old", V1))
    assert refused.value.returncode == 2


def test_a_file_that_is_not_there(write) -> None:
    assert code_of("/nowhere/x.avsc", "--against", write("old", V1)) == 2
