"""The panels of the home page: notices, the last decision, health, and sources whose scans fail."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Final

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.badges import Health, ScanState
from dashboard.components.links import subjects_url
from dashboard.components.translation import counted, listing
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import Action, Frame, Link, Problem
from dashboard.findings.finding_list import FindingRow, finding_row
from dashboard.promotions.plan import RequestRow, impact_of
from dashboard.promotions.request_list import at_utc, request_row
from dashboard.promotions.summary import clients_sentence
from dashboard.runtime.data_folder import missing_parts
from dashboard.sources.coverage import coverage_of, is_fresh
from dashboard.sources.labels import listed, scan_state
from registry.access.permission_filters import Extent, extent_of
from registry.access.roles import Actor, may
from registry.drift.selectors import FindingGroup, SourceInfo
from registry.notifications.selectors import EntryInfo, list_entries
from registry.promotions.checks.consumers import AffectedClient
from registry.promotions.environments.freezes import Window
from registry.promotions.plan.types import FAIL, warnings_of
from registry.promotions.requests.linked_requests import last_decision
from registry.promotions.reviews.reviewers import WAITS, freezes_soon, waits_long
from registry.promotions.selectors import RequestInfo, resolving
from registry.subjects.policy.registries import MirrorState


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthLine:
    """A part of a service that may be unhealthy: its state (labelled by `word` if given), and the time of it."""

    name: str
    url: str
    state: ScanState
    word: str = ""
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthItem:
    """A service: its state, a sentence about it, and since when or as of when.

    `lines` are its parts that may be unhealthy, worst first, and `more` counts the others.
    """

    label: str
    health: Health
    sentence: str = ""
    at: datetime | None = None
    url: str = ""
    lines: tuple[HealthLine, ...] = ()
    more: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityItem:
    """An action; `channel` is where it came in ("page", "REST API", "task")."""

    sentence: str
    who: str
    at: datetime
    url: str = ""
    channel: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCheck:
    """The check of a first step: its state, a word and a sentence, its time, and the cure."""

    health: Health
    word: str
    sentence: str = ""
    at: datetime | None = None
    cure: Link | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstStep:
    """A step of setting up the product."""

    title: str
    sentence: str
    command: str = ""
    action: Action | None = None
    tried: StepCheck | None = None

    @property
    def done(self) -> bool:
        """Whether its check succeeded."""
        return self.tried is not None and self.tried.health == Health.UP


@dataclass(frozen=True, slots=True, kw_only=True)
class HomePage:
    """The inbox. `first_steps` are shown instead while there is no subject and no source.

    `demo` is the button "Load the demo" (a POST), None if not offered; `demo_progress` is the progress while the demo
    loads; the page then polls `watch_url` for changes. `is_scanned` is whether a scan has read data. `affected` are requests that affect the reader's clients.
    `notices` are unread ones, up to the number `newest_notice`. `last_decision` is a sentence for the empty inbox.
    `together_url` opens the bulk approval; `snooze_until` is the default day to acknowledge a finding until,
    `snooze_from` the earliest. If `signed_in` is False, it shows how to sign in.
    `tour_url` begins the tour, "" if it was ended or there is nothing to show.
    """

    frame: Frame
    signed_in: bool = True
    waiting: tuple[RequestRow, ...] = ()
    affected: tuple[RequestRow, ...] = ()
    notices: tuple[EntryInfo, ...] = ()
    newest_notice: int = 0
    mine: tuple[RequestRow, ...] = ()
    findings: tuple[FindingRow, ...] = ()
    findings_total: int = 0
    is_scanned: bool = True
    health: tuple[HealthItem, ...] = ()
    activity: tuple[ActivityItem, ...] = ()
    last_decision: str = ""
    first_steps: tuple[FirstStep, ...] = ()
    demo: Action | None = None
    demo_progress: str = ""
    watch_url: str = ""
    problems: tuple[Problem, ...] = ()
    together_url: str = ""
    snooze_until: date | None = None
    snooze_from: date | None = None
    tour_url: str = ""


#: maximum number of lines in the health strip
MOST: Final = 5
_WORST_FIRST: Final = (ScanState.FAILED, ScanState.NEVER, ScanState.EMPTY, ScanState.CANCELLED, ScanState.DONE)


def scan_lines(sources: Sequence[SourceInfo]) -> list[HealthLine]:
    """Return a line for each source that may be unhealthy: failed, never scanned, nothing read, cancelled, or long ago.

    A source with a running scan has none.
    """
    lines = [
        (_WORST_FIRST.index(state), source)
        for source in sources
        if (state := scan_state(source.last_scan)) in _WORST_FIRST and not is_fresh(source)
    ]
    return [_line(source) for _, source in sorted(lines, key=lambda pair: (pair[0], pair[1].name, pair[1].id))]


def _line(source: SourceInfo) -> HealthLine:
    state, scan = scan_state(source.last_scan), source.last_scan
    return HealthLine(
        name=source.name,
        url=reverse("ui:source", args=[source.id]),
        state=ScanState.NEVER if state is ScanState.DONE else state,
        word=gettext("Not in the last 24 hours") if state is ScanState.DONE else "",
        at=scan.finished_at if scan else None,
    )


SHOWN: Final = 8
PROBLEMS: Final = 5
_ENDED: Final = {"applied": _("was applied"), "rejected": _("was rejected"), "withdrawn": _("was withdrawn")}


def waiting_rows(waiting: Sequence[RequestInfo], order: list[str], now: datetime) -> tuple[RequestRow, ...]:
    """Return the requests that wait for the reader's review, with their impact and whether they are due."""
    freezes = freezes_soon({info.target for info in waiting}, now)
    return tuple(
        replace(request_row(info, order), impact=impact_in_words(info), due=_due(info, freezes, now))
        for info in waiting
    )


