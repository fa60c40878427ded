"""Failed sign-ins lock a name and an address for a while, and tell nobody which names there are."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from allauth.core.internal import ratelimit
from django.contrib.auth.hashers import ScryptPasswordHasher
from django.core.cache import cache

from registry.access.models import User
from registry.access.roles import Actor
from tests.conftest import RawClient

pytestmark = pytest.mark.requirement("CARD-4")
LOGIN = "/ui/accounts/login/"
PASSWORD = "a long passphrase 7"


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that have gone by for the limits, which count by the wall clock."""
    cache.clear()
    ahead = [0.0]

    class Later:
        monotonic, sleep = staticmethod(time.monotonic), staticmethod(time.sleep)

        @staticmethod
        def time() -> float:
            return time.time() + ahead[0]

    monkeypatch.setattr(ratelimit, "time", Later)
    return ahead


@pytest.fixture
def reader(person: Callable[[str], Actor]) -> User:
    person("reader")
    user = User.objects.get(username="reader")
    user.set_password(PASSWORD)
    user.save()
    return user


def attempt(name: str, password: str, address: str = "10.0.0.1") -> tuple[bool, str]:
    """Whether it signs in, and what the page says."""
    client = RawClient(REMOTE_ADDR=address)
    answer = client.post(LOGIN, {"login": name, "password": password})
    return "_auth_user_id" in client.session, answer.content.decode()


def test_a_name_is_locked_from_everywhere_and_opens_again(reader: User, clock: list[float]) -> None:
    for number in range(5):
        assert not attempt("reader", "wrong", f"10.0.0.{number}")[0]
    signed_in, said = attempt("reader", PASSWORD, "10.9.9.9")
    assert not signed_in
    assert "Too many failed" in said
    clock[0] = 301
    assert attempt("reader", PASSWORD)[0]


def test_the_case_and_blanks_of_a_name_open_no_second_lock(reader: User) -> None:
    for name in ("reader", "READER", " reader", "Reader", "reader "):
        attempt(name, "wrong")
    assert not attempt("reader", PASSWORD)[0]


def test_an_address_is_locked_for_every_name_and_opens_again(reader: User, clock: list[float]) -> None:
    for number in range(30):
        attempt(f"nobody{number}", "wrong")
    assert not attempt("reader", PASSWORD)[0]
    assert attempt("reader", PASSWORD, "10.9.9.9")[0], "others are not locked out with it"
    clock[0] = 301
    assert attempt("reader", PASSWORD)[0]


def test_a_header_does_not_change_the_address(reader: User) -> None:
    for number in range(30):
        client = RawClient(REMOTE_ADDR="10.0.0.1", headers={"x-forwarded-for": f"10.1.1.{number}"})
        client.post(LOGIN, {"login": f"nobody{number}", "password": "wrong"})
    assert not attempt("reader", PASSWORD)[0]


def test_a_name_that_nobody_has_is_refused_in_the_same_words_and_locked_too(reader: User) -> None:
    for number in range(6):
        _, known = attempt("reader", "wrong", f"10.0.1.{number}")
        _, unknown = attempt("nobody", "wrong", f"10.0.2.{number}")
        assert _plain(known, "reader") == _plain(unknown, "nobody")


def _plain(text: str, name: str) -> str:
    import re

    return re.sub(r'name="csrfmiddlewaretoken" value="[^"]*"', "", text.replace(name, "NAME"))


@pytest.mark.parametrize("name", ["reader", "shut", "oidc", "nobody"])
def test_every_refusal_costs_one_hash(reader: User, settings: Any, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Hashing is what takes the time: one each, whoever is named, so the time tells nothing."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.ScryptPasswordHasher"]
    shut, oidc = User(username="shut", is_active=False), User(username="oidc")
    shut.set_password(PASSWORD)
    oidc.set_unusable_password()
    for user in (shut, oidc):
        user.save()
    reader.set_password(PASSWORD)
    reader.save()
    hashed = []
    encode = ScryptPasswordHasher.encode
    monkeypatch.setattr(
        ScryptPasswordHasher, "encode", lambda self, *args, **more: hashed.append(1) or encode(self, *args, **more)
    )
    assert not attempt(name, "wrong")[0]
    assert len(hashed) == 1
