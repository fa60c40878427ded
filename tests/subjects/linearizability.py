"""Could calls that ran at the same time have run one after the other?

`Place` is what a context of a registry holds, and `after` what one call makes of it: the rules written a second time,
without a database. `find_order` looks for an order of the calls, true to what was over before what began, in which every
call gives what it gave and the end is the state that was found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from registry.formats import FORMATS
from registry.formats.base import ParsedSchema, ResolvedReference
from registry.formats.compatibility import check
from tests.subjects.client_process import Call, Outcome

MOST_STEPS = 200_000
Definition = tuple[str, tuple[tuple[str, int], ...]]
#: (version, definition, is deleted)
Row = tuple[int, Definition, bool]
#: a definition with the texts that it refers to, which refer to none
Whole = tuple[str, tuple[ResolvedReference, ...]]
#: what all references of the races are called
REFERENCE = "Order"


@dataclass(frozen=True)
class Place:
    """A context: subjects with their rows, the ids of definitions, and own settings by subject ("": the context's)."""

    subjects: tuple[tuple[str, tuple[Row, ...]], ...] = ()
    ids: tuple[tuple[Definition, int], ...] = ()
    next_id: int = 1
    levels: tuple[tuple[str, str], ...] = ()
    modes: tuple[tuple[str, str], ...] = ()

    def rows(self, subject: str) -> tuple[Row, ...]:
        """All rows of a subject."""
        return dict(self.subjects).get(subject, ())

    def setting(self, name: str, subject: str, default: str) -> str:
        """The subject's own setting, or the context's."""
        own = dict(getattr(self, name))
        return own.get(subject) or own.get("", default)

    def put(self, name: str, key: Any, value: Any) -> Place:
        """The same with one entry set (None: removed)."""
        table = {**dict(getattr(self, name)), key: value}
        return replace(self, **{name: tuple(sorted((k, v) for k, v in table.items() if v is not None))})

    def referrers(self, subject: str, version: int) -> list[tuple[str, Row]]:
        """The rows whose definition refers to a version."""
        return [(name, row) for name, rows in self.subjects for row in rows if (subject, version) in row[1][1]]


@dataclass(frozen=True)
class Result:
    """What a call gives: a value, or any of the errors for which there is a reason; and the state then."""

    place: Place
    value: Any = None
    errors: frozenset[str] = frozenset()


def after(place: Place, call: Call) -> Result:
    """What a call makes of a state."""
    return _RULES[call.service](place, **_plain(call.arguments))


def _plain(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {**arguments, "subject": arguments["subject"].subject}


def _register(place: Place, *, subject: str, text: str, references: Any = (), **_: Any) -> Result:
    targets = tuple((item.subject.rpartition(":")[2], item.version) for item in references)
    definition: Definition = (text, targets)
    rows = place.rows(subject)
    errors = set()
    if any(not any(row[0] == number and not row[2] for row in place.rows(name)) for name, number in targets):
        errors.add("InvalidReference")
    if place.setting("modes", subject, "READWRITE") != "READWRITE":
        errors.add("OperationNotPermitted")
    there = next((row for row in reversed(rows) if row[1] == definition and not row[2]), None)
    if there and "InvalidReference" not in errors:
        return Result(place, (there[0], dict(place.ids)[definition], False))
    live = tuple((row[0], _whole(place, row[1])) for row in rows if not row[2])
    level = place.setting("levels", subject, "BACKWARD")
    if "InvalidReference" not in errors and not _fits(_whole(place, definition), live, level):
        errors.add("IncompatibleSchema")
    if errors:
        return Result(place, errors=frozenset(errors))
    schema_id = dict(place.ids).get(definition)
    if schema_id is None:
        schema_id = place.next_id
        place = replace(place.put("ids", definition, schema_id), next_id=schema_id + 1)
    version = max((row[0] for row in rows), default=0) + 1
    kept = tuple(row for row in rows if row[1] != definition or place.referrers(subject, row[0]))
    return Result(place.put("subjects", subject, (*kept, (version, definition, False))), (version, schema_id, True))


def _whole(place: Place, definition: Definition) -> Whole:
    text, targets = definition
    return text, tuple(
        ResolvedReference(REFERENCE, name, number, row[1][0])
        for name, number in targets
        for row in place.rows(name)
        if row[0] == number
    )


@lru_cache(maxsize=4096)
def _fits(new: Whole, live: tuple[tuple[int, Whole], ...], level: str) -> bool:
    history = [(version, parsed(*whole)) for version, whole in live]
    return check(FORMATS["AVRO"], parsed(*new), history, level).is_compatible


def _delete_subject(place: Place, *, subject: str, permanent: bool = False, **_: Any) -> Result:
    rows = place.rows(subject)
    alive = [row for row in rows if not row[2]]
    doomed = rows if permanent else alive
    errors = _refusals(place, subject, doomed, permanent, within=subject)
    if not rows:
        errors.add("SubjectNotFound")
    elif permanent and alive:
        errors.add("SubjectNotSoftDeleted")
    elif not permanent and not alive:
        errors.add("SubjectSoftDeleted")
    if errors:
        return Result(place, errors=frozenset(errors))
    return Result(_without(place, subject, doomed, permanent), [row[0] for row in doomed])


def _delete_version(place: Place, *, subject: str, version: int, permanent: bool = False, **_: Any) -> Result:
    rows = [row for row in place.rows(subject) if row[0] == version]
    errors = _refusals(place, subject, rows, permanent)
    if not place.rows(subject):
        errors.add("SubjectNotFound")
    elif not rows:
        errors.add("VersionNotFound")
    elif permanent and not rows[0][2]:
        errors.add("VersionNotSoftDeleted")
    elif not permanent and rows[0][2]:
        errors.add("VersionSoftDeleted")
    if errors:
        return Result(place, errors=frozenset(errors))
    return Result(_without(place, subject, rows, permanent), version)


def _remove_subject(place: Place, *, subject: str, **_: Any) -> Result:
    rows = place.rows(subject)
    alive = [row for row in rows if not row[2]]
    errors = _refusals(place, subject, alive, False, within=subject)
    if alive:
        errors |= _refusals(place, subject, rows, True, within=subject)
    if errors or not alive:
        return Result(place, [], frozenset(errors))
    return Result(_without(place, subject, rows, True), [row[0] for row in rows])


def _remove_version(place: Place, *, subject: str, version: int, **_: Any) -> Result:
    rows = [row for row in place.rows(subject) if row[0] == version]
    errors = _refusals(place, subject, rows, True)
    if not place.rows(subject):
        errors.add("SubjectNotFound")
    elif not rows:
        errors.add("VersionNotFound")
    elif rows[0][2]:
        errors.add("VersionSoftDeleted")
    if errors:
        return Result(place, errors=frozenset(errors))
    return Result(_without(place, subject, rows, True))


def _refusals(place: Place, subject: str, rows: Sequence[Row], permanent: bool, within: str = "") -> set[str]:
    errors = set()
    if place.setting("modes", subject, "READWRITE").startswith("READONLY"):
        errors.add("OperationNotPermitted")
    for row in rows:
        for name, referrer in place.referrers(subject, row[0]):
            if name != within and (permanent or not referrer[2]):
                errors.add("ReferenceExists")
    return errors


def _without(place: Place, subject: str, doomed: Sequence[Row], permanent: bool) -> Place:
    if not permanent:
        rows = tuple((row[0], row[1], True) if row in doomed else row for row in place.rows(subject))
        return place.put("subjects", subject, rows)
    left = tuple(row for row in place.rows(subject) if row not in doomed)
    place = place.put("subjects", subject, left or None)
    if not left:
        place = place.put("levels", subject, None).put("modes", subject, None)
    used = {row[1] for _, rows in place.subjects for row in rows}
    return replace(place, ids=tuple((definition, number) for definition, number in place.ids if definition in used))


def _set_config(place: Place, *, subject: str, level: str, **_: Any) -> Result:
    if place.setting("modes", subject, "READWRITE").startswith("READONLY"):
        return Result(place, errors=frozenset({"OperationNotPermitted"}))
    return Result(place.put("levels", subject, level), level)


def _set_mode(place: Place, *, subject: str, mode: str, **_: Any) -> Result:
    return Result(place.put("modes", subject, mode), mode)


_RULES = {
    "register_version": _register,
    "delete_subject": _delete_subject,
    "delete_version": _delete_version,
    "remove_subject": _remove_subject,
    "remove_version": _remove_version,
    "set_config": _set_config,
    "set_mode": _set_mode,
}


@lru_cache(maxsize=512)
def parsed(text: str, references: tuple[ResolvedReference, ...] = ()) -> ParsedSchema:
    """The parsed form of a text with what it refers to."""
    return FORMATS["AVRO"].parse(text, references)


def find_order(start: Place, outcomes: Sequence[Outcome], end: Place) -> list[Outcome] | None:
    """An order in which the outcomes and the end follow from the start; None where there is none."""
    seen: set[tuple[frozenset[int], Place]] = set()
    stack: list[tuple[Place, tuple[int, ...]]] = [(start, ())]
    while stack:
        place, order = stack.pop()
        waiting = frozenset(range(len(outcomes))) - frozenset(order)
        if not waiting and place == end:
            return [outcomes[number] for number in order]
        if (waiting, place) in seen:
            continue
        seen.add((waiting, place))
        assert len(seen) < MOST_STEPS, "the search grew too large: race fewer calls"
        stack += [(result, (*order, number)) for number, result in _next_steps(place, outcomes, waiting)]
    return None


def _next_steps(place: Place, outcomes: Sequence[Outcome], waiting: frozenset[int]) -> list[tuple[int, Place]]:
    """The calls that may come next with what they make of the state; one that can change nothing is taken at once."""
    first_end = min((outcomes[number].ended for number in waiting), default=0.0)
    steps = []
    for number in sorted(waiting, key=lambda number: -outcomes[number].ended):
        outcome = outcomes[number]
        if outcome.began > first_end:
            continue
        result = after(place, outcome.call)
        if not _agrees(outcome, result):
            continue
        if outcome.error or (outcome.call.service == "register_version" and not outcome.value.created):
            return [(number, place)]
        steps.append((number, result.place))
    return steps


def _agrees(outcome: Outcome, result: Result) -> bool:
    if outcome.error or result.errors:
        return outcome.error in result.errors
    value = outcome.value
    if outcome.call.service == "register_version":
        value = (value.version, value.schema_id, value.created)
    elif outcome.call.service == "set_config":
        value = value.level
    return bool(value == result.value)
