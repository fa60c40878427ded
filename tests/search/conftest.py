"""A few subjects of which the search knows."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from registry.access.models import RoleGrant, User
from registry.access.roles import Actor
from registry.access.selectors import actor_of_user
from registry.search import services
from registry.subjects.services import register_version
from registry.subjects.versions.qualified_names import parse_subject


def record(name: str, *fields: Any, **more: Any) -> str:
    """An Avro record; a field is a name (a string), (name, type) or the whole."""

    def field(given: Any) -> dict[str, Any]:
        if isinstance(given, dict):
            return given
        name, type_ = given if isinstance(given, tuple) else (given, "string")
        return {"name": name, "type": type_}

    return json.dumps({"type": "record", "name": name, "fields": [field(given) for given in fields], **more})


ADDRESS = {"type": "record", "name": "Address", "fields": [{"name": "email", "type": "string"}]}
MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
#: registry, subject, schema
SUBJECTS = (
    ("dev", "orders-value", record(
        "Order", ("id", "long"), {"name": "customer_email", "type": "string", "doc": "GDPR relevant: the buyer's address"},
        ("total", MONEY), {"name": "phone", "type": "string", "confluent:tags": ["PII"]}, doc="What a shop sells.")),
    ("dev", "customers-value", record("Customer", ("id", "long"), ("address", ADDRESS), "email", "name")),
    ("dev", "secret-payroll", record("Payroll", "salary_amount", "email", ("hidden_kind", {
        "type": "enum", "name": "HiddenKind", "symbols": ["A"]}))),
    ("dev", ":.eu:orders-value", record("OrderEu", "vat_number")),
    ("staging", "orders-value", record("Order", ("id", "long"))),
    ("prod", "odd%_name", record("Odd", "a_b", "axb")),
)  # fmt: skip


@pytest.fixture
def register(registries: None, system: Actor) -> Callable[..., int]:
    """Registers a version and indexes it."""

    def make(registry: str, subject: str, text: str, **more: Any) -> int:
        done = register_version(registry=registry, subject=parse_subject(subject), text=text, by=system, **more)
        services.index_stale()
        return int(done.version)

    return make


@pytest.fixture
def subjects(registries: None, system: Actor) -> None:
    """The subjects, indexed."""
    for registry, subject, text in SUBJECTS:
        if registry == "prod":
            continue
        register_version(registry=registry, subject=parse_subject(subject), text=text, by=system)
    services.index_stale()


@pytest.fixture
def limited(registries: None) -> Callable[..., Actor]:
    """A reader of the subjects that patterns name, (registry, pattern) each."""

    def make(*places: tuple[str, str], name: str = "limited") -> Actor:
        user, _ = User.objects.get_or_create(username=name)
        for registry, pattern in places:
            RoleGrant.objects.create(user=user, role="reader", registry=registry, subject_pattern=pattern)
        return actor_of_user(user, channel="ui")

    return make
