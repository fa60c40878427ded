"""Applying at a registry of ours: all of it or nothing, once, as it was approved, and what stops it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from registry.access.roles import Actor
from registry.audit.models import AuditEvent
from registry.errors import (
    IncompatibleSchema,
    NotAllowed,
    NotSignedIn,
    OperationNotPermitted,
    PlanChanged,
    RequestNotFound,
    WrongState,
)
from registry.formats.base import Reference
from registry.promotions import services
from registry.promotions.apply import local
from registry.promotions.models import ApplyStep, FreezeWindow, PromotionRequest, Release
from registry.subjects.models import Mode, Registry, SchemaVersion
from registry.subjects.selectors import get_version, list_versions, own_config
from registry.subjects.services import register_version, set_config, set_mode
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName
from tests.promotions.factories import approve_shown

Cast = Callable[[str], Actor]
ADDRESS, CUSTOMER = SubjectName(".", "shop.Address"), SubjectName(".", "customers-value")
A1 = {"type": "record", "name": "Address", "namespace": "shop", "fields": [{"name": "city", "type": "string"}]}
C1 = {
    "type": "record",
    "name": "Customer",
    "namespace": "shop",
    "fields": [{"name": "id", "type": "long"}, {"name": "home", "type": "shop.Address"}],
}
REFERENCES = (Reference("shop.Address", ADDRESS.subject, 1),)
pytestmark = pytest.mark.requirement("CARD-4")


@pytest.fixture
def cast(person: Cast) -> dict[str, Actor]:
    return {name: person(name) for name in ("reader", "steward", "approver", "approver2", "admin", "stranger")}


@pytest.fixture
def approved(cast: dict[str, Actor]) -> int:
    """A request for prod with three steps: an address, a customer that refers to it, the customer's config."""
    register_version(registry="dev", subject=ADDRESS, text=json.dumps(A1), by=cast["steward"])
    register_version(registry="dev", subject=CUSTOMER, text=json.dumps(C1), by=cast["steward"], references=REFERENCES)
    set_config(registry="dev", subject=CUSTOMER, level="FULL", by=cast["steward"])
    number = services.request_promotion(
        source="dev", target="prod", subject=CUSTOMER, by=cast["steward"], with_config=True, reason="go live"
    )
    assert approve_shown(request_id=number, by=cast["approver"]) == "approved"
    return number


def written() -> tuple[int, int, int, bool]:
    """Versions in prod, steps, releases, and whether prod's customers have a config of their own."""
    prod = Registry.objects.get(name="prod")
    versions = SchemaVersion.objects.filter(subject__context__registry=prod).count()
    has_config = AuditEvent.objects.filter(table="subjects_config", after__registry_id=prod.pk).exists()
    return versions, ApplyStep.objects.count(), Release.objects.count(), has_config


NOTHING = (0, 0, 0, False)


def request(number: int) -> PromotionRequest:
    return PromotionRequest.objects.get(pk=number)


def test_all_steps_and_a_release_for_every_version(cast: dict[str, Actor], approved: int) -> None:
    assert services.apply(request_id=approved, by=cast["approver2"]) == "applied"
    prod = get_registry("prod")
    customer = get_version(prod, CUSTOMER, 1)
    assert customer.schema.references == REFERENCES
    assert own_config(prod, CUSTOMER).level == "FULL"
    rows = Release.objects.order_by("pk")
    assert [(row.subject_name, row.version_number, row.version.schema.schema_id) for row in rows] == [
        (ADDRESS.subject, 1, 1),
        (CUSTOMER.subject, 1, 2),
    ]
    assert [row.fingerprint for row in rows] == [
        get_version(prod, name, 1).schema.fingerprint for name in (ADDRESS, CUSTOMER)
    ]
    steps = ApplyStep.objects.order_by("position")
    assert [(step.state, step.version_number, step.schema_id) for step in steps] == [
        ("done", 1, 1),
        ("done", 1, 2),
        ("done", None, None),
    ]
    row = request(approved)
    assert (row.state, row.applied_by.username, row.failure) == ("applied", "approver2", "")
    assert row.closed_at is not None


