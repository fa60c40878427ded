"""Generated schemas to measure with: as many fields as wanted, of the kinds that people use, and later versions of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

#: the text of a version with so many fields; each version widens one field more and adds an optional one
Generator = Callable[[int, int], str]

_AVRO_TYPES: Final[tuple[Any, ...]] = (
    "string",
    "long",
    ["null", "string"],
    {"type": "array", "items": "string"},
    {"type": "int", "logicalType": "date"},
    {"type": "map", "values": "double"},
    "boolean",
)
_JSON_TYPES: Final[tuple[Any, ...]] = (
    {"type": "string", "maxLength": 200},
    {"type": "integer", "minimum": 0},
    {"type": ["null", "string"]},
    {"type": "array", "items": {"type": "string"}},
    {"type": "string", "format": "date"},
    {"type": "object", "additionalProperties": {"type": "number"}},
    {"type": "boolean"},
)
_PROTO_TYPES: Final = ("string", "int64", "optional string", "repeated string", "int32", "map<string, double>", "bool")


def _avro(fields: int, version: int) -> str:
    rows: list[dict[str, Any]] = []
    for number in range(fields):
        type_ = _AVRO_TYPES[number % len(_AVRO_TYPES)]
        if type_ == "long" and number >= version:
            type_ = "int"
        rows.append({"name": f"field_{number}", "type": type_, "doc": f"The field number {number}."})
        if isinstance(type_, list):
            rows[-1]["default"] = None
    rows += [{"name": f"added_{number}", "type": ["null", "string"], "default": None} for number in range(version)]
    return json.dumps({"type": "record", "name": "Order", "namespace": "bench", "fields": rows})


def _json(fields: int, version: int) -> str:
    properties: dict[str, Any] = {}
    for number in range(fields):
        type_ = _JSON_TYPES[number % len(_JSON_TYPES)]
        if "maxLength" in type_ and number < version:
            type_ = {**type_, "maxLength": 300}
        properties[f"field_{number}"] = type_
    properties |= {f"added_{number}": {"type": "string"} for number in range(version)}
    return json.dumps(
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "title": "Order",
            "type": "object",
            "properties": properties,
            "required": [f"field_{number}" for number in range(0, fields, 3)],
            "additionalProperties": False,
        }
    )


def _protobuf(fields: int, version: int) -> str:
    rows = []
    for number in range(fields):
        type_ = _PROTO_TYPES[number % len(_PROTO_TYPES)]
        if type_ == "int64" and number >= version:
            type_ = "int32"
        rows.append(f"  {type_} field_{number} = {number + 1};")
    rows += [f"  string added_{number} = {fields + number + 1};" for number in range(version)]
    return "\n".join(['syntax = "proto3";', "package bench;", "message Order {", *rows, "}", ""])


GENERATORS: Final[Mapping[str, Generator]] = {"AVRO": _avro, "PROTOBUF": _protobuf, "JSON": _json}
