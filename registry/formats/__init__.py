"""Schema formats: text in, reports out; no Django, no network, no files.

`FORMATS` holds the engines by the registry's name of the format; `LENIENT` those for the compatibility policy of that
name, under which JSON Schema's content models may be closed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from registry.formats.avro import AVRO
from registry.formats.base import SchemaFormat
from registry.formats.json_schema import JSON_SCHEMA, JsonSchemaFormat
from registry.formats.protobuf import PROTOBUF

FORMATS: Final[Mapping[str, SchemaFormat]] = {engine.name: engine for engine in (AVRO, PROTOBUF, JSON_SCHEMA)}
LENIENT: Final[Mapping[str, SchemaFormat]] = {**FORMATS, JSON_SCHEMA.name: JsonSchemaFormat("lenient")}
