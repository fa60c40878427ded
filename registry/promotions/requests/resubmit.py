"""Requests from existing ones or versions: resubmission, rollback, adoption of an unapproved version; and previews.

A rollback deletes nothing, because versions have consumers and messages: an earlier version becomes current again under
a new number. It is subject to the target's level and reviews, and its plan says what it doesn't undo.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.db import transaction
from django.db.models import Q

from registry.access.roles import Actor, require
from registry.errors import InvalidInput, WrongState
from registry.formats import DEFAULT_FORMAT
from registry.formats.base import Reference
from registry.promotions.hook_points import readable_findings
from registry.promotions.models import PromotionRequest
from registry.promotions.plan.builder import make_plan
from registry.promotions.plan.types import ItemText, Plan, PromotionSpec, SpecItem
from registry.promotions.requests.infos import RequestInfo
from registry.promotions.requests.selectors import AGAIN, readable_request
from registry.promotions.requests.state_machine import checked_text
from registry.promotions.requests.submission import (
    MAX_ITEMS,
    ItemKey,
    add_request,
    find_versions,
    propose_version,
    request_promotion,
    require_requester,
)
from registry.promotions.requests.timeline import is_unapproved
from registry.promotions.selectors import get_environment, get_environments
from registry.subjects.selectors import list_versions
from registry.subjects.versions.qualified_names import SubjectName


@transaction.atomic
def request_adoption(
    *, environment: str, subject: SubjectName, version: int | str, by: Actor, reason: str, again_of: int | None = None
) -> int:
    """Request the review of a version that is in the environment already; returns the request's number.

    Applying the approved request records the missing release; nothing is registered. `reason` says how the version was
    added. Raises WrongState for a version that was added by a request or needs none, InvalidInput without a reason,
    RegistryNotFound, SubjectNotFound, VersionNotFound, InvalidVersion, NotAllowed, NotSignedIn.
    """
    goal = get_environment(environment)
    require_requester(goal, [subject], by)
    if not reason.strip():
        raise InvalidInput(
            "Explain how the version was registered without a request and why it should stay.", field="reason"
        )
    rows = find_versions(goal.registry, [(subject, version)])
    if not is_unapproved(goal, rows[0]):
        raise WrongState(
            f"Version {rows[0].version} of {subject.qualified} in {environment} is not an unapproved version."
            " It came through a request or an import, or needs neither, so there is nothing to adopt.",
            subject=subject.qualified,
            version=rows[0].version,
        )
    item = SpecItem(subject, rows[0].version)
    spec = PromotionSpec(target=goal, items=(item,), kind=PromotionRequest.ADOPT)
    return add_request(spec, rows=rows, by=by, reason=reason, again_of=again_of)


@transaction.atomic
def request_roll_back(
    *, environment: str, subject: SubjectName, version: int | str, by: Actor, reason: str, again_of: int | None = None
) -> int:
    """Request that an earlier version of a subject becomes current again in an environment; returns the number.

    Raises InvalidInput without a reason and for a subject without a name, WrongState for the current version and for
    one that is requested already, SubjectNotFound, VersionNotFound, InvalidVersion, NotAllowed, NotSignedIn.
    """
    checked_text(reason, "reason", needed="Enter a reason. Reviewers need to know what went wrong.")
    if not subject.subject:
        raise InvalidInput("A subject needs a name.")
    goal = get_environment(environment)
    require_requester(goal, [subject], by)
    require(by, "schema.read", registry=goal.registry.name, subject=subject.qualified)
    rows = find_versions(goal.registry, [(subject, version)])
    newest = list_versions(goal.registry, subject)[-1]
    if rows[0].version == newest:
        raise WrongState(
            f"Version {newest} of {subject.qualified} is current in {environment}. Name an earlier version."
        )
    spec = PromotionSpec(target=goal, items=(SpecItem(subject, rows[0].version),), kind=PromotionRequest.ROLL_BACK)
    return add_request(spec, rows=rows, by=by, reason=reason, again_of=again_of)


def ask_again(*, request_id: int, by: Actor, reason: str = "") -> int:
    """Resubmit a rejected or withdrawn request, with its labels, and with its reason unless one is given.

    Returns the new request's number. Rights and the plan are evaluated again. Raises WrongState for a request that was
    neither rejected nor withdrawn, and if a version has another schema now; and the errors of its kind of request.
    """
    info = readable_request(request_id, by)
    if info.state not in AGAIN:
        raise WrongState(
            f"Request {info.id} is {info.state}. Only a rejected or withdrawn request can be requested again."
        )
    why = reason.strip() or info.reason
    if info.kind == PromotionRequest.PROPOSE:
        return _proposed(info, why, by)
    _refuse_other_schemas(info, by)
    if info.kind == PromotionRequest.PROMOTE:
        return request_promotion(
            source=info.source,
            target=info.target,
            items=[(item.subject, item.version) for item in info.items],
            with_config=info.with_config,
            reason=why,
            again_of=info.id,
            labels=info.labels,
            by=by,
        )
    ask = request_roll_back if info.kind == PromotionRequest.ROLL_BACK else request_adoption
    return ask(environment=info.target, subject=info.subject, version=info.version, reason=why, again_of=info.id, by=by)


def _refuse_other_schemas(info: RequestInfo, by: Actor) -> None:
    """Raise WrongState if a version was deleted permanently and its number now belongs to another schema."""
    registry = get_environment(info.source or info.target).registry
    for item in info.items:
        require(by, "schema.read", registry=registry.name, subject=item.subject.qualified)
    rows = find_versions(registry, [(item.subject, item.version) for item in info.items])
    for item, row in zip(info.items, rows, strict=True):
        if row.schema.fingerprint != item.fingerprint:
            raise WrongState(
                f"Version {item.version} of {item.subject.qualified} in {registry.name} is not the schema in"
                f" request {info.id}. Create a new request for it."
            )


def _proposed(info: RequestInfo, reason: str, by: Actor) -> int:
    item = info.items[0]
    return propose_version(
        target=info.target,
        subject=item.subject,
        text=item.text,
        schema_type=item.schema_type,
        references=[Reference(**reference) for reference in item.references],
        reason=reason,
        finding=info.finding if readable_findings([info.finding], by) else None,
        again_of=info.id,
        labels=info.labels,
        by=by,
    )


#: the states of requests that may have been resubmitted
_ENDED: Final = (PromotionRequest.REJECTED, PromotionRequest.WITHDRAWN)
_ROWS: Final = 500


@dataclass(frozen=True)
class RequestSummary:
    """The earlier or later request of a resubmission."""

    id: int
    state: str
    subject: SubjectName
    again_of: int | None


@dataclass(frozen=True)
class Resubmissions:
    """The request that this one resubmits, None if there is no readable one; and its own resubmissions."""

    earlier: RequestSummary | None = None
    later: tuple[RequestSummary, ...] = ()


def resubmissions_of(infos: Sequence[RequestInfo], by: Actor) -> Mapping[int, Resubmissions]:
    """Return request → its resubmissions that the actor may read; one query, none if there can't be any."""
    before = {info.again_of for info in infos if info.again_of}
    ended = [info.id for info in infos if info.state in _ENDED]
    if not before and not ended:
        return {info.id: Resubmissions() for info in infos}
    rows = PromotionRequest.objects.filter(Q(pk__in=before) | Q(again_of__in=ended)).order_by("pk")
    columns = rows.visible_to(by).values_list("pk", "state", "context_name", "subject_name", "again_of")
    summaries = {row[0]: RequestSummary(row[0], row[1], SubjectName(row[2], row[3]), row[4]) for row in columns[:_ROWS]}
    return {
        info.id: Resubmissions(
            earlier=summaries.get(info.again_of or 0),
            later=tuple(summary for summary in summaries.values() if summary.again_of == info.id),
        )
        for info in infos
    }


