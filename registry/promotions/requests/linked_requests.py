"""Requests that are linked, by references between their subjects or by the drift finding that they answer.

Also the subjects of open requests, and the last decision.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import BooleanField, Count, F, Func, Q, Value

from registry.access.roles import Actor, may
from registry.promotions.checks.context import FREEZE
from registry.promotions.models import Environment, PromotionRequest, Release, RequestItem
from registry.promotions.plan.types import FAIL, WRITING
from registry.promotions.requests.drafts import DraftInfo, list_drafts
from registry.promotions.requests.infos import RequestInfo
from registry.promotions.requests.selectors import list_requests
from registry.subjects.models import SchemaReference, SchemaVersion
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

#: limits: rows of other requests that are read, and subjects of this one that are searched for
_LINKED_ROWS: Final = 500
_SUBJECTS: Final = 100
_STATES: Final = tuple(state for state in PromotionRequest.OPEN_STATES if state != PromotionRequest.DRAFT)
#: (context, subject, fingerprint)
_Key = tuple[str, str, str]


@dataclass(frozen=True)
class LinkedRequest:
    """An open request to the same environment that is linked with this one; `subject` and `version` name it.

    `brings` are the qualified names that it brings and this one refers to; empty for a request that refers to what this
    one brings. `along` means that this one also brings them itself, so that it need not wait.
    """

    id: int
    state: str
    subject: SubjectName
    version: int
    brings: tuple[str, ...] = ()
    along: bool = False

    @property
    def goes_first(self) -> bool:
        """Whether this request waits for it."""
        return bool(self.brings) and not self.along


def linked_requests(info: RequestInfo, by: Actor) -> tuple[LinkedRequest, ...]:
    """Return the readable requests linked with an open one, those that have to go first in front; one query."""
    if not info.is_open:
        return ()
    taken, missing = _taken_along(info), _missing(info)
    keys = [(item.subject.context, item.subject.subject, item.fingerprint) for item in info.items[:_SUBJECTS]]
    rows: dict[int, list[RequestItem]] = {}
    for row in _rows(info, taken, missing, keys):
        rows.setdefault(row.request_id, []).append(row)
    linked = [_linked(items, taken, missing) for items in rows.values() if _may_see(items, info.target, by)]
    return tuple(sorted(linked, key=lambda request: (not request.goes_first, not request.brings, request.id)))


def _rows(
    info: RequestInfo, taken: Sequence[_Key], missing: Sequence[tuple[str, str]], keys: Sequence[_Key]
) -> list[RequestItem]:
    """Return all items of the linked requests."""
    brought = _any(Q(context_name=c, subject_name=s, fingerprint=f) for c, s, f in taken)
    brought |= _any(Q(context_name=c, subject_name=s) for c, s in missing)
    mine = _any(
        Q(target__subject__context__name=c, target__subject__name=s, target__schema__fingerprint=f) for c, s, f in keys
    )
    referring = Q(fingerprint__in=SchemaReference.objects.filter(mine).order_by().values("schema__fingerprint"))
    there = RequestItem.objects.filter(open_in__registry__name=info.target).exclude(request=info.id)
    linked = there.filter(brought | referring).order_by().values("request")
    return list(
        RequestItem.objects.filter(request__in=linked, request__state__in=_STATES)
        .select_related("request")
        .defer("text", "references", "request__plan", "request__reason", "request__moved", "request__failure")
        .order_by("request", "position")[:_LINKED_ROWS]
    )


def _any(conditions: Iterable[Q]) -> Q:
    """Return the disjunction of the conditions; false if there are none."""
    combined = Q(pk__in=())
    for condition in conditions:
        combined |= condition
    return combined


def _taken_along(info: RequestInfo) -> list[_Key]:
    """Return the schemas that the plan writes because a requested version refers to them."""
    steps = [step for step in info.plan["steps"] if step.get("kind") in WRITING and step.get("asked") is False]
    return [(*_name(step["subject"]), str(step.get("fingerprint") or "")) for step in steps[:_SUBJECTS]]


def _missing(info: RequestInfo) -> list[tuple[str, str]]:
    """Return the references of proposed texts whose reference check fails because the target lacks them."""
    failing = {check.get("subject") for check in info.checks if _lacks_references(check)}
    names = []
    for item in info.items:
        if item.subject.qualified in failing:
            names += [_name(str(reference.get("subject", "")), item.subject.context) for reference in item.references]
    return names[:_SUBJECTS]


def _lacks_references(check: dict[str, Any]) -> bool:
    return check.get("code") == "references" and check["verdict"] == FAIL


def _name(text: Any, context: str = ".") -> tuple[str, str]:
    name = parse_subject(str(text), context=context)
    return name.context, name.subject


def _may_see(items: Sequence[RequestItem], target: str, by: Actor) -> bool:
    """Return whether the actor may read all its subjects at the target, as in `may_see`."""
    names = (SubjectName(item.context_name, item.subject_name).qualified for item in items)
    return all(may(by, "schema.read", registry=target, subject=name) for name in names)


def _linked(items: Sequence[RequestItem], taken: Sequence[_Key], missing: Sequence[tuple[str, str]]) -> LinkedRequest:
    request = items[0].request
    along = [item for item in items if (item.context_name, item.subject_name, item.fingerprint) in taken]
    lacking = [item for item in items if (item.context_name, item.subject_name) in missing]
    return LinkedRequest(
        id=request.pk,
        state=request.state,
        subject=SubjectName(request.context_name, request.subject_name),
        version=request.version_number,
        brings=tuple(SubjectName(item.context_name, item.subject_name).qualified for item in (*lacking, *along)),
        along=bool(along) and not lacking,
    )


#: the most rows of requests that are read for a list of findings
_ANSWER_ROWS: Final = 2000
_OPEN: Final = tuple(state for state in PromotionRequest.OPEN_STATES if state != PromotionRequest.DRAFT)


@dataclass(frozen=True)
class FindingRequests:
    """The actor's own drafts, and the requests, that answer a finding, newest first."""

    drafts: tuple[DraftInfo, ...]
    requests: tuple[RequestInfo, ...]


