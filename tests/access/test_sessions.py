"""When sessions end, which cookies carry them, and what the log says of sign-ins."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.core.cache import cache

from dashboard.people import sessions
from registry.access.models import User
from registry.access.roles import Actor
from registry.access.services import end_sessions
from registry.audit.models import AuditEvent
from registry.errors import NotAllowed
from tests.conftest import RawClient, signed_in

LOGIN = "/ui/accounts/login/"
PASSWORD = "a long passphrase 7"
HOUR = 3600


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that have gone by for sessions."""
    cache.clear()
    ahead = [0.0]

    class Later:
        @staticmethod
        def time() -> float:
            return time.time() + ahead[0]

    monkeypatch.setattr(sessions, "time", Later)
    return ahead


@pytest.fixture
def reader(person: Callable[[str], Actor]) -> User:
    person("reader")
    user = User.objects.get(username="reader")
    user.set_password(PASSWORD)
    user.save()
    return user


def sign_in(**more: Any) -> RawClient:
    client = RawClient(**more)
    assert client.post(LOGIN, {"login": "reader", "password": PASSWORD}).status_code == 302
    return client


def is_signed_in(client: RawClient) -> bool:
    return client.get("/ui/tokens").status_code == 200


def test_a_session_ends_without_requests(reader: User, clock: list[float]) -> None:
    client = sign_in()
    for hours in (7, 14):
        clock[0] = hours * HOUR
        assert is_signed_in(client), "each request begins the time anew"
    clock[0] = (14 + 9) * HOUR
    assert not is_signed_in(client)


def test_a_session_ends_a_day_after_the_sign_in_however_it_is_used(reader: User, clock: list[float]) -> None:
    client = sign_in()
    for hours in range(6, 24, 6):
        clock[0] = hours * HOUR
        assert is_signed_in(client)
    clock[0] = 24 * HOUR + 60
    assert not is_signed_in(client)


def test_a_copied_cookie_ends_too(reader: User, clock: list[float]) -> None:
    client, thief = sign_in(), RawClient()
    thief.cookies.update(client.cookies)
    clock[0] = 25 * HOUR
    assert not is_signed_in(thief)


def test_requests_in_turn_write_the_session_once(reader: User, django_assert_num_queries: Any) -> None:
    client = sign_in()
    before = Session.objects.get().session_data
    for _ in range(3):
        assert is_signed_in(client)
    assert Session.objects.get().session_data == before


def test_a_sign_in_changes_the_sessions_id(reader: User) -> None:
    client = sign_in()
    first = client.session.session_key
    assert client.post(LOGIN, {"login": "reader", "password": PASSWORD}).status_code == 302
    client.post("/ui/accounts/logout/")
    assert not Session.objects.filter(session_key=first).exists()
    client.post(LOGIN, {"login": "reader", "password": PASSWORD})
    assert client.session.session_key != first


def test_a_fixed_id_is_not_taken(reader: User) -> None:
    client = RawClient()
    client.cookies["schemadesk_session"] = "a" * 32
    client.post(LOGIN, {"login": "reader", "password": PASSWORD})
    assert client.cookies["schemadesk_session"].value != "a" * 32


def test_a_changed_password_ends_the_other_sessions(reader: User) -> None:
    here, elsewhere = sign_in(), sign_in()
    new = "correct horse battery"
    sent = {"oldpassword": PASSWORD, "password1": new, "password2": new}
    here.post("/ui/accounts/password/change/", sent)
    assert (is_signed_in(here), is_signed_in(elsewhere)) == (True, False)


def test_a_password_is_changed_by_who_knows_it(reader: User) -> None:
    new = "correct horse battery"
    sign_in().post("/ui/accounts/password/change/", {"oldpassword": "wrong", "password1": new, "password2": new})
    reader.refresh_from_db()
    assert reader.check_password(PASSWORD)


