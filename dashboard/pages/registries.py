"""The registries: ours and those elsewhere, with how fresh their mirrors are."""

from __future__ import annotations

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.links import subjects_url
from dashboard.pages.frame import environment_of, make_frame, page_actor, refresh_action
from dashboard.pages.sources_words import lasting
from dashboard.presenters.frame import Action
from dashboard.presenters.registries import RegistriesPage, RegistryRow, RegistryState
from registry.access.roles import Actor, refusal
from registry.promotions.selectors import list_environments
from registry.subjects.selectors.registries import RegistryEntry, registries_for
from registry.subjects.selectors.remotes import MirrorState


def registries_page(request: HttpRequest) -> RegistriesPage:
    """All registries that the reader may read something of."""
    actor, order = page_actor(request), list_environments()
    reason = refusal(actor, "registry.manage")
    return RegistriesPage(
        frame=make_frame(request, title=gettext("Registries"), order=order),
        rows=tuple(_row(entry, order, actor) for entry in registries_for(actor)),
        connect=Action(
            label=gettext("Connect a registry"),
            url=reverse("ui:registry_connect"),
            allowed=not reason,
            reason=reason,
            tone="primary",
            icon="plus",
        ),
    )


def _row(entry: RegistryEntry, order: list[str], actor: Actor) -> RegistryRow:
    mirror = entry.mirror
    place = environment_of(entry.name, order)
    if mirror is None:
        return RegistryRow(
            environment=place,
            url=subjects_url(entry.name),
            state=RegistryState.OURS,
            subjects=entry.subjects,
            versions=entry.versions,
            actions=(_moving(entry.name),),
        )
    return RegistryRow(
        environment=place,
        url=subjects_url(entry.name),
        state=state_of(mirror),
        subjects=entry.subjects,
        versions=entry.versions,
        address=mirror.url,
        every=gettext("every %(time)s") % {"time": lasting(mirror.every_seconds)},
        synced_at=mirror.synced_at,
        problem=mirror.error,
        since=mirror.failing_since,
        actions=_actions(mirror, actor),
    )


def state_of(mirror: MirrorState) -> RegistryState:
    """Where a mirror stands: what is wrong comes before what is under way."""
    if mirror.is_running:
        return RegistryState.RUNNING
    if mirror.is_queued:
        return RegistryState.QUEUED
    if mirror.error:
        return RegistryState.FAILING
    if mirror.synced_at is None:
        return RegistryState.NEVER
    return RegistryState.STALE if mirror.is_stale else RegistryState.FRESH


def _actions(mirror: MirrorState, actor: Actor) -> tuple[Action, ...]:
    reason = refusal(actor, "registry.manage", registry=mirror.registry)

    def act(label: str, page: str, icon: str, *, method: str = "get") -> Action:
        url = reverse(f"ui:{page}", args=[mirror.registry])
        return Action(label=label, url=url, method=method, icon=icon, allowed=not reason, reason=reason)

    return (
        refresh_action(mirror, actor),
        act(gettext("Test connection"), "registry_test", "play", method="post"),
        act(gettext("Change"), "registry_connection", "pencil"),
        _moving(mirror.registry),
        act(gettext("Disconnect"), "registry_disconnect", "x"),
    )


def _moving(registry: str) -> Action:
    return Action(label=gettext("Export and import"), url=reverse("ui:moving", args=[registry]), icon="file-text")
