"""What answers a drift finding: drafts and requests that were begun from it, as far as somebody may see them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from registry.access.roles import Actor, may
from registry.promotions.models import Environment, PromotionRequest, Release, RequestItem
from registry.promotions.selectors.drafts import DraftInfo, list_drafts
from registry.promotions.selectors.requests import RequestInfo, list_requests
from registry.subjects.models import SchemaVersion
from registry.subjects.names import SubjectName

#: rows of requests that are looked at for a list of findings
_ROWS: Final = 2000
_OPEN: Final = tuple(state for state in PromotionRequest.OPEN_STATES if state != PromotionRequest.DRAFT)


@dataclass(frozen=True)
class Answers:
    """One's own drafts, and requests, newest first; what a request made live is among its releases."""

    drafts: tuple[DraftInfo, ...]
    requests: tuple[RequestInfo, ...]


def answers_to(finding_id: int, by: Actor) -> Answers:
    """Those to a finding that the actor may read, which the caller has asked; a constant number of queries."""
    drafts = list_drafts(by.user_id, finding=finding_id) if by.user_id is not None else []
    return Answers(tuple(drafts), tuple(list_requests(finding=finding_id, by=by)))


def resolving(by: Actor, findings: Collection[int] | None = None) -> dict[int, tuple[int, ...]]:
    """Finding → the open requests that answer it, newest first, of those that somebody may read; one query.

    Of some findings, or of all; a draft doesn't resolve anything yet.
    """
    if findings is not None and not findings:
        return {}
    rows = RequestItem.objects.filter(request__finding__isnull=False, request__state__in=_OPEN)
    if findings is not None:
        rows = rows.filter(request__finding__in=findings)
    columns = rows.order_by("-request", "position").values_list(
        "request__finding", "request", "request__target__registry__name", "context_name", "subject_name"
    )
    found: dict[int, dict[int, bool]] = {}
    for finding, request, target, context, subject in columns[:_ROWS]:
        readable = may(by, "schema.read", registry=target, subject=SubjectName(context, subject).qualified)
        of_it = found.setdefault(finding or 0, {})
        of_it[request] = of_it.get(request, True) and readable
    seen = {finding: tuple(number for number, whole in each.items() if whole) for finding, each in found.items()}
    return {finding: numbers for finding, numbers in seen.items() if numbers}


def finding_behind(environment: Environment, rows: Sequence[SchemaVersion]) -> int | None:
    """The drift finding that versions came to the environment for, by what its releases answer; one query.

    None where they came for none, and for several: a request answers one. Who may read it is asked by whoever shows it.
    """
    wanted = {(row.subject.context.name, row.subject.name, row.version, row.schema.fingerprint) for row in rows}
    released = Release.objects.filter(
        environment=environment,
        context_name__in={context for context, _, _, _ in wanted},
        subject_name__in={subject for _, subject, _, _ in wanted},
        request__finding__isnull=False,
    ).values_list("context_name", "subject_name", "version_number", "fingerprint", "request__finding")
    found = {finding for *name, finding in released if tuple(name) in wanted}
    return found.pop() if len(found) == 1 else None