def affected_rows(
    affecting: Sequence[tuple[RequestInfo, tuple[AffectedClient, ...]]], order: list[str]
) -> tuple[RequestRow, ...]:
    """Return the requests that wait for the reader's acknowledgement, with their clients."""
    rows = ((request_row(info, order), [hurt.label for hurt in clients]) for info, clients in affecting)
    return tuple(
        replace(
            row,
            anchor="#consumers",
            blocked="",
            impact=counted(len(names), "%(names)s is affected.", "%(names)s are affected.", names=listed(names)),
        )
        for row, names in rows
    )


def impact_in_words(info: RequestInfo) -> str:
    """Say what a request breaks and who is affected, by the last checks; "" if nothing."""
    warnings = warnings_of(info.checks)
    concerned = [check for check in impact_of(info.checks) if check["verdict"] == FAIL or check in warnings]
    failing, warning = len(info.failing), len(warnings)
    parts = [gettext("breaking change")] if info.is_breaking else []
    parts += [counted(failing, "%(n)s failed check", "%(n)s failed checks")] if failing else []
    parts += [counted(warning, "%(n)s warning", "%(n)s warnings")] if warning else []
    parts += (
        [counted(len(concerned), "%(n)s of them about its users", "%(n)s of them about its users")] if concerned else []
    )
    clients = clients_sentence(info.checks)
    parts += [clients] if clients else []
    sentence = listing(parts)
    return f"{sentence[:1].upper()}{sentence[1:]}." if sentence else ""


def _due(info: RequestInfo, freezes: Mapping[str, Window], now: datetime) -> str:
    """Say why the review is due: it waits long, or its environment is frozen soon; "" if it isn't."""
    if waits_long(info.requested_at, now):
        return gettext("Waiting for more than %(days)s working days.") % {"days": WAITS.days}
    coming = freezes.get(info.target)
    if coming is None:
        return ""
    return gettext("A freeze of %(target)s starts at %(at)s: %(reason)s") % {
        "target": info.target,
        "at": at_utc(coming.starts_at),
        "reason": coming.reason,
    }


