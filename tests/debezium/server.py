"""A Schemadesk over HTTP that lives as long as a connector needs it."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.services_plugin import as_owner


@contextmanager
def schemadesk_server(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """A Schemadesk over HTTP with registries of its own, and an admin's token; its rows are gone afterwards.

    Not pytest-django's `live_server`: that empties the database after each test, and a connector doesn't register
    again what it registered once.
    """
    from django.core.management import call_command
    from pytest_django.live_server_helper import LiveServer

    from dashboard.setup import make_registries
    from registry.access.roles import system_actor
    from registry.access.services import ensure_person, issue_token

    request.getfixturevalue("django_db_setup")
    with request.getfixturevalue("django_db_blocker").unblock():
        by = system_actor("tests", door="command")
        make_registries(by=by)
        ensure_person(username="admin", role="admin", by=by)
        server = LiveServer("127.0.0.1")
        try:
            yield server.url, issue_token(username="admin", name="connector", by=by)
        finally:
            server.stop()
            with as_owner():
                call_command("flush", verbosity=0, interactive=False)


def ask(url: str, token: str, method: str, path: str, content: dict[str, Any] | None = None) -> Any:
    """What the server answers to a call. Raises HTTPError where it refuses."""
    data = json.dumps(content).encode() if content else None
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(url + path, data, headers, method=method)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=120) as answer:
        return json.load(answer)
