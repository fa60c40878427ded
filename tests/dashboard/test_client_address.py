"""Whose address counts behind proxies: the setting, the header's end, and a real proxy before the real web server."""

from __future__ import annotations

import http.client
import http.server
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from dashboard.client_address import TrustedProxies
from registry.access.models import ApiToken
from registry.access.roles import Actor
from registry.audit.models import AuditEvent
from tests.conftest import RawClient

#: the setting, the connection's address, X-Forwarded-For → whose request it is
CLIENTS: tuple[tuple[str, str, str, str], ...] = (
    ("", "10.0.0.1", "203.0.113.9", "10.0.0.1"),
    ("10.0.0.1", "10.0.0.1", "", "10.0.0.1"),
    ("10.0.0.1", "10.0.0.1", "203.0.113.9", "203.0.113.9"),
    ("10.0.0.1", "10.0.0.2", "203.0.113.9", "10.0.0.2"),
    ("10.0.0.0/8, ::1", "10.0.0.1", "198.51.100.1, 203.0.113.9, 10.7.7.7", "203.0.113.9"),
    ("10.0.0.0/8", "10.0.0.1", "10.3.3.3, 10.7.7.7", "10.3.3.3"),
    ("10.0.0.0/8", "::ffff:10.0.0.1", "203.0.113.9", "203.0.113.9"),
    ("::1", "::1", "2001:db8::7", "2001:db8::7"),
    ("::1", "::1", "[2001:db8::7]:443", "2001:db8::7"),
    ("::1", "::1", "203.0.113.9:5000", "203.0.113.9"),
    ("10.0.0.0/8", "10.0.0.1", "203.0.113.9, unknown, 10.7.7.7", "10.7.7.7"),
    ("10.0.0.0/8", "10.0.0.1", "<script>, 10.7.7.7", "10.7.7.7"),
    ("10.0.0.0/8", "10.0.0.1", ",".join(["10.7.7.7"] * 10_000), "10.7.7.7"),
    ("1", "192.0.2.1", "198.51.100.1, 203.0.113.9", "203.0.113.9"),
    ("2", "192.0.2.1", "198.51.100.1, 203.0.113.9, 10.7.7.7", "203.0.113.9"),
    ("2", "192.0.2.1", "203.0.113.9", "203.0.113.9"),
    ("0", "192.0.2.1", "203.0.113.9", "192.0.2.1"),
)


@pytest.mark.parametrize(("setting", "connection", "header", "expected"), CLIENTS)
def test_the_address_is_the_last_that_no_trusted_proxy_has(
    setting: str, connection: str, header: str, expected: str
) -> None:
    assert TrustedProxies.parse(setting).client_of(connection, header) == expected


@pytest.mark.parametrize("setting", ["10.0.0.1/8", "proxy.example", "17", "-1", "10.0.0.0/8,1", "1000000000000"])
def test_a_setting_that_means_nothing_is_refused(setting: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="SCHEMADESK_TRUSTED_PROXIES"):
        TrustedProxies.parse(setting)


class Proxy(http.server.BaseHTTPRequestHandler):
    """Hands requests on and adds, as proxies do, whom it has them from; it says who that is itself."""

    upstream: str
    as_from: str

    def do_GET(self) -> None:
        self._hand_on()

    def do_PUT(self) -> None:
        self._hand_on()

    def _hand_on(self) -> None:
        host, _, port = self.upstream.rpartition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=30)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        before = self.headers.get("X-Forwarded-For")
        headers = {name: value for name, value in self.headers.items() if not name.lower().startswith("x-forwarded")}
        headers["X-Forwarded-For"] = f"{before}, {self.as_from}" if before else self.as_from
        headers["X-Forwarded-Proto"] = "https"
        connection.request(self.command, self.path, body, headers)
        response = connection.getresponse()
        data = response.read()
        self.send_response(response.status)
        for name, value in response.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length", "date", "server"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing."""


@pytest.fixture
def proxy(live_server: Any) -> Iterator[Callable[[str], str]]:
    """Starts a proxy whose clients have the given address; its own address."""
    running = []

    def start(as_from: str) -> str:
        handler = type("This", (Proxy,), {"upstream": live_server.url.removeprefix("http://"), "as_from": as_from})
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        running.append(server)
        return f"127.0.0.1:{server.server_port}"

    yield start
    for server in running:
        server.shutdown()
        server.server_close()


def call(address: str, path: str, token: str, method: str = "GET", body: str = "", **headers: str) -> int:
    connection = http.client.HTTPConnection(address, timeout=30)
    sent = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", **headers}
    connection.request(method, path, body or None, sent)
    return connection.getresponse().status


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("setting", "expected"), [("127.0.0.1", "203.0.113.9"), ("1", "203.0.113.9"), ("", "127.0.0.1")]
)
def test_the_audit_and_the_token_name_the_person_behind_a_real_proxy(
    proxy: Callable[[str], str],
    registries: None,
    token: Callable[[str], str],
    settings: Any,
    setting: str,
    expected: str,
) -> None:
    settings.TRUSTED_PROXIES = TrustedProxies.parse(setting)
    address, secret = proxy("203.0.113.9"), token("admin")
    invented = {"X-Forwarded-For": "198.51.100.1, 127.0.0.1"}
    assert call(address, "/config", secret, "PUT", '{"compatibility": "FULL"}', **invented) == 200
    event = AuditEvent.objects.filter(channel="confluent").latest("id")
    assert expected in event.origin and "198.51.100.1" not in event.origin
    used = ApiToken.objects.latest("pk")
    assert used.last_used_from == expected


@pytest.mark.django_db
@pytest.mark.parametrize(("setting", "scheme"), [("10.0.0.1", "https"), ("", "http")])
def test_the_scheme_is_the_clients_where_a_trusted_proxy_says_so(settings: Any, setting: str, scheme: str) -> None:
    settings.TRUSTED_PROXIES = TrustedProxies.parse(setting)
    client: Client = RawClient(
        REMOTE_ADDR="10.0.0.1", headers={"x-forwarded-proto": "https", "x-forwarded-for": "1.1.1.1"}
    )
    response = client.get("/healthz")
    assert response.wsgi_request.scheme == scheme


@pytest.mark.django_db
def test_metrics_stay_closed_to_whoever_comes_through_a_proxy_on_this_machine(
    settings: Any, person: Callable[[str], Actor]
) -> None:
    for setting in ("", "127.0.0.1"):
        settings.TRUSTED_PROXIES = TrustedProxies.parse(setting)
        for header in ("203.0.113.9", "127.0.0.1", "", "x"):
            client = RawClient(REMOTE_ADDR="127.0.0.1", headers={"x-forwarded-for": header})
            assert client.get("/metrics").status_code == 401, (setting, header)
    assert RawClient(REMOTE_ADDR="127.0.0.1").get("/metrics").status_code == 200
