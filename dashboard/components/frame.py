"""The frame of a page, the actor who views it, and rendering of the part that htmx requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from django.db.models import Count, QuerySet, Value
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext

from dashboard.components.badges import EnvironmentKind
from dashboard.components.links import subject_crumbs, subject_parts, subjects_url, switch_url
from dashboard.components.tour import tour_bar
from dashboard.components.widgets import Action, Crumb, Environment, Frame, Section, SubPage, Travel
from dashboard.people.sign_in import signed_in_by
from registry.access.permission_filters import extent_of
from registry.access.request_origin import is_local
from registry.access.roles import READER, Actor, Grant, refusal
from registry.access.selectors import actor_of_user, anonymous_actor
from registry.drift.selectors import open_findings_of
from registry.notifications.selectors import unread_entries
from registry.promotions.selectors import count_waiting_for, list_environments
from registry.subjects.policy.registries import MirrorState
from registry.subjects.versions.qualified_names import SubjectName

OTHER_REGISTRY = EnvironmentKind.OTHER


def page_actor(request: HttpRequest) -> Actor:
    """Return the actor who views a page, looked up once per request.

    Without a session it is anonymous; under `up` on a local machine, a reader. The role that `up` gives to programs
    without a token doesn't apply here, because changes by pages need a name.
    """
    actor: Actor | None = getattr(request, "page_actor", None)
    if actor is None:
        actor = _actor(request)
        request.page_actor = actor  # type: ignore[attr-defined]
    return actor


def _actor(request: HttpRequest) -> Actor:
    origin = str(request.META.get("REMOTE_ADDR") or "")
    if request.user.is_authenticated:
        return actor_of_user(request.user, channel="ui", origin=origin, signed_in_by=signed_in_by(request))
    nobody = anonymous_actor(channel="ui", is_local=is_local(request.META), origin=origin)
    return replace(nobody, grants=(Grant(READER),)) if nobody.grants else nobody


def kind_of(name: str, order: list[str]) -> EnvironmentKind:
    """Return the kind: the first environment is development, the last production, those between staging."""
    if name not in order:
        return OTHER_REGISTRY
    if name == order[-1] and len(order) > 1:
        return EnvironmentKind.PRODUCTION
    return EnvironmentKind.DEVELOPMENT if name == order[0] else EnvironmentKind.STAGING


def environment_of(name: str, order: list[str], *, url: str = "", current: bool = False) -> Environment:
    """Return a registry as shown on pages."""
    return Environment(name=name, kind=kind_of(name, order), url=url, current=current)


def make_frame(
    request: HttpRequest,
    *,
    title: str,
    section: Section = Section.NONE,
    registry: str = "",
    code: bool = False,
    crumbs: tuple[Crumb, ...] = (),
    parts: tuple[SubPage, ...] = (),
    url_in: Callable[[str], str] | None = None,
    mirror: MirrorState | None = None,
    order: list[str] | None = None,
    waiting: int | None = None,
) -> Frame:
    """Return the frame; `url_in` gives the URL of the same page in another environment.

    `order` are the environments' names, if already read; those where the reader may read something are shown. `waiting`
    is the number of requests that wait for the reader, if already counted.
    """
    travel: Travel | None = getattr(request, "travel", None)
    is_past = travel is not None and travel.at is not None
    order = list_environments() if order is None else order
    actor = page_actor(request)
    readable = extent_of(actor, "schema.read")
    shown = [name for name in order if name == registry or readable.has(name)]
    counts = _counts(actor, is_past=is_past)
    names = shown if not registry or registry in order else [*shown, registry]
    locate = url_in or subjects_url
    return Frame(
        title=title,
        now=timezone.now(),
        section=section,
        code=code,
        crumbs=crumbs,
        parts=parts,
        environments=tuple(environment_of(name, order, url=locate(name), current=name == registry) for name in names),
        mirror=None if is_past else mirror,
        refresh=None if is_past or mirror is None else refresh_action(mirror, actor),
        travel=travel,
        open_findings=counts["findings"],
        waiting_requests=0 if is_past else _waiting(actor) if waiting is None else waiting,
        unread=counts["unread"],
        readable=readable,
        tour=tour_bar(request),
    )


def subject_frame(
    request: HttpRequest, registry: str, name: SubjectName, page: str | None = None, *, title: str, **options: Any
) -> Frame:
    """Return the frame of a page about a subject, with its breadcrumbs, and its tabs if `page` is one of them."""
    if page is not None:
        tabs = {
            "parts": subject_parts(registry, name, page),
            "url_in": lambda other: switch_url(other, name.qualified, page),
        }
        options = tabs | options
    options = {"crumbs": subject_crumbs(registry, name)} | options
    return make_frame(request, title=title, section=Section.SUBJECTS, registry=registry, **options)


def _counts(actor: Actor, *, is_past: bool) -> Counter[str]:
    """Count the open findings that the reader may read, and their unread notices; one query."""
    rows: dict[str, QuerySet[Any]] = {} if is_past else {"findings": open_findings_of(actor)}
    if actor.user_id:
        rows["unread"] = unread_entries(actor.user_id)
    counts = [row.order_by().values_list(Value(name)).annotate(number=Count("pk")) for name, row in rows.items()]
    return Counter(dict(counts[0].union(*counts[1:], all=True)) if counts else {})


def _waiting(actor: Actor) -> int:
    return count_waiting_for(actor.user_id, actor.grants) if actor.user_id else 0


def refresh_action(state: MirrorState, actor: Actor) -> Action:
    """Return the button that refreshes a mirror."""
    reason = refusal(actor, "registry.refresh", registry=state.registry)
    if not reason and state.is_running:
        reason = gettext("A sync is running.")
    elif not reason and state.is_queued:
        reason = gettext("A sync is already queued.")
    return Action(
        label=gettext("Refresh"),
        url=reverse("ui:registry_refresh", args=[state.registry]),
        method="post",
        reason=reason,
        icon="refresh-cw",
    )


#: headers that decide which part is sent
VARIES: Final = ("HX-Request", "HX-Target")


def render_page(request: HttpRequest, template: str, page: Any, parts: Mapping[str, str]) -> HttpResponse:
    """Render the page, or the part of its template that htmx targets (target's id → part's name)."""
    htmx = getattr(request, "htmx", None)
    part = parts.get(htmx.target or "") if htmx and not htmx.boosted else None
    response = render(request, f"{template}#{part}" if part else template, {"page": page})
    patch_vary_headers(response, VARIES)
    return response
