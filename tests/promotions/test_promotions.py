"""From a request to a release, and everything that must stop it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from registry.access.roles import Actor
from registry.audit.models import AuditEvent
from registry.errors import IncompatibleSchema, InvalidInput, NotAllowed, OperationNotPermitted, PlanChanged, WrongState
from registry.promotions import selectors, services
from registry.promotions.models import Release
from registry.subjects.selectors import get_version, list_versions
from registry.subjects.services import register_version, set_config, set_mode
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName
from tests.promotions.factories import ORDERS, V1, approve_shown, ask, register

pytestmark = pytest.mark.requirement("CARD-4")


def test_requested_by_one_approved_by_another_then_live(cast: dict[str, Actor]) -> None:
    register(V1, cast["steward"])
    number = ask(cast)
    shown = selectors.get_request(number)
    assert shown.can_run
    assert services.approve(request_id=number, by=cast["approver"], plan_hash=shown.plan_hash) == "approved"
    assert services.apply(request_id=number, by=cast["approver"]) == "applied"
    live = get_version(get_registry("prod"), ORDERS, "latest")
    assert json.loads(live.schema.text) == V1
    assert live.schema.fingerprint == get_version(get_registry("dev"), ORDERS, 1).schema.fingerprint
    release = Release.objects.get()
    assert (release.version_number, release.schema_id) == (1, 1)
    written = AuditEvent.objects.filter(table="promotions_release").get()
    assert (written.actor, written.operation) == ("approver", "INSERT")


def test_nobody_reviews_their_own(cast: dict[str, Actor]) -> None:
    register(V1, cast["steward"])
    number = ask(cast, by="approver")
    with pytest.raises(NotAllowed, match="nother person"):
        approve_shown(request_id=number, by=cast["approver"])
    assert approve_shown(request_id=number, by=cast["approver2"]) == "approved"


def test_where_people_sign_in_through_an_issuer_a_password_approves_nothing(
    cast: dict[str, Actor], settings: Any
) -> None:
    register(V1, cast["steward"])
    number = ask(cast)
    settings.OIDC_ISSUER, settings.OIDC_NAME = "https://id.example", "Example"
    by_password = replace(cast["approver"], signed_in_by="password")
    with pytest.raises(NotAllowed, match="sign in with Example"):
        approve_shown(request_id=number, by=by_password)
    assert approve_shown(request_id=number, by=replace(cast["approver2"], signed_in_by="oidc")) == "approved"


@pytest.mark.parametrize("who", ["reader", "steward", "stranger"])
def test_whoever_lacks_the_role_is_refused(cast: dict[str, Actor], who: str) -> None:
    register(V1, cast["steward"])
    number = ask(cast, by="admin")
    for act in (approve_shown, services.apply):
        with pytest.raises(NotAllowed):
            act(request_id=number, by=cast[who])
    assert selectors.get_request(number).state == "in review"


def test_what_moves_at_the_target_voids_the_approval(cast: dict[str, Actor]) -> None:
    register(V1, cast["steward"])
    number = ask(cast, target="staging")
    approve_shown(request_id=number, by=cast["approver"])
    register({**V1, "fields": [{"name": "id", "type": "int"}]}, cast["steward"], registry="staging")
    with pytest.raises(PlanChanged):
        services.apply(request_id=number, by=cast["approver"])
    shown = selectors.get_request(number)
    assert shown.state == "in review"
    assert not shown.reviews[0].counts
    assert list_versions(get_registry("staging"), ORDERS) == [1]


def test_a_changed_level_voids_it_too_and_a_failing_check_cannot_be_approved(cast: dict[str, Actor]) -> None:
    register(V1, cast["steward"])
    set_config(registry="dev", subject=ORDERS, level="NONE", by=cast["steward"])
    register({**V1, "fields": [{"name": "id", "type": "string"}]}, cast["steward"])
    register(V1, cast["steward"], registry="staging")
    number = ask(cast, version=2, target="staging")
    assert not selectors.get_request(number).can_run
    with pytest.raises(WrongState, match="BACKWARD"):
        approve_shown(request_id=number, by=cast["approver"])
    set_config(registry="staging", subject=ORDERS, level="NONE", by=cast["steward"])
    with pytest.raises(PlanChanged):
        approve_shown(request_id=number, by=cast["approver"])
    with pytest.raises(InvalidInput, match="breaking change"):
        approve_shown(request_id=number, by=cast["approver"])
    assert approve_shown(request_id=number, by=cast["approver"], comment="no data yet") == "approved"


def test_an_earlier_plan_on_the_screen_is_not_approved(cast: dict[str, Actor]) -> None:
    register(V1, cast["steward"])
    number = ask(cast)
    with pytest.raises(PlanChanged, match="plan has changed since"):
        services.approve(request_id=number, by=cast["approver"], plan_hash="0" * 64)


def test_two_clicks_have_one_effect(cast: dict[str, Actor]) -> None:
    register(V1, cast["steward"])
    number = ask(cast)
    with pytest.raises(WrongState, match="already open"):
        ask(cast)
    approve_shown(request_id=number, by=cast["approver"])
    with pytest.raises(WrongState):
        approve_shown(request_id=number, by=cast["approver"])
    services.apply(request_id=number, by=cast["approver"])
    with pytest.raises(WrongState):
        services.apply(request_id=number, by=cast["approver"])
    assert Release.objects.count() == 1


def test_reject_needs_a_reason_and_ends_it(cast: dict[str, Actor]) -> None:
    register(V1, cast["steward"])
    number = ask(cast)
    with pytest.raises(InvalidInput):
        services.reject(request_id=number, by=cast["approver"], comment=" ")
    assert services.reject(request_id=number, by=cast["approver"], comment="no doc") == "rejected"
    with pytest.raises(WrongState):
        approve_shown(request_id=number, by=cast["approver2"])
    assert ask(cast) != number, "a rejected request must not block the next"


def test_withdraw_is_the_requesters(cast: dict[str, Actor]) -> None:
    register(V1, cast["steward"])
    number = ask(cast)
    with pytest.raises(NotAllowed):
        services.withdraw(request_id=number, by=cast["approver"])
    services.withdraw(request_id=number, by=cast["steward"])
    assert selectors.get_request(number).state == "withdrawn"


def test_nothing_to_do_and_the_wrong_order(cast: dict[str, Actor]) -> None:
    register(V1, cast["steward"])
    register(V1, cast["steward"], registry="staging")
    with pytest.raises(WrongState, match="already has orders-value version 1"):
        ask(cast, target="staging")
    with pytest.raises(InvalidInput, match="order"):
        services.request_promotion(source="staging", target="dev", subject=ORDERS, version=1, by=cast["steward"])


def test_references_go_first(cast: dict[str, Actor]) -> None:
    from registry.formats.base import Reference

    address = {"type": "record", "name": "Address", "fields": [{"name": "city", "type": "string"}]}
    customer = {"type": "record", "name": "Customer", "fields": [{"name": "home", "type": "Address"}]}
    register(V1, cast["steward"], subject=SubjectName(".", "address"))
    set_config(registry="dev", subject=SubjectName(".", "address"), level="NONE", by=cast["steward"])
    register(address, cast["steward"], subject=SubjectName(".", "address"))
    register(
        customer, cast["steward"], subject=SubjectName(".", "customer"), references=[Reference("Address", "address", 2)]
    )
    number = services.request_promotion(
        source="dev", target="prod", subject=SubjectName(".", "customer"), version=1, by=cast["steward"]
    )
    approve_shown(request_id=number, by=cast["approver"])
    services.apply(request_id=number, by=cast["approver"])
    live = get_version(get_registry("prod"), SubjectName(".", "customer"), 1)
    assert live.schema.references == (Reference("Address", "address", 1),)


@pytest.mark.requirement("GOO-7")
def test_a_closed_registry_takes_releases_only_and_an_override_stops_those(cast: dict[str, Actor]) -> None:
    register(V1, cast["steward"])
    with pytest.raises(OperationNotPermitted):
        register(V1, cast["admin"], registry="prod")
    number = ask(cast)
    services.open_break_glass(environment="prod", by=cast["admin"], reason="all must stop")
    set_mode(registry="prod", subject=None, mode="READONLY_OVERRIDE", by=cast["admin"])
    with pytest.raises(PlanChanged):
        approve_shown(request_id=number, by=cast["approver"])
    with pytest.raises(WrongState, match="READONLY_OVERRIDE"):
        approve_shown(request_id=number, by=cast["approver"])


def test_a_normalized_version_is_promoted_as_it_is_stored(cast: dict[str, Actor]) -> None:
    untidy = {
        "fields": [{"type": "long", "name": "id", "doc": "d"}],
        "name": "Order",
        "type": "record",
        "aliases": ["B", "A"],
    }
    register(untidy, cast["steward"], normalize=True)
    stored = get_version(get_registry("dev"), ORDERS, 1).schema
    assert json.loads(stored.text)["aliases"] == ["A", "B"]
    number = ask(cast)
    approve_shown(request_id=number, by=cast["approver"])
    services.apply(request_id=number, by=cast["approver"])
    live = get_version(get_registry("prod"), ORDERS, 1).schema
    assert (live.text, live.fingerprint) == (stored.text, stored.fingerprint)


def test_what_was_submitted_travels_along(cast: dict[str, Actor]) -> None:
    text = json.dumps(V1, indent=4).replace('"fields"', '// the fields\n "fields"')
    register_version(registry="dev", subject=ORDERS, text=text, by=cast["steward"])
    number = ask(cast)
    approve_shown(request_id=number, by=cast["approver"])
    services.apply(request_id=number, by=cast["approver"])
    assert get_version(get_registry("prod"), ORDERS, 1).submitted == text


@pytest.mark.requirement("ORA-1")
def test_a_forced_version_needs_the_right_and_leaves_a_trace(cast: dict[str, Actor]) -> None:
    register(V1, cast["steward"])
    broken = {**V1, "fields": [{"name": "id", "type": "string"}]}
    with pytest.raises(IncompatibleSchema):
        register(broken, cast["admin"])
    with pytest.raises(NotAllowed, match="break the level"):
        register(broken, cast["steward"], force="the topic is new")
    register(broken, cast["admin"], force="the topic is new")
    assert list_versions(get_registry("dev"), ORDERS) == [1, 2]
    trace = AuditEvent.objects.filter(table="subjects_schemaversion").first()
    assert trace is not None
    assert (trace.actor, trace.why) == ("admin", "register a version of orders-value in dev, forced: the topic is new")
