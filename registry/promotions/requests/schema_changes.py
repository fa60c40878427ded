"""The changes of a schema by a request's step, and decisions on whether fields were renamed.

A step is compared with the version that the target had when the plan was built. People who may describe the subject
decide on renames; a decision changes no schema.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db import transaction

from registry.access.roles import Actor, require
from registry.audit.context import record
from registry.errors import InvalidInput, InvalidReference, InvalidSchema, NotFound, SchemaTooCostly, WrongState
from registry.formats.base import OutlineField, ParsedSchema, Reference
from registry.promotions.models import PromotionRequest, RenameDecision
from registry.promotions.models.decisions import MAX_PATH
from registry.promotions.plan.types import ADDING, ADOPT, REPEAT, PlanStep
from registry.promotions.requests.infos import RequestInfo
from registry.promotions.requests.state_machine import checked_text
from registry.subjects import selectors
from registry.subjects.engine import schema_engine
from registry.subjects.models import Registry
from registry.subjects.versions.lookup import get_registry, get_subject
from registry.subjects.versions.parsed_schemas import parse_schema, parse_stored, resolve_references
from registry.subjects.versions.qualified_names import SubjectName, parse_subject
from registry.subjects.versions.versions import joined_row


def compare_step(
    info: RequestInfo, step: PlanStep, registries: Mapping[str, Registry]
) -> selectors.ProvedComparison | None:
    """Return the comparison of a step that adds or adopts a version; None if the target had no version.

    `registries` has the source and the target by name. Raises NotFound if one of the two has been deleted since.
    """
    versions = versions_before(info, step)
    if not versions:
        return None
    name, goal = parse_subject(step.subject), registries[info.target]
    old = selectors.Side(goal, name, versions[-1])
    if step.kind in (REPEAT, ADOPT):
        number = step.source_version if step.kind == REPEAT else step.target_version
        return selectors.compare_sides(old, selectors.Side(goal, name, number))
    if info.kind == PromotionRequest.PROPOSE or not step.source_version:
        return selectors.compare_text(old, step.text, step.schema_type, step.references)
    profile = state_before(info, step).get("profile")
    new = selectors.Side(registries[info.source], name, step.source_version)
    return selectors.compare_sides(old, new, profile="semantic" if profile == "semantic" else "confluent")


def paths_of(info: RequestInfo, step: PlanStep) -> frozenset[str]:
    """Return the paths that a discussion of a step's subject can refer to: fields of both sides, and changed paths.

    A side that was deleted or can't be parsed has none; schemas that are too costly to compare have only their fields.
    """
    sides = [schema for schema in (_schema_before(info, step), _coming(info, step)) if schema is not None]
    paths = {row.path for schema in sides for row in _outline(schema)}
    if len({schema.schema_type for schema in sides}) == len(sides) - 1:
        old, new = sides
        try:
            paths |= {item.path for item in schema_engine.diff(old, new)}
            report = schema_engine.check(new, [(1, old)], "FULL")
        except SchemaTooCostly:
            return frozenset(paths)
        paths |= {item.named_path for item in report.items}
    return frozenset(paths - {""})


def _schema_before(info: RequestInfo, step: PlanStep) -> ParsedSchema | None:
    """Return the newest schema that the target had of the subject."""
    versions = versions_before(info, step)
    return _stored(info.target, step, versions[-1]) if versions else None


def _coming(info: RequestInfo, step: PlanStep) -> ParsedSchema | None:
    """Return the schema that the step would bring, or that exists already."""
    if step.kind not in ADDING or step.kind == REPEAT:
        return _stored(info.target, step, step.source_version if step.kind == REPEAT else step.target_version)
    if step.source_version:
        return _stored(info.source, step, step.source_version)
    registry, name = get_registry(info.target), parse_subject(step.subject)
    try:
        targets = resolve_references(registry, step.references, context=name.context)
        return parse_schema(step.schema_type, step.text, tuple(reference for reference, _ in targets), is_new=False)
    except (InvalidReference, InvalidSchema):
        return None


def _stored(registry: str, step: PlanStep, version: int) -> ParsedSchema | None:
    try:
        return parse_stored([joined_row(get_registry(registry), parse_subject(step.subject), version).schema])[0]
    except (NotFound, InvalidSchema, InvalidReference):
        return None


@dataclass(frozen=True)
class NewSchema:
    """A schema that is new at the target: its text as it would be written, its references and its fields."""

    text: str
    schema_type: str
    references: tuple[Reference, ...]
    fields: tuple[OutlineField, ...]


def new_schema(info: RequestInfo, step: PlanStep) -> NewSchema:
    """Return the whole schema of a step; without fields if it can't be parsed or was deleted since."""
    schema = _coming(info, step)
    return NewSchema(step.text, step.schema_type, step.references, _outline(schema) if schema else ())


def _outline(schema: ParsedSchema) -> tuple[OutlineField, ...]:
    try:
        return schema_engine.outline(schema)
    except SchemaTooCostly:
        return ()  # its text is still shown, so that the request can be read and rejected


