"""Checks of a plan's context: dependants, evidence from data and its age, open discussions, freeze windows, reviewers.

An environment with a rule about the age of evidence binds approvals to that evidence: its checks are part of the plan's
hash, so other evidence voids an approval, and so does evidence that has become too old.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.utils import timezone

from registry import hooks
from registry.errors import SchemaTooCostly, first_few
from registry.formats.base import ParsedSchema
from registry.promotions.checks.advisory import checks_of_care, checks_of_notes, notes_around
from registry.promotions.checks.consumers import checks_of_clients
from registry.promotions.checks.registry_checks import cure_of, hazards_in_words
from registry.promotions.environments.freezes import Window, frozen_at
from registry.promotions.models import Environment, PromotionRequest, Thread
from registry.promotions.models.environments import EvidenceRule
from registry.promotions.plan.target_state import named_in
from registry.promotions.plan.types import (
    FAIL,
    PASS,
    SKIPPED,
    STALE,
    WARN,
    Check,
    IncomingVersion,
    Plan,
    PlanStep,
    PromotionSpec,
    Verdict,
)
from registry.promotions.reviews.eligibility import needed_for
from registry.subjects.engine import schema_engine
from registry.subjects.models import Registry, SchemaReference, SchemaVersion
from registry.subjects.references.reference_graph import dependants_of
from registry.subjects.usage.evidence import Evidence, Kind, evidence_of, filled_fields
from registry.subjects.versions.parsed_schemas import parse_stored
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

EVIDENCE: Final = "evidence.data"
_CURE: Final = "Scan the topic again and run the checks again, or ask a reviewer to override it with a reason."


def aged(check: Check, rule: EvidenceRule, now: datetime, *, has_versions: bool = True) -> Check:
    """Return the check under the rule: stale if its evidence is too old, failing if required evidence is missing.

    If the target has no version, no messages can have been written, so the rule doesn't apply.
    """
    if not rule.binds or not has_versions:
        return check
    bound = replace(check, binding=True)
    if sentence := _too_old(check.as_of, check.sentence, rule, now):
        return replace(bound, verdict=STALE, sentence=sentence, cure=_CURE, overridable=True)
    if rule.required and not check.as_of:
        sentence = f"{check.sentence} {rule.environment} requires evidence from data."
        return replace(bound, verdict=FAIL, sentence=sentence, cure=_CURE, overridable=True)
    return bound


def with_age(plan: Mapping[str, Any], rule: EvidenceRule, now: datetime) -> dict[str, Any]:
    """Return a stored plan with the current age of its evidence, which changes while the plan stays the same."""
    if not rule.hours:
        return dict(plan)
    return {**plan, "checks": [_aged_row(row, rule, now) for row in plan["checks"]]}


def _aged_row(row: Mapping[str, Any], rule: EvidenceRule, now: datetime) -> Mapping[str, Any]:
    if row.get("code") != EVIDENCE or row["verdict"] == STALE:
        return row
    sentence = _too_old(str(row.get("as_of") or ""), str(row["sentence"]), rule, now)
    return {**row, "verdict": STALE, "sentence": sentence, "cure": _CURE, "overridable": True} if sentence else row


def too_old(plan: Mapping[str, Any], rule: EvidenceRule, now: datetime) -> str:
    """Return the sentence of a stored plan's first check whose evidence is too old now; "" if there is none."""
    rows = with_age(plan, rule, now)["checks"]
    return next((str(row["sentence"]) for row in rows if row.get("code") == EVIDENCE and row["verdict"] == STALE), "")


def _too_old(as_of: str, sentence: str, rule: EvidenceRule, now: datetime) -> str:
    """Return the sentence for evidence that is too old; "" for fresh or missing evidence."""
    if not rule.hours or not as_of:
        return ""
    scanned_at = datetime.fromisoformat(as_of).astimezone(UTC)
    if now - scanned_at <= timedelta(hours=rule.hours):
        return ""
    return (
        f"The evidence is too old. The data was last scanned at {scanned_at:%Y-%m-%d %H:%M} UTC, and {rule.environment}"
        f" accepts evidence of up to {rule.longest}. Result then: {sentence}"
    )


THREADS: Final = "threads"


