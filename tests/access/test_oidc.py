"""Signing in through a real OpenID Connect provider, with a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import Group
from django.core.cache import cache
from playwright.sync_api import Browser, Page, expect

from registry.access.models import ApiToken, User
from registry.access.roles import Actor
from registry.access.selectors import actor_of_token, approval_refusal
from registry.access.services import grant_to_group, make_group
from registry.audit.models import AuditEvent
from tests.access.issuer import CLIENT_SECRET, running
from tests.browsing import TIMEOUT
from tests.toolchains import require_tools

pytestmark = [
    pytest.mark.browser,
    pytest.mark.clients,
    pytest.mark.slow,
    pytest.mark.requirement("CARD-4"),
    pytest.mark.django_db(transaction=True),
]
PEOPLE: dict[str, dict[str, Any]] = {
    "sub-1": {"preferred_username": "alice", "email": "boss@example.com", "groups": ["schemas", "unmapped"]},
    "sub-2": {"preferred_username": "alice", "email": "boss@example.com", "groups": []},
}


@pytest.fixture(scope="module")
def issuer(live_server) -> Iterator[str]:
    require_tools("the OpenID Connect provider", ("node", "npm"))
    with running(people=PEOPLE, redirect_uri=f"{live_server.url}/ui/accounts/oidc/callback/") as address:
        yield address


@pytest.fixture
def oidc(issuer: str, settings: Any, tmp_path: Path, registries: None) -> None:
    cache.clear()
    (tmp_path / "oidc").write_text(f"{issuer} {CLIENT_SECRET}")
    settings.SECRETS_DIR = tmp_path
    settings.EGRESS_ALLOW = (issuer.removeprefix("http://"),)
    settings.OIDC_ISSUER = issuer
    settings.OIDC_CLIENT_ID = "schemadesk"
    settings.OIDC_SECRET = "oidc"
    settings.OIDC_NAME = "Example ID"
    settings.OIDC_GROUPS = (("schemas", "stewards"), ("chiefs", "admins"))


@pytest.fixture
def page(browser: Browser, live_server) -> Iterator[Callable[[], Page]]:
    """Windows of nobody yet; their console isn't looked at, as the provider's own pages complain there."""
    with ExitStack() as stack:

        def make() -> Page:
            context = browser.new_context(base_url=live_server.url)
            stack.callback(context.close)
            context.set_default_timeout(TIMEOUT)
            return context.new_page()

        yield make


def sign_in(page: Page, subject: str, *, following: str = "") -> None:
    page.goto("/ui/accounts/login/" + (f"?next={following}" if following else ""))
    page.get_by_role("button", name="Sign in with Example ID").click()
    page.fill("input[name=login]", subject)
    page.fill("input[name=password]", "any")
    page.get_by_role("button", name="Sign-in").click()
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url(re.compile("/ui/"))


def test_there_and_back(oidc: None, page: Callable[[], Page], system: Actor, issuer: str) -> None:
    group_person, _ = User.objects.get_or_create(username="stays")
    for name in ("stewards", "admins"):
        Group.objects.create(name=name)
    window = page()
    sign_in(window, "sub-1", following="/ui/findings")
    assert window.url.endswith("/ui/findings")
    user = User.objects.exclude(pk=group_person.pk).get()
    assert (user.username, user.has_usable_password()) == ("alice", False)
    assert [group.name for group in user.groups.all()] == ["stewards"]
    account = SocialAccount.objects.get()
    assert (account.uid, account.extra_data) == ("sub-1", {})
    events = AuditEvent.objects.filter(table__in=("access_user_groups", "socialaccount_socialaccount"))
    assert {(event.actor, event.channel) for event in events} == {("alice", "ui")}
    window.get_by_text("alice").first.click()
    window.get_by_role("banner").get_by_role("button", name="Sign out").click()
    window.goto("/ui/tokens")
    expect(window.get_by_text("Your tokens")).to_have_count(0)


def test_the_same_subject_is_the_same_person_and_the_same_mail_is_not(
    oidc: None, page: Callable[[], Page], settings: Any
) -> None:
    User.objects.create(username="boss", email="boss@example.com")
    sign_in(page(), "sub-1")
    sign_in(page(), "sub-1")
    assert User.objects.count() == 2
    sign_in(page(), "sub-2")
    assert User.objects.count() == 3, "another subject is another person, whatever mail and name it has"
    assert {account.user.username for account in SocialAccount.objects.all()} >= {"alice"}
    assert not User.objects.get(username="boss").socialaccount_set.exists()


def test_groups_follow_the_claim_and_others_stay(oidc: None, page: Callable[[], Page], settings: Any) -> None:
    sign_in(page(), "sub-1")
    user = User.objects.get(username="alice")
    user.groups.add(Group.objects.create(name="by hand"), Group.objects.create(name="admins"))
    settings.OIDC_GROUPS = (("other", "stewards"), ("chiefs", "admins"))
    sign_in(page(), "sub-1")
    assert {group.name for group in user.groups.all()} == {"by hand"}


def test_a_shut_account_stays_out(oidc: None, page: Callable[[], Page]) -> None:
    sign_in(page(), "sub-1")
    User.objects.update(is_active=False)
    window = page()
    sign_in(window, "sub-1")
    assert window.url.endswith("/ui/accounts/inactive/")


def test_what_proves_an_approver(
    oidc: None, page: Callable[[], Page], person: Callable[[str], Actor], system: Actor
) -> None:
    admin = person("admin")
    make_group(name="stewards", by=admin)
    grant_to_group(group="stewards", role="approver", by=admin)
    window = page()
    sign_in(window, "sub-1", following="/ui/tokens")
    window.fill("input[name=name]", "from oidc")
    window.get_by_role("button", name="Create token").click()
    secret = window.locator("#token").inner_text()
    actor = actor_of_token(secret, channel="product")
    assert actor
    assert (actor.signed_in_by, approval_refusal(actor)) == ("oidc", "")
    assert ApiToken.objects.get().signed_in_by == "oidc"
    assert "To approve, sign in with Example ID" in approval_refusal(admin)


@pytest.mark.parametrize("following", ["https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:1"])
def test_nobody_is_sent_elsewhere(oidc: None, page: Callable[[], Page], following: str, live_server) -> None:
    window = page()
    sign_in(window, "sub-1", following=following)
    assert window.url.startswith(f"{live_server.url}/ui/")


def test_an_issuer_that_the_policy_refuses_is_not_called(oidc: None, page: Callable[[], Page], settings: Any) -> None:
    settings.EGRESS_ALLOW = ()
    window = page()
    window.goto("/ui/accounts/login/")
    window.get_by_role("button", name="Sign in with Example ID").click()
    expect(window.get_by_role("heading", name="Sign-in failed")).to_be_visible()


def test_a_callback_that_nobody_asked_for_signs_nobody_in(oidc: None, page: Callable[[], Page]) -> None:
    window = page()
    answer = window.goto("/ui/accounts/oidc/callback/?code=abc&state=def")
    assert answer
    assert answer.status == 403
    assert not User.objects.exists()


def test_where_the_issuer_is_required_passwords_are_off(
    oidc: None, settings: Any, client, person: Callable[[str], Actor]
) -> None:
    person("reader")
    user = User.objects.get(username="reader")
    user.set_password("a long passphrase 7")
    user.save()
    settings.OIDC_REQUIRED = True
    form = client.get("/ui/accounts/login/")
    assert b'name="password"' not in form.content
    sent = client.post("/ui/accounts/login/", {"login": "reader", "password": "a long passphrase 7"})
    assert sent.status_code == 403
    assert "_auth_user_id" not in client.session
