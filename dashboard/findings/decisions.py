"""The forms of decisions on findings, and the page of mutes with a preview of a new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.forms import (
    NOT_OF_RIGHTS,
    CodeField,
    EndOfDayField,
    FormPage,
    LongTextField,
    NameChoiceField,
    ServiceForm,
    fill_choices,
)
from dashboard.components.frame import environment_of, make_frame, page_actor
from dashboard.components.links import crumb
from dashboard.components.translation import counted
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import Environment, Frame, Section
from registry.access.permission_filters import require_extent
from registry.access.roles import Actor, refusal
from registry.drift import selectors, services
from registry.drift.findings.promotion_check import decided_breaks_block
from registry.drift.scan.aggregation import MutePattern, is_muted
from registry.drift.selectors import FindingInfo, MuteInfo
from registry.drift.services.findings import MAX_STARS
from registry.promotions.selectors import list_environments
from registry.subjects.selectors import registry_names

#: pattern of a mute → its label
PATTERNS: Final = {"rule": _("Rule"), "subject": _("Subject"), "location": _("Place")}


def still_blocking(registry: str) -> str:
    """Say that breaks in a closed environment still block after a decision; "" elsewhere."""
    if not decided_breaks_block(registry):
        return ""
    return gettext(
        "%(registry)s is a closed environment: a break still fails requests afterwards, until it is resolved. A reviewer"
        " can override the check with a reason."
    ) % {"registry": registry}


class AcknowledgeForm(ServiceForm):
    """A form that acknowledges a finding."""

    service = staticmethod(services.acknowledge)
    label = _("Acknowledge")
    success = _("Acknowledged.")

    reason = LongTextField(label=_("Reason to acknowledge it"), rows=2)
    until = EndOfDayField(
        label=_("Until"),
        help_text=_("The finding reopens after that day (UTC). Empty: acknowledged as long as it is seen."),
    )

    @classmethod
    def of(cls, info: FindingInfo) -> AcknowledgeForm:
        """Return the empty form for a finding."""
        form = cls()
        form.fields["reason"].help_text = still_blocking(info.registry) if info.severity == "break" else ""
        return form


class AssignForm(ServiceForm):
    """A form that assigns a finding to somebody, or to nobody."""

    service = staticmethod(services.assign)
    label = _("Assign")

    to = forms.CharField(
        label=_("Assigned to"), required=False, help_text=_("Account name. Empty: nobody. Not assigned yet.")
    )

    @classmethod
    def of(cls, info: FindingInfo, actor: Actor) -> AssignForm:
        """Return the form with the finding's present assignee, else with the reader."""
        form = cls(initial={"to": info.assigned_to or (actor.name if actor.user_id else "")})
        if info.assigned_to:
            form.fields["to"].help_text = gettext("Account name. Empty: nobody.")
        return form

    def message(self, **route: Any) -> str:
        """Return the message on success."""
        to = self.cleaned_data["to"]
        return gettext("Assigned to %(to)s.") % {"to": to} if to else gettext("Assigned to nobody.")


class ReopenFindingForm(ServiceForm):
    """A form that reopens a finding."""

    service = staticmethod(services.reopen)
    label = _("Reopen finding")
    success = _("Finding reopened.")


class MuteForm(ServiceForm):
    """A form that mutes findings by patterns."""

    service = staticmethod(services.mute)
    label = _("Mute")
    success = _("Findings muted. They are kept and counted, but hidden from lists of open findings.")
    refusals = NOT_OF_RIGHTS

    registry = NameChoiceField(label=_("Registry"))
    rule = CodeField(label=PATTERNS["rule"], required=False, placeholder="UNKNOWN_SCHEMA_ID")
    subject = CodeField(label=PATTERNS["subject"], required=False, placeholder="test-*")
    location = CodeField(label=PATTERNS["location"], required=False, placeholder="orders:*")
    reason = LongTextField(label=_("Reason to mute them"), rows=2)
    until = EndOfDayField(label=_("Until"), help_text=_("Empty: until the mute is removed."))

    def message(self, **route: Any) -> str:
        """Return the message on success, with the number of open findings hidden."""
        hidden = services.hidden_by(self.result)
        return f"{self.success} {counted(hidden, 'It hides %(n)s open finding.', 'It hides %(n)s open findings.')}"


