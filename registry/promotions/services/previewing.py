"""The plan that a request would have, made without writing anything."""

from __future__ import annotations

from collections.abc import Sequence

from registry.access.roles import Actor, require
from registry.errors import InvalidInput
from registry.formats.base import Reference
from registry.promotions.models import PromotionRequest
from registry.promotions.plan import ItemText, Plan, Wish, WishedItem
from registry.promotions.planning import make_plan
from registry.promotions.selectors import get_environment
from registry.promotions.services.requesting import MAX_ITEMS, Asked, find_versions
from registry.subjects.names import SubjectName


def preview_promotion(
    *, source: str, target: str, items: Sequence[Asked], by: Actor, with_config: bool = False
) -> Plan:
    """The plan that would bring these to the target, as a request for them would have it now.

    Raises InvalidInput for an order or a set that doesn't fit, SubjectNotFound, VersionNotFound, InvalidVersion,
    RegistryNotFound, NotAllowed, NotSignedIn.
    """
    for name, _ in items:
        require(by, "schema.read", registry=source, subject=name.qualified)
        require(by, "schema.read", registry=target, subject=name.qualified)
    if not items or len(items) > MAX_ITEMS:
        raise InvalidInput(f"A plan takes 1 to {MAX_ITEMS} items; these are {len(items)}.")
    origin, goal = get_environment(source), get_environment(target)
    if goal.position <= origin.position:
        raise InvalidInput(f"{target} doesn't come after {source} in the promotion order.")
    rows = find_versions(origin.registry, items)
    wished = tuple(WishedItem(name, row.version) for (name, _), row in zip(items, rows, strict=True))
    return make_plan(
        Wish(target=goal, items=wished, source=origin, kind=PromotionRequest.PROMOTE, with_config=with_config)
    )


def preview_proposal(
    *,
    target: str,
    subject: SubjectName,
    text: str,
    by: Actor,
    schema_type: str = "AVRO",
    references: Sequence[Reference] = (),
    finding: int | None = None,
) -> Plan:
    """The plan that would register a text as the next version of a subject of the target; `finding` is what it answers.

    Raises InvalidSchema, InvalidReference, RegistryNotFound, InvalidInput, NotAllowed, NotSignedIn.
    """
    require(by, "schema.read", registry=target, subject=subject.qualified)
    goal = get_environment(target)
    proposed = ItemText(schema_type=schema_type, text=text, references=tuple(references))
    wish = Wish(target=goal, items=(WishedItem(subject, 0, proposed),), kind=PromotionRequest.PROPOSE, answers=finding)
    return make_plan(wish)