def test_people_sign_out_everywhere(reader: User) -> None:
    here, elsewhere = sign_in(), sign_in()
    answer = here.post("/ui/accounts/logout/", {"everywhere": "1"})
    assert answer["Clear-Site-Data"] == '"cache", "storage"', "drafts of forms are in the browser's storage"
    assert (is_signed_in(here), is_signed_in(elsewhere)) == (False, False)
    event = AuditEvent.objects.filter(table="access_user").order_by("-id").first()
    assert event is not None
    assert (event.actor, event.why) == ("reader", "end all sessions of reader")


OLD, NEW = "o" * 50, "n" * 50


def test_sessions_last_while_the_secret_key_is_rotated(reader: User, settings: Any) -> None:
    """Two hosts take turns with one session, of which two requests are under way at the same time."""
    settings.SECRET_KEY = OLD
    client, unused = sign_in(), sign_in()
    parallel = RawClient()
    parallel.cookies.update(client.cookies)
    for key, fallbacks in ((OLD, [NEW]), (NEW, [OLD]), (OLD, [NEW]), (NEW, [OLD])):
        settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = key, fallbacks
        assert (is_signed_in(client), is_signed_in(parallel)) == (True, True), (key, fallbacks)
    settings.SECRET_KEY_FALLBACKS = []
    assert is_signed_in(client), "the new key has signed it meanwhile"
    assert not is_signed_in(unused), "only the former key has signed it"


def test_an_admin_ends_sessions_of_others_alone(reader: User, person: Callable[[str], Actor]) -> None:
    client, admin = sign_in(), person("admin")
    with pytest.raises(NotAllowed):
        end_sessions(username="admin", by=person("reader"))
    assert signed_in("admin").post("/ui/people/change", {"do": "end", "username": "reader"}).status_code == 302
    assert not is_signed_in(client)
    assert is_signed_in(sign_in()), "the account stays"
    assert admin.user_id


def test_cookies_are_of_this_host_and_https_alone(tmp_path: Path) -> None:
    program = (
        "import django; django.setup(); from django.conf import settings as s; from dashboard.people.sign_in import COOKIE;"
        "print(s.SESSION_COOKIE_NAME, s.CSRF_COOKIE_NAME, COOKIE, s.SESSION_COOKIE_SECURE, s.CSRF_COOKIE_SECURE,"
        " s.SESSION_COOKIE_HTTPONLY, s.CSRF_COOKIE_HTTPONLY, s.SESSION_COOKIE_SAMESITE, s.CSRF_COOKIE_SAMESITE,"
        " *map(repr, s.SECRET_KEY_FALLBACKS))"
    )
    (tmp_path / "former").write_text("a\nb , c,\n")  # base64 may have several lines
    environment = {"DJANGO_SETTINGS_MODULE": "dashboard.settings", "SECRET_KEY": "x" * 50, "PATH": "/usr/bin"}
    environment["SECRET_KEY_FALLBACKS_FILE"] = str(tmp_path / "former")
    shown = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True, timeout=60
    ).stdout
    assert shown.split() == [
        *("__Host-schemadesk_session", "__Host-csrftoken", "__Secure-schemadesk_browser"),
        *("True", "True", "True", "True", "Lax", "Lax"),
        *(r"'a\nb'", "'c'"),
    ]


def test_the_log_has_each_sign_in(reader: User, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="dashboard.people.sign_in")
    client = sign_in(REMOTE_ADDR="10.0.0.7")
    client.post("/ui/accounts/logout/")
    for _ in range(6):
        RawClient(REMOTE_ADDR="10.0.0.8").post(LOGIN, {"login": "read\ner", "password": "wrong one"})
    lines = [record.getMessage() for record in caplog.records if record.name == "dashboard.people.sign_in"]
    assert lines[:2] == ["reader signed in from 10.0.0.7 by password", "reader signed out from 10.0.0.7"]
    assert lines[2] == "sign-in as 'read\\ner' from 10.0.0.8 failed"
    assert lines[7] == "sign-in as 'read\\ner' from 10.0.0.8 refused after too many failed ones"
    assert "wrong one" not in " ".join(lines)
