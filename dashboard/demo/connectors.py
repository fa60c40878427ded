"""The configuration of Debezium's PostgreSQL connector, and of the converters that write its events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Converter = Literal["json", "json_schema", "avro"]
CONVERTERS: tuple[Converter, ...] = ("json", "json_schema", "avro")


@dataclass(frozen=True)
class Login:
    """Where a PostgreSQL is and who reads its log there; `password` may be a reference to one of Connect's secrets."""

    port: int
    user: str
    password: str
    database: str
    host: str = "127.0.0.1"


def debezium(login: Login, *, prefix: str, publication: str, more: Mapping[str, str]) -> dict[str, str]:
    """The configuration of a PostgreSQL connector: topics `PREFIX.SCHEMA.TABLE`, a slot named as the prefix, truncates
    and messages too. The publication has to be there. `more` are further properties, which win."""
    return {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "plugin.name": "pgoutput",
        "database.hostname": login.host,
        "database.port": str(login.port),
        "database.user": login.user,
        "database.password": login.password,
        "database.dbname": login.database,
        "topic.prefix": prefix,
        "slot.name": slot_name(prefix),
        "publication.name": publication,
        "publication.autocreate.mode": "disabled",
        "snapshot.mode": "initial",
        # Truncates are left out by default.
        "skipped.operations": "none",
        "topic.creation.default.replication.factor": "1",
        "topic.creation.default.partitions": "1",
        "tasks.max": "1",
        **more,
    }


def slot_name(prefix: str) -> str:
    """The replication slot's name: PostgreSQL takes lower-case letters, digits and `_`."""
    return "".join(sign if sign.isascii() and sign.isalnum() else "_" for sign in prefix.lower())


def conversion(converter: Converter, *, endpoint: str = "", token: str = "") -> dict[str, str]:
    """How keys and values are written: `json`, `json_schema` (with a schema in each message), or `avro`, framed and
    registered through the Apicurio endpoint of dashboard.demo.apicurio_endpoint with this token."""
    if converter == "avro":
        settings = {
            "": "io.apicurio.registry.utils.converter.AvroConverter",
            ".apicurio.registry.url": endpoint,
            ".apicurio.registry.auto-register": "true",
            ".apicurio.registry.as-confluent": "true",
            ".apicurio.registry.headers.enabled": "false",
            ".apicurio.registry.use-id": "contentId",
        }
        if token:
            settings |= {".apicurio.auth.username": "token", ".apicurio.auth.password": token}
        names = {"schema.name.adjustment.mode": "avro", "field.name.adjustment.mode": "avro"}
    else:
        with_schema = "true" if converter == "json_schema" else "false"
        settings = {"": "org.apache.kafka.connect.json.JsonConverter", ".schemas.enable": with_schema}
        names = {}
    sides = {f"{side}.converter{name}": value for side in ("key", "value") for name, value in settings.items()}
    return sides | names