def places_of(info: RequestInfo, step: PlanStep) -> tuple[str, str]:
    """Return the registries of the old and of the new side."""
    comes = info.source if step.kind not in (REPEAT, ADOPT) and step.source_version and info.source else info.target
    return info.target, comes


def state_before(info: RequestInfo, step: PlanStep) -> dict[str, object]:
    """Return the target's state of the step's subject when the plan was built; empty in plans of earlier releases."""
    state: dict[str, object] = info.plan.get("target", {}).get(step.subject, {})
    return state


def versions_before(info: RequestInfo, step: PlanStep) -> list[int]:
    """Return the versions that the target had, ascending; for a plan of an earlier release, those that it has now."""
    state = info.plan.get("target", {}).get(step.subject)
    if state is None:
        try:
            numbers = selectors.list_versions(get_registry(info.target), parse_subject(step.subject))
        except NotFound:
            return []
        return [number for number in numbers if number < step.target_version]
    numbers = [int(number) for number, _ in state["versions"]]
    return [number for number in numbers if number < step.target_version] if step.kind == ADOPT else numbers


@dataclass(frozen=True)
class RenameInfo:
    """A decision, with the registry that it was made in."""

    registry: str
    from_path: str
    to_path: str
    is_rename: bool
    reason: str
    decided_by: str
    decided_at: datetime


def renames_of(registry: Registry, subject: SubjectName) -> list[RenameInfo]:
    """Return the decisions of a subject in a registry, oldest first; one query."""
    return _infos([registry.name], subject)


def decided_renames(registries: Collection[str], subject: SubjectName) -> Mapping[tuple[str, str], RenameInfo]:
    """Return (old path, new path) → the newest decision of a subject in any of the registries; one query."""
    decisions = sorted(_infos(registries, subject), key=lambda info: info.decided_at)
    return {(info.from_path, info.to_path): info for info in decisions}


def _infos(registries: Collection[str], subject: SubjectName) -> list[RenameInfo]:
    rows = RenameDecision.objects.filter(
        subject__context__registry__name__in=registries,
        subject__context__name=subject.context,
        subject__name=subject.subject,
    ).order_by("pk")
    columns = ("from_path", "to_path", "is_rename", "reason", "decided_by", "decided_at")
    return [RenameInfo(*row) for row in rows.values_list("subject__context__registry__name", *columns)]


ACTION: Final = "subject.describe"
MAX_REASON: Final = 2_000
#: the most decisions of a subject
MAX_DECISIONS: Final = 500


@transaction.atomic
def decide_rename(
    *, registry: str, subject: SubjectName, from_path: str, to_path: str, is_rename: bool, by: Actor, reason: str = ""
) -> bool:
    """Decide whether one field is another under a new name; replaces an earlier decision.

    Returns False if nothing changed. Raises NotAllowed, RegistryNotFound, SubjectNotFound, InvalidInput, and WrongState
    for too many decisions.
    """
    require(by, ACTION, registry=registry, subject=subject.qualified)
    old, new = _path(from_path, "from_path"), _path(to_path, "to_path")
    if old == new:
        raise InvalidInput("A rename needs two different names.", field="to_path")
    why = checked_text(reason, "reason", longest=MAX_REASON)
    row = get_subject(get_registry(registry), subject, deleted=True)
    decision = RenameDecision.objects.select_for_update().filter(subject=row, from_path=old, to_path=new).first()
    if decision is not None and (decision.is_rename, decision.reason) == (is_rename, why):
        return False
    if decision is None and RenameDecision.objects.filter(subject=row).count() >= MAX_DECISIONS:
        raise WrongState(
            f"{subject.qualified} has {MAX_DECISIONS} rename decisions, which is the maximum. Withdraw some first."
        )
    sentence = f"{old} was renamed to {new}" if is_rename else f"{old} was not renamed to {new}"
    record(by=by, why=f"decide that {sentence} in {subject.qualified} in {registry}{f': {why}' if why else ''}")
    if decision is None:
        decision = RenameDecision(subject=row, from_path=old, to_path=new)
    decision.is_rename, decision.reason, decision.decided_by = is_rename, why, by.name
    decision.save()
    return True


@transaction.atomic
def undecide_rename(*, registry: str, subject: SubjectName, from_path: str, to_path: str, by: Actor) -> bool:
    """Withdraw a decision, so that the pair is suspected again; returns False if there was none.

    Raises NotAllowed, RegistryNotFound, SubjectNotFound.
    """
    require(by, ACTION, registry=registry, subject=subject.qualified)
    row = get_subject(get_registry(registry), subject, deleted=True)
    decision = (
        RenameDecision.objects.select_for_update().filter(subject=row, from_path=from_path, to_path=to_path).first()
    )
    if decision is None:
        return False
    record(by=by, why=f"withdraw the rename decision on {from_path} and {to_path} in {subject.qualified} in {registry}")
    decision.delete()
    return True


def _path(text: str, field: str) -> str:
    path = checked_text(text, "field's path", needed="Name both fields.", longest=MAX_PATH)
    if not path.isprintable():
        raise InvalidInput("The field's path has an invisible character.", field=field)
    return path
