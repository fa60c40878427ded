"""What tests of promotions have in common: schemas, people, and the calls that each of them begins with."""

from __future__ import annotations

import json
from typing import Any

from registry.access.models import Ownership, User
from registry.access.roles import Actor
from registry.promotions import selectors, services
from registry.promotions.models import Environment, PromotionRequest, ReviewRule
from registry.subjects.names import SubjectName
from registry.subjects.services import register_version

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