def threads_check(count: int, *, blocks: bool) -> list[Check]:
    """Return the check for open discussions, none if all are resolved; it fails if the environment requires that."""
    if not count:
        return []
    sentence = "1 unresolved discussion." if count == 1 else f"{count} unresolved discussions."
    if not blocks:
        return [Check(THREADS, "discussions", WARN, sentence, "Answer and resolve them.")]
    cure = (
        "Resolve it, or ask a participant to resolve it."
        if count == 1
        else "Resolve them, or ask the participants to resolve them."
    )
    return [Check(THREADS, "discussions", FAIL, sentence, cure)]


def with_threads(plan: Mapping[str, Any], count: int, *, blocks: bool) -> dict[str, Any]:
    """Return a stored plan with the current check of discussions, which change while the plan stays the same."""
    checks = [check for check in plan["checks"] if check.get("code") != THREADS]
    return {**plan, "checks": [*checks, *(check.to_dict() for check in threads_check(count, blocks=blocks))]}


FREEZE: Final = "freeze"


def freezes_of(targets: Sequence[Environment], now: datetime, *, are_read: bool = False) -> dict[int, Check]:
    """Return environment → the failing check of its freeze, if frozen at that moment; as `frozen_at` reads them."""
    names = {target.pk: target.registry.name for target in targets}
    windows = frozen_at(targets, now, are_read=are_read)
    return {number: _freeze_check(names[number], window) for number, window in windows.items()}


def with_freeze(plan: Mapping[str, Any], freeze: Check | None) -> dict[str, Any]:
    """Return a stored plan with the current check of the target's freeze, which isn't part of the plan's hash."""
    checks = [check for check in plan["checks"] if check.get("code") != FREEZE]
    return {**plan, "checks": [*checks, *([freeze.to_dict()] if freeze else ())]}


#: the most subjects of a plan whose evidence and dependants are read
MAX_LOOKED_AT: Final = 20
_DATA: Final[tuple[Kind, ...]] = ("data",)


def checks_around(
    spec: PromotionSpec, plan: Plan, items: Sequence[IncomingVersion], *, thorough: bool = True
) -> tuple[Check, ...]:
    """Return all of these checks; `thorough` includes those that read evidence from data and try dependants."""
    target = spec.target
    adding = {step.subject: step for step in plan.steps if step.adds}
    checks = [*freezes_of([target], timezone.now()).values(), *_mirrored(target.registry), *_open_threads(spec)]
    notes = notes_around(spec, plan) if thorough else ()
    if thorough:
        checks += checks_of_notes(spec, plan, notes)
    if thorough and adding:
        schemas = {item.subject: item.schema for item in items if item.schema is not None}
        checks += _referrers(target.registry, adding, schemas)
        checks += _data(target, plan, adding, schemas)
        looked_at = list(adding)[:MAX_LOOKED_AT]
        clients = checks_of_clients(target.registry, looked_at, schemas)
        checks += [replace(check, binding=target.clients_block and bool(check.facts)) for check in clients]
        checks += checks_of_care(target.registry, looked_at, schemas, notes)
    if thorough and spec.request_id:
        checks += _without_reviewers(spec.request_id)
    return tuple(checks)


def _freeze_check(target: str, window: Window) -> Check:
    sentence = f"{target} is frozen until {window.ends_at:%Y-%m-%d %H:%M} UTC: {window.reason}."
    cure = "Schedule it for after that time, or ask a reviewer to override it with a reason."
    return Check(FREEZE, "freeze window", FAIL, sentence, cure, overridable=True)


def _mirrored(registry: Registry) -> list[Check]:
    """Return the check of how fresh the mirror of a remote registry is, which the plan is built from."""
    if registry.kind != Registry.REMOTE:
        return []
    name, cure = "mirror of the target", "Sync the mirror."
    if registry.synced_at is None:
        return [
            Check("mirror", name, FAIL, f"{registry.name} was never fully synced, so its content is not known.", cure)
        ]
    synced_at = f"{registry.synced_at:%Y-%m-%d %H:%M} UTC"
    if registry.sync_error:
        sentence = f"{registry.name} was last fully synced at {synced_at}. Since then: {registry.sync_error}"
        return [Check("mirror", name, WARN, sentence, cure)]
    return [Check("mirror", name, PASS, f"The plan uses the content of {registry.name} at {synced_at}.")]


