"""Open drift in promotions: checks of a plan, findings that a release resolves, findings behind a request.

A subject whose data or state doesn't match it isn't a sound base for a release.

A request that answers an undeclared field brings a schema that declares it. Validating consumers can't read the same
messages, which is a finding of its own and a break. If that finding blocked the request, nothing could ever resolve it.
So it doesn't block if all of this holds:

- The request answers an undeclared field of the same messages: of one topic, side and mark.
- Nothing else is wrong with them: messages that can't be read only have fields besides the declared ones.
- The new schema declares everything that scans saw of them in the last weeks, with kinds that it accepts, and every
  field that it requires was in each of them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from django.db.models import Q, QuerySet

from registry.access.roles import Actor
from registry.drift.evidence import read_evidence
from registry.drift.findings.redaction import redacted_text
from registry.drift.judge.declared_fields import DeclaredFields, declared_fields, parent_of
from registry.drift.models import Finding
from registry.drift.proposals.observed_schema import UNDECLARED, seen_fields
from registry.drift.selectors import FindingInfo, get_finding
from registry.drift.selectors.findings import finding_infos, unchecked_findings, without_reason
from registry.errors import NotFound, SchemadeskError
from registry.formats import format_of
from registry.observations import FieldProfile
from registry.promotions.hook_points import OriginFinding
from registry.promotions.plan.types import FAIL, PASS, WARN, Check, PlanStep, Verdict
from registry.subjects.models import Registry
from registry.subjects.versions.parsed_schemas import parse_schema

#: a value that its schema forbids; findings from before that rule call it a body that doesn't decode
_OF_BODIES: Final = frozenset({"SCHEMA_VIOLATED", "UNDECODABLE"})
#: problems with values of fields, which declaring more fields doesn't fix
_OF_VALUES: Final = frozenset({"FIELD_MISSING", "FIELD_TYPE_WRONG", "ENUM_VALUE_UNDECLARED"})
#: the pipeline's text for the keywords that a value violates; with several keywords, all of them
_REFUSED: Final = "the value isn't valid by its schema, at "
_AND: Final = re.compile(r" and (?:at )?")
_BESIDE: Final = frozenset({"additionalProperties", "unevaluatedProperties"})


def cured(answers: int | None, target: Registry, steps: Sequence[PlanStep], rows: Iterable[Finding]) -> frozenset[int]:
    """Return the open findings at the target that the steps of a request would resolve if it answers a finding.

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
    if declared is None or not _is_valid_by(declared, seen_fields(origin)):
        return frozenset()
    return frozenset(row.pk for row in same if row.rule == UNDECLARED or _is_of_more_fields(row))