def test_every_step_is_in_the_audit_with_who_and_why(cast: dict[str, Actor], approved: int) -> None:
    services.apply(request_id=approved, by=cast["approver2"])
    events = AuditEvent.objects.filter(table="promotions_applystep").order_by("pk")
    assert [(event.actor, event.channel, event.why) for event in events] == [
        ("approver2", "ui", f"apply request {approved}, step 1: register shop.Address version 1"),
        ("approver2", "ui", f"apply request {approved}, step 2: register customers-value version 1"),
        ("approver2", "ui", f"apply request {approved}, step 3: config of customers-value"),
    ]
    live = SchemaVersion.objects.filter(subject__context__registry__name="prod").values_list("pk", flat=True)
    versions = AuditEvent.objects.filter(table="subjects_schemaversion", row_id__in=[str(pk) for pk in live])
    assert [event.actor for event in versions] == ["approver2", "approver2"]
    released = AuditEvent.objects.filter(table="promotions_release")
    assert {(event.actor, event.why) for event in released} == {("approver2", f"apply request {approved}")}


@pytest.mark.parametrize("position", [0, 1, 2])
@pytest.mark.parametrize("unforeseen", [False, True])
def test_a_failing_step_leaves_nothing_but_its_reason(
    cast: dict[str, Actor], approved: int, monkeypatch: pytest.MonkeyPatch, position: int, unforeseen: bool
) -> None:
    kinds = ["register", "register", "config"]
    done: list[str] = []
    run = dict(local.RUN)

    def failing(row: PromotionRequest, step: Any, by: Actor, force: str) -> Any:
        found = run[step.kind](row, step, by, force)  # it fails after it has written
        done.append(step.kind)
        if len(done) == position + 1:
            raise ZeroDivisionError if unforeseen else OperationNotPermitted("the mode was changed")
        return found

    monkeypatch.setattr(local, "RUN", dict.fromkeys(run, failing))
    with pytest.raises(ZeroDivisionError if unforeseen else OperationNotPermitted):
        services.apply(request_id=approved, by=cast["approver"])
    assert done == kinds[: position + 1]
    assert written() == NOTHING
    row = request(approved)
    assert row.state == "approved"
    expected = "ZeroDivisionError" if unforeseen else f"Step {position + 1} of 3 ("
    assert expected in row.failure
    monkeypatch.setattr(local, "RUN", run)
    assert services.apply(request_id=approved, by=cast["approver"]) == "applied"
    assert written() == (2, 3, 2, True)
    assert request(approved).failure == ""


