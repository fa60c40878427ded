"""Advisory checks of a plan: lint findings, a missing owner or description, and descriptions that are promoted along.

Advice never stops a promotion, voids an approval, or keeps a request out of a bulk approval. A description is copied if
the target has none; it replaces an existing one only together with the subject's own settings. It is neither a step of
the plan nor part of what is approved, because it changes nothing for clients.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from registry.access.roles import Actor
from registry.access.selectors import owners_of_many
from registry.audit.context import record
from registry.errors import SchemaTooCostly, first_few
from registry.formats import format_of
from registry.formats.base import ParsedSchema
from registry.promotions.models import PromotionRequest
from registry.promotions.plan.types import PASS, SKIPPED, WARN, Check, Plan, PlanStep, PromotionSpec
from registry.subjects.comparison.parsed_versions import is_personal_tag
from registry.subjects.engine import schema_engine
from registry.subjects.lifecycle.notes import Note, bring_checked, notes_in
from registry.subjects.models import Registry, Subject
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

_INFO: Final = "info"


#: the descriptions of a plan's subjects in the target and, after it, in the source if there is one
Notes = Sequence[Mapping[SubjectName, Note]]


def notes_around(spec: PromotionSpec, plan: Plan) -> Notes:
    """Return the notes on the plan's subjects; one query."""
    registries = [spec.target.registry, *([spec.source.registry] if spec.source else [])]
    return notes_in(registries, {parse_subject(step.subject) for step in plan.steps})


def checks_of_care(
    target: Registry, subjects: Sequence[str], schemas: Mapping[str, ParsedSchema], notes: Notes
) -> list[Check]:
    """Return one check each for lint findings, owners and descriptions, over all of these subjects; one query."""
    return [_linted(subjects, schemas), _owned(target, subjects), _described(subjects, notes)]


def _linted(subjects: Sequence[str], schemas: Mapping[str, ParsedSchema]) -> Check:
    name, warned, remarks = "lint", list[str](), 0
    try:
        for subject in subjects:
            findings = schema_engine.lint(schemas[subject]) if subject in schemas else ()
            warnings = [item for item in findings if item.weight != _INFO]
            remarks += len(findings) - len(warnings)
            if warnings:
                first, more = warnings[0], len(warnings) - 1
                rest = f", and {more} more" if more else ""
                warned.append(f"{subject}: {first.message}{f' ({first.path})' if first.path else ''}{rest}")
    except SchemaTooCostly as error:
        return Check("lint", name, SKIPPED, error.message)
    untold = {format_of(schema.schema_type) for schema in schemas.values()}
    missing = sorted(format.unavailable for format in untold if not format.offers("lint"))
    if warned:
        cure = "Check the text as a new version. The report lists each place and how to fix it."
        return Check("lint", name, WARN, f"{first_few(warned, between='; ')}.", cure)
    small = f" {remarks} minor remark{'s' if remarks != 1 else ''} in the reports." if remarks else ""
    if missing:
        return Check("lint", name, SKIPPED, " ".join(missing))
    return Check("lint", name, PASS, f"No lint warnings.{small}")


def _owned(registry: Registry, subjects: Sequence[str]) -> Check:
    owners = owners_of_many(registry.name, subjects)
    without = [subject for subject in subjects if not owners[subject].people]
    if not without:
        return Check("owners", "owners", PASS, f"All subjects have an owner in {registry.name}.")
    cure = "Add an owner, who is notified of drift and asked before the subject is retired."
    return Check("owners", "owners", WARN, f"No owner in {registry.name}: {first_few(without)}.", cure)


def _described(subjects: Sequence[str], notes: Notes) -> Check:
    names = {parse_subject(subject): subject for subject in subjects}
    described = {name for of_registry in notes for name, note in of_registry.items() if note.doc.strip()}
    without = [subject for name, subject in names.items() if name not in described]
    title = "descriptions"
    if not without:
        return Check("descriptions", title, PASS, "All subjects have a description.")
    cure = "Add a description on the subject's page. A description in the source is promoted with it."
    return Check("descriptions", title, WARN, f"No description: {first_few(without)}.", cure)


PROMOTE: Final = "promote"


def checks_of_notes(spec: PromotionSpec, plan: Plan, notes: Notes) -> list[Check]:
    """Return checks of what happens to the descriptions; none if the source has none or the target has the same."""
    if spec.kind != PROMOTE or spec.source is None:
        return []
    pairs = _pairs(plan.steps, *notes)
    elsewhere = spec.target.registry.kind == Registry.REMOTE
    return [_check(name, here, there, spec, elsewhere=elsewhere) for name, (here, there) in pairs.items()]


def _check(name: SubjectName, here: Note, there: Note, spec: PromotionSpec, *, elsewhere: bool) -> Check:
    title, target = f"description of {name.qualified}", spec.target.registry.name
    hidden = [
        tag
        for tag in here.tags
        if is_personal_tag(tag) and tag.lower() not in {tag_there.lower() for tag_there in there.tags}
    ]
    what = f"tagged {', '.join(here.tags)}" if here.tags else "without tags"
    if elsewhere:
        sentence = f"It is not promoted, because {target} is another server without descriptions."
        return Check("notes", title, PASS, sentence, subject=name.qualified)
    if not there.is_described:
        return Check("notes", title, PASS, f"It is promoted to {target}, {what}.", subject=name.qualified)
    if spec.with_config:
        return Check("notes", title, PASS, f"It replaces the description in {target}, {what}.", subject=name.qualified)
    sentence = f"{target} has a different description, which is kept."
    cure = "Include the subjects' settings in the request, or edit the description on the subject's page in the target."
    if hidden:
        sentence += f" It doesn't have the tags {', '.join(hidden)}, which hide values of personal data."
    return Check("notes", title, WARN if hidden else PASS, sentence, cure, subject=name.qualified)


def carry_notes(request: PromotionRequest, steps: Iterable[PlanStep], by: Actor) -> None:
    """Write the descriptions that are promoted along, in the transaction that applies the request."""
    if request.kind != PROMOTE or request.source is None:
        return
    target = request.target.registry
    steps = list(steps)
    names = {parse_subject(step.subject) for step in steps}
    pairs = _pairs(steps, *notes_in([target, request.source.registry], names))
    notes = {
        name: here for name, (here, there) in pairs.items() if request.config is not None or not there.is_described
    }
    rows = Subject.objects.filter(context__registry=target, name__in={name.subject for name in notes})
    for row in rows.select_related("context").select_for_update(of=("self",)):
        note = notes.get(SubjectName(row.context.name, row.name))
        if note is not None:
            record(by=by, why=f"apply request {request.pk}: promote the description of {row.name}")
            bring_checked([(row, note.tags, note.doc)], by=by)


def _pairs(
    steps: Iterable[PlanStep], there: Mapping[SubjectName, Note], here: Mapping[SubjectName, Note]
) -> dict[SubjectName, tuple[Note, Note]]:
    """Return the subjects whose description differs, with both descriptions; the target's may be empty."""
    names = sorted({parse_subject(step.subject) for step in steps}, key=lambda name: name.qualified)
    pairs = {name: (here[name], there.get(name, Note())) for name in names if name in here and here[name].is_described}
    return {
        name: (one, other) for name, (one, other) in pairs.items() if (one.tags, one.doc) != (other.tags, other.doc)
    }
