"""What tests of promotions share: schemas, people, requests, and small parts of a plan made by hand."""

from __future__ import annotations

import json
from typing import Any

from registry.access.models import Ownership, User
from registry.access.roles import Actor
from registry.formats.avro import AVRO
from registry.formats.base import ParsedSchema, Reference, ResolvedReference
from registry.promotions import selectors, services
from registry.promotions.models import Environment, PromotionRequest, ReviewRule
from registry.promotions.plan.types import IncomingVersion, TargetState, TargetVersion
from registry.subjects.engine import schema_engine
from registry.subjects.services import register_version
from registry.subjects.versions.qualified_names import SubjectName

ORDERS, CUSTOMERS = SubjectName(".", "orders-value"), SubjectName(".", "customers-value")
V1: dict[str, Any] = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
V2 = {**V1, "fields": [*V1["fields"], {"name": "note", "type": ["null", "string"], "default": None}]}
#: breaks V1 at every level
BROKEN = {**V1, "fields": [{"name": "id", "type": "string"}]}
PEOPLE = ("reader", "steward", "steward2", "approver", "approver2", "admin", "stranger")
Cast = dict[str, Actor]


def register(schema: object, by: Actor, registry: str = "dev", subject: SubjectName = ORDERS, **more: Any) -> None:
    """Register a schema."""
    register_version(registry=registry, subject=subject, text=json.dumps(schema), by=by, **more)


def ask(cast: Cast, by: str = "steward", version: int = 1, target: str = "prod", **more: Any) -> int:
    """Ask for a version of orders of dev."""
    asked = {"subject": ORDERS, "version": version, **more}
    return services.request_promotion(source="dev", target=target, by=cast[by], **asked)


def approve_shown(*, request_id: int, by: Actor, **more: Any) -> str:
    """Approve the plan that the request shows, as somebody does who has just read it."""
    shown = PromotionRequest.objects.get(pk=request_id).plan_hash
    return services.approve(request_id=request_id, by=by, plan_hash=shown, **more)


def state_of(number: int) -> str:
    """The request's state."""
    return selectors.get_request(number).state


def change(target: str = "prod", **values: Any) -> Environment:
    """An environment with other rules, without asking who may."""
    Environment.objects.filter(registry__name=target).update(**values)
    return Environment.objects.get(registry__name=target)


def rule(target: str = "prod", **values: Any) -> ReviewRule:
    """A review rule of an environment."""
    return ReviewRule.objects.create(environment=change(target), **values)


def owned_by(username: str, pattern: str = "orders-*") -> None:
    """Make somebody the owner of subjects."""
    Ownership.objects.create(subject_pattern=pattern, user=User.objects.get(username=username))


def record(**fields: str) -> str:
    """An Avro record; a type that ends in `?` is a union with null, with null as its default."""
    made = [
        {"name": name, "type": ["null", kind[:-1]], "default": None}
        if kind.endswith("?")
        else {"name": name, "type": kind}
        for name, kind in fields.items()
    ]
    return json.dumps({"type": "record", "name": "Order", "fields": made})


def parsed(text: str, references: tuple[ResolvedReference, ...] = ()) -> ParsedSchema:
    """The text as the product reads it."""
    return schema_engine.parse(AVRO.name, text, references)


def wanted(subject: str, version: int = 1, text: str = "", **more: Any) -> IncomingVersion:
    """A version that is wanted, without metadata or rules."""
    text = text or record(id="long")
    given: dict[str, Any] = {"metadata": {}, "rule_set": {}, "source_id": version, **more}
    return IncomingVersion(subject, version, parsed(text), text, "AVRO", **given)


def using(subject: str, version: int, *needs: tuple[str, int]) -> IncomingVersion:
    """A version that refers to others, which the pure parts never look into."""
    references = tuple(Reference(f"N{place}", name, number) for place, (name, number) in enumerate(needs))
    return wanted(subject, version, references=references, needs=tuple(needs))


def state(*texts: str, level: str = "BACKWARD", mode: str = "READWRITE", **more: Any) -> TargetState:
    """A subject of the target with these versions, from 1 on."""
    held = tuple(
        TargetVersion(number, parsed(text).fingerprint, parsed(text), f"identity {number}", number)
        for number, text in enumerate(texts, start=1)
    )
    return TargetState(level, mode, held, len(held) + 1, **more)
