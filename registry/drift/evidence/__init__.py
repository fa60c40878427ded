"""The evidence of findings: one typed form per rule, written and read only here. Pure.

`forms` has the form of each rule, `value_types` the types of its values and their check. This module converts evidence
of earlier releases. `make_evidence` rejects evidence that doesn't match its rule's form; `read_evidence` reads stored
evidence and never fails: findings outlive the release that wrote them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypedDict

from registry.drift.evidence.forms import FORMS
from registry.drift.evidence.value_types import FailureRow, fields_of, mismatch


class FailureRows(TypedDict):
    """The first unreadable messages of a partition, with the reason for only the first."""

    partition: int
    offsets: list[int]
    reason: str


def _failures(stored: object) -> object:
    """Convert to one row per message; only the first of a partition has a reason, as the others weren't stored."""
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


#: the type of a field → its conversion from earlier releases
RENEWED: Final[Mapping[Any, Callable[[object], object]]] = {list[FailureRow]: _failures}


def without_false_zeros(rule: str, stored: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the evidence without a number that was stored as 0 because nothing was counted."""
    if rule == "SCHEMA_NOT_DECODED" and stored.get("messages") == 0:
        return {name: value for name, value in stored.items() if name != "messages"}
    return stored


__all__ = ["FORMS", "UNREADABLE", "fields_of_rule", "in_last_scan", "make_evidence", "mismatch", "read_evidence"]

#: the form for rules of further source kinds
OF_OTHERS: Final = dict[str, str | int | float | None]
#: key of `read_evidence`: the names of omitted fields that an earlier release stored in another form
UNREADABLE: Final = "unreadable"


def fields_of_rule(rule: str) -> dict[str, Any]:
    """Return the names and types of a rule's evidence; empty for a rule that no longer exists."""
    form = FORMS.get(rule)
    return {} if form is None else {name: kind for name, (kind, _) in fields_of(form).items()}


def make_evidence(rule: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return `values` as the evidence of a finding.

    Raises TypeError with the field if they don't match the rule's form: that is a bug in the code that judges.
    """
    problem = mismatch(dict(values), FORMS.get(rule, OF_OTHERS))
    if problem:
        raise TypeError(f"The evidence of {rule} doesn't match its form: {problem}.")
    return dict(values)


def in_last_scan(evidence: Mapping[str, Any]) -> int | None:
    """Return how many messages the last scan saw of a finding; None if it isn't about messages."""
    messages = evidence.get("messages")
    return messages if isinstance(messages, int) else None


def read_evidence(rule: str, stored: object) -> dict[str, Any]:
    """Return a finding's stored evidence, each field with the type in its rule's form.

    Fields with another type are omitted and listed under UNREADABLE. For a rule that no longer exists, only texts and
    numbers remain: the meaning of the rest is unknown.
    """
    if not isinstance(stored, Mapping):
        return {}
    stored = without_false_zeros(rule, stored)
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
