"""The home page as an inbox, the first steps, the demo's button and the theme.

Each first step shows the result of its last check. Nothing is waited for: only stored results are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext
from django.views.decorators.http import require_POST, require_safe
from redis.exceptions import RedisError

from dashboard.audit.views import changed
from dashboard.components.badges import Health, channel_name
from dashboard.components.frame import make_frame, page_actor
from dashboard.components.translation import counted, listing
from dashboard.components.widgets import Action, Link, Problem, Section
from dashboard.demo.load import demo_failure, demo_refusal
from dashboard.home import tour
from dashboard.home.panels import (
    ActivityItem,
    FirstStep,
    HomePage,
    StepCheck,
    affected_rows,
    drift_rows,
    health,
    last_decision_of,
    notices,
    problems,
    waiting_rows,
)
from dashboard.promotions.request_list import request_row, together_url
from dashboard.tasks import DEMO_LOCK, run_demo
from registry.access.permission_filters import extent_of, require_extent
from registry.access.roles import Actor, may, refusal
from registry.audit.selectors import LOOKED_AT, AuditEntry, AuditFilter, list_events, newest_event
from registry.drift import selectors as drift
from registry.drift.selectors import SourceInfo
from registry.errors import NotAllowed, Unavailable
from registry.promotions import selectors as promotions
from registry.promotions.reviews.affected_consumers import pending_acknowledgements
from registry.promotions.reviews.reviewers import Approvers, approvers_of
from registry.promotions.selectors import EnvironmentInfo, environment_infos
from registry.search.audit_filter import events_for
from registry.subjects.policy.registries import MirrorState, registries_and_mirrors
from registry.subjects.selectors import has_subjects

NAMED: Final = 3


def first_steps(request: HttpRequest, mirrors: Sequence[MirrorState]) -> tuple[FirstStep, ...]:
    """Return the first steps: a registry, the environments, reviewers, and sources."""
    actor, environments = page_actor(request), environment_infos()
    return (
        _connect(request, actor, mirrors),
        _environments(environments, mirrors),
        _reviewers(actor, environments),
        FirstStep(
            title=gettext("Add a topic or a checkpoint"),
            sentence=gettext("Schemadesk scans it on a schedule and compares its data with the registered schemas."),
            action=Action(label=gettext("Add a source"), url=reverse("ui:source_add")),
        ),
    )


def _connect(request: HttpRequest, actor: Actor, mirrors: Sequence[MirrorState]) -> FirstStep:
    """Return the step for registries; of several, it shows one that can't be read."""
    shown = next((mirror for mirror in mirrors if mirror.error), mirrors[0] if mirrors else None)
    reason = refusal(actor, "registry.manage", registry=shown.registry if shown else "")
    if shown is None:
        label, url, method = gettext("Connect a registry"), reverse("ui:registry_connect"), "get"
    else:
        label, url, method = gettext("Test connection"), reverse("ui:registry_test", args=[shown.registry]), "post"
    return FirstStep(
        title=gettext("Connect a registry, or use this one"),
        sentence=gettext(
            "An existing registry is mirrored read-only. Its address is tested before it is saved. Or point"
            " a producer at this server: any Confluent Schema Registry client works unchanged."
        ),
        command=f"schema.registry.url={request.scheme}://{request.get_host()}",
        action=Action(label=label, url=url, method=method, reason=reason),
        tried=_connection(shown),
    )


def _connection(mirror: MirrorState | None) -> StepCheck:
    """Return the result of a mirror's last sync."""
    if mirror is None:
        return StepCheck(health=Health.OFF, word=gettext("None connected"))
    named = {"registry": mirror.registry, "why": mirror.error}
    if mirror.error:
        sentence = gettext("%(registry)s can’t be read: %(why)s") % named
        return StepCheck(health=Health.DOWN, word=gettext("Not reachable"), sentence=sentence, at=mirror.failing_since)
    if mirror.synced_at is None:
        sentence = gettext("%(registry)s has not been read yet.") % named
        return StepCheck(health=Health.OFF, word=gettext("Not read yet"), sentence=sentence)
    sentence = gettext("%(registry)s was read. It has no schemas yet.") % named
    return StepCheck(health=Health.UP, word=gettext("Reachable"), sentence=sentence, at=mirror.synced_at)