LOOKED_AT: Final = 1000
SHOWN: Final = 10
MAX_PATTERN: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class MuteRow:
    """A mute; `refused` says why the reader may not end it."""

    info: MuteInfo
    environment: Environment
    refused: str

    @property
    def patterns(self) -> list[tuple[str, str]]:
        """The patterns with their labels."""
        named = ((label, getattr(self.info, name)) for name, label in PATTERNS.items())
        return [(label, pattern) for label, pattern in named if pattern]


@dataclass(frozen=True, slots=True, kw_only=True)
class MutePage(FormPage):
    """The mutes, and the form of a new one. `preview` says how many findings it would cover; `covered` are examples."""

    rows: tuple[MuteRow, ...]
    preview: str = ""
    covered: Sequence[FindingInfo] = ()


def finding_frame(request: HttpRequest, title: str, order: list[str]) -> Frame:
    """Return the frame of a page below the list of findings."""
    crumbs = (crumb(gettext("Findings"), "findings"),)
    return make_frame(request, title=title, section=Section.FINDINGS, crumbs=crumbs, order=order)


def mute_form(data: Any, query: Mapping[str, str], actor: Actor) -> MuteForm:
    """Return the form as sent, or with the patterns in the URL. Raises NotAllowed."""
    form = MuteForm(data, initial=dict(query))
    names = registry_names(actor)
    require_extent(actor, "schema.read", registry=_given(form, "registry"))
    fill_choices([form], registry=names)
    form.fields["registry"].initial = names[0] if names else ""
    form.fields["reason"].help_text = still_blocking(_registry(form))
    return form


def mute_page(request: HttpRequest, form: MuteForm) -> MutePage:
    """Return the mutes and the form, with a preview of its patterns."""
    actor, order, registry = page_actor(request), list_environments(), _registry(form)
    preview, covered = _preview(form, registry, actor)
    return MutePage(
        frame=finding_frame(request, gettext("Mutes"), order),
        form=form,
        refused=refusal(actor, "finding.mute", registry=registry),
        back_url=reverse("ui:mutes"),
        rows=tuple(
            MuteRow(
                info=info,
                environment=environment_of(info.registry, order),
                refused=refusal(actor, "finding.mute", registry=info.registry),
            )
            for info in selectors.list_mutes(_given(form, "registry"), by=actor)
        ),
        preview=preview,
        covered=covered,
    )


def _given(form: MuteForm, name: str) -> str:
    given = form.data if form.is_bound else form.initial
    return str(given.get(name, "")).replace("\0", "").strip()


def _registry(form: MuteForm) -> str:
    return _given(form, "registry") or str(form.fields["registry"].initial)


def _preview(form: MuteForm, registry: str, actor: Actor) -> tuple[str, list[FindingInfo]]:
    """Say how many unresolved findings the patterns cover, and return the first ones."""
    pattern = MutePattern(*(_given(form, name) for name in PATTERNS))
    texts = (pattern.rule, pattern.subject, pattern.location)
    if not any(texts):
        return "", []
    if any(len(text) > MAX_PATTERN or text.count("*") > MAX_STARS for text in texts):
        return gettext("A pattern must have at most %(max_pattern)s characters and %(max_stars)s '*'.") % {
            "max_pattern": MAX_PATTERN,
            "max_stars": MAX_STARS,
        }, []
    listed = selectors.list_findings(state="", registry=registry, muted=None, limit=LOOKED_AT, by=actor)
    unresolved = [info for info in listed if info.state != "resolved"]
    covered = [info for info in unresolved if is_muted([pattern], info.rule, info.subject, info.location)]
    hidden = sum(1 for info in covered if info.muted)
    return _covers(len(covered), len(unresolved), hidden, all_looked_at=len(listed) < LOOKED_AT), covered[:SHOWN]


def _covers(covered: int, unresolved: int, hidden: int, *, all_looked_at: bool) -> str:
    total = f"{unresolved:,}"
    sentence = (
        counted(
            covered,
            "Matches %(n)s of %(total)s findings, and future ones.",
            "Matches %(n)s of %(total)s findings, and future ones.",
            total=total,
        )
        if all_looked_at
        else counted(
            covered,
            "Matches %(n)s of the %(total)s findings checked, and future ones.",
            "Matches %(n)s of the %(total)s findings checked, and future ones.",
            total=total,
        )
    )
    muted = counted(hidden, "%(n)s of them is already muted.", "%(n)s of them are already muted.")
    return f"{sentence} {muted}" if hidden else sentence
