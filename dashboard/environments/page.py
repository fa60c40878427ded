"""The page of one environment: its rules, freezes, and every use of break-glass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.frame import environment_of, make_frame, page_actor
from dashboard.components.links import subjects_url
from dashboard.components.translation import later
from dashboard.components.widgets import Action, Choice, Crumb, Fact, Field, Link, Problem, Section
from dashboard.environments.board import rule_sentence
from dashboard.environments.change_requests import (
    BreakGlassView,
    EnvironmentPage,
    FreezeView,
    LooseningForm,
    RecurringView,
    RuleView,
    change_views,
)
from dashboard.promotions.request_list import at_utc
from dashboard.sources.labels import given_text
from registry.access.roles import ROLES, Actor, may, refusal
from registry.errors import SchemadeskError
from registry.promotions import selectors
from registry.promotions.environments.break_glass import MAX_MINUTES, confirmer_refusal
from registry.promotions.environments.freezes import DAYS
from registry.promotions.models import RecurringFreeze, ReviewRule
from registry.promotions.selectors import (
    BreakGlassInfo,
    EnvironmentInfo,
    FreezeInfo,
    RecurringFreezeInfo,
    ReviewRuleInfo,
)

MANAGE: Final = "registry.manage"
#: name of the switch → its label
SWITCHES: Final = {
    "is_closed": later("Closed: only releases can change versions, settings, modes and aliases"),
    "own_approval_allowed": later("Requesters can approve their own requests"),
    "owners_only": later("Only owners of a subject can request its promotion"),
    "drift_blocks": later("Open drift findings for a subject fail its requests"),
    "threads_block": later("Unresolved discussions block the release"),
    "clients_block": later("Affected clients block the release until they are acknowledged"),
    "evidence_required": later("Releases need evidence from data"),
}
#: a service's field → the fields of the forms that send it
_SENT_AS: Final = {"reason": ("why_frozen", "why_recurring", "glass_reason"), "kind": ("recurs",)}
_CLOSED: Final = later(
    "Versions, settings, modes and aliases can only be changed by releasing an approved request."
    " This applies to all channels."
)
_OPEN: Final = later("Programs and people with permission can change it directly. Requests work too.")


def environment_page(
    request: HttpRequest,
    name: str,
    problem: SchemadeskError | None = None,
    loosening: LooseningForm | None = None,
) -> EnvironmentPage:
    """The page of one environment; `loosening` is the form for a change that needs a second person. Raises RegistryNotFound."""
    info, actor = selectors.environment_info(name), page_actor(request)
    order = selectors.list_environments()
    reason = refusal(actor, MANAGE, registry=info.name)
    settings, rules, freezes = _settings_fields(info), _rule_fields(), _freeze_fields()
    recurring, glass = _recurring_fields(), _glass_fields()
    sent = {field: given_text(request.POST, field) for field in request.POST} if problem else {}
    filled = partial(_filled, sent=sent, problem=problem)
    return EnvironmentPage(
        frame=make_frame(
            request,
            title=info.name,
            section=Section.ENVIRONMENTS,
            registry=info.name,
            crumbs=(Crumb(label=gettext("Environments"), url=reverse("ui:environments")),),
            url_in=lambda registry: reverse("ui:environment", args=[registry]),
        ),
        environment=environment_of(info.name, order, current=True),
        closed=info.is_closed,
        headline=gettext("Closed") if info.is_closed else gettext("Open"),
        sentence=_CLOSED if info.is_closed else _OPEN,
        facts=(
            Fact(
                label=gettext("Environment order"),
                value=gettext("%(number)s of %(count)s") % {"number": order.index(info.name) + 1, "count": len(order)},
            ),
            Fact(label=gettext("Level"), value=info.level, code=True),
            Fact(label=gettext("Mode"), value=info.mode, code=True),
            Fact(
                label=gettext("Kind"),
                value=gettext("Mirror of a remote registry") if info.is_remote else gettext("Registry on this server"),
            ),
        ),
        links=(
            Link(label=gettext("Subjects"), url=subjects_url(info.name)),
            Link(
                label=gettext("Requests to %(info)s") % {"info": info.name},
                url=f"{reverse('ui:promotions')}?target={info.name}",
            ),
        ),
        settings=filled(settings),
        switches=tuple(
            Choice(value=switch, label=label, selected=_switch(info, switch, sent))
            for switch, label in SWITCHES.items()
        ),
        change=_action(info, "change", gettext("Save rules"), reason),
        rules=tuple(_rule(rule, info, reason) for rule in info.rules),
        rule_fields=filled(rules),
        add_rule=_action(info, "rules", gettext("Add rule"), reason),
        freezes=tuple(_freeze(freeze, info, reason) for freeze in info.freezes),
        freeze_fields=filled(freezes),
        add_freeze=_action(info, "freezes", gettext("Add freeze window"), reason),
        recurring=tuple(_recurring(rule, info, reason) for rule in info.recurring),
        recurring_fields=filled(recurring),
        add_recurring=_action(info, "recurring_freezes", gettext("Add recurring freeze"), reason),
        break_glass=tuple(_glass(glass, info, actor) for glass in selectors.break_glass_history(info.name)),
        break_glass_fields=filled(glass),
        open_break_glass=_open_glass(info, actor, reason) if info.is_closed else None,
        changes=change_views(info.name, actor),
        loosening=loosening,
        problem=Problem(what=_in_words(problem, sent, (*settings, *rules, *freezes, *recurring, *glass)))
        if problem
        else None,
    )


def _switch(info: EnvironmentInfo, switch: str, sent: Mapping[str, str]) -> bool:
    """The value of a switch: as sent in a refused form, which leaves out switches that are off, or as stored."""
    return sent.get(switch) == "1" if "reviews_needed" in sent else bool(getattr(info, switch))


def _in_words(problem: SchemadeskError, sent: Mapping[str, str], fields: Sequence[Field]) -> str:
    """The message, with the label of the form's field in place of the field's name at its start."""
    name = str(problem.details.get("field", ""))
    ours = next((field for field in fields if field.name == _field_of(problem, sent)), None)
    label = gettext("Comment") if name == "comment" else f"“{ours.label}”" if ours else ""
    return (
        f"{label}{problem.message[len(name) :]}"
        if label and problem.message.startswith(f"{name} ")
        else problem.message
    )


def _field_of(problem: SchemadeskError, sent: Mapping[str, str]) -> str:
    name = str(problem.details.get("field", ""))
    return next((field for field in _SENT_AS.get(name, ()) if field in sent), name)


def _filled(fields: Sequence[Field], sent: Mapping[str, str], problem: SchemadeskError | None) -> tuple[Field, ...]:
    """The fields of a form, with the values and errors of a refused form."""
    name = _field_of(problem, sent) if problem else ""
    return tuple(
        replace(
            field,
            value=sent[field.name],
            choices=tuple(replace(choice, selected=choice.value == sent[field.name]) for choice in field.choices),
            errors=(_in_words(problem, sent, fields),) if problem and field.name == name else (),
        )
        if field.name in sent
        else field
        for field in fields
    )


def _settings_fields(info: EnvironmentInfo) -> tuple[Field, ...]:
    return (
        Field(
            name="reviews_needed",
            label=gettext("Approvals required"),
            kind="number",
            value=str(info.reviews_needed),
            required=True,
            help=rule_sentence(info),
        ),
        Field(
            name="max_evidence_hours",
            label=gettext("Maximum age of evidence (hours)"),
            kind="number",
            value=str(info.max_evidence_hours or ""),
            help=gettext(
                "Older evidence voids approvals and blocks the release until the topic is scanned again. Leave"
                " empty for no limit."
            ),
        ),
    )


def _freeze_fields() -> tuple[Field, ...]:
    return (
        Field(name="starts_at", label=gettext("From (UTC)"), kind="datetime-local", required=True),
        Field(name="ends_at", label=gettext("To (UTC)"), kind="datetime-local", required=True),
        Field(name="why_frozen", label=gettext("Reason"), required=True),
    )


def _glass_fields() -> tuple[Field, ...]:
    return (
        Field(
            name="glass_reason",
            label=gettext("Why it can’t wait for a release"),
            kind="textarea",
            rows=3,
            required=True,
        ),
        Field(
            name="minutes",
            label=gettext("Duration (minutes)"),
            kind="number",
            value="60",
            required=True,
            help=gettext("Up to %(max_minutes)s. Everyone who follows this environment is notified.")
            % {"max_minutes": MAX_MINUTES},
        ),
    )


def _action(info: EnvironmentInfo, name: str, label: str, reason: str, *more: int) -> Action:
    return Action(
        label=label,
        url=reverse(f"ui:environment_{name}", args=[info.name, *more]),
        method="post",
        allowed=not reason,
        reason=reason,
    )


def _rule(rule: ReviewRuleInfo, info: EnvironmentInfo, reason: str) -> RuleView:
    return RuleView(sentence=rule.sentence, remove=_action(info, "rule_remove", gettext("Remove"), reason, rule.id))


def _rule_fields() -> tuple[Field, ...]:
    def chosen(*pairs: tuple[str, str]) -> tuple[Choice, ...]:
        return tuple(Choice(value=value, label=label) for value, label in pairs)

    return (
        Field(
            name="subject_pattern",
            label=gettext("Subjects"),
            value="*",
            code=True,
            required=True,
            help=gettext(
                "A pattern of qualified names: * for all subjects, payments-* for names that start with payments-."
            ),
        ),
        Field(
            name="verdict",
            label=gettext("Applies to"),
            kind="select",
            choices=chosen(
                (ReviewRule.ANY, gettext("Every request")), (ReviewRule.BREAKING, gettext("Breaking requests"))
            ),
            required=True,
        ),
        Field(
            name="reviewers",
            label=gettext("Approved by"),
            kind="select",
            choices=chosen(
                (ReviewRule.OWNERS, gettext("Owners of the subject")),
                (ReviewRule.ROLE, gettext("People with a role")),
                (ReviewRule.GROUP, gettext("Members of a group")),
            ),
            required=True,
        ),
        Field(
            name="name",
            label=gettext("Role or group"),
            help=gettext("Roles: %(roles)s.") % {"roles": ", ".join(ROLES)},
        ),
        Field(name="count", label=gettext("Number of approvals"), kind="number", value="1", required=True),
    )


def _freeze(freeze: FreezeInfo, info: EnvironmentInfo, reason: str) -> FreezeView:
    return FreezeView(
        starts_at=freeze.starts_at,
        ends_at=freeze.ends_at,
        reason=freeze.reason,
        made_by=freeze.made_by,
        remove=_action(
            info, "freeze_remove", gettext("End freeze") if freeze.is_now else gettext("Remove"), reason, freeze.id
        ),
        now=freeze.is_now,
    )


def _recurring(rule: RecurringFreezeInfo, info: EnvironmentInfo, reason: str) -> RecurringView:
    return RecurringView(
        sentence=rule.sentence,
        starts_at=rule.starts_at,
        ends_at=rule.ends_at,
        reason=rule.reason,
        made_by=rule.made_by,
        remove=_action(info, "recurring_freeze_remove", gettext("Remove"), reason, rule.id),
        now=rule.is_now,
    )


def _recurring_fields() -> tuple[Field, ...]:
    def days(chosen: int) -> tuple[Choice, ...]:
        return tuple(Choice(value=str(day), label=label, selected=day == chosen) for day, label in enumerate(DAYS))

    return (
        Field(
            name="recurs",
            label=gettext("Repeats"),
            kind="select",
            choices=(
                Choice(value=RecurringFreeze.WEEKLY, label=gettext("Every week")),
                Choice(value=RecurringFreeze.MONTHLY, label=gettext("On the last days of every month")),
            ),
            required=True,
        ),
        Field(
            name="zone",
            label=gettext("Time zone"),
            value="UTC",
            code=True,
            required=True,
            help=gettext("A name such as Europe/Berlin. Daylight saving time is taken into account."),
        ),
        Field(name="from_day", label=gettext("Start day (weekly)"), kind="select", choices=days(4)),
        Field(name="from_time", label=gettext("Start time"), kind="time", value="16:00", required=True),
        Field(name="to_day", label=gettext("End day (weekly)"), kind="select", choices=days(0)),
        Field(name="to_time", label=gettext("End time"), kind="time", value="07:00", required=True),
        Field(
            name="last_days",
            label=gettext("Number of last days (monthly)"),
            kind="number",
            help=gettext("The freeze ends on the first day of the next month."),
        ),
        Field(name="why_recurring", label=gettext("Reason"), required=True),
    )


def _open_glass(info: EnvironmentInfo, actor: Actor, reason: str) -> Action:
    mine = next((glass for glass in info.break_glass if glass.is_open and glass.opened_by_id == actor.user_id), None)
    open_already = (
        gettext("You have break-glass open until %(at_utc)s. Close it to give another reason.")
        % {"at_utc": at_utc(mine.ends_at)}
        if mine
        else ""
    )
    return _action(
        info, "break_glass", gettext("Open break-glass in %(info)s") % {"info": info.name}, reason or open_already
    )


def _glass(glass: BreakGlassInfo, info: EnvironmentInfo, actor: Actor) -> BreakGlassView:
    mark = "open" if glass.is_open else "confirmed" if glass.is_confirmed else "red" if glass.is_red else "waiting"
    until = (
        gettext("open until %(at_utc)s") % {"at_utc": at_utc(glass.ends_at)}
        if glass.is_open
        else gettext("ended at %(at_utc)s") % {"at_utc": at_utc(glass.ends_at)}
    )
    if mark in ("open", "waiting"):
        until = gettext("%(until)s; confirm by %(at)s") % {"until": until, "at": at_utc(glass.confirm_until)}
    manage = refusal(actor, MANAGE, registry=info.name)
    return BreakGlassView(
        number=glass.id,
        opened_by=glass.opened_by,
        opened_at=glass.opened_at,
        ends_at=glass.ends_at,
        reason=glass.reason,
        uses=glass.uses,
        mark=mark,
        sentence=until,
        confirmed_by=glass.confirmed_by,
        confirmed_at=glass.confirmed_at,
        comment=glass.comment,
        close=_action(info, "break_glass_close", gettext("Close break-glass"), manage, glass.id)
        if glass.is_open
        else None,
        confirm=_action(
            info, "break_glass_confirm", gettext("Confirm break-glass"), _no_confirm(glass, info, actor), glass.id
        )
        if glass.can_be_confirmed
        else None,
    )


def _no_confirm(glass: BreakGlassInfo, info: EnvironmentInfo, actor: Actor) -> str:
    if actor.past:
        return actor.past
    if actor.user_id == glass.opened_by_id:
        return gettext("You opened it, so another person must confirm it.")
    if not may(actor, MANAGE, registry=info.name):
        lacking = refusal(actor, "promotion.review", registry=info.name)
        if lacking:
            return lacking
    return confirmer_refusal(info.name, glass.opened_by_id, actor)


def switched(request: HttpRequest) -> dict[str, bool]:
    """The switches as the form sent them."""
    return {name: given_text(request.POST, name) == "1" for name in SWITCHES}
