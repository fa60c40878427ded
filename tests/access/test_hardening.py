"""Response headers, cells of exported files, log lines, and the rules for passwords."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import re
import time
from collections.abc import Callable
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from allauth.socialaccount.models import SocialToken
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.test import Client

from dashboard.components.chart import Chart, ChartStep, chart_csv
from dashboard.people import oidc
from dashboard.people.passwords import is_listed
from dashboard.request_ids import JsonFormatter, LineFormatter
from registry.access.models import User
from registry.access.roles import Actor
from tests.conftest import RawClient, signed_in

PAGE = "/ui/accounts/login/"


@pytest.mark.parametrize("path", ["/ui/subjects", "/ui/tokens", "/ui/people", "/ui/nowhere"])
def test_no_browser_keeps_a_page(person: Callable[[str], Actor], path: str) -> None:
    person("admin")
    assert "no-store" in signed_in("admin").get(path)["Cache-Control"]


def test_files_of_the_site_are_kept() -> None:
    assert "no-store" not in Client().get("/ui/static/app.js")["Cache-Control"]


@pytest.mark.parametrize("path", [PAGE, "/subjects", "/api/v1/registries", "/healthz", "/nowhere"])
def test_who_came_by_https_is_told_to_insist_on_it(db: None, path: str, settings: Any) -> None:
    settings.SECURE_HSTS_SECONDS, settings.SECURE_HSTS_INCLUDE_SUBDOMAINS = 31_536_000, True
    assert "Strict-Transport-Security" not in Client().get(path)
    assert Client().get(path, secure=True)["Strict-Transport-Security"] == "max-age=31536000; includeSubDomains"


def test_trace_is_not_answered(registries: None) -> None:
    for path, status in (("/subjects", 401), ("/healthz", 405), (PAGE, 405)):
        answer = RawClient().generic("TRACE", path, headers={"X-Secret": "aSecret"})
        assert (answer.status_code, b"aSecret" in answer.content) == (status, False)


def test_a_frame_and_a_foreign_script_are_refused_everywhere(db: None) -> None:
    for path in (PAGE, "/subjects", "/api/v1/registries", "/healthz"):
        policy = Client().get(path)["Content-Security-Policy"]
        for directive in ("default-src 'none'", "base-uri 'none'", "frame-ancestors 'none'", "form-action 'self'"):
            assert directive in policy
        assert "unsafe" not in policy


def test_the_description_of_the_api_runs_under_the_policy(db: None) -> None:
    page = Client().get("/api/v1/docs/").content.decode()
    scripts = re.findall(r"<script\b([^>]*)>", page)
    assert scripts and all(' src="/' in script for script in scripts), "the policy refuses scripts in the page"
    (setup,) = re.findall(r'src="([^"]*script=[^"]*)"', page)
    answer = Client().get(unescape(setup))
    assert answer["Content-Type"].startswith("application/javascript") and b"/api/v1/schema" in answer.content


@pytest.mark.parametrize(
    "target", ["//evil.example", "https://evil.example/ui/", "javascript:alert(1)", "/\\evil.example"]
)
def test_a_sign_in_leads_nowhere_else(person: Callable[[str], Actor], target: str) -> None:
    person("reader")
    user = User.objects.get(username="reader")
    user.set_password("a long passphrase 7")
    user.save()
    answer = RawClient().post(f"{PAGE}?next={target}", {"login": "reader", "password": "a long passphrase 7"})
    assert answer["Location"] == "/ui/"


@pytest.mark.parametrize(("acr", "fits"), [("mfa", True), ("phr", True), ("pwd", False), (None, False)])
def test_the_strength_that_is_required_is_checked(
    monkeypatch: pytest.MonkeyPatch, settings: Any, rf: Any, acr: str | None, fits: bool
) -> None:
    settings.OIDC_ISSUER, settings.OIDC_CLIENT_ID, settings.OIDC_ACR = (
        "https://issuer.example",
        "schemadesk",
        ("phr", "mfa"),
    )
    config = {"issuer": settings.OIDC_ISSUER, "jwks_uri": "https://issuer.example/keys"}
    adapter = oidc.IssuerAdapter(rf.get("/"), oidc.provider_id())
    monkeypatch.setattr(oidc.IssuerAdapter, "openid_config", config)
    monkeypatch.setattr(oidc.jwtkit, "verify_and_decode", lambda **_: {"sub": "7", "acr": acr})
    assert adapter.get_provider().get_auth_params()["acr_values"] == "phr mfa"
    response = {"access_token": "a", "id_token": "b"}
    with contextlib.nullcontext() if fits else pytest.raises(OAuth2Error, match="OIDC_ACR"):
        login = adapter.complete_login(
            rf.get("/"), adapter.get_provider().app, SocialToken(token="a"), response=response
        )
        assert login.account.uid == "7"


def formatted(formatter: logging.Formatter, text: str, error: Exception | None = None) -> str:
    caught = (type(error), error, None) if error else None
    return formatter.format(logging.LogRecord("a", logging.INFO, "", 1, "%s", (text,), caught))


@pytest.mark.parametrize("sign", ["\n", "\r", "\x1b[2J", "\x85", "\u2028"])
def test_no_text_of_a_caller_begins_a_line_of_the_log(sign: str) -> None:
    forged = f"name{sign}2026-01-01 00:00:00 INFO audit all is well"
    line = LineFormatter("{asctime} {levelname} {name} {message}{during}", style="{")
    for formatter in (line, JsonFormatter()):
        shown = formatted(formatter, forged)
        assert len(shown.splitlines()) == 1
        assert sign[0] not in shown
    with_error = formatted(line, "failed", ValueError(forged))
    assert all(text.startswith("  ") for text in with_error.split("\n")[1:])
    assert sign[0] not in with_error.replace("\n", "")


def test_lines_of_the_log_are_in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    record = logging.LogRecord("a", logging.INFO, "", 1, "text", (), None)
    record.created = 0.0
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert LineFormatter("{asctime} {message}", style="{").format(record).startswith("1970-01-01 00:00:00")
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_charts_cells_are_no_formulas() -> None:
    step = ChartStep("2026-01-01", (1,), ("@SUM(A1)",))
    chart = cast(Chart, SimpleNamespace(series=("=HYPERLINK(1)",), rows=(step,)))
    first, second = chart_csv(chart, "a").content.decode().splitlines()
    assert first == "day,'=HYPERLINK(1),marks"
    assert second == "2026-01-01,1,'@SUM(A1)"


@pytest.mark.parametrize("password", ["short", "password1234", "Schemadesk-2026", "mathilde.k-2026", "localhost 1234"])
def test_a_password_that_is_easy_to_guess_is_refused(db: None, password: str) -> None:
    with pytest.raises(ValidationError):
        validate_password(password, User(username="mathilde.k", email="mk@schemas.example"))


@pytest.mark.parametrize(
    "password", ["x" * 128 + " Ümläut 密碼", "correct horse battery", "schemadesk at eight in rain"]
)
def test_a_password_has_any_characters_and_length(db: None, password: str) -> None:
    user = User(username="mathilde.k")
    validate_password(password, user)
    user.set_password(password)
    assert user.check_password(password)
    assert not user.check_password(password[:-1])
    assert not user.check_password(password.upper())


def test_a_breached_password_is_refused(tmp_path: Path, settings: Any, db: None) -> None:
    breached = [f"a breached password {number}" for number in range(300)]
    hashes = sorted(hashlib.sha1(password.encode()).hexdigest().upper() for password in breached)
    for end in (":7\r\n", "\n"):
        for some in (hashes, hashes[:1], []):
            (tmp_path / "list").write_bytes(b"".join(f"{text}{end}".encode() for text in some))
            listed = [password for password in breached if is_listed(tmp_path / "list", password)]
            assert len(listed) == len(some)
            assert not is_listed(tmp_path / "list", "another password")
    settings.BREACHED_PASSWORDS = str(tmp_path / "list")
    (tmp_path / "list").write_text("\n".join(hashes))
    with pytest.raises(ValidationError, match="breach"):
        validate_password(breached[299])
    validate_password("another password")
