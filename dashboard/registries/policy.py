"""The policy page: the settings of a registry, its contexts and its subjects, exceptions first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.frame import make_frame, page_actor
from dashboard.components.links import form_text, subjects_crumb
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import Fact, Frame, Section
from dashboard.registries.policy_forms import (
    MODE_SENTENCES,
    PROFILE_LABELS,
    ConfigForm,
    ModeForm,
    ResetConfigForm,
    ResetModeForm,
    WhatIfForm,
    scope_query,
    scoped_url,
)
from dashboard.subjects.page import level_order
from registry.formats.compatibility import LEVELS
from registry.promotions.board.readiness import Reason
from registry.promotions.requests.preconditions import CONFIG, MODE, settings_preconditions
from registry.subjects.models import Registry
from registry.subjects.policy.effective_policy import DEFAULT_MODE
from registry.subjects.policy.policy_tree import PolicyNode, PolicyTree, policy_node, policy_tree, scope_of
from registry.subjects.policy.registries import mirror_of
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName

#: setting → label, and texts of its values
SAID: Final[Mapping[str, tuple[str, Mapping[Any, str]]]] = {
    "normalize": (
        _("Normalize"),
        {True: _("texts that differ only in order are one schema"), False: _("texts are kept as sent")},
    ),
    "profile": (_("Verdict by"), PROFILE_LABELS),
    "policy": (_("Additional rules"), {}),
    "alias": (_("Alias for"), {}),
    "alias_for_deks": (_("Alias for keys"), {}),
    "compatibility_policy": (_("Compatibility policy"), {}),
    "compatibility_group": (_("Compared within group"), {}),
    "validate_fields": (_("Reserved fields"), {True: _("are protected"), False: _("aren’t protected")}),
    "validate_new_schemas": (_("Defaults of new schemas"), {True: _("are checked"), False: _("aren’t checked")}),
    "validate_rules": (_("Rules"), {True: _("are checked"), False: _("aren’t checked")}),
}
#: settings that are objects: the page only says that they are set; the API has their values
_OBJECTS: Final = {
    "default_metadata": _("Default metadata"),
    "override_metadata": _("Override metadata"),
    "default_rule_set": _("Default rules"),
    "override_rule_set": _("Override rules"),
}


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """A scope in the policy tree."""

    registry: str
    node: PolicyNode

    @property
    def name(self) -> str:
        """The name of the registry, context or subject."""
        scope = self.node.scope
        return self.registry if scope is None else (scope.subject or scope.context)

    @property
    def url(self) -> str:
        """The qualified name if the scope is an existing subject, else ""."""
        scope = self.node.scope
        return scope.qualified if scope and scope.subject and self.node.exists else ""

    @property
    def is_own_level(self) -> bool:
        """Whether it has its own level."""
        return self.node.config.origin == self.node.kind

    @property
    def is_own_mode(self) -> bool:
        """Whether it has its own mode."""
        return self.node.mode.origin == self.node.kind and self.node.own_mode is not None

    @property
    def origin(self) -> str:
        """The origin of its level."""
        return _origin(self.node.config.origin, self.node.kind)

    @property
    def mode_origin(self) -> str:
        """The origin of its mode."""
        return _origin(self.node.mode.origin, self.node.kind)

    @property
    def sentence(self) -> str:
        """The description of the level with the deployment order."""
        level = self.node.config.level
        return f"{LEVELS[level].description} {level_order(level)}."

    @property
    def mode_sentence(self) -> str:
        """The effect of the mode; "" for an inherited default mode."""
        mode = self.node.mode.mode
        return "" if mode == DEFAULT_MODE and self.node.own_mode is None else MODE_SENTENCES[mode]

    @property
    def own(self) -> list[Fact]:
        """The scope's other own settings."""
        own, facts = self.node.own, []
        for name, (label, texts) in SAID.items():
            value = getattr(own, name, None)
            if value is not None:
                facts.append(Fact(label=label, value=texts.get(value, str(value)), code=value not in texts))
        for name, label in _OBJECTS.items():
            if getattr(own, name, None) is not None:
                facts.append(Fact(label=label, value=gettext("set")))
        return facts

    @property
    def inheriting(self) -> str:
        """The number of subjects in the scope without own settings, in words."""
        node = self.node
        if node.kind == "subject" or not node.subjects:
            return ""
        if node.inheriting < node.subjects:
            numbers = {"inheriting": f"{node.inheriting:,}", "subjects": f"{node.subjects:,}"}
            return gettext("%(inheriting)s of %(subjects)s subjects inherit.") % numbers
        if node.subjects == 1:
            return gettext("Its only subject inherits.")
        return gettext("All %(subjects)s subjects inherit.") % {"subjects": f"{node.subjects:,}"}

    @property
    def change_url(self) -> str:
        """The URL to change it."""
        return f"{scoped_url('ui:policy', self.registry, self.node.scope, change='1')}#change"

    @property
    def what_if_url(self) -> str:
        """The URL to simulate another level."""
        return scoped_url("ui:what_if", self.registry, self.node.scope)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeForm:
    """One of the two forms of a scope, `part`; `reset` removes its own settings; `why` are reasons against both."""

    part: str
    form: ConfigForm | ModeForm
    why: tuple[Reason, ...]
    reset: ResetConfigForm | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePart:
    """The scope to change: its present settings, and its forms."""

    row: PolicyRow
    forms: tuple[ChangeForm, ...]

    @property
    def hidden(self) -> dict[str, str]:
        """The scope, for its forms."""
        return scope_query(self.row.node.scope)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyPage:
    """The policy of a registry; `is_first` marks the first page."""

    frame: Frame
    registry: str
    what_if: WhatIfForm
    tree: PolicyTree
    change: ChangePart | None = None
    is_first: bool = True

    @property
    def rows(self) -> list[PolicyRow]:
        """The registry, then the scopes with their own settings."""
        return [PolicyRow(self.registry, node) for node in (self.tree.root, *self.tree.nodes)]

    @property
    def exceptions(self) -> str:
        """The number of scopes with their own settings, in words."""
        total = self.tree.total
        if not total:
            return gettext("No context or subject has its own settings. All inherit.")
        if total == 1:
            sentence = gettext("1 context or subject has its own settings. All others inherit.")
        else:
            sentence = gettext("%(total)s contexts and subjects have their own settings. All others inherit.") % {
                "total": f"{total:,}"
            }
        count = sum(1 for item in self.tree.nodes if item.sets_something)
        if count == total:
            return sentence
        shown = gettext("Showing %(count)s of %(total)s exceptions.") % {"count": count, "total": f"{total:,}"}
        return f"{sentence} {shown}"

    @property
    def next_url(self) -> str:
        """The URL of the next page, "" on the last."""
        base = reverse("ui:policy", args=[self.registry])
        return f"{base}?{urlencode({'cursor': self.tree.cursor})}" if self.tree.cursor else ""


