"""Versions that came without a request: found, shown, adopted; and the life of every version."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from registry.access.models import RoleGrant
from registry.access.roles import Actor
from registry.access.selectors import actor_of_user
from registry.errors import InvalidInput, NotAllowed, VersionNotFound, WrongState
from registry.promotions import selectors, services
from registry.promotions.models import Environment, Release
from registry.promotions.services import ensure_environment
from registry.subjects.import_export.registry_import import import_snapshot
from registry.subjects.import_export.snapshot import contents_of
from registry.subjects.models import Registry, SchemaVersion
from registry.subjects.policy import change_guard
from registry.subjects.policy.registries import ensure_registry
from registry.subjects.services import delete_version, register_version, set_mode, set_version_status
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName
from registry.subjects.versions.versions import list_version_statuses
from tests.promotions.factories import Cast, approve_shown

ORDERS = SubjectName(".", "orders-value")

pytestmark = pytest.mark.requirement("ORA-1")


def text(*fields: str) -> str:
    columns = [{"name": name, "type": "long", "default": 0} for name in fields]
    return json.dumps({"type": "record", "name": "Order", "fields": columns})


def register(by: Actor, *fields: str, registry: str = "staging", subject: SubjectName = ORDERS, **more: Any) -> int:
    return register_version(registry=registry, subject=subject, text=text(*fields), by=by, **more).version


def found(by: Actor, **asked: Any) -> list[tuple[str, str, int]]:
    return [
        (version.environment, version.subject.qualified, version.version)
        for version in selectors.unapproved_versions_of(by=by, **asked)
    ]


def promote(cast: Cast, version: int, *, source: str = "dev", target: str = "staging") -> int:
    number = services.request_promotion(
        source=source, target=target, subject=ORDERS, version=version, by=cast["steward"], reason="needed"
    )
    approve_shown(request_id=number, by=cast["approver"])
    services.apply(request_id=number, by=cast["approver"])
    return number


def test_what_came_by_a_request_is_none_and_what_came_beside_it_is_one(cast: Cast) -> None:
    register(cast["steward"], "a", registry="dev")
    promote(cast, 1)
    assert found(cast["reader"]) == []
    register(cast["steward"], "a", "b")
    assert found(cast["reader"]) == [("staging", "orders-value", 2)]
    [version] = selectors.unapproved_versions_of(by=cast["reader"])
    assert (version.registered_by, version.channel, version.request, version.status) == ("steward", "ui", None, None)
    delete_version(registry="staging", subject=ORDERS, version=2, by=cast["steward"])
    assert found(cast["reader"]) == []


def test_the_first_environment_has_none_unless_it_is_closed(cast: Cast, system: Actor) -> None:
    register(cast["steward"], "a", registry="dev")
    assert found(cast["reader"]) == []
    assert change_guard.unrequested(get_registry("dev")) is None
    Environment.objects.filter(registry__name="dev").update(is_closed=True)
    assert found(cast["reader"]) == [("dev", "orders-value", 1)]


def test_a_registry_that_is_no_environment_has_none(cast: Cast, system: Actor) -> None:
    ensure_registry(name="lab", by=system)
    register(system, "a", registry="lab")
    assert change_guard.unrequested(get_registry("lab")) is None
    assert found(cast["reader"]) == []


def test_what_was_there_before_the_environment_was_made_is_taken_as_it_is(cast: Cast, system: Actor) -> None:
    ensure_registry(name="lab", by=system)
    register(system, "a", registry="lab")
    ensure_environment(registry_id=get_registry("lab").pk, position=9, by=system)
    register(system, "a", "b", registry="lab")
    assert found(cast["reader"]) == [("lab", "orders-value", 2)]


def test_what_an_import_brought_is_none(cast: Cast, system: Actor) -> None:
    register(system, "a", registry="dev")
    import_snapshot(registry="staging", snapshot=contents_of(get_registry("dev")), by=system)
    set_mode(registry="staging", subject=None, mode="IMPORT", force=True, by=system)
    register(system, "z", subject=SubjectName(".", "by-import"), schema_id=77, version=3)
    assert found(cast["reader"]) == []


def test_at_a_mirror_time_decides(cast: Cast, system: Actor) -> None:
    """A mirror imports everything; what it had when it was connected is as it is, what comes later needs a request."""
    register(system, "a")
    register(system, "a", "b")
    Registry.objects.filter(name="staging").update(kind=Registry.REMOTE, url="https://r.example")
    SchemaVersion.objects.update(imported=True)
    assert found(cast["reader"]) == []
    SchemaVersion.objects.filter(version=2).update(created_at=timezone.now() + timedelta(days=2))
    assert found(cast["reader"]) == [("staging", "orders-value", 2)]


def test_a_release_of_another_text_under_that_number_explains_nothing(cast: Cast) -> None:
    register(cast["steward"], "a", registry="dev")
    promote(cast, 1)
    Release.objects.update(fingerprint="0" * 64)
    assert found(cast["reader"]) == [("staging", "orders-value", 1)]


def test_pages_filters_and_rights(cast: Cast, person: Callable[[str], Actor]) -> None:
    for number in range(5):
        register(cast["steward"], "a", subject=SubjectName(".", f"s{number}"))
    register(cast["admin"], "a", subject=SubjectName(".team", "s0"))
    first = selectors.unapproved_versions_of(by=cast["reader"], limit=4)
    rest = selectors.unapproved_versions_of(by=cast["reader"], limit=4, before=first[-1].id)
    assert [version.subject.qualified for version in (*first, *rest)] == [":.team:s0", "s4", "s3", "s2", "s1", "s0"]
    assert found(cast["reader"], environment="prod") == []
    assert found(cast["reader"], subject=SubjectName(".", "s3")) == [("staging", "s3", 1)]
    assert found(cast["stranger"]) == []
    RoleGrant.objects.filter(user=cast["reader"].user_id).update(registry="staging", subject_pattern="s0")
    RoleGrant.objects.create(user_id=cast["reader"].user_id, role="reader", registry="staging", subject_pattern="s1")
    from registry.access.models import User

    limited = actor_of_user(User.objects.get(pk=cast["reader"].user_id), channel="ui")
    assert found(limited) == [("staging", "s1", 1), ("staging", "s0", 1)]
    assert found(limited, limit=1) == [("staging", "s1", 1)], "pages are of what may be read, not of what is there"


@pytest.mark.parametrize("count", [1, 7])
def test_however_many_there_are_the_queries_are_five(
    cast: Cast, count: int, django_assert_max_num_queries: Any
) -> None:
    for number in range(count):
        subject = SubjectName(".", f"s{number}")
        register(cast["steward"], "a", subject=subject)
        services.request_adoption(
            environment="staging", subject=subject, version=1, by=cast["steward"], reason="It was urgent."
        )
    with django_assert_max_num_queries(5):
        unapproved = selectors.unapproved_versions_of(by=cast["reader"])
    assert len([version.request for version in unapproved if version.request]) == count
    place = get_registry("staging")
    with django_assert_max_num_queries(6):
        selectors.timelines_of(place, SubjectName(".", "s0"), by=cast["reader"])


def test_an_adopted_unapproved_version_is_none_any_more(cast: Cast) -> None:
    register(cast["steward"], "a")
    number = services.request_adoption(
        environment="staging", subject=ORDERS, version="latest", by=cast["steward"], reason="It was urgent."
    )
    [version] = selectors.unapproved_versions_of(by=cast["reader"])
    assert version.request == number
    with pytest.raises(NotAllowed):
        approve_shown(request_id=number, by=cast["steward"])
    assert approve_shown(request_id=number, by=cast["approver"]) == "approved"
    assert services.apply(request_id=number, by=cast["approver"]) == "applied"
    assert found(cast["reader"]) == []
    release = Release.objects.get()
    assert (release.version_number, release.request_id) == (1, number)
    assert SchemaVersion.objects.filter(subject__context__registry__name="staging").count() == 1


def test_what_cannot_be_adopted(cast: Cast) -> None:
    register(cast["steward"], "a", registry="dev")
    promote(cast, 1)
    place = {"environment": "staging", "subject": ORDERS, "by": cast["steward"], "reason": "It was urgent."}
    with pytest.raises(WrongState, match="is not an unapproved version"):
        services.request_adoption(**place, version=1)
    with pytest.raises(WrongState, match="is not an unapproved version"):
        services.request_adoption(**{**place, "environment": "dev"}, version=1)
    register(cast["steward"], "a", "b")
    with pytest.raises(VersionNotFound):
        services.request_adoption(**place, version=3)
    with pytest.raises(InvalidInput, match="Explain how the version was registered"):
        services.request_adoption(**{**place, "reason": " "}, version=2)
    with pytest.raises(NotAllowed):
        services.request_adoption(**{**place, "by": cast["reader"]}, version=2)
    services.request_adoption(**place, version=2)
    with pytest.raises(WrongState):
        services.request_adoption(**place, version=2)


def test_an_unapproved_version_in_quarantine_stays_one_until_it_is_decided(cast: Cast) -> None:
    register(cast["steward"], "a")
    set_version_status(
        registry="staging", subject=ORDERS, version=1, status="quarantined", message="Who?", by=cast["steward"]
    )
    [version] = selectors.unapproved_versions_of(by=cast["reader"])
    assert version.status is not None
    assert version.status.status == "quarantined"
    number = services.request_adoption(
        environment="staging", subject=ORDERS, version=1, by=cast["steward"], reason="Found whose it is."
    )
    approve_shown(request_id=number, by=cast["approver"])
    services.apply(request_id=number, by=cast["approver"])
    assert found(cast["reader"]) == []
    assert list_version_statuses(get_registry("staging"), subject=ORDERS) == [], "adopted, it is trusted"


def test_the_life_of_versions(cast: Cast) -> None:
    steward = cast["steward"]
    for fields in (["a"], ["a", "b"], ["a", "b", "c"]):
        register(steward, *fields, registry="dev")
    first = promote(cast, 1)
    register(steward, "a", "x")
    ask = {"source": "dev", "target": "staging", "subject": ORDERS, "by": steward, "reason": "needed"}
    second = services.request_promotion(**ask, version=2)
    third = services.request_promotion(**ask, version=3, draft=True)
    set_version_status(registry="dev", subject=ORDERS, version=1, status="retired", message="Over.", by=steward)
    delete_version(registry="dev", subject=ORDERS, version=1, by=steward)
    dev, staging = get_registry("dev"), get_registry("staging")
    assert [(life.version, life.states) for life in selectors.timelines_of(dev, ORDERS, by=steward)] == [
        (3, (f"draft (request {third} to staging)",)),
        (2, (f"in review (request {second} to staging)",)),
        (1, (f"released to staging (request {first})", "retired", "soft-deleted")),
    ]
    assert selectors.timelines_of(dev, ORDERS, by=cast["approver"])[0].states == (), "a draft is its requester's alone"
    there = {life.version: life.states for life in selectors.timelines_of(staging, ORDERS, by=steward)}
    assert there == {2: ("unapproved",), 1: (f"released to staging (request {first})",)}


def test_programs_read_unapproved_versions_and_timelines_and_ask_for_adoption(
    cast: Cast, api: Callable[[str], Client]
) -> None:
    register(cast["steward"], "a", subject=SubjectName(".", "a/b"))
    [version] = api("reader").get("/api/v1/unapproved-versions?environment=staging").json()
    assert (version["subject"], version["version"], version["registered_by"]) == ("a/b", 1, "steward")
    assert api("reader").get(f"/api/v1/unapproved-versions?before={version['id']}").json() == []
    assert api("reader").get("/api/v1/unapproved-versions?environment=none").status_code == 404
    assert api("reader").get("/api/v1/unapproved-versions?envirnoment=prod").status_code == 422
    assert api("stranger").get("/api/v1/unapproved-versions").status_code == 403
    [life] = api("reader").get("/api/v1/registries/staging/subjects/a%2Fb/timeline").json()
    assert (life["is_unapproved"], life["states"]) == (True, ["unapproved"])
    body = {"environment": "staging", "subject": "a/b", "version": "1", "reason": "It was urgent."}
    refused = api("reader").post("/api/v1/unapproved-versions/adoptions", body, content_type="application/json")
    assert refused.status_code == 403
    asked = api("steward").post("/api/v1/unapproved-versions/adoptions", body, content_type="application/json")
    assert asked.status_code == 201
    [again] = api("reader").get("/api/v1/unapproved-versions").json()
    assert again["request"] == asked.json()["request"]
