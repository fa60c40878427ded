"""Open requests that belong together: what one refers to another brings to the same environment, which goes first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Q

from registry.access.roles import Actor, may
from registry.promotions.models import PromotionRequest, RequestItem
from registry.promotions.plan import FAIL, WRITING
from registry.promotions.selectors.request_infos import RequestInfo
from registry.subjects.models import SchemaReference
from registry.subjects.names import SubjectName, parse_subject

#: rows of other requests that are looked at, and subjects of this one that are looked for
_ROWS: Final = 500
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
    asked = [(item.subject.context, item.subject.subject, item.fingerprint) for item in info.items[:_SUBJECTS]]
    rows: dict[int, list[RequestItem]] = {}
    for row in _rows(info, taken, missing, asked):
        rows.setdefault(row.request_id, []).append(row)
    found = [_linked(items, taken, missing) for items in rows.values() if _may_see(items, info.target, by)]
    return tuple(sorted(found, key=lambda each: (not each.goes_first, not each.brings, each.id)))


def _rows(
    info: RequestInfo, taken: Sequence[_Key], missing: Sequence[tuple[str, str]], asked: Sequence[_Key]
) -> list[RequestItem]:
    """All that the others ask for; a request that is known of one of its items has all of them here."""
    brought = _any(Q(context_name=c, subject_name=s, fingerprint=f) for c, s, f in taken)
    brought |= _any(Q(context_name=c, subject_name=s) for c, s in missing)
    mine = _any(
        Q(target__subject__context__name=c, target__subject__name=s, target__schema__fingerprint=f) for c, s, f in asked
    )
    referring = Q(fingerprint__in=SchemaReference.objects.filter(mine).order_by().values("schema__fingerprint"))
    there = RequestItem.objects.filter(open_in__registry__name=info.target).exclude(request=info.id)
    linked = there.filter(brought | referring).order_by().values("request")
    return list(
        RequestItem.objects.filter(request__in=linked, request__state__in=_STATES)
        .select_related("request")
        .defer("text", "references", "request__plan", "request__reason", "request__moved", "request__failure")
        .order_by("request", "position")[:_ROWS]
    )


def _any(conditions: Iterable[Q]) -> Q:
    """One of them; nothing where there is none."""
    found = Q(pk__in=())
    for condition in conditions:
        found |= condition
    return found


def _taken_along(info: RequestInfo) -> list[_Key]:
    """What the plan writes because something that was asked for refers to it."""
    steps = [step for step in info.plan["steps"] if step.get("kind") in WRITING and step.get("asked") is False]
    return [(*_name(step["subject"]), str(step.get("fingerprint") or "")) for step in steps[:_SUBJECTS]]


def _missing(info: RequestInfo) -> list[tuple[str, str]]:
    """What a proposed text refers to, where its check of references fails: it isn't at the target."""
    failing = {check.get("subject") for check in info.checks if _lacks_references(check)}
    found = []
    for item in info.items:
        if item.subject.qualified in failing:
            found += [_name(str(each.get("subject", "")), item.subject.context) for each in item.references]
    return found[:_SUBJECTS]


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
        brings=tuple(SubjectName(each.context_name, each.subject_name).qualified for each in (*lacking, *along)),
        along=bool(along) and not lacking,
    )
