"""Lists of requests with their content, state and what they wait for; bulk approval."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.badges import RequestState
from dashboard.components.frame import environment_of, make_frame, page_actor
from dashboard.components.links import cursor_paging, form_text, whole_number, with_query
from dashboard.components.tables import ListFilter, active_filters, read_filters
from dashboard.components.translation import counted
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import Action, Field, Link, SearchBox, Section
from dashboard.promotions.plan import (
    ApprovalRow,
    BulkApprovalPage,
    ExcludedRow,
    RequestList,
    RequestRow,
    failure_word,
    promotion_frame,
    worst,
)
from registry.access.permission_filters import extent_of
from registry.access.roles import Actor, may, may_somewhere, refusal
from registry.access.selectors import approval_refusal
from registry.errors import InvalidInput
from registry.promotions import selectors
from registry.promotions.models import PromotionRequest
from registry.promotions.models.requests import clean_label
from registry.promotions.requests.preconditions import approving
from registry.promotions.requests.selectors import may_see
from registry.promotions.reviews.decisions import AS_USUAL, MOST_TOGETHER, why_alone
from registry.promotions.reviews.eligibility import AT_APPLYING
from registry.promotions.selectors import RequestInfo
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

PAGE_ROWS: Final = 50
FILTERS: Final = {
    item.name: item
    for item in (
        ListFilter(name="q", chip=_("subject")),
        ListFilter(
            name="state",
            chip=_("state"),
            label=_("Status"),
            values={
                "": _("Any status"),
                "open": _("Open"),
                **{state: RequestState.of(state).look.word for state in PromotionRequest.STATES},
            },
        ),
        ListFilter(name="target", chip=_("target"), label=_("Target"), values={"": _("Any target")}),
        ListFilter(
            name="who",
            chip=_("whose"),
            label=_("People"),
            values={"": _("Anybody’s"), "mine": _("Mine"), "waiting": _("Waiting for me")},
        ),
        ListFilter(name="label", chip=_("label")),
    )
}


def request_row(info: RequestInfo, order: list[str]) -> RequestRow:
    """Convert a request to a row of a list."""
    # An approval counts for every rule that names its author, so the numbers must not be added up.
    reviews = [
        gettext("%(given)s of %(needed)s") % {"given": min(rule.given, rule.needed), "needed": rule.needed}
        for rule in info.needed.rules
    ]
    return RequestRow(
        info=info,
        what=what_of(info),
        source=environment_of(info.source, order) if info.source else None,
        target=environment_of(info.target, order),
        verdict=worst(info.checks),
        word=failure_word(info.checks),
        reviews=", ".join(reviews),
        blocked=what_blocks(info),
    )


def what_of(info: RequestInfo) -> str:
    """Describe the content of a request for its first subject."""
    if info.kind == PromotionRequest.ROLL_BACK:
        return gettext("version %(version)s again") % {"version": info.version}
    if info.kind == PromotionRequest.ADOPT:
        return gettext("version %(version)s, adoption") % {"version": info.version}
    return gettext("version %(version)s") % {"version": info.version} if info.version else gettext("a proposed text")


def what_blocks(info: RequestInfo) -> str:
    """Say what the request waits for; "" for a closed one."""
    if info.state == PromotionRequest.DRAFT:
        return gettext("Draft. Submit it to request reviews.")
    if info.state == PromotionRequest.IN_REVIEW:
        failing = next((check["sentence"] for check in info.failing), "")
        return failing or info.needed.nobody_can or info.needed.missing
    if info.state == PromotionRequest.APPROVED:
        return (
            gettext("The last attempt failed: %(failure)s") % {"failure": info.failure}
            if info.failure
            else gettext("Approved, not yet applied.")
        )
    if info.state == PromotionRequest.SCHEDULED and info.apply_at:
        return gettext("Applied at %(at_utc)s.") % {"at_utc": at_utc(info.apply_at)}
    return info.failure if info.state == PromotionRequest.FAILED else ""


def at_utc(moment: datetime) -> str:
    """Format a moment for a sentence."""
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def request_list(request: HttpRequest) -> RequestList:
    """Return the requests that the reader may see, newest first, with the URL's filters, paged by number."""
    actor, order = page_actor(request), selectors.list_environments()
    chosen = read_filters(FILTERS.values(), request.GET)
    before = whole_number(form_text(request.GET, "before"))
    readable = extent_of(actor, "schema.read")
    infos = _page_of_requests(actor, chosen, before)
    rows, following = infos[:PAGE_ROWS], infos[PAGE_ROWS - 1].id if len(infos) > PAGE_ROWS else None
    base = reverse("ui:promotions")
    shown = tuple(request_row(info, order) for info in rows)
    is_inbox = chosen["who"] == "waiting"
    if is_inbox:
        shown = tuple(replace(row, alone=why_alone(info.plan)) for row, info in zip(shown, rows, strict=True))
    return RequestList(
        frame=make_frame(request, title=gettext("Promotions"), section=Section.PROMOTIONS),
        search=_search(base, chosen, [name for name in order if readable.has(name)]),
        rows=shown,
        paging=cursor_paging(rows, base, chosen, is_first=before is None, before=following),
        request=ask_action(actor),
        is_partial=not may(actor, "schema.read"),
        drafts=Link(label=gettext("Proposals"), url=reverse("ui:proposals")),
        together=_together(shown, actor) if is_inbox and not actor.past else None,
    )


def _together(rows: Sequence[RequestRow], actor: Actor) -> Action | None:
    """Return the bulk approval button for the list of what waits for the reader; None for an empty list."""
    if not rows:
        return None
    reason = approval_refusal(actor)
    if not reason and all(row.alone for row in rows):
        reason = gettext("Each of these must be reviewed separately.")
    return Action(
        label=gettext("Approve selected…"),
        url=reverse("ui:promotions_approve"),
        reason=reason,
        tone="primary",
        icon="check",
    )