def drift_rows(findings: Sequence[FindingGroup], actor: Actor, order: list[str]) -> tuple[FindingRow, ...]:
    """Return the findings that need a decision, with the requests that answer them and the reader's permission."""
    answered = resolving(actor, [group.worst.id for group in findings])
    return tuple(
        replace(
            finding_row(info, order, answered.get(info.id, ()), group.numbers),
            may_snooze=may(actor, "finding.decide", registry=info.registry, subject=info.subject),
        )
        for group in findings
        for info in [group.worst]
    )


def notices(actor: Actor, shown: Collection[str]) -> tuple[EntryInfo, ...]:
    """Return a person's unread notices, newest first, without those that link to a `shown` page."""
    if actor.user_id is None:
        return ()
    entries = list_entries(actor, unread=True, limit=SHOWN + len(shown))
    return tuple(entry for entry in entries if entry.url not in shown)[:SHOWN]


def last_decision_of(actor: Actor) -> str:
    """Return the last decision in a sentence, "" before the first."""
    decision = last_decision(actor)
    if decision is None:
        return ""
    ended = _ENDED.get(decision.state, decision.state)
    return gettext("Last decision: request %(request)s (%(qualified)s to %(target)s) %(ended)s on %(at)s UTC.") % {
        "request": decision.request,
        "qualified": decision.subject.qualified,
        "target": decision.target,
        "ended": ended,
        "at": f"{decision.at:%Y-%m-%d %H:%M}",
    }


def readable(mirrors: Sequence[MirrorState], actor: Actor) -> list[MirrorState]:
    """Return the mirrors in whose registries the person may read something."""
    extent = extent_of(actor, "schema.read")
    return [mirror for mirror in mirrors if extent.has(mirror.registry)]


def health(
    sources: Sequence[SourceInfo],
    mirrors: Sequence[MirrorState],
    failed: Sequence[RequestInfo],
    registries: Sequence[str],
    readable: Extent,
) -> tuple[HealthItem, ...]:
    """Return the health strip: the reader's registries and their last sync, scans, Spark, and failed jobs."""
    here, spark = _registries(mirrors, registries), _spark()
    if not readable.has_registries:
        return (here, spark)
    return (here, _scans(sources, is_whole=readable.is_whole), spark, _jobs(sources, mirrors, failed))


def _registries(mirrors: Sequence[MirrorState], registries: Sequence[str]) -> HealthItem:
    failing = [mirror.registry for mirror in mirrors if mirror.error]
    synced = [mirror.synced_at for mirror in mirrors if mirror.synced_at]
    ours = len(registries) - len(mirrors)
    sentence = counted(ours, "%(n)s registry up.", "%(n)s registries up.")
    if mirrors:
        fresh = len(mirrors) - len(failing)
        sentence = f"{sentence} {_fresh(fresh, len(mirrors), dated=bool(synced))}"
    return HealthItem(
        label=gettext("Registries"),
        health=Health.DEGRADED if failing else Health.UP,
        sentence=sentence,
        at=min(synced, default=None),
        url=reverse("ui:registries"),
    )


def _scans(sources: Sequence[SourceInfo], *, is_whole: bool) -> HealthItem:
    finished = [scan.finished_at for source in sources if (scan := source.last_ended) and scan.finished_at]
    lines = scan_lines(sources)
    return HealthItem(
        label=gettext("Scans"),
        # A source that was never scanned doesn't count as healthy.
        health=Health.DEGRADED if _failed_scans(sources) else Health.UP if finished else Health.OFF,
        sentence=coverage_of(list(sources))
        or (gettext("No sources yet.") if is_whole else gettext("No sources that you can read.")),
        at=max(finished, default=None),
        url=reverse("ui:sources"),
        lines=tuple(lines[:MOST]),
        more=max(0, len(lines) - MOST),
    )