def _environments(environments: Sequence[EnvironmentInfo], mirrors: Sequence[MirrorState]) -> FirstStep:
    order = [item.name for item in environments]
    away = [item.registry for item in mirrors if item.error and item.registry in order]
    path = " → ".join(order)
    if len(order) < 2:
        sentence = gettext("Promotions need at least two environments. There are %(number)s.")
        tried = StepCheck(
            health=Health.DEGRADED, word=gettext("Too few environments"), sentence=sentence % {"number": len(order)}
        )
    elif away:
        sentence = gettext("%(path)s. Can’t be read: %(away)s.") % {"path": path, "away": listing(away)}
        tried = StepCheck(health=Health.DEGRADED, word=gettext("Not all reachable"), sentence=sentence)
    else:
        closed = listing([item.name for item in environments if item.is_closed])
        sentence = (
            gettext("%(path)s. Only approved requests can change %(closed)s.")
            if closed
            else gettext("%(path)s. All can be changed directly.")
        )
        tried = StepCheck(
            health=Health.UP, word=gettext("Set up"), sentence=sentence % {"path": path, "closed": closed}
        )
    return FirstStep(
        title=gettext("Set up your environments"),
        sentence=gettext("Each environment is a registry. Versions are promoted through them in order."),
        action=Action(label=gettext("Environment rules"), url=reverse("ui:environments")),
        tried=tried,
    )


def _reviewers(actor: Actor, environments: Sequence[EnvironmentInfo]) -> FirstStep:
    last = environments[-1] if environments else None
    return FirstStep(
        title=gettext("Choose who approves"),
        sentence=gettext(
            "One person requests a promotion and another approves it. Rules set who approves which subjects"
            " and breaking changes."
        ),
        action=Action(label=gettext("Rules of %(target)s") % {"target": last.name}, url=_rules_url(last))
        if last
        else None,
        tried=_approval(actor, last, approvers_of(last)) if last else None,
    )


def _rules_url(environment: EnvironmentInfo) -> str:
    return reverse("ui:environment", args=[environment.name])


def _approval(actor: Actor, target: EnvironmentInfo, approvers: Approvers) -> StepCheck:
    """Say whether requests for the last environment can be approved, by whom, and where to change that."""
    manages = may(actor, "people.manage")
    cure = Link(label=gettext("People and their roles"), url=reverse("ui:people")) if manages else None
    needs = counted(
        approvers.needed, "%(target)s needs %(n)s approval.", "%(target)s needs %(n)s approvals.", target=target.name
    )
    if not approvers.is_enough:
        can = counted(approvers.people, "%(n)s person can approve.", "%(n)s people can approve.")
        sentence = f"{needs} {can if approvers.people else gettext('Nobody can approve.')}"
        return StepCheck(health=Health.DEGRADED, word=gettext("Too few approvers"), sentence=sentence, cure=cure)
    sentence = f"{needs} {_who(actor, approvers)}"
    if target.rules:
        sentence += " " + counted(
            len(target.rules), "%(n)s rule names other approvers.", "%(n)s rules name other approvers."
        )
    if approvers.people == approvers.needed and not target.settings["own_approval_allowed"]:
        sentence += " " + gettext("Their own requests need another approver.")
        return StepCheck(health=Health.UP, word=gettext("Can be approved"), sentence=sentence, cure=cure)
    return StepCheck(health=Health.UP, word=gettext("Can be approved"), sentence=sentence)


def _who(actor: Actor, approvers: Approvers) -> str:
    """Say who can approve; only signed-in people see names."""
    if actor.user_id is None or len(approvers.names) > NAMED:
        return counted(approvers.people, "%(n)s person can approve.", "%(n)s people can approve.")
    return gettext("Approvers: %(names)s.") % {"names": listing(list(approvers.names))}


