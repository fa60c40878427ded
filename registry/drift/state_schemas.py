"""Two versions of a state variable's value schema, field by field, as Spark reads the one with the other."""

from __future__ import annotations

from dataclasses import dataclass

from registry.formats.policies.spark_state import StateChange, schema_changes

# What changes nothing of what a field reads as.
_NO_FIELD_CHANGE = frozenset({"FIELDS_REORDERED", "RENAME_SUSPECTED"})


@dataclass(frozen=True)
class FieldChange:
    """A field that is there in one version only (`before` or `after` is None), or changed its type or its name.

    `sentence` says it where a type and a path don't: a name that moved to another position.
    """

    path: str
    before: str | None
    after: str | None
    sentence: str = ""

    def __str__(self) -> str:
        if self.sentence:
            return self.sentence
        if self.before is None:
            return f"{self.path} added ({self.after})"
        if self.after is None:
            return f"{self.path} removed ({self.before})"
        return f"{self.path} {self.before} → {self.after}"


@dataclass(frozen=True)
class SuspectedRename:
    """A field that disappeared and one of the same type that came in the same version."""

    dropped: str
    added: str
    type: str


def field_changes(old: str, new: str, *, has_evolution: bool = True) -> list[FieldChange]:
    """The differences of two value schemas, what was there first: by name where values evolve, else by position.

    Raises InvalidSchema for what is no StructType of Spark.
    """
    found = [_field_change(each) for each in _changes(old, new, has_evolution) if each.rule not in _NO_FIELD_CHANGE]
    return sorted(found, key=lambda change: change.before is None)


def suspected_renames(old: str, new: str, *, has_evolution: bool = True) -> list[SuspectedRename]:
    """Pairs of a removed and an added field of one type in one struct, the most alike names first; none by position.

    Raises InvalidSchema for what is no StructType of Spark.
    """
    changes = _changes(old, new, has_evolution)
    types = {each.path: each.after or "" for each in changes if each.before is None}
    return [
        SuspectedRename(_beside(each), each.path, types.get(each.path, ""))
        for each in changes
        if each.rule == "RENAME_SUSPECTED"
    ]


def _changes(old: str, new: str, has_evolution: bool) -> tuple[StateChange, ...]:
    return schema_changes(old, new, has_evolution=has_evolution)


def _field_change(change: StateChange) -> FieldChange:
    sentence = change.message if change.rule.startswith("POSITION") else ""
    return FieldChange(change.path, change.before, change.after, sentence)


def _beside(rename: StateChange) -> str:
    """The path of the field that a rename dropped, which stood beside the one that it added."""
    added = rename.after or ""
    return f"{rename.path.removesuffix(added)}{rename.before}"
