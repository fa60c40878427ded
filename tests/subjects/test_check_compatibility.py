"""The command that CI calls: what it prints, and its exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from registry.access.roles import Actor
from registry.formats.base import Reference
from registry.subjects.services import register_version
from registry.subjects.versions.qualified_names import SubjectName

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


MONEY = {"type": "record", "name": "Money", "namespace": "shop", "fields": [{"name": "amount", "type": "long"}]}
PRICED = {**V1, "fields": [*V1["fields"], {"name": "price", "type": ["null", "shop.Money"], "default": None}]}


@pytest.mark.requirement("GOO-2")
def test_a_subject_with_references(registries: None, system: Actor, write, capsys: pytest.CaptureFixture[str]) -> None:
    """They are those of its newest version, or the registered ones that the command names."""
    register_version(registry="dev", subject=SubjectName(".", "money"), text=json.dumps(MONEY), by=system)
    register_version(registry="dev", subject=SubjectName(".", "orders"), text=json.dumps(V1), by=system)
    priced, money = write("priced", PRICED), write("money.avsc", MONEY)
    assert code_of(priced, "--subject", "orders") == 2
    for reference in ("shop.Money=money", "shop.Money=money@1"):
        assert code_of(priced, "--subject", "orders", "--reference", reference) == 0
    for reference in (
        "shop.Money=money@9",
        "shop.Money=other",
        "shop.Money=money@x",
        "shop.Money",
        f"shop.Money={money}",
    ):
        assert code_of(priced, "--subject", "orders", "--reference", reference) == 2
    with pytest.raises(CommandError, match=r"registered subject: .*money\.avsc is a file"):
        call_command("check_compatibility", priced, "--subject", "orders", "--reference", f"shop.Money={money}")
    register_version(
        registry="dev", subject=SubjectName(".", "orders"), text=json.dumps(PRICED), by=system,
        references=[Reference("shop.Money", "money", 1)],
    )  # fmt: skip
    capsys.readouterr()
    assert code_of(priced, "--subject", "orders") == 0
    broken = {**PRICED, "fields": [PRICED["fields"][1], {"name": "id", "type": "string"}]}
    assert code_of(write("broken", broken), "--subject", "orders") == 1
    assert "at Order.id" in capsys.readouterr().out


def test_against_files_under_any_level(write, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = write("old", WIDER), write("new", V1)
    assert code_of(new, "--against", old, "--level", "FULL_TRANSITIVE", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["is_compatible"] is True
    assert code_of(write("x", BREAKING), "--against", old, new, "--level", "FULL_TRANSITIVE", "--format", "json") == 1
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


@pytest.mark.requirement("CARD-2")
def test_the_patch_that_the_report_offers_passes(write, capsys: pytest.CaptureFixture[str]) -> None:
    added = {**V1, "fields": [*V1["fields"], {"name": "note", "type": "string"}]}
    old = write("old", V1)
    assert code_of(write("new", added), "--against", old, "--format", "json") == 1
    patch = json.loads(capsys.readouterr().out)["patch"]
    assert patch["passes"] is True
    assert code_of(write("patched", patch["text"]), "--against", old) == 0


def test_markdown_for_a_merge_request(write, capsys: pytest.CaptureFixture[str]) -> None:
    old = write("old", V1)
    assert code_of(write("new", BREAKING), "--against", old, "--format", "markdown") == 1
    shown = capsys.readouterr().out
    assert shown.startswith("# Compatibility report\n\n**incompatible under BACKWARD")
    assert "| 1 | **no** | **no** |" in shown
    assert "Proof: " in shown


def test_pairs_one_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        {"new": WIDER, "old": V1},
        {"new": json.dumps(BREAKING), "old": [V1, WIDER], "level": "BACKWARD_TRANSITIVE"},
        {"new": {"type": "recor"}, "old": V1},
    ]
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)) + "\n\nnot json\n")
    assert code_of("--pairs", str(path)) == 2
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(answer["line"], answer["is_compatible"]) for answer in answers] == [
        (1, True),
        (2, False),
        (3, None),
        (5, None),
    ]
    assert answers[1]["versions"] == [2, 1]
    path.write_text(json.dumps(lines[1]))
    assert code_of("--pairs", str(path)) == 1


def test_a_reference_is_a_file(write, capsys: pytest.CaptureFixture[str]) -> None:
    money = write("money", {"type": "record", "name": "Money", "fields": [{"name": "amount", "type": "long"}]})
    priced = {**V1, "fields": [*V1["fields"], {"name": "price", "type": ["null", "Money"], "default": None}]}
    new, old = write("new", priced), write("old", V1)
    assert code_of(new, "--against", old, "--reference", f"Money={money}") == 0
    assert code_of(new, "--against", old) == 2
    assert code_of(new, "--against", old, "--reference", "Money") == 2


def test_ci_gets_findings_with_the_file_and_a_text_that_does_not_parse_too(
    write, capsys: pytest.CaptureFixture[str]
) -> None:
    old = write("old.avsc", V1)
    for form, word in (("sarif", '"ruleId": "TYPE_CHANGED"'), ("junit", 'type="TYPE_CHANGED"')):
        assert code_of(write("new.avsc", BREAKING), "--against", old, "--format", form) == 1
        shown = capsys.readouterr().out
        assert word in shown
        assert "new.avsc" in shown
        assert code_of(write("new.avsc", "{"), "--against", old, "--format", form) == 2
        assert "SYNTAX" in capsys.readouterr().out


HAD_PRESENCE = 'syntax = "proto3"; message M { optional int32 a = 1; oneof o { string b = 2; int32 c = 3; } }'
HAS_NONE = 'syntax = "proto3"; message M { int32 a = 1; oneof o { string b = 2; } }'
PRESENCE = ["--type", "PROTOBUF", "--profile", "semantic"]


@pytest.mark.parametrize("form", ["text", "markdown", "json", "sarif", "junit"])
def test_what_no_value_shows_is_a_warning_by_the_data_too(write, capsys: pytest.CaptureFixture[str], form: str) -> None:
    files = write("new", HAS_NONE), "--against", write("old", HAD_PRESENCE)
    assert code_of(*files, *PRESENCE, "--format", form) == 0
    shown = capsys.readouterr().out
    assert "PRESENCE_LOST" in shown
    assert "ONEOF_FIELD_REMOVED" in shown


def test_pairs_have_the_warnings_of_the_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text(json.dumps({"new": HAS_NONE, "old": HAD_PRESENCE}))
    assert code_of("--pairs", str(path), *PRESENCE) == 0
    items = json.loads(capsys.readouterr().out)["items"]
    assert {(item["rule"], item["severity"]) for item in items} == {
        ("PRESENCE_LOST", "warning"),
        ("ONEOF_FIELD_REMOVED", "warning"),
    }
