"""Changes between two value schemas by name, as Avro reads them.

Spark decides with Avro's reader: a planned schema must read every stored one. It matches fields by name and ignores the
names of records, so the rules are those of Avro's resolution for the types that Spark generates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final

from registry.errors import first_few
from registry.formats.base import values_of
from registry.formats.name_similarity import name_likeness
from registry.formats.policies.spark_state.rules import STATE_RULES, Effect, Opinion, StateRule
from registry.formats.policies.spark_state.struct_types import (
    AVRO_TYPES,
    ArrayType,
    Atomic,
    MapType,
    SparkType,
    StructField,
    StructType,
    below,
    decimal_bytes,
    label,
)

LIKELY: Final = 0.5  # how similar two names must be (0 to 1) if several added fields could be the renamed one
MAX_CANDIDATES: Final = 100
_NUMBERS: Final = ("byte", "short", "integer", "long", "float", "double")
_READS: Final = {
    "int": ("int", "long", "float", "double"),
    "long": ("long", "float", "double"),
    "float": ("float", "double"),
    "string": ("string", "bytes"),
    "bytes": ("bytes", "string"),
}
#: the integers that a wider type represents exactly
_EXACT_UP_TO: Final = {("integer", "float"): "2^24", ("long", "float"): "2^24", ("long", "double"): "2^53"}
_LOSSY: Final = {("binary", "string"): "; bytes that aren't UTF-8 are replaced when they are read"}
_MEANINGS: Final = {
    "date": "days since 1970",
    "timestamp": "microseconds since 1970 in UTC",
    "timestamp_ntz": "microseconds of local time",
}
_ZEROS: Final = {"boolean": "false", "float": "0.0", "double": "0.0"} | dict.fromkeys(_NUMBERS[:4], "0")
# The value of a missing field that is declared not nullable; missing fields of other types can't be read.
_FILLED_WITH: Final = _ZEROS | {
    "date": "1970-01-01",
    "timestamp": "1970-01-01 00:00:00",
    "timestamp_ntz": "1970-01-01 00:00:00",
}
NOT_READ_BACK: Final = frozenset({"byte", "short"})


@dataclass(frozen=True, slots=True)
class StateChange:
    """A rule that applies to a field, with its meaning; `against` is the id of the stored schema compared with.

    `error` is the class that Spark stops with, if it does. `reads` gives the values of older rows by language.
    """

    rule: str
    path: str
    before: str | None
    after: str | None
    effect: Effect
    message: str
    why: str
    remedy: str
    document: Opinion = ""
    error: str = ""
    against: int | None = None
    score: float | None = None
    reads: tuple[tuple[str, str], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the change as JSON values."""
        return {**values_of(self), "reads": dict(self.reads)}


def change(
    rule: str | StateRule,
    path: str,
    before: str | None = None,
    after: str | None = None,
    *,
    detail: str = "",
    effect: Effect | None = None,
    error: str | None = None,
    score: float | None = None,
    reads: tuple[tuple[str, str], ...] = (),
) -> StateChange:
    """Return a change with its sentences; `effect` and `error` default to the rule's.

    `rule` is the id of one of STATE_RULES, or a row of another table.
    """
    row = STATE_RULES[rule] if isinstance(rule, str) else rule
    reads_text = " and ".join(f"{value} in {language}" for language, value in reads)
    values = {"path": path or "the value", "before": before, "after": after, "detail": detail, "score": score}
    values["reads"] = reads_text
    return StateChange(
        rule=row.id,
        path=path,
        before=before,
        after=after,
        effect=effect or row.effect,
        message=row.sentence.format_map(values),
        why=row.why.format_map(values),
        remedy=row.remedy.format_map(values),
        document=row.document,
        error=row.error if error is None else error,
        score=score,
        reads=reads,
    )


