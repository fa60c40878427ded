"""Signing in, and what an account may do with itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.core.cache import cache

from registry.access.models import User
from registry.access.roles import Actor
from registry.access.services import ensure_person
from registry.audit.models import AuditEvent
from tests.conftest import RawClient, signed_in

LOGIN = "/ui/accounts/login/"


@pytest.fixture(autouse=True)
def no_earlier_failures() -> None:
    cache.clear()


@pytest.fixture
def password(registries: None, system: Actor) -> str:
    made = ensure_person(username="steward", role="steward", by=system)
    assert made
    return made


def test_sign_in_and_out(password: str) -> None:
    client = RawClient()
    assert client.post(LOGIN, {"login": "steward", "password": "wrong"}).status_code == 200
    signed_in = client.post(f"{LOGIN}?next=/ui/findings", {"login": "steward", "password": password})
    assert (signed_in.status_code, signed_in["Location"]) == (302, "/ui/findings")
    assert client.get("/ui/").status_code == 200
    client.post("/ui/accounts/logout/")
    assert client.get("/ui/").status_code == 302


def test_wrong_passwords_lock_a_name_out(password: str) -> None:
    client = RawClient()
    for _ in range(5):
        client.post(LOGIN, {"login": "steward", "password": "wrong"})
    locked = client.post(LOGIN, {"login": "steward", "password": password})
    assert locked.status_code == 200, "the right password must not help once the name is locked"
    assert b"Too many failed" in locked.content


def test_nobody_signs_up(db: None) -> None:
    answer = RawClient().post(
        "/ui/accounts/signup/",
        {"username": "me", "password1": "a long passphrase 7", "password2": "a long passphrase 7"},
    )
    assert not User.objects.exists()
    assert answer.status_code == 200


def test_a_changed_password_is_in_the_audit_with_its_owner(password: str, person: Callable[[str], Actor]) -> None:
    client = signed_in("steward")
    new = "correct horse battery"
    client.post("/ui/accounts/password/change/", {"oldpassword": password, "password1": new, "password2": new})
    assert User.objects.get(username="steward").check_password(new)
    event = AuditEvent.objects.filter(table="access_user").first()
    assert event is not None
    assert (event.actor, event.channel, event.why) == ("steward", "ui", "change own password")
    assert event.after["password"] == "(hidden)"
