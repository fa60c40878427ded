"""A server of ours on loopback for clients of other languages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.handlers.wsgi import WSGIHandler
from django.core.servers.basehttp import WSGIRequestHandler
from django.core.signals import request_started

from registry.api.request_reading import raw_path
from tests.clients.programs import LANGUAGES
from tests.clients.serving import Program, Server, available


@pytest.fixture
def server(
    live_server: Any, registries: None, token: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Server]:
    """Our server, whose registry is empty; it sees the raw request target, as behind the production server."""
    environ = WSGIRequestHandler.get_environ

    def with_target(self: WSGIRequestHandler) -> dict[str, Any]:
        return {**environ(self), "RAW_URI": self.path}

    monkeypatch.setattr(WSGIRequestHandler, "get_environ", with_target)
    found = Server(live_server.url, token)

    def note(sender: type[WSGIHandler], environ: dict[str, Any], **rest: Any) -> None:
        found.asked.append(f"{environ['REQUEST_METHOD']} {raw_path(environ)}")

    request_started.connect(note)
    yield found
    request_started.disconnect(note)


@pytest.fixture(params=sorted(LANGUAGES))
def program(request: pytest.FixtureRequest, server: Server) -> Program:
    """Each program whose toolchain is here. The others are skipped, or fail where they are required."""
    return available(request.param, server)


@pytest.fixture
def node(server: Server) -> Program:
    """The npm client's program."""
    return available("node", server)


@pytest.fixture
def go(server: Server) -> Program:
    """The Go client's program."""
    return available("go", server)


@pytest.fixture
def rust(server: Server) -> Program:
    """The Rust client's program."""
    return available("rust", server)
