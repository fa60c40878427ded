"""Why a reader refuses a datum: the place and keyword that fail, as a finding with its witness."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import jsonschema_rs

from registry.formats.base import Incompatibility, Witness
from registry.formats.json_schema.model import Model, Place
from registry.formats.json_schema.paths import root_path
from registry.formats.json_schema.resources import MISSING, value_at
from registry.formats.json_schema.rules import RULES
from registry.formats.json_schema.text import compact
from registry.formats.json_schema.validators import plain
from registry.formats.json_schema.values import to_plain
from registry.formats.pointer import escape, join

_ENGINE_FAILURES: Final = (
    jsonschema_rs.ValidationErrorKind.BacktrackLimitExceeded,
    jsonschema_rs.ValidationErrorKind.RegexEngineFailure,
)
_NAME: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]{0,99}")
_MAX_REFUSALS: Final = 20


@dataclass(frozen=True, slots=True)
class Refusal:
    """One error of a validator: where in the datum, where in the schema (of the bundle), and what it says."""

    instance_path: tuple[str | int, ...]
    schema_path: tuple[str | int, ...]
    message: str
    keyword: str
    expected: Any

    @property
    def key(self) -> tuple[str, str]:
        """What makes two refusals the same finding: the keyword in the schema, and the place without indexes."""
        place = "/".join("#" if isinstance(token, int) else str(token) for token in self.instance_path)
        return "/".join(map(str, self.schema_path)), place + (self.message if self.keyword == "required" else "")


def refusals_of(validator: jsonschema_rs.Validator, datum: Any) -> list[Refusal]:
    """The errors of a datum; none where the pattern engine gave up, as that proves nothing."""
    found = []
    for error in validator.iter_errors(datum):
        if isinstance(error.kind, _ENGINE_FAILURES):
            return []
        found.append(
            Refusal(
                tuple(error.instance_path), tuple(error.schema_path), plain(error), error.kind.name, error.kind.value
            )
        )
        if len(found) >= _MAX_REFUSALS:
            break
    return found


def witness_of(datum: Any, message: str, reason: str = "") -> Witness:
    """The proof: the datum, its JSON bytes in hexadecimal, the validator's message, and what is special about it."""
    return Witness(True, to_plain(datum), compact(datum).encode().hex(), message, reason)


def finding_of(refusal: Refusal, reader: Model, writer: Model, witness: Witness) -> Incompatibility:
    """A refusal as a finding: pointers into both schemas, the path in the datum, and the witness."""
    rule = RULES["DATUM_REFUSED"]
    place = reader_place(reader, refusal.schema_path)
    theirs = place_of_instance(writer, refusal.instance_path)
    path = data_path(reader, refusal.instance_path)
    ours = value_at(reader.documents[place.document].value, place.pointer)
    before = value_at(writer.documents[theirs.document].value, join(theirs.pointer, refusal.keyword))
    names = {"path": path, "name": refusal.message, "reader": "", "writer": ""}
    return Incompatibility(
        rule=rule.id,
        kind=rule.kind,
        reader_pointer=place.pointer,
        writer_pointer=theirs.pointer,
        path=path,
        before=None if before is MISSING else to_plain(before),
        after=None if ours is MISSING else to_plain(ours),
        message=f"{path}: {rule.sentence.format_map(names)}",
        severity=rule.severity,
        location="#/" + place.pointer.removeprefix("/"),
        detail=refusal.keyword,
        why=rule.why,
        remedy_in_reader=rule.in_reader.format_map(names),
        remedy_in_writer=rule.in_writer.format_map(names),
        reader_source=reader.source(place),
        writer_source=writer.source(theirs),
        witness=witness,
    )


def reader_place(model: Model, schema_path: Iterable[str | int]) -> Place:
    """The place in the schema's documents of a path in its bundle: definitions lead to where they were written."""
    here = Place(0, "")
    tokens = list(schema_path)
    position = 0
    if model.bundle.value == {} or isinstance(model.bundle.value, bool):
        return here
    while position < len(tokens):
        token = str(tokens[position])
        if token in ("definitions", "$defs") and position + 1 < len(tokens):
            origin = model.bundle.origins.get(str(tokens[position + 1]))
            if origin is not None:
                here, position = origin, position + 2
                continue
        here, is_done = _further(model, here, token)
        if is_done:
            break
        position += 1
    return here


def _further(model: Model, here: Place, key: str) -> tuple[Place, bool]:
    """One token further: into the schema, or behind its reference; True where the text has no such place."""
    for _ in range(100):
        pointer = f"{here.pointer}/{escape(key)}"
        target = model.targets.get(Place(here.document, join(here.pointer, "$ref")))
        if value_at(model.documents[here.document].value, pointer) is not MISSING and key != "$ref":
            return Place(here.document, pointer), False
        if not isinstance(target, Place):
            return here, True
        here = target
        if key == "$ref":
            return here, False
    return here, True


def place_of_instance(model: Model, instance_path: Iterable[str | int]) -> Place:
    """The nearest place of a schema that describes a part of a datum, going by properties and items alone."""
    here = Place(0, "")
    for token in instance_path:
        here = _behind(model, here)
        names = ("properties", "additionalProperties") if isinstance(token, str) else ("prefixItems", "items")
        value = value_at(model.documents[here.document].value, here.pointer)
        if not isinstance(value, dict):
            break
        held = value.get(names[0]) if names[0] in value else value.get("items") if isinstance(token, int) else None
        if isinstance(held, dict) and isinstance(token, str) and token in held:
            here = Place(here.document, join(here.pointer, names[0], token))
        elif isinstance(held, list) and isinstance(token, int) and token < len(held):
            here = Place(here.document, join(here.pointer, "prefixItems" if "prefixItems" in value else "items", token))
        elif isinstance(value.get(names[1]), (dict, bool)):
            here = Place(here.document, join(here.pointer, names[1]))
        else:
            break
    return here


def _behind(model: Model, here: Place) -> Place:
    for _ in range(100):
        target = model.targets.get(Place(here.document, join(here.pointer, "$ref")))
        if not isinstance(target, Place):
            break
        here = target
    return here


def data_path(model: Model, instance_path: Iterable[str | int]) -> str:
    """The path in a datum for people: `Order.items[].price`."""
    path = root_path(model)
    for token in instance_path:
        if isinstance(token, int):
            path += "[]"
        else:
            path += f".{token}" if _NAME.fullmatch(token) else f"[{compact(token)}]"
    return path


def distinct(found: Iterable[Incompatibility]) -> tuple[Incompatibility, ...]:
    """Findings without those that a recursive schema repeats further down, the shallowest first."""
    kept: list[Incompatibility] = []
    for item in sorted(found, key=lambda item: item.path.count(".") + item.path.count("[]")):
        tail = item.path.partition(".")[2]
        is_repeated = any(
            item.reader_pointer == other.reader_pointer
            and item.path != other.path
            and tail.endswith(other.path.partition(".")[2])
            for other in kept
        )
        if not is_repeated:
            kept.append(item)
    return tuple(kept)
