"""Data of a schema: examples, validation of a writer's datum under a reader, and bodies of messages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NoReturn

import jsonschema_rs

from registry.errors import InvalidDatum
from registry.formats.base import (
    BodyReplay,
    DecodedBody,
    FieldOutcome,
    Incompatibility,
    Resolution,
    Witness,
    check_size,
)
from registry.formats.json_pointer import escape, join
from registry.formats.json_schema.instances import Instances
from registry.formats.json_schema.model import MISSING, Bundle, Model, SchemaLocation, root_path, value_at
from registry.formats.json_schema.rules import RULES
from registry.formats.json_schema.schema_outline import behind
from registry.formats.json_schema.text import compact, to_plain
from registry.formats.json_schema.validators import (
    bundle_with_formats,
    keeps_formats,
    modern_bundle,
    plain,
    validator_of,
)
from registry.formats.json_schema.value_facts import MAX_UNFOLDED, unfolded

_ENGINE_FAILURES: Final = (
    jsonschema_rs.ValidationErrorKind.BacktrackLimitExceeded,
    jsonschema_rs.ValidationErrorKind.RegexEngineFailure,
)
_NAME: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]{0,99}")
_MAX_REFUSALS: Final = 20


@dataclass(frozen=True, slots=True)
class ValidationFailure:
    """One validation error: its place in the datum and in the bundle's schema, and its message."""

    instance_path: tuple[str | int, ...]
    schema_path: tuple[str | int, ...]
    message: str
    keyword: str
    expected: Any

    @property
    def key(self) -> tuple[str, str]:
        """The identity of a finding: the keyword in the schema, and the place in the datum without indexes."""
        path = "/".join("#" if isinstance(token, int) else str(token) for token in self.instance_path)
        return "/".join(map(str, self.schema_path)), path + (self.message if self.keyword == "required" else "")


def validation_failures(validator: jsonschema_rs.Validator, datum: Any) -> list[ValidationFailure]:
    """Return the errors of a datum; none if the pattern engine gave up, because that proves nothing."""
    failures = []
    for error in validator.iter_errors(datum):
        if isinstance(error.kind, _ENGINE_FAILURES):
            return []
        failures.append(
            ValidationFailure(
                tuple(error.instance_path), tuple(error.schema_path), plain(error), error.kind.name, error.kind.value
            )
        )
        if len(failures) >= _MAX_REFUSALS:
            break
    return failures


def witness_of(datum: Any, message: str, reason: str = "") -> Witness:
    """Return the proof: the datum, its JSON bytes in hexadecimal, the validator's message, and any special reason."""
    return Witness(True, to_plain(datum), compact(datum).encode().hex(), message, reason)


def finding_of(failure: ValidationFailure, reader: Model, writer: Model, witness: Witness) -> Incompatibility:
    """Return the finding for a validation error: pointers into both schemas, the path in the datum, and the witness."""
    rule = RULES["DATUM_REFUSED"]
    location = reader_location(reader, failure.schema_path)
    theirs = instance_location(writer, failure.instance_path)
    path = data_path(reader, failure.instance_path)
    ours = value_at(reader.documents[location.document].value, location.pointer)
    before = value_at(writer.documents[theirs.document].value, join(theirs.pointer, failure.keyword))
    names = {"path": path, "name": failure.message, "reader": "", "writer": ""}
    return Incompatibility(
        rule=rule.id,
        kind=rule.kind,
        reader_pointer=location.pointer,
        writer_pointer=theirs.pointer,
        path=path,
        before=None if before is MISSING else to_plain(before),
        after=None if ours is MISSING else to_plain(ours),
        message=f"{path}: {rule.sentence.format_map(names)}",
        severity=rule.severity,
        location="#/" + location.pointer.removeprefix("/"),
        detail=failure.keyword,
        why=rule.why,
        remedy_in_reader=rule.in_reader.format_map(names),
        remedy_in_writer=rule.in_writer.format_map(names),
        reader_source=reader.source(location),
        writer_source=writer.source(theirs),
        witness=witness,
    )