def _open_threads(spec: PromotionSpec) -> list[Check]:
    if not spec.request_id:
        return []
    count = Thread.objects.filter(request_id=spec.request_id, resolved_at=None).count()
    return threads_check(count, blocks=spec.target.threads_block)


def _without_reviewers(request_id: int) -> list[Check]:
    """Return a warning if nobody could approve the request as it is."""
    request = PromotionRequest.objects.select_related("target__registry").get(pk=request_id)
    sentence = needed_for(request).nobody_can
    if not sentence:
        return []
    cure = "Give another person a reviewing role here, name other reviewers in the rules, or add owners."
    return [Check("reviewers", "reviewers", WARN, sentence, cure)]


def _referrers(registry: Registry, adding: dict[str, PlanStep], schemas: dict[str, ParsedSchema]) -> list[Check]:
    """Return a check per subject that others at the target refer to: how many, which versions, what an update breaks.

    The check names none of the referrers, because a reader of the request may not be allowed to read them.
    """
    pinned = _pinned(registry, [parse_subject(name) for name in adding])
    checks = []
    for subject in sorted(pinned)[:MAX_LOOKED_AT]:
        sentence = _referring(pinned[subject])
        schema = schemas.get(subject)
        breaks = _meets(registry, parse_subject(subject), schema) if schema is not None else []
        verdict: Verdict = WARN if breaks else PASS
        cure = "See them on the subject's References page, and contact their owners." if breaks else ""
        text = " ".join([sentence, *breaks])
        checks.append(Check("referrers", f"subjects that refer to {subject}", verdict, text, cure, subject=subject))
    return checks


def _referring(links: Sequence[tuple[str, int]]) -> str:
    """Return how many subjects refer to which versions, from pairs of referring subject and version."""
    subjects = len({subject for subject, _ in links})
    versions = sorted({version for _, version in links})
    return (
        f"{subjects} subject{'s refer' if subjects > 1 else ' refers'} to version{'s' if len(versions) > 1 else ''}"
        f" {first_few([str(version) for version in versions])}. Each keeps the version it refers to."
    )


def _pinned(registry: Registry, names: Sequence[SubjectName]) -> dict[str, list[tuple[str, int]]]:
    """Return subject → pairs of referring subject and version, of live versions; one query."""
    rows = SchemaReference.objects.filter(
        target__in=SchemaVersion.objects.filter(named_in(names, "subject__"), subject__context__registry=registry),
        schema__versions__deleted_at=None,
        schema__versions__isnull=False,
    ).order_by("schema__versions__subject__name", "-schema__versions__version")
    columns = rows.values_list(
        "target__subject__context__name",
        "target__subject__name",
        "target__version",
        "schema__versions__subject__context__name",
        "schema__versions__subject__name",
        "schema__versions__version",
    )
    referrers: dict[str, list[tuple[str, int]]] = {}
    for context, subject, version, by_context, by_subject, _ in columns.distinct():
        referrer = SubjectName(by_context, by_subject).qualified
        referrers.setdefault(SubjectName(context, subject).qualified, []).append((referrer, version))
    return referrers


def _meets(registry: Registry, subject: SubjectName, schema: ParsedSchema) -> list[str]:
    """Return how many dependants of the subject couldn't use the new schema, as sentences."""
    try:
        dependants = dependants_of(registry, subject, schema, schema_engine.references_of(schema))
    except SchemaTooCostly as error:
        return [f"The effect of moving them to this version was not checked: {error.message}"]
    broken = sum(item.answer == "no" for item in dependants)
    return [f"{broken} of them can't move to this version."] if broken else []


def _data(
    target: Environment, plan: Plan, adding: dict[str, PlanStep], schemas: dict[str, ParsedSchema]
) -> list[Check]:
    """Return whether the promoted schema reads the existing messages, whichever versions the level compares with."""
    if not any(provider.kind == "data" for provider in hooks.version_evidence):
        return []
    rule, now = target.evidence_rule, timezone.now()
    checks = []
    for subject in list(adding)[:MAX_LOOKED_AT]:
        if subject in schemas:
            check = _data_check(target.registry, plan, subject, schemas[subject])
            checks.append(aged(check, rule, now, has_versions=bool(plan.target[subject]["versions"])))
    return checks


