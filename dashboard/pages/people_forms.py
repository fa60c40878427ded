"""What can be changed on the page of people: each change as a row, with its form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext

from dashboard.pages.numbers import whole_number
from dashboard.presenters.frame import Choice, Field
from dashboard.presenters.people import ChangeForm
from dashboard.texts import later
from registry.access import services
from registry.access.roles import ROLES, Actor
from registry.errors import InvalidInput
from registry.promotions.services.same_person import state_same_person, withdraw_same_person


@dataclass(frozen=True)
class ChangeKind:
    """A service, the fields of the form that it takes, and what is said when it was done."""

    service: Callable[..., Any]
    fields: tuple[str, ...]
    said: str


_PLACE = ("registry", "subject_pattern")
CHANGES: dict[str, ChangeKind] = {
    "add": ChangeKind(services.add_person, ("username",), later("Added.")),
    "shut": ChangeKind(services.set_active, ("username", "active"), later("The account is shut.")),
    "open": ChangeKind(services.set_active, ("username", "active"), later("The account is open again.")),
    "mail": ChangeKind(services.set_email, ("username", "email"), later("Their address is kept.")),
    "grant": ChangeKind(services.grant, ("username", "role", *_PLACE), later("The role is given.")),
    "revoke": ChangeKind(services.revoke_grant, ("grant_id",), later("The role is taken away.")),
    "make group": ChangeKind(services.make_group, ("name",), later("The group is made.")),
    "remove group": ChangeKind(services.remove_group, ("name",), later("The group is removed.")),
    "join": ChangeKind(services.add_member, ("group", "username"), later("They are in the group now.")),
    "leave": ChangeKind(services.remove_member, ("group", "username"), later("They are out of the group now.")),
    "grant to group": ChangeKind(services.grant_to_group, ("group", "role", *_PLACE), later("The role is given.")),
    "revoke from group": ChangeKind(services.remove_group_grant, ("grant_id",), later("The role is taken away.")),
    "own": ChangeKind(services.add_owner, ("username", "group", *_PLACE), later("The owner is named.")),
    "disown": ChangeKind(services.remove_owner, ("ownership_id",), later("The ownership is ended.")),
    "same": ChangeKind(state_same_person, ("one", "other", "reason"), later("They count as one person now.")),
    "two": ChangeKind(withdraw_same_person, ("statement_id",), later("They count as two people again.")),
}
_NUMBERS = ("grant_id", "ownership_id", "statement_id")


def make_change(do: str, given: Mapping[str, str], *, by: Actor) -> Any:
    """Do what a form asks for, and give what the service gives. Raises InvalidInput and what the service raises."""
    kind = CHANGES.get(do)
    if kind is None:
        raise InvalidInput(gettext("There is no such change."))
    values: dict[str, Any] = {name: given.get(name, "") for name in kind.fields}
    if "active" in values:
        values["active"] = do == "open"
    for name in _NUMBERS:
        if name in values:
            values[name] = whole_number(values[name], digits=18) or 0
    return kind.service(by=by, **values)


def change_forms(*, people: list[str], groups: list[str], registries: list[str]) -> tuple[ChangeForm, ...]:
    """The forms below the lists."""
    person, group = _select("username", gettext("Person"), people), _select("group", gettext("Group"), groups)
    place = (
        _select("registry", gettext("Registry"), registries, empty=gettext("all")),
        Field(
            name="subject_pattern",
            label=gettext("Subjects"),
            value="*",
            code=True,
            help=gettext("A pattern like orders-*."),
        ),
    )
    role = _select("role", gettext("Role"), list(ROLES))
    forms = [
        ChangeForm(
            title=gettext("Add a person"),
            do="add",
            fields=(Field(name="username", label=gettext("User name"), required=True),),
            label=gettext("Add"),
        ),
        ChangeForm(
            title=gettext("Give a person a role"), do="grant", fields=(person, role, *place), label=gettext("Give")
        ),
        ChangeForm(
            title=gettext("Say where a person’s mail goes"),
            do="mail",
            fields=(
                person,
                Field(name="email", label=gettext("Address of mail"), help=gettext("Empty: nowhere.")),
            ),
            label=gettext("Keep"),
        ),
        ChangeForm(
            title=gettext("Make a group"),
            do="make group",
            fields=(Field(name="name", label=gettext("Name"), required=True),),
            label=gettext("Make"),
        ),
        ChangeForm(title=gettext("Name a person as owner"), do="own", fields=(person, *place), label=gettext("Name")),
    ]
    forms.append(_same_person(people))
    if groups:
        forms += [
            ChangeForm(
                title=gettext("Give a group a role"),
                do="grant to group",
                fields=(group, role, *place),
                label=gettext("Give"),
            ),
            ChangeForm(
                title=gettext("Put a person into a group"), do="join", fields=(group, person), label=gettext("Put")
            ),
            ChangeForm(title=gettext("Name a group as owner"), do="own", fields=(group, *place), label=gettext("Name")),
        ]
    return tuple(forms)


def _same_person(people: list[str]) -> ChangeForm:
    return ChangeForm(
        title=gettext("Count two accounts as one person"),
        do="same",
        fields=(
            _select("one", gettext("Account"), people),
            _select("other", gettext("The same person’s other account"), people),
            Field(
                name="reason",
                label=gettext("How it is known"),
                required=True,
                help=gettext("It stands in the audit. Neither account may then approve what the other asked for."),
            ),
        ),
        label=gettext("Count as one"),
    )


def _select(name: str, label: str, values: list[str], *, empty: str = "") -> Field:
    choices = [Choice(value="", label=empty)] if empty else []
    return Field(
        name=name,
        label=label,
        kind="select",
        required=not empty,
        choices=(*choices, *(Choice(value=value, label=value) for value in values)),
    )