SHOWN, MOST_WAITING = 8, 20


def home_page(request: HttpRequest) -> HomePage:
    """Return the page: pending requests, requests in progress, findings, and health."""
    actor = page_actor(request)
    order = promotions.list_environments()
    sources, (registries, mirrors) = drift.list_sources(by=actor), registries_and_mirrors(actor)
    pending = pending_acknowledgements(actor)
    requests = promotions.home_requests(actor, others=pending.keys(), limit=MOST_WAITING, failed=SHOWN)
    waiting, failed = requests.waiting, requests.failed
    findings = drift.list_finding_groups(limit=SHOWN, by=actor)
    affected = [(requests.others[number], clients) for number, clients in pending.items() if number in requests.others]
    shown = {reverse("ui:promotion", args=[info.id]) for info in (*waiting, *requests.others.values())}
    rows = notices(
        actor, shown | {reverse("ui:finding", args=[number]) for group in findings for number in group.numbers}
    )
    frame = make_frame(
        request,
        title=gettext("Home"),
        section=Section.HOME,
        order=order,
        waiting=len(waiting) if len(waiting) < MOST_WAITING else None,
    )
    demo, demo_problem = _demo_of(sources, actor, frame.open_findings), _demo_problem(actor)
    offers_demo = settings.UNDER_UP and not demo.loading and (demo.empty or demo_problem)
    tomorrow = timezone.now().date() + timedelta(days=1)
    return HomePage(
        frame=frame,
        signed_in=actor.user_id is not None,
        waiting=waiting_rows(waiting, order, timezone.now()),
        together_url=together_url(waiting),
        affected=affected_rows(affected, order),
        notices=rows,
        newest_notice=max((row.id for row in rows), default=0),
        mine=tuple(request_row(info, order) for info in requests.mine),
        findings=drift_rows(findings, actor, order),
        snooze_until=tomorrow + timedelta(days=6),
        snooze_from=tomorrow,
        findings_total=frame.open_findings,
        is_scanned=any(source.last_ended and source.last_ended.verdict == "scanned" for source in sources),
        health=health(sources, mirrors, failed, registries, extent_of(actor, "schema.read")),
        problems=(*demo_problem, *problems(sources, mirrors, failed)),
        last_decision="" if waiting else last_decision_of(actor),
        activity=_activity(_events(actor)),
        tour_url="" if demo.empty or tour.is_ended(request) else reverse("ui:tour", args=[1]),
        first_steps=first_steps(request, mirrors) if demo.empty else (),
        demo=_demo_action(actor) if offers_demo else None,
        demo_progress=demo.progress,
        watch_url=f"{reverse('ui:home')}?shown={demo.shown}" if demo.progress else "",
    )


def is_home_changed(request: HttpRequest) -> bool:
    """Return whether the home page would show more of the demo than the one with this `shown`."""
    actor = page_actor(request)
    open_findings = drift.open_findings_of(actor).count()
    return request.GET.get("shown") != _demo_of(drift.list_sources(by=actor), actor, open_findings).shown


@dataclass(frozen=True)
class _Demo:
    """The state of the demo: whether it loads, its progress in words, and what the product contains."""

    loading: bool
    progress: str
    empty: bool
    open_findings: int

    @property
    def shown(self) -> str:
        """A key of what the home page shows of the demo: another key means another page."""
        return f"{int(bool(self.progress))}{int(self.empty)}{self.open_findings}"


def _demo_of(sources: Sequence[SourceInfo], actor: Actor, open_findings: int) -> _Demo:
    """Return the state of the demo.

    Without permission to read everything, a person doesn't set up the product, so that it doesn't count as empty.
    """
    loading = _is_demo_loading()
    progress = _progress(sources, loading=loading, open_findings=open_findings)
    is_whole = extent_of(actor, "schema.read").is_whole
    return _Demo(loading, progress, empty=is_whole and not sources and not has_subjects(), open_findings=open_findings)


