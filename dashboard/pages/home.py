"""Home as an inbox."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlencode

from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from redis.exceptions import RedisError

from dashboard.pages.audit import changed
from dashboard.pages.first_run import first_steps
from dashboard.pages.frame import make_frame, page_actor
from dashboard.pages.home_parts import (
    affected_rows,
    drift_rows,
    health,
    last_decision_of,
    notices,
    problems,
    readable,
    waiting_rows,
)
from dashboard.pages.promotions import request_row
from dashboard.pages.subjects import DOORS
from dashboard.presenters.frame import Action, Section
from dashboard.presenters.home import ActivityItem, HomePage
from dashboard.tasks import DEMO_LOCK
from registry.access.extent import extent_of
from registry.access.roles import Actor
from registry.audit.selectors import LOOKED_AT, AuditEntry, AuditFilter, list_events, newest_event
from registry.drift import selectors as drift
from registry.drift.selectors import SourceInfo
from registry.promotions import selectors as promotions
from registry.promotions.selectors.affecting import affecting
from registry.search.trail_sight import events_for
from registry.subjects.selectors import has_subjects, registry_names
from registry.subjects.selectors.remotes import list_mirrors

SHOWN = 8


def home_page(request: HttpRequest) -> HomePage:
    """What waits, what is on its way, what drifts, and whether the house is well."""
    actor = page_actor(request)
    order = promotions.list_environments()
    sources, mirrors = drift.list_sources(by=actor), readable(list_mirrors(), actor)
    waiting = promotions.waiting_for(actor.user_id) if actor.user_id else []
    mine = promotions.requested_by(actor.user_id) if actor.user_id else []
    failed = promotions.list_requests(state="failed", limit=SHOWN, by=actor)
    findings = drift.list_findings(limit=SHOWN, by=actor)
    affected = affecting(actor)
    asked = [*waiting, *(each.request for each in affected)]
    shown = {reverse("ui:promotion", args=[info.id]) for info in asked}
    told = notices(actor, shown | {reverse("ui:finding", args=[info.id]) for info in findings})
    demo = _demo_of(sources, actor)
    tomorrow = timezone.now().date() + timedelta(days=1)
    return HomePage(
        frame=make_frame(request, title=gettext("Home"), section=Section.HOME),
        signed_in=actor.user_id is not None,
        waiting=waiting_rows(waiting, order, timezone.now()),
        together_url=f"{reverse('ui:promotions')}?{urlencode({'who': 'waiting'})}" if len(waiting) > 1 else "",
        affected=affected_rows(affected, order),
        notices=told,
        newest_notice=max((row.number for row in told), default=0),
        mine=tuple(request_row(info, order) for info in mine),
        findings=drift_rows(findings, actor, order),
        snooze_until=tomorrow + timedelta(days=6),
        snooze_from=tomorrow,
        findings_total=demo.found,
        health=health(sources, mirrors, failed, registry_names(actor)),
        problems=problems(sources, mirrors, failed),
        last_decision="" if waiting else last_decision_of(actor),
        activity=_activity(_events(actor)),
        first_steps=first_steps(request, mirrors) if demo.empty else (),
        demo=_demo_action(actor) if demo.empty and not demo.loading and settings.UNDER_UP else None,
        demo_progress=demo.progress,
        watch_url=f"{reverse('ui:home')}?shown={demo.shown}" if demo.progress else "",
    )


def is_home_changed(request: HttpRequest) -> bool:
    """Whether home would show more of the demo than where it was made with this `shown`."""
    actor = page_actor(request)
    return request.GET.get("shown") != _demo_of(drift.list_sources(by=actor), actor).shown


@dataclass(frozen=True)
class _Demo:
    """Whether the demo loads, how far it is in words, and what home has: nothing at all, or so many open findings."""

    loading: bool
    progress: str
    empty: bool
    found: int

    @property
    def shown(self) -> str:
        """What home shows of it, in a word: another word, another page."""
        return f"{int(bool(self.progress))}{int(self.empty)}{self.found}"


def _demo_of(sources: Sequence[SourceInfo], actor: Actor) -> _Demo:
    """Whoever may not read everything doesn't set the house up: for them it isn't empty."""
    loading, found = _is_demo_loading(), drift.count_findings(actor).get("open", 0)
    progress = _progress(sources, loading=loading, found=found)
    is_whole = extent_of(actor, "schema.read").is_whole
    return _Demo(loading, progress, empty=is_whole and not sources and not has_subjects(), found=found)


def _progress(sources: Sequence[SourceInfo], *, loading: bool, found: int) -> str:
    """How far the demo is; nothing where none loads or what it wrote has been scanned."""
    if loading and not sources:
        return gettext("Producers write orders and customers. Their first scan follows, then a query runs twice.")
    if loading:
        return gettext("What is there is scanned already; a query runs twice, then its state is scanned too.")
    scans = [source.last_scan for source in sources if source.last_scan]
    if settings.UNDER_UP and not found and any(scan.unfinished for scan in scans):
        return gettext("What was written is scanned now; its findings appear here.")
    return ""


def _is_demo_loading() -> bool:
    """Whether it is known to load: without Valkey nobody knows, and no page fails for that."""
    try:
        return bool(cache.get(DEMO_LOCK))
    except (RedisError, OSError):
        return False


def _demo_action(actor: Actor) -> Action:
    """Anybody at one's own machine may load the demo, signed in or not: it is offered under `up` alone."""
    return Action(
        label=gettext("Load the demo"), url=reverse("ui:demo_load"), method="post", tone="primary", icon="play"
    )


def _events(actor: Actor) -> list[AuditEntry]:
    """The newest events that the reader may see, of whoever may not see all among so many that were written last."""
    if not extent_of(actor, "audit.read").parts:
        return []
    about = events_for(actor)
    oldest = 0 if about is None else max(0, newest_event() - LOOKED_AT)
    return list_events(chosen=AuditFilter(about=about), limit=SHOWN * 10, after_id=oldest)


def _activity(entries: list[AuditEntry]) -> tuple[ActivityItem, ...]:
    """What was done, once a transaction: one registration changes several rows. Scans have a place of their own."""
    done = {entry.transaction_id: entry for entry in reversed(entries) if entry.door != "task"}
    newest = sorted(done.values(), key=lambda entry: -entry.id)[:SHOWN]
    return tuple(
        ActivityItem(
            sentence=_capital(entry.why or changed(entry)),
            who=entry.actor,
            at=entry.at,
            door=DOORS.get(entry.door, entry.door),
            url=f"{reverse('ui:audit')}?{urlencode({'q': entry.why or entry.actor})}",
        )
        for entry in newest
    )


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
