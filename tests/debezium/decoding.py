"""Keys and values of events as Python data, in each of the three ways to write them."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import fastavro

from dashboard.demo.connectors import Converter


def decoded(data: bytes | None, converter: Converter, schemas: Mapping[int, Mapping[str, Any]]) -> Any:
    """What a key or value says, without its schema; None for no bytes at all."""
    if data is None:
        return None
    if converter == "avro":
        assert data[0] == 0
        schema = fastavro.parse_schema(json.loads(schemas[schema_id(data)]["schema"]))
        body = io.BytesIO(data[5:])
        found = fastavro.schemaless_reader(body, schema, None)
        assert body.read() == b""
        return found
    found = json.loads(data)
    if converter == "json_schema":
        assert set(found) == {"schema", "payload"}
        return found["payload"]
    return found


def schema_id(data: bytes) -> int:
    """The number in the framing."""
    return int.from_bytes(data[1:5], "big")
