"""Specifications and observations as JSON lines, decoded strictly."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Literal, Union

from registry.observations.specification import ScanSpec
from registry.observations.states import (
    StateExpiry,
    StateFieldNulls,
    StateFieldRange,
    StateKeys,
    StateLimit,
    StateRows,
    StateSchemaVersion,
    StateTimers,
    StateTotals,
    StateUnreadable,
)
from registry.observations.topics import (
    ChangeEvents,
    ConnectSchema,
    FieldProfile,
    FramedMessages,
    FramedTwice,
    LimitExceeded,
    MessageIndexes,
    NullMessages,
    OffsetsExpired,
    OtherGroups,
    PartitionRead,
    Sample,
    ScanTotals,
    SchemaNotUsed,
    TopicLost,
    TopicRemade,
    TopicTotals,
    UndecodableMessages,
    UnframedMessages,
)

Observation = (
    PartitionRead
    | FramedMessages
    | FramedTwice
    | UnframedMessages
    | NullMessages
    | UndecodableMessages
    | MessageIndexes
    | FieldProfile
    | ChangeEvents
    | ConnectSchema
    | Sample
    | SchemaNotUsed
    | LimitExceeded
    | OtherGroups
    | OffsetsExpired
    | TopicRemade
    | TopicLost
    | TopicTotals
    | ScanTotals
    | StateSchemaVersion
    | StateLimit
    | StateRows
    | StateKeys
    | StateFieldNulls
    | StateFieldRange
    | StateExpiry
    | StateTimers
    | StateUnreadable
    | StateTotals
)


FORMAT_VERSION = 8


class MalformedObservation(ValueError):
    """A line that isn't a scan specification or observation of this format; the message names line and field."""


_OBSERVATIONS: dict[str, type[Any]] = {kind.__name__: kind for kind in typing.get_args(Observation)}
_SPECS: dict[str, type[Any]] = {kind.__name__: kind for kind in typing.get_args(ScanSpec)}
_NEVER_WRITTEN = frozenset({"password"})


def encode_observations(observations: Iterable[Observation]) -> str:
    """Encode observations as JSON lines, each ended by a newline."""
    return "".join(f"{_line(observation)}\n" for observation in observations)


def decode_observations(text: str) -> Iterator[Observation]:
    """Yield the observations in JSON lines, without empty lines. Raises MalformedObservation with the line's number."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield _decode(line, _OBSERVATIONS, f"line {number}")


def encode_spec(spec: ScanSpec) -> str:
    """Encode a scan specification as one JSON line without its newline; the password is left out."""
    return _line(spec)


def decode_spec(line: str) -> ScanSpec:
    """Decode a scan specification from a JSON line. Raises MalformedObservation."""
    decoded: ScanSpec = _decode(line, _SPECS, "the specification")
    return decoded


def _line(thing: Any) -> str:
    plain = {"v": FORMAT_VERSION, "type": type(thing).__name__, **_plain(thing)}
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _plain(thing: Any) -> Any:
    if is_dataclass(thing) and not isinstance(thing, type):
        return {
            part.name: _plain(getattr(thing, part.name)) for part in fields(thing) if part.name not in _NEVER_WRITTEN
        }
    if isinstance(thing, tuple):
        return [_plain(item) for item in thing]
    if isinstance(thing, Mapping):
        return {str(key): _plain(value) for key, value in thing.items()}
    return thing


def _decode(line: str, kinds: Mapping[str, type[Any]], where: str) -> Any:
    try:
        plain = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise MalformedObservation(f"{where} is not JSON: {error}") from error
    if not isinstance(plain, dict):
        raise MalformedObservation(f"{where} is {_shown(plain)}, not an object")
    version, kind = plain.pop("v", None), plain.pop("type", None)
    if version != FORMAT_VERSION or isinstance(version, bool):
        raise MalformedObservation(f"{where} has format version {_shown(version)}, this program reads {FORMAT_VERSION}")
    if not isinstance(kind, str) or kind not in kinds:
        raise MalformedObservation(f"{where} has type {_shown(kind)}, known are {', '.join(sorted(kinds))}")
    return _build(kinds[kind], plain, f"{where}, {kind}")


def _build(kind: type[Any], plain: Any, where: str) -> Any:
    if not isinstance(plain, dict):
        raise MalformedObservation(f"{where} is {_shown(plain)}, not an object")
    hints = typing.get_type_hints(kind)
    parts = {part.name: part for part in fields(kind) if part.name not in _NEVER_WRITTEN}
    unknown = sorted(set(plain) - set(parts))
    missing = sorted(set(parts) - set(plain))
    if unknown or missing:
        problem = f"has no field {missing[0]}" if missing else f"has a field too many: {unknown[0][:80]}"
        raise MalformedObservation(f"{where} {problem}")
    return kind(**{name: _value(hints[name], plain[name], f"{where}.{name}") for name in parts})


def _value(hint: Any, plain: Any, where: str) -> Any:
    """Return `plain` as a value of type `hint`. Raises MalformedObservation for any other type."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        if plain is None and type(None) in arguments:
            return None
        return _value(next(argument for argument in arguments if argument is not type(None)), plain, where)
    if origin is Literal:
        if isinstance(plain, str) and plain in arguments:
            return plain
        raise MalformedObservation(f"{where} is {_shown(plain)}, not one of {', '.join(map(str, arguments))}")
    if origin is tuple:
        if not isinstance(plain, list):
            raise MalformedObservation(f"{where} is {_shown(plain)}, not a list")
        return tuple(_value(arguments[0], item, f"{where}[{index}]") for index, item in enumerate(plain))
    if origin is Mapping:
        return _map(arguments[1], plain, where)
    if is_dataclass(hint):
        return _build(typing.cast("type[Any]", hint), plain, where)
    accepted = (int, float) if hint is float else (hint,)
    if type(plain) not in accepted:
        raise MalformedObservation(f"{where} is {_shown(plain)}, not {hint.__name__}")
    return float(plain) if hint is float else plain


def _map(hint: Any, plain: Any, where: str) -> dict[str, Any]:
    if not isinstance(plain, dict):
        raise MalformedObservation(f"{where} is {_shown(plain)}, not an object")
    return {key: _value(hint, value, f"{where}[{_shown(key)}]") for key, value in plain.items()}


def _shown(plain: Any) -> str:
    text = json.dumps(plain, ensure_ascii=True, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."