def reader_location(model: Model, schema_path: Iterable[str | int]) -> SchemaLocation:
    """Convert a path in a model's bundle to a place in its documents; definitions map to their original places."""
    here = SchemaLocation(0, "")
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


def _further(model: Model, here: SchemaLocation, key: str) -> tuple[SchemaLocation, bool]:
    """Go one token further, into the schema or through its reference; True if the text has no such place."""
    for _ in range(100):
        pointer = f"{here.pointer}/{escape(key)}"
        target = model.targets.get(SchemaLocation(here.document, join(here.pointer, "$ref")))
        if value_at(model.documents[here.document].value, pointer) is not MISSING and key != "$ref":
            return SchemaLocation(here.document, pointer), False
        if not isinstance(target, SchemaLocation):
            return here, True
        here = target
        if key == "$ref":
            return here, False
    return here, True


def instance_location(model: Model, instance_path: Iterable[str | int]) -> SchemaLocation:
    """Return the nearest place in a schema that describes a part of a datum, using only properties and items."""
    here = SchemaLocation(0, "")
    for token in instance_path:
        here = _behind(model, here)
        names = ("properties", "additionalProperties") if isinstance(token, str) else ("prefixItems", "items")
        value = value_at(model.documents[here.document].value, here.pointer)
        if not isinstance(value, dict):
            break
        members = value.get(names[0]) if names[0] in value else value.get("items") if isinstance(token, int) else None
        if isinstance(members, dict) and isinstance(token, str) and token in members:
            here = SchemaLocation(here.document, join(here.pointer, names[0], token))
        elif isinstance(members, list) and isinstance(token, int) and token < len(members):
            here = SchemaLocation(
                here.document, join(here.pointer, "prefixItems" if "prefixItems" in value else "items", token)
            )
        elif isinstance(value.get(names[1]), (dict, bool)):
            here = SchemaLocation(here.document, join(here.pointer, names[1]))
        else:
            break
    return here


def _behind(model: Model, here: SchemaLocation) -> SchemaLocation:
    for _ in range(100):
        target = model.targets.get(SchemaLocation(here.document, join(here.pointer, "$ref")))
        if not isinstance(target, SchemaLocation):
            break
        here = target
    return here


def data_path(model: Model, instance_path: Iterable[str | int]) -> str:
    """Return the path in a datum for people: `Order.items[].price`."""
    path = root_path(model)
    for token in instance_path:
        if isinstance(token, int):
            path += "[]"
        else:
            path += f".{token}" if _NAME.fullmatch(token) else f"[{compact(token)}]"
    return path


def distinct(findings: Iterable[Incompatibility]) -> tuple[Incompatibility, ...]:
    """Return findings without those that a recursive schema repeats further down, shallowest first."""
    unique: list[Incompatibility] = []
    for item in sorted(findings, key=lambda item: item.path.count(".") + item.path.count("[]")):
        tail = item.path.partition(".")[2]
        is_repeated = any(
            item.reader_pointer == other.reader_pointer
            and item.path != other.path
            and tail.endswith(other.path.partition(".")[2])
            for other in unique
        )
        if not is_repeated:
            unique.append(item)
    return tuple(unique)


MAX_DEPTH: Final = 150
MAX_VALUES: Final = 100_000
MAX_FIELDS: Final = 2_000
_TRIES: Final = 600
_ENOUGH: Final = 60
_NOT_FILLED: Final = "missing: a default is only an annotation and isn't filled in"


