"""Changes that loosen a closed environment and need a second person, and the views of an environment's page."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.translation import later
from dashboard.components.widgets import Action, Choice, Environment, Fact, Field, Frame, Link, Problem
from registry.access.roles import Actor, refusal
from registry.errors import InvalidInput, SecondPersonRequired
from registry.promotions.environments.change_requests import decision_refusal
from registry.promotions.environments.selectors import EnvironmentChangeInfo, environment_changes
from registry.promotions.models import EnvironmentChange


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleView:
    """A review rule in words."""

    sentence: str
    remove: Action


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeView:
    """A freeze; `now` means that it is in force."""

    starts_at: datetime
    ends_at: datetime
    reason: str
    made_by: str
    remove: Action
    now: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurringView:
    """A recurring freeze in words; the two moments are those of the present or next window."""

    sentence: str
    starts_at: datetime
    ends_at: datetime
    reason: str
    made_by: str
    remove: Action
    now: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakGlassView:
    """A use of break-glass. `mark` is its state: open, waiting, confirmed or red.

    Once closed it waits for a second person; if nobody confirms it within the day, it stays red.
    """

    number: int
    opened_by: str
    opened_at: datetime
    ends_at: datetime
    reason: str
    uses: int
    mark: str
    sentence: str
    confirmed_by: str = ""
    confirmed_at: datetime | None = None
    comment: str = ""
    close: Action | None = None
    confirm: Action | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeView:
    """A change that loosens the environment: requester, reason, decision, and the reader's actions."""

    number: int
    sentence: str
    reason: str
    state: str
    state_words: str
    requested_by: str
    requested_at: datetime
    decided_by: str = ""
    decided_at: datetime | None = None
    comment: str = ""
    approve: Action | None = None
    reject: Action | None = None
    withdraw: Action | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LooseningForm:
    """A refused change that needs a second person, and the form that requests it."""

    sentence: str
    url: str
    action: str
    values: str
    fields: tuple[Field, ...]
    is_here: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentPage:
    """An environment; forms that the reader may not send carry the reason in their action."""

    frame: Frame
    environment: Environment
    closed: bool
    headline: str
    sentence: str
    facts: tuple[Fact, ...]
    links: tuple[Link, ...]
    settings: tuple[Field, ...]
    switches: tuple[Choice, ...]
    change: Action
    rules: tuple[RuleView, ...]
    rule_fields: tuple[Field, ...]
    add_rule: Action
    freezes: tuple[FreezeView, ...]
    freeze_fields: tuple[Field, ...]
    add_freeze: Action
    recurring: tuple[RecurringView, ...]
    recurring_fields: tuple[Field, ...]
    add_recurring: Action
    break_glass: tuple[BreakGlassView, ...]
    break_glass_fields: tuple[Field, ...]
    open_break_glass: Action | None = None
    problem: Problem | None = None
    changes: tuple[ChangeView, ...] = ()
    loosening: LooseningForm | None = None


MANAGE: Final = "registry.manage"
#: decided changes that the page lists; the API has a hundred
SHOWN: Final = 20
STATES: Final = {
    EnvironmentChange.OPEN: later("Waiting for approval"),
    EnvironmentChange.APPROVED: later("Approved"),
    EnvironmentChange.REJECTED: later("Rejected"),
    EnvironmentChange.WITHDRAWN: later("Withdrawn"),
}


def loosening_of(error: SecondPersonRequired, registry: str) -> LooseningForm:
    """The form that requests another person's approval of a refused change, maybe of another environment."""
    environment = str(error.details["environment"])
    return LooseningForm(
        sentence=error.message,
        url=reverse("ui:environment_changes", args=[environment]),
        action=str(error.details["action"]),
        values=json.dumps(error.details["values"], ensure_ascii=False),
        fields=(
            Field(
                name="why_loosen",
                label=gettext("Reason"),
                kind="textarea",
                rows=3,
                required=True,
                help=gettext("Reviewers of %(place)s are notified, and the audit log records it.")
                % {"place": environment},
            ),
        ),
        is_here=environment == registry,
    )


def loosening_values(text: str) -> dict[str, Any]:
    """The arguments from the form's hidden field. Raises InvalidInput."""
    try:
        values = json.loads(text)
    except ValueError as error:
        raise InvalidInput(gettext("The form is damaged. Start the change again."), field="values") from error
    if not isinstance(values, dict):
        raise InvalidInput(gettext("The form is damaged. Start the change again."), field="values")
    return values


def change_views(name: str, actor: Actor) -> tuple[ChangeView, ...]:
    """The pending changes, and the last decided ones."""
    return tuple(_view(info, actor) for info in environment_changes(name, limit=SHOWN))


def _view(info: EnvironmentChangeInfo, actor: Actor) -> ChangeView:
    is_open = info.state == EnvironmentChange.OPEN
    refused = actor.past or (decision_refusal(info.environment, info.requested_by_id, actor) if is_open else "")
    is_own = actor.user_id == info.requested_by_id
    unmanaged = actor.past or ("" if is_own else refusal(actor, MANAGE, registry=info.environment))

    def action(decision: str, label: str, reason: str, icon: str) -> Action | None:
        if not is_open:
            return None
        url = reverse(f"ui:environment_change_{decision}", args=[info.environment, info.id])
        return Action(label=label, url=url, method="post", allowed=not reason, reason=reason, icon=icon)

    return ChangeView(
        number=info.id,
        sentence=info.sentence,
        reason=info.reason,
        state=info.state,
        state_words=STATES[info.state],
        requested_by=info.requested_by,
        requested_at=info.requested_at,
        decided_by=info.decided_by,
        decided_at=info.decided_at,
        comment=info.comment,
        approve=action("approve", gettext("Approve change"), refused, "check"),
        reject=action("reject", gettext("Reject change"), refused, "x"),
        withdraw=action("withdraw", gettext("Withdraw change"), unmanaged, "undo-2"),
    )
