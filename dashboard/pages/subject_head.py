"""The head of a subject's page: what may be done, what the level asks of a new version, its state and its topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.links import subject_url
from dashboard.pages.frame import page_actor
from dashboard.pages.subject_life import marks_of
from dashboard.pages.subject_words import origin_words
from dashboard.pages.what_if_form import scoped_url
from dashboard.presenters.frame import Action
from dashboard.presenters.subject_life import LifeMark, LifeState
from dashboard.presenters.subjects import TopicLink, TopicLinks
from dashboard.texts import counted, later, listing
from registry.access.patterns import pattern_of
from registry.access.roles import Actor, may, refusal
from registry.drift.carrying import CarryingTopic, carrying_topics
from registry.formats.compatibility import LEVELS
from registry.promotions.changing import Changing
from registry.promotions.gatekeeping import closed_refusal
from registry.promotions.selectors import VersionLife
from registry.subjects import gate
from registry.subjects.models import Registry
from registry.subjects.names import SubjectName
from registry.subjects.selectors.effective import NO_POLICY, ORIGINS, EffectiveConfig, OwnConfig, Spoken
from registry.subjects.services.retiring import RESTORE, RIGHTS

#: topics that the head names; the page of the use has all
SHOWN_TOPICS: Final = 3
_ASK: Final = "promotion.request"
_BOTH: Final = ("FORWARD", "BACKWARD")
_SIDES: Final = {"key": later("keys"), "value": later("values")}
_BY: Final = {
    "association": later("an association"),
    "content type": later("the content type of its messages"),
}


def propose_action(
    request: HttpRequest, registry: str, name: SubjectName, *, order: list[str], live: bool
) -> Action | None:
    """The editor with the newest version; absent where the registry is no environment, so that nothing is proposed."""
    if registry not in order:
        return None
    reason = refusal(page_actor(request), _ASK, registry=registry, subject=name.qualified)
    given = {"registry": registry, "subject": name.qualified} | ({"from": f"{registry}:latest"} if live else {})
    url = f"{reverse('ui:propose')}?{urlencode(given)}"
    return Action(label=gettext("Propose a version"), url=url, allowed=not reason, reason=reason, icon="pencil")


def subject_actions(
    request: HttpRequest, place: Registry, name: SubjectName, *, order: list[str], live: bool, selected: int
) -> tuple[Action, ...]:
    """What is done with the subject most."""
    registry, own = place.name, name.qualified
    found = [
        _promote(request, registry, name, selected, order) if live else None,
        propose_action(request, registry, name, order=order, live=live),
        Action(label=gettext("Check a new version"), url=subject_url(registry, own, "report"), icon="shield-check"),
    ]
    return tuple(action for action in found if action is not None)


def more_actions(
    request: HttpRequest, registry: str, name: SubjectName, *, live: bool, selected: int
) -> tuple[Action, ...]:
    """What is done with the subject seldom; reasons against it stand where each leads."""
    own = name.qualified
    found = [
        Action(label=gettext("Simulate on data"), url=subject_url(registry, own, "simulate"), icon="play")
        if live
        else None,
        Action(
            label=gettext("Describe"), url=f"{subject_url(registry, own, version=selected)}#note", icon="message-square"
        ),
        Action(label=gettext("Subscribe"), url=subscribe_url(registry, name), icon="inbox")
        if page_actor(request).user_id is not None
        else None,
        Action(label=gettext("Policy"), url=policy_url(registry, name), icon="lock"),
        Action(label=gettext("Retire …"), url=subject_url(registry, own, "retire"), icon="x"),
    ]
    return tuple(action for action in found if action is not None)


def subscribe_url(registry: str, name: SubjectName) -> str:
    """The form of a new subscription to this subject; its name is taken as it is, not as a pattern."""
    given = {"registry_pattern": pattern_of(registry), "subject_pattern": pattern_of(name.qualified)}
    return f"{reverse('ui:subscriptions')}?{urlencode(given)}#subscribe"


def policy_url(registry: str, name: SubjectName) -> str:
    """Where the subject's settings are changed."""
    return f"{scoped_url('ui:policy', registry, name, change='1')}#change"


def _promote(request: HttpRequest, registry: str, name: SubjectName, version: int, order: list[str]) -> Action | None:
    """The form of a request, to the first environment after this one in which the reader may ask for it."""
    if registry not in order[:-1]:
        return None
    later_ones, actor = order[order.index(registry) + 1 :], page_actor(request)
    target = next(
        (each for each in later_ones if may(actor, _ASK, registry=each, subject=name.qualified)), later_ones[0]
    )
    reason = refusal(actor, _ASK, registry=target, subject=name.qualified)
    query = urlencode({"source": registry, "target": target, "subject": name.qualified, "version": version})
    return Action(
        label=gettext("Promote…"),
        url=f"{reverse('ui:promotion_request')}?{query}",
        allowed=not reason,
        reason=reason,
        tone="primary",
        icon="git-pull-request-arrow",
    )


