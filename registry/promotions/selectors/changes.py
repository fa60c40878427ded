"""What a step of a request changes: the version that the target had when the plan was made, against what would come."""

from __future__ import annotations

from dataclasses import dataclass

from registry.errors import InvalidReference, InvalidSchema, NotFound, SchemaTooCostly
from registry.formats.base import OutlineField, ParsedSchema, Reference
from registry.promotions.models import PromotionRequest
from registry.promotions.plan import ADDING, ADOPT, REPEAT, Step
from registry.promotions.selectors.request_infos import RequestInfo
from registry.subjects import engines, selectors
from registry.subjects.names import parse_subject
from registry.subjects.selectors.parsed import parse_schema, parse_stored, resolve_references
from registry.subjects.selectors.places import get_registry, get_subject
from registry.subjects.selectors.versions import version_row


def compare_step(info: RequestInfo, step: Step) -> selectors.ProvedComparison | None:
    """The comparison of a step that adds or adopts a version; None where the target had no version.

    Raises NotFound where one of the two has been deleted since.
    """
    versions = versions_before(info, step)
    if not versions:
        return None
    name, goal = parse_subject(step.subject), get_registry(info.target)
    old = selectors.Side(goal, name, versions[-1])
    if step.kind in (REPEAT, ADOPT):
        number = step.source_version if step.kind == REPEAT else step.target_version
        return selectors.compare_sides(old, selectors.Side(goal, name, number))
    if info.kind == PromotionRequest.PROPOSE or not step.source_version:
        return selectors.compare_text(old, step.text, step.schema_type, step.references)
    profile = state_before(info, step).get("profile")
    new = selectors.Side(get_registry(info.source), name, step.source_version)
    return selectors.compare_sides(old, new, profile="semantic" if profile == "semantic" else "confluent")


def paths_of(info: RequestInfo, step: Step) -> frozenset[str]:
    """Where a discussion of a step's subject can hang: the fields of either side, and the places of the changes.

    Of a side that was deleted or can't be read there are none, and of one too costly to compare the fields alone.
    """
    sides = [schema for schema in (_held_before(info, step), _coming(info, step)) if schema is not None]
    found = {row.path for schema in sides for row in _outline(schema)}
    if len({schema.schema_type for schema in sides}) == len(sides) - 1:
        old, new = sides
        try:
            found |= {item.path for item in engines.diff(old, new)}
            report = engines.check(new, [(1, old)], "FULL")
        except SchemaTooCostly:
            return frozenset(found)
        found |= {item.named_path for item in report.items}
    return frozenset(found - {""})


def _held_before(info: RequestInfo, step: Step) -> ParsedSchema | None:
    """The newest that the target had of the subject."""
    versions = versions_before(info, step)
    return _stored(info.target, step, versions[-1]) if versions else None


def _coming(info: RequestInfo, step: Step) -> ParsedSchema | None:
    """What the step would bring, or finds there."""
    if step.kind not in ADDING or step.kind == REPEAT:
        return _stored(info.target, step, step.source_version if step.kind == REPEAT else step.target_version)
    if step.source_version:
        return _stored(info.source, step, step.source_version)
    place, name = get_registry(info.target), parse_subject(step.subject)
    try:
        found = resolve_references(place, step.references, context=name.context)
        return parse_schema(step.schema_type, step.text, tuple(reference for reference, _ in found), is_new=False)
    except (InvalidReference, InvalidSchema):
        return None


def _stored(registry: str, step: Step, version: int) -> ParsedSchema | None:
    try:
        subject = get_subject(get_registry(registry), parse_subject(step.subject), deleted=True)
        row = version_row(subject, version, deleted=True)
        return parse_stored([row.schema])[0]
    except (NotFound, InvalidSchema, InvalidReference):
        return None


@dataclass(frozen=True)
class NewSchema:
    """A schema that is all new at the target: its text as it would be written, what it refers to, and its fields."""

    text: str
    schema_type: str
    references: tuple[Reference, ...]
    fields: tuple[OutlineField, ...]


def new_schema(info: RequestInfo, step: Step) -> NewSchema:
    """The whole schema of a step; without fields where it can't be parsed, costs too much or was deleted since."""
    schema = _coming(info, step)
    return NewSchema(step.text, step.schema_type, step.references, _outline(schema) if schema else ())


def _outline(schema: ParsedSchema) -> tuple[OutlineField, ...]:
    try:
        return engines.outline(schema)
    except SchemaTooCostly:
        return ()  # its text is shown all the same, so that the request can be read and rejected


def places_of(info: RequestInfo, step: Step) -> tuple[str, str]:
    """The registries of the old and of the new side."""
    comes = info.source if step.kind not in (REPEAT, ADOPT) and step.source_version and info.source else info.target
    return info.target, comes


def state_before(info: RequestInfo, step: Step) -> dict[str, object]:
    """What the target held of the step's subject when the plan was made; empty in plans of earlier releases."""
    found: dict[str, object] = info.plan.get("target", {}).get(step.subject, {})
    return found


def versions_before(info: RequestInfo, step: Step) -> list[int]:
    """The versions that the target had, ascending; of a plan of an earlier release those that it has."""
    state = info.plan.get("target", {}).get(step.subject)
    if state is None:
        try:
            numbers = selectors.list_versions(get_registry(info.target), parse_subject(step.subject))
        except NotFound:
            return []
        return [number for number in numbers if number < step.target_version]
    numbers = [int(number) for number, _ in state["versions"]]
    return [number for number in numbers if number < step.target_version] if step.kind == ADOPT else numbers
