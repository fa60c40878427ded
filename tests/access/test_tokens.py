"""Tokens: what they may, how long, and who made them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.utils import timezone

from registry.access.models import ApiToken, User
from registry.access.roles import ACTIONS, SCOPE_WORDS, SCOPES, Actor, Grant, TokenLimit, may, refusal
from registry.access.selectors import actor_of_token
from registry.access.services import grant, issue_token, make_token, revoke_token, set_active
from registry.audit.models import AuditEvent
from registry.errors import InvalidInput, NotAllowed, NotFound, NotSignedIn
from tests.conftest import RawClient

pytestmark = pytest.mark.requirement("CARD-4")
AVRO = {"schema": '"string"'}


def of(token: str) -> Client:
    return RawClient(headers={"authorization": f"Bearer {token}"})


def test_scopes_name_actions_that_exist_and_no_scope_but_all_rules_over_people() -> None:
    assert set(SCOPES) == set(SCOPE_WORDS)
    for name, actions in SCOPES.items():
        if actions is None:
            assert name == "all"
            continue
        assert actions <= set(ACTIONS)
        assert not actions & {"people.manage", "token.manage", "token.own", "promotion.review", "registry.manage"}


@pytest.mark.parametrize("role", ["reader", "steward", "approver", "admin"])
@pytest.mark.parametrize("scope", SCOPES)
def test_a_token_may_what_its_person_and_its_scope_both_may(role: str, scope: str) -> None:
    whole = Actor("x", "product", user_id=1, grants=(Grant(role),))
    limited = Actor("x", "product", user_id=1, grants=(Grant(role),), limit=TokenLimit(scope))
    for action in ACTIONS:
        named = SCOPES[scope]
        assert may(limited, action) == (may(whole, action) and (named is None or action in named))
        assert bool(refusal(limited, action)) != may(limited, action)


@pytest.mark.parametrize(
    ("limit", "registry", "subject", "expected"),
    [
        (TokenLimit(registry="dev"), "dev", "a", True),
        (TokenLimit(registry="dev"), "prod", "a", False),
        (TokenLimit(registry="dev"), "", "", False),
        (TokenLimit(subject_pattern="orders-*"), "dev", "orders-value", True),
        (TokenLimit(subject_pattern="orders-*"), "dev", "payments-value", False),
        (TokenLimit(subject_pattern="orders-*"), "dev", "", False),
        (TokenLimit(scope="no such scope"), "dev", "a", False),
    ],
)
def test_a_token_stays_in_its_place(limit: TokenLimit, registry: str, subject: str, expected: bool) -> None:
    actor = Actor("x", "product", user_id=1, grants=(Grant("admin"),), limit=limit)
    assert may(actor, "schema.read", registry=registry, subject=subject) is expected


def test_a_place_of_the_person_is_not_widened_by_the_token() -> None:
    actor = Actor("x", "product", user_id=1, grants=(Grant("steward", "dev", "orders-*"),), limit=TokenLimit())
    assert may(actor, "version.register", registry="dev", subject="orders-value")
    assert not may(actor, "version.register", registry="prod", subject="orders-value")


def test_each_dialect_holds_to_the_scope_and_says_so(person: Callable[[str], Actor], system: Actor) -> None:
    person("admin")
    read = of(issue_token(username="admin", name="r", scope="read", by=system))
    assert read.get("/subjects").status_code == 200
    calls = (
        ("/subjects/a/versions", AVRO),
        (
            "/v1/projects/local/locations/local/schemaRegistries/dev/subjects/a/versions",
            {"schema_type": "AVRO", **AVRO},
        ),
        ("/spring/", {"subject": "a", "format": "avro", "definition": '"string"'}),
        ("/api/v1/people", {"username": "x"}),
        ("/api/v1/tokens", {"name": "x"}),
    )
    for path, body in calls:
        answer = read.post(path, body, content_type="application/json")
        assert answer.status_code == 403, (path, answer.content)
        assert b"scope is read" in answer.content, (path, answer.content)


def test_a_token_for_one_registry_opens_no_other_of_the_same_name(
    person: Callable[[str], Actor], system: Actor
) -> None:
    admin = person("admin")
    token = of(issue_token(username="admin", name="dev", registry="dev", by=system))
    place = "/v1/projects/{}/locations/local/schemaRegistries/dev/subjects"
    made = of(issue_token(username="admin", name="all", by=system)).post(
        "/v1/projects/other/locations/local/schemaRegistries",
        {"schema_registry_id": "dev", "schema_registry": {}},
        content_type="application/json",
    )
    assert made.status_code == 200, made.content
    assert admin.grants
    assert token.get(place.format("local")).status_code == 200
    assert token.get(place.format("other")).status_code == 403


def test_tokens_end(person: Callable[[str], Actor], system: Actor) -> None:
    person("reader")
    token = issue_token(username="reader", name="t", by=system)
    row = ApiToken.objects.get()
    assert row.expires_at - row.created_at == timedelta(days=90)
    assert actor_of_token(token, channel="product")
    past = timezone.now() - timedelta(days=2)
    ApiToken.objects.update(created_at=past, expires_at=past + timedelta(days=1))
    assert actor_of_token(token, channel="product") is None
    assert of(token).get("/subjects").status_code == 401


def test_a_revoked_token_and_one_of_a_shut_account_open_nothing(person: Callable[[str], Actor], system: Actor) -> None:
    reader, admin = person("reader"), person("admin")
    first = make_token(username="reader", name="a", by=system)
    revoke_token(token_id=first.token_id, by=reader)
    assert of(first.secret).get("/subjects").status_code == 401
    second = issue_token(username="reader", name="b", by=system)
    assert of(second).get("/subjects").status_code == 200
    set_active(username="reader", active=False, by=admin)
    assert of(second).get("/subjects").status_code == 401


@pytest.mark.parametrize("days", [0, -1, 367])
def test_no_token_is_good_for_ever(person: Callable[[str], Actor], system: Actor, days: int) -> None:
    person("reader")
    with pytest.raises(InvalidInput, match="1 to 366 days"):
        issue_token(username="reader", name="t", days=days, by=system)


def test_a_rights_change_reaches_tokens_at_once(person: Callable[[str], Actor], system: Actor) -> None:
    reader, admin = person("reader"), person("admin")
    client = of(issue_token(username="reader", name="t", by=system))
    post = lambda: client.post("/subjects/a/versions", AVRO, content_type="application/json")  # noqa: E731
    assert post().status_code == 403
    grant(username="reader", role="steward", registry="dev", subject_pattern="a", by=admin)
    assert post().status_code == 200
    assert reader.user_id


def test_last_use_is_written_once_a_minute_and_not_into_the_audit(
    person: Callable[[str], Actor], system: Actor, django_assert_num_queries
) -> None:
    person("reader")
    token = issue_token(username="reader", name="t", by=system)
    events = AuditEvent.objects.count()
    actor_of_token(token, channel="product", origin="10.1.1.1")
    row = ApiToken.objects.get()
    assert row.last_used_from == "10.1.1.1"
    with django_assert_num_queries(1):
        actor_of_token(token, channel="product", origin="10.1.1.2")
    assert ApiToken.objects.get().last_used_at == row.last_used_at
    ApiToken.objects.update(last_used_at=timezone.now() - timedelta(seconds=61))
    actor_of_token(token, channel="product", origin="10.1.1.2")
    assert ApiToken.objects.get().last_used_from == "10.1.1.2"
    assert AuditEvent.objects.count() == events


@pytest.mark.django_db(transaction=True)
def test_a_reader_never_waits_for_who_changes_the_token(person: Callable[[str], Actor], system: Actor) -> None:
    person("reader")
    token = issue_token(username="reader", name="t", by=system)
    other = connection.copy()
    try:
        other.set_autocommit(False)
        with other.cursor() as cursor:
            cursor.execute("SELECT * FROM access_apitoken FOR UPDATE")
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '1s'")
        assert actor_of_token(token, channel="product", origin="10.1.1.1")
        assert ApiToken.objects.get().last_used_at is None
        other.rollback()
        assert actor_of_token(token, channel="product", origin="10.1.1.1")
        assert ApiToken.objects.get().last_used_at
    finally:
        other.close()
        with connection.cursor() as cursor:
            cursor.execute("RESET lock_timeout")


def test_people_have_their_own_tokens_and_admins_see_all(api: Callable[[str], Client]) -> None:
    reader, steward, admin = api("reader"), api("steward"), api("admin")
    made = reader.post("/api/v1/tokens", {"name": "mine", "scope": "read"}, content_type="application/json")
    assert made.status_code == 201
    assert made["Cache-Control"] == "no-store"
    secret, number = made.json()["token"], made.json()["token_id"]
    assert of(secret).get("/subjects").status_code == 200
    listed = reader.get("/api/v1/tokens")
    assert [row["name"] for row in listed.json()] == ["mine", "tests"]
    assert secret.encode() not in listed.content
    assert {row["username"] for row in steward.get("/api/v1/tokens").json()} == {"steward"}
    assert steward.get("/api/v1/tokens?of=everybody").status_code == 403
    assert len(admin.get("/api/v1/tokens?of=everybody").json()) == 4
    other, absent = steward.delete(f"/api/v1/tokens/{number}"), steward.delete("/api/v1/tokens/987654")
    assert (other.status_code, absent.status_code) == (404, 404)
    assert other.content.replace(str(number).encode(), b"N") == absent.content.replace(b"987654", b"N")
    assert admin.delete(f"/api/v1/tokens/{number}").status_code == 204
    assert of(secret).get("/subjects").status_code == 401


def test_a_token_makes_none_that_outlives_it_and_a_limited_one_makes_none(
    person: Callable[[str], Actor], system: Actor
) -> None:
    person("admin")
    short = make_token(username="admin", name="short", days=1, by=system)
    actor = actor_of_token(short.secret, channel="product")
    assert actor
    assert make_token(username="admin", name="long", days=300, by=actor).expires_at == short.expires_at
    placed = actor_of_token(issue_token(username="admin", name="dev", registry="dev", by=system), channel="product")
    assert placed
    with pytest.raises(NotAllowed, match="limited"):
        make_token(username="admin", name="wide", by=placed)


def test_nobody_makes_a_token_in_anothers_name(person: Callable[[str], Actor]) -> None:
    admin = person("admin")
    person("steward")
    with pytest.raises(NotAllowed, match="only its owner can create it"):
        make_token(username="steward", name="x", by=admin)
    with pytest.raises(NotSignedIn):
        make_token(username="steward", name="x", by=Actor("anonymous", "product", grants=(Grant("steward"),)))
    with pytest.raises(NotFound):
        revoke_token(token_id=1, by=admin)


def test_a_token_carries_how_its_maker_was_signed_in(person: Callable[[str], Actor]) -> None:
    person("reader")
    by = Actor("reader", "ui", User.objects.get(username="reader").pk, (Grant("reader"),), signed_in_by="oidc")
    actor = actor_of_token(make_token(username="reader", name="t", by=by).secret, channel="product")
    assert actor
    assert actor.signed_in_by == "oidc"


def test_the_command_takes_scope_place_and_days(person: Callable[[str], Actor], capsys) -> None:
    person("steward")
    call_command(
        "issue_token", "steward", "ci", "--scope", "register", "--registry", "dev", "--subjects", "o-*", "--days", "7"
    )
    client = of(capsys.readouterr().out.strip())
    assert client.post("/subjects/o-1/versions", AVRO, content_type="application/json").status_code == 200
    assert client.post("/subjects/p-1/versions", AVRO, content_type="application/json").status_code == 403
    row = ApiToken.objects.get()
    assert (row.expires_at - row.created_at).days == 7


def test_the_page_shows_a_new_token_once(person: Callable[[str], Actor]) -> None:
    person("steward")
    client = RawClient()
    assert client.get("/ui/tokens").status_code in (302, 401, 403)
    client.force_login(User.objects.get(username="steward"))
    wrong = client.post("/ui/tokens", {"name": "", "scope": "read", "days": "10"})
    assert wrong.status_code == 422
    made = client.post("/ui/tokens", {"name": "ci", "scope": "read", "days": "10"})
    assert made.status_code == 201
    secret = made.context["page"].made.secret
    assert secret in made.content.decode()
    assert "no-store" in made["Cache-Control"]
    assert of(secret).get("/subjects").status_code == 200
    again = client.get("/ui/tokens").content.decode()
    assert secret not in again
    assert "127.0.0.1" in again
    token_id = ApiToken.objects.get().pk
    assert client.post(f"/ui/tokens/{token_id}/revoke").status_code == 302
    assert of(secret).get("/subjects").status_code == 401
