"""The header and the settings of a subject's page, and labels shared by pages about subjects.

They show actions, requirements on new versions, the subject's state, its topics, and each setting with its origin.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.diff import laid_out
from dashboard.components.frame import page_actor
from dashboard.components.links import map_url, subject_url
from dashboard.components.translation import counted, listing
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import Action
from dashboard.registries.policy_forms import MODE_SENTENCES, scoped_url
from dashboard.subjects.lifecycle import VersionMark, VersionState, marks_of, version_mark
from dashboard.subjects.presenters import SubjectSetting, TopicLink, TopicLinks
from registry.access.name_patterns import pattern_of
from registry.access.roles import Actor, may, refusal
from registry.drift.models import Topic
from registry.drift.usage.subject_topics import CarryingTopic, carrying_topics
from registry.formats import format_of
from registry.formats.compatibility import LEVELS
from registry.lineage.graph import subject_node
from registry.promotions.board.readiness import Reason
from registry.promotions.environments.change_guard import closed_refusal
from registry.promotions.requests.preconditions import CONFIG, MODE, SettingsPreconditions
from registry.promotions.selectors import VersionTimeline
from registry.subjects import selectors
from registry.subjects.lifecycle.retirement import RESTORE, RIGHTS
from registry.subjects.models import Registry
from registry.subjects.policy import change_guard
from registry.subjects.policy.effective_policy import NO_POLICY, ORIGINS, EffectiveConfig, OwnConfig, ScopeSettings
from registry.subjects.versions.qualified_names import SubjectName

ORDER_WORDS: Final = {
    "consumers first": _("Deploy consumers first"),
    "producers first": _("Deploy producers first"),
    "any order": _("Deploy in any order"),
}


def level_order(level: str) -> str:
    """Return the deployment order that a level implies."""
    return ORDER_WORDS.get(LEVELS[level].upgrade_order, gettext("No safe order"))


def origin_words(origin: str) -> str:
    """Say where a setting comes from."""
    return {
        "subject": gettext("set for this subject"),
        "context": gettext("inherited from the context"),
        "registry": gettext("inherited from the registry"),
    }.get(origin, gettext("default"))


def for_people(info: selectors.VersionInfo) -> str:
    """Return the text to read and edit: for Protobuf the submitted one, because the canonical one has no comments."""
    text = format_of(info.schema.schema_type).readable(info.schema.text, info.submitted)
    return pretty(info) if text == info.schema.text else text


def pretty(info: selectors.VersionInfo) -> str:
    """Return the canonical text, with JSON indented; unchanged if it is invalid."""
    if not format_of(info.schema.schema_type).is_json:
        return info.schema.text
    try:
        return laid_out(info.schema.text)
    except (ValueError, RecursionError):
        return info.schema.text


#: topics in the header; the usage page has all
SHOWN_TOPICS: Final = 3
_ASK: Final = "promotion.request"
_BOTH: Final = ("FORWARD", "BACKWARD")
_SIDES: Final = {"key": _("keys"), "value": _("values")}
_BY: Final = {"association": _("association"), "content type": _("content type of its messages")}


def propose_action(
    request: HttpRequest, registry: str, name: SubjectName, *, order: list[str], live: bool
) -> Action | None:
    """Return the link to the editor with the newest version; None if the registry isn't an environment."""
    if registry not in order:
        return None
    reason = refusal(page_actor(request), _ASK, registry=registry, subject=name.qualified)
    parameters = {"registry": registry, "subject": name.qualified} | ({"from": f"{registry}:latest"} if live else {})
    url = f"{reverse('ui:propose')}?{urlencode(parameters)}"
    return Action(label=gettext("Propose version"), url=url, reason=reason, icon="pencil")


def subject_actions(
    request: HttpRequest, registry_row: Registry, name: SubjectName, *, order: list[str], live: bool, selected: int
) -> tuple[Action, ...]:
    """Return the most common actions."""
    registry, own = registry_row.name, name.qualified
    actions = [
        _promote(request, registry, name, selected, order) if live else None,
        propose_action(request, registry, name, order=order, live=live),
        Action(label=gettext("Check new version"), url=subject_url(registry, own, "report"), icon="shield-check"),
    ]
    return tuple(action for action in actions if action is not None)


def more_actions(
    request: HttpRequest, registry: str, name: SubjectName, *, live: bool, selected: int
) -> tuple[Action, ...]:
    """Return the rare actions; their pages say why one is refused."""
    own, actor = name.qualified, page_actor(request)
    reads_all, described = may(actor, "schema.read", registry=registry), subject_url(registry, own, version=selected)
    actions = (
        (live, gettext("Simulate with data"), subject_url(registry, own, "simulate"), "play"),
        (live, gettext("Try a rule on messages"), subject_url(registry, own, "try-rule"), "play"),
        (True, gettext("Show on map"), map_url(subject_node(registry, own)), "list-tree"),
        (True, gettext("Describe"), f"{described}#note", "message-square"),
        (actor.user_id is not None, gettext("Subscribe"), subscribe_url(registry, name), "inbox"),
        (reads_all, gettext("Policy"), policy_url(registry, name), "lock"),
        (True, gettext("Retire …"), subject_url(registry, own, "retire"), "x"),
    )
    return tuple(Action(label=label, url=url, icon=icon) for applies, label, url, icon in actions if applies)


