"""The tree of a version's structure: what is closed, what a filter leaves, who uses a field, and the example message."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from dashboard.subjects.structure import field_url
from registry.access.roles import Actor
from registry.formats.personal_data import MASK
from registry.subjects.services import register_version
from registry.subjects.usage.clients import declare_client
from registry.subjects.versions.qualified_names import SubjectName
from tests.markup import compact

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-4")]

DEEP = SubjectName(".", "deep-value")
PAGE = "/ui/registries/dev/subjects/deep-value/"


def nested(depth: int) -> Any:
    """A record in a record, `depth` of them, each with a number beside."""
    inner = [{"name": f"n{depth}", "type": "long", "doc": f"at depth {depth}"}]
    if depth < 5:
        inner.append({"name": f"r{depth}", "type": nested(depth + 1)})
    return {"type": "record", "name": f"R{depth}", "fields": inner}


@pytest.fixture
def deep(registries: None, system: Actor) -> None:
    root = nested(0)
    root["fields"].append({"name": "mail", "type": ["null", "string"], "default": None, "confluent:tags": ["PII"]})
    register_version(registry="dev", subject=DEEP, text=json.dumps(root), by=system)


def rows(client: Client, query: str = "") -> list[str]:
    page = client.get(PAGE + query).context["page"]
    return [field.item.name for field in page.selected.structure.fields]


def tree(client: Client, query: str = "") -> Any:
    return client.get(PAGE + query).context["page"].selected.structure.tree


CLOSED = ["n0", "r0", "n1", "r1", "n2", "r2", "mail"]
EVERY = ["n0", "r0", "n1", "r1", "n2", "r2", "n3", "r3", "n4", "r4", "n5", "mail"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", CLOSED),
        ("?open=6", [*CLOSED[:6], "n3", "r3", "mail"]),  # r2 is the sixth
        ("?open=8", [*CLOSED[:6], "n3", "r3", "n4", "r4", "mail"]),  # r3 opens what it is in too
        ("?open=all", EVERY),
        ("?open=0&open=x&open=99999", CLOSED),
        ("?filter=n4", ["r0", "r1", "r2", "r3", "n4"]),
        ("?filter=DEPTH%205", ["r0", "r1", "r2", "r3", "r4", "n5"]),
        ("?filter=r0.n1", ["r0", "n1"]),
        ("?filter=pii", ["mail"]),
        ("?filter=nowhere", []),
    ],
)
def test_which_fields_are_drawn(deep: None, look: Callable[[str], Client], query: str, expected: list[str]) -> None:
    assert rows(look("reader"), query) == expected


def test_a_closed_field_says_how_much_is_in_it_and_leads_there(deep: None, look: Callable[[str], Client]) -> None:
    client = look("reader")
    fields = {field.item.name: field for field in client.get(PAGE).context["page"].selected.structure.fields}
    assert (fields["r2"].inside, fields["r2"].is_open) == (2, False)
    assert fields["r0"].inside == 0
    opened = client.get(fields["r2"].toggle_url)
    fields = {field.item.name: field for field in opened.context["page"].selected.structure.fields}
    assert fields["r2"].is_open
    assert rows(client, "?" + fields["r2"].toggle_url.partition("?")[2].partition("#")[0]) == CLOSED
    closed = tree(client)
    assert closed.hidden == 5
    assert [
        field.item.name for field in client.get(closed.open_all_url).context["page"].selected.structure.fields
    ] == EVERY


def test_a_change_event_shows_its_row_once(registries: None, system: Actor, look: Callable[[str], Client]) -> None:
    """What is in `before` and `source` is collapsed, and opens as any other field."""
    inside = [{"name": "id", "type": "long"}, {"name": "r", "type": nested(3)}]
    row, source = ({"type": "record", "name": name, "fields": inside} for name in ("Value", "Source"))
    source["fields"] = [{"name": "db", "type": "string"}]
    types = {"before": ["null", row], "after": ["null", "Value"], "source": source, "op": "string"}
    event = {"type": "record", "name": "Envelope", "fields": [{"name": name, "type": of} for name, of in types.items()]}
    register_version(registry="dev", subject=DEEP, text=json.dumps(event), by=system)
    client, after = look("reader"), ["after", "id", "r", "n3", "r3", "source", "op"]
    assert rows(client) == ["before", *after]
    fields = {field.item.name: field for field in client.get(PAGE).context["page"].selected.structure.fields}
    assert [fields[name].inside for name in ("before", "after", "source", "op")] == [2, 0, 1, 0]
    assert rows(client, "?open=1") == ["before", "id", "r", *after]


def test_a_link_to_a_field_deep_inside_shows_it(deep: None, look: Callable[[str], Client]) -> None:
    position = EVERY.index("n5") + 1
    response = look("reader").get(field_url("dev", "deep-value", 1, position))
    assert f'<tr id="field-{position}">' in compact(response.content.decode())


def test_what_was_found_is_distinguished_from_what_is_around_it(deep: None, look: Callable[[str], Client]) -> None:
    response = look("reader").get(PAGE + "?filter=n1")
    page = response.context["page"].selected.structure
    assert [(field.item.name, field.is_around) for field in page.fields] == [("r0", True), ("n1", False)]
    assert page.tree.summary == "1 of 12 fields matches."
    assert 'name="filter" value="n1"' in compact(response.content.decode())
    empty = look("reader").get(PAGE + "?filter=%3Cscript%3E").content.decode()
    assert "No field matches" in empty and '<script>"' not in empty and 'value="&lt;script&gt;"' in empty


def test_what_was_found_is_paged(registries: None, system: Actor, look: Callable[[str], Client]) -> None:
    fields = [{"name": f"{'even' if number % 2 else 'odd'}_{number}", "type": "long"} for number in range(500)]
    text = json.dumps({"type": "record", "name": "W", "fields": fields})
    register_version(registry="dev", subject=DEEP, text=text, by=system)
    page = look("reader").get(PAGE + "?filter=even").context["page"].selected.structure
    assert (page.paging.total, len(page.fields)) == (250, 100)
    following = look("reader").get(page.paging.next_url).context["page"].selected.structure
    assert (following.fields[0].item.name, following.paging.first) == ("even_201", 101)
    back = look("reader").get(following.paging.previous_url).context["page"].selected.structure
    assert back.fields[0].item.name == "even_1"


def test_who_uses_a_field(deep: None, system: Actor, look: Callable[[str], Client]) -> None:
    assert not tree(look("reader")).shows_users
    for name, fields in (("billing", ["mail"]), ("audit", ["R0.r0.n1"]), ("all", [])):
        declare_client(
            registry="dev", subject=DEEP, name=name, reads=True, writes=False, version=None, fields=fields, by=system
        )
    response = look("reader").get(PAGE)
    page = response.context["page"].selected.structure
    assert {field.item.name: field.used_by for field in page.fields if field.used_by} == {
        "mail": ("billing",), "n1": ("audit",), "r0": ("audit",),
    }  # fmt: skip
    assert page.tree.users == ("1 declared client doesn’t list its fields, so it may use any of them.",)
    assert "Used by" in response.content.decode()


def test_referring_subjects_use_all_of_it(deep: None, system: Actor, look: Callable[[str], Client]) -> None:
    user = {"type": "record", "name": "U", "fields": [{"name": "r", "type": "R0"}]}
    from registry.formats.base import Reference

    register_version(
        registry="dev", subject=SubjectName(".", "user-value"), text=json.dumps(user),
        references=(Reference("R0", "deep-value", 1),), by=system,
    )  # fmt: skip
    assert tree(look("reader")).users == ("1 subject refers to this version and so to all its fields.",)


def test_the_example_comes_when_asked_for_with_placeholders(deep: None, look: Callable[[str], Client]) -> None:
    client = look("reader")
    closed = tree(client)
    assert closed.example is None
    response = client.get(closed.example_url)
    example = response.context["page"].selected.structure.tree.example
    assert json.loads(example.text)["mail"] == {"string": MASK}
    assert (example.refused, example.problem, example.is_cut) == ("", "", False)
    assert example.note == "1 value is a placeholder because its field is tagged as personal data."
    assert 'data-copy="#example-text"' in response.content.decode()
    assert client.get(closed.example_url).context["page"].selected.structure.tree.example == example


def test_a_schema_without_data_says_so(registries: None, system: Actor, look: Callable[[str], Client]) -> None:
    text = '{"type":"record","name":"N","fields":[{"name":"next","type":"N"}]}'
    register_version(registry="dev", subject=DEEP, text=text, by=system)
    response = look("reader").get(PAGE + "?example=shown")
    assert "no finite value" in response.context["page"].selected.structure.tree.example.problem
    assert re.search(r"no finite value", response.content.decode())


def test_a_long_example_is_cut(registries: None, system: Actor, look: Callable[[str], Client]) -> None:
    fields = [{"name": f"f{number}", "type": "long"} for number in range(600)]
    text = json.dumps({"type": "record", "name": "W", "fields": fields})
    register_version(registry="dev", subject=DEEP, text=text, by=system)
    example = tree(look("reader"), "?example=shown").example
    assert example.is_cut
    assert example.text.count("\n") < 400