def example_of(model: Model) -> Any:
    """Return a valid datum, as complete as is easy to find; raises InvalidDatum if none is found."""
    validator = validator_for(model)
    root = model.root if isinstance(model.root, dict) else {}
    listed = [*root.get("examples", ())] if isinstance(root.get("examples"), list) else []
    listed += [root["default"]] if "default" in root else []
    for value in listed:
        if is_valid(validator, value):
            return to_plain(value)
    instances = [item for item in _instances(bundle_with_formats(model)) if is_valid(validator, item)]
    keeping = [item for item in instances if keeps_formats(model, item)][:_ENOUGH]
    instances = keeping or instances or [item for item in _instances(modern_bundle(model)) if is_valid(validator, item)]
    if not instances:
        raise InvalidDatum("no valid value was found: the schema may not allow any")
    return to_plain(max(instances[:_ENOUGH], key=_fullness))


def _instances(bundle: Bundle) -> Iterator[Any]:
    """Return values to try, the most complete first."""
    instances = Instances(
        bundle.value, True, lambda _value, _schema: True, lambda _value, _schema: False, is_full_first=True
    )
    return islice(instances.candidates(), _TRIES)


def resolve_datum(reader: Model, writer: Model, datum: Any) -> Resolution:
    """Validate a datum under both schemas; the reader keeps or rejects the JSON. Raises InvalidDatum."""
    check_datum(datum)
    refused = next(iter(validation_failures(validator_for(writer), datum)), None)
    if refused is not None or not validator_for(writer).is_valid(datum):
        where = data_path(writer, refused.instance_path) if refused is not None else root_path(writer)
        why = refused.message if refused is not None else "a pattern of the schema takes too long"
        raise InvalidDatum(f"the value isn't valid under the writer schema, at {where}: {why}")
    encoded = compact(datum).encode().hex()
    errors = validation_failures(validator_for(reader), datum)
    if errors or not validator_for(reader).is_valid(datum):
        message = "; ".join(f"{data_path(reader, error.instance_path)}: {error.message}" for error in errors[:10])
        return Resolution(to_plain(datum), encoded, error=message or "a pattern of the reader schema takes too long")
    fields = tuple(islice(_fields(reader, SchemaLocation(0, ""), datum, root_path(reader), 0), MAX_FIELDS))
    return Resolution(to_plain(datum), encoded, to_plain(datum), fields)


def validator_for(model: Model) -> jsonschema_rs.Validator:
    """Return the validator of a schema. Raises InvalidDatum if validation can't be exact or bounded in time."""
    if model.bundle.inexact:
        raise InvalidDatum(f"data can't be validated under this schema: {model.bundle.inexact}")
    if unfolded(modern_bundle(model).value) > MAX_UNFOLDED:
        raise InvalidDatum(f"data can't be validated: one value may take more than {MAX_UNFOLDED:,} steps")
    try:
        return validator_of(model)
    except ValueError as error:
        raise InvalidDatum(f"data can't be validated under this schema: {plain(error)}") from None


def is_valid(validator: jsonschema_rs.Validator, value: Any) -> bool:
    """Return whether the value is valid; False if the validator gives up."""
    try:
        return validator.is_valid(value)
    except ValueError:
        return False


def _fullness(value: Any) -> int:
    """Score how many properties and items a datum has; arrays count at most two items."""
    if isinstance(value, dict):
        return 1 + sum(2 + _fullness(item) for item in value.values())
    if isinstance(value, list):
        return 1 + sum(_fullness(item) for item in value[:2])
    return 1 if value in (None, "", 0) else 2


def check_datum(datum: Any) -> None:
    """Raise InvalidDatum if the datum isn't JSON, or is too deep or too large."""
    stack: list[tuple[Any, int]] = [(datum, 0)]
    count = 0
    while stack:
        value, depth = stack.pop()
        count += 1
        if depth > MAX_DEPTH or count > MAX_VALUES:
            raise InvalidDatum(f"the value is too large: {MAX_VALUES:,} values and {MAX_DEPTH} levels are allowed")
        if isinstance(value, dict):
            if not all(isinstance(key, str) for key in value):
                raise InvalidDatum("the keys of a JSON object are strings")
            stack.extend((item, depth + 1) for item in value.values())
        elif isinstance(value, list):
            stack.extend((item, depth + 1) for item in value)
    try:
        json.dumps(to_plain(datum), allow_nan=False, ensure_ascii=False).encode("utf-8")
    except (TypeError, ValueError) as error:
        raise InvalidDatum(f"the value isn't JSON: {error}") from None