def together_url(waiting: Sequence[RequestInfo]) -> str:
    """Return the bulk approval of the waiting requests that allow it; "" for fewer than two."""
    safe = [info.id for info in waiting if not why_alone(info.plan)]
    url = f"{reverse('ui:promotions_approve')}?{urlencode({'request': safe}, doseq=True)}"
    return url if len(safe) > 1 else ""


def ask_action(actor: Actor) -> Action:
    """Return the button that opens the form of a new request."""
    return Action(
        label=gettext("Request promotion"),
        url=reverse("ui:promotion_request"),
        reason="" if may_somewhere(actor, "promotion.request") else refusal(actor, "promotion.request"),
        tone="primary",
        icon="git-pull-request-arrow",
    )


def _page_of_requests(actor: Actor, chosen: dict[str, str], before: int | None) -> list[RequestInfo]:
    """Return one request more than a page, to detect whether there is a next page."""
    me = actor.user_id or 0
    return selectors.list_requests(
        state=chosen["state"],
        target=chosen["target"].replace("\0", ""),
        subject=_subject(chosen["q"]),
        requested_by=me if chosen["who"] == "mine" else None,
        waiting_for=me if chosen["who"] == "waiting" else None,
        label=_label(chosen["label"]),
        by=actor,
        after=before,
        limit=PAGE_ROWS + 1,
    )


def _subject(text: str) -> SubjectName | None:
    if not text:
        return None
    try:
        return parse_subject(text)
    except InvalidInput:
        return SubjectName(".", "\ufffd")  # no subject has such a name, so nothing is found


def _label(text: str) -> str:
    """Return the label as stored; an invalid one is searched for unchanged, and matches nothing."""
    try:
        return clean_label(text) if text else ""
    except InvalidInput:
        return text.replace("\0", "\ufffd")


def _search(base: str, chosen: dict[str, str], order: list[str]) -> SearchBox:
    targets = {name: gettext("to %(name)s") % {"name": name} for name in order}
    return SearchBox(
        url=base,
        query=chosen["q"],
        label=gettext("Search subjects"),
        placeholder="orders-value",
        filters=tuple(
            FILTERS[name].select(chosen[name], targets if name == "target" else None)
            for name in ("state", "target", "who")
        ),
        fields=(Field(name="label", label=gettext("Label"), value=chosen["label"]),),
        active=active_filters(FILTERS.values(), chosen, lambda values: with_query(base, values)),
    )


#: separates a request's number from its plan's hash in a form
_MARK = ":"


def bulk_approval_page(request: HttpRequest) -> BulkApprovalPage:
    """Return the bulk approval of the requests in the URL, with those left out and why."""
    actor, order = page_actor(request), selectors.list_environments()
    numbers = _numbers(request.GET.getlist("request"))
    there = {info.id: info for info in selectors.requests_numbered(numbers[:MOST_TOGETHER]) if may_see(actor, info)}
    against = {number: _against(info, actor) for number, info in there.items()}
    rows = tuple(_chosen(there[n], order) for n in numbers if n in there and not against[n])
    left = [
        ExcludedRow(number=n, reason=against[n], request=request_row(there[n], order))
        if n in there
        else ExcludedRow(number=n, reason=_not_read(n, numbers))
        for n in numbers
        if n not in there or against[n]
    ]
    waiting = f"{reverse('ui:promotions')}?{urlencode({'who': 'waiting'})}"
    return BulkApprovalPage(
        frame=promotion_frame(request, gettext("Approve several requests"), order=order),
        rows=rows,
        left=tuple(left),
        submit=Action(
            label=counted(len(rows), "Approve %(n)s request", "Approve %(n)s requests"),
            url=reverse("ui:promotions_approve"),
            method="post",
            tone="primary",
            icon="check",
        ),
        back_url=waiting,
    )


def _numbers(texts: Iterable[str]) -> list[int]:
    parsed = (whole_number(text) for text in texts)
    return list(dict.fromkeys(number for number in parsed if number is not None))


def _not_read(number: int, numbers: Sequence[int]) -> str:
    """Say why a request isn't shown; a missing and an unreadable one get the same reason."""
    if number in numbers[MOST_TOGETHER:]:
        return gettext("Up to %(most)s requests can be approved at once. Select it next time.") % {
            "most": MOST_TOGETHER
        }
    return gettext("Request not found.")


def _against(info: RequestInfo, actor: Actor) -> str:
    """Say why this reader can't approve it in bulk; "" if they can."""
    conditions = approving(info, actor)
    stopping = next((item.sentence for item in conditions if not item.passable), "")
    return stopping or why_alone(info.plan)


def _chosen(info: RequestInfo, order: list[str]) -> ApprovalRow:
    """Return a row with the verdict for the approval; what only prevents applying is in the note."""
    counting = [check for check in info.checks if check.get("code") not in AS_USUAL]
    later_on = [str(check["sentence"]) for check in info.failing if check.get("code") in AT_APPLYING]
    return ApprovalRow(
        request=replace(request_row(info, order), verdict=worst(counting), word=failure_word(counting)),
        note=" ".join(later_on),
    )


def plans_of(texts: Iterable[str]) -> list[tuple[int, str]]:
    """Parse the request numbers and plan hashes that the form sends; skip invalid values."""
    plans = []
    for text in texts:
        number, _, plan_hash = text.partition(_MARK)
        request_id = whole_number(number)
        if request_id is not None:
            plans.append((request_id, plan_hash[:64]))
    return plans
