"""What a migration script can make of a stored type: which fields it fills, and which casts keep what a value means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from registry.formats.policies.spark_state.struct_types import (
    ArrayType,
    Atomic,
    MapType,
    SparkType,
    StructType,
    below,
    label,
)

_NUMBERS: Final = frozenset({"byte", "short", "integer", "long", "float", "double"})
_DAYS: Final = frozenset({"date", "timestamp"})


def is_number(type_: SparkType) -> bool:
    """Return whether a type is a number, decimals included."""
    return isinstance(type_, Atomic) and (type_.name in _NUMBERS or type_.decimal is not None)


def keeps_meaning(old: SparkType, new: SparkType) -> bool:
    """Return whether a cast keeps what a value means, and its order; the script stops at a value that it changes."""
    if old == new or (is_number(old) and is_number(new)):
        return True
    return isinstance(old, Atomic) and isinstance(new, Atomic) and {old.name, new.name} <= _DAYS


def can_order(type_: SparkType) -> bool:
    """Return whether Spark can order values: a seeding query carries them by an aggregate that orders."""
    if isinstance(type_, StructType):
        return all(can_order(field.type) for field in type_.fields)
    if isinstance(type_, ArrayType):
        return can_order(type_.element)
    return isinstance(type_, Atomic) and type_.name != "variant"


def empty_fields(old: SparkType, new: SparkType, renamed: Mapping[str, str], path: str = "") -> Iterator[str]:
    """Yield the fields of the new type that the old one doesn't have; `renamed` has old names by the new fields' paths.

    Raises ValueError if a type can't be converted.
    """
    if isinstance(old, StructType) and isinstance(new, StructType):
        types = {field.name: field.type for field in old.fields}
        for field in new.fields:
            place = below(path, field.name)
            source = types.get(renamed.get(place, field.name))
            yield from [place] if source is None else empty_fields(source, field.type, renamed, place)
    elif isinstance(old, ArrayType) and isinstance(new, ArrayType):
        yield from empty_fields(old.element, new.element, renamed, f"{path}[]")
    elif isinstance(old, MapType) and isinstance(new, MapType):
        yield from empty_fields(old.key, new.key, renamed, f"{path}{{key}}")
        yield from empty_fields(old.value, new.value, renamed, f"{path}{{}}")
    elif not (keeps_meaning(old, new) or _is_text(old, new)):
        raise ValueError(f"{path or 'the value'} ({label(old)}) can't become {label(new)}")


def _is_text(old: SparkType, new: SparkType) -> bool:
    """Return whether a value becomes its text, or a text the value that it shows."""
    return isinstance(old, Atomic) and isinstance(new, Atomic) and "string" in (old.name, new.name)