def _fields(
    reader: Model, location: SchemaLocation | None, value: Any, path: str, depth: int
) -> Iterator[FieldOutcome]:
    """Yield every property of a datum as kept, with a note if the reader doesn't declare it."""
    if depth > MAX_DEPTH:
        return
    schema = reader.at(behind(reader, location)) if location is not None else None
    here = behind(reader, location) if location is not None else None
    declared = schema.get("properties", {}) if isinstance(schema, dict) else {}
    if isinstance(value, dict):
        for name, item in value.items():
            inner = (
                SchemaLocation(here.document, join(here.pointer, "properties", name))
                if here and name in declared
                else None
            )
            note = "" if name in declared else "not declared in the reader schema: kept unchanged"
            yield FieldOutcome(f"{path}.{name}", "kept", to_plain(item), to_plain(item), note)
            yield from _fields(reader, inner, item, f"{path}.{name}", depth + 1)
        for name, declaration in declared.items():
            if name not in value and isinstance(declaration, dict) and "default" in declaration:
                yield FieldOutcome(f"{path}.{name}", "kept", None, None, _NOT_FILLED)
    elif isinstance(value, list):
        items = schema.get("items") if isinstance(schema, dict) else None
        inner = SchemaLocation(here.document, join(here.pointer, "items")) if here and isinstance(items, dict) else None
        for index, item in enumerate(value):
            yield from _fields(reader, inner, item, f"{path}[{index}]", depth + 1)


MAX_PROBLEMS: Final = 20
TOO_LONG: Final = "a pattern of the schema takes too long on this value"


def decode_body(model: Model, body: bytes) -> DecodedBody:
    """Return the value of the body and its validation errors. Raises InvalidDatum."""
    check_size(body)
    value = json_value(body)
    validator = validator_for(model)
    failures = validation_failures(validator, value)
    problems = tuple(f"{data_path(model, item.instance_path)}: {item.message}" for item in failures)
    if not failures and not is_valid(validator, value):
        problems = (TOO_LONG,)
    return DecodedBody(value, root_path(model), (), problems[:MAX_PROBLEMS])


def replay_of(reader: Model, writer: Model) -> BodyReplay:
    """Return a function that keeps or rejects a value; errors give places in the schema, because names may be data.

    It keeps what the reader accepts, even if the value violates its writer schema: consumers validate with the reader.
    """
    validators = [validator_for(model) for model in (writer, reader)]

    def replay(body: bytes, indexes: tuple[int, ...] | None) -> Resolution:
        check_size(body)
        value = json_value(body)
        if is_valid(validators[1], value):
            return Resolution(value, "", value)
        if not is_valid(validators[0], value):
            raise InvalidDatum("the value isn't valid under its writer schema, nor under the new one")
        failures = validation_failures(validators[1], value)
        keywords = dict.fromkeys(
            f"#{reader_location(reader, item.schema_path).pointer} ({item.keyword})" for item in failures
        )
        return Resolution(value, "", error=f"rejected by {', '.join(list(keywords)[:5])}" if keywords else TOO_LONG)

    return replay


def json_value(body: bytes) -> Any:
    """Return the JSON value in the bytes. Raises InvalidDatum with line and column."""
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise InvalidDatum(f"byte {error.start}: the body isn't UTF-8", byte=error.start) from None
    except json.JSONDecodeError as error:
        raise InvalidDatum(f"line {error.lineno}, column {error.colno}: the body isn't JSON: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidDatum(f"the body isn't valid JSON: {str(error)[:200]}") from None
    check_datum(value)
    return value


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")