def policy_page(request: HttpRequest, registry: str) -> PolicyPage:
    """Return the page; with `change` in the query, also the forms of the scope that it names. Raises InvalidName."""
    registry_row = get_registry(registry)
    cursor = form_text(request.GET, "cursor")
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
        what_if=WhatIfForm(registry, None),
        tree=policy_tree(registry_row, cursor=cursor),
        change=_change(request, registry_row) if request.GET.get("change") else None,
        is_first=not cursor,
    )


def _origin(origin: str, kind: str) -> str:
    if origin == kind:
        return gettext("own setting")
    return {"context": gettext("inherited from the context"), "registry": gettext("inherited from the registry")}.get(
        origin, gettext("default")
    )


def asked_scope(form: Mapping[str, str]) -> SubjectName | None:
    """Return the scope in a URL or a form. Raises InvalidName."""
    return scope_of(form_text(form, "context"), form_text(form, "subject"))


def _change(request: HttpRequest, registry: Registry) -> ChangePart:
    scope = asked_scope(request.GET)
    node, preconditions = policy_node(registry, scope), settings_preconditions(registry, page_actor(request))
    config = ChangeForm(
        part="config",
        form=ConfigForm.of(node),
        why=preconditions.reasons(CONFIG, scope, node.mode.mode),
        reset=ResetConfigForm() if node.own is not None else None,
    )
    mode = ChangeForm(
        part="mode",
        form=ModeForm.of(node),
        why=preconditions.reasons(MODE, scope, node.mode.mode),
        reset=ResetModeForm() if node.own_mode is not None else None,
    )
    forms = (config,) if registry.kind == Registry.REMOTE else (config, mode)
    return ChangePart(row=PolicyRow(registry.name, node), forms=forms)
