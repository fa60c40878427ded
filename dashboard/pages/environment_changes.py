"""Changes that loosen a closed environment, on its page: the form that asks for one, and what waits for a second person."""

from __future__ import annotations

import json
from typing import Any, Final

from django.urls import reverse
from django.utils.translation import gettext

from dashboard.presenters.environments import ChangeView, LooseningForm
from dashboard.presenters.frame import Action, Field
from dashboard.texts import later
from registry.access.roles import Actor, refusal
from registry.errors import InvalidInput, SecondPersonRequired
from registry.promotions.models import EnvironmentChange
from registry.promotions.selectors.environment_changes import EnvironmentChangeInfo, environment_changes
from registry.promotions.services.environment_changes import decision_refusal

MANAGE: Final = "registry.manage"
#: decided changes that the page lists; the API has a hundred
SHOWN: Final = 20
STATES: Final = {
    EnvironmentChange.OPEN: later("Waits for a second person"),
    EnvironmentChange.APPROVED: later("Approved"),
    EnvironmentChange.REJECTED: later("Turned down"),
    EnvironmentChange.WITHDRAWN: later("Withdrawn"),
}


def loosening_of(error: SecondPersonRequired, registry: str) -> LooseningForm:
    """The form that asks another person for what was refused; of another environment it leads there in words alone."""
    place = str(error.details["environment"])
    return LooseningForm(
        sentence=error.message,
        url=reverse("ui:environment_changes", args=[place]),
        action=str(error.details["action"]),
        values=json.dumps(error.details["values"], ensure_ascii=False),
        fields=(
            Field(
                name="why_loosen",
                label=gettext("Why"),
                kind="textarea",
                rows=3,
                required=True,
                help=gettext("Those who review for %(place)s are told, and the audit keeps it.") % {"place": place},
            ),
        ),
        is_here=place == registry,
    )


def loosening_values(text: str) -> dict[str, Any]:
    """The arguments as the form has carried them. Raises InvalidInput."""
    try:
        values = json.loads(text)
    except ValueError as error:
        raise InvalidInput(gettext("The form is damaged: begin the change again."), field="values") from error
    if not isinstance(values, dict):
        raise InvalidInput(gettext("The form is damaged: begin the change again."), field="values")
    return values


def change_views(name: str, actor: Actor) -> tuple[ChangeView, ...]:
    """What waits for a second person, and what was decided last."""
    return tuple(_view(info, actor) for info in environment_changes(name, limit=SHOWN))


def _view(info: EnvironmentChangeInfo, actor: Actor) -> ChangeView:
    is_open = info.state == EnvironmentChange.OPEN
    refused = actor.past or decision_refusal(info.environment, info.requested_by_id, actor)
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
        approve=action("approve", gettext("Approve the change"), refused, "check"),
        reject=action("reject", gettext("Turn it down"), refused, "x"),
        withdraw=action("withdraw", gettext("Withdraw it"), unmanaged, "undo-2"),
    )
