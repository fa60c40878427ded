"""Which open findings the release of a schema cures: what was seen of their messages is valid under that schema.

A request that answers an undeclared field brings a schema that declares it. Validating consumers can't read the same
messages, which is a finding of its own and a break: were it to hold up the request, nothing could ever cure it. So it
doesn't, where all of this is so:

- the request answers an undeclared field of these messages: of one topic, side and mark;
- nothing else is wrong with them: what can't be read is refused for fields beside the declared ones alone;
- all that the scans saw of them in the last weeks is declared by the new schema, of kinds that it takes, and every
  field that it requires was in each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from registry.drift.evidence import read_evidence
from registry.drift.judge.declared import declared_fields
from registry.drift.judge.declaring import Declared
from registry.drift.judge.fields import parent_of
from registry.drift.models import Finding
from registry.drift.proposable import UNDECLARED, seen_fields
from registry.drift.selectors import get_finding
from registry.errors import NotFound, SchemadeskError
from registry.observations import FieldProfile
from registry.promotions.plan import Step
from registry.subjects.models import Registry
from registry.subjects.selectors.parsed import parse_schema

#: a value that its schema forbids; findings of before that rule call it a body that doesn't decode
_OF_BODIES: Final = frozenset({"SCHEMA_VIOLATED", "UNDECODABLE"})
#: what is wrong with values of fields, which a schema that declares more fields doesn't mend
_OF_VALUES: Final = frozenset({"FIELD_MISSING", "FIELD_KIND_WRONG", "ENUM_VALUE_UNDECLARED"})
#: how the pipeline says that a value has a field which its schema doesn't allow
_REFUSED: Final = "the value isn't valid by its schema, at "
_BESIDE: Final = frozenset({"additionalProperties", "unevaluatedProperties"})


def cured(answers: int | None, target: Registry, steps: Sequence[Step], rows: Iterable[Finding]) -> frozenset[int]:
    """Of open findings at the target, those that the steps of a request which answers a finding would cure.

    No query for a request that answers none, two for one that does.
    """
    if answers is None:
        return frozenset()
    try:
        origin = get_finding(answers)
    except NotFound:
        return frozenset()
    step = next((step for step in steps if step.adds and step.subject == origin.subject), None)
    if step is None or origin.registry != target.name or origin.rule != UNDECLARED:
        return frozenset()
    same = [
        row
        for row in rows
        if row.source_id == origin.source_id and _messages(read_evidence(row.rule, row.evidence)) is not None
    ]
    same = [row for row in same if _place(row) == (origin.topic, _messages(origin.evidence))]
    if any(row.rule in _OF_VALUES for row in same):
        return frozenset()
    declared = _declared(step)
    if declared is None or not _takes(declared, seen_fields(origin)):
        return frozenset()
    return frozenset(row.pk for row in same if row.rule == UNDECLARED or _is_of_more_fields(row))


def _messages(evidence: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """The side, framing and mark of a finding's messages; None for one that isn't of messages with one mark."""
    found = (evidence.get("side"), evidence.get("framing"), evidence.get("mark"))
    return (str(found[0]), str(found[1]), str(found[2])) if all(part is not None for part in found) else None


def _place(row: Finding) -> tuple[str, tuple[str, str, str] | None]:
    return (row.topic.name if row.topic else "", _messages(read_evidence(row.rule, row.evidence)))


def _is_of_more_fields(row: Finding) -> bool:
    """Whether the messages can't be read for fields beside the declared ones, and for nothing else that is known."""
    if row.rule not in _OF_BODIES:
        return False
    reasons = [each["reason"] for each in read_evidence(row.rule, row.evidence).get("offsets", ())]
    return bool(reasons) and all(
        reason.startswith(_REFUSED) and reason.rpartition(" ")[2].rpartition("/")[2] in _BESIDE for reason in reasons
    )


def _declared(step: Step) -> Declared | None:
    """What a JSON Schema without references declares; others hold their messages to more than fields."""
    if step.schema_type != "JSON" or step.references:
        return None
    try:
        return declared_fields(parse_schema("JSON", step.text, (), is_new=False))
    except SchemadeskError:
        return None


def _takes(declared: Declared, seen: Sequence[FieldProfile]) -> bool:
    """Whether all that was seen is valid by what is declared, as far as its fields say."""
    profiles = {each.path: each for each in seen if each.present}
    if not profiles or not all(_fits(declared, path, each) for path, each in profiles.items()):
        return False
    whole = max(each.messages for each in profiles.values())
    return all(_is_filled(path, profiles, whole) for path, held in declared.fields.items() if held.required)


def _fits(declared: Declared, path: str, seen: FieldProfile) -> bool:
    held = declared.fields.get(path)
    if held is None:
        return not path or declared.others.get(parent_of(path)) in ("open", "silent")
    return held.kinds is None or all(kind in held.kinds for kind, count in seen.kinds.items() if count)


def _is_filled(path: str, profiles: Mapping[str, FieldProfile], whole: int) -> bool:
    """Whether a required field was in all the objects that could have it."""
    around = profiles.get(parent_of(path))
    possible = around.kinds.get("object", 0) if around is not None else 0 if parent_of(path) else whole
    seen = profiles.get(path)
    return (seen.present if seen is not None else 0) >= possible
