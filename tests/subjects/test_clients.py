"""Declared clients: who may say what, what is kept, and what it says of versions that are retired or brought in."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.test import Client as Browser
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from registry.access.roles import READER, Actor, Grant, system_actor
from registry.audit.models import AuditEvent
from registry.drift.usage.retirement import retirement_of
from registry.errors import (
    ClientNotFound,
    InvalidInput,
    NotAllowed,
    SubjectNotFound,
    VersionInUse,
    VersionNotFound,
)
from registry.subjects.comparison.comparison import report_proposal
from registry.subjects.models import Client, Registry, Schema, SchemaVersion
from registry.subjects.services import RegisteredVersion, delete_subject, delete_version, register_version
from registry.subjects.usage import clients
from registry.subjects.usage.clients import (
    LAPSES,
    REPORT_INTERVAL,
    SHOWN,
    clients_against,
    clients_of,
    declare_client,
    withdraw_client,
)
from registry.subjects.usage.evidence import evidence_of
from registry.subjects.versions.parsed_schemas import forget, parse_schema
from registry.subjects.versions.qualified_names import SubjectName
from tests.markup import compact

ORDERS = SubjectName(".", "orders-value")
V1: dict[str, Any] = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
V2 = {**V1, "fields": [*V1["fields"], {"name": "note", "type": ["null", "string"], "default": None}]}

pytestmark = pytest.mark.requirement("CARD-4")


@pytest.fixture
def orders(register: Callable[..., RegisteredVersion]) -> None:
    """A subject of `dev` with two versions."""
    register("orders-value", V1)
    register("orders-value", V2)


ADMIN = Actor("an admin", "product", user_id=2, grants=(Grant("admin"),))
ADMIN_BY_CONFLUENT = replace(ADMIN, channel="confluent")


def somebody(registry: str = "dev", pattern: str = "*") -> Actor:
    return Actor("a reader", "product", user_id=1, grants=(Grant(READER, registry, pattern),))


def declare(name: str = "billing", by: Actor | None = None, **more: Any) -> bool:
    return declare_client(registry="dev", subject=ORDERS, name=name, by=by or somebody(), **more)


def test_what_is_said_is_kept_and_said_twice_it_has_one_effect(orders: None, dev: Registry) -> None:
    assert declare(" billing ", version=2, fields=["note", "id", "id", ""], contact="#billing")
    assert not declare("billing", version=2, fields=["id", "note"], contact="#billing")
    (found,) = clients_of(dev, ORDERS)
    assert (found.name, found.does, found.version, found.number) == ("billing", "reads", 2, 2)
    assert (found.fields, found.contact, found.declared_by) == (("id", "note"), "#billing", "a reader")
    assert AuditEvent.objects.filter(table="subjects_client").count() == 1


def test_one_that_is_still_there_is_written_now_and_then_and_is_no_change(orders: None, dev: Registry) -> None:
    declare()
    for ago, is_written in ((REPORT_INTERVAL / 2, False), (2 * REPORT_INTERVAL, True)):
        before = timezone.now() - ago
        Client.objects.update(seen_at=before)
        declare()
        assert (clients_of(dev, ORDERS)[0].seen_at > before) is is_written
    assert AuditEvent.objects.filter(table="subjects_client").count() == 1, "only what is said of it is a change"
    declare(writes=True)
    assert clients_of(dev, ORDERS)[0].does == "reads and writes"
    assert AuditEvent.objects.filter(table="subjects_client", operation="UPDATE").count() == 1


def test_one_without_a_version_has_the_newest(orders: None, dev: Registry) -> None:
    declare()
    assert clients_of(dev, ORDERS)[0].number == 2
    delete_version(registry="dev", subject=ORDERS, version=2, by=ADMIN_BY_CONFLUENT)
    assert clients_of(dev, ORDERS)[0].number == 1


REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"name": " "}, InvalidInput, "Give the client a name"),
    ({"name": "x" * 129}, InvalidInput, "129 characters. At most 128 are allowed"),
    ({"name": "a\x00b"}, InvalidInput, "can't be displayed"),
    ({"name": "a\u202eb"}, InvalidInput, "can't be displayed"),
    ({"reads": False}, InvalidInput, "Declare at least one"),
    ({"version": 3}, VersionNotFound, "Version 3 of orders-value doesn't exist"),
    ({"version": 0}, InvalidInput, "from 1 to 2^31-1"),
    ({"version": 2**31}, InvalidInput, "from 1 to 2^31-1"),
    ({"fields": [str(number) for number in range(201)]}, InvalidInput, "201 fields. At most 200 are allowed"),
    ({"fields": ["x" * 513]}, InvalidInput, "513 characters"),
    ({"fields": ["id", "nota"]}, InvalidInput, "Version 2 has no field 'nota'. Did you mean note?"),
    ({"fields": ["Order.note"], "version": 1}, InvalidInput, "Version 1 has no field 'Order.note'. It has id."),
    ({"contact": "x" * 201}, InvalidInput, "201 characters"),
    ({"by": somebody(pattern="other-*")}, NotAllowed, ""),
    ({"by": somebody("prod")}, NotAllowed, ""),
]


@pytest.mark.parametrize(("change", "error", "says"), REFUSED)
def test_what_is_refused_leaves_nothing(
    orders: None, change: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error) as refused:
        declare(**change)
    assert says in str(refused.value)
    assert not Client.objects.exists()


def test_a_subject_has_a_bounded_number(orders: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "MOST", 2)
    assert declare("a") and declare("b")
    with pytest.raises(InvalidInput, match=r"already has 2 clients\. Withdraw clients that no longer exist"):
        declare("c")
    assert not declare("a", contact="still changed")


def test_one_that_is_gone_is_withdrawn(orders: None, dev: Registry) -> None:
    declare()
    with pytest.raises(NotAllowed):
        withdraw_client(registry="dev", subject=ORDERS, name="billing", by=somebody("prod"))
    withdraw_client(registry="dev", subject=ORDERS, name="billing", by=somebody())
    assert clients_of(dev, ORDERS) == []
    with pytest.raises(ClientNotFound, match="has no client named 'billing'"):
        withdraw_client(registry="dev", subject=ORDERS, name="billing", by=somebody())
    with pytest.raises(SubjectNotFound):
        withdraw_client(registry="dev", subject=SubjectName(".", "nothing"), name="billing", by=somebody())


STEWARD = Actor("a steward", "product", user_id=3, grants=(Grant("steward"),))
OTHER = replace(somebody(), name="another reader", user_id=4)


def test_another_reader_neither_changes_nor_withdraws_it(orders: None, dev: Registry) -> None:
    declare(contact="#billing")
    for attempt in (
        lambda: declare(by=OTHER, contact="another reader"),
        lambda: declare(by=OTHER, version=2, contact="#billing"),
        lambda: withdraw_client(registry="dev", subject=ORDERS, name="billing", by=OTHER),
    ):
        with pytest.raises(
            NotAllowed, match=r"declared by a reader\. Only they, its contact #billing or a steward can"
        ):
            attempt()
    assert not declare(by=OTHER, contact="#billing"), "that it is still there is said by any of its processes"
    (found,) = clients_of(dev, ORDERS)
    assert (found.contact, found.version, found.declared_by) == ("#billing", None, "a reader")


def test_its_contact_and_a_steward_change_it_and_it_stays_its_declarers(
    orders: None, dev: Registry, person: Callable[[str], Actor]
) -> None:
    contact = person("reader")
    declare(contact="reader")
    declare(by=contact, version=1, contact="reader")
    declare(by=STEWARD, version=2, contact="#billing")
    (found,) = clients_of(dev, ORDERS)
    assert (found.version, found.contact, found.declared_by) == (2, "#billing", "a reader")
    with pytest.raises(NotAllowed):
        withdraw_client(registry="dev", subject=ORDERS, name="billing", by=contact)
    withdraw_client(registry="dev", subject=ORDERS, name="billing", by=STEWARD)
    assert clients_of(dev, ORDERS) == []


@pytest.mark.parametrize(
    "values",
    [
        {"reads": False, "writes": False},
        {"version": 0},
        {"fields": ["x"] * 201},
        {"name": "billing"},
    ],
)
def test_the_database_keeps_what_holds(orders: None, values: dict[str, Any]) -> None:
    declare()
    there = Client.objects.get()
    row = {"subject": there.subject, "name": "other", "reads": True, "writes": False, "seen_at": timezone.now()}
    with pytest.raises(IntegrityError), transaction.atomic():
        Client.objects.create(**{**row, **values})


# -- what it says of versions -------------------------------------------------------------------------------------------


def test_a_version_that_a_client_has_is_in_use(orders: None, dev: Registry) -> None:
    declare("billing", version=1, contact="#billing")
    declare("report")
    with CaptureQueriesContext(connection) as queries:
        found = evidence_of(dev, ORDERS, [1, 2], kinds=("clients",))
    assert len(queries) == 1
    assert [(item.in_use, item.sentence) for item in found[1]] == [("yes", "billing reads it. Ask #billing.")]
    assert [item.sentence for item in found[2]] == ["report, which uses the newest version, reads it."]
    retirement = retirement_of(dev, ORDERS, by=system_actor("tests"), ask=False)
    assert {number: found.answer for number, found in retirement.versions.items()} == {1: "no", 2: "no"}
    delete_version(registry="dev", subject=ORDERS, version=1, by=ADMIN)
    with pytest.raises(VersionInUse, match="billing reads it"):
        delete_version(registry="dev", subject=ORDERS, version=1, by=ADMIN, permanent=True)
    withdraw_client(registry="dev", subject=ORDERS, name="billing", by=somebody())
    delete_version(registry="dev", subject=ORDERS, version=1, by=ADMIN, permanent=True)


def test_one_that_was_not_heard_of_for_long_is_not_known_to_be_there(orders: None, dev: Registry) -> None:
    declare(version=1)
    Client.objects.update(seen_at=timezone.now() - LAPSES - timedelta(days=1))
    (item,) = evidence_of(dev, ORDERS, [1], kinds=("clients",))[1]
    assert item.in_use == "unknown" and "last declared on" in item.sentence
    for permanent in (False, True):
        delete_version(registry="dev", subject=ORDERS, version=1, by=ADMIN, permanent=permanent)


def test_many_clients_are_counted(orders: None, dev: Registry) -> None:
    for number in range(SHOWN + 3):
        declare(f"client-{number:03}", version=1)
    items = evidence_of(dev, ORDERS, [1], kinds=("clients",))[1]
    assert len(items) == SHOWN + 1
    assert (items[-1].in_use, items[-1].sentence) == ("yes", "3 other clients do too.")


# -- the fields that it uses --------------------------------------------------------------------------------------------

LINE = {"type": "record", "name": "Line", "fields": [{"name": "sku", "type": "string"}, V2["fields"][1]]}
LINES = {"name": "lines", "type": {"type": "array", "items": LINE}, "default": []}
WHOLE = {**V2, "fields": [*V2["fields"], LINES]}
BARE_LINE = {**LINE, "fields": LINE["fields"][:1]}
SCALAR = 'syntax = "proto3"; message Order { int64 id = 1; %s Line line = 3; message Line { string sku = 1; %s } }'
REMOVALS: list[tuple[str, Any, Any, list[str], str]] = [
    ("AVRO", WHOLE, {**V1, "fields": [*V1["fields"], LINES]}, ["note"],
     "reads note, which is removed: it will always read the default null"),
    ("AVRO", WHOLE, V1, ["Order"], "reads note, lines, which are removed"),
    ("AVRO", WHOLE, {**WHOLE, "fields": [*V2["fields"], {**LINES, "type": {"type": "array", "items": BARE_LINE}}]},
     ["lines.note"], "reads lines[].note, which is removed: it will always read the default null"),
    ("AVRO", WHOLE, {**V1, "fields": [*V1["fields"], {**V2["fields"][1], "name": "text", "aliases": ["note"]}, LINES]},
     ["Order.note"], "reads note, which is removed: it will always read the default null"),
    ("AVRO", WHOLE, V1, ["id"], ""),
    ("AVRO", WHOLE, V1, [], ""),
    ("PROTOBUF", SCALAR % ("string note = 2;", ""), SCALAR % ("", ""), ["note"],
     "reads note, which is removed: new data doesn't have it"),
    ("PROTOBUF", SCALAR % ("string note = 2;", ""), SCALAR % ("string text = 2;", ""), ["note"], ""),
    ("PROTOBUF", SCALAR % ("", "string note = 2;"), SCALAR % ("", ""), ["line"],
     "reads line.note, which is removed: new data doesn't have it"),
    ("JSON", {"type": "object", "properties": {"id": {}, "note": {}}},
     {"title": "Order", "type": "object", "properties": {"id": {}}}, ["id", "note"],
     "reads note, which is removed: new data doesn't have it"),
]  # fmt: skip


@pytest.mark.parametrize(("schema_type", "old", "new", "fields", "says"), REMOVALS)
def test_a_field_that_a_client_uses_is_missed_though_all_data_can_be_read(
    registries: None, dev: Registry, schema_type: str, old: Any, new: Any, fields: list[str], says: str
) -> None:
    old_text, new_text = (text if isinstance(text, str) else json.dumps(text) for text in (old, new))
    register_version(registry="dev", subject=ORDERS, text=old_text, schema_type=schema_type, by=ADMIN)
    declare("couponsvc", version=1, fields=fields)
    declare("writer", version=1, fields=fields, reads=False, writes=True)
    schema = parse_schema(schema_type, new_text, ())
    answers = {item.name: (item.answer, item.message) for item in clients_against(dev, ORDERS, schema)}
    assert answers["couponsvc"] == (("no", says) if says else ("yes", "is compatible"))
    if schema_type != "JSON":
        assert answers["writer"] == ("yes", "is compatible"), "what it writes is read without the field"


def test_what_was_declared_once_can_be_said_again(orders: None, dev: Registry) -> None:
    """A program that takes the newest version says at each start what it uses, whatever became of the version."""
    declare(fields=["note"])
    register_version(registry="dev", subject=ORDERS, text=json.dumps({**V1, "doc": "no note"}), by=ADMIN)
    assert not declare(fields=["note"], contact="#billing")
    with pytest.raises(InvalidInput, match="Version 3 has no field 'note'"):
        declare("another", fields=["note"])


# -- the API and the page -----------------------------------------------------------------------------------------------

API = "/api/v1/registries/dev/subjects/orders-value/clients"
PAGE = "/ui/registries/dev/subjects/orders-value"


def test_a_program_says_it_at_each_start(api: Callable[[str], Browser], orders: None) -> None:
    def put(client: Browser, **body: Any) -> Any:
        return client.put(f"{API}/billing", json.dumps(body), content_type="application/json")

    program = api("reader")
    assert put(program, version=1, fields=["id"]).status_code == 201
    assert put(program, version=1, fields=["id"]).status_code == 204
    (told,) = program.get(API).json()
    assert (told["name"], told["number"], told["fields"], told["has_lapsed"]) == ("billing", 1, ["id"], False)
    assert put(program, version=9).status_code == 404
    refused = put(program, fields="id")
    assert refused.status_code == 422 and "fields" in refused.json()["message"]
    usage = program.get("/api/v1/registries/dev/subjects/orders-value/usage?ask=false").json()
    assert "billing reads it" in json.dumps(usage)
    assert put(api("stranger"), version=1).status_code == 403
    assert api("stranger").get(API).status_code == 403
    assert program.delete(f"{API}/billing").status_code == 204
    assert program.delete(f"{API}/billing").status_code == 404
    assert program.get(f"{API.replace('orders', 'nothing')}").status_code == 404


def test_people_declare_and_withdraw_on_the_page_of_use(
    look: Callable[[str], Browser], orders: None, dev: Registry
) -> None:
    reader = look("reader")
    assert "No declared clients" in reader.get(f"{PAGE}/usage").content.decode()
    nasty = "<script>alert(1)</script>"
    sent = {"name": nasty, "does": "both", "version": "2", "fields": "id\nnote, id", "contact": nasty}
    done = reader.post(f"{PAGE}/clients", sent, follow=True)
    text = done.content.decode()
    assert done.status_code == 200 and "<script>alert" not in text and "&lt;script&gt;alert(1)" in text
    (found,) = clients_of(dev, ORDERS)
    assert (found.does, found.version, found.fields) == ("reads and writes", 2, ("id", "note"))
    refused = reader.post(f"{PAGE}/clients", {**sent, "version": "7", "contact": "kept as it was typed"})
    assert refused.status_code == 422
    assert (
        "Version 7 of orders-value doesn&#x27;t exist" in refused.content.decode()
        and "kept as it was typed" in refused.content.decode()
    )
    assert reader.post(f"{PAGE}/clients", {**sent, "does": "dances"}).status_code == 422
    assert reader.post(f"{PAGE}/clients", {**sent, "version": "x"}).status_code == 422
    for _ in range(2):  # pressed twice it has one effect
        gone = reader.post(f"{PAGE}/clients/withdraw", {"name": nasty}, follow=True)
        assert gone.status_code == 200
    assert clients_of(dev, ORDERS) == []
    assert look("stranger").post(f"{PAGE}/clients", sent).status_code == 403


def test_the_page_asks_as_often_for_one_client_as_for_many(look: Callable[[str], Browser], orders: None) -> None:
    reader, counts = look("reader"), []
    for number in range(4):
        declare(f"client-{number}", version=None if number % 2 else 1)
        with CaptureQueriesContext(connection) as queries:
            assert reader.get(f"{PAGE}/usage").status_code == 200
        counts.append(len(queries))
    assert len(set(counts)) == 1, counts


def test_it_is_in_the_activity_of_its_subject(look: Callable[[str], Browser], orders: None) -> None:
    declare("billing")
    page = look("reader").get("/ui/audit?registry=dev&subject=orders-value&table=subjects_client")
    (row,) = page.context["page"].rows
    assert (row.what, row.url) == ("client added", f"{PAGE}/")
    elsewhere = look("reader").get("/ui/audit?registry=prod&table=subjects_client")
    assert elsewhere.context["page"].rows == ()


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (["Order.id"], "Consumer, reads, uses Order.id<"),
        (["id"], "Consumer, reads, uses id<"),
        (["Order"], "Consumer, reads, uses Order<"),
        (["Order.id.part"], "Consumer, reads, uses Order.id.part<"),
        (["note"], "Consumer, reads<"),
        ([], "Consumer, reads, lists no fields<"),
    ],
)
def test_the_page_of_a_field_says_who_needs_it(
    look: Callable[[str], Browser], orders: None, fields: list[str], says: str
) -> None:
    reader = look("reader")
    address = "/ui/fields?registry=dev&subject=orders-value&path=Order.id"
    assert (
        "No clients are declared, so it is unknown which programs use the field."
        in reader.get(address).content.decode()
    )
    declare(fields=fields)
    assert says in compact(reader.get(address).content.decode())


def test_removed_with_its_subject(orders: None, dev: Registry) -> None:
    declare()
    for permanent in (False, True):
        delete_subject(registry="dev", subject=ORDERS, by=ADMIN_BY_CONFLUENT, permanent=permanent)
    assert not Client.objects.exists()
    register_version(registry="dev", subject=ORDERS, text=json.dumps(V1), by=ADMIN)
    assert clients_of(dev, ORDERS) == []


def test_a_report_goes_on_without_a_client_s_version_that_cannot_be_read(registries: None, system: Actor) -> None:
    """A soft-deleted version is read for its clients alone: that it is damaged is no fault of the text that is sent."""
    for schema in (V1, V2):
        register_version(registry="dev", subject=ORDERS, text=json.dumps(schema), by=system)
    declare_client(registry="dev", subject=ORDERS, name="billing", version=1, reads=True, by=system)
    row = SchemaVersion.objects.get(subject__name=ORDERS.subject, version=1)
    SchemaVersion.objects.filter(pk=row.pk).update(deleted_at=timezone.now())
    Schema.objects.filter(pk=row.schema_id).update(canonical='{"type": "record", "name": "Or')
    forget()
    found = report_proposal(
        Registry.objects.get(name="dev"), ORDERS, text=json.dumps({**V2, "doc": "More."}), schema_type="AVRO", by=system
    )
    assert [(client.name, client.answer) for client in found.assessment.clients] == [("billing", "unknown")]
