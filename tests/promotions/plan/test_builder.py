"""Plans of what is registered: what they read of both environments, and what stands around them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from registry import hooks
from registry.access.roles import Actor
from registry.drift.findings.promotion_check import drift_facts
from registry.drift.models import Finding, Source
from registry.errors import InvalidInput, SubjectNotFound, VersionNotFound
from registry.formats.base import Reference
from registry.promotions import services
from registry.promotions.models import Environment, FreezeWindow, PromotionRequest, Thread
from registry.promotions.plan.builder import make_plan, spec_of, stale
from registry.promotions.plan.types import Check, ItemText, Plan, PromotionSpec, SpecItem
from registry.subjects.models import Registry, VersionStatus
from registry.subjects.services import register_version, set_config, set_mode
from registry.subjects.usage.evidence import Evidence, EvidenceProvider
from registry.subjects.versions.qualified_names import SubjectName
from tests.promotions.factories import record

pytestmark = [pytest.mark.requirement("CARD-4"), pytest.mark.django_db]

ORDERS, MONEY, ORDER = SubjectName(".", "orders-value"), SubjectName(".", "money"), SubjectName(".sales", "order")
V1, V2 = record(id="long"), record(id="long", note="string?")
AMOUNT = json.dumps({"type": "record", "name": "Money", "fields": [{"name": "cents", "type": "long"}]})
PRICED = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "price", "type": "Money"}]})


def register(text: str, by: Actor, registry: str = "dev", subject: SubjectName = ORDERS, **more: Any) -> int:
    done = register_version(registry=registry, subject=subject, text=text, by=by, release=True, **more)
    return done.version


def environment(name: str) -> Environment:
    return Environment.objects.select_related("registry").get(registry__name=name)


def plan(*items: tuple[SubjectName, int], target: str = "staging", kind: str = "promote", **more: Any) -> Plan:
    source = environment("dev") if kind == "promote" else None
    wished = tuple(SpecItem(subject, version) for subject, version in items)
    return make_plan(PromotionSpec(environment(target), wished, source, kind, **more))


def check(made: Plan, code: str) -> Check | None:
    found = [item for item in made.checks if item.code == code]
    assert len(found) <= 1
    return found[0] if found else None


def test_a_set_goes_with_all_that_it_refers_to_in_one_plan_whatever_the_order(registries: None, system: Actor) -> None:
    register(AMOUNT, system, subject=MONEY)
    register(PRICED, system, subject=ORDER, references=[Reference("Money", ":.:money", 1)])
    register(V1, system)
    register(record(other="int"), system, "staging", MONEY)
    set_config(registry="staging", subject=MONEY, level="NONE", by=system)
    made = plan((ORDER, 1), (ORDERS, 1))
    assert [(step.subject, step.kind, step.target_version, step.asked) for step in made.steps] == [
        ("money", "register", 2, False),
        (":.sales:order", "register", 1, True),
        ("orders-value", "register", 1, True),
    ]
    assert made.steps[1].references == (Reference("Money", ":.:money", 2),), "the name as written, the number of here"
    assert made.hash == plan((ORDERS, 1), (ORDER, 1)).hash
    assert made.breaking, "money breaks BACKWARD, though its level there is NONE"


def test_ids_are_reported_by_context_and_kept_where_they_happen_to_be_the_same(registries: None, system: Actor) -> None:
    register(V1, system)
    register(V2, system)
    assert (plan((ORDERS, 2)).steps[0].expected_id, plan((ORDERS, 2)).steps[0].id_outlook) == (1, "different")
    register(V1, system, "staging")
    assert (plan((ORDERS, 2)).steps[0].expected_id, plan((ORDERS, 2)).steps[0].id_outlook) == (2, "same")
    register(V2, system, "prod", MONEY)
    (step,) = plan((ORDERS, 2), target="prod").steps
    assert (step.expected_id, step.id_outlook) == (1, "different"), "the definition has an id in that context already"


def test_ids_are_given_by_an_import_alone_and_not_over_another_definition(registries: None, system: Actor) -> None:
    for text in (V1, V2):
        register(text, system)
    set_mode(registry="staging", subject=None, mode="IMPORT", by=system, force=True)
    assert [(step.expected_id, step.id_outlook) for step in plan((ORDERS, 2)).steps] == [(2, "given by IMPORT")]
    set_mode(registry="staging", subject=None, mode="READWRITE", by=system)
    register(AMOUNT, system, "staging", MONEY)
    set_mode(registry="staging", subject=ORDERS, mode="IMPORT", by=system, force=True)
    made = plan((ORDERS, 1))
    assert made.steps[0].id_outlook == "unknown"
    assert [item.code for item in made.failing] == ["mode"]


@pytest.mark.parametrize(
    ("subject", "version", "error"),
    [(SubjectName(".", "none"), 1, SubjectNotFound), (ORDERS, 9, VersionNotFound)],
)
def test_what_is_not_there_is_said(
    registries: None, system: Actor, subject: SubjectName, version: int, error: type[Exception]
) -> None:
    register(V1, system)
    with pytest.raises(error, match="dev"):
        plan((subject, version))


def test_nothing_and_one_subject_twice_are_refused(registries: None, system: Actor) -> None:
    register(V1, system)
    with pytest.raises(InvalidInput, match="at least one"):
        plan()
    with pytest.raises(InvalidInput, match="once"):
        plan((ORDERS, 1), (ORDERS, 1))


def test_the_number_of_queries_does_not_grow_with_versions_or_subjects(registries: None, system: Actor) -> None:
    names = [SubjectName(".", f"s{number}") for number in range(6)]
    for name in names:
        register(V1, system, subject=name)
    register(V1, system, "staging", names[0])
    plan((names[0], 1))

    def queries(*items: SubjectName) -> int:
        spec = PromotionSpec(environment("staging"), tuple(SpecItem(name, 1) for name in items), environment("dev"))
        with CaptureQueriesContext(connection) as caught:
            make_plan(spec, thorough=False)
        return len(caught)

    few = queries(names[1])
    assert queries(*names[1:]) == few
    assert few <= 20


def test_a_proposal_whose_reference_went_says_so_and_can_not_be_applied(registries: None, system: Actor) -> None:
    text = ItemText("AVRO", PRICED, (Reference("Money", "money", -1),))
    spec = PromotionSpec(environment("staging"), (SpecItem(ORDERS, 0, text),), kind="propose")
    made = make_plan(spec)
    found = check(made, "references")
    assert found is not None
    assert (found.verdict, found.overridable) == ("fail", False)
    register(AMOUNT, system, "staging", MONEY)
    whole = make_plan(spec)
    assert whole.can_run
    assert whole.steps[0].references == (Reference("Money", "money", 1),), "the version that the latest came to mean"
    assert whole.hash != made.hash


def test_a_roll_back_and_an_adoption_are_of_what_the_target_has(registries: None, system: Actor) -> None:
    register(V1, system, "staging")
    register(V2, system, "staging")
    made = plan((ORDERS, 1), kind="roll back")
    assert [(step.kind, step.target_version) for step in made.steps] == [("repeat", 3)]
    assert json.loads(made.steps[0].text) == json.loads(V1)
    assert not plan((ORDERS, 2), kind="roll back").has_work
    adopted = plan((ORDERS, 2), kind="adopt")
    assert [(step.kind, step.target_version) for step in adopted.steps] == [("adopt", 2)]
    assert adopted.can_run


def test_who_refers_to_the_subject_keeps_its_version_and_what_it_would_meet(registries: None, system: Actor) -> None:
    for place in ("dev", "staging"):
        register(AMOUNT, system, place, MONEY)
    register(PRICED, system, "staging", references=[Reference("Money", "money", 1)])
    set_config(registry="dev", subject=MONEY, level="NONE", by=system)
    set_config(registry="staging", subject=MONEY, level="NONE", by=system)
    register(AMOUNT.replace("cents", "pence"), system, subject=MONEY)
    found = check(plan((MONEY, 2)), "referrers")
    assert found is not None
    assert found.verdict == "warn"
    assert "1 subject refers to version 1." in found.sentence
    assert "orders-value" not in found.sentence, "whoever reads the request may not read what refers to it"
    assert "can't move" in found.sentence


def test_a_freeze_fails_while_it_lasts_and_leaves_the_hash_alone(registries: None, system: Actor, person: Any) -> None:
    register(V1, system)
    before = plan((ORDERS, 1))
    now, maker = timezone.now(), person("admin").user_id
    window = FreezeWindow(
        environment=environment("staging"), reason="Black Friday", made_by_id=maker,
        starts_at=now - timedelta(hours=1), ends_at=now + timedelta(hours=1),
    )  # fmt: skip
    window.save()
    made = plan((ORDERS, 1))
    found = check(made, "freeze")
    assert found is not None
    assert (found.verdict, found.overridable) == ("fail", True)
    assert "Black Friday" in found.sentence
    assert made.hash == before.hash
    window.starts_at, window.ends_at = now - timedelta(hours=2), now - timedelta(hours=1)
    window.save()
    assert check(plan((ORDERS, 1)), "freeze") is None


def finding(registry: str, severity: str, **more: Any) -> Finding:
    place, now = Registry.objects.get(name=registry), timezone.now()
    source, _ = Source.objects.get_or_create(registry=place, kind="registry", name="itself", created_by="tests")
    return Finding.objects.create(
        source=source, fingerprint=f"{Finding.objects.count():064}", rule="r", severity=severity, remedy="Repair it.",
        sentence="Messages don't match.", location="topic orders", subject_name="orders-value", evidence={},
        first_seen=now, last_seen=now, **more,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("severity", "more", "blocks", "verdict"),
    [
        ("break", {}, True, "fail"),
        ("break", {}, False, "warn"),
        ("risk", {}, True, "warn"),
        ("notice", {}, True, None),
        ("break", {"muted": True}, True, None),
        ("break", {"state": "acknowledged", "acknowledged_reason": "known"}, True, None),
        ("break", {"state": "resolved"}, True, None),
    ],
)
def test_open_drift_at_the_target(
    registries: None, system: Actor, severity: str, more: dict[str, Any], blocks: bool, verdict: str | None
) -> None:
    register(V1, system)
    Environment.objects.filter(registry__name="staging").update(drift_blocks=blocks)
    before = plan((ORDERS, 1))
    finding("staging", severity, **more)
    finding("prod", "break")
    made = plan((ORDERS, 1))
    found = check(made, "drift")
    assert (found.verdict if found else None) == verdict
    assert (made.hash != before.hash) is (verdict == "fail")


@pytest.mark.requirement("CARD-4")
@pytest.mark.parametrize("blocks", [True, False])
@pytest.mark.parametrize("decided", [{"muted": True}, {"state": "acknowledged", "acknowledged_reason": "known"}])
def test_a_decided_break_still_blocks_a_closed_environment(
    registries: None, system: Actor, decided: dict[str, Any], blocks: bool
) -> None:
    register(V1, system)
    Environment.objects.filter(registry__name="staging").update(is_closed=True, drift_blocks=blocks)
    before = drift_facts([environment("staging").registry], None)
    finding("staging", "risk", **decided)
    assert check(plan((ORDERS, 1)), "drift") is None
    finding("staging", "break", **decided)
    blocking = check(plan((ORDERS, 1)), "drift")
    assert (blocking is not None) is blocks
    assert (drift_facts([environment("staging").registry], None) != before) is blocks
    if blocking:
        assert (blocking.verdict, blocking.overridable) == ("fail", True)
        assert blocking.sentence == (
            "Acknowledged or muted, which doesn't unblock a closed environment: Messages don't match."
        )
        assert blocking.cure == "Resolve the findings, or have a reviewer override the check with a reason."


@pytest.mark.parametrize(
    ("in_use", "verdict", "said"),
    [("yes", "warn", "can't read them"), ("no", "pass", "Nobody"), ("unknown", "skipped", "Nobody")],
)
def test_data_in_use_is_held_against_what_is_promoted_beyond_the_level(
    registries: None, system: Actor, monkeypatch: pytest.MonkeyPatch, in_use: Any, verdict: str, said: str
) -> None:
    def provider(*_: Any) -> dict[int, list[Evidence]]:
        old, new = datetime(2026, 3, 1, 8, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC)
        return {
            1: [Evidence("data", in_use, "Nobody wrote it.", as_of=new)],
            2: [Evidence("data", "no", "Nobody wrote it.", as_of=old), Evidence("data", "no", "No.")],
        }

    monkeypatch.setitem(hooks.version_evidence.hooks, "topic scans", EvidenceProvider("data", provider))
    for place in ("dev", "staging"):
        register(record(id="long", size="string"), system, place)
        register(record(id="long"), system, place)
    register(record(id="long", size="int?"), system)
    made = plan((ORDERS, 3))
    found = check(made, "evidence.data")
    assert found is not None
    assert (found.verdict, found.subject) == (verdict, "orders-value")
    assert found.as_of == "2026-03-01T08:00:00+00:00"  # the oldest: nothing that is told is newer
    assert said in found.sentence
    assert made.can_run


def request(cast: dict[str, Actor], **more: Any) -> PromotionRequest:
    number = services.request_promotion(
        source="dev", target="staging", subject=ORDERS, version=1, by=cast["steward"], **more
    )
    return fetch(number)


def fetch(number: int) -> PromotionRequest:
    return PromotionRequest.objects.select_related("source__registry", "target__registry").get(pk=number)


@pytest.fixture
def cast(person: Callable[[str], Actor]) -> dict[str, Actor]:
    return {name: person(name) for name in ("steward", "approver", "admin")}


def test_a_stored_request_is_wished_again_as_it_was(cast: dict[str, Actor], system: Actor) -> None:
    register(V1, system)
    row = request(cast)
    assert make_plan(spec_of(row)).hash == row.plan_hash
    assert spec_of(row).items == (SpecItem(ORDERS, 1),)


def test_an_unresolved_discussion_warns_and_moves_nothing(cast: dict[str, Actor], system: Actor) -> None:
    register(V1, system)
    row = request(cast)
    Thread.objects.create(request=row, subject="orders-value", path="id")
    made = make_plan(spec_of(row))
    found = check(made, "threads")
    assert found is not None
    assert found.verdict == "warn"
    assert made.hash == row.plan_hash


MOVEMENTS: dict[str, Callable[[Actor], Any]] = {
    "The level of orders-value was BACKWARD and is FULL in staging.": lambda by: set_config(
        registry="staging", subject=ORDERS, level="FULL", by=by
    ),
    "The mode of orders-value was READWRITE and is READONLY in staging.": lambda by: set_mode(
        registry="staging", subject=None, mode="READONLY", by=by
    ),
    "Version 1 of orders-value was added in staging.": lambda by: register(V2, by, "staging"),
    "Version 1 of orders-value is now retired in dev.": lambda by: VersionStatus.objects.create(
        version_id=PromotionRequest.objects.get().version_id, status="retired", message="old", decided_by="tests"
    ),
}


@pytest.mark.parametrize("said", list(MOVEMENTS))
def test_a_plan_older_than_the_last_movement_says_what_moved(cast: dict[str, Actor], system: Actor, said: str) -> None:
    register(V1, system)
    row = request(cast)
    with CaptureQueriesContext(connection) as caught:
        assert stale(row) == ""
    assert len(caught) <= 6
    MOVEMENTS[said](system)
    assert stale(fetch(row.pk)) == said
    assert make_plan(spec_of(row)).hash != row.plan_hash


def test_what_moves_elsewhere_does_not_make_it_stale(cast: dict[str, Actor], system: Actor) -> None:
    register(V1, system)
    row = request(cast, with_config=True)
    register(AMOUNT, system, "staging", MONEY)
    register(V2, system)
    assert stale(fetch(row.pk)) == ""
    assert make_plan(spec_of(row)).hash == row.plan_hash
    PromotionRequest.objects.filter(pk=row.pk).update(plan={"steps": [], "checks": []})
    assert "earlier release" in stale(fetch(row.pk))
