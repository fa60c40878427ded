"""The parts of the home page beside requests and findings: notices, the last decision, health, what can't be read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.links import subjects_url
from dashboard.pages.finding_row import finding_row
from dashboard.pages.home_scans import MOST, scan_lines
from dashboard.pages.promotions import at_utc, request_row
from dashboard.pages.promotions_clients import clients_sentence
from dashboard.pages.promotions_plan import impact_of
from dashboard.pages.sources import coverage_of
from dashboard.pages.sources_words import listed
from dashboard.presenters.drift import FindingRow
from dashboard.presenters.frame import Action, Link, Problem
from dashboard.presenters.home import HealthItem
from dashboard.presenters.looks import Health
from dashboard.presenters.notifications import NoticeRow
from dashboard.presenters.promotions import RequestRow
from dashboard.texts import counted, later, listing
from registry.access.extent import extent_of
from registry.access.roles import Actor, may
from registry.drift.selectors import FindingInfo, SourceInfo
from registry.notifications.selectors import EntryInfo, list_entries
from registry.promotions.due import WAITS, freezes_soon, waits_long
from registry.promotions.plan import FAIL, WARN, WEIGHTLESS
from registry.promotions.recurring import Window
from registry.promotions.selectors import RequestInfo, resolving
from registry.promotions.selectors.affecting import Affecting
from registry.promotions.selectors.decisions import last_decision
from registry.subjects.selectors.remotes import MirrorState

SHOWN: Final = 8
PROBLEMS: Final = 5
_ENDED: Final = {
    "applied": later("was applied"),
    "rejected": later("was rejected"),
    "withdrawn": later("was withdrawn"),
}


def waiting_rows(waiting: Sequence[RequestInfo], order: list[str], now: datetime) -> tuple[RequestRow, ...]:
    """What waits for the reader's review: with what its checks say of others, and whether it is due."""
    freezes = freezes_soon({info.target for info in waiting}, now)
    return tuple(
        replace(request_row(info, order), impact=impact_in_words(info), due=_due(info, freezes, now))
        for info in waiting
    )


def affected_rows(found: Sequence[Affecting], order: list[str]) -> tuple[RequestRow, ...]:
    """What waits for the reader's word for clients of theirs: which these are, leading to where it is said."""
    rows = ((request_row(each.request, order), [hurt.words for hurt in each.clients]) for each in found)
    return tuple(
        replace(
            row,
            url=f"{row.url}#consumers",
            blocked="",
            impact=counted(
                len(names), "%(names)s doesn’t go on with it.", "%(names)s don’t go on with it.", names=listed(names)
            ),
        )
        for row, names in rows
    )


def impact_in_words(info: RequestInfo) -> str:
    """How much it breaks and whom it concerns, from the checks as they were last run; "" for nothing of that."""
    concerned = [check for check in impact_of(info.checks) if check["verdict"] in (FAIL, WARN)]
    failing, warning = (
        len(info.failing),
        sum(check["verdict"] == WARN and check.get("code") not in WEIGHTLESS for check in info.checks),
    )
    parts = [gettext("it breaks what is there")] if info.is_breaking else []
    parts += [counted(failing, "%(n)s check fails", "%(n)s checks fail")] if failing else []
    parts += [counted(warning, "%(n)s check warns", "%(n)s checks warn")] if warning else []
    parts += (
        [counted(len(concerned), "%(n)s of them about who uses it", "%(n)s of them about who uses it")]
        if concerned
        else []
    )
    clients = clients_sentence(info.checks)
    parts += [clients] if clients else []
    said = listing(parts)
    return f"{said[:1].upper()}{said[1:]}." if said else ""


def _due(info: RequestInfo, freezes: Mapping[str, Window], now: datetime) -> str:
    """Why the review is due: it waits long, or its environment is frozen soon; "" where it isn't."""
    if waits_long(info.requested_at, now):
        return gettext("It has waited longer than %(days)s working days.") % {"days": WAITS.days}
    coming = freezes.get(info.target)
    if coming is None:
        return ""
    return gettext("%(target)s is frozen from %(at)s: %(reason)s") % {
        "target": info.target,
        "at": at_utc(coming.starts_at),
        "reason": coming.reason,
    }


def drift_rows(findings: Sequence[FindingInfo], actor: Actor, order: list[str]) -> tuple[FindingRow, ...]:
    """Drift that needs a decision: with the requests that answer it, and what puts it off for those who may decide."""
    answered = resolving(actor, [info.id for info in findings])
    return tuple(
        replace(finding_row(info, order, answered.get(info.id, ())), snooze=_snooze(info, actor)) for info in findings
    )


def _snooze(info: FindingInfo, actor: Actor) -> Action | None:
    if not may(actor, "finding.decide", registry=info.registry):
        return None
    url = reverse("ui:finding_acknowledge", args=[info.id])
    return Action(label=gettext("Acknowledge"), url=url, method="post", icon="eye")


def notices(actor: Actor, shown: Collection[str]) -> tuple[NoticeRow, ...]:
    """What the person was told and hasn't read, newest first; not what leads to something that is `shown` anyway."""
    if actor.user_id is None:
        return ()
    entries = list_entries(actor, unread=True, limit=SHOWN + len(shown))
    return tuple(_notice(entry) for entry in entries if entry.url not in shown)[:SHOWN]


def _notice(entry: EntryInfo) -> NoticeRow:
    return NoticeRow(
        number=entry.id,
        title=entry.title,
        registry=entry.registry,
        subject=entry.subject,
        text=entry.text,
        url=entry.url,
        at=entry.at,
        read=entry.read,
    )