def preview_promotion(
    *, source: str, target: str, items: Sequence[ItemKey], by: Actor, with_config: bool = False
) -> Plan:
    """Return the plan that a request for these versions would have now.

    Raises InvalidInput for a wrong order or set of items, SubjectNotFound, VersionNotFound, InvalidVersion,
    RegistryNotFound, NotAllowed, NotSignedIn.
    """
    for name, _ in items:
        require(by, "schema.read", registry=source, subject=name.qualified)
        require(by, "schema.read", registry=target, subject=name.qualified)
    if not items or len(items) > MAX_ITEMS:
        raise InvalidInput(f"A plan can have 1 to {MAX_ITEMS} items, not {len(items)}.")
    origin, goal = get_environments(source, target)
    if goal.position <= origin.position:
        raise InvalidInput(f"{target} doesn't come after {source} in the environment order.")
    rows = find_versions(origin.registry, items)
    spec_items = tuple(SpecItem(name, row.version) for (name, _), row in zip(items, rows, strict=True))
    return make_plan(
        PromotionSpec(
            target=goal, items=spec_items, source=origin, kind=PromotionRequest.PROMOTE, with_config=with_config
        ),
        rows=rows,
    )


def preview_proposal(
    *,
    target: str,
    subject: SubjectName,
    text: str,
    by: Actor,
    schema_type: str = DEFAULT_FORMAT,
    references: Sequence[Reference] = (),
    finding: int | None = None,
) -> Plan:
    """Return the plan that would register a text as the next version of a subject of the target.

    `finding` is the one that it answers. Raises InvalidSchema, InvalidReference, RegistryNotFound, InvalidInput,
    NotAllowed, NotSignedIn.
    """
    require(by, "schema.read", registry=target, subject=subject.qualified)
    goal = get_environment(target)
    proposed = ItemText(schema_type=schema_type, text=text, references=tuple(references))
    spec = PromotionSpec(
        target=goal, items=(SpecItem(subject, 0, proposed),), kind=PromotionRequest.PROPOSE, answers=finding
    )
    return make_plan(spec)
