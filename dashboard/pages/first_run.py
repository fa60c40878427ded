"""The steps of the first run, each with what was found when it was tried: nothing is waited for, what is known is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.pages.frame import page_actor
from dashboard.presenters.frame import Action, Link
from dashboard.presenters.home import FirstStep, Tried
from dashboard.presenters.looks import Health
from dashboard.texts import counted, listing
from registry.access.roles import Actor, may, refusal
from registry.promotions.approvers import Approvers, approvers_of
from registry.promotions.selectors import EnvironmentInfo, environment_infos
from registry.subjects.selectors.remotes import MirrorState

NAMED: Final = 3


def first_steps(request: HttpRequest, mirrors: Sequence[MirrorState]) -> tuple[FirstStep, ...]:
    """A registry, the environments, who approves, and what is scanned."""
    actor, environments = page_actor(request), environment_infos()
    return (
        _connect(request, actor, mirrors),
        _environments(environments, mirrors),
        _reviewers(actor, environments),
        FirstStep(
            title=gettext("Add a topic or a checkpoint"),
            sentence=gettext("It is scanned on a schedule and held against what is registered."),
            action=Action(label=gettext("Add a source"), url=reverse("ui:source_add")),
        ),
    )


def _connect(request: HttpRequest, actor: Actor, mirrors: Sequence[MirrorState]) -> FirstStep:
    """Of several that are connected, one that can't be read stands for them."""
    shown = next((each for each in mirrors if each.error), mirrors[0] if mirrors else None)
    reason = refusal(actor, "registry.manage", registry=shown.registry if shown else "")
    if shown is None:
        label, url, method = gettext("Connect a registry"), reverse("ui:registry_connect"), "get"
    else:
        label, url, method = gettext("Test connection"), reverse("ui:registry_test", args=[shown.registry]), "post"
    return FirstStep(
        title=gettext("Connect a registry, or use this one"),
        sentence=gettext(
            "One that you have is mirrored read-only; its address is tested before it is kept. Or point a producer here:"
            " any client of Confluent’s registry works unchanged."
        ),
        command=f"schema.registry.url={request.scheme}://{request.get_host()}",
        action=Action(label=label, url=url, method=method, allowed=not reason, reason=reason),
        tried=_connection(shown),
    )


def _connection(mirror: MirrorState | None) -> Tried:
    """How the last reading of a mirror went."""
    if mirror is None:
        return Tried(health=Health.OFF, word=gettext("None connected"))
    named = {"registry": mirror.registry, "why": mirror.error}
    if mirror.error:
        said = gettext("%(registry)s can’t be read: %(why)s") % named
        return Tried(health=Health.DOWN, word=gettext("Not reachable"), said=said, at=mirror.failing_since)
    if mirror.synced_at is None:
        said = gettext("%(registry)s is read for the first time.") % named
        return Tried(health=Health.OFF, word=gettext("Not known yet"), said=said)
    said = gettext("%(registry)s was read; nothing is registered there yet.") % named
    return Tried(health=Health.UP, word=gettext("Reachable"), said=said, at=mirror.synced_at)


def _environments(environments: Sequence[EnvironmentInfo], mirrors: Sequence[MirrorState]) -> FirstStep:
    order = [each.name for each in environments]
    away = [each.registry for each in mirrors if each.error and each.registry in order]
    path = " → ".join(order)
    if len(order) < 2:
        said = gettext("Nothing can be promoted: that takes two environments, and there are %(number)s.")
        tried = Tried(health=Health.DEGRADED, word=gettext("One is missing"), said=said % {"number": len(order)})
    elif away:
        said = gettext("%(path)s; of these can’t be read: %(away)s.") % {"path": path, "away": listing(away)}
        tried = Tried(health=Health.DEGRADED, word=gettext("Not all reachable"), said=said)
    else:
        closed = listing([each.name for each in environments if each.is_closed])
        said = gettext("%(path)s. Only requests write to %(closed)s.") if closed else gettext("%(path)s. All are open.")
        tried = Tried(health=Health.UP, word=gettext("Mapped"), said=said % {"path": path, "closed": closed})
    return FirstStep(
        title=gettext("Map your environments"),
        sentence=gettext("Each is a registry, in the order in which versions go through them."),
        action=Action(label=gettext("Environments and their rules"), url=reverse("ui:environments")),
        tried=tried,
    )


def _reviewers(actor: Actor, environments: Sequence[EnvironmentInfo]) -> FirstStep:
    last = environments[-1] if environments else None
    return FirstStep(
        title=gettext("Choose who approves"),
        sentence=gettext(
            "Somebody asks, somebody else approves. Rules say who, for which subjects, and what breaking takes."
        ),
        action=Action(label=gettext("Rules of %(target)s") % {"target": last.name}, url=_rules_url(last))
        if last
        else None,
        tried=_approval(actor, last, approvers_of(last)) if last else None,
    )


def _rules_url(environment: EnvironmentInfo) -> str:
    return reverse("ui:environment", args=[environment.name])


def _approval(actor: Actor, target: EnvironmentInfo, found: Approvers) -> Tried:
    """Whether what goes to the last environment can be approved, by whom, and where that is changed."""
    manages = may(actor, "people.manage")
    cure = Link(label=gettext("People and their roles"), url=reverse("ui:people")) if manages else None
    if not found.needed and not target.rules:
        said = gettext("What goes to %(target)s needs nobody’s approval.") % {"target": target.name}
        return Tried(health=Health.DEGRADED, word=gettext("Nobody is asked"), said=said)
    asked = counted(
        found.needed, "%(target)s takes %(n)s approval.", "%(target)s takes %(n)s approvals.", target=target.name
    )
    if not found.is_enough:
        can = counted(found.people, "%(n)s person can give one.", "%(n)s people can give one.")
        said = f"{asked} {can if found.people else gettext('Nobody can give one.')}"
        return Tried(health=Health.DEGRADED, word=gettext("Somebody is missing"), said=said, cure=cure)
    said = f"{asked} {_who(actor, found)}"
    if target.rules:
        said += " " + counted(len(target.rules), "%(n)s rule names others.", "%(n)s rules name others.")
    if found.people == found.needed and not target.own_approval_allowed:
        said += " " + gettext("What they ask for themselves needs somebody else.")
        return Tried(health=Health.UP, word=gettext("Can be approved"), said=said, cure=cure)
    return Tried(health=Health.UP, word=gettext("Can be approved"), said=said)


def _who(actor: Actor, found: Approvers) -> str:
    """Those who can; their names are for who is signed in."""
    if actor.user_id is None or len(found.names) > NAMED:
        return counted(found.people, "%(n)s person can give it.", "%(n)s people can give it.")
    return gettext("Can give it: %(names)s.") % {"names": listing(list(found.names))}