def subscribe_url(registry: str, name: SubjectName) -> str:
    """Return the URL of a new subscription to this subject; its name is literal, not a pattern."""
    parameters = {"registry_pattern": pattern_of(registry), "subject_pattern": pattern_of(name.qualified)}
    return f"{reverse('ui:subscriptions')}?{urlencode(parameters)}#subscribe"


def policy_url(registry: str, name: SubjectName) -> str:
    """Return the URL where the subject's settings are changed."""
    return f"{scoped_url('ui:policy', registry, name, change='1')}#change"


def _promote(request: HttpRequest, registry: str, name: SubjectName, version: int, order: list[str]) -> Action | None:
    """Return the link to a new request for the first later environment where the reader may request a promotion."""
    if registry not in order[:-1]:
        return None
    later_ones, actor = order[order.index(registry) + 1 :], page_actor(request)
    target = next(
        (environment for environment in later_ones if may(actor, _ASK, registry=environment, subject=name.qualified)),
        later_ones[0],
    )
    reason = refusal(actor, _ASK, registry=target, subject=name.qualified)
    query = urlencode({"source": registry, "target": target, "subject": name.qualified, "version": version})
    return Action(
        label=gettext("Promote…"),
        url=f"{reverse('ui:promotion_request')}?{query}",
        reason=reason,
        tone="primary",
        icon="git-pull-request-arrow",
    )


def restore_action(
    actor: Actor, name: SubjectName, preconditions: SettingsPreconditions, mode: str, *, version: int | None = None
) -> Action:
    """Return the action that restores a soft-deleted version, or (None) the whole subject."""
    registry, right = preconditions.registry, RIGHTS[RESTORE]
    reason = refusal(actor, right, registry=registry.name, subject=name.qualified)
    if not reason and preconditions.is_closed:
        reason = closed_refusal(right, registry, name.qualified)
    if not reason and change_guard.stops(mode, passes=preconditions.passes):
        reason = gettext("The mode is %(mode)s: no changes are allowed.") % {"mode": mode}
    path, _, query = subject_url(registry.name, name.qualified, "retire", version=version, do=RESTORE).partition("?")
    return Action(
        label=gettext("Restore …")
        if version is None
        else gettext("Restore version %(version)s …") % {"version": version},
        url=f"{path}/confirm?{query}",
        reason=reason,
        tone="primary",
        icon="undo-2",
    )


# -- the level ---------------------------------------------------------------------------------------------------------


def level_origin(spoken: ScopeSettings) -> str:
    """Say where the level is set, and which would apply without the subject's own."""
    config = spoken.config()
    if config.origin != ORIGINS[0]:
        return origin_words(config.origin)
    wider = spoken.inherited().config()
    texts = {
        "context": gettext("own setting; the context has %(level)s"),
        "registry": gettext("own setting; the registry has %(level)s"),
    }.get(wider.origin, gettext("own setting; the default is %(level)s"))
    return texts % {"level": wider.level}


def level_asks(config: EffectiveConfig, settings: OwnConfig, versions: int) -> str:
    """Say what the level requires of a new schema, against how many versions, and which other rules apply."""
    sentences = [_level_sentence(config.level, versions)]
    if settings.compatibility_group and LEVELS[config.level].directions:
        group = {"group": settings.compatibility_group}
        sentences.append(gettext("Only versions with the same %(group)s in their metadata are compared.") % group)
    if config.policy != NO_POLICY:
        sentences.append(gettext("The rules of %(policy)s apply as well.") % {"policy": config.policy})
    return " ".join(sentences)


def _level_sentence(level: str, versions: int) -> str:
    level_rules = LEVELS[level]
    if not level_rules.directions:
        return gettext("Nothing is checked: any schema is accepted.")
    if not versions:
        return gettext("There is no version to check a new schema against.")
    if level_rules.scope == "all":
        return _asked_of_all(level_rules.directions, versions)
    sentence = {
        _BOTH: gettext("A new schema and the newest version must read each other’s data."),
        ("FORWARD",): gettext("The newest version must read the data of a new schema."),
    }.get(level_rules.directions, gettext("A new schema must read the data of the newest version."))
    if versions == 1:
        return sentence
    older = counted(versions - 1, "The older version is not checked.", "The %(n)s older versions are not checked.")
    return f"{sentence} {older}"


