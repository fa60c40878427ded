"""Two schemas compared by position, as Spark does for keys and for values that can't evolve."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from registry.formats.policies.spark_state.types import ArrayType, MapType, SparkType, StructType, below, label


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Two types at one position that Spark doesn't take for each other."""

    path: str
    before: str
    after: str


def mismatches(stored: SparkType, planned: SparkType, path: str = "") -> Iterator[Mismatch]:
    """Where two schemas differ by position: names are ignored, and a nullable place may become a not nullable one."""
    if isinstance(stored, StructType) and isinstance(planned, StructType):
        if len(stored.fields) != len(planned.fields):
            yield Mismatch(path, f"{len(stored.fields)} fields", f"{len(planned.fields)} fields")
            return
        for old, new in zip(stored.fields, planned.fields, strict=True):
            here = below(path, new.name)
            if new.nullable and not old.nullable:
                yield Mismatch(here, "not nullable", "nullable")
            yield from mismatches(old.type, new.type, here)
    elif isinstance(stored, ArrayType) and isinstance(planned, ArrayType):
        if planned.contains_null and not stored.contains_null:
            yield Mismatch(f"{path}[]", "not nullable", "nullable")
        yield from mismatches(stored.element, planned.element, f"{path}[]")
    elif isinstance(stored, MapType) and isinstance(planned, MapType):
        if planned.value_contains_null and not stored.value_contains_null:
            yield Mismatch(f"{path}{{}}", "not nullable", "nullable")
        yield from mismatches(stored.key, planned.key, f"{path}{{key}}")
        yield from mismatches(stored.value, planned.value, f"{path}{{}}")
    elif stored != planned:
        yield Mismatch(path, label(stored), label(planned))


def moved_names(stored: SparkType, planned: SparkType, path: str = "") -> Iterator[tuple[str, str, str, bool]]:
    """(path, old name, new name, whether names were swapped) of positions that keep their type and change their name."""
    if isinstance(stored, StructType) and isinstance(planned, StructType):
        before, after = {each.name for each in stored.fields}, {each.name for each in planned.fields}
        for old, new in zip(stored.fields, planned.fields, strict=False):
            here = below(path, new.name)
            if old.name != new.name:
                yield here, old.name, new.name, old.name in after or new.name in before
            yield from moved_names(old.type, new.type, here)
    elif isinstance(stored, ArrayType) and isinstance(planned, ArrayType):
        yield from moved_names(stored.element, planned.element, f"{path}[]")
    elif isinstance(stored, MapType) and isinstance(planned, MapType):
        yield from moved_names(stored.key, planned.key, f"{path}{{key}}")
        yield from moved_names(stored.value, planned.value, f"{path}{{}}")
