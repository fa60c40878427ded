"""Lists of requests are of what somebody may read, before they are paged: nothing leaks, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from django.test import Client

from registry.access.models import RoleGrant
from registry.access.roles import READER, Actor, Grant, TokenLimit
from registry.promotions import selectors, services
from registry.promotions.requests.selectors import may_see
from registry.subjects.versions.qualified_names import SubjectName
from tests.conftest import signed_in
from tests.promotions.factories import V1, Cast, ask, register

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-4")]
PLAIN = ("orders-value", "orders%value", "orders_value", "Orders-value", "payments-value")
SUBJECTS = (*(SubjectName(".", name) for name in PLAIN), SubjectName(".eu", "orders-value"))


def reader(*patterns: str, registry: str = "", limit: TokenLimit | None = None) -> Actor:
    """Somebody who reads what the patterns name."""
    grants = tuple(Grant(READER, registry, pattern) for pattern in patterns)
    return Actor(name="somebody", channel="ui", user_id=0, grants=grants, limit=limit)


READERS = {
    "all": reader("*"),
    "one": reader("orders-value"),
    "wild": reader("orders*"),
    "signs": reader("orders%*", "*_value"),
    "one sign": reader("?rders-value"),
    "brackets": reader("[!p]rders-*"),
    "two patterns": reader("orders-*", "payments-*"),
    "context": reader(":.eu:*"),
    "staging": reader("*", registry="staging"),
    "in staging": reader("orders-*", registry="staging"),
    "nowhere": reader("none-*"),
    "nobody": reader(),
    "token": reader("*", limit=TokenLimit("read", subject_pattern="payments-*")),
    "token of a registry": reader("orders*", limit=TokenLimit("read", registry="prod", subject_pattern="*-value")),
    "token that reads nothing": reader("*", limit=TokenLimit("unheard of")),
    "in the past": replace(reader("orders-*"), past="It is the past."),
}


@pytest.fixture
def asked(cast: Cast) -> list[int]:
    """A request for each subject at each target, one of two subjects, and a draft; newest first."""
    for subject in SUBJECTS:
        register(V1, cast["steward"], subject=subject)
    numbers = [ask(cast, subject=subject, target=target) for subject in SUBJECTS for target in ("staging", "prod")]
    two = [(SubjectName(".", name), 1) for name in ("both-value", "payments-both")]
    for subject, _ in two:
        register(V1, cast["steward"], subject=subject)
    numbers.append(services.request_promotion(source="dev", target="prod", items=two, by=cast["steward"]))
    ask(cast, subject=SubjectName(".", "both-value"), target="staging", draft=True)
    return numbers[::-1]


def test_a_list_is_of_what_may_be_read_and_pages_lose_nothing(asked: list[int]) -> None:
    for name, by in READERS.items():  # in one test: asking for so many takes longer than all that is read
        seen = [info.id for info in selectors.list_requests() if may_see(by, info)]
        assert [info.id for info in selectors.list_requests(by=by)] == seen, name
        paged: list[int] = []
        while page := selectors.list_requests(by=by, limit=2, after=paged[-1] if paged else None):
            assert len(page) == 2 or len(paged) + 1 == len(seen), name
            paged += [info.id for info in page]
        assert paged == seen, name


def test_readers_differ(asked: list[int]) -> None:
    """What the cases rest on: some see all, some a part, some nothing."""
    counts = {name: len(selectors.list_requests(by=by)) for name, by in READERS.items()}
    assert counts["all"] == len(asked)
    assert (counts["one"], counts["wild"], counts["context"], counts["in staging"]) == (2, 6, 2, 1)
    assert counts["nowhere"] == counts["nobody"] == counts["token that reads nothing"] == 0


@pytest.fixture
def narrow(cast: Cast, asked: list[int]) -> Client:
    """The browser of somebody who may read the oldest subject alone."""
    RoleGrant.objects.filter(user__username="reader").update(subject_pattern="orders-value")
    return signed_in("reader")


def test_the_page_reaches_what_may_be_read_below_newer_ones(
    narrow: Client, asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.promotions.request_list.PAGE_ROWS", 1)
    found: list[int] = []
    address = "/ui/promotions"
    while address:
        page = narrow.get(address).context["page"]
        found += [row.info.id for row in page.rows]
        address = page.paging.next_url
    assert found == asked[-2:]
    past_them = narrow.get(f"/ui/promotions?before={asked[-1]}").content.decode()
    assert "No older requests" in past_them and 'href="/ui/promotions"' in past_them
    RoleGrant.objects.filter(user__username="reader").update(subject_pattern="none-*")
    nothing = narrow.get("/ui/promotions").content.decode()
    assert "No requests are visible to you" in nothing and "requests yet" not in nothing


@pytest.mark.parametrize("query", ["", "?limit=2", "?target=prod", "?subject=payments-value", "?state=open&subject=both-value"])  # fmt: skip
def test_the_api_answers_with_what_may_be_read(
    cast: Cast, api: Callable[[str], Client], asked: list[int], query: str
) -> None:
    client = api("reader")
    RoleGrant.objects.filter(user__username="reader").update(subject_pattern="orders-value")
    answer = client.get(f"/api/v1/promotions{query}")
    assert answer.status_code == 200
    seen = {"": asked[-2:], "?limit=2": asked[-2:], "?target=prod": asked[-2:-1]}.get(query, [])
    assert [request["id"] for request in answer.json()] == seen