def _messages(evidence: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """Return the side, framing and mark of a finding's messages; None if they don't have one mark."""
    parts = (evidence.get("side"), evidence.get("framing"), evidence.get("mark"))
    return (str(parts[0]), str(parts[1]), str(parts[2])) if all(part is not None for part in parts) else None


def _place(row: Finding) -> tuple[str, tuple[str, str, str] | None]:
    return (row.topic.name if row.topic else "", _messages(read_evidence(row.rule, row.evidence)))


def _is_of_more_fields(row: Finding) -> bool:
    """Return whether fields besides the declared ones are the only reason that the messages can't be read."""
    if row.rule not in _OF_BODIES:
        return False
    reasons = _reasons_of_all(read_evidence(row.rule, row.evidence))
    return bool(reasons) and all(map(_is_beside, reasons))


def _reasons_of_all(evidence: Mapping[str, Any]) -> set[str]:
    """Return the reasons of all messages of a finding, including earlier scans; empty if any of them is unknown.

    Earlier releases didn't count reasons and kept only the first violation of each message, which isn't enough.
    """
    now, before = evidence.get("by_reason", {}), evidence.get("by_reason_before", {})
    is_whole = sum(now.values()) == evidence.get("messages") and not evidence.get("other_reasons_before")
    return {*now, *before} if is_whole else set()


def _is_beside(reason: str) -> bool:
    """Return whether a value violates only keywords that forbid further fields."""
    if not reason.startswith(_REFUSED):
        return False
    paths = _AND.split(reason.removeprefix(_REFUSED))
    return all(path.rpartition("/")[2] in _BESIDE for path in paths)


def _declared(step: PlanStep) -> DeclaredFields | None:
    """Return what a JSON Schema without references declares; None for others, which restrict more than fields."""
    if not format_of(step.schema_type).has_value_rules or step.references:
        return None
    try:
        declared = declared_fields(parse_schema(step.schema_type, step.text, (), is_new=False))
    except SchemadeskError:
        return None
    return declared if declared is not None and not declared.is_cut else None


def _is_valid_by(declared: DeclaredFields, observed: Sequence[FieldProfile]) -> bool:
    """Return whether everything that was seen is valid by the declared fields."""
    profiles = {profile.path: profile for profile in observed if profile.present}
    if not profiles or not all(_fits(declared, path, profile) for path, profile in profiles.items()):
        return False
    whole = max(profile.messages for profile in profiles.values())
    return all(_is_filled(path, profiles, whole) for path, field in declared.fields.items() if field.required)


def _fits(declared: DeclaredFields, path: str, profile: FieldProfile) -> bool:
    field = declared.fields.get(path)
    if field is None:
        return not path or declared.others.get(parent_of(path)) in ("open", "silent")
    return field.kinds is None or all(kind in field.kinds for kind, count in profile.kinds.items() if count)


def _is_filled(path: str, profiles: Mapping[str, FieldProfile], whole: int) -> bool:
    """Return whether a required field was in every object that could have it."""
    around = profiles.get(parent_of(path))
    possible = around.kinds.get("object", 0) if around is not None else 0 if parent_of(path) else whole
    profile = profiles.get(path)
    return (profile.present if profile is not None else 0) >= possible


MAX_NAMED: Final = 3
_OPEN: Final = Q(state="open", muted=False, severity__in=("break", "risk"))
#: breaks that fail requests even if one person acknowledged or muted them
HELD: Final = Q(
    severity="break",
    state__in=("open", "acknowledged"),
    source__registry__environment__is_closed=True,
    source__registry__environment__drift_blocks=True,
)
_CURE: Final = "Resolve or acknowledge the open findings, or have a reviewer override the check with a reason."
_CURE_CLOSED: Final = "Resolve the findings, or have a reviewer override the check with a reason."
_DECIDED: Final = "Acknowledged or muted, which doesn't unblock a closed environment:"


def open_drift(target: Registry, steps: Sequence[PlanStep], answers: int | None = None) -> list[Check]:
    """Return a check for every changed subject with open breaks or risks at the target; three queries.

    A break fails, unless the environment allows it; a risk warns. Acknowledged and muted findings count as decided,
    except a break in a closed environment whose drift blocks: there, a second person must override the check. Findings
    that the request resolves don't block; two more queries for a request that answers a finding.
    """
    subjects = {step.subject: None for step in steps if step.adds}
    rows = list(_open([target], _OPEN | HELD).filter(subject_name__in=subjects).order_by("pk")) if subjects else []
    mended = cured(answers, target, steps, rows) if rows else frozenset()
    by_subject: dict[str, list[Finding]] = {}
    for row in rows:
        by_subject.setdefault(row.subject_name, []).append(row)
    held = bool(rows) and decided_breaks_block(target.name)
    unchecked = unchecked_findings(rows)
    texts = {row.pk: _sentence(row, unchecked.get(row.pk, "")) for row in rows}
    return [_check(name, by_subject[name], mended, texts, is_held=held) for name in subjects if name in by_subject]


def drift_facts(targets: Collection[Registry], subjects: Collection[str] | None) -> dict[int, dict[str, str]]:
    """Return the findings that count for each subject, by number and severity, by the registry's key; one query."""
    rows = _open(targets, _OPEN | HELD)
    rows = rows if subjects is None else rows.filter(subject_name__in=subjects)
    by_registry: dict[int, dict[str, list[str]]] = {}
    for registry, subject, key, severity, *decided in rows.order_by("pk").values_list(
        "source__registry", "subject_name", "pk", "severity", "state", "muted"
    ):
        fact = f"{key} {severity}{'' if decided == ['open', False] else ' decided'}"
        by_registry.setdefault(registry, {}).setdefault(subject, []).append(fact)
    return {
        registry: {name: ", ".join(items) for name, items in by_subject.items()}
        for registry, by_subject in by_registry.items()
    }


def open_breaks_of(registry: Registry, subjects: Collection[str]) -> dict[str, list[int]]:
    """Return the numbers of the open break findings by subject; one query."""
    by_subject: dict[str, list[int]] = {}
    rows = _open([registry]).filter(subject_name__in=subjects, severity="break").order_by("pk")
    for subject, number in rows.values_list("subject_name", "pk"):
        by_subject.setdefault(subject, []).append(number)
    return by_subject


def _open(targets: Collection[Registry], which: Q = _OPEN) -> QuerySet[Finding]:
    rows = Finding.objects.select_related("source", "topic").filter(which, source__registry__in=targets)
    return rows.exclude(subject_name="")


def decided_breaks_block(registry: str) -> bool:
    """Return whether breaks fail requests there even if they are acknowledged or muted; one query."""
    closed = Registry.objects.filter(environment__is_closed=True, environment__drift_blocks=True)
    return closed.filter(name=registry).exists()


def _check(
    subject: str, rows: Sequence[Finding], mended: Collection[int], texts: Mapping[int, str], *, is_held: bool
) -> Check:
    left = [row for row in rows if row.pk not in mended]
    decided = [texts[row.pk] for row in left if _is_decided(row)]
    remaining = [row for row in left if not _is_decided(row)]
    breaks = [texts[row.pk] for row in remaining if row.severity == "break"]
    sentences = [_listed("Open in the target:", breaks or [texts[row.pk] for row in remaining])] if remaining else []
    if decided:
        sentences.append(_listed(_DECIDED, decided))
    if mended:
        cured_texts = [texts[row.pk] for row in rows if row.pk in mended]
        sentences.append(_listed("Will be resolved by this request:", cured_texts))
    fails = bool(breaks or decided)
    verdict: Verdict = FAIL if fails else WARN if left else PASS
    cure = (_CURE_CLOSED if is_held else _CURE) if left else ""
    text = " ".join(sentences)
    return Check("drift", f"drift of {subject}", verdict, text, cure, overridable=fails, subject=subject)


def _is_decided(row: Finding) -> bool:
    return row.muted or row.state != "open"


def _sentence(row: Finding, unchecked: str) -> str:
    """Return a finding's text for the check, without other subjects: all readers of the request can see it."""
    text = redacted_text(row.sentence, row.evidence, row.subject_name)
    return f"{text} ({without_reason(unchecked)} See finding {row.pk}.)" if unchecked else text


def _listed(begin: str, sentences: Sequence[str]) -> str:
    more = f" And {len(sentences) - MAX_NAMED} more." if len(sentences) > MAX_NAMED else ""
    return f"{begin} {' '.join(sentences[:MAX_NAMED])}{more}"


def findings_of(numbers: Collection[int], by: Actor) -> dict[int, OriginFinding]:
    """Return the findings by number, without those that the actor may not read; one query."""
    rows = Finding.objects.visible_to(by).filter(pk__in=numbers).select_related("source__registry")
    return {info.id: _origin(info) for info in finding_infos(rows, by)}


def _origin(info: FindingInfo) -> OriginFinding:
    return OriginFinding(info.id, info.registry, info.sentence, info.severity, info.state)