def _progress(sources: Sequence[SourceInfo], *, loading: bool, open_findings: int) -> str:
    """Describe the demo's progress; "" if none loads and its data is scanned."""
    if loading and not sources:
        return gettext("Producers are writing orders and customers. Next: their first scan, then two runs of a query.")
    if loading:
        return gettext("The topics have been scanned. Next: two runs of a query, then a scan of its state.")
    scans = [source.last_scan for source in sources if source.last_scan]
    if settings.UNDER_UP and not open_findings and any(scan.unfinished for scan in scans):
        return gettext("The demo data is being scanned. Findings will appear here.")
    return ""


def _is_demo_loading() -> bool:
    """Return whether the demo loads; False without Valkey, so that no page fails."""
    try:
        return bool(cache.get(DEMO_LOCK))
    except (RedisError, OSError):
        return False


def _demo_problem(actor: Actor) -> tuple[Problem, ...]:
    """Return the demo's failure, for people on a local machine who may read everything."""
    failure = demo_failure() if settings.UNDER_UP and extent_of(actor, "schema.read").is_whole else ""
    if not failure:
        return ()
    cure = gettext("Fix this, then load the demo again, here or with python3 manage.py demo.")
    return (Problem(what=gettext("The demo failed to load."), detail=failure, cure=cure),)


def _demo_action(actor: Actor) -> Action:
    """Return the button that loads the demo.

    Everybody may use it, even without signing in, because it is offered only under `up` on a local machine.
    """
    refusal = demo_refusal()
    return Action(
        label=gettext("Load the demo"),
        url=reverse("ui:demo_load"),
        method="post",
        tone="primary",
        icon="play",
        reason=refusal,
    )


def _events(actor: Actor) -> list[AuditEntry]:
    """Return the newest events that the reader may see, among the last ones written."""
    if not extent_of(actor, "audit.read").parts:
        return []
    about = events_for(actor)
    oldest = 0 if about is None else max(0, newest_event() - LOOKED_AT)
    return list_events(chosen=AuditFilter(about=about), limit=SHOWN * 10, after_id=oldest)


def _activity(entries: list[AuditEntry]) -> tuple[ActivityItem, ...]:
    """Return one item per transaction, because a registration changes several rows; without scans, shown elsewhere."""
    done = {entry.transaction_id: entry for entry in reversed(entries) if entry.channel != "task"}
    newest = sorted(done.values(), key=lambda entry: -entry.id)[:SHOWN]
    return tuple(
        ActivityItem(
            sentence=_capital(entry.why or changed(entry)),
            who=entry.actor,
            at=entry.at,
            channel=channel_name(entry.channel),
            url=f"{reverse('ui:audit')}?{urlencode({'q': entry.why or entry.actor})}",
        )
        for entry in newest
    )


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


THEMES = ("light", "dark", "system")


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Show the inbox; for its polling, only tell whether to reload it."""
    require_extent(page_actor(request), "schema.read")
    if getattr(request, "htmx", None) and "shown" in request.GET:
        return HttpResponse(status=204, headers={"HX-Refresh": "true"} if is_home_changed(request) else {})
    return render(request, "home/home.html", {"page": home_page(request)})


@require_POST
def demo_load(request: HttpRequest) -> HttpResponse:
    """Start the demo in the background; only under `up` on a local machine."""
    if not settings.UNDER_UP:
        raise NotAllowed(gettext("The demo can only be loaded on a server that runs with `manage.py up`."))
    if refusal := demo_refusal():
        raise Unavailable(refusal)
    run_demo.delay()
    messages.info(request, gettext("The demo is loading. The first findings appear in about a minute."))
    return redirect("ui:home")


@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Store the theme in a cookie and redirect to the previous page."""
    chosen = request.POST.get("theme", "")
    back = request.POST.get("next", "")
    safe = url_has_allowed_host_and_scheme(back, allowed_hosts={request.get_host()})
    response = redirect(back if safe else "ui:home")
    if chosen in THEMES:
        response.set_cookie(
            "theme", chosen, max_age=tour.YEAR, samesite="Lax", httponly=True, secure=request.is_secure()
        )
    return response
