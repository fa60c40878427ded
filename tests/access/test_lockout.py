"""Failed sign-ins lock a name and an address for a while, and tell nobody which names there are."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from allauth.core.internal import ratelimit
from django.contrib.auth.hashers import ScryptPasswordHasher
from django.core.cache import cache

from dashboard import client_address
from dashboard.client_address import TrustedProxies
from dashboard.people import sign_in
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


def test_a_name_is_locked_from_an_address_alone_and_opens_again(reader: User, clock: list[float]) -> None:
    for _ in range(5):
        assert not attempt("reader", "wrong", "10.0.0.1")[0]
    signed_in, said = attempt("reader", PASSWORD, "10.0.0.1")
    assert not signed_in
    assert "Too many failed" in said
    assert attempt("reader", PASSWORD, "10.9.9.9")[0], "somebody else's guesses lock nobody out"
    clock[0] = 301
    assert attempt("reader", PASSWORD, "10.0.0.1")[0]


def test_windows_grow_for_who_goes_on_guessing(reader: User, clock: list[float]) -> None:
    for start in (0, 301):
        clock[0] = start
        for _ in range(5):
            attempt("reader", "wrong")
    clock[0] = 700
    assert not attempt("reader", PASSWORD)[0], "ten in an hour"
    clock[0] = 4000
    assert attempt("reader", PASSWORD)[0]


def test_guesses_from_many_addresses_lock_a_name_but_not_its_own_browser(
    reader: User, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sign_in.LIMITS["name"] == "100/1h/key"
    monkeypatch.setitem(sign_in.CONFIG, "name", "12/1h/key")
    known = RawClient(REMOTE_ADDR="10.8.8.8")
    assert known.post(LOGIN, {"login": "reader", "password": PASSWORD}).status_code == 302
    for number in range(12):
        attempt("reader", "wrong", f"10.1.{number}.1")
    assert not attempt("reader", PASSWORD, "10.9.9.9")[0]
    known.cookies.pop("schemadesk_session")
    assert known.post(LOGIN, {"login": "Reader ", "password": PASSWORD}).status_code == 302
    assert "_auth_user_id" in known.session
    clock[0] = 3601
    assert attempt("reader", PASSWORD, "10.9.9.9")[0]


def test_a_browsers_cookie_is_of_one_name_and_counts_too(reader: User) -> None:
    known = RawClient()
    known.post(LOGIN, {"login": "reader", "password": PASSWORD})
    cookie = known.cookies["schemadesk_browser"]
    assert cookie["httponly"] and cookie["samesite"] == "Lax" and cookie["path"] == "/ui/accounts/"
    stolen = RawClient()
    for value in (cookie.value, cookie.value + "x", "x"):
        stolen.cookies["schemadesk_browser"] = value
        for _ in range(5):
            assert stolen.post(LOGIN, {"login": "reader", "password": "wrong"}).status_code == 200
        assert stolen.post(LOGIN, {"login": "reader", "password": PASSWORD}).status_code == 200, value
    stolen.cookies["schemadesk_browser"] = cookie.value
    for number in range(30):
        stolen.post(LOGIN, {"login": f"nobody{number}", "password": "wrong"})
    assert not attempt("reader", PASSWORD, "127.0.0.1")[0], "another name's attempts count for the address"


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


def test_a_proxy_that_is_not_trusted_locks_nobody_out(reader: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """The 32 wrong passwords with invented addresses that once locked out everybody behind a proxy."""

    def through_the_proxy(name: str, password: str, header: str) -> bool:
        client = RawClient(REMOTE_ADDR="10.0.0.1", headers={"x-forwarded-for": header})
        client.post(LOGIN, {"login": name, "password": password})
        return "_auth_user_id" in client.session

    said: list[str] = []
    monkeypatch.setattr(client_address.ClientAddressMiddleware, "warned_at", -client_address.WARN_SECONDS)
    monkeypatch.setattr(client_address.logger, "warning", lambda text, *words: said.append(text % words))
    for number in range(40):
        through_the_proxy(f"nobody{number % 7}", "wrong", f"203.0.113.{number}")
    assert through_the_proxy("reader", PASSWORD, "198.51.100.7")
    assert "SCHEMADESK_TRUSTED_PROXIES" in said[0] and "10.0.0.1" in said[0]
    assert sign_in.LIMITS["shared address"] == "300/5m/key"
    monkeypatch.setitem(sign_in.CONFIG, "shared_address", "3/5m/key")
    for number in range(3):
        through_the_proxy(f"other{number}", "wrong", f"203.0.113.{number}")
    assert not through_the_proxy("reader", PASSWORD, "198.51.100.7"), "a limit there is"


def test_behind_a_trusted_proxy_each_person_is_counted_by_their_address(reader: User, settings: Any) -> None:
    settings.TRUSTED_PROXIES = TrustedProxies.parse("10.0.0.1")

    def through_the_proxy(name: str, password: str, header: str) -> bool:
        client = RawClient(REMOTE_ADDR="10.0.0.1", headers={"x-forwarded-for": header})
        client.post(LOGIN, {"login": name, "password": password})
        return "_auth_user_id" in client.session

    for number in range(30):  # the guesser invents the beginning; the proxy adds the truth
        through_the_proxy(f"nobody{number}", "wrong", f"198.51.100.{number}, 203.0.113.9")
    assert not through_the_proxy("reader", PASSWORD, "198.51.100.7, 203.0.113.9")
    assert through_the_proxy("reader", PASSWORD, "198.51.100.7")


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
