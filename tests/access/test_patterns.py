"""Patterns of names: what can't be meant is refused, wherever a pattern is stored, on the page and by the API alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from registry.access.models import ApiToken, GroupGrant, Ownership, RoleGrant
from registry.access.name_patterns import checked_pattern, name_pattern, pattern_of
from registry.access.roles import Actor
from registry.access.services import add_owner, grant, grant_to_group, issue_token, make_group
from registry.drift.models import Deployment, Mute
from registry.drift.services.findings import mute
from registry.errors import InvalidInput
from registry.notifications import services
from registry.notifications.models import Subscription, Webhook
from registry.notifications.webhooks import create_webhook
from registry.promotions.environments.services import add_review_rule
from registry.promotions.models import ReviewRule

pytestmark = pytest.mark.requirement("CARD-4")
BAD = "bad value!! %%"


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        (BAD, "has a space at position 4"),
        ("orders%", "'%' at position 7: '*' matches any text"),
        ("orders-*,payments-*", "enter one pattern"),
        ("orders\t*", "has a space at position 7"),
        ("orders\u202e", "invisible character at position 7"),
        ("orders\0", "invisible character at position 7"),
        ("orders-[ab]", "has '[' at position 8: sets of characters aren't supported"),
        ("orders-[", "has '[' at position 8"),
        ("*" * 11, "11 '*', but at most ten"),
        ("a" * 256, "256 characters, but at most 255 are allowed"),
    ],
)
def test_what_cannot_be_meant_is_refused(pattern: str, says: str) -> None:
    with pytest.raises(InvalidInput, match="A pattern is a name such as orders-value") as refused:
        checked_pattern(pattern, "subject")
    assert says in refused.value.message
    assert refused.value.details["field"] == "subject_pattern"
    assert refused.value.message.isprintable()


@pytest.mark.parametrize(
    "pattern",
    ["*", "orders-*", "orders-?", ":.eu:orders-value", "com.acme.Order$Line", "a/b.proto", "größe-*", "a]", "a\\b", "a_b"],
)  # fmt: skip
def test_a_pattern_stays_as_it_is(pattern: str) -> None:
    assert checked_pattern(f" {pattern} ", "subject") == pattern


def test_an_empty_pattern_means_all() -> None:
    assert checked_pattern("  ", "subject") == "*"


@given(st.text(min_size=1, max_size=60).filter(lambda name: name.strip() == name))
def test_any_name_has_a_pattern_that_fits_it(name: str) -> None:
    assert name_pattern(checked_pattern(pattern_of(name), "subject", longest=600)).allows(name)


STORING: dict[str, tuple[type, Callable[[Actor], object]]] = {
    "token": (ApiToken, lambda by: issue_token(username="steward", name="x", by=by, subject_pattern=BAD)),
    "role": (RoleGrant, lambda by: grant(username="steward", role="reader", by=by, subject_pattern=BAD)),
    "owner": (Ownership, lambda by: add_owner(username="steward", by=by, subject_pattern=BAD)),
    "role of a group": (GroupGrant, lambda by: grant_to_group(group="team", role="reader", by=by, subject_pattern=BAD)),
    "subscription": (Subscription, lambda by: services.subscribe(event="*", by=by, subject_pattern=BAD)),
    "webhook": (
        Webhook,
        lambda by: create_webhook(name="x", url="https://example.com/x", by=by, subject_pattern=BAD),
    ),
    "mute": (Mute, lambda by: mute(registry="dev", reason="x", subject=BAD, by=by)),
    "review rule": (ReviewRule, lambda by: add_review_rule(environment="prod", by=by, subject_pattern=BAD)),
}


@pytest.mark.parametrize("kind", STORING)
def test_no_service_stores_it(kind: str, person: Callable[[str], Actor], system: Actor) -> None:
    person("steward")
    by = person("admin")
    if kind in ("token", "role", "owner", "role of a group"):
        make_group(name="team", by=system)
        by = system
    model, store = STORING[kind]
    before = model.objects.count()  # type: ignore[attr-defined]
    with pytest.raises(InvalidInput, match="has a space at position 4"):
        store(by)
    assert model.objects.count() == before  # type: ignore[attr-defined]


def test_the_page_and_the_api_say_it(look: Callable[[str], Client], api: Callable[[str], Client]) -> None:
    form: dict[str, Any] = {"name": "ci", "scope": "read", "registry": "dev", "subject_pattern": BAD, "days": "7"}
    page = look("steward").post("/ui/tokens", form)
    assert page.status_code == 422
    assert "has a space at position 4" in page.content.decode()
    answer = api("steward").post("/api/v1/tokens", form | {"days": 7}, content_type="application/json")
    assert (answer.status_code, "has a space at position 4" in answer.json()["message"]) == (422, True)
    assert not ApiToken.objects.filter(subject_pattern=BAD).exists()


def test_a_deployment_says_it_too(api: Callable[[str], Client]) -> None:
    body = {"label": "x", "registry": "dev", "subjects": BAD}
    answer = api("admin").post("/api/v1/deployments", body, content_type="application/json")
    assert answer.status_code == 422
    assert not Deployment.objects.exists()
