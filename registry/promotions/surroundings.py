"""What stands around a plan: who refers to its subjects, what data and people say, when nothing may be applied."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC
from typing import Final

from django.utils import timezone

from registry.errors import SchemaTooCostly
from registry.formats.base import ParsedSchema
from registry.promotions.ageing import aged
from registry.promotions.care import checks_of_care
from registry.promotions.clients import checks_of_clients
from registry.promotions.eligible import needed_for
from registry.promotions.freezes import frozen_at
from registry.promotions.holdings import named_in
from registry.promotions.models import Environment, PromotionRequest, Thread
from registry.promotions.notes import checks_of_notes
from registry.promotions.plan import FAIL, PASS, SKIPPED, WARN, Check, Plan, Step, Verdict, Wanted, Wish
from registry.promotions.talk import threads_check
from registry.subjects import engines
from registry.subjects.evidence import PROVIDERS, Evidence, Kind, evidence_of
from registry.subjects.models import Registry, SchemaReference, SchemaVersion
from registry.subjects.names import SubjectName, parse_subject
from registry.subjects.selectors.dependants import dependants_of
from registry.subjects.selectors.parsed import parse_stored

#: subjects of a plan whose evidence and dependants are looked for; the rest says that it wasn't
MAX_LOOKED_AT: Final = 20
_NAMED: Final = 5
_DATA: Final[tuple[Kind, ...]] = ("data",)


def checks_around(wish: Wish, plan: Plan, wanted: Sequence[Wanted], *, thorough: bool = True) -> tuple[Check, ...]:
    """All of these checks; with `thorough` those too that read data's evidence and try what referrers would meet."""
    target = wish.target
    adding = {step.subject: step for step in plan.steps if step.adds}
    found = [*_frozen(target), *_mirrored(target.registry), *_open_threads(wish)]
    if thorough:
        found += checks_of_notes(wish, plan)
    if thorough and adding:
        schemas = {item.subject: item.schema for item in wanted if item.schema is not None}
        found += _referrers(target.registry, adding, schemas)
        found += _data(target, plan, adding, schemas)
        looked_at = list(adding)[:MAX_LOOKED_AT]
        found += checks_of_clients(target.registry, looked_at, schemas)
        found += checks_of_care(wish, looked_at, schemas)
    if thorough and wish.request_id:
        found += _without_reviewers(wish.request_id)
    return tuple(found)


def frozen_until(target: Environment) -> str:
    """Why and until when nothing is applied to an environment, as a sentence; "" if it isn't frozen now."""
    window = frozen_at([target], timezone.now()).get(target.pk)
    if window is None:
        return ""
    return f"{target.registry.name} is frozen until {window.ends_at:%Y-%m-%d %H:%M} UTC: {window.reason}."


def _frozen(target: Environment) -> list[Check]:
    said = frozen_until(target)
    if not said:
        return []
    cure = "Schedule it for after that time, or have a reviewer override it with a reason."
    return [Check("freeze", "freeze window", FAIL, said, cure, overridable=True)]


def _mirrored(registry: Registry) -> list[Check]:
    """How fresh the mirror is from which the plan of a remote registry is made."""
    if registry.kind != Registry.REMOTE:
        return []
    name, cure = "mirror of the target", "Synchronise the mirror."
    if registry.synced_at is None:
        return [Check("mirror", name, FAIL, f"{registry.name} was never read as a whole, so nothing is known.", cure)]
    seen = f"{registry.synced_at:%Y-%m-%d %H:%M} UTC"
    if registry.sync_error:
        said = f"{registry.name} was last read as a whole at {seen}; since then: {registry.sync_error}"
        return [Check("mirror", name, WARN, said, cure)]
    return [Check("mirror", name, PASS, f"The plan is made from what {registry.name} held at {seen}.")]


def _open_threads(wish: Wish) -> list[Check]:
    if not wish.request_id:
        return []
    count = Thread.objects.filter(request_id=wish.request_id, resolved_at=None).count()
    return threads_check(count, blocks=wish.target.threads_block)


def _without_reviewers(request_id: int) -> list[Check]:
    """Whether nobody at all could approve the request as it stands."""
    request = PromotionRequest.objects.select_related("target__registry").get(pk=request_id)
    said = needed_for(request).nobody_can
    if not said:
        return []
    cure = "Give somebody else the right to review here, name other reviewers in the rules, or add owners."
    return [Check("reviewers", "reviewers", WARN, said, cure)]


def _referrers(registry: Registry, adding: dict[str, Step], schemas: dict[str, ParsedSchema]) -> list[Check]:
    """For each subject that others at the target refer to: how many, to which versions, and what they meet on moving on.

    It names none of them: whoever reads the request reads this, and may not read those.
    """
    pinned = _pinned(registry, [parse_subject(name) for name in adding])
    found = []
    for subject in sorted(pinned)[:MAX_LOOKED_AT]:
        said = _referring(pinned[subject])
        schema = schemas.get(subject)
        breaks = _meets(registry, parse_subject(subject), schema) if schema is not None else []
        verdict: Verdict = WARN if breaks else PASS
        cure = "See who they are on the subject's page of references, and tell their owners." if breaks else ""
        text = " ".join([said, *breaks])
        found.append(Check("referrers", f"those that refer to {subject}", verdict, text, cure, subject=subject))
    return found


