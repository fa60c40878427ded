"""The policy page: what a registry, its contexts and its subjects hold versions to, exceptions first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.frame import make_frame, page_actor
from dashboard.components.links import given_text, subject_url, subjects_crumb
from dashboard.components.translation import later
from dashboard.components.widgets import Action, Choice, Fact, Field, Section
from dashboard.registries.policy_forms import (
    ChangeForm,
    ChangePart,
    PolicyPage,
    PolicyRow,
    WhyNot,
    scope_query,
    scoped_url,
    what_if_form,
)
from dashboard.subjects.page import MODE_SENTENCES, level_order
from registry.formats.compatibility import LEVELS
from registry.promotions.board.readiness import Reason
from registry.promotions.requests.preconditions import CONFIG, MODE, SettingsPreconditions, settings_preconditions
from registry.subjects.models import FORWARD, MODES, POLICIES, PROFILES, Registry
from registry.subjects.policy.effective_policy import DEFAULT_LEVEL, DEFAULT_MODE, OwnConfig
from registry.subjects.policy.policy_tree import PolicyNode, policy_node, policy_tree, scope_of
from registry.subjects.policy.registries import mirror_of
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, SubjectName

INHERITED: Final = ""
#: setting → its label, and what a value of it says
SAID: Final[Mapping[str, tuple[str, Mapping[Any, str]]]] = {
    "normalize": (
        later("Normalize"),
        {True: later("texts that differ only in order are one schema"), False: later("texts are kept as sent")},
    ),
    "profile": (
        later("Verdict by"),
        {"semantic": later("effects on data"), "confluent": later("the established rules")},
    ),
    "policy": (later("Additional rules"), {}),
    "alias": (later("Alias for"), {}),
    "alias_for_deks": (later("Alias for keys"), {}),
    "compatibility_policy": (later("Compatibility policy"), {}),
    "compatibility_group": (later("Compared within group"), {}),
    "validate_fields": (
        later("Reserved fields"),
        {True: later("are protected"), False: later("aren’t protected")},
    ),
    "validate_new_schemas": (
        later("Defaults of new schemas"),
        {True: later("are checked"), False: later("aren’t checked")},
    ),
    "validate_rules": (later("Rules"), {True: later("are checked"), False: later("aren’t checked")}),
}
#: those that are objects: that they are set is said, and the API has them
_OBJECTS: Final = {
    "default_metadata": later("Default metadata"),
    "override_metadata": later("Override metadata"),
    "default_rule_set": later("Default rules"),
    "override_rule_set": later("Override rules"),
}
_DEPTH: Final = {"registry": 0, "context": 1, "subject": 2}


def policy_page(request: HttpRequest, registry: str) -> PolicyPage:
    """The page; with `change` in the query also the forms of the place that it names. Raises InvalidName."""
    registry_row = get_registry(registry)
    cursor = given_text(request.GET, "cursor")
    tree = policy_tree(registry_row, cursor=cursor)
    base = reverse("ui:policy", args=[registry])
    count = sum(1 for item in tree.nodes if item.sets_something)
    shown = (
        gettext("Showing %(count)s of %(total)s exceptions.") % {"count": count, "total": f"{tree.total:,}"}
        if count < tree.total
        else ""
    )
    return PolicyPage(
        frame=make_frame(
            request,
            title=gettext("Policy"),
            section=Section.POLICY,
            registry=registry,
            crumbs=(subjects_crumb(registry),),
            url_in=lambda other: reverse("ui:policy", args=[other]),
            mirror=mirror_of(registry_row),
        ),
        registry=registry,
        root=policy_row(registry, tree.root),
        rows=tuple(policy_row(registry, item) for item in tree.nodes),
        exceptions=f"{_exceptions(tree.total)} {shown}".strip(),
        what_if=what_if_form(registry, None),
        find_url=base,
        change=_change(request, registry_row) if request.GET.get("change") else None,
        first_url=base if cursor else "",
        next_url=f"{base}?{urlencode({'cursor': tree.cursor})}" if tree.cursor else "",
    )


def _exceptions(total: int) -> str:
    if not total:
        return gettext("No context or subject has its own settings. All inherit.")
    if total == 1:
        return gettext("1 context or subject has its own settings. All others inherit.")
    return gettext("%(total)s contexts and subjects have their own settings. All others inherit.") % {
        "total": f"{total:,}"
    }


def policy_row(registry: str, node: PolicyNode) -> PolicyRow:
    """A place as a row."""
    scope, config, mode = node.scope, node.config, node.mode
    level = LEVELS[config.level]
    return PolicyRow(
        kind=node.kind,
        name=registry if scope is None else (scope.subject or scope.context),
        depth=_DEPTH[node.kind],
        level=config.level,
        level_is_own=config.origin == node.kind,
        origin=_origin(config.origin, node.kind),
        sentence=f"{level.description} {level_order(config.level)}.",
        mode=mode.mode,
        mode_is_own=mode.origin == node.kind and node.own_mode is not None,
        mode_origin=_origin(mode.origin, node.kind),
        mode_sentence="" if mode.mode == DEFAULT_MODE and node.own_mode is None else MODE_SENTENCES[mode.mode],
        own=_own(node.own),
        url=subject_url(registry, scope.qualified) if scope and scope.subject and node.exists else "",
        change_url=f"{scoped_url('ui:policy', registry, scope, change='1')}#change",
        what_if_url=scoped_url("ui:what_if", registry, scope),
        inheriting=_inheriting(node),
        absent=not node.exists,
    )


def _inheriting(node: PolicyNode) -> str:
    if node.kind == "subject" or not node.subjects:
        return ""
    if node.inheriting == node.subjects:
        return (
            gettext("All %(subjects)s subjects inherit.") % {"subjects": f"{node.subjects:,}"}
            if node.subjects > 1
            else gettext("Its only subject inherits.")
        )
    return gettext("%(inheriting)s of %(subjects)s subjects inherit.") % {
        "inheriting": f"{node.inheriting:,}",
        "subjects": f"{node.subjects:,}",
    }


def _origin(origin: str, kind: str) -> str:
    if origin == kind:
        return gettext("own setting")
    return {"context": gettext("inherited from the context"), "registry": gettext("inherited from the registry")}.get(
        origin, gettext("default")
    )


def _own(own: OwnConfig | None) -> tuple[Fact, ...]:
    if own is None:
        return ()
    facts = []
    for name, (label, texts) in SAID.items():
        value = getattr(own, name)
        if value is not None:
            facts.append(Fact(label=label, value=texts.get(value, str(value)), code=value not in texts))
    facts += [Fact(label=label, value="set") for name, label in _OBJECTS.items() if getattr(own, name) is not None]
    return tuple(facts)


def asked_scope(form: Mapping[str, str]) -> SubjectName | None:
    """The place that an address or a form names. Raises InvalidName."""
    return scope_of(given_text(form, "context"), given_text(form, "subject"))


# -- changing ---------------------------------------------------------------------------------------------------------


def _change(request: HttpRequest, registry: Registry) -> ChangePart:
    scope = asked_scope(request.GET)
    node, preconditions = policy_node(registry, scope), settings_preconditions(registry, page_actor(request))
    names = scope_query(scope)
    forms = [_config_form(registry.name, node, preconditions)]
    if registry.kind != Registry.REMOTE:
        forms.append(_mode_form(registry.name, node, preconditions))
    return ChangePart(
        row=policy_row(registry.name, node),
        context=names.get("context", ""),
        subject=names.get("subject", ""),
        forms=tuple(forms),
        close_url=reverse("ui:policy", args=[registry.name]),
    )


def _config_form(registry: str, node: PolicyNode, preconditions: SettingsPreconditions) -> ChangeForm:
    own = node.own or OwnConfig()
    rest = (
        _select(
            "level", gettext("Compatibility"), own.level, {name: name for name in LEVELS}, _inherits(node, "level")
        ),
        _select(
            "normalize", gettext("Normalize"), _switch(own.normalize), {"true": gettext("yes"), "false": gettext("no")}
        ),
        _select("profile", gettext("Verdict by"), own.profile, {name: SAID["profile"][1][name] for name in PROFILES}),
        _select("policy", gettext("Additional rules"), own.policy, {name: name for name in POLICIES}),
    )
    alias = Field(
        name="alias",
        label=gettext("Alias"),
        value=own.alias or "",
        code=True,
        help=gettext("Calls for this subject use the subject named here."),
    )
    fields = (*rest, alias) if node.kind == "subject" else rest
    return _form(
        gettext("Settings"),
        "config",
        fields,
        preconditions.reasons(CONFIG, node.scope, node.mode.mode),
        registry,
        own=node.own is not None,
    )


def _mode_form(registry: str, node: PolicyNode, preconditions: SettingsPreconditions) -> ChangeForm:
    offered = [name for name in MODES if name != FORWARD or node.kind == "registry"]
    values = {name: f"{name}: {MODE_SENTENCES[name]}" for name in offered}
    fields = (_select("mode", gettext("Mode"), node.own_mode, values, _inherits(node, "mode")),)
    reasons = preconditions.reasons(MODE, node.scope, node.mode.mode)
    return _form(gettext("Allowed changes"), "mode", fields, reasons, registry, own=node.own_mode is not None)


def _form(
    title: str, part: str, fields: tuple[Field, ...], reasons: Iterable[Reason], registry: str, *, own: bool
) -> ChangeForm:
    why = tuple(WhyNot(code=item.code, sentence=item.sentence, cure=item.cure) for item in reasons)
    reason = why[0].sentence if why else ""
    reset = Action(
        label=gettext("Reset to inherited"),
        url=reverse("ui:policy_reset", args=[registry]),
        method="post",
        allowed=not why,
        reason=reason,
        icon="undo-2",
    )
    return ChangeForm(
        title=title,
        part=part,
        fields=fields,
        submit=Action(
            label=gettext("Set mode") if part == "mode" else gettext("Save settings"),
            url=reverse("ui:policy_change", args=[registry]),
            method="post",
            allowed=not why,
            reason=reason,
            tone="primary",
        ),
        why=why,
        reset=reset if own else None,
    )


def _inherits(node: PolicyNode, what: str) -> str:
    """What counts where the place sets nothing, as far as is known without it."""
    own, value, origin = {
        "level": (node.own.level if node.own else None, node.config.level, node.config.origin),
        "mode": (node.own_mode, node.mode.mode, node.mode.origin),
    }[what]
    if own is None and origin != node.kind:
        return gettext("inherited (currently %(value)s)") % {"value": value}
    usual = DEFAULT_LEVEL if what == "level" else DEFAULT_MODE
    return gettext("default (%(usual)s)") % {"usual": usual} if node.kind == "registry" else gettext("inherited")


def _select(
    name: str, label: str, chosen: str | None, values: Mapping[str, str], none: str = later("inherited")
) -> Field:
    choices = (
        Choice(value=INHERITED, label=none, selected=chosen is None),
        *(Choice(value=value, label=text, selected=value == chosen) for value, text in values.items()),
    )
    return Field(name=name, label=label, kind="select", choices=choices)


def _switch(value: bool | None) -> str | None:
    return None if value is None else str(value).lower()


def place_words(registry: str, scope: SubjectName | None) -> str:
    """A place in words."""
    if scope is None:
        return gettext("registry %(registry)s") % {"registry": registry}
    if scope.subject:
        return gettext("subject %(qualified)s") % {"qualified": scope.qualified}
    return (
        gettext("the default context")
        if scope.context == DEFAULT_CONTEXT
        else gettext("context %(context)s") % {"context": scope.context}
    )
