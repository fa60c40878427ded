"""The problems of a text while it is written: rights, limits, places, repairs, and no verdict without a check."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from dashboard.compatibility import text_problems
from registry.access.models import RoleGrant
from registry.access.roles import Actor
from registry.errors import SchemaTooCostly, Unavailable
from registry.promotions.requests.schema_changes import decide_rename
from registry.subjects.engine import schema_engine
from registry.subjects.services import register_version
from registry.subjects.versions.qualified_names import SubjectName
from tests.conftest import signed_in

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("GOO-2")]

URL = "/ui/problems"
OLD = '{\n  "type": "record", "name": "Customer", "doc": "𝛼",\n  "fields": [\n    {"name": "email_address", "type": "string"}\n  ]\n}'
NEW = OLD.replace('{"name": "email_address"', '/* 𝛼 */ {"name": "email"')


@pytest.fixture
def reader(person: Callable[[str], Actor]) -> Client:
    """A browser of somebody who may read, where a subject has a version."""
    cache.clear()
    register_version(registry="dev", subject=SubjectName(".", "customers-value"), text=OLD, by=person("steward"))
    person("reader")
    return signed_in("reader")


def sent(client: Client, text: str, status: int = 200, **values: Any) -> dict[str, Any]:
    data = {"registry": "dev", "subject": "customers-value", "schema_type": "AVRO", "text": text} | values
    response = client.post(URL, data)
    assert response.status_code == status
    answer: dict[str, Any] = response.json()
    return answer


def test_a_rename_is_underlined_and_its_first_repair_is_the_alias(reader: Client) -> None:
    answer = sent(reader, NEW)
    assert answer["checked"] and not answer["passes"]
    assert answer["summary"] == "Incompatible under BACKWARD: 1 problem."
    problem = answer["problems"][0]
    line = NEW.splitlines()[3]
    begin = len(line[: line.index("{")].encode("utf-16-le")) // 2 + 1
    assert problem["from"] == {"line": 4, "column": begin}
    assert problem["to"] == {"line": 4, "column": len(line.encode("utf-16-le")) // 2 + 1}
    assert problem["severity"] == "error" and "Renamed or removed?" in problem["sentence"]
    alias, default = problem["repairs"]
    assert alias["title"] == 'add the alias "email_address"' and alias["passes"]
    assert "Old readers know no alias" in alias["effect"]
    assert 'readers get "" instead of the data of "email_address"' in default["title"]
    fixed = sent(reader, mended(NEW, alias["change"]))
    assert fixed["passes"] and fixed["verdict"] == "ok"
    assert fixed["summary"] == "Compatible under BACKWARD: no problems."
    assert answer["levels"].count("<li") == 7


def mended(text: str, change: dict[str, Any]) -> str:
    units = text.encode("utf-16-le")
    inserted = change["insert"].encode("utf-16-le")
    return (units[: 2 * change["from"]] + inserted + units[2 * change["to"] :]).decode("utf-16-le")


MOVED = 'syntax = "proto3"; message Order { string id = 1; string note = 2; }'


@pytest.mark.parametrize(
    ("old", "new", "repair"),
    [
        (OLD, NEW.replace('"type": "string"', '"type": "string", "default": ""'), 'add the alias "email_address"'),
        (MOVED, MOVED.replace("note = 2", "note = 3"), 'give "note" the number 2 again'),
        (MOVED, MOVED.replace("note = 2", "notes = 3"), 'give "notes" the number 2, which "note" had'),
    ],
)
def test_a_text_that_passes_but_loses_values_is_never_green(
    reader: Client, person: Callable[[str], Actor], old: str, new: str, repair: str
) -> None:
    schema_type = "PROTOBUF" if old == MOVED else "AVRO"
    values = {"subject": "kept-value", "schema_type": schema_type}
    name = SubjectName(".", "kept-value")
    register_version(registry="dev", subject=name, text=old, schema_type=schema_type, by=person("steward"))
    answer = sent(reader, new, **values)
    assert answer["passes"] and answer["verdict"] == "care"
    assert answer["summary"] == "Needs care under BACKWARD: 1 warning."
    problem = answer["problems"][0]
    assert problem["severity"] == "warning"
    assert ("Renamed or removed?" in problem["sentence"]) == (repair != 'give "note" the number 2 again')
    assert problem["repairs"][0]["title"].startswith(repair) and problem["repairs"][0]["effect"]
    fixed = sent(reader, mended(new, problem["repairs"][0]["change"]), **values)
    assert fixed["passes"] and not any("Renamed or removed?" in row["sentence"] for row in fixed["problems"])
    if "Renamed" in problem["sentence"]:
        paths = ("Customer.email_address", "Customer.email") if old == OLD else ("Order.note", "Order.notes")
        from_path, to_path = paths
        decide_rename(
            registry="dev",
            subject=name,
            from_path=from_path,
            to_path=to_path,
            is_rename=False,
            reason="two things",
            by=person("steward"),
        )
        assert sent(reader, new, **values)["summary"] == "Compatible under BACKWARD: no problems."


@pytest.mark.parametrize(
    ("text", "line"),
    [('{"type": "record",', 1), ('{"type": "recor"}', 1), ("\x00<script>alert(1)</script>", 1), ("[" * 50_000, 1)],
)
def test_a_text_that_does_not_parse_has_no_verdict(reader: Client, text: str, line: int) -> None:
    answer = sent(reader, text)
    assert not answer["checked"] and "passes" not in answer and "levels" not in answer
    assert answer["summary"].startswith("Not checked: ")
    assert [problem["from"]["line"] for problem in answer["problems"]] in ([line], [])


@pytest.mark.parametrize("error", [SchemaTooCostly("it takes more than 10 s"), Unavailable("the engine is away")])
def test_an_engine_that_does_not_finish_is_never_green(
    reader: Client, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(schema_engine, "check_all_levels", fail)
    assert sent(reader, OLD) == {"checked": False, "summary": f"Not checked: {error}", "problems": []}


def test_a_text_of_more_than_a_megabyte_is_not_checked(reader: Client) -> None:
    answer = sent(reader, json.dumps({"type": "record", "name": "R", "doc": "x" * 1_000_001, "fields": []}))
    assert not answer["checked"] and "too large" in answer["summary"] and answer["problems"] == []


def test_the_level_of_the_form_decides_and_a_new_subject_passes(reader: Client) -> None:
    assert "FULL" in sent(reader, NEW, level="FULL")["summary"]
    first = sent(reader, NEW, subject="new-value")
    assert first["checked"] and first["passes"]
    assert not sent(reader, NEW, level="SIDEWAYS")["checked"]


def test_only_who_may_read_gets_an_answer(reader: Client, person: Callable[[str], Actor]) -> None:
    data = {"registry": "dev", "subject": "customers-value", "schema_type": "AVRO", "text": OLD}
    assert reader.get(URL).status_code == 405
    assert Client(enforce_csrf_checks=True).post(URL, data).status_code == 403
    RoleGrant.objects.filter(user__username="reader").delete()
    assert reader.post(URL, data).status_code == 403
    assert signed_in("steward").post(URL, data | {"registry": "nowhere"}).status_code == 404


def test_too_many_checks_have_no_verdict(reader: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_problems, "RATE", {"text_problems": "2/m/key"})
    assert [sent(reader, OLD)["checked"] for _ in range(2)] == [True, True]
    assert sent(reader, OLD, status=429)["summary"] == "Not checked: too many checks in a minute."
    assert sent(signed_in("steward"), OLD)["checked"]