def _referring(links: Sequence[tuple[str, int]]) -> str:
    """How many subjects refer to which versions, from pairs of a referring subject and the version that it names."""
    subjects = len({subject for subject, _ in links})
    versions = sorted({version for _, version in links})
    named = ", ".join(map(str, versions[:_NAMED])) + (
        f" and {len(versions) - _NAMED} more" if len(versions) > _NAMED else ""
    )
    return (
        f"{subjects} subject{'s refer' if subjects > 1 else ' refers'} to version{'s' if len(versions) > 1 else ''} {named};"
        " each keeps the version that it names."
    )


def _pinned(registry: Registry, names: Sequence[SubjectName]) -> dict[str, list[tuple[str, int]]]:
    """Subject → pairs of a subject that refers to it and the version that it names, of live versions; one query."""
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
    found: dict[str, list[tuple[str, int]]] = {}
    for context, subject, version, by_context, by_subject, _ in columns.distinct():
        referrer = SubjectName(by_context, by_subject).qualified
        found.setdefault(SubjectName(context, subject).qualified, []).append((referrer, version))
    return found


def _meets(registry: Registry, subject: SubjectName, schema: ParsedSchema) -> list[str]:
    """What those that refer to the subject would break if they moved to the schema."""
    try:
        found = dependants_of(registry, subject, schema, engines.references_of(schema))
    except SchemaTooCostly as error:
        return [f"What they meet on moving on wasn't worked out: {error.message}"]
    broken = sum(item.answer == "no" for item in found)
    return [f"{broken} of them couldn't move on to it."] if broken else []


def _data(target: Environment, plan: Plan, adding: dict[str, Step], schemas: dict[str, ParsedSchema]) -> list[Check]:
    """Whether what is promoted reads the messages that are there, whatever versions the level names."""
    if not any(kind == "data" for kind, _ in PROVIDERS.values()):
        return []
    rule, now = target.evidence_rule, timezone.now()
    found = []
    for subject in list(adding)[:MAX_LOOKED_AT]:
        if subject in schemas:
            check = _data_check(target.registry, plan, subject, schemas[subject])
            found.append(aged(check, rule, now, has_versions=bool(plan.target[subject]["versions"])))
    return found


def _data_check(registry: Registry, plan: Plan, subject: str, schema: ParsedSchema) -> Check:
    code, name = "evidence.data", f"messages of {subject}"
    numbers = [number for number, _ in plan.target[subject]["versions"]]
    if not numbers:
        return Check(code, name, SKIPPED, "The target has no version yet, so no message has one.", subject=subject)
    evidence = evidence_of(registry, parse_subject(subject), numbers, kinds=_DATA)
    seen = _seen(evidence.values())
    used = [number for number in numbers if any(item.in_use == "yes" for item in evidence[number])]
    if not used:
        said = _first_said(evidence[numbers[-1]])
        known = all(item.in_use == "no" for items in evidence.values() for item in items)
        verdict: Verdict = PASS if known and said else SKIPPED
        return Check(code, name, verdict, said or "Nothing is known of its messages.", subject=subject, as_of=seen)
    try:
        broken = _unreadable(registry, parse_subject(subject), schema, used)
    except SchemaTooCostly as error:
        return Check(code, name, SKIPPED, error.message, subject=subject, as_of=seen)
    listed = ", ".join(str(number) for number in used)
    if not broken:
        of = f"version{'s' if len(used) > 1 else ''} {listed}"
        return Check(code, name, PASS, f"Messages of {of} are in use, and it reads them.", subject=subject, as_of=seen)
    said = f"Messages of version {broken[0][0]} are in use, and it can't read them: {broken[0][1]}"
    cure = "Wait until those messages are gone, or keep it able to read them."
    return Check(code, name, WARN, said, cure, subject=subject, as_of=seen)


def _seen(evidence: Iterable[Sequence[Evidence]]) -> str:
    """When the oldest of it was seen: what is told is no newer than that."""
    times = [item.as_of for items in evidence for item in items if item.as_of is not None]
    return min(times).astimezone(UTC).isoformat(timespec="seconds") if times else ""


def _first_said(items: Sequence[Evidence]) -> str:
    return items[0].sentence if items else ""


def _unreadable(
    registry: Registry, subject: SubjectName, schema: ParsedSchema, numbers: Sequence[int]
) -> list[tuple[int, str]]:
    """The versions in use whose messages the schema doesn't read, newest first, each with the first reason."""
    rows = SchemaVersion.objects.filter(
        named_in([subject], "subject__"), subject__context__registry=registry, version__in=numbers
    ).select_related("schema")
    versions = list(rows.order_by("version"))
    history = list(zip((row.version for row in versions), parse_stored([row.schema for row in versions]), strict=True))
    report = engines.check(schema, history, "BACKWARD_TRANSITIVE")
    return [(item.against_version, f"{item.message} at {item.named_path or 'its root'}.") for item in report.breaks]
