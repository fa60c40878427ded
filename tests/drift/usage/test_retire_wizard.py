"""Retiring step by step: what each step takes, what it refuses, what can be taken back, and what nothing needs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from registry.access.roles import Actor, Grant
from registry.audit.models import AuditEvent
from registry.drift.models import Source
from registry.drift.usage.unused_subjects import find_unused_subjects
from registry.errors import (
    InvalidInput,
    InvalidReference,
    NotAllowed,
    ReferenceExists,
    ReleaseRequired,
    SchemadeskError,
    SubjectNotFound,
    SubjectNotSoftDeleted,
    SubjectSoftDeleted,
    VersionInUse,
    VersionNotFound,
)
from registry.formats.base import Reference
from registry.subjects.lifecycle.retirement import retire
from registry.subjects.models import Registry, SchemaVersion, VersionStatus
from registry.subjects.selectors import list_versions
from registry.subjects.services import delete_subject, delete_version, register_version
from registry.subjects.versions.qualified_names import SubjectName
from tests.drift.usage.test_version_usage import SUBJECT, dev, ids, source, text, topic, use
from tests.markup import compact

__all__ = ["dev", "ids", "source"]
pytestmark = pytest.mark.requirement("ORA-1", "GOO-7")
WHY = "nobody has data of it"
PAID = SubjectName(".", "paid-value")
REFERRING = '{"type": "record", "name": "Paid", "fields": [{"name": "order", "type": "Order"}]}'
QUERIES = json.loads((Path(__file__).parents[2] / "dashboard" / "query_counts.json").read_text())


def do(choice: str, by: Actor, **more: Any) -> tuple[int, ...]:
    named = {"confirmed": SUBJECT.qualified} if choice in ("soft", "hard") else {}
    return retire(registry="dev", subject=SUBJECT, choice=choice, by=by, **named | more).versions


def states() -> dict[int, str]:
    rows = SchemaVersion.objects.filter(subject__name=SUBJECT.subject, subject__context__registry__name="dev")
    return {row.version: "deleted" if row.deleted_at else "live" for row in rows}


def test_one_version_step_by_step(ids: list[int], system: Actor) -> None:
    until = timezone.now() + timedelta(days=30)
    assert do("deprecate", system, version=1, message="use 3", ends_at=until) == (1,)
    status = VersionStatus.objects.get()
    assert (status.version.version, status.status, status.ends_at) == (1, "deprecated", until)
    done = retire(registry="dev", subject=SUBJECT, choice="soft", version=1, confirmed="orders-value", by=system)
    assert (done.versions, done.schema_ids) == ((1,), (ids[0],))
    assert states() == {1: "deleted", 2: "live", 3: "live"}
    assert do("restore", system, version=1) == (1,)
    assert states() == {1: "live", 2: "live", 3: "live"}
    event = AuditEvent.objects.filter(table="subjects_schemaversion").latest("id")
    assert event.why == "restore orders-value in dev"
    do("soft", system, version=1)
    assert do("hard", system, version=1, force=WHY) == (1,)
    assert states() == {2: "live", 3: "live"}


def test_a_whole_subject_step_by_step(ids: list[int], system: Actor) -> None:
    do("soft", system, version=2)
    assert do("deprecate", system, message="use payments-value") == (1, 3), "what is deleted isn't used any more"
    assert do("soft", system) == (1, 3)
    assert do("restore", system) == (1, 2, 3)
    do("soft", system)
    assert do("hard", system, force=WHY) == (1, 2, 3)
    with pytest.raises(SubjectNotFound):
        do("restore", system)


REFUSED: dict[str, tuple[dict[str, Any], type[SchemadeskError], str]] = {
    "no such choice": ({"choice": "burn"}, InvalidInput, "is not an action"),
    "nothing typed": ({"choice": "soft", "confirmed": ""}, InvalidInput, "type the name of the subject"),
    "another name": ({"choice": "soft", "confirmed": "orders"}, InvalidInput, "orders-value"),
    "another case": ({"choice": "hard", "confirmed": "Orders-Value"}, InvalidInput, "orders-value"),
    "hard before soft": ({"choice": "hard", "force": WHY}, SubjectNotSoftDeleted, "not deleted first"),
    "no such version": ({"choice": "soft", "version": 9}, VersionNotFound, "Version 9"),
    "nothing to restore": ({"choice": "restore"}, InvalidInput, "no versions are deleted"),
    "no message": ({"choice": "deprecate"}, InvalidInput, "Give a reason"),
    "an end that is over": (
        {"choice": "deprecate", "message": "x", "ends_at": timezone.now() - timedelta(days=1)}, InvalidInput, "past"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_changes_nothing(ids: list[int], system: Actor, case: str) -> None:
    values, error, message = REFUSED[case]
    with pytest.raises(error, match=message):
        do(by=system, **values)
    assert states() == {1: "live", 2: "live", 3: "live"}
    assert not VersionStatus.objects.exists()


def test_each_step_takes_its_right(ids: list[int], system: Actor, person: Callable[[str], Actor]) -> None:
    for name in ("reader", "approver"):
        for choice in ("deprecate", "soft", "hard", "restore"):
            with pytest.raises(NotAllowed):
                do(choice, person(name), message="x", force=WHY)
    do("soft", person("steward"))
    with pytest.raises(NotAllowed, match="permanently"):
        do("hard", person("steward"), force=WHY)
    with pytest.raises(SubjectSoftDeleted):
        do("soft", person("steward"))
    assert do("restore", person("steward")) == (1, 2, 3)
    limited = replace(person("steward"), grants=(Grant("steward", "", "customers-*"),))
    with pytest.raises(NotAllowed):
        do("soft", limited)


def test_what_is_used_or_not_known_goes_for_a_reason_alone(
    source: Source, ids: list[int], system: Actor, person: Callable[[str], Actor]
) -> None:
    do("soft", system)
    with pytest.raises(VersionInUse, match="may be in use") as refused:
        do("hard", system)
    assert refused.value.details["versions"] == [1, 2, 3]
    carried = topic(source)
    use(carried, ids[1], days=0)
    with pytest.raises(VersionInUse, match="is in use: "):
        do("hard", system)
    assert states() == dict.fromkeys((1, 2, 3), "deleted")
    only_deletes = replace(system, grants=(), user_id=person("admin").user_id)
    with pytest.raises(NotAllowed):
        do("hard", only_deletes, force=WHY)
    assert do("hard", system, force=WHY) == (1, 2, 3)
    assert WHY in AuditEvent.objects.filter(table="subjects_schemaversion").latest("id").why


def test_what_is_known_to_be_unused_goes_without_a_reason(source: Source, ids: list[int], system: Actor) -> None:
    topic(source)
    do("soft", system, version=1)
    assert do("hard", system, version=1) == (1,)


def test_what_others_refer_to_stays(ids: list[int], system: Actor) -> None:
    register_version(
        registry="dev", subject=PAID, text=REFERRING, by=system, references=[Reference("Order", "orders-value", 2)]
    )
    with pytest.raises(ReferenceExists):
        do("soft", system)
    delete_subject(registry="dev", subject=PAID, by=system)
    do("soft", system)
    with pytest.raises(InvalidReference, match="version 2 of orders-value, which is deleted"):
        retire(registry="dev", subject=PAID, choice="restore", by=system)
    do("restore", system, version=2)
    assert retire(registry="dev", subject=PAID, choice="restore", by=system).versions == (1,)


def test_what_came_since_is_held_against_what_is_restored(ids: list[int], system: Actor) -> None:
    do("soft", system)
    other = '{"type": "record", "name": "Order", "fields": [{"name": "a", "type": "long"}]}'
    register_version(registry="dev", subject=SUBJECT, text=other, by=system)
    with pytest.raises(InvalidInput, match=r"version 4 would not be compatible under BACKWARD with version 3: "):
        do("restore", system, version=3)
    assert states() == {1: "deleted", 2: "deleted", 3: "deleted", 4: "live"}
    assert do("restore", system, version=3, force="it is needed") == (3,)
    assert "forced: it is needed" in AuditEvent.objects.filter(table="subjects_schemaversion").latest("id").why


def test_what_was_registered_again_is_not_restored_beside_it(ids: list[int], system: Actor) -> None:
    """A soft-deleted version of the same schema stays where something refers to it, even if that is deleted too."""
    register_version(
        registry="dev", subject=PAID, text=REFERRING, by=system, references=[Reference("Order", "orders-value", 3)]
    )
    delete_subject(registry="dev", subject=PAID, by=system)
    do("soft", system, version=3)
    register_version(registry="dev", subject=SUBJECT, text=text("a", "b", "c"), by=system)
    with pytest.raises(InvalidInput, match="has the same schema as version 4"):
        do("restore", system, version=3)
    assert states()[3] == "deleted"


def test_a_closed_environment_takes_break_glass(registries: None, system: Actor) -> None:
    register_version(registry="prod", subject=SUBJECT, text=text("a"), by=system, release=True)
    for choice in ("deprecate", "soft"):
        with pytest.raises(ReleaseRequired):
            retire(registry="prod", subject=SUBJECT, choice=choice, confirmed="orders-value", message="x", by=system)
    assert list_versions(Registry.objects.get(name="prod"), SUBJECT) == [1]


# -- subjects that nothing needs ----------------------------------------------------------------------------------------


def named(by: Actor, **more: Any) -> list[str]:
    return [row.subject.qualified for row in find_unused_subjects(Registry.objects.get(name="dev"), by=by, **more).rows]


def test_what_nothing_needs(source: Source, ids: list[int], system: Actor) -> None:
    assert find_unused_subjects(source.registry, by=system).topics == 0
    assert named(system) == [], "without topics nothing is known"
    orders = topic(source)
    names = ("old-value", "seen-value", "typed", "found", "referred", "gone", ":.sales:orders-value")
    made = {}
    for number, name in enumerate(names):
        subject = SubjectName(".sales", "orders-value") if name.startswith(":") else SubjectName(".", name)
        fields = f'{{"type": "record", "name": "R{number}", "fields": []}}'
        made[name] = register_version(registry="dev", subject=subject, text=fields, by=system)
    use(orders, made["seen-value"].schema_id)
    use(orders, "application/vnd.acme.typed.v1", framing="content_type")
    topic(source, "found-elsewhere", subjects={"value": ["found"]}, read_at=None)
    register_version(
        registry="dev", subject=SubjectName(".", "old-referrer"), by=system,
        text='{"type": "record", "name": "Q", "fields": [{"name": "r", "type": "R4"}]}',
        references=[Reference("R4", "referred", 1)],
    )  # fmt: skip
    delete_subject(registry="dev", subject=SubjectName(".", "gone"), by=system)
    unused = find_unused_subjects(source.registry, by=system)
    assert [row.subject.qualified for row in unused.rows] == ["old-referrer", "old-value", ":.sales:orders-value"]
    assert (unused.total, unused.topics, unused.read, unused.after) == (3, 2, 1, "")
    first = find_unused_subjects(source.registry, by=system, limit=2)
    assert (first.after, named(system, limit=2, after=first.after)) == ("old-value", [":.sales:orders-value"])
    part = replace(system, grants=(Grant("reader", "dev", "old-v*"),))
    assert named(part) == ["old-value"]
    with pytest.raises(NotAllowed):
        named(replace(system, grants=(), user_id=1))


def test_the_number_of_queries_is_the_same_for_many(source: Source, ids: list[int], system: Actor) -> None:
    topic(source)

    def queries() -> int:
        with CaptureQueriesContext(connection) as caught:
            find_unused_subjects(source.registry, by=system)
        return len(caught)

    few = queries()
    for number in range(8):
        topic(source, f"t{number}")
        register_version(registry="dev", subject=SubjectName(".", f"s{number}"), text='"int"', by=system)
    assert queries() == few == 3


# -- pages --------------------------------------------------------------------------------------------------------------

BASE = "/ui/registries/dev/subjects/orders-value/retire"


def seen(response: Any, status: int = 200) -> str:
    assert response.status_code == status
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", response.content.decode()))


def test_the_three_steps_on_pages(
    source: Source, ids: list[int], look: Callable[[str], Client], django_assert_max_num_queries: Any
) -> None:
    use(topic(source), ids[0], days=2)
    client = look("admin")
    with django_assert_max_num_queries(QUERIES["retire"]):
        page = seen(client.get(BASE, {"version": "1"}))
    assert (
        "Retire orders-value : version 1" in page and "100 messages seen" in page and "No schema refers to it" in page
    )
    with django_assert_max_num_queries(QUERIES["retire"]):
        page = seen(client.get(f"{BASE}/choose", {"version": "1"}))
    assert "Soft-delete version 1 first." in page and "Restore" not in page
    assert f"Messages with schema id {ids[0]} become unreadable until it is restored: 100 were seen by scans" in page
    address = f"{BASE}/confirm?version=1&do=soft"
    assert "Type orders-value to confirm" in seen(client.get(address))
    confirming = compact(client.get(address).content.decode())
    assert 'name="subject" value="orders-value"' in confirming, "a copy is offered before"
    assert "type the name of the subject" in seen(client.post(address, {"confirmed": "order"}), 422).replace(
        "&#x27;", "'"
    )
    assert states()[1] == "live"
    with django_assert_max_num_queries(80):
        response = client.post(address, {"confirmed": "orders-value"})
    assert response.status_code == 302
    page = seen(client.get(response["Location"]))
    assert "Verified: soft-deleted" in page and "Version 1 is soft-deleted." in page and "Restore" in page
    address = f"{BASE}/confirm?version=1&do=hard"
    assert "is in use" in seen(client.post(address, {"confirmed": "orders-value"}), 422)
    response = client.post(address, {"confirmed": "orders-value", "force": WHY})
    page = seen(client.get(response["Location"]))
    assert "Verified: permanently deleted" in page and "Version 1 doesn’t exist." in page
    assert f"Schema id {ids[0]} doesn’t exist: messages with it can’t be read." in page


def test_restoring_is_offered_and_done(ids: list[int], look: Callable[[str], Client]) -> None:
    client = look("steward")
    client.post(f"{BASE}/confirm?do=soft", {"confirmed": "orders-value"})
    page = seen(client.get(f"{BASE}/choose"))
    assert (
        "Soft-deleted versions are restored with their numbers and ids" in page
        and "to delete versions permanently" in page
    )
    response = client.post(f"{BASE}/confirm?do=restore", {"force": ""})
    page = seen(client.get(response["Location"]))
    assert "Verified: restored" in page and "Version 3 exists." in page


def test_a_subject_that_is_gone_is_read_back_too(ids: list[int], look: Callable[[str], Client]) -> None:
    client = look("admin")
    client.post(f"{BASE}/confirm?do=soft", {"confirmed": "orders-value"})
    response = client.post(f"{BASE}/confirm?do=hard", {"confirmed": "orders-value", "force": WHY})
    page = seen(client.get(response["Location"]))
    assert "Verified: permanently deleted" in page and "Version 2 doesn’t exist." in page
    assert client.get(BASE).status_code == 410


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("?version=x", 422),
        ("?version=9", 404),
        ("/confirm?do=burn", 422),
        ("/confirm", 422),
        ("/done", 422),
        ("/done?did=soft&versions=x", 422),
        ("/done?did=hard&versions=9&ids=999999", 200),
    ],
)
def test_addresses_that_make_no_sense(ids: list[int], look: Callable[[str], Client], path: str, status: int) -> None:
    assert look("admin").get(f"{BASE}{path}").status_code == status


def test_a_reader_sees_the_steps_and_why_none_is_theirs(ids: list[int], look: Callable[[str], Client]) -> None:
    client = look("reader")
    page = seen(client.get(f"{BASE}/choose"))
    assert page.count("You need the") == 3
    assert client.post(f"{BASE}/confirm?do=soft", {"confirmed": "orders-value"}).status_code == 403
    assert set(states().values()) == {"live"}


def test_the_list_of_what_nothing_needs(
    source: Source, ids: list[int], system: Actor, look: Callable[[str], Client], django_assert_max_num_queries: Any
) -> None:
    client, address = look("reader"), "/ui/registries/dev/unused-subjects"
    assert "Unknown" in seen(client.get(address))
    topic(source)
    assert "No unused subjects" in seen(client.get(address))
    hostile = SubjectName(".", '<img src=x onerror="alert(1)">')
    register_version(registry="dev", subject=hostile, text='"int"', by=system)
    with django_assert_max_num_queries(QUERIES["unused_subjects"]):
        response = client.get(address)
    assert b"<img" not in response.content and b"/retire" in response.content
    assert "1 topic" in seen(response)


def test_the_api_does_the_same(ids: list[int], source: Source, api: Callable[[str], Client]) -> None:
    address = "/api/v1/registries/dev/subjects/orders-value/retire"

    def post(who: str, **body: Any) -> tuple[int, Any]:
        response = api(who).post(address, json.dumps(body), content_type="application/json")
        return response.status_code, response.json()

    assert post("steward", choice="soft", version=1)[0] == 422
    assert post("reader", choice="soft", version=1, confirmed="orders-value")[0] == 403
    assert post("steward", choice="soft", version=1, confirmed="orders-value") == (
        200,
        {"choice": "soft", "versions": [1], "schema_ids": [ids[0]]},
    )
    assert post("admin", choice="hard", version=1, confirmed="orders-value")[0] == 409
    assert post("steward", choice="restore", version=1)[1]["versions"] == [1]
    topic(source, "other")
    unused = api("reader").get("/api/v1/registries/dev/unused-subjects").json()
    assert [row["subject"] for row in unused["subjects"]] == ["orders-value"]
    assert (unused["topics"], unused["read"]) == (1, 1)


def test_deleting_one_of_two_at_once(ids: list[int], system: Actor) -> None:
    delete_version(registry="dev", subject=SUBJECT, version=2, by=system)
    assert do("soft", system) == (1, 3), "what is deleted already is left as it is"
