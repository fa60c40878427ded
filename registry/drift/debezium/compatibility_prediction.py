"""Predicts whether a subject's compatibility level will reject the schema of a table's next row.

The next schema is the newest version with the row's fields as in the catalog now, checked by the engine that
registrations use. If it can't be predicted (a default that is an expression, an unknown type), there is no prediction.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from registry.drift.debezium.columns import (
    UNKNOWN_DEFAULT,
    FieldShape,
    RowShape,
    Unset,
    same_default,
    same_parameters,
    same_type,
)
from registry.drift.debezium.facts import Guard
from registry.drift.debezium.row_schemas import AvroReader, SchemaText
from registry.errors import SchemadeskError
from registry.formats import FORMATS
from registry.formats.avro.json_reader import read_json
from registry.formats.base import ParsedSchema
from registry.formats.compatibility import check
from registry.observations import Side

MAX_TEXT: Final = 200_000
MAX_VERSIONS: Final = 50
MAX_REASONS: Final = 20

_TYPES: Final = {
    "int8": "int",
    "int16": "int",
    "int32": "int",
    "int64": "long",
    "float32": "float",
    "float64": "double",
    "boolean": "boolean",
    "string": "string",
    "bytes": "bytes",
}


@dataclass(frozen=True)
class PredictedRefusal:
    """Why the level will reject the next schema.

    `reason` is the first reason as sentences with the number of further ones; `reasons` has at most MAX_REASONS; `cure`
    is the first cure.
    """

    reason: str
    reasons: tuple[str, ...]
    cure: str
    schema: str


class _CannotPredict(Exception):
    """A part of the next schema can't be predicted."""


def predict_refusal(
    registered: SchemaText, row: RowShape, guard: Guard, *, side: Side = "value", ignore: frozenset[str] = frozenset()
) -> PredictedRefusal | None:
    """Return the expected rejection of the schema of the next row or key; None if it passes or can't be predicted.

    `ignore` are fields that may be present or not: they stay unchanged.
    """
    texts = guard.history[-MAX_VERSIONS:]
    if registered.language != "AVRO" or not texts or any(len(text) > MAX_TEXT for text in (registered.text, *texts)):
        return None
    engine = FORMATS["AVRO"]
    try:
        text = next_schema(registered.text, row, ignore, side=side)
        new: ParsedSchema = engine.parse(text)
        history = [(number, engine.parse(old_text)) for number, old_text in enumerate(texts, start=1)]
        report = check(engine, new, history, guard.level)
    except (_CannotPredict, SchemadeskError, KeyError, TypeError):
        return None
    if report.is_compatible:
        return None
    breaks = [item for item in report.items if item.severity == "break"]
    reasons = tuple(dict.fromkeys(item.message for item in breaks))
    reason = reasons[0].rstrip(".") if reasons else "the compatibility check fails"
    cure = next(
        (item.remedy.rstrip(".") for item in breaks if item.remedy), "make the column nullable, or give it a default"
    )
    more = len(reasons) - 1
    more_reasons = f" There {'is 1 more reason' if more == 1 else f'are {more:,} more reasons'}." if more > 0 else ""
    return PredictedRefusal(
        f"{reason[:1].upper()}{reason[1:]}.{more_reasons}", reasons[:MAX_REASONS], f"{cure[:1].lower()}{cure[1:]}", text
    )


def next_schema(text: str, row: RowShape, ignore: frozenset[str], *, side: Side = "value") -> str:
    """Return the Avro text of the next version: the registered one with the current fields of its row or key."""
    document = copy.deepcopy(read_json(text))
    reader = AvroReader(document)
    record = reader.record(document)
    if record is None:
        raise _CannotPredict
    target = record if side == "key" else reader.envelope_row(record)
    # A value without an envelope was unwrapped by a transform, which may have added its own fields.
    if target is None:
        raise _CannotPredict
    old = {field["name"]: (field, shape) for field, shape in zip(target["fields"], reader.fields(target), strict=True)}
    fields = []
    for name, shape in row.fields.items():
        registered = old.get(name)
        fields.append(registered[0] if registered and _same(shape, registered[1]) else _field(shape))
    target["fields"] = fields + [field for name, (field, _) in old.items() if name in ignore]
    return json.dumps(document)


def _same(one: FieldShape, other: FieldShape) -> bool:
    return (
        same_type(one, other)
        and same_parameters(one, other)
        and same_default(one, other)
        and one.optional == other.optional
    )


def _field(shape: FieldShape) -> dict[str, Any]:
    """Return a field as Connect's Avro converter writes it."""
    has_default = not isinstance(shape.default, Unset)
    kind = _type(shape, {"connect.default": _plain(shape)} if has_default else {})
    if not shape.optional:
        if shape.default is UNKNOWN_DEFAULT:
            raise _CannotPredict
        return {"name": shape.name, "type": kind, **({"default": _plain(shape)} if has_default else {})}
    if has_default:
        return {"name": shape.name, "type": [kind, "null"], "default": _plain(shape)}
    return {"name": shape.name, "type": ["null", kind], "default": None}


def _plain(shape: FieldShape) -> Any:
    """Return the default as JSON: integers without a point for integer types."""
    value = shape.default
    return int(value) if isinstance(value, float) and shape.kind.startswith("int") else value


def _type(shape: FieldShape, more: Mapping[str, Any]) -> Any:
    if shape.kind == "array" and shape.items is not None:
        inner = _type(shape.items, {})
        return {"type": "array", "items": ["null", inner] if shape.items.optional else inner}
    if shape.kind not in _TYPES:
        raise _CannotPredict
    avro_type: dict[str, Any] = {"type": _TYPES[shape.kind], **more}
    if shape.kind in ("int8", "int16"):
        avro_type["connect.type"] = shape.kind
    if shape.parameters:
        avro_type["connect.parameters"] = dict(shape.parameters)
    if shape.logical:
        avro_type["connect.name"] = shape.logical
    if shape.logical == "org.apache.kafka.connect.data.Decimal":
        precision = int(shape.parameters.get("connect.decimal.precision", "64"))
        avro_type |= {"logicalType": "decimal", "scale": int(shape.parameters["scale"]), "precision": precision}
    return avro_type if len(avro_type) > 1 else avro_type["type"]