def _spark() -> HealthItem:
    reason = missing_parts(settings.DATA_DIR).get("spark", "") if settings.UNDER_UP else ""
    if reason:
        sentence = gettext("Not running: %(reason)s. No scans until it starts.") % {"reason": reason}
        return HealthItem(label=gettext("Spark"), health=Health.DEGRADED, sentence=sentence)
    is_set = bool(settings.SPARK_REMOTE)
    sentence = (
        gettext("Spark Connect is configured.")
        if is_set
        else gettext("No Spark Connect server is configured, so scans can’t run.")
    )
    return HealthItem(label=gettext("Spark"), health=Health.UP if is_set else Health.OFF, sentence=sentence)


def _fresh(fresh: int, mirrors: int, *, dated: bool) -> str:
    """Say how many mirrors are up to date; if `dated`, the time of the oldest sync follows."""
    if dated:
        return counted(
            mirrors,
            "%(fresh)s of %(n)s mirror up to date, oldest sync",
            "%(fresh)s of %(n)s mirrors up to date, oldest sync",
            fresh=fresh,
        )
    return counted(
        mirrors, "%(fresh)s of %(n)s mirror up to date.", "%(fresh)s of %(n)s mirrors up to date.", fresh=fresh
    )


def _jobs(sources: Sequence[SourceInfo], mirrors: Sequence[MirrorState], failed: Sequence[RequestInfo]) -> HealthItem:
    names = [gettext("scan of %(each)s") % {"each": source.name} for source in _failed_scans(sources)]
    names += [gettext("mirror %(registry)s") % {"registry": mirror.registry} for mirror in mirrors if mirror.error]
    names += [gettext("request %(id)s to %(target)s") % {"id": info.id, "target": info.target} for info in failed]
    sentence = (
        counted(len(names), "%(n)s job failed: %(jobs)s.", "%(n)s jobs failed: %(jobs)s.", jobs=listed(names))
        if names
        else gettext("No failed jobs.")
    )
    return HealthItem(label=gettext("Jobs"), health=Health.DEGRADED if names else Health.UP, sentence=sentence)


def problems(
    sources: Sequence[SourceInfo], mirrors: Sequence[MirrorState], failed: Sequence[RequestInfo]
) -> tuple[Problem, ...]:
    """Return the first problems: unreadable sources and mirrors, and failed requests, with their message and time."""
    rows = [
        Problem(
            what=gettext("Request %(id)s to %(target)s failed after some of its steps were written.")
            % {"id": info.id, "target": info.target},
            detail=info.failure,
            cure=gettext("Resume the request, or give it up."),
            links=(
                Link(label=gettext("Request %(id)s") % {"id": info.id}, url=reverse("ui:promotion", args=[info.id])),
            ),
        )
        for info in failed
    ]
    rows += [
        Problem(
            what=gettext("The mirror %(registry)s can’t be synced.") % {"registry": mirror.registry},
            where=mirror.url,
            detail=mirror.error,
            since=mirror.failing_since,
            links=(Link(label=gettext("Subjects from the last sync"), url=subjects_url(mirror.registry)),),
        )
        for mirror in mirrors
        if mirror.error
    ]
    rows += [
        Problem(
            what=gettext("The last scan of %(each)s failed. Its findings are from an earlier scan.")
            % {"each": source.name},
            where=source.bootstrap or source.registry,
            detail=source.last_ended.error if source.last_ended else "",
            since=source.last_ended.finished_at if source.last_ended else None,
            links=(Link(label=source.name, url=reverse("ui:source", args=[source.id])),),
        )
        for source in _failed_scans(sources)
    ]
    return tuple(rows[:PROBLEMS])


def _failed_scans(sources: Sequence[SourceInfo]) -> list[SourceInfo]:
    return [source for source in sources if source.last_ended and source.last_ended.state == "failed"]