def restore_action(actor: Actor, name: SubjectName, held: Changing, mode: str, *, version: int | None = None) -> Action:
    """The way to take back what is soft-deleted: one version, or (None) all of the subject."""
    place, right = held.registry, RIGHTS[RESTORE]
    reason = refusal(actor, right, registry=place.name, subject=name.qualified)
    if not reason and held.is_closed:
        reason = closed_refusal(right, place, name.qualified)
    if not reason and gate.stops(mode, passes=held.passes):
        reason = gettext("The mode here is %(mode)s, in which nothing about it changes.") % {"mode": mode}
    path, _, query = subject_url(place.name, name.qualified, "retire", version=version, do=RESTORE).partition("?")
    return Action(
        label=gettext("Restore …")
        if version is None
        else gettext("Restore version %(version)s …") % {"version": version},
        url=f"{path}/confirm?{query}",
        allowed=not reason,
        reason=reason,
        tone="primary",
        icon="undo-2",
    )


# -- the level ------------------------------------------------------------------------------------------------------------


def level_origin(spoken: Spoken) -> str:
    """Where the level is set, and what would count without the subject's own."""
    config = spoken.config()
    if config.origin != ORIGINS[0]:
        return origin_words(config.origin)
    wider = spoken.inherited().config()
    said = {
        "context": gettext("set here; the context’s is %(level)s"),
        "registry": gettext("set here; the registry’s is %(level)s"),
    }.get(wider.origin, gettext("set here; the default is %(level)s"))
    return said % {"level": wider.level}


def level_asks(config: EffectiveConfig, settings: OwnConfig, versions: int) -> str:
    """What the level asks of a new schema, over how many versions, and what counts beside it."""
    said = [_asked(config.level, versions)]
    if settings.compatibility_group and LEVELS[config.level].directions:
        group = {"group": settings.compatibility_group}
        said.append(gettext("Only versions with the same %(group)s in their metadata are compared.") % group)
    if config.policy != NO_POLICY:
        said.append(gettext("Beside it the rules of %(policy)s count.") % {"policy": config.policy})
    return " ".join(said)


def _asked(level: str, versions: int) -> str:
    found = LEVELS[level]
    if not found.directions:
        return gettext("Nothing is checked: any schema is taken.")
    if not versions:
        return gettext("There is no version that a new schema would be held against.")
    if found.scope == "all":
        return _asked_of_all(found.directions, versions)
    said = {
        _BOTH: gettext("A new schema and the newest version must read each other’s data."),
        ("FORWARD",): gettext("The newest version must read the data of a new schema."),
    }.get(found.directions, gettext("A new schema must read the data of the newest version."))
    if versions == 1:
        return said
    older = counted(
        versions - 1, "The %(n)s version before it isn’t asked.", "The %(n)s versions before it aren’t asked."
    )
    return f"{said} {older}"


def _asked_of_all(directions: Sequence[str], versions: int) -> str:
    if tuple(directions) == _BOTH:
        return counted(
            versions,
            "A new schema and the one version must read each other’s data.",
            "A new schema and all %(n)s versions must read each other’s data.",
        )
    if tuple(directions) == ("FORWARD",):
        return counted(
            versions,
            "The one version must read the data of a new schema.",
            "All %(n)s versions must read the data of a new schema.",
        )
    return counted(
        versions,
        "A new schema must read the data of the one version.",
        "A new schema must read the data of all %(n)s versions.",
    )


# -- its state and its topics -----------------------------------------------------------------------------------------------


def state_mark(lives: Mapping[int, VersionLife], newest: int | None) -> LifeMark:
    """The state of the subject, which is that of its newest live version."""
    if newest is None or newest not in lives:
        return LifeMark(
            state=LifeState.DELETED,
            word=LifeState.DELETED.look.word,
            sentence=gettext("All its versions are soft-deleted."),
        )
    life = lives[newest]
    version = {"version": newest}
    marks = marks_of(life)
    if marks:
        return marks[-1] if life.standing is not None else marks[0]
    if life.releases:
        where = listing(dict.fromkeys(each.environment for each in life.releases))
        return LifeMark(
            state=LifeState.RELEASED,
            word=gettext("Released to %(where)s") % {"where": where},
            sentence=gettext("Version %(version)s, the newest one, came there by a request.") % version,
        )
    return LifeMark(
        state=LifeState.REGISTERED,
        word=LifeState.REGISTERED.look.word,
        sentence=gettext("Version %(version)s, the newest one, is in good standing.") % version,
    )


def topic_links(actor: Actor, place: Registry, name: SubjectName) -> TopicLinks:
    """The topics that carry the subject; one query."""
    found = carrying_topics(place, name)
    may_look = may(actor, "schema.read", registry=place.name)
    shown = tuple(_topic(topic, may_look=may_look) for topic in found[:SHOWN_TOPICS])
    return TopicLinks(
        topics=shown, more=len(found) - len(shown), more_url=subject_url(place.name, name.qualified, "usage")
    )


def _topic(topic: CarryingTopic, *, may_look: bool) -> TopicLink:
    strategies = listing(_BY.get(each, each) for each in topic.strategies)
    if not topic.is_found:
        by = gettext("by its name alone")
    elif strategies:
        by = gettext("by %(strategies)s") % {"strategies": strategies}
    else:
        by = gettext("as its data say")
    url = reverse("ui:source", args=[topic.source]) + f"?{urlencode({'q': topic.name})}"
    return TopicLink(name=topic.name, side=_SIDES.get(topic.side, topic.side), by=by, url=url if may_look else "")
