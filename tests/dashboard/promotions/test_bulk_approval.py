"""Several approvals with one confirmation: what can be chosen, what each approval is bound to, what is left out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from registry.access.models import RoleGrant
from registry.access.roles import Actor
from registry.errors import InvalidInput, NotSignedIn
from registry.promotions import selectors, services
from registry.promotions.models import PromotionRequest, Review
from registry.promotions.reviews.decisions import MOST_TOGETHER, why_alone
from registry.subjects.versions.qualified_names import SubjectName
from tests.markup import compact
from tests.promotions.factories import BROKEN, V1, V2, Cast, approve_shown, ask, change, register, state_of

pytestmark = pytest.mark.requirement("ORA-1", "CARD-4")
QUERIES = json.loads((Path(__file__).parents[1] / "query_counts.json").read_text())
ADDRESS = "/ui/promotions/approve"
CHECK = {"code": "mode", "name": "mode", "verdict": "pass", "sentence": "It may."}
Browser = Callable[[str], Client]


@pytest.fixture
def cast(person: Callable[[str], Actor]) -> Cast:
    """Everybody who takes part, by name."""
    return {name: person(name) for name in ("reader", "steward", "approver", "approver2", "admin", "stranger")}


def subject(number: int) -> SubjectName:
    return SubjectName(".", f"s{number}-value")


@pytest.fixture
def make(cast: Cast) -> Callable[[int], list[int]]:
    """Safe requests, each of a subject of its own."""
    made: list[int] = []

    def requests(count: int) -> list[int]:
        for _ in range(count):
            name = subject(len(made))
            register(V1, cast["steward"], subject=name)
            made.append(ask(cast, subject=name, target="staging"))
        return made[-count:]

    return requests


@pytest.fixture
def breaking(cast: Cast) -> int:
    """A request that breaks staging."""
    register(V1, cast["steward"])
    register(V1, cast["steward"], registry="staging")
    register(BROKEN, cast["admin"], force="tests")
    return ask(cast, version=2, target="staging")


def plans(*numbers: int) -> list[str]:
    """As the confirmation sends them."""
    return [f"{number}:{PromotionRequest.objects.get(pk=number).plan_hash}" for number in numbers]


def text_of(answer: Any) -> str:
    assert answer.status_code == 200, answer.status_code
    return str(answer.content.decode())


def boxes(text: str) -> dict[int, bool]:
    """Number of a request → whether it can be chosen."""
    found = re.findall(
        r'<input type="checkbox" name="request" value="(\d+)" form="together"( disabled)?>', compact(text)
    )
    return {int(number): not disabled for number, disabled in found}


def test_what_waits_for_one_is_chosen_and_listed_and_approved(
    look: Browser, cast: Cast, make: Callable[[int], list[int]]
) -> None:
    first, second, third = make(3)
    client = look("approver")
    listed = text_of(client.get("/ui/promotions?who=waiting"))
    assert boxes(listed) == {first: True, second: True, third: True}
    assert f'<form id="together" method="get" action="{ADDRESS}">' in compact(listed)
    assert boxes(text_of(client.get("/ui/promotions"))) == {}, "nobody chooses among what isn't theirs to decide"

    page = text_of(client.get(f"{ADDRESS}?request={first}&request={third}"))
    for number in (first, third):
        assert f'<input type="hidden" name="plan" value="{plans(number)[0]}">' in page
        assert f"plan <code>{plans(number)[0].partition(':')[2][:12]}</code>" in page
    assert "Approve 2 requests" in page and f'value="{second}:' not in page
    assert Review.objects.count() == 0, "looking at it approves nothing"

    said = text_of(client.post(ADDRESS, {"plan": plans(first, third)}, follow=True))
    assert f"Approved and ready to apply: #{first}, #{third}." in said
    assert [state_of(number) for number in (first, second, third)] == ["approved", "in review", "approved"]
    assert {review.plan_hash for review in Review.objects.all()} == {
        text.partition(":")[2] for text in plans(first, third)
    }


def test_unfolded_rows_show_their_changes_without_ids(
    look: Browser, cast: Cast, make: Callable[[int], list[int]]
) -> None:
    """Several rows are open at once, so an id or an anchor of one would be there twice."""
    (first,) = make(1)
    register(V2, cast["steward"], subject=subject(0))
    register(V1, cast["steward"], registry="staging", subject=subject(0))
    changed = ask(cast, subject=subject(0), version=2, target="staging")
    client = look("approver")
    page = text_of(client.get(f"{ADDRESS}?request={first}&request={changed}"))
    for number, words in ((first, "Order.id"), (changed, "Order.note")):
        assert f'id="changes-{number}"' in page
        row = {"HX-Request": "true", "HX-Target": f"changes-{number}"}
        text = text_of(client.get(f"/ui/promotions/{number}", headers=row))
        assert words in text and f"/ui/promotions/{number}#changes" in text
        assert " id=" not in text and 'href="#' not in text and "<html" not in text


def test_an_unfolded_row_of_a_set_names_the_other_subjects(look: Browser, cast: Cast) -> None:
    register(V1, cast["steward"], subject=subject(0))
    register(V1, cast["steward"], subject=subject(1))
    number = ask(cast, subject=subject(0), items=[(subject(1), 1)], target="staging")
    row = {"HX-Request": "true", "HX-Target": f"changes-{number}"}
    text = text_of(look("approver").get(f"/ui/promotions/{number}", headers=row))
    assert "The request also changes:" in text and f"/ui/promotions/{number}?item=s1-value#changes" in text


def test_pressed_twice_it_has_one_effect(look: Browser, cast: Cast, make: Callable[[int], list[int]]) -> None:
    change("staging", reviews_needed=2)
    numbers = make(2)
    sent, client = {"plan": plans(*numbers)}, look("approver")
    assert "More approvals are needed" in text_of(client.post(ADDRESS, sent, follow=True))
    again = text_of(client.post(ADDRESS, sent, follow=True))
    for number in numbers:
        assert f"#{number} is left out: approver has already reviewed this plan." in again
        assert state_of(number) == "in review"
    assert Review.objects.count() == 2
    assert "ready to apply" in text_of(look("approver2").post(ADDRESS, sent, follow=True))
    assert {state_of(number) for number in numbers} == {"approved"}


def test_what_breaks_cannot_be_chosen_and_is_refused_all_the_same(
    look: Browser, cast: Cast, make: Callable[[int], list[int]], breaking: int
) -> None:
    (safe,) = make(1)
    client = look("admin")
    listed = text_of(client.get("/ui/promotions?who=waiting"))
    assert boxes(listed) == {safe: True, breaking: False}
    assert "It is a breaking change, so its approval needs a comment. Review it separately." in listed
    page = text_of(client.get(f"{ADDRESS}?request={safe}&request={breaking}"))
    assert "Left out" in page and "Approve 1 request" in page and f'value="{breaking}:' not in page
    said = text_of(client.post(ADDRESS, {"plan": plans(breaking, safe)}, follow=True))
    assert f"#{breaking} is left out: It is a breaking change" in said
    assert (state_of(breaking), state_of(safe)) == ("in review", "approved")


def test_what_moved_since_it_was_read_is_left_out_and_the_others_are_approved(
    look: Browser, cast: Cast, make: Callable[[int], list[int]]
) -> None:
    moved, safe = make(2)
    sent = {"plan": plans(moved, safe)}
    register({**V1, "doc": "came meanwhile"}, cast["steward"], registry="staging", subject=subject(0))
    said = text_of(look("approver").post(ADDRESS, sent, follow=True))
    assert f"#{moved} is left out: The plan has changed." in said
    assert (state_of(moved), state_of(safe)) == ("in review", "approved")
    assert not Review.objects.filter(request_id=moved).exists()
    other = f"{moved}:{'0' * 64}"
    assert "The plan has changed since you read it" in text_of(
        look("approver").post(ADDRESS, {"plan": [other]}, follow=True)
    )


def test_what_came_to_break_since_is_left_out(look: Browser, cast: Cast, make: Callable[[int], list[int]]) -> None:
    number, safe = make(2)
    register(BROKEN, cast["steward"], registry="staging", subject=subject(0))
    services.recheck(request_id=number, by=cast["steward"])
    said = text_of(look("approver").post(ADDRESS, {"plan": plans(number, safe)}, follow=True))
    assert f"#{number} is left out: It is a breaking change" in said
    assert (state_of(number), state_of(safe)) == ("in review", "approved")


def test_what_one_may_not_approve_is_left_out(look: Browser, cast: Cast, make: Callable[[int], list[int]]) -> None:
    (number,) = make(1)
    own = ask(cast, by="approver", subject=subject(0), target="prod")
    client = look("approver")
    page = text_of(client.get(f"{ADDRESS}?request={own}&request={number}"))
    assert "You requested this, so another person must review it." in page
    said = text_of(client.post(ADDRESS, {"plan": plans(own, number)}, follow=True))
    assert f"#{own} is left out: approver requested this, so another person must review it." in said
    assert (state_of(own), state_of(number)) == ("in review", "approved")
    for name in ("reader", "steward"):
        sent = {"plan": plans(own)}
        assert f"#{own} is left out: " in text_of(look(name).post(ADDRESS, sent, follow=True)), name
    assert state_of(own) == "in review"


def test_what_one_may_not_read_looks_like_what_is_not_there(
    look: Browser, cast: Cast, make: Callable[[int], list[int]], person: Callable[[str], Actor]
) -> None:
    (number,) = make(1)
    person("steward2")
    client = look("approver2")  # which gives the role, before it is narrowed
    RoleGrant.objects.filter(user__username="approver2").update(subject_pattern="other-*")
    absent = 999_999_999
    page = text_of(client.get(f"{ADDRESS}?request={number}&request={absent}"))
    assert page.count("Request not found.") == 2
    assert subject(0).subject not in page
    said = text_of(client.post(ADDRESS, {"plan": [*plans(number), f"{absent}:{'0' * 64}"]}, follow=True))
    for each in (number, absent):
        assert f"#{each} is left out: Promotion request {each} not found." in said
    assert state_of(number) == "in review"


@pytest.mark.parametrize("sent", [[], [""], [":"], ["x:y"], ["-1:a"], ["1" * 40 + ":a"], ["\u0661:a"], ["<script>"]])
def test_what_names_no_request_is_said(look: Browser, cast: Cast, sent: list[str]) -> None:
    assert "Select requests first." in text_of(look("approver").post(ADDRESS, {"plan": sent}, follow=True))
    text = text_of(look("approver").get(ADDRESS, {"request": [each.partition(":")[0] for each in sent]}))
    assert "No requests selected" in text


def test_a_plan_has_to_be_named_and_not_too_many(
    look: Browser, cast: Cast, make: Callable[[int], list[int]], system: Actor
) -> None:
    (number,) = make(1)
    said = text_of(look("approver").post(ADDRESS, {"plan": [f"{number}:"]}, follow=True))
    assert f"#{number} is left out: Send the plan_hash of the plan that you read" in said
    assert state_of(number) == "in review"
    many = [(each, "x") for each in range(1, MOST_TOGETHER + 2)]
    with pytest.raises(InvalidInput, match="51 requests are too many at once"):
        services.approve_together(plans=many, by=cast["approver"])
    with pytest.raises(NotSignedIn):
        services.approve_together(plans=[(number, "x")], by=system)


def test_one_whose_plan_is_damaged_blanks_nothing(look: Browser, cast: Cast, make: Callable[[int], list[int]]) -> None:
    broken, safe = make(2)
    sent = plans(broken, safe)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE promotions_promotionrequest SET plan = '[]' WHERE id = %s", [broken])
    client = look("approver")
    assert boxes(text_of(client.get("/ui/promotions?who=waiting"))) == {broken: False, safe: True}
    page = text_of(client.get(f"{ADDRESS}?request={broken}&request={safe}"))
    assert "plan can&#x27;t be read" in page and f'value="{safe}:' in page
    text_of(client.post(ADDRESS, {"plan": sent}, follow=True))
    assert state_of(safe) == "approved"


def test_more_requests_take_no_more_queries(
    look: Browser, cast: Cast, make: Callable[[int], list[int]], breaking: int
) -> None:
    client = look("approver")

    def count(numbers: list[int]) -> int:
        asked = "&".join(f"request={number}" for number in numbers)
        with CaptureQueriesContext(
            connection,
        ) as queries:
            text_of(client.get(f"{ADDRESS}?{asked}"))
        return len(queries)

    few = make(1)
    once = count([*few, breaking])
    assert once <= QUERIES["approve together"]
    assert count([*few, *make(6), breaking]) == once


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ({"checks": [CHECK]}, ""),
        ({"checks": [CHECK, {**CHECK, "code": "ids", "verdict": "warn"}]}, ""),
        ({"checks": [CHECK, {**CHECK, "code": "freeze", "verdict": "fail"}]}, ""),
        ({"checks": [CHECK, {**CHECK, "verdict": "skipped"}]}, ""),
        ({"checks": []}, "Its checks were not run"),
        ({"checks": [CHECK], "breaking": True}, "It is a breaking change"),
        ({"checks": [], "unreadable": True}, "can't be read"),
        ({"checks": [{**CHECK, "verdict": "warn"}]}, "A check warns, so it must be reviewed separately: It may."),
        ({"checks": [{**CHECK, "verdict": "stale"}]}, "A check warns"),
        ({"checks": [{**CHECK, "verdict": "warn"}, {**CHECK, "verdict": "fail"}]}, "A check fails"),
        ({"checks": [{"name": "old", "verdict": "fail", "sentence": "No."}]}, "A check fails"),
    ],
)
def test_only_what_leaves_nothing_to_say_is_safe(plan: dict[str, Any], said: str) -> None:
    found = why_alone({"steps": [], **plan})
    assert found.startswith(said) or said in found
    assert bool(found) == bool(said)


def test_the_service_alone_takes_no_safe_approval_of_what_warns(cast: Cast, make: Callable[[int], list[int]]) -> None:
    (number,) = make(1)
    services.open_thread(request_id=number, by=cast["reader"], text="Is that so?")
    services.recheck(request_id=number, by=cast["steward"])
    (found,) = services.approve_together(plans=[(number, selectors.get_request(number).plan_hash)], by=cast["approver"])
    assert found.refused.startswith("A check warns, so it must be reviewed separately: 1 unresolved discussion.")
    assert approve_shown(request_id=number, by=cast["approver"]) == "approved", "by itself it is approved"


def test_a_freeze_counts_as_long_as_it_lasts(look: Browser, cast: Cast, make: Callable[[int], list[int]]) -> None:
    now = timezone.now()
    freeze = services.add_freeze(
        environment="staging", starts_at=now, ends_at=now + timedelta(days=1), reason="a sale", by=cast["admin"]
    )
    (number,) = make(1)
    client, pages = look("approver"), (f"/ui/promotions/{number}", "/ui/promotions", "/ui/")
    assert all("staging is frozen until" in text_of(client.get(page)) for page in pages)
    services.remove_freeze(freeze_id=freeze, by=cast["admin"])
    assert selectors.get_request(number).can_run
    assert not any("is frozen until" in text_of(client.get(page)) for page in pages), "the checks were not run again"
    services.add_freeze(
        environment="staging", starts_at=now, ends_at=now + timedelta(days=1), reason="a move", by=cast["admin"]
    )
    assert [check["code"] for check in selectors.get_request(number).failing] == ["freeze"]


def test_a_frozen_target_stops_no_approval_and_is_reported(
    look: Browser, cast: Cast, make: Callable[[int], list[int]]
) -> None:
    (number,) = make(1)
    now = timezone.now()
    services.add_freeze(
        environment="staging", starts_at=now, ends_at=now + timedelta(days=1), reason="a sale", by=cast["admin"]
    )
    services.recheck(request_id=number, by=cast["steward"])
    page = text_of(look("approver").get(f"{ADDRESS}?request={number}"))
    assert "staging is frozen until" in page and "Compatible" in page and "Incompatible" not in page
    listed = text_of(look("approver").get("/ui/promotions"))
    assert "<span>Frozen</span>" in listed and "Incompatible" not in listed, "the badge names what fails"
    text_of(look("approver").post(ADDRESS, {"plan": plans(number)}, follow=True))
    assert state_of(number) == "approved"