def _asked_of_all(directions: Sequence[str], versions: int) -> str:
    if tuple(directions) == _BOTH:
        return counted(
            versions,
            "A new schema and the only version must read each other’s data.",
            "A new schema and all %(n)s versions must read each other’s data.",
        )
    if tuple(directions) == ("FORWARD",):
        return counted(
            versions,
            "The only version must read the data of a new schema.",
            "All %(n)s versions must read the data of a new schema.",
        )
    return counted(
        versions,
        "A new schema must read the data of the only version.",
        "A new schema must read the data of all %(n)s versions.",
    )


# -- its state and its topics ------------------------------------------------------------------------------------------


def state_mark(lives: Mapping[int, VersionTimeline], newest: int | None) -> VersionMark:
    """Return the state of the subject: that of its newest live version."""
    if newest is None or newest not in lives:
        return version_mark(VersionState.DELETED, gettext("All versions are soft-deleted."))
    life = lives[newest]
    version = {"version": newest}
    marks = marks_of(life)
    if marks:
        return marks[-1] if life.status is not None else marks[0]
    if life.releases:
        where = listing(dict.fromkeys(release.environment for release in life.releases))
        return VersionMark(
            state=VersionState.RELEASED,
            word=gettext("Released to %(where)s") % {"where": where},
            sentence=gettext("The newest version, %(version)s, was released there by a request.") % version,
        )
    return version_mark(VersionState.REGISTERED, gettext("The newest version, %(version)s, is active.") % version)


def topic_links(actor: Actor, registry: Registry, name: SubjectName, own: Iterable[Topic]) -> TopicLinks:
    """Return those of the subject's `own` topics that carry it."""
    topics = carrying_topics(own, name)
    may_look = may(actor, "schema.read", registry=registry.name)
    shown = tuple(_topic(topic, may_look=may_look) for topic in topics[:SHOWN_TOPICS])
    return TopicLinks(
        topics=shown, more=len(topics) - len(shown), more_url=subject_url(registry.name, name.qualified, "usage")
    )


def _topic(topic: CarryingTopic, *, may_look: bool) -> TopicLink:
    strategies = listing(_BY.get(strategy, strategy) for strategy in topic.strategies)
    if not topic.is_found:
        by = gettext("by its name only")
    elif strategies:
        by = gettext("by %(strategies)s") % {"strategies": strategies}
    else:
        by = gettext("according to its data")
    url = reverse("ui:source", args=[topic.source]) + f"?{urlencode({'q': topic.name})}"
    return TopicLink(name=topic.name, side=_SIDES.get(topic.side, topic.side), by=by, url=url if may_look else "")


def subject_settings(
    name: SubjectName, spoken: ScopeSettings, preconditions: SettingsPreconditions, actor: Actor
) -> tuple[SubjectSetting, ...]:
    """Return the level and the mode. A mirror's mode can't be changed here."""
    registry, wider = preconditions.registry, spoken.inherited()
    config, mode = spoken.config(), spoken.mode(registry)
    may_change = may(actor, "schema.read", registry=registry.name)  # the page is of the whole registry
    url = policy_url(registry.name, name) if may_change else ""
    own_level = next((own.level for origin, own in spoken.configs if origin == ORIGINS[0]), None)
    own_mode = next((own for origin, own in spoken.modes if origin == ORIGINS[0]), None)
    modes = () if registry.kind == Registry.REMOTE else preconditions.reasons(MODE, name, mode.mode)
    return (
        _setting(
            gettext("Compatibility"), config.level, config.origin, url, preconditions.reasons(CONFIG, name, mode.mode),
            sentence=f"{LEVELS[config.level].description} {level_order(config.level)}.",
            change=gettext("Change level …"), own=own_level is not None, inherited=wider.config().level,
        ),
        _setting(
            gettext("Mode"), mode.mode, mode.origin, "" if registry.kind == Registry.REMOTE else url, modes,
            sentence=MODE_SENTENCES[mode.mode],
            change=gettext("Change mode …"), own=own_mode is not None, inherited=wider.mode(registry).mode,
        ),
    )  # fmt: skip


def _setting(
    label: str, value: str, origin: str, url: str, reasons: Sequence[Reason], *,
    sentence: str, change: str, own: bool, inherited: str,
) -> SubjectSetting:  # fmt: skip
    why = tuple(reasons)
    reason = why[0].sentence if why else ""

    def action(text: str, icon: str) -> Action:
        return Action(label=text, url=url, reason=reason, icon=icon)

    return SubjectSetting(
        label=label,
        value=value,
        origin=origin_words(origin),
        sentence=sentence,
        own=origin == ORIGINS[0],
        inherited=inherited if own else "",
        change=action(change, "pencil") if url else None,
        reset=action(gettext("Reset to inherited …"), "undo-2") if url and own else None,
        why=why,
    )