def test_what_is_read_back_has_to_be_what_was_approved(
    cast: dict[str, Actor], approved: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other(**call: Any) -> Any:
        return register_version(**{**call, "text": call["text"].replace("city", "town")})

    monkeypatch.setattr(local, "register_version", other)
    with pytest.raises(PlanChanged, match="is not the approved schema"):
        services.apply(request_id=approved, by=cast["approver"])
    assert written() == NOTHING


def test_a_double_click_applies_once(cast: dict[str, Actor], approved: int) -> None:
    assert services.apply(request_id=approved, by=cast["approver"]) == "applied"
    with pytest.raises(WrongState, match="is applied"):
        services.apply(request_id=approved, by=cast["approver"])
    assert written() == (2, 3, 2, True)


@pytest.mark.parametrize(
    ("who", "error"), [("reader", NotAllowed), ("steward", NotAllowed), ("stranger", NotAllowed | RequestNotFound)]
)
def test_whoever_may_not_apply_is_refused(cast: dict[str, Actor], approved: int, who: str, error: Any) -> None:
    errors = error.__args__ if hasattr(error, "__args__") else (error,)
    for service in (services.apply, services.resume, services.give_up):
        with pytest.raises((*errors, NotSignedIn) if service is services.apply else (*errors, NotSignedIn, WrongState)):
            service(request_id=approved, by=cast[who])
    assert written() == NOTHING


@pytest.mark.parametrize("service", [services.resume, services.give_up])
def test_only_one_that_failed_on_the_way_is_resumed_or_given_up(
    cast: dict[str, Actor], approved: int, service: Callable[..., str]
) -> None:
    with pytest.raises(WrongState, match="must be failed"):
        service(request_id=approved, by=cast["approver"])


def test_a_freeze_stops_it_and_an_override_passes_that(cast: dict[str, Actor], approved: int) -> None:
    row, now = request(approved), timezone.now()
    frozen = FreezeWindow.objects.create(
        environment=row.target,
        starts_at=now - timedelta(hours=1),
        ends_at=now + timedelta(hours=1),
        reason="year-end",
        made_by_id=cast["admin"].user_id,
    )
    with pytest.raises(WrongState, match="year-end"):
        services.apply(request_id=approved, by=cast["approver"])
    assert written() == NOTHING
    assert request(approved).state == "approved"
    number = other_request(cast)
    approve_shown(request_id=number, by=cast["approver"], override="the auditors agreed")
    assert services.apply(request_id=number, by=cast["approver"]) == "applied"
    frozen.delete()
    assert services.apply(request_id=approved, by=cast["approver"]) == "applied"


def other_request(cast: dict[str, Actor]) -> int:
    subject = SubjectName(".", "orders-value")
    register_version(registry="dev", subject=subject, text='"string"', by=cast["steward"])
    return services.request_promotion(source="dev", target="prod", subject=subject, by=cast["steward"])


def test_readonly_override_stops_it(cast: dict[str, Actor], approved: int) -> None:
    Mode.objects.filter(registry__name="prod").update(mode="READONLY_OVERRIDE")
    with pytest.raises((WrongState, PlanChanged), match="READONLY_OVERRIDE"):
        services.apply(request_id=approved, by=cast["approver"])
    assert written() == NOTHING


def test_what_moved_since_the_approval_voids_it(cast: dict[str, Actor], approved: int) -> None:
    set_mode(registry="prod", subject=None, mode="READWRITE", by=cast["admin"], release=True)
    register_version(registry="prod", subject=ADDRESS, text=json.dumps(A1), by=cast["admin"], release=True)
    with pytest.raises(PlanChanged):
        services.apply(request_id=approved, by=cast["approver"])
    row = request(approved)
    assert (row.state, bool(row.moved)) == ("in review", True)


def broken_request(cast: dict[str, Actor]) -> tuple[int, SubjectName]:
    """A request for staging that breaks staging's level."""
    subject = SubjectName(".", "orders-value")
    for registry, text in (("staging", '"string"'), ("dev", '"int"')):
        register_version(registry=registry, subject=subject, text=text, by=cast["steward"])
    return services.request_promotion(source="dev", target="staging", subject=subject, by=cast["steward"]), subject


def test_a_break_is_applied_by_the_override_of_somebody_who_may_force(cast: dict[str, Actor]) -> None:
    number, subject = broken_request(cast)
    with pytest.raises(WrongState):
        approve_shown(request_id=number, by=cast["approver"])
    approve_shown(request_id=number, by=cast["admin"], override="no consumer reads it")
    assert services.apply(request_id=number, by=cast["approver"]) == "applied"
    assert list_versions(get_registry("staging"), subject) == [1, 2]


def test_an_override_ends_with_the_right_of_who_gave_it(cast: dict[str, Actor], person: Cast) -> None:
    from registry.access.models import RoleGrant

    number, subject = broken_request(cast)
    approve_shown(request_id=number, by=cast["admin"], override="no consumer reads it")
    RoleGrant.objects.filter(user_id=cast["admin"].user_id).update(role="approver")
    with pytest.raises((NotAllowed, WrongState)):
        services.apply(request_id=number, by=cast["approver"])
    assert list_versions(get_registry("staging"), subject) == [1]


def test_a_direct_registration_still_needs_the_right_to_force(cast: dict[str, Actor]) -> None:
    _, subject = broken_request(cast)
    for more in ({"force": "because"}, {}):
        with pytest.raises((NotAllowed, IncompatibleSchema)):
            register_version(registry="staging", subject=subject, text='"int"', by=cast["steward"], **more)


@pytest.mark.django_db(transaction=True)
def test_two_who_apply_at_once_do_it_once(cast: dict[str, Actor], approved: int) -> None:
    from concurrent.futures import ThreadPoolExecutor

    from django.db import connections

    def click(_: int) -> str:
        try:
            return services.apply(request_id=approved, by=cast["approver"])
        except WrongState:
            return "refused"
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(click, range(2))) == ["applied", "refused"]
    assert written() == (2, 3, 2, True)


def test_ids_and_numbers_come_along_where_the_target_imports(cast: dict[str, Actor], system: Actor) -> None:
    for name in ("before", "orders-value"):
        register_version(
            registry="dev",
            subject=SubjectName(".", name),
            text=f'{{"type":"enum","name":"{name[:6]}","symbols":["A"]}}',
            by=system,
        )
    subject = SubjectName(".", "orders-value")
    set_mode(registry="staging", subject=None, mode="IMPORT", by=system)
    number = services.request_promotion(source="dev", target="staging", subject=subject, by=cast["steward"])
    approve_shown(request_id=number, by=cast["approver"])
    assert services.apply(request_id=number, by=cast["approver"]) == "applied"
    assert get_version(get_registry("staging"), subject, 1).schema.schema_id == 2
    with transaction.atomic():
        assert Release.objects.get(request_id=number).schema_id == 2
