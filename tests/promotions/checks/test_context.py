"""Evidence from data that is too old for an environment: its check is stale, approvals are void, nothing is applied."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from registry import hooks
from registry.errors import PlanChanged, WrongState
from registry.notifications.models import InboxEntry
from registry.promotions import selectors, services
from registry.promotions.apply.execution import apply_due
from registry.promotions.board.readiness import can_promote
from registry.promotions.checks.context import aged, too_old
from registry.promotions.models import PromotionRequest
from registry.promotions.models.environments import EvidenceRule
from registry.promotions.plan.types import PASS, SKIPPED, Check
from registry.promotions.requests.preconditions import applying, approving
from registry.promotions.selectors import RequestInfo
from registry.subjects.usage.evidence import Evidence, EvidenceProvider
from tests.conftest import signed_in
from tests.promotions.factories import ORDERS, V1, V2, Cast, ask, change, register

pytestmark = pytest.mark.requirement("CARD-4")
NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("hours", "required", "seen", "verdict", "said"),
    [
        (0, False, None, PASS, "Fine."),
        (0, False, 1000, PASS, "Fine."),
        (24, False, 24, PASS, "Fine."),
        (24, False, 25, "stale", "prod accepts evidence of up to 1 day. Result then: Fine."),
        (36, False, 40, "stale", "up to 36 hours"),
        (24, False, None, PASS, "Fine."),
        (0, True, None, "fail", "Fine. prod requires evidence from data."),
        (0, True, 1000, PASS, "Fine."),
        (1, True, 2, "stale", "up to 1 hour."),
    ],
)
def test_a_check_is_stale_once_what_it_rests_on_is_too_old(
    hours: int, required: bool, seen: int | None, verdict: str, said: str
) -> None:
    as_of = (NOW - timedelta(hours=seen)).isoformat() if seen is not None else ""
    rule, check = EvidenceRule("prod", hours, required), Check("evidence.data", "messages", PASS, "Fine.", as_of=as_of)
    found = aged(check, rule, NOW)
    assert (found.verdict, found.binding) == (verdict, bool(hours or required))
    assert said in found.sentence
    assert bool(too_old({"checks": [check.to_dict()]}, rule, NOW)) is (verdict == "stale")


def test_a_target_without_versions_needs_no_evidence() -> None:
    check = Check("evidence.data", "messages", SKIPPED, "The target has no version yet.")
    assert aged(check, EvidenceRule("prod", 1, True), NOW, has_versions=False) == check


Seen = Callable[[timedelta | None, str], None]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """Lets the data have been seen so long ago (None: never), with such an answer."""

    def set_(ago: timedelta | None, in_use: str = "no") -> None:
        as_of = timezone.now() - ago if ago is not None else None
        known: Any = in_use if ago is not None else "unknown"

        def provider(_: Any, __: Any, numbers: Any) -> dict[int, list[Evidence]]:
            return {number: [Evidence("data", known, "Nobody wrote it.", as_of=as_of)] for number in numbers}

        monkeypatch.setitem(hooks.version_evidence.hooks, "topic scans", EvidenceProvider("data", provider))

    return set_


HOUR = timedelta(hours=1)


@pytest.fixture
def number(cast: Cast, seen: Seen) -> int:
    """An approved request for prod, which has a version already and takes evidence of a day."""
    seen(HOUR, "no")
    register(V1, cast["steward"])
    first = ask(cast)
    services.approve(request_id=first, by=cast["approver"], plan_hash=selectors.get_request(first).plan_hash)
    services.apply(request_id=first, by=cast["approver"])
    change(max_evidence_hours=24)
    register(V2, cast["steward"])
    made = ask(cast, version=2)
    services.approve(request_id=made, by=cast["approver"], plan_hash=selectors.get_request(made).plan_hash)
    return made


def age(number: int, hours: int) -> RequestInfo:
    """The request once its evidence is so old: what is stored of it is moved back."""
    row = PromotionRequest.objects.get(pk=number)
    for check in row.plan["checks"]:
        if check["as_of"]:
            check["as_of"] = (timezone.now() - timedelta(hours=hours)).isoformat()
    row.save(update_fields=["plan"])
    return selectors.get_request(number)


def test_evidence_ages_at_the_request_without_a_new_plan(cast: Cast, number: int) -> None:
    assert not applying(selectors.get_request(number), cast["approver"])
    info = age(number, 30)
    (against,) = applying(info, cast["approver"])
    assert against.code == "evidence.data"
    assert against.sentence.startswith("A check is out of date: The evidence is too old")
    assert against.cure.startswith("Scan the topic again")
    answer = can_promote(subject=ORDERS, source="dev", target="prod", by=cast["steward"])
    assert (answer.verdict, answer.reasons[0].code) == ("needs approval", "approval")
    assert "The evidence is too old" in answer.reasons[0].sentence


@pytest.mark.parametrize("channel", ["apply", "scheduled"])
def test_evidence_that_is_too_old_voids_the_approvals_and_a_scan_brings_them_back(
    cast: Cast, number: int, seen: Seen, channel: str
) -> None:
    seen(30 * HOUR, "no")
    if channel == "apply":
        with pytest.raises(PlanChanged, match="The evidence is too old"):
            services.apply(request_id=number, by=cast["approver"])
    else:
        services.schedule(request_id=number, by=cast["approver"], at=timezone.now() + HOUR)
        PromotionRequest.objects.filter(pk=number).update(apply_at=timezone.now() - HOUR)
        assert apply_due(request_id=number) == "in review"
    info = selectors.get_request(number)
    assert (info.state, [review.counts for review in info.reviews]) == ("in review", [False])
    assert "The evidence is too old" in info.moved
    assert InboxEntry.objects.filter(user_id=cast["steward"].user_id, notice__event="promotion.voided").exists()
    with pytest.raises(WrongState, match="A check is out of date"):
        services.approve(request_id=number, by=cast["admin"], plan_hash=info.plan_hash)
    assert [item.code for item in approving(info, cast["admin"]) if item.passable] == ["evidence.data"]
    seen(HOUR, "no")
    assert services.recheck(request_id=number, by=cast["steward"]) == "approved"
    assert services.apply(request_id=number, by=cast["approver"]) == "applied"


def test_an_approval_binds_to_what_the_data_said(cast: Cast, number: int, seen: Seen) -> None:
    seen(HOUR, "yes")
    assert services.recheck(request_id=number, by=cast["steward"]) == "approved"  # can read the data in use, too
    seen(None, "unknown")
    assert services.recheck(request_id=number, by=cast["steward"]) == "in review"
    assert "was “Messages use version 1. The new schema can read them.”" in selectors.get_request(number).moved


def test_a_reviewer_may_pass_over_it_with_a_reason(cast: Cast, number: int, seen: Seen) -> None:
    seen(30 * HOUR, "no")
    services.recheck(request_id=number, by=cast["steward"])
    info = selectors.get_request(number)
    services.approve(request_id=number, by=cast["admin"], plan_hash=info.plan_hash, override="the cluster is away")
    assert services.apply(request_id=number, by=cast["approver"]) == "applied"


def test_no_evidence_is_only_said_unless_the_environment_asks_for_it(cast: Cast, number: int, seen: Seen) -> None:
    seen(None, "unknown")
    services.recheck(request_id=number, by=cast["steward"])
    info = selectors.get_request(number)
    assert [check["verdict"] for check in info.checks if check["code"] == "evidence.data"] == ["skipped"]
    assert info.can_run
    services.change_environment(environment="prod", by=cast["admin"], evidence_required=True)
    services.recheck(request_id=number, by=cast["steward"])
    against = approving(selectors.get_request(number), cast["approver"])
    assert [(item.code, item.passable) for item in against] == [("evidence.data", True)]
    assert "prod requires evidence from data" in against[0].sentence


def test_the_page_and_the_api_say_it_with_the_cure(cast: Cast, number: int, api: Callable[[str], Client]) -> None:
    age(number, 30)
    answer = json.loads(api("approver").get(f"/api/v1/promotions/{number}").content)
    assert [item["code"] for item in answer["reasons"]["apply"]] == ["evidence.data"]
    browser = signed_in("approver")
    page = browser.get(f"/ui/promotions/{number}").content.decode()
    assert "The evidence is too old" in page and "Sources" in page and "Stale" in page
    assert "Evidence from data can be at most 1 day old." in page


def test_a_rule_beyond_a_year_is_refused_at_the_page(cast: Cast) -> None:
    browser = signed_in("admin")
    change(is_closed=False)  # what loosens a closed one takes a second person
    sent = {"reviews_needed": "1", "max_evidence_hours": "9000"}
    answer = browser.post("/ui/environments/prod/change", sent)
    assert answer.status_code == 422
    assert "“Maximum age of evidence (hours)” must be a number from 1 to 8760" in answer.content.decode()
    sent["max_evidence_hours"] = "48"
    browser.post("/ui/environments/prod/change", sent)
    assert selectors.environment_info("prod").settings["max_evidence_hours"] == 48
    browser.post("/ui/environments/prod/change", {**sent, "max_evidence_hours": ""})
    assert selectors.environment_info("prod").settings["max_evidence_hours"] == 0
