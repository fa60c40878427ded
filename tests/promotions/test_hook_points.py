"""A drift finding that becomes a request: each leads to the other, for whoever may read it, through every door."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from registry.access.models import RoleGrant, User
from registry.access.roles import Actor, Grant
from registry.access.selectors import actor_of_user
from registry.audit.models import AuditEvent
from registry.drift.models import Finding, Source
from registry.errors import FindingNotFound
from registry.promotions import selectors, services
from registry.promotions.hook_points import readable_findings
from registry.promotions.models import Draft, PromotionRequest
from registry.promotions.requests.evidence_pack import evidence_of
from registry.promotions.selectors import requests_for_finding
from registry.subjects.versions.qualified_names import SubjectName
from tests.conftest import signed_in
from tests.drift.scans import make_source
from tests.promotions.factories import CUSTOMERS, ORDERS, V1, V2, Cast, approve_shown, register
from tests.promotions.test_api import call

pytestmark = pytest.mark.requirement("CARD-3", "CARD-4")
HOSTILE = '<img src=x onerror="alert(1)"> {{ 7*7 }} \u202eevil'
TEXT = json.dumps(V1)
EDITOR = "/ui/proposals/new"
Api = Callable[[str], Client]


@pytest.fixture
def source() -> Source:
    """Topics of dev."""
    return make_source()


@pytest.fixture
def finding(source: Source) -> Finding:
    """Something seen at orders in dev."""
    now = timezone.now()
    return Finding.objects.create(
        source=source, rule="FIELD_UNDECLARED", severity="risk", sentence=f"Field coupon appears in 10 of 40. {HOSTILE}",
        remedy="Declare it.", location="orders", subject_name="orders-value", evidence={}, first_seen=now, last_seen=now,
        fingerprint="f" * 64,
    )  # fmt: skip


@pytest.fixture
def hidden(finding: Finding) -> Finding:
    """The same of the topic itself: about no subject, so for those alone who read all of dev."""
    Finding.objects.filter(pk=finding.pk).update(subject_name="")
    return Finding.objects.get(pk=finding.pk)


@pytest.fixture
def narrow(cast: Cast) -> Actor:
    """Who may ask for orders everywhere, and in dev read its subjects alone: what was found of these, and nothing else."""
    by = User.objects.get(username="stranger")
    for registry, pattern in (("dev", "orders-*"), ("staging", "*"), ("prod", "*")):
        RoleGrant.objects.create(user=by, role="steward", registry=registry, subject_pattern=pattern)
    return actor_of_user(by, channel="ui")


def propose(by: Actor, target: str = "prod", **more: Any) -> int:
    return services.propose_version(target=target, subject=ORDERS, text=TEXT, by=by, **more)


def seen(answer: Any) -> str:
    """What a person reads of a page."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", answer.content.decode())).split())


def apply(cast: Cast, number: int) -> None:
    approve_shown(request_id=number, by=cast["approver"], comment="fine")
    services.apply(request_id=number, by=cast["approver"])


# ---- the service -----------------------------------------------------------------------------------------------------


def test_a_draft_carries_its_finding_into_the_request(cast: Cast, finding: Finding) -> None:
    by = cast["steward"]
    draft = services.save_draft(registry="prod", subject=ORDERS, text=TEXT, by=by, finding=finding.pk)
    assert [item.id for item in requests_for_finding(finding.pk, by).drafts] == [draft]
    assert requests_for_finding(finding.pk, cast["admin"]).drafts == (), "a draft is its author's alone"
    number = propose(by, draft_id=draft)
    found = requests_for_finding(finding.pk, cast["reader"])
    assert ([item.id for item in found.requests], found.drafts) == ([number], ())
    told = AuditEvent.objects.filter(table="promotions_promotionrequest", row_id=str(number)).latest("id")
    assert (told.operation, (told.after or {})["finding"]) == ("INSERT", finding.pk)