def _data_check(registry: Registry, plan: Plan, subject: str, schema: ParsedSchema) -> Check:
    code, name = "evidence.data", f"messages of {subject}"
    numbers = [number for number, _ in plan.target[subject]["versions"]]
    if not numbers:
        return Check(code, name, SKIPPED, "The target has no version yet, so no messages use one.", subject=subject)
    evidence = evidence_of(registry, parse_subject(subject), numbers, kinds=_DATA)
    as_of = _oldest_as_of(evidence.values())
    used = [number for number in numbers if any(item.in_use == "yes" for item in evidence[number])]
    if not used:
        sentence = _first_sentence(evidence[numbers[-1]])
        is_certain = all(item.in_use == "no" for items in evidence.values() for item in items)
        verdict: Verdict = PASS if is_certain and sentence else SKIPPED
        return Check(code, name, verdict, sentence or "Its messages were not checked.", subject=subject, as_of=as_of)
    history = _versions(registry, parse_subject(subject), used)
    try:
        report = schema_engine.check(schema, history, "BACKWARD_TRANSITIVE")
        dropped = () if report.breaks else _dropped(schema, history)
    except SchemaTooCostly as error:
        return Check(code, name, SKIPPED, error.message, subject=subject, as_of=as_of)
    if report.breaks:
        first = report.breaks[0]
        sentence = f"Messages use version {first.against_version}. The new schema can't read them: {first.message} at"
        sentence = f"{sentence} {first.named_path or 'its root'}."
        cure = "Wait until those messages are gone, or change the schema so that it can read them."
        return Check(code, name, WARN, sentence, cure, subject=subject, as_of=as_of)
    of = f"version{'s' if len(used) > 1 else ''} {', '.join(map(str, used))}"
    sentence = f"Messages use {of}. The new schema can read them{hazards_in_words(report)}"
    filled = filled_fields(registry, parse_subject(subject), {*dropped, *(item.named_path for item in report.hazards)})
    lost = [path for path in dropped if filled.get(path) != ""]
    shares = [f"{path} is filled in {share}." for path, share in filled.items() if share]
    if lost:
        sentence += f" It drops the values of {first_few(lost)}."
    cure = cure_of(report.hazards) or "Keep the fields until nobody needs their values."
    if report.hazards or lost:
        sentence = " ".join([sentence, *shares[:5]])
        return Check(code, name, WARN, sentence, cure, subject=subject, as_of=as_of)
    return Check(code, name, PASS, sentence, subject=subject, as_of=as_of)


def _oldest_as_of(evidence: Iterable[Sequence[Evidence]]) -> str:
    """Return the time of the oldest evidence, ISO 8601; "" if there is none."""
    times = [item.as_of for items in evidence for item in items if item.as_of is not None]
    return min(times).astimezone(UTC).isoformat(timespec="seconds") if times else ""


def _first_sentence(items: Sequence[Evidence]) -> str:
    return items[0].sentence if items else ""


def _versions(registry: Registry, subject: SubjectName, numbers: Sequence[int]) -> list[tuple[int, ParsedSchema]]:
    rows = SchemaVersion.objects.filter(
        named_in([subject], "subject__"), subject__context__registry=registry, version__in=numbers
    ).select_related("schema")
    versions = list(rows.order_by("version"))
    return list(zip((row.version for row in versions), parse_stored([row.schema for row in versions]), strict=True))


def _dropped(schema: ParsedSchema, history: Sequence[tuple[int, ParsedSchema]]) -> tuple[str, ...]:
    """Return the paths of fields that the new schema no longer has, so that its readers don't get their values."""
    changes = (change for _, old in history for change in schema_engine.diff(old, schema))
    # A suspected rename is listed at its new name, but the data has only the old one.
    paths = {
        f"{change.path.rpartition('.')[0]}.{change.before}" if change.kind == "renamed" else change.path: None
        for change in changes
        if change.rule == "FIELD_REMOVED" or (change.rule == "FIELD_RENAME_SUSPECTED" and change.effect)
    }
    return tuple(paths)
