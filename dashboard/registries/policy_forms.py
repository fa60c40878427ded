"""Scopes in URLs, and the forms that change a policy or simulate a level."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, cast
from urllib.parse import urlencode

from django import forms
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.forms import CodeField, ServiceForm
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.translation import lazy_format
from dashboard.components.widgets import Link
from registry.access.roles import Actor
from registry.errors import Conflict, InvalidInput, SubjectConfigNotFound, SubjectModeNotFound
from registry.formats.compatibility import LEVELS
from registry.subjects.models import FORWARD, MODES, POLICIES, PROFILES
from registry.subjects.policy.effective_policy import DEFAULT_LEVEL, DEFAULT_MODE
from registry.subjects.policy.policy_tree import PolicyNode
from registry.subjects.services import delete_config, delete_mode, set_config, set_mode
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, SubjectName

PROFILE_LABELS: Final = {"semantic": _("effects on data"), "confluent": _("the established rules")}
#: mode → what it allows
MODE_SENTENCES: Final = {
    "READWRITE": _("Versions can be registered."),
    "READONLY": _("Versions can be registered only by a release."),
    "READONLY_OVERRIDE": _("Nothing can be registered, not even by a release."),
    "IMPORT": _("Only versions with explicit ids can be registered."),
    "FORWARD": _("Another registry writes here: only versions with explicit ids can be registered."),
}
_SWITCH: Final = {"true": True, "false": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyNot:
    """A reason why something isn't possible: the API's `code`, the cure, and a link to it."""

    code: str
    sentence: str
    cure: str = ""
    fix: Link | None = None


@dataclass(frozen=True, slots=True)
class WhatIfForm:
    """The form that simulates a level in a scope."""

    registry: str
    scope: SubjectName | None
    chosen: str = "FULL"
    levels: tuple[str, ...] = tuple(LEVELS)

    @property
    def hidden(self) -> dict[str, str]:
        """The scope."""
        return scope_query(self.scope)


class _PolicyForm(ServiceForm):
    """A form about a scope of the policy; the next page shows its errors."""

    refusals = (Conflict, InvalidInput, SubjectConfigNotFound, SubjectModeNotFound)
    title: ClassVar[str] = ""
    success = _("Done: the setting now applies to %(place_words)s.")
    permission = "config.change"

    def message(self, **route: Any) -> str:
        """Return the message on success, with the scope in words."""
        return super().message(place_words=describe_scope(route["registry"], route["scope"]))


class ConfigForm(_PolicyForm):
    """A form that changes the submitted settings; an empty one is inherited again."""

    service: ClassVar[Callable[..., object]] = staticmethod(set_config)
    title = _("Settings")
    label = _("Save settings")

    level = forms.CharField(label=_("Compatibility"), required=False, widget=forms.Select)
    normalize = forms.CharField(label=_("Normalize"), required=False, widget=forms.Select)
    profile = forms.CharField(label=_("Verdict by"), required=False, widget=forms.Select)
    policy = forms.CharField(label=_("Additional rules"), required=False, widget=forms.Select)
    alias = CodeField(
        label=_("Alias"), required=False, help_text=_("Calls for this subject use the subject named here.")
    )

    @classmethod
    def of(cls, node: PolicyNode) -> ConfigForm:
        """Return the form of a scope with its own settings."""
        own = {name: getattr(node.own, name, None) for name in cls.base_fields}
        switch = {None: "", True: "true", False: "false"}
        form = cls(initial={**own, "normalize": switch[own["normalize"]]}, key="_config")
        inherits = _inherits(node, own["level"], node.config.level, node.config.origin, DEFAULT_LEVEL)
        _offer(form, "level", {name: name for name in LEVELS}, inherits)
        _offer(form, "normalize", {"true": _("yes"), "false": _("no")})
        _offer(form, "profile", {name: PROFILE_LABELS[name] for name in PROFILES})
        _offer(form, "policy", {name: name for name in POLICIES})
        if node.kind != "subject":
            del form.fields["alias"]
        return form

    def arguments(self) -> dict[str, Any]:
        """Return the submitted settings; others aren't changed."""
        values: dict[str, Any] = {name: value for name, value in self.cleaned_data.items() if name in self.data}
        unset = [name for name, value in values.items() if value == ""]
        if values.get("normalize"):
            values["normalize"] = _SWITCH.get(values["normalize"], values["normalize"])
        return {"unset": unset, **{name: value for name, value in values.items() if name not in unset}}


def _set_mode(*, mode: str, registry: str, subject: SubjectName | None, by: Actor) -> str:
    """Set the mode; an empty one is inherited again."""
    if mode:
        return set_mode(registry=registry, subject=subject, by=by, mode=mode)
    return delete_mode(registry=registry, subject=subject, by=by)


class ModeForm(_PolicyForm):
    """A form that sets the mode of a scope."""

    service: ClassVar[Callable[..., object]] = staticmethod(_set_mode)
    title = _("Allowed changes")
    label = _("Set mode")
    permission = "mode.change"

    mode = forms.CharField(label=_("Mode"), required=False, widget=forms.Select)

    @classmethod
    def of(cls, node: PolicyNode) -> ModeForm:
        """Return the form of a scope with its own mode."""
        form = cls(initial={"mode": node.own_mode})
        offered = [name for name in MODES if name != FORWARD or node.kind == "registry"]
        inherits = _inherits(node, node.own_mode, node.mode.mode, node.mode.origin, DEFAULT_MODE)
        _offer(form, "mode", {name: f"{name}: {MODE_SENTENCES[name]}" for name in offered}, inherits)
        return form


class ResetConfigForm(_PolicyForm):
    """A form that removes all settings of a scope."""

    service: ClassVar[Callable[..., object]] = staticmethod(delete_config)
    label = _("Reset to inherited")
    success = _("Reset: %(place_words)s inherits again.")


class ResetModeForm(ResetConfigForm):
    """A form that removes the mode of a scope."""

    service = staticmethod(delete_mode)
    permission = "mode.change"


def _offer(form: ServiceForm, name: str, values: Mapping[str, str], none: str = _("inherited")) -> None:
    cast(forms.Select, form.fields[name].widget).choices = [("", none), *values.items()]


def _inherits(node: PolicyNode, own: str | None, value: str, origin: str, usual: str) -> str:
    """Return the label of an unset value, with the inherited value if known."""
    if own is None and origin != node.kind:
        return lazy_format(_("inherited (currently %(value)s)"), value=value)
    return lazy_format(_("default (%(usual)s)"), usual=usual) if node.kind == "registry" else _("inherited")


def scoped_url(page: str, registry: str, scope: SubjectName | None, **query: str) -> str:
    """Return the URL of a page about a registry, a context or a subject."""
    parameters = {**query, **scope_query(scope)}
    return reverse(page, args=[registry]) + (f"?{urlencode(parameters)}" if parameters else "")


def scope_query(scope: SubjectName | None) -> dict[str, str]:
    """Return a scope as query parameters."""
    if scope is None:
        return {}
    return {"subject": scope.qualified} if scope.subject else {"context": scope.context}


def describe_scope(registry: str, scope: SubjectName | None) -> str:
    """Describe a scope."""
    if scope is None:
        return gettext("registry %(registry)s") % {"registry": registry}
    if scope.subject:
        return gettext("subject %(qualified)s") % {"qualified": scope.qualified}
    return (
        gettext("the default context")
        if scope.context == DEFAULT_CONTEXT
        else gettext("context %(context)s") % {"context": scope.context}
    )
