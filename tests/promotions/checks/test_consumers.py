"""What the declared clients of the target would meet is a check of each plan."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from registry.promotions import selectors
from registry.promotions.checks.consumers import checks_of_clients
from registry.subjects.engine import schema_engine
from registry.subjects.models import Client, Registry
from registry.subjects.usage.clients import LAPSES, declare_client
from tests.promotions.factories import BROKEN, CUSTOMERS, ORDERS, V1, V2, Cast, ask, register

pytestmark = pytest.mark.requirement("CARD-4")

WITHOUT_DEFAULT = {**V1, "fields": [*V1["fields"], {"name": "note", "type": "string"}]}


def declare(cast: Cast, name: str, subject: Any = ORDERS, **more: Any) -> None:
    declare_client(registry="staging", subject=subject, name=name, by=cast["reader"], **more)


def there(cast: Cast, schema: dict[str, Any], **more: Any) -> None:
    """Register a schema in staging, which is open."""
    register(schema, cast["admin"], registry="staging", **more)


def check_of(number: int) -> dict[str, Any] | None:
    found = [check for check in selectors.get_request(number).checks if check["code"] == "clients"]
    return found[0] if found else None


def checked(schema: dict[str, Any]) -> Any:
    parsed = schema_engine.parse("AVRO", json.dumps(schema), ())
    (check,) = checks_of_clients(Registry.objects.get(name="staging"), ["orders-value"], {"orders-value": parsed})
    return check


def test_without_clients_there_is_no_such_check(cast: Cast) -> None:
    register(V1, cast["steward"])
    assert check_of(ask(cast, target="staging")) is None


def test_a_client_misses_a_field_that_it_reads(cast: Cast) -> None:
    there(cast, V2)
    declare(cast, "notes", version=1, fields=["note"])
    declare(cast, "ids", version=1, fields=["id"])
    check = checked(V1)
    assert (check.verdict, check.concerned, check.asked) == ("warn", ("notes",), 2)
    assert "notes (reads version 1) reads note, which is removed" in check.sentence


def test_those_who_go_on_are_named(cast: Cast) -> None:
    there(cast, V1)
    for schema in (V1, V2):
        register(schema, cast["steward"])
    declare(cast, "billing", version=1)
    check = check_of(ask(cast, version=2, target="staging"))
    assert check is not None and check["verdict"] == "pass"
    assert check["sentence"] == "Compatible with what billing declared."


@pytest.mark.parametrize(
    ("schema", "does", "says"),
    [
        (WITHOUT_DEFAULT, {"reads": False, "writes": True}, "writes data that this version can't read"),
        (BROKEN, {"reads": True}, "can't read data of this version"),
        (BROKEN, {"reads": True, "writes": True}, "can't read data of this version"),
    ],
)
def test_those_who_do_not_go_on_are_named_with_what_they_meet(
    cast: Cast, schema: dict[str, Any], does: dict[str, bool], says: str
) -> None:
    there(cast, V1)
    declare(cast, "billing", version=1, contact="#billing", **does)
    check = checked(schema)
    assert check.verdict == "warn" and not check.overridable, "it is told, and stops nobody"
    assert check.sentence.startswith("billing (") and says in check.sentence and "#billing" in check.sentence
    assert "Order" in check.sentence and "Contact their owners" in check.cure


def test_a_reader_alone_is_not_hurt_by_what_only_writers_meet(cast: Cast) -> None:
    there(cast, V1)
    declare(cast, "billing", version=1, reads=True)
    assert checked(WITHOUT_DEFAULT).verdict == "pass"


def test_one_that_was_not_heard_of_is_distinguished(cast: Cast) -> None:
    there(cast, V1)
    declare(cast, "billing", version=1)
    Client.objects.update(seen_at=timezone.now() - LAPSES - timedelta(days=1))
    check = checked(BROKEN)
    assert check.verdict == "skipped" and "One client was not seen for a long time" in check.sentence


def test_many_are_counted_and_asked_for_at_once(cast: Cast) -> None:
    there(cast, V1)
    there(cast, V1, subject=CUSTOMERS)
    place, schemas = Registry.objects.get(name="staging"), {}
    for name in ("orders-value", "customers-value"):
        schemas[name] = schema_engine.parse("AVRO", json.dumps(BROKEN), ())
    counts = []
    for number in range(8):
        for subject in (ORDERS, CUSTOMERS):
            declare(cast, f"client-{number}", subject, version=1)
        with CaptureQueriesContext(connection) as queries:
            found = checks_of_clients(place, list(schemas), schemas)
        counts.append(len(queries))
    assert len(set(counts)) == 1 and counts[0] <= 3
    assert [check.subject for check in found] == ["customers-value", "orders-value"]
    assert "and 3 more" in found[0].sentence