def last_decision_of(actor: Actor) -> str:
    """The last decision in a sentence, "" before the first."""
    found = last_decision(actor)
    if found is None:
        return ""
    ended = _ENDED.get(found.state, found.state)
    return gettext("The last decision: request %(request)s (%(qualified)s to %(target)s) %(ended)s on %(at)s UTC.") % {
        "request": found.request,
        "qualified": found.subject.qualified,
        "target": found.target,
        "ended": ended,
        "at": f"{found.at:%Y-%m-%d %H:%M}",
    }


def readable(mirrors: Sequence[MirrorState], actor: Actor) -> list[MirrorState]:
    """The mirrors whose registries the person may read something of."""
    extent = extent_of(actor, "schema.read")
    return [each for each in mirrors if extent.has(each.registry)]


def health(
    sources: Sequence[SourceInfo],
    mirrors: Sequence[MirrorState],
    failed: Sequence[RequestInfo],
    registries: Sequence[str],
) -> tuple[HealthItem, ...]:
    """The strip: the registries that are known to the reader and their last sync, scans, Spark, and what failed."""
    return (_registries(mirrors, registries), _scans(sources), _spark(), _jobs(sources, mirrors, failed))


def _registries(mirrors: Sequence[MirrorState], known: Sequence[str]) -> HealthItem:
    failing = [each.registry for each in mirrors if each.error]
    synced = [each.synced_at for each in mirrors if each.synced_at]
    ours = len(known) - len(mirrors)
    said = counted(ours, "%(n)s of ours answers.", "%(n)s of ours answer.")
    if mirrors:
        fresh = len(mirrors) - len(failing)
        said = f"{said} {_fresh(fresh, len(mirrors), dated=bool(synced))}"
    return HealthItem(
        label=gettext("Registries"),
        health=Health.DEGRADED if failing else Health.UP,
        sentence=said,
        at=min(synced, default=None),
        url=reverse("ui:registries"),
    )


def _scans(sources: Sequence[SourceInfo]) -> HealthItem:
    finished = [each.last_scan.finished_at for each in sources if each.last_scan and each.last_scan.finished_at]
    lines = scan_lines(sources)
    return HealthItem(
        label=gettext("Scans"),
        # What was never read isn't known to be well.
        health=Health.DEGRADED if _failed_scans(sources) else Health.UP if finished else Health.OFF,
        sentence=coverage_of(list(sources)) or gettext("No source yet."),
        at=max(finished, default=None),
        url=reverse("ui:sources"),
        lines=tuple(lines[:MOST]),
        more=max(0, len(lines) - MOST),
    )


def _spark() -> HealthItem:
    is_set = bool(settings.SPARK_REMOTE)
    said = gettext("Set for scans.") if is_set else gettext("No Spark Connect server is set: nothing can be scanned.")
    return HealthItem(label=gettext("Spark"), health=Health.UP if is_set else Health.OFF, sentence=said)


def _fresh(fresh: int, mirrors: int, *, dated: bool) -> str:
    """How many mirrors are up to date; where it is `dated`, the time of the oldest follows."""
    if dated:
        return counted(
            mirrors,
            "%(fresh)s of %(n)s mirror up to date, the oldest read",
            "%(fresh)s of %(n)s mirrors up to date, the oldest read",
            fresh=fresh,
        )
    return counted(
        mirrors, "%(fresh)s of %(n)s mirror up to date.", "%(fresh)s of %(n)s mirrors up to date.", fresh=fresh
    )


def _jobs(sources: Sequence[SourceInfo], mirrors: Sequence[MirrorState], failed: Sequence[RequestInfo]) -> HealthItem:
    names = [gettext("the scan of %(each)s") % {"each": each.name} for each in _failed_scans(sources)]
    names += [gettext("the mirror %(registry)s") % {"registry": each.registry} for each in mirrors if each.error]
    names += [gettext("request %(id)s to %(target)s") % {"id": each.id, "target": each.target} for each in failed]
    said = (
        counted(len(names), "%(n)s job failed: %(jobs)s.", "%(n)s jobs failed: %(jobs)s.", jobs=listed(names))
        if names
        else gettext("None failed when it last ran.")
    )
    return HealthItem(label=gettext("Jobs"), health=Health.DEGRADED if names else Health.UP, sentence=said)


def problems(
    sources: Sequence[SourceInfo], mirrors: Sequence[MirrorState], failed: Sequence[RequestInfo]
) -> tuple[Problem, ...]:
    """What can't be read or went wrong half-way, each with the message that came and since when; the first of them."""
    found = [
        Problem(
            what=gettext("Request %(id)s to %(target)s failed after a part of it was written.")
            % {"id": each.id, "target": each.target},
            detail=each.failure,
            cure=gettext("Resume it, or give it up."),
            links=(
                Link(label=gettext("Request %(id)s") % {"id": each.id}, url=reverse("ui:promotion", args=[each.id])),
            ),
        )
        for each in failed
    ]
    found += [
        Problem(
            what=gettext("The mirror %(registry)s can’t be brought up to date.") % {"registry": each.registry},
            where=each.url,
            detail=each.error,
            since=each.failing_since,
            links=(Link(label=gettext("What was read before"), url=subjects_url(each.registry)),),
        )
        for each in mirrors
        if each.error
    ]
    found += [
        Problem(
            what=gettext("The last scan of %(each)s failed: its findings are as they were before.")
            % {"each": each.name},
            where=each.bootstrap or each.registry,
            detail=each.last_scan.error if each.last_scan else "",
            since=each.last_scan.finished_at if each.last_scan else None,
            links=(Link(label=each.name, url=reverse("ui:source", args=[each.id])),),
        )
        for each in _failed_scans(sources)
    ]
    return tuple(found[:PROBLEMS])


def _failed_scans(sources: Sequence[SourceInfo]) -> list[SourceInfo]:
    return [each for each in sources if each.last_scan and each.last_scan.state == "failed"]
