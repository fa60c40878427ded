"""The evidence of findings: one typed form for each rule, made and read here alone. Pure.

`forms` has the form of each rule, `value_types` what they consist of and whether a JSON value is of a type, the rest
reads what earlier releases kept. A finding is made through `make_evidence`, which refuses what isn't of its rule's form; what
the database has kept is read through `read_evidence`, which never fails: findings outlive the release that wrote them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypedDict

from registry.drift.evidence.forms import FORMS
from registry.drift.evidence.value_types import FailureRow, fields_of, mismatch


class FailureRows(TypedDict):
    """The first messages of a partition that couldn't be read, and why: of the first of them."""

    partition: int
    offsets: list[int]
    reason: str


def _failures(stored: object) -> object:
    """A row a message, with the reason for the first of a partition alone: of the others it wasn't kept."""
    if not isinstance(stored, list):
        return stored
    rows: list[object] = []
    for row in stored:
        if mismatch(row, FailureRows):
            rows.append(row)
            continue
        for number, offset in enumerate(row["offsets"]):
            reason = {"reason": row["reason"]} if number == 0 else {}
            rows.append({"partition": row["partition"], "offset": offset, **reason})
    return rows


#: the type that a form gives a field → how it is made of what earlier releases kept
RENEWED: Final[Mapping[Any, Callable[[object], object]]] = {list[FailureRow]: _failures}


def without_false_noughts(rule: str, stored: Mapping[str, Any]) -> Mapping[str, Any]:
    """The evidence without a number that was kept as 0 because nobody had counted."""
    if rule == "SCHEMA_NOT_DECODED" and stored.get("messages") == 0:
        return {name: value for name, value in stored.items() if name != "messages"}
    return stored


__all__ = ["FORMS", "UNREADABLE", "fields_of_rule", "in_last_scan", "make_evidence", "mismatch", "read_evidence"]

#: the form of rules that further kinds of source bring
OF_OTHERS: Final = dict[str, str | int | float | None]
#: in what `read_evidence` returns: the names of what an earlier release kept in another form, which is left out
UNREADABLE: Final = "unreadable"


def fields_of_rule(rule: str) -> dict[str, Any]:
    """The names and types that evidence of a rule may have; empty for a rule that isn't in the tables any more."""
    form = FORMS.get(rule)
    return {} if form is None else {name: kind for name, (kind, _) in fields_of(form).items()}


def make_evidence(rule: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """`values` as the evidence of a finding.

    Raises TypeError where they aren't of the rule's form, with the field: that is a mistake in the code that judges.
    """
    problem = mismatch(dict(values), FORMS.get(rule, OF_OTHERS))
    if problem:
        raise TypeError(f"The evidence of {rule} doesn't match its form: {problem}.")
    return dict(values)


def in_last_scan(evidence: Mapping[str, Any]) -> int | None:
    """How many messages the last scan saw of a finding, whose count is of all scans; None where it isn't of messages."""
    messages = evidence.get("messages")
    return messages if isinstance(messages, int) else None


def read_evidence(rule: str, stored: object) -> dict[str, Any]:
    """What the database keeps of a finding, each field of the type that the rule's form gives it.

    Fields of another type are left out and named under UNREADABLE. Of a rule that isn't in the tables any more the
    texts and numbers remain, since nothing says what the rest means.
    """
    if not isinstance(stored, Mapping):
        return {}
    stored = without_false_noughts(rule, stored)
    kinds = fields_of_rule(rule)
    read, unreadable = {}, []
    for name, stored_value in stored.items():
        kind = kinds.get(name) if kinds else str | int | float | None
        value = RENEWED[kind](stored_value) if kind in RENEWED else stored_value
        if kind is None or mismatch(value, kind):
            unreadable.append(str(name))
        else:
            read[name] = value
    return read | {UNREADABLE: sorted(unreadable)} if unreadable else read
