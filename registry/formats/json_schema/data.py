"""Data of a schema: an example, and what a reader makes of a writer's datum."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import jsonschema_rs

from registry.errors import InvalidDatum
from registry.formats.base import FieldOutcome, Resolution
from registry.formats.json_schema.bundle import bundle_with_formats, modern_bundle
from registry.formats.json_schema.instances import Instances
from registry.formats.json_schema.model import Bundle, Model, Place
from registry.formats.json_schema.outline import behind
from registry.formats.json_schema.paths import root_path
from registry.formats.json_schema.refusals import data_path, refusals_of
from registry.formats.json_schema.text import compact
from registry.formats.json_schema.unfolding import MAX_UNFOLDED, unfolded
from registry.formats.json_schema.validators import keeps_formats, plain, validator_of
from registry.formats.json_schema.values import to_plain
from registry.formats.pointer import join

MAX_DEPTH: Final = 150
MAX_VALUES: Final = 100_000
MAX_FIELDS: Final = 2_000
_TRIES: Final = 600
_ENOUGH: Final = 60
_NOT_FILLED: Final = "absent: a default is an annotation, it isn't filled in"


def example_of(model: Model) -> Any:
    """A datum that is valid under the schema, as full as is easily found; raises InvalidDatum where none is found."""
    validator = validator_for(model)
    root = model.root if isinstance(model.root, dict) else {}
    listed = [*root.get("examples", ())] if isinstance(root.get("examples"), list) else []
    listed += [root["default"]] if "default" in root else []
    for value in listed:
        if is_valid(validator, value):
            return to_plain(value)
    found = [item for item in _instances(bundle_with_formats(model)) if is_valid(validator, item)]
    keeping = [item for item in found if keeps_formats(model, item)][:_ENOUGH]
    found = keeping or found or [item for item in _instances(modern_bundle(model)) if is_valid(validator, item)]
    if not found:
        raise InvalidDatum("no datum of the schema was found: it may allow none")
    return to_plain(max(found[:_ENOUGH], key=_fullness))


def _instances(bundle: Bundle) -> Iterator[Any]:
    """Values to try, the fullest first."""
    instances = Instances(
        bundle.value, True, lambda _value, _schema: True, lambda _value, _schema: False, is_full_first=True
    )
    return islice(instances.candidates(), _TRIES)


def resolve_datum(reader: Model, writer: Model, datum: Any) -> Resolution:
    """What the reader makes of a datum: JSON stays as it is, or is refused; raises InvalidDatum."""
    check_datum(datum)
    refused = next(iter(refusals_of(validator_for(writer), datum)), None)
    if refused is not None or not validator_for(writer).is_valid(datum):
        where = data_path(writer, refused.instance_path) if refused is not None else root_path(writer)
        why = refused.message if refused is not None else "a pattern of the schema takes too long"
        raise InvalidDatum(f"the datum isn't one of the writer's schema, at {where}: {why}")
    encoded = compact(datum).encode().hex()
    errors = refusals_of(validator_for(reader), datum)
    if errors or not validator_for(reader).is_valid(datum):
        message = "; ".join(f"{data_path(reader, error.instance_path)}: {error.message}" for error in errors[:10])
        return Resolution(to_plain(datum), encoded, error=message or "a pattern of the reader takes too long")
    fields = tuple(islice(_fields(reader, Place(0, ""), datum, root_path(reader), 0), MAX_FIELDS))
    return Resolution(to_plain(datum), encoded, to_plain(datum), fields)


def validator_for(model: Model) -> jsonschema_rs.Validator:
    """The validator of a schema. Raises InvalidDatum where data can't be validated in bounded time, or not exactly."""
    if model.bundle.inexact:
        raise InvalidDatum(f"data can't be validated under this schema: {model.bundle.inexact}")
    if unfolded(modern_bundle(model).value) > MAX_UNFOLDED:
        raise InvalidDatum(f"data can't be validated: one value may take more than {MAX_UNFOLDED:,} steps")
    try:
        return validator_of(model)
    except ValueError as error:
        raise InvalidDatum(f"data can't be validated under this schema: {plain(error)}") from None


def is_valid(validator: jsonschema_rs.Validator, value: Any) -> bool:
    """Whether the value is valid; not where the validator gives up."""
    try:
        return validator.is_valid(value)
    except ValueError:
        return False


def _fullness(value: Any) -> int:
    """How many properties and items a datum has, arrays of more than two items counting as two."""
    if isinstance(value, dict):
        return 1 + sum(2 + _fullness(item) for item in value.values())
    if isinstance(value, list):
        return 1 + sum(_fullness(item) for item in value[:2])
    return 1 if value in (None, "", 0) else 2


def check_datum(datum: Any) -> None:
    """Raises InvalidDatum for what isn't JSON, or is too deep or too large."""
    stack: list[tuple[Any, int]] = [(datum, 0)]
    count = 0
    while stack:
        value, depth = stack.pop()
        count += 1
        if depth > MAX_DEPTH or count > MAX_VALUES:
            raise InvalidDatum(f"the datum is too large: {MAX_VALUES:,} values and {MAX_DEPTH} levels are allowed")
        if isinstance(value, dict):
            if not all(isinstance(key, str) for key in value):
                raise InvalidDatum("the keys of a JSON object are strings")
            stack.extend((item, depth + 1) for item in value.values())
        elif isinstance(value, list):
            stack.extend((item, depth + 1) for item in value)
    try:
        json.dumps(to_plain(datum), allow_nan=False, ensure_ascii=False).encode("utf-8")
    except (TypeError, ValueError) as error:
        raise InvalidDatum(f"the datum isn't JSON: {error}") from None


def _fields(reader: Model, place: Place | None, value: Any, path: str, depth: int) -> Iterator[FieldOutcome]:
    """Every property of a datum: kept, with a note where the reader says nothing of it."""
    if depth > MAX_DEPTH:
        return
    schema = reader.at(behind(reader, place)) if place is not None else None
    here = behind(reader, place) if place is not None else None
    declared = schema.get("properties", {}) if isinstance(schema, dict) else {}
    if isinstance(value, dict):
        for name, item in value.items():
            inner = Place(here.document, join(here.pointer, "properties", name)) if here and name in declared else None
            note = "" if name in declared else "not declared by the reader: it passes as it is"
            yield FieldOutcome(f"{path}.{name}", "kept", to_plain(item), to_plain(item), note)
            yield from _fields(reader, inner, item, f"{path}.{name}", depth + 1)
        for name, held in declared.items():
            if name not in value and isinstance(held, dict) and "default" in held:
                yield FieldOutcome(f"{path}.{name}", "kept", None, None, _NOT_FILLED)
    elif isinstance(value, list):
        items = schema.get("items") if isinstance(schema, dict) else None
        inner = Place(here.document, join(here.pointer, "items")) if here and isinstance(items, dict) else None
        for index, item in enumerate(value):
            yield from _fields(reader, inner, item, f"{path}[{index}]", depth + 1)
