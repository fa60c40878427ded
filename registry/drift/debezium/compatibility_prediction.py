"""Predicts what a table's next row does to a subject: it registers a version, is rejected, or changes nothing.

The next schema is the newest version with the fields of the row or key as in the catalog now, checked by the engine
that registrations use. What can't be predicted (a default whose value is unknown, an unknown type) is "not checked".
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

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
from registry.formats.report import ReportItem
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


Outcome = Literal["unchanged", "registered", "refused", "no_key", "no_schema", "no_event", "not_checked"]
_DEFAULT_CURE: Final = "make the column nullable, or give it a default"


@dataclass(frozen=True)
class NextSchema:
    """What the next row does to the subject of one side.

    `unchanged`: its schema is a version already. `registered`: it becomes one. `refused`: the level rejects it; `reason`
    is the first reason as sentences with the number of further ones, `reasons` has at most MAX_REASONS, `cure` is the
    first cure. `no_key`: its key is null. `no_schema`: its converter registers nothing. `no_event`: no changes arrive
    under the table's name. `not_checked`: `reason` says why.
    """

    outcome: Outcome
    reason: str = ""
    reasons: tuple[str, ...] = ()
    cure: str = ""
    schema: str = ""


class _CannotPredict(Exception):
    """A part of the next schema can't be predicted; the message says which."""


def predict_schema(
    registered: SchemaText, row: RowShape, guard: Guard, *, side: Side = "value", ignore: frozenset[str] = frozenset()
) -> NextSchema:
    """Return what the schema of the next row or key does to a subject with versions.

    `ignore` are fields that may be present or not: they stay unchanged.
    """
    texts = guard.history[-MAX_VERSIONS:]
    if registered.language != "AVRO":
        return NextSchema("not_checked", "only Avro schemas are predicted")
    if any(len(text) > MAX_TEXT for text in (registered.text, *texts)):
        return NextSchema("not_checked", f"a version has more than {MAX_TEXT:,} characters")
    try:
        document = read_json(registered.text)
        old = _fields_of(document, side)[1]
        _require_read(old, row)
        text = next_schema(registered.text, row, ignore, side=side, earlier=texts)
        is_same = text == json.dumps(document)  # of most tables; then no version is parsed
        outcome = NextSchema("unchanged") if is_same else _outcome(text, texts, guard)
        if outcome.outcome != "refused":
            _require_known(old, row, ignore)
    except (_CannotPredict, SchemadeskError, KeyError, TypeError) as error:
        return NextSchema("not_checked", str(error).rstrip(".") or type(error).__name__)
    return outcome


def _outcome(text: str, texts: Sequence[str], guard: Guard) -> NextSchema:
    engine = FORMATS["AVRO"]
    new: ParsedSchema = engine.parse(text)
    history = [(number, engine.parse(old_text)) for number, old_text in enumerate(texts, start=1)]
    if any(old.canonical == new.canonical for _, old in history):
        return NextSchema("unchanged")
    if guard.refusal:
        return NextSchema("refused", guard.refusal, cure="register the version first", schema=text)
    report = check(engine, new, history, guard.level)
    if not report.is_compatible:
        return _refusal([item for item in report.items if item.severity == "break"], text)
    if guard.mode != "READWRITE":
        return NextSchema("not_checked", f"the subject's mode is {guard.mode}")
    if guard.is_cut and guard.level.endswith("_TRANSITIVE"):
        return NextSchema("not_checked", "the subject has more versions than a prediction reads")
    return NextSchema("registered", schema=text)


def _refusal(breaks: Sequence[ReportItem], text: str) -> NextSchema:
    reasons = tuple(dict.fromkeys(item.message for item in breaks))
    reason = reasons[0].rstrip(".") if reasons else "the compatibility check fails"
    cure = next((item.remedy.rstrip(".") for item in breaks if item.remedy), _DEFAULT_CURE)
    more = len(reasons) - 1
    more_reasons = f" There {'is 1 more reason' if more == 1 else f'are {more:,} more reasons'}." if more > 0 else ""
    sentence = f"{reason[:1].upper()}{reason[1:]}.{more_reasons}"
    return NextSchema("refused", sentence, reasons[:MAX_REASONS], f"{cure[:1].lower()}{cure[1:]}", text)


def next_schema(
    text: str, row: RowShape, ignore: frozenset[str], *, side: Side = "value", earlier: Sequence[str] = ()
) -> str:
    """Return the Avro text of the next version: the registered one with the current fields of its row or key.

    A field that an earlier version has in the same shape is taken from there, so that an old schema is recognised.
    """
    document = copy.deepcopy(read_json(text))
    target, old = _fields_of(document, side)
    known = [old]
    if not all(_known_field(shape, known) for shape in row.fields.values()):
        known += [_fields_of(read_json(older), side)[1] for older in reversed(earlier) if older != text]
    fields = [_known_field(shape, known) or _field(shape) for shape in row.fields.values()]
    target["fields"] = fields + [field for name, (field, _) in old.items() if name in ignore]
    return json.dumps(document)


_Fields = dict[str, tuple[dict[str, Any], FieldShape]]


def _fields_of(document: Any, side: Side) -> tuple[dict[str, Any], _Fields]:
    """Return the record of the row or key, and its fields by name with their shapes."""
    reader = AvroReader(document)
    record = reader.record(document)
    if record is None:
        raise _CannotPredict("the registered schema is not a record")
    target = record if side == "key" else reader.envelope_row(record)
    if target is None:
        raise _CannotPredict("values have no envelope: a transform unwraps them, and may add fields of its own")
    shapes = reader.fields(target)
    return target, {field["name"]: (field, shape) for field, shape in zip(target["fields"], shapes, strict=True)}


def _known_field(shape: FieldShape, known: Sequence[_Fields]) -> dict[str, Any] | None:
    named = (fields[shape.name] for fields in known if shape.name in fields)
    return next((field for field, old in named if _same(shape, old)), None)


def _require_read(old: _Fields, row: RowShape) -> None:
    """Raise _CannotPredict for a change of a type that the connector may not read before the next row."""
    for name, shape in row.fields.items():
        if not shape.late or name not in old or not same_type(shape, old[name][1]):
            continue
        before = old[name][1]
        same = same_parameters(shape, before) if shape.late == "labels" else shape.optional == before.optional
        if not same:
            raise _CannotPredict(f"the {shape.late} of {name} changed with its type: the connector may read them later")


def _require_known(old: _Fields, row: RowShape, ignore: frozenset[str]) -> None:
    """Raise _CannotPredict for a field that only seems unchanged because a part of it is unknown."""
    for name, shape in row.fields.items():
        if shape.kind == "unknown":
            raise _CannotPredict(f"the type of {name} in the events is unknown")
        if shape.default is UNKNOWN_DEFAULT:
            raise _CannotPredict(f"the value in the schema of the default of {name} is unknown")
    if there := sorted(ignore & old.keys()):
        raise _CannotPredict(f"{there[0]} is generated: the connector may omit it")


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
            raise _CannotPredict(f"the value in the schema of the default of {shape.name} is unknown")
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
        raise _CannotPredict(f"the schema of {shape.name or 'an element'} ({shape.type_words}) is unknown")
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
