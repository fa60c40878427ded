"""Requests that are linked: by references between their subjects, or by the drift finding that they answer; the subjects
of open requests, and the last decision.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import Q

from registry.access.roles import Actor, may
from registry.promotions.models import Environment, PromotionRequest, Release, RequestItem
from registry.promotions.plan.types import FAIL, WRITING
from registry.promotions.requests.drafts import DraftInfo, list_drafts
from registry.promotions.requests.infos import RequestInfo
from registry.promotions.requests.selectors import list_requests
from registry.subjects.models import SchemaReference, SchemaVersion
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

#: rows of other requests that are looked at, and subjects of this one that are looked for
_LINKED_ROWS: Final = 500
_SUBJECTS: Final = 100
_STATES: Final = tuple(state for state in PromotionRequest.OPEN_STATES if state != PromotionRequest.DRAFT)
#: (context, subject, fingerprint)
_Key = tuple[str, str, str]


@dataclass(frozen=True)
class LinkedRequest:
    """An open request to the same environment that this one is linked with; `subject` and `version` name it.

    `brings` are the qualified names of what it brings and this one refers to; they are empty for one that refers to what
    this one brings. `along` says that this one takes them along itself, so that it need not wait.
    """

    id: int
    state: str
    subject: SubjectName
    version: int
    brings: tuple[str, ...] = ()
    along: bool = False

    @property
    def goes_first(self) -> bool:
        """Whether this one waits for it."""
        return bool(self.brings) and not self.along


def linked_requests(info: RequestInfo, by: Actor) -> tuple[LinkedRequest, ...]:
    """Those of an open request that somebody may read, which go first at the beginning; one query."""
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
    """All that the others ask for; a request that is known of one of its items has all of them here."""
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
    """One of them; nothing where there is none."""
    combined = Q(pk__in=())
    for condition in conditions:
        combined |= condition
    return combined


def _taken_along(info: RequestInfo) -> list[_Key]:
    """What the plan writes because something that was asked for refers to it."""
    steps = [step for step in info.plan["steps"] if step.get("kind") in WRITING and step.get("asked") is False]
    return [(*_name(step["subject"]), str(step.get("fingerprint") or "")) for step in steps[:_SUBJECTS]]


def _missing(info: RequestInfo) -> list[tuple[str, str]]:
    """What a proposed text refers to, where its check of references fails: it isn't at the target."""
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
    """As `may_see` has it: all that it asks for, at its target."""
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


#: rows of requests that are looked at for a list of findings
_ANSWER_ROWS: Final = 2000
_OPEN: Final = tuple(state for state in PromotionRequest.OPEN_STATES if state != PromotionRequest.DRAFT)


@dataclass(frozen=True)
class FindingRequests:
    """One's own drafts, and requests, newest first; what a request made live is among its releases."""

    drafts: tuple[DraftInfo, ...]
    requests: tuple[RequestInfo, ...]


def requests_for_finding(finding_id: int, by: Actor) -> FindingRequests:
    """Those to a finding that the actor may read, which the caller has asked; a constant number of queries."""
    drafts = list_drafts(by.user_id, finding=finding_id) if by.user_id is not None else []
    return FindingRequests(tuple(drafts), tuple(list_requests(finding=finding_id, by=by)))


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
    """The drift finding that versions came to the environment for, by what its releases answer; one query.

    None where they came for none, and for several: a request answers one. Who may read it is asked by whoever shows it.
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


def pending_subjects() -> list[SubjectName]:
    """Those of all open requests, drafts left out; one query."""
    return _subjects(Q())


def troubled_subjects() -> list[SubjectName]:
    """Those of open requests that break something, or of which a check fails; one query."""
    return _subjects(Q(request__plan__breaking=True) | Q(request__plan__checks__contains=[{"verdict": FAIL}]))


def _subjects(which: Q) -> list[SubjectName]:
    states = [state for state in PromotionRequest.OPEN_STATES if state != PromotionRequest.DRAFT]
    rows = RequestItem.objects.filter(which, request__state__in=states).order_by("context_name", "subject_name")
    return [SubjectName(*names) for names in rows.values_list("context_name", "subject_name").distinct()]


LOOKED_AT: Final = 20


@dataclass(frozen=True)
class DecisionInfo:
    """A request that is closed: how it ended and when."""

    request: int
    subject: SubjectName
    target: str
    state: str
    at: datetime


def last_decision(by: Actor) -> DecisionInfo | None:
    """The request that was closed last, of the newest twenty that `by` may read; one query."""
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
