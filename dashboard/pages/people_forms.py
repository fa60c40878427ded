"""What can be changed on the page of people: each change as a row, with its form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dashboard.pages.numbers import whole_number
from dashboard.presenters.frame import Choice, Field
from dashboard.presenters.people import ChangeForm
from registry.access import services
from registry.access.roles import ROLES, Actor
from registry.errors import InvalidInput


@dataclass(frozen=True)
class ChangeKind:
    """A service, the fields of the form that it takes, and what is said when it was done."""

    service: Callable[..., Any]
    fields: tuple[str, ...]
    said: str


_PLACE = ("registry", "subject_pattern")
CHANGES: dict[str, ChangeKind] = {
    "add": ChangeKind(services.add_person, ("username",), "Added."),
    "shut": ChangeKind(services.set_active, ("username", "active"), "The account is shut."),
    "open": ChangeKind(services.set_active, ("username", "active"), "The account is open again."),
    "grant": ChangeKind(services.grant, ("username", "role", *_PLACE), "The role is given."),
    "revoke": ChangeKind(services.revoke_grant, ("grant_id",), "The role is taken away."),
    "make group": ChangeKind(services.make_group, ("name",), "The group is made."),
    "remove group": ChangeKind(services.remove_group, ("name",), "The group is removed."),
    "join": ChangeKind(services.add_member, ("group", "username"), "They are in the group now."),
    "leave": ChangeKind(services.remove_member, ("group", "username"), "They are out of the group now."),
    "grant to group": ChangeKind(services.grant_to_group, ("group", "role", *_PLACE), "The role is given."),
    "revoke from group": ChangeKind(services.remove_group_grant, ("grant_id",), "The role is taken away."),
    "own": ChangeKind(services.add_owner, ("username", "group", *_PLACE), "The owner is named."),
    "disown": ChangeKind(services.remove_owner, ("ownership_id",), "The ownership is ended."),
}
_NUMBERS = ("grant_id", "ownership_id")


def make_change(do: str, given: Mapping[str, str], *, by: Actor) -> Any:
    """Do what a form asks for, and give what the service gives. Raises InvalidInput and what the service raises."""
    kind = CHANGES.get(do)
    if kind is None:
        raise InvalidInput("There is no such change.")
    values: dict[str, Any] = {name: given.get(name, "") for name in kind.fields}
    if "active" in values:
        values["active"] = do == "open"
    for name in _NUMBERS:
        if name in values:
            values[name] = whole_number(values[name], digits=18) or 0
    return kind.service(by=by, **values)


def change_forms(*, people: list[str], groups: list[str], registries: list[str]) -> tuple[ChangeForm, ...]:
    """The forms below the lists."""
    person, group = _select("username", "Person", people), _select("group", "Group", groups)
    place = (
        _select("registry", "Registry", registries, empty="all"),
        Field(name="subject_pattern", label="Subjects", value="*", code=True, help="A pattern like orders-*."),
    )
    role = _select("role", "Role", list(ROLES))
    forms = [
        ChangeForm(
            title="Add a person",
            do="add",
            fields=(Field(name="username", label="User name", required=True),),
            label="Add",
        ),
        ChangeForm(title="Give a person a role", do="grant", fields=(person, role, *place), label="Give"),
        ChangeForm(
            title="Make a group",
            do="make group",
            fields=(Field(name="name", label="Name", required=True),),
            label="Make",
        ),
        ChangeForm(title="Name a person as owner", do="own", fields=(person, *place), label="Name"),
    ]
    if groups:
        forms += [
            ChangeForm(title="Give a group a role", do="grant to group", fields=(group, role, *place), label="Give"),
            ChangeForm(title="Put a person into a group", do="join", fields=(group, person), label="Put"),
            ChangeForm(title="Name a group as owner", do="own", fields=(group, *place), label="Name"),
        ]
    return tuple(forms)


def _select(name: str, label: str, values: list[str], *, empty: str = "") -> Field:
    choices = [Choice(value="", label=empty)] if empty else []
    return Field(
        name=name,
        label=label,
        kind="select",
        required=not empty,
        choices=(*choices, *(Choice(value=value, label=value) for value in values)),
    )
