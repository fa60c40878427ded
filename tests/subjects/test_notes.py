"""What stewards write about a subject: who may, what is refused, that nobody's words are lost, and that they go along."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from registry.access.roles import READER, STEWARD, Actor, Grant
from registry.access.services import add_owner, make_group, set_group_channel
from registry.audit.models import AuditEvent
from registry.errors import InvalidInput, NotAllowed, NoteChanged, SubjectNotFound
from registry.promotions.models import Environment
from registry.subjects.import_export.export_file import read_snapshot
from registry.subjects.import_export.registry_import import export_registry, import_snapshot
from registry.subjects.import_export.snapshot import NoteRecord, contents_of
from registry.subjects.lifecycle.notes import NONE, channels_in, note_of, tag_counts
from registry.subjects.models import Registry, SubjectNote
from registry.subjects.services import (
    RegisteredVersion,
    change_tags,
    delete_subject,
    set_mode,
    set_note,
)
from registry.subjects.versions.qualified_names import SubjectName

ORDERS = SubjectName(".", "orders-value")
Register = Callable[..., RegisteredVersion]
SCHEMA = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}

pytestmark = pytest.mark.requirement("CARD-4")


@pytest.fixture
def orders(register: Register) -> None:
    """A subject of `dev`."""
    register("orders-value", SCHEMA)


def person(role: str, pattern: str = "*") -> Actor:
    return Actor(f"a {role}", "ui", user_id=1, grants=(Grant(role, "dev", pattern),))


def describe(by: Actor, **changes: Any) -> Any:
    values = {"registry": "dev", "subject": ORDERS, "tags": ["PII"], "doc": "Orders.", "expected": NONE}
    return set_note(**{**values, **changes}, by=by)


def test_a_steward_describes_a_subject(orders: None, dev: Registry) -> None:
    done = describe(
        person(STEWARD), tags=["sales", "PII", "pii", "sales"], doc=" One.\r\n\r\nTwo.\n", reason="for  all"
    )
    assert (done.tags, done.doc, done.updated_by) == (("PII", "sales"), "One.\n\nTwo.", "a steward")
    assert note_of(dev, ORDERS) == done
    event = AuditEvent.objects.get(table="subjects_subjectnote")
    assert (event.actor, event.why) == ("a steward", "describe orders-value in dev: for all")
    assert event.after["tags"] == ["PII", "sales"]


@pytest.mark.parametrize(("role", "pattern"), [(READER, "*"), (STEWARD, "payments-*")])
def test_nobody_else_does(orders: None, role: str, pattern: str) -> None:
    with pytest.raises(NotAllowed, match="describe and tag subjects"):
        describe(person(role, pattern))
    with pytest.raises(NotAllowed):
        change_tags(registry="dev", subjects=[ORDERS], add=["x"], by=person(role, pattern))
    assert not SubjectNote.objects.exists()


def test_a_subject_that_is_not_there(registries: None, system: Actor) -> None:
    with pytest.raises(SubjectNotFound):
        describe(system)


@pytest.mark.parametrize("expected", ["", "2026-01-01T00:00:00+00:00", "None", "\0"])
def test_what_somebody_else_wrote_is_not_lost(orders: None, system: Actor, dev: Registry, expected: str) -> None:
    first = describe(system)
    with pytest.raises(NoteChanged, match="by tests after you opened it") as refused:
        describe(system, doc="Mine.", expected=expected)
    assert refused.value.details["state"] == first.state
    with pytest.raises(NoteChanged):  # whoever saw none, and is not the first any more
        describe(system, doc="Mine.")
    assert note_of(dev, ORDERS).doc == "Orders."
    second = describe(system, doc="Mine.", expected=first.state)
    assert second.state != first.state
    with pytest.raises(NoteChanged):
        describe(system, doc="Late.", expected=first.state)
    assert describe(system, doc="Any.", expected="*").doc == "Any."


def test_the_same_again_changes_nothing_and_nothing_leaves_no_note(orders: None, system: Actor, dev: Registry) -> None:
    first = describe(system)
    events = AuditEvent.objects.count()
    assert describe(person(STEWARD), expected=first.state) == first
    assert AuditEvent.objects.count() == events
    assert describe(system, tags=[], doc=" \n ", expected=first.state).state == NONE
    assert not SubjectNote.objects.exists()
    assert describe(system, tags=[], doc="").state == NONE


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"tags": ["a b"]}, "'a b' is not a valid tag"),
        ({"tags": [""]}, "is not a valid tag"),
        ({"tags": ["<script>"]}, "is not a valid tag"),
        ({"tags": ["_x"]}, "starts with a letter"),
        ({"tags": ["é"]}, "is not a valid tag"),
        ({"tags": ["x\n"]}, "is not a valid tag"),
        ({"tags": ["x" * 65]}, "is not a valid tag"),
        ({"tags": [None]}, "is not a valid tag"),
        ({"tags": [f"t{number}" for number in range(33)]}, "33 tags. A subject can have at most 32"),
        ({"doc": "x" * 20_001}, "20,001 characters"),
        ({"doc": "a\0b"}, "can't be displayed"),
        ({"doc": "\ud800"}, "can't be displayed"),
        ({"doc": "a\u202eb"}, "can't be displayed"),
        ({"reason": "r" * 501}, "501 characters"),
        ({"reason": "a\0"}, "can't be displayed"),
    ],
)
def test_what_cannot_be_kept_is_refused(orders: None, system: Actor, values: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        describe(system, **values)
    assert not SubjectNote.objects.exists()


def test_the_longest_that_is_taken(orders: None, system: Actor) -> None:
    tags = [f"t{number:02}" + "x" * 61 for number in range(32)]
    done = describe(system, tags=tags, doc="é" * 20_000)
    assert len(done.tags) == 32
    assert len(done.doc) == 20_000


def test_notes_pass_modes_and_closed_environments(orders: None, system: Actor, dev: Registry) -> None:
    """They describe; no client gets anything else by them."""
    set_mode(registry="dev", subject=None, mode="READONLY_OVERRIDE", by=system)
    Environment.objects.update_or_create(registry=dev, defaults={"position": 0, "is_closed": True})
    assert describe(person(STEWARD)).tags == ("PII",)


def test_a_note_stays_with_a_deleted_subject_and_goes_with_a_removed_one(
    orders: None, register: Register, system: Actor, dev: Registry
) -> None:
    describe(system)
    delete_subject(registry="dev", subject=ORDERS, by=system)
    assert note_of(dev, ORDERS).tags == ("PII",)
    describe(system, tags=["x"], expected="*")
    delete_subject(registry="dev", subject=ORDERS, permanent=True, by=system)
    assert not SubjectNote.objects.exists()


def test_several_get_and_lose_tags_at_once(orders: None, register: Register, system: Actor, dev: Registry) -> None:
    other = SubjectName(".lab", "spare-value")
    register("spare-value", '"int"', context=".lab")
    describe(system, tags=["pii", "old"])
    done = change_tags(registry="dev", subjects=[ORDERS, other, ORDERS], add=["PII", "new"], remove=["OLD"], by=system)
    assert {name.qualified: note.tags for name, note in done.items()} == {
        ":.lab:spare-value": ("PII", "new"),
        "orders-value": ("new", "pii"),
    }
    assert note_of(dev, ORDERS).doc == "Orders."
    whys = set(AuditEvent.objects.filter(table="subjects_subjectnote").values_list("why", flat=True))
    assert "add PII, add new, remove OLD at :.lab:spare-value in dev" in whys
    assert tag_counts(dev) == {"new": 2, "pii": 2}


def test_several_get_tags_all_or_none(orders: None, system: Actor, register: Register, dev: Registry) -> None:
    register("spare-value", '"int"')
    describe(system, tags=[f"t{number}" for number in range(32)])
    with pytest.raises(InvalidInput, match="orders-value: There are 33 tags"):
        change_tags(registry="dev", subjects=[SubjectName(".", "spare-value"), ORDERS], add=["x"], by=system)
    with pytest.raises(SubjectNotFound):
        change_tags(registry="dev", subjects=[ORDERS, SubjectName(".", "zz")], remove=["t1"], by=system)
    assert "t1" in note_of(dev, ORDERS).tags
    assert SubjectNote.objects.count() == 1


@pytest.mark.parametrize(
    ("subjects", "add", "remove", "said"),
    [
        ([], ["x"], [], "1 to 200 subjects"),
        ([ORDERS] * 201, ["x"], [], "1 to 200 subjects"),
        ([ORDERS], [], [], "Give a tag"),
        ([ORDERS], ["a b"], [], "is not a valid tag"),
        ([ORDERS], [], ["a b"], "is not a valid tag"),
    ],
)
def test_a_change_of_several_that_is_refused(
    orders: None, system: Actor, subjects: list[SubjectName], add: list[str], remove: list[str], said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        change_tags(registry="dev", subjects=subjects, add=add, remove=remove, by=system)


# -- the channel ----------------------------------------------------------------------------------------------------


def test_a_subject_has_a_channel_or_that_of_its_owners(
    orders: None, register: Register, system: Actor, dev: Registry, django_assert_num_queries
) -> None:
    register("spare-value", SCHEMA)
    make_group(name="payments", by=system)
    set_group_channel(group="payments", channel="#payments", by=system)
    add_owner(subject_pattern="*", group="payments", by=system)
    spare = SubjectName(".", "spare-value")
    done = describe(system, tags=[], doc="", channel=" #orders ")
    assert (done.channel, note_of(dev, ORDERS)) == ("#orders", done)
    with django_assert_num_queries(1):
        assert channels_in(dev, {ORDERS, spare}) == ("#orders", "#payments")
    with django_assert_num_queries(0):
        assert channels_in(dev, set()) == ()
    assert AuditEvent.objects.get(table="subjects_subjectnote").after["channel"] == "#orders"


def test_a_channel_stays_unless_it_is_given(orders: None, system: Actor, dev: Registry) -> None:
    describe(system, channel="#orders")
    assert describe(system, tags=[], doc="", expected="*").channel == "#orders"
    change_tags(registry="dev", subjects=[ORDERS], add=["gold"], by=system)
    assert note_of(dev, ORDERS).channel == "#orders"
    assert describe(system, tags=[], doc="", channel="", expected="*").state == NONE
    assert not SubjectNote.objects.exists()


def test_a_script_is_no_channel(orders: None, system: Actor) -> None:
    with pytest.raises(InvalidInput, match="Give the URL of a chat"):
        describe(system, channel="javascript:alert(1)")
    assert not SubjectNote.objects.exists()


# -- the API --------------------------------------------------------------------------------------------------------

NOTES = "/api/v1/registries/dev/subjects/orders-value/notes"


def test_the_api_reads_and_writes_with_etags(orders: None, api: Callable[[str], Client]) -> None:
    client = api("steward")
    read = client.get(NOTES)
    assert (read.status_code, read["ETag"]) == (200, '"none"')
    body = {"tags": ["PII"], "doc": "Orders."}
    assert client.put(NOTES, body, content_type="application/json").status_code == 422
    wrote = client.put(NOTES, body, content_type="application/json", headers={"If-Match": read["ETag"]})
    assert (wrote.status_code, wrote.json()["tags"]) == (200, ["PII"])
    late = client.put(NOTES, {"tags": [], "doc": ""}, content_type="application/json", headers={"If-Match": '"none"'})
    assert (late.status_code, late.json()["error"]) == (412, "NoteChanged")
    body |= {"channel": "#orders"}
    assert client.put(NOTES, body, content_type="application/json", headers={"If-Match": "*"}).status_code == 200
    found = client.get(NOTES).json()
    assert (found["channel"], found["channels"]) == ("#orders", ["#orders"])
    assert found["effective_tags"] == ["PII"]
    assert found["fields"] == [{"path": "Order.id", "tags": ["PII"], "personal": True}]
    assert (found["doc"], found["owners"]) == ("Orders.", {"people": [], "groups": []})


@pytest.mark.parametrize("body", ["[]", '"x"', "{", '{"tags": "PII", "doc": ""}', '{"tags": [1], "doc": null}', "{}"])
def test_the_api_refuses_what_is_no_note(orders: None, api: Callable[[str], Client], body: str) -> None:
    answer = api("steward").put(NOTES, body, content_type="application/json", headers={"If-Match": "*"})
    assert answer.status_code in (400, 422)
    assert not SubjectNote.objects.exists()


def test_the_api_tags_several(orders: None, api: Callable[[str], Client]) -> None:
    client = api("steward")
    done = client.post(
        "/api/v1/registries/dev/tags",
        {"subjects": ["orders-value"], "add": ["gold"]},
        content_type="application/json",
    )
    assert (done.status_code, done.json()) == (200, [{"subject": "orders-value", "tags": ["gold"]}])
    assert client.get("/api/v1/registries/dev/tags").json() == [{"tag": "gold", "subjects": 1}]


# -- export and import ----------------------------------------------------------------------------------------------


def exported(system: Actor) -> bytes:
    file = io.BytesIO()
    export_registry(registry="dev", file=file, by=system)
    return file.getvalue()


def test_an_export_carries_notes_to_another_registry(orders: None, system: Actor, dev: Registry) -> None:
    describe(system, tags=["PII", "gold"], doc="One.\n\nTwo.")
    data = exported(system)
    assert [json.loads(line) for line in data.splitlines() if b'"kind":"note"' in line] == [
        {"kind": "note", "context": ".", "subject": "orders-value", "tags": ["PII", "gold"], "doc": "One.\n\nTwo."}
    ]
    snapshot = read_snapshot(io.BytesIO(data), "file")
    assert not import_snapshot(registry="staging", snapshot=snapshot, by=system).problems
    place = Registry.objects.get(name="staging")
    assert note_of(place, ORDERS).tags == ("PII", "gold")
    assert contents_of(place).notes == contents_of(dev).notes


def test_an_import_replaces_what_is_written_there_and_keeps_what_is_there_alone(
    orders: None, register: Register, system: Actor
) -> None:
    describe(system)
    snapshot = read_snapshot(io.BytesIO(exported(system)), "file")
    register("orders-value", SCHEMA, registry="staging")
    register("own-value", '"int"', registry="staging")
    own = SubjectName(".", "own-value")
    describe(system, registry="staging", doc="Theirs.")
    describe(system, registry="staging", subject=own)
    import_snapshot(registry="staging", snapshot=snapshot, by=system, keep_going=True)
    place = Registry.objects.get(name="staging")
    assert (note_of(place, ORDERS).doc, note_of(place, own).doc) == ("Orders.", "Orders.")


def test_a_channel_stays_where_it_is(orders: None, register: Register, system: Actor) -> None:
    describe(system, tags=[], doc="", channel="#orders")
    data = exported(system)
    assert b'"kind":"note"' not in data
    register("orders-value", SCHEMA, registry="staging")
    describe(system, registry="staging", channel="#theirs")
    describe(system, doc="Ours.", expected="*")
    import_snapshot(
        registry="staging", snapshot=read_snapshot(io.BytesIO(exported(system)), "file"), by=system, keep_going=True
    )
    note = note_of(Registry.objects.get(name="staging"), ORDERS)
    assert (note.doc, note.channel) == ("Ours.", "#theirs")


def test_a_note_that_cannot_be_kept_is_a_problem_of_the_import(orders: None, system: Actor) -> None:
    describe(system)
    snapshot = read_snapshot(io.BytesIO(exported(system)), "file")
    notes = {ORDERS: NoteRecord(("a b",)), SubjectName(".", "nowhere"): NoteRecord(("x",))}
    wrong = replace(snapshot, notes=notes)
    done = import_snapshot(registry="staging", snapshot=wrong, by=system, keep_going=True)
    assert sorted(problem.what for problem in done.problems) == ["note of nowhere", "note of orders-value"]


def test_reading_notes_takes_as_many_queries_for_many_subjects(
    register: Register, system: Actor, dev: Registry
) -> None:
    register("a-value", '"int"')
    with CaptureQueriesContext(connection) as few:
        contents_of(dev)
    for number in range(5):
        register(f"b{number}-value", '"int"')
        describe(system, subject=SubjectName(".", f"b{number}-value"))
    with CaptureQueriesContext(connection) as many:
        contents_of(dev)
    assert len(few) == len(many)
