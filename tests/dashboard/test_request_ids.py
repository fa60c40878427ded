"""A request that fails can be found in the log: its id is on the page, in the response and in the log's lines."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory

from dashboard.request_ids import JsonFormatter, LineFormatter, RequestIdMiddleware, request_id

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-2")]


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the log gets, as JSON."""
    kept: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            kept.append(JsonFormatter().format(record))

    handler = Keep()
    logging.getLogger().addHandler(handler)
    monkeypatch.setattr("dashboard.home.views.home_page", fail)
    monkeypatch.setattr("registry.api.product.registries.registries_for", fail)
    yield kept  # type: ignore[misc]
    logging.getLogger().removeHandler(handler)


def fail(*_: Any) -> None:
    raise RuntimeError("a defect\nwith two lines")


@pytest.mark.parametrize("path", ["/ui/", "/api/v1/registries"])
def test_a_failure_has_the_same_id_in_response_page_and_log(
    look: Callable[[str], Client], api: Callable[[str], Client], lines: list[str], path: str
) -> None:
    client = look("reader") if path.startswith("/ui") else api("reader")
    client.raise_request_exception = False
    response = client.get(path)
    number = response["X-Request-ID"]
    assert response.status_code == 500
    assert re.fullmatch("[0-9a-f]{16}", number)
    if path.startswith("/ui"):
        assert number in response.content.decode()
    logged = [json.loads(line) for line in lines]
    (failure,) = [line for line in logged if "RuntimeError" in line.get("exception", "")]
    assert (failure["request_id"], failure["level"]) == (number, "ERROR")
    assert request_id() == "", "nothing is left for the thread's next request"


@pytest.mark.parametrize("path", ["/ui/nowhere", "/api/v1/nowhere"])
def test_a_refused_request_has_its_id_in_the_log(look: Callable[[str], Client], lines: list[str], path: str) -> None:
    look("reader").get(path, headers={"X-Request-ID": "of-the-proxy-1"})
    (refused,) = [json.loads(line) for line in lines if f"Not Found: {path}" in line]
    assert refused["request_id"] == "of-the-proxy-1"


@pytest.mark.parametrize(
    ("sent", "is_taken"),
    [
        ("01HX-abc.def:7/x+y=", True),
        ("short", False),
        ("a" * 129, False),
        ("forged\nline of log", False),
        ("x" * 8 + "ä", False),
        ("", False),
    ],
)
def test_a_proxys_id_is_taken_unless_it_could_forge_a_line(sent: str, is_taken: bool) -> None:
    seen = []

    def answer(request: HttpRequest) -> HttpResponse:
        seen.append(request_id())
        return HttpResponse(status=503)

    response = RequestIdMiddleware(answer)(RequestFactory().get("/", headers={"X-Request-ID": sent}))
    assert (response["X-Request-ID"] == sent) == is_taken
    assert seen == [response["X-Request-ID"]]


def test_answers_that_may_be_kept_have_no_id(look: Callable[[str], Client]) -> None:
    assert "X-Request-ID" not in look("reader").get("/ui/queries").headers


def test_lines_name_the_request_only_inside_of_one() -> None:
    record = logging.LogRecord("a.b", logging.WARNING, "f", 1, "said %s", ("it",), None)
    formatter = LineFormatter("{levelname} {name} {message}{during}", style="{")
    assert formatter.format(record) == "WARNING a.b said it"
    inside = []
    RequestIdMiddleware(lambda _: HttpResponse(inside.append(formatter.format(record)) or ""))(
        RequestFactory().get("/", headers={"X-Request-ID": "12345678"})
    )
    assert inside == ["WARNING a.b said it [request 12345678]"]
    assert json.loads(JsonFormatter().format(record)).keys() == {"time", "level", "logger", "message"}