def by_name(
    stored: SparkType, planned: SparkType, path: str = "", *, in_field: bool = False, is_scala: bool = False
) -> Iterator[StateChange]:
    """Yield what changes when rows of `stored` are read with `planned` through Avro; both must have an Avro form.

    `in_field` says that the type is a field's own, which is nullable whatever its type. `is_scala` says that the
    planned types are case classes, in which only primitives are not nullable.
    """
    if isinstance(stored, StructType) and isinstance(planned, StructType):
        yield from _fields(stored, planned, path, is_scala=is_scala)
    elif isinstance(stored, ArrayType) and isinstance(planned, ArrayType):
        yield from by_name(stored.element, planned.element, f"{path}[]", is_scala=is_scala)
    elif isinstance(stored, MapType) and isinstance(planned, MapType):
        yield from by_name(stored.value, planned.value, f"{path}{{}}", is_scala=is_scala)
    elif stored == Atomic("void") and (in_field or not isinstance(planned, Atomic)):
        return  # only nulls were written, and null is in every union
    elif isinstance(stored, Atomic) and isinstance(planned, Atomic):
        yield from _atomic(stored, planned, path)
    else:
        yield change("TYPE_CHANGED", path, label(stored), label(planned))


_ADDED: Final = frozenset({"FIELD_ADDED", "FIELD_ADDED_NOT_NULL", "FIELD_ADDED_UNREADABLE"})


def value_changes(stored: StructType, planned: StructType, *, is_scala: bool = False) -> Iterator[StateChange]:
    """Yield the changes of `by_name` for a whole value, and the removed fields that other fields may replace.

    A removed field that `suspected_renames` doesn't pair with an added one may still have been moved to another struct,
    split, or changed in both name and type. The schemas can't rule that out if any field is added in the value.
    """
    changes = list(by_name(stored, planned, is_scala=is_scala))
    yield from changes
    renamed = [item for item in changes if item.rule == "RENAME_SUSPECTED"]
    new_names = {item.path for item in renamed}
    old_names = {below(item.path.rpartition(".")[0], item.before or "") for item in renamed}
    added = [item.path for item in changes if item.rule in _ADDED and item.path not in new_names]
    if not added:
        return
    for item in changes:
        if item.rule == "FIELD_REMOVED" and item.path not in old_names:
            yield change("FIELD_REPLACED", item.path, item.before, first_few(added))


def not_read_back(type_: SparkType, path: str = "") -> Iterator[StateChange]:
    """Yield fields that Spark 4.2 writes as Avro but can't read back: its decoder supports neither byte nor short."""
    if isinstance(type_, StructType):
        for field in type_.fields:
            yield from not_read_back(field.type, below(path, field.name))
    elif isinstance(type_, ArrayType):
        yield from not_read_back(type_.element, f"{path}[]")
    elif isinstance(type_, MapType):
        yield from not_read_back(type_.value, f"{path}{{}}")
    elif type_.name in NOT_READ_BACK:
        yield change("TYPE_NOT_READ_BACK", path, None, type_.name)


def _atomic(stored: Atomic, planned: Atomic, path: str) -> Iterator[StateChange]:
    if stored == planned:
        return
    before, after = stored.name, planned.name
    if stored.decimal is not None and planned.decimal is not None:
        yield _decimals(stored.decimal, planned.decimal, path, before, after)
        return
    written = AVRO_TYPES[before][0] if before in AVRO_TYPES else "fixed"
    read = AVRO_TYPES[after][0] if after in AVRO_TYPES else "fixed"
    if written == "fixed" or read not in _READS.get(written, (written,)):
        are_numbers = before in _NUMBERS and after in _NUMBERS
        yield change("TYPE_NARROWED" if are_numbers else "TYPE_CHANGED", path, before, after)
    elif before in _NUMBERS and after in _NUMBERS:
        if exact := _EXACT_UP_TO.get((before, after)):
            yield change("TYPE_WIDENED_INEXACTLY", path, before, after, detail=exact)
        elif after not in NOT_READ_BACK:
            yield change("TYPE_WIDENED", path, before, after)
    elif {before, after} == {"string", "binary"}:
        yield change("TYPE_EXCHANGED", path, before, after, detail=_LOSSY.get((before, after), ""))
    else:
        was, becomes = (_MEANINGS.get(name, "a plain number") for name in (before, after))
        yield change("MEANING_CHANGED", path, before, after, detail=f"{was}, read as {becomes}")


