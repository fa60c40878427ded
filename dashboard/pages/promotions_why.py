"""Why something can't be done to a request, each condition with the link that leads to where it is mended."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import gettext

from dashboard.links import subject_url
from dashboard.presenters.frame import Link
from dashboard.presenters.policy import WhyNot
from registry.access.roles import Actor, may
from registry.drift.data_evidence import scanned_by
from registry.promotions.ageing import CODE as EVIDENCE
from registry.promotions.consumers import CODE as CONSUMERS
from registry.promotions.reasons import Condition
from registry.promotions.selectors import RequestInfo
from registry.promotions.talk import CODE as THREADS
from registry.subjects.names import parse_subject
from registry.subjects.selectors.places import get_registry


def why_of(against: Iterable[Condition], info: RequestInfo, actor: Actor) -> tuple[WhyNot, ...]:
    """The conditions as the page lists them."""
    return tuple(
        WhyNot(code=item.code, sentence=item.sentence, cure=item.cure, fix=_fix(item, info, actor)) for item in against
    )


def _fix(item: Condition, info: RequestInfo, actor: Actor) -> Link | None:
    """Where it is mended, None where no page mends it."""
    if item.code == THREADS and item.url:
        return Link(label=gettext("To the discussion"), url=item.url)
    if item.code == CONSUMERS and item.url:
        return Link(label=gettext("To the clients"), url=item.url)
    if item.code == EVIDENCE:
        return _scan(item, info, actor)
    if item.code.startswith("evidence."):
        return _impact(item, info, actor)
    known = _FIXES.get(item.code)
    return known(item, info, actor) if known else None


def _subject(item: Condition, info: RequestInfo) -> str:
    return item.subject or info.subject.qualified


def _checks(item: Condition, info: RequestInfo, actor: Actor) -> Link:
    return Link(label=gettext("To the checks"), url=f"{_page(info)}#checks")


def _changes(item: Condition, info: RequestInfo, actor: Actor) -> Link:
    return Link(label=gettext("See what breaks"), url=f"{_page(info)}#changes")


def _scan(item: Condition, info: RequestInfo, actor: Actor) -> Link:
    """Where the topic is scanned again whose evidence is missing or too old."""
    source = scanned_by(get_registry(info.target), parse_subject(_subject(item, info)))
    if source is None:
        return Link(label=gettext("To the sources"), url=reverse("ui:sources"))
    return Link(label=gettext("Scan the topic again"), url=reverse("ui:source", args=[source]))


def _impact(item: Condition, info: RequestInfo, actor: Actor) -> Link:
    return Link(label=gettext("See the evidence"), url=f"{_page(info)}#impact")


def _findings(item: Condition, info: RequestInfo, actor: Actor) -> Link:
    given = urlencode({"registry": info.target, "subject": _subject(item, info)})
    return Link(label=gettext("The open findings"), url=f"{reverse('ui:findings')}?{given}")


def _freezes(item: Condition, info: RequestInfo, actor: Actor) -> Link:
    return Link(
        label=gettext("Freezes of %(target)s") % {"target": info.target}, url=f"{_environment(info)}#freezes-title"
    )


def _rules(item: Condition, info: RequestInfo, actor: Actor) -> Link:
    return Link(
        label=gettext("Who reviews in %(target)s") % {"target": info.target}, url=f"{_environment(info)}#rules-title"
    )


def _policy(item: Condition, info: RequestInfo, actor: Actor) -> Link:
    return Link(
        label=gettext("Policy of %(target)s") % {"target": info.target}, url=reverse("ui:policy", args=[info.target])
    )


def _where_it_is(item: Condition, info: RequestInfo, actor: Actor) -> Link:
    """The subject where the version comes from."""
    name = _subject(item, info)
    return Link(label=gettext("Open the subject"), url=subject_url(info.source or info.target, name))


def _rights(item: Condition, info: RequestInfo, actor: Actor) -> Link | None:
    """Signing in, or where rights are given; only for those who give them."""
    if actor.user_id is None:
        return _sign_in(item, info, actor)
    if may(actor, "people.manage"):
        return Link(label=gettext("People and groups"), url=reverse("ui:people"))
    return None


def _sign_in(item: Condition, info: RequestInfo, actor: Actor) -> Link:
    return Link(label=gettext("Sign in"), url=f"{reverse('account_login')}?{urlencode({'next': _page(info)})}")


def _page(info: RequestInfo) -> str:
    return reverse("ui:promotion", args=[info.id])


def _environment(info: RequestInfo) -> str:
    return reverse("ui:environment", args=[info.target])


#: code of a condition → where it is mended; what isn't here is mended nowhere but in the sentence
_FIXES: Final[dict[str, Callable[[Condition, RequestInfo, Actor], Link | None]]] = {
    "stale": _checks,
    "compatibility": _changes,
    "policy": _changes,
    "reserved-fields": _changes,
    "schema": _changes,
    "drift": _findings,
    "freeze": _freezes,
    "approval": _rules,
    "own-request": _rules,
    "mode": _policy,
    "config": _policy,
    "standing": _where_it_is,
    "references": _where_it_is,
    "rights": _rights,
    "sign-in": _sign_in,
}