def test_one_that_is_not_there_and_one_that_is_not_theirs_are_refused_alike(
    cast: Cast, narrow: Actor, hidden: Finding
) -> None:
    said = set()
    for number in (hidden.pk, 999_999):
        for ask in (
            lambda number=number: propose(narrow, finding=number),
            lambda number=number: services.save_draft(
                registry="prod", subject=ORDERS, text=TEXT, by=narrow, finding=number
            ),
        ):
            with pytest.raises(FindingNotFound) as refused:
                ask()
            said.add(refused.value.message.replace(str(number), "N"))
    assert said == {"Finding N not found. Leave it out."}
    assert not PromotionRequest.objects.exists() and not Draft.objects.exists()


def test_a_finding_that_is_gone_stops_nobody(cast: Cast, source: Source, finding: Finding) -> None:
    by, number = cast["steward"], finding.pk
    kept = {"registry": "prod", "subject": ORDERS, "by": by, "finding": number}
    draft = services.save_draft(text="{", **kept)  # type: ignore[arg-type]
    source.delete()
    services.save_draft(text=TEXT, **kept)  # type: ignore[arg-type]
    request = propose(by, draft_id=draft, finding=number)
    assert selectors.get_request(request).finding == number
    assert "From the drift finding" not in seen(signed_in("steward").get(f"/ui/promotions/{request}"))