def _decimals(stored: tuple[int, int], planned: tuple[int, int], path: str, before: str, after: str) -> StateChange:
    (wide, scale), (new_wide, new_scale) = stored, planned
    if decimal_bytes(wide) != decimal_bytes(new_wide):
        return change("TYPE_CHANGED", path, before, after)
    if scale != new_scale:
        detail = f"1 reads as {Decimal(1).scaleb(scale - new_scale):f}"
        return change("DECIMAL_RESCALED", path, before, after, detail=detail)
    if new_wide < wide:
        return change("DECIMAL_NARROWED", path, before, after)
    return change("TYPE_WIDENED", path, before, after)


def _fields(stored: StructType, planned: StructType, path: str, *, is_scala: bool) -> Iterator[StateChange]:
    before = {field.name: field for field in stored.fields}
    after = {field.name: field for field in planned.fields}
    removed = [field for field in stored.fields if field.name not in after]
    added = [field for field in planned.fields if field.name not in before]
    for field in planned.fields:
        here = below(path, field.name)
        if field.name in before:
            yield from by_name(before[field.name].type, field.type, here, in_field=True, is_scala=is_scala)
        elif is_scala:
            reads = (("Python", "None"), ("Scala", _scala_reads(field)))
            yield change("FIELD_ADDED", here, None, label(field.type), reads=reads)
        else:
            yield _added(field, here, is_nullable=field.nullable or not path)  # at the top, Spark rejects others
    for field in removed:
        yield change("FIELD_REMOVED", below(path, field.name), label(field.type), None)
    for old, new, score in suspected_renames(removed, added):
        yield change("RENAME_SUSPECTED", below(path, new.name), old.name, new.name, score=score)
    if [name for name in before if name in after] != [name for name in after if name in before]:
        yield change("FIELDS_REORDERED", path, ", ".join(before)[:200], ", ".join(after)[:200])


def _added(field: StructField, path: str, *, is_nullable: bool) -> StateChange:
    """Return the change for a field that old rows lack. Spark fills a non-nullable one with its type's zero, if any."""
    after = label(field.type)
    if is_nullable or (isinstance(field.type, Atomic) and field.type.decimal is not None):
        return change("FIELD_ADDED", path, None, after, reads=(("Python", "None"), ("Scala", _scala_reads(field))))
    zero = _FILLED_WITH.get(field.type.name) if isinstance(field.type, Atomic) else None
    if zero is None:
        return change("FIELD_ADDED_UNREADABLE", path, None, after)
    return change("FIELD_ADDED_NOT_NULL", path, None, after, detail=zero, reads=(("Python", zero), ("Scala", zero)))


def _scala_reads(field: StructField) -> str:
    zero = _ZEROS.get(field.type.name) if isinstance(field.type, Atomic) else None
    if zero is None:
        return "null"
    return f"null ({zero} where the type is a primitive)" if field.nullable else zero


def suspected_renames(
    removed: list[StructField], added: list[StructField]
) -> list[tuple[StructField, StructField, float]]:
    """Return pairs of a removed and an added field of one type, with a score from 0 to 1, most similar names first.

    A single candidate is accepted whatever its name. Of several, one is accepted with a score of at least LIKELY. At
    most MAX_CANDIDATES fields on each side are compared.
    """
    removed, added = removed[:MAX_CANDIDATES], added[:MAX_CANDIDATES]
    pairs = [
        (round(_likeness(old.name, new.name), 2), old, new) for old in removed for new in added if old.type == new.type
    ]
    pairs.sort(key=lambda pair: -pair[0])
    rivals = {old.name: sum(1 for _, other, _ in pairs if other is old) for old in removed}
    taken: set[tuple[str, str]] = set()
    renames = []
    for score, old, new in pairs:
        if ("old", old.name) in taken or ("new", new.name) in taken:
            continue
        if score >= LIKELY or rivals[old.name] == 1:
            taken |= {("old", old.name), ("new", new.name)}
            renames.append((old, new, score))
    return renames


def _likeness(old: str, new: str) -> float:
    one, other = old.lower(), new.lower()
    likeness = name_likeness(old, new)
    return max(LIKELY, likeness) if one in other or other in one else likeness


def against(item: StateChange, schema_id: int) -> StateChange:
    """Return the change with the id of the stored schema compared with."""
    return replace(item, against=schema_id)
