"""What the configurations of connectors say of schemas: read from Kafka Connect, four settings alone, never a secret."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from registry.access.egress import parse_connection
from registry.access.outgoing import Limits, OutgoingClient
from registry.drift.judge.registry_facts import ConnectorSettings
from registry.drift.models import Connector
from registry.errors import RemoteUnavailable, SchemadeskError
from registry.subjects.models import Registry

LIMITS: Final = Limits(connect_seconds=3, read_seconds=5, total_seconds=10, max_bytes=2 * 1024 * 1024)
MAX_CONNECTORS: Final = 50
#: converters that speak to a registry register by themselves unless told otherwise (Confluent's serializers)
_DEFAULTS: Final = {"auto.register.schemas": "true", "use.latest.version": "false"}
_REGISTERING: Final = ("avro", "protobuf", "jsonschema")


def connector_settings(registry: Registry) -> tuple[tuple[ConnectorSettings, ...], tuple[str, ...]]:
    """The settings of the connectors that are sources of the registry, and the names of those that can't be read."""
    found, unknown = [], []
    rows = Connector.objects.filter(source__registry=registry).order_by("name")[:MAX_CONNECTORS]
    for row in rows:
        try:
            found.append(ConnectorSettings(row.name, settings_of(_config(row))))
        except SchemadeskError:  # the checklist says that it isn't known; the connector's own source says why
            unknown.append(row.name)
    return tuple(found), tuple(unknown)


def settings_of(config: Mapping[str, Any]) -> dict[str, str | None]:
    """The settings by name; None where the side's converter is the worker's, or is none that knows a registry."""
    settings: dict[str, str | None] = {}
    for side in ("key", "value"):
        converter = str(config.get(f"{side}.converter", "")).lower()
        speaks = any(part in converter for part in _REGISTERING)
        for name, default in _DEFAULTS.items():
            setting = f"{side}.converter.{name}"
            settings[setting] = str(config.get(setting, default))[:100] if speaks else None
    return settings


def _config(row: Connector) -> Mapping[str, Any]:
    connection = parse_connection(row.connect_url, user=row.connect_user, secret=row.connect_secret)
    with OutgoingClient(connection, limits=LIMITS) as client:
        answer = client.call("GET", f"/connectors/{quote(row.name, safe='')}/config")
    config = answer.json(f"The configuration of {row.name[:80]!r}") if answer.status == 200 else None
    if not isinstance(config, dict):
        raise RemoteUnavailable(
            f"Kafka Connect at {connection.netloc} answers {answer.status} for the configuration of {row.name[:80]!r}.",
            status=answer.status,
        )
    return config