def test_who_reads_a_finding_is_two_queries_and_none_for_nothing(
    cast: Cast, narrow: Actor, finding: Finding, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(0):
        assert readable_findings([None, 0, -1, 2**63], cast["admin"]) == {}
    with django_assert_num_queries(2):  # the findings, and the newest scans of their sources
        assert list(readable_findings([finding.pk, None, 999_999], cast["reader"])) == [finding.pk]
    assert list(readable_findings([finding.pk], narrow)) == [finding.pk], "it is about a subject that they may read"
    Finding.objects.filter(pk=finding.pk).update(subject_name="payments-value")
    assert readable_findings([finding.pk], narrow) == {}
    elsewhere = Actor("x", "ui", 1, (Grant("steward", "prod"),))
    assert readable_findings([finding.pk], elsewhere) == {}


def promote(by: Actor, source: str, target: str, *subjects: SubjectName, **more: Any) -> int:
    return services.request_promotion(
        source=source, target=target, items=[(name, "latest") for name in subjects or (ORDERS,)], by=by, **more
    )


def test_the_finding_goes_along_to_the_last_environment(cast: Cast, finding: Finding) -> None:
    by = cast["steward"]
    numbers = [propose(by, target="dev", finding=finding.pk)]
    for source, target in (("dev", "staging"), ("staging", "prod")):
        apply(cast, numbers[-1])
        numbers.append(promote(by, source, target, draft=target == "prod"))
    assert [selectors.get_request(number).finding for number in numbers] == [finding.pk] * 3
    assert [info.id for info in requests_for_finding(finding.pk, by).requests] == numbers[::-1]
    assert [info.id for info in requests_for_finding(finding.pk, cast["reader"]).requests] == numbers[1::-1], (
        "a draft is its own"
    )


@pytest.mark.parametrize(
    ("answered", "asked", "kept"),
    [
        ({}, (ORDERS,), None),
        ({ORDERS: 0}, (ORDERS, CUSTOMERS), 0),
        ({ORDERS: 0, CUSTOMERS: 0}, (ORDERS, CUSTOMERS), 0),
        ({ORDERS: 0, CUSTOMERS: 1}, (ORDERS, CUSTOMERS), None),
        ({ORDERS: 0}, (CUSTOMERS,), None),
    ],
    ids=["none", "one of two", "the same twice", "one each", "of another subject"],
)
def test_a_set_answers_the_one_finding_behind_it(
    cast: Cast,
    finding: Finding,
    answered: dict[SubjectName, int],
    asked: tuple[SubjectName, ...],
    kept: int | None,
) -> None:
    other = Finding.objects.get(pk=finding.pk)
    other.pk, other.fingerprint = None, "e" * 64
    other.save()
    findings = (finding.pk, other.pk)
    for name in (ORDERS, CUSTOMERS):
        seen_at = findings[answered[name]] if name in answered else None
        apply(
            cast,
            services.propose_version(target="dev", subject=name, text=TEXT, by=cast["steward"], finding=seen_at),
        )
    number = promote(cast["steward"], "dev", "prod", *asked)
    assert selectors.get_request(number).finding == (None if kept is None else findings[kept])


def test_a_later_version_of_the_same_subject_is_not_about_the_finding(cast: Cast, finding: Finding) -> None:
    by = cast["steward"]
    apply(cast, propose(by, target="dev", finding=finding.pk))
    register(V2, by)
    assert selectors.get_request(promote(by, "dev", "prod")).finding is None


def test_whoever_promotes_further_learns_nothing_of_a_finding_that_is_not_theirs(
    cast: Cast, narrow: Actor, api: Api, hidden: Finding
) -> None:
    apply(cast, propose(cast["steward"], target="dev", finding=hidden.pk))
    number = promote(narrow, "dev", "prod")
    assert selectors.get_request(number).finding == hidden.pk
    assert call(api("stranger"), "GET", f"/api/v1/promotions/{number}")[1]["origin"] is None
    assert "From the drift finding" not in seen(signed_in("stranger").get(f"/ui/promotions/{number}"))
    _, shown = call(api("reader"), "GET", f"/api/v1/promotions/{number}")
    assert shown["origin"]["finding"]["id"] == hidden.pk


# ---- pages -----------------------------------------------------------------------------------------------------------


def test_the_editor_keeps_why_and_where_from(cast: Cast, finding: Finding) -> None:
    register(V1, cast["steward"], registry="dev")
    at_desk = signed_in("steward")
    begun = at_desk.get(f"{EDITOR}?from=finding:{finding.pk}")
    assert "From the drift finding Field coupon" in seen(begun)
    assert f'name="finding" value="{finding.pk}"' in begun.content.decode()
    form = {
        "registry": "dev",
        "subject": "orders-value",
        "text": json.dumps(V2),
        "reason": HOSTILE,
        "finding": finding.pk,
    }
    kept = at_desk.post(EDITOR, {**form, "do": "save"})["Location"]
    text = at_desk.get(kept).content.decode()
    assert html.escape(HOSTILE) in text and "<img src=x" not in text
    assert f'name="finding" value="{finding.pk}"' in text and f'href="/ui/findings/{finding.pk}"' in text
    assert "your draft" in seen(at_desk.get(f"/ui/findings/{finding.pk}"))
    assert "your draft" not in seen(signed_in("admin").get(f"/ui/findings/{finding.pk}"))
    draft = kept.rpartition("/")[2]
    made = at_desk.post(EDITOR, {**form, "do": "submit", "draft_id": draft})["Location"]
    assert (PromotionRequest.objects.get().finding, PromotionRequest.objects.get().reason) == (finding.pk, HOSTILE)
    page = signed_in("reader").get(made)
    assert "From the drift finding Field coupon" in seen(page) and "<img src=x" not in page.content.decode()


def test_why_that_is_too_long_is_refused_and_stays_in_the_form(cast: Cast) -> None:
    form = {"registry": "dev", "subject": "orders-value", "text": "{", "reason": "y" * 10_001, "do": "save"}
    answer = signed_in("steward").post(EDITOR, form)
    assert answer.status_code == 422 and "The reason has 10001 characters. The maximum is 10000." in seen(answer)
    assert "y" * 10_001 in answer.content.decode() and not Draft.objects.exists()


@pytest.mark.parametrize(("sent", "kept"), [({}, "as drafted"), ({"reason": ""}, ""), ({"reason": "new"}, "new")])
def test_what_the_form_says_of_why_is_the_requests(cast: Cast, sent: dict[str, str], kept: str) -> None:
    draft = services.save_draft(registry="prod", subject=ORDERS, text=TEXT, by=cast["steward"], reason="as drafted")
    form = {"registry": "prod", "subject": "orders-value", "text": TEXT, "draft_id": str(draft), "do": "submit", **sent}
    assert signed_in("steward").post(EDITOR, form).status_code == 302
    assert PromotionRequest.objects.get().reason == kept


@pytest.mark.parametrize("do", ["save", "submit"])
def test_an_editor_whose_finding_went_can_be_sent_again(cast: Cast, do: str) -> None:
    at_desk = signed_in("steward")
    form = {"registry": "dev", "subject": "orders-value", "text": TEXT, "finding": "999999", "do": do}
    answer = at_desk.post(EDITOR, form)
    assert answer.status_code == 422 and "Finding 999999 not found. Leave it out." in seen(answer)
    assert 'name="finding"' not in answer.content.decode(), "sent again, it goes without"
    assert at_desk.post(EDITOR, {**form, "finding": "'; --"}).status_code == 302


def test_request_and_finding_lead_to_each_other_and_to_the_version(
    cast: Cast, finding: Finding, django_assert_num_queries: Any
) -> None:
    number = propose(cast["steward"], target="dev", finding=finding.pk)
    reader = signed_in("reader")
    shown = reader.get(f"/ui/promotions/{number}").content.decode()
    assert f'href="/ui/findings/{finding.pk}"' in shown
    assert 'href="/ui/findings?subject=orders-value"' in shown, "the check of open drift leads to what is to be decided"
    page = reader.get(f"/ui/findings/{finding.pk}")
    assert f'href="/ui/promotions/{number}"' in page.content.decode()
    assert "Proposals orders-value a proposed text" in seen(page) and "In review" in seen(page)
    apply(cast, number)
    page = reader.get(f"/ui/findings/{finding.pk}")
    assert "Applied" in seen(page) and "orders-value version 1 in dev" in seen(page)
    assert 'href="/ui/registries/dev/subjects/orders-value/?version=1"' in page.content.decode()


def test_the_finding_asks_as_often_for_many_answers(cast: Cast, finding: Finding) -> None:
    reader, counts = signed_in("reader"), []
    reader.get(f"/ui/findings/{finding.pk}")
    for target in ("dev", "staging", "prod"):
        propose(cast["steward"], target=target, finding=finding.pk)
        with CaptureQueriesContext(connection) as asked:
            reader.get(f"/ui/findings/{finding.pk}")
        counts.append(len(asked))
    assert len(set(counts)) == 1, counts


def test_whoever_may_not_read_the_finding_sees_no_trace_of_it(cast: Cast, narrow: Actor, hidden: Finding) -> None:
    number = propose(cast["steward"], finding=hidden.pk)
    page = signed_in("stranger").get(f"/ui/promotions/{number}")
    assert page.status_code == 200
    assert "coupon" not in seen(page) and "From the drift finding" not in seen(page)
    assert f"/ui/findings/{hidden.pk}" not in page.content.decode()
    assert evidence_of(number, narrow)["request"]["origin"] is None
    assert signed_in("stranger").get(f"/ui/findings/{hidden.pk}").status_code == 404


def test_whoever_may_not_read_the_request_sees_no_trace_of_it_at_the_finding(cast: Cast, finding: Finding) -> None:
    by = User.objects.get(username="stranger")
    RoleGrant.objects.create(user=by, role="reader", registry="dev")
    number = propose(cast["steward"], finding=finding.pk)
    page = signed_in("stranger").get(f"/ui/findings/{finding.pk}")
    assert page.status_code == 200 and "Proposals" not in seen(page)
    assert f"/ui/promotions/{number}" not in page.content.decode()


def test_a_subjects_steward_begins_from_what_was_found_of_it(cast: Cast, narrow: Actor, finding: Finding) -> None:
    register(V1, cast["steward"])
    page = signed_in("stranger").get(f"{EDITOR}?from=finding:{finding.pk}").content.decode()
    assert "coupon" in page and f'name="finding" value="{finding.pk}"' in page


# ---- programs --------------------------------------------------------------------------------------------------------


def test_programs_write_and_read_it(cast: Cast, api: Api, finding: Finding) -> None:
    client = api("steward")
    draft = {"registry": "prod", "subject": "orders-value", "schema": TEXT, "reason": HOSTILE, "finding": finding.pk}
    status, kept = call(client, "POST", "/api/v1/drafts", draft)
    assert (status, kept["reason"], kept["finding"]) == (201, HOSTILE, finding.pk)
    assert call(client, "GET", f"/api/v1/drafts/{kept['id']}")[1]["reason"] == HOSTILE
    assert call(client, "GET", f"/api/v1/findings/{finding.pk}")[1]["answers"]["drafts"][0]["id"] == kept["id"]
    body = {"target": "prod", "subject": "orders-value", "schema": TEXT, "draft_id": kept["id"]}
    status, made = call(client, "POST", "/api/v1/proposals", body)
    assert (status, made["reason"]) == (201, HOSTILE)
    told = {"id": finding.pk, "registry": "dev", "sentence": finding.sentence, "severity": "risk", "state": "open"}
    assert made["origin"] == {"finding": told}
    (listed,) = call(api("reader"), "GET", f"/api/v1/promotions?finding={finding.pk}")[1]
    assert (listed["id"], listed["origin"]) == (made["id"], {"finding": told})
    assert (
        call(api("approver"), "GET", f"/api/v1/promotions?waiting=true&finding={finding.pk}")[1][0]["id"] == made["id"]
    )
    _, answered = call(api("reader"), "GET", f"/api/v1/findings/{finding.pk}")
    (answer,) = answered["answers"]["requests"]
    assert (answer["id"], answer["state"], answer["release"]) == (made["id"], "in review", None)
    apply(cast, made["id"])
    (answer,) = call(api("reader"), "GET", f"/api/v1/findings/{finding.pk}")[1]["answers"]["requests"]
    assert (answer["state"], answer["release"]["version"]) == ("applied", 1)
    pack = evidence_of(made["id"], cast["reader"])
    assert pack["request"]["origin"] == {"finding": told}


@pytest.mark.parametrize("path", ["/api/v1/drafts", "/api/v1/proposals"])
@pytest.mark.parametrize(
    ("given", "status", "words"),
    [
        ({"reason": "x" * 10_001}, 422, "reason: Ensure this field has no more than 10000 characters."),
        ({"reason": ["x"]}, 422, "reason: Not a valid string."),
        ({"finding": 0}, 422, "finding: Ensure this value is greater than or equal to 1."),
        ({"finding": 2**63}, 422, "finding: This is 9223372036854775808; it must be at most 2^63-1."),
        ({"finding": "one"}, 422, "finding: This is 'one'; it must be a whole number."),
        ({"finding": 999_999}, 404, "Finding 999999 not found. Leave it out."),
    ],
)
def test_what_programs_may_not_send(
    cast: Cast, api: Api, path: str, given: dict[str, Any], status: int, words: str
) -> None:
    place = "target" if path.endswith("proposals") else "registry"
    body = {place: "prod", "subject": "orders-value", "schema": TEXT, **given}
    code, said = call(api("steward"), "POST", path, body)
    assert code == status and words in json.dumps(said)
    assert not Draft.objects.exists() and not PromotionRequest.objects.exists()


def test_programs_without_the_right_see_no_trace_of_it(cast: Cast, narrow: Actor, api: Api, hidden: Finding) -> None:
    number = propose(cast["steward"], finding=hidden.pk)
    client = api("stranger")
    status, shown = call(client, "GET", f"/api/v1/promotions/{number}")
    assert (status, shown["origin"], "finding" in shown) == (200, None, False)
    listed = call(client, "GET", "/api/v1/promotions?target=prod")[1]
    assert [(item["id"], item["origin"]) for item in listed] == [(number, None)]
    for number in (hidden.pk, 999_999):
        status, said = call(client, "GET", f"/api/v1/promotions?target=prod&finding={number}")
        assert (status, said["message"]) == (404, f"Finding {number} not found. Leave it out.")
