"""Associations beside their REST contract: races with deletions, the audit, registries that go, what stays undone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from registry.access.roles import Actor
from registry.audit.models import AuditEvent
from registry.errors import IncompatibleSchema
from registry.formats.base import Reference
from registry.subjects.associations.requests import (
    AssociationSpec,
    InvalidAssociation,
    NoActiveVersion,
    Resource,
    SchemaSpec,
)
from registry.subjects.associations.rules import associations_of_subject
from registry.subjects.models import Association, Context, Registry, SchemaVersion, Subject
from registry.subjects.policy.registries import delete_registry, ensure_registry
from registry.subjects.services import associate, set_config
from registry.subjects.versions.qualified_names import SubjectName
from tests.subjects.client_process import Call, perform
from tests.subjects.races import BASKET, FITTING, MISFITS, PLAIN, Calls, Clients

pytestmark = pytest.mark.requirement("GOO-1")
ORDERS = SubjectName(".", "orders")


def topic(name: str, number: int = 0, namespace: str = "lkc") -> Resource:
    return Resource(name, namespace, f"id-{name}-{number}")


def asked(subject: str | None = None, text: str = "", kind: str = "value") -> AssociationSpec:
    return AssociationSpec(kind, subject=subject, schema=SchemaSpec(text) if text else None)


def associating(resource: Resource, *items: AssociationSpec) -> Call:
    return Call("associate", {"registry": "dev", "resource": resource, "specs": items, "create": True})


@pytest.mark.slow
@pytest.mark.usefixtures("transactional_db", "registries")
def test_a_subject_in_use_never_loses_its_last_version(clients: Clients) -> None:
    """Topics come to share a subject while others delete it: whoever is second is refused."""
    for seed in range(6):
        calls = Calls(f".shared{seed}")
        perform(calls.register("orders", PLAIN))
        name = f":{calls.context}:orders"
        coming = [associating(topic(f"t{number}", seed), asked(name)) for number in range(6)]
        leaving = [calls.delete("orders"), calls.delete("orders", 1), calls.remove("orders"), calls.remove("orders", 1)]
        outcomes = clients.race([[call] for call in (*coming, *leaving)], seed)
        used = Association.objects.filter(subject__context__name=calls.context).count()
        alive = SchemaVersion.objects.filter(subject__context__name=calls.context, deleted_at=None).count()
        assert used == sum(1 for item in outcomes if item.call.service == "associate" and not item.error)
        assert alive or not used, [str(item) for item in outcomes]
        refused = {item.error for item in outcomes if item.call.service == "associate"} - {""}
        assert refused <= {"NoActiveVersion"}


@pytest.mark.slow
@pytest.mark.usefixtures("transactional_db", "registries")
def test_a_subject_has_one_owner_and_no_referrer(clients: Clients) -> None:
    """Rivals for one name, others that share it or refer to it: at the end one thing holds."""
    for seed in range(6):
        space = f"lkc{seed}"
        calls = Calls(f".{space}")
        owning = [associating(Resource("orders", space, f"rival-{number}"), asked(text=PLAIN)) for number in range(5)]
        referring = [calls.register(f"baskets-{number}", BASKET, "orders-value") for number in range(3)]
        sharing = [associating(topic(f"s{number}", seed), asked(f":.{space}:orders-value")) for number in range(3)]
        registering = [calls.register("orders-value", FITTING[0])]
        outcomes = clients.race([[call] for call in (*owning, *referring, *sharing, *registering)], seed)
        rows = list(Association.objects.filter(subject__context__name=f".{space}"))
        owners = [row for row in rows if row.lifecycle == "STRONG"]
        assert len(owners) <= 1
        assert not (owners and len(rows) > 1), [str(item) for item in outcomes]
        referrers = [item for item in outcomes if "baskets" in str(item.call) and not item.error]
        assert not (owners and referrers), [str(item) for item in outcomes]


@pytest.mark.django_db
def test_who_associates_is_in_the_audit(register: Callable[..., Any], system: Actor) -> None:
    register("orders", PLAIN)
    associate(registry="dev", resource=topic("t"), specs=[asked("orders")], by=system, create=True)
    (event,) = AuditEvent.objects.filter(table="subjects_association")
    assert (event.actor, event.operation, event.after["resource_name"]) == (system.name, "INSERT", "t")
    assert "associate topic t of lkc" in event.why


@pytest.mark.django_db
@pytest.mark.parametrize("dry_run", [False, True])
def test_a_refused_request_leaves_nothing(register: Callable[..., Any], system: Actor, dry_run: bool) -> None:
    """The second schema doesn't fit its subject, so the first one isn't registered either."""
    register("t-key", PLAIN, context=".lkc")
    register("t-value", '"string"', context=".other")
    set_config(registry="dev", subject=SubjectName(".lkc", "t-key"), by=system, level="BACKWARD")
    before = list(Context.objects.values_list("name", "next_schema_id"))
    both = [asked(text='"int"'), asked(text=MISFITS[0], kind="key")]
    with pytest.raises((IncompatibleSchema, InvalidAssociation)):
        associate(registry="dev", resource=topic("t"), specs=both, by=system, create=True, dry_run=dry_run)
    assert list(Context.objects.values_list("name", "next_schema_id")) == before
    assert not Subject.objects.filter(name="t-value", context__name=".lkc").exists()
    assert not Association.objects.exists()


@pytest.mark.django_db
def test_a_dry_run_uses_no_id_and_needs_none_of_the_topic(registries: None, system: Actor) -> None:
    wanted = [asked(text=PLAIN)]
    done = associate(
        registry="dev", resource=Resource("t", "lkc", None), specs=wanted, by=system, create=True, dry_run=True
    )
    assert done.associations == ()
    assert not Subject.objects.exists()
    assert not Context.objects.filter(name=".lkc").exists()
    made = associate(registry="dev", resource=topic("t"), specs=wanted, by=system, create=True)
    assert made.versions["value"].schema.schema_id == 1


@pytest.mark.django_db
def test_a_schema_may_not_refer_to_what_the_same_request_owns(registries: None, system: Actor) -> None:
    referring = AssociationSpec("key", schema=SchemaSpec(BASKET, references=(Reference("Order", ":.lkc:t-value", 1),)))
    with pytest.raises(Exception, match="references exist"):
        associate(registry="dev", resource=topic("t"), specs=[asked(text=PLAIN), referring], by=system, create=True)
    assert not Subject.objects.exists()


@pytest.mark.django_db
def test_a_registry_takes_its_associations_along(registries: None, system: Actor) -> None:
    ensure_registry(name="short", by=system)
    associate(registry="short", resource=topic("t"), specs=[asked(text=PLAIN)], by=system, create=True)
    with pytest.raises(NoActiveVersion):
        associate(registry="dev", resource=topic("t"), specs=[asked("orders")], by=system, create=False)
    delete_registry(name="short", by=system)
    assert not Association.objects.exists()
    assert not Registry.objects.filter(name="short").exists()


@pytest.mark.django_db
def test_looking_up_costs_one_query(
    register: Callable[..., Any], dev: Registry, system: Actor, django_assert_num_queries: Any
) -> None:
    register("orders", PLAIN)
    for number in range(5):
        associate(registry="dev", resource=topic(f"t{number}"), specs=[asked("orders")], by=system, create=True)
    with django_assert_num_queries(1):
        assert len(associations_of_subject(dev, ORDERS)) == 5
