"""What a step of a request changes: the version that the target had when the plan was made, against what would come."""

from __future__ import annotations

from registry.errors import NotFound
from registry.promotions.models import PromotionRequest
from registry.promotions.plan import ADOPT, REPEAT, Step
from registry.promotions.selectors.requests import RequestInfo
from registry.subjects import selectors
from registry.subjects.names import parse_subject
from registry.subjects.selectors.places import get_registry


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