def requests_for_finding(finding_id: int, by: Actor) -> FindingRequests:
    """Return the drafts and requests for a finding that the actor may read; a constant number of queries."""
    drafts = list_drafts(by.user_id, finding=finding_id) if by.user_id is not None else []
    return FindingRequests(tuple(drafts), tuple(list_requests(finding=finding_id, by=by)))


def resolving(by: Actor, findings: Collection[int] | None = None) -> dict[int, tuple[int, ...]]:
    """Return finding → the open requests that answer it and that the actor may read, newest first; one query.

    `findings` None means all. Drafts are left out.
    """
    if findings is not None and not findings:
        return {}
    rows = RequestItem.objects.filter(request__finding__isnull=False, request__state__in=_OPEN)
    if findings is not None:
        rows = rows.filter(request__finding__in=findings)
    columns = rows.order_by("-request", "position").values_list(
        "request__finding", "request", "request__target__registry__name", "context_name", "subject_name"
    )
    readability: dict[int, dict[int, bool]] = {}
    for finding, request, target, context, subject in columns[:_ANSWER_ROWS]:
        readable = may(by, "schema.read", registry=target, subject=SubjectName(context, subject).qualified)
        of_it = readability.setdefault(finding or 0, {})
        of_it[request] = of_it.get(request, True) and readable
    answers = {
        finding: tuple(number for number, whole in requests.items() if whole)
        for finding, requests in readability.items()
    }
    return {finding: numbers for finding, numbers in answers.items() if numbers}


def finding_behind(environment: Environment, rows: Sequence[SchemaVersion]) -> int | None:
    """Return the drift finding that the releases of these versions answered; one query.

    None if there is none, or several: a request answers only one. The caller checks who may read it.
    """
    keys = {(row.subject.context.name, row.subject.name, row.version, row.schema.fingerprint) for row in rows}
    released = Release.objects.filter(
        environment=environment,
        context_name__in={context for context, _, _, _ in keys},
        subject_name__in={subject for _, subject, _, _ in keys},
        request__finding__isnull=False,
    ).values_list("context_name", "subject_name", "version_number", "fingerprint", "request__finding")
    findings = {finding for *name, finding in released if tuple(name) in keys}
    return findings.pop() if len(findings) == 1 else None


def _fails(plan: F) -> Func:
    """Return whether a check of the stored plan fails, ignoring freezes."""
    failing = Value(f'$.checks[*] ? (@.verdict == "{FAIL}" && @.code != "{FREEZE}")')
    template = "jsonb_path_exists(%(expressions)s::jsonpath)"
    return Func(plan, failing, template=template, output_field=BooleanField())


def pending_subjects() -> dict[SubjectName, bool]:
    """Return the subjects of all open requests except drafts, with whether one is breaking or has a failing check.

    One query. A freeze doesn't count: it concerns the target, and the stored plan doesn't know whether it has ended.
    """
    states = [state for state in PromotionRequest.OPEN_STATES if state != PromotionRequest.DRAFT]
    fails = Q(request__plan__breaking=True) | Q(_fails(F("request__plan")))
    rows = RequestItem.objects.filter(request__state__in=states).order_by("context_name", "subject_name")
    named = rows.values_list("context_name", "subject_name").annotate(failing=Count("pk", filter=fails))
    return {SubjectName(context, name): bool(failing) for context, name, failing in named}


LOOKED_AT: Final = 20


@dataclass(frozen=True)
class DecisionInfo:
    """A closed request: how it ended, and when."""

    request: int
    subject: SubjectName
    target: str
    state: str
    at: datetime


def last_decision(by: Actor) -> DecisionInfo | None:
    """Return the last closed request that `by` may read, among the last twenty; one query."""
    rows = (
        PromotionRequest.objects.filter(closed_at__isnull=False)
        .select_related("target__registry")
        .defer("plan")
        .order_by("-closed_at", "-pk")
    )
    for row in rows[:LOOKED_AT]:
        subject, target = SubjectName(row.context_name, row.subject_name), row.target.registry.name
        if row.closed_at and may(by, "schema.read", registry=target, subject=subject.qualified):
            return DecisionInfo(row.pk, subject, target, row.state, row.closed_at)
    return None
