"""Kafka Connect's REST API: a connector's configuration and status, through the one HTTP client of ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from registry.access.egress import parse_connection
from registry.access.outgoing import Limits, OutgoingClient
from registry.drift.debezium.connector import ConnectorConfig, ConnectorStatus, read_config, read_status
from registry.errors import InvalidSource, RemoteUnavailable

LIMITS: Final = Limits(connect_seconds=5, read_seconds=10, total_seconds=30, max_bytes=2 * 1024 * 1024)
MAX_NAME: Final = 255


def read_connector(*, url: str, name: str, user: str = "", secret: str = "") -> tuple[ConnectorConfig, ConnectorStatus]:
    """The connector's typed configuration and its status.

    Raises InvalidInput and AddressRefused for the address, InvalidSecret, InvalidSource for a connector that isn't
    there or is of another kind, RemoteUnavailable where Kafka Connect doesn't answer as it should.
    """
    if not name or len(name) > MAX_NAME:
        raise InvalidSource(f"A connector's name has 1 to {MAX_NAME} characters.")
    connection = parse_connection(url, user=user, secret=secret)
    with OutgoingClient(connection, limits=LIMITS) as client:
        config = _object(client, name, "config")
        status = _object(client, name, "status")
    return read_config({"name": name, **config}), read_status(status)


def _object(client: OutgoingClient, name: str, what: str) -> Mapping[str, Any]:
    where = client.connection.netloc
    answer = client.call("GET", f"/connectors/{quote(name, safe='')}/{what}", headers={"Accept": "application/json"})
    if answer.status == 404:
        raise InvalidSource(
            f"Kafka Connect at {where} has no connector {name[:80]!r}. Check its name with /connectors."
        )
    if answer.status in (401, 403):
        raise RemoteUnavailable(
            f"Kafka Connect at {where} doesn't let us read {name[:80]!r} ({answer.status}): give a user and a secret.",
            status=answer.status,
        )
    if answer.status != 200:
        raise RemoteUnavailable(
            f"Kafka Connect at {where} answers {answer.status} for the {what} of {name[:80]!r}.", status=answer.status
        )
    found = answer.json(f"The {what} of {name[:80]!r} at {where}")
    if not isinstance(found, dict):
        raise RemoteUnavailable(f"The {what} of {name[:80]!r} at {where} is no JSON object.", status=answer.status)
    return found
