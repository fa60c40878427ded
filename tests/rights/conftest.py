"""The cast with something of everything there."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import time, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.utils import timezone

from registry.access.models import ApiToken, GroupGrant, Ownership, RoleGrant, User
from registry.access.roles import Actor
from registry.access.services import issue_token
from registry.drift.models import Cluster
from registry.promotions.models import (
    BreakGlass,
    Comment,
    Draft,
    Environment,
    EnvironmentChange,
    FreezeWindow,
    RecurringFreeze,
    ReviewRule,
    SamePerson,
    Thread,
)
from registry.subjects.models import ArchivedCopy, BusinessTerm
from tests.dashboard.test_every_page import content  # noqa: F401 - a fixture
from tests.rights.calls import WHO, Caller


@pytest.fixture
def present(content: dict[str, int], person: Callable[[str], Actor]) -> dict[str, str]:  # noqa: F811
    """For each name in addresses, the value of something that is there."""
    owner = User.objects.get(username="steward")
    group = Group.objects.create(name="orders")
    cluster = Cluster.objects.get()
    numbers: dict[str, Any] = {
        "grant_id": RoleGrant.objects.filter(user=owner).first().pk,
        "ownership_id": Ownership.objects.create(subject_pattern="*", user=owner).pk,
        "request_id": content["request"],
        "source_id": content["source"],
        "scan_id": content["scan"],
        "finding_id": content["finding"],
        "cluster_id": cluster.pk,
        "schema_id": 1,
        "version": 1,
    }
    now, prod = timezone.now(), Environment.objects.get(registry__name="prod")
    freeze = {"starts_at": now, "ends_at": now + timedelta(days=1), "reason": "a holiday", "made_by": owner}
    numbers |= {
        "rule_id": ReviewRule.objects.create(environment=prod, reviewers="owners").pk,
        "freeze_id": FreezeWindow.objects.create(environment=prod, **freeze).pk,
        "change_id": EnvironmentChange.objects.create(
            environment=prod,
            action="change",
            values={"own_approval_allowed": True},
            before={"own_approval_allowed": False},
            digest="0" * 64,
            sentence="x",
            reason="x",
            requested_by=owner,
        ).pk,
        "break_glass_id": BreakGlass.objects.create(environment=prod, reason="x", opened_by=owner, ends_at=now).pk,
    }
    RecurringFreeze.objects.create(
        pk=numbers["freeze_id"], environment=prod, kind="monthly", zone="UTC", last_days=1, reason="x", made_by=owner,
        from_time=time(), to_time=time(),
    )  # fmt: skip
    made = {"made_at": now, "made_by": "tests", "until": now + timedelta(days=1)}
    nothing = '{"versions": [], "note": null, "config": null, "mode": null, "owners": null}'
    numbers["copy_id"] = ArchivedCopy.objects.create(
        registry=Environment.objects.get(registry__name="dev").registry, kind="deleted", name="gone-value", versions=0,
        content=nothing, **made,
    ).pk  # fmt: skip
    numbers |= {"thread_id": a_thread(content["request"]), "draft_id": a_draft(owner)}
    two = sorted((owner, User.objects.create(username="twin")), key=lambda user: user.pk)
    numbers["statement_id"] = SamePerson.objects.create(one=two[0], other=two[1], reason="x", stated_by="tests").pk
    BusinessTerm.objects.create(name="orders", doc="what customers buy", updated_by="tests")
    GroupGrant.objects.create(pk=numbers["grant_id"], group=group, role="reader")
    return {
        "registry": "dev", "subject": "orders-value", "context": ".", "project": "local", "location": "local",
        "name": "orders", "username": "steward", "namespace": "n", "resource_id": "r", "guid": "0" * 8,
        "schema_format": "avro", "schema": "1", "operation": "o", "decision": "approve",
        "webhook": "1", "token": "1", "number": "1", "delivery_id": "1", "subscription_id": "1", "mute_id": "1", "check_id": "1", "query_id": "1",
        "variable_id": "1", "path": "Order.id",
        **{name: str(number) for name, number in numbers.items()},
    }  # fmt: skip


def a_thread(request_id: int) -> int:
    """A discussion that somebody began who isn't of the cast."""
    outsider = User.objects.create(username="outsider")
    thread = Thread.objects.create(request_id=request_id)
    Comment.objects.create(thread=thread, author=outsider, text="why?")
    return thread.pk


def a_draft(author: User) -> int:
    """A draft of a schema."""
    registry = Environment.objects.get(registry__name="dev").registry
    names = {"context_name": ".", "subject_name": "drafted-value", "schema_type": "AVRO", "text": "{"}
    return Draft.objects.create(author=author, registry=registry, **names).pk


@pytest.fixture
def cast(present: dict[str, str], person: Callable[[str], Actor], system: Actor) -> dict[str, Caller]:
    """Everybody, from who may least to who may most."""
    callers = {"anonymous": Caller("anonymous")}
    for name in WHO[1:]:
        person(name)
        caller = Caller(name, token=issue_token(username=name, name="rights", by=system))
        caller.session.force_login(User.objects.get(username=name))
        callers[name] = caller
    present["token_id"] = str(ApiToken.objects.get(user__username="steward", name="rights").pk)
    found = callers["admin"].call("GET", "/subjects/orders-value/versions/1", {})[1]
    present["schema_id"] = present["schema"] = str(json.loads(found)["id"])
    return callers
