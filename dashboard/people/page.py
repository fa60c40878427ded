"""The page of people, groups and owners, with the changes that can be made there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.frame import make_frame
from dashboard.components.links import whole_number
from dashboard.components.translation import joined, later
from dashboard.components.widgets import Choice, Field, Frame, Problem, SearchBox
from registry.access import services
from registry.access.permission_filters import place_words
from registry.access.roles import ROLES, Actor
from registry.access.selectors import (
    GrantInfo,
    GroupInfo,
    OwnershipInfo,
    PersonInfo,
    list_groups,
    list_ownerships,
    list_people,
)
from registry.errors import InvalidInput, SchemadeskError
from registry.promotions.reviews.linked_accounts import (
    SamePersonInfo,
    same_person_statements,
    state_same_person,
    withdraw_same_person,
)
from registry.promotions.selectors import list_environments


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonChange:
    """A form with one button: the change (`do`) and its values.

    `loses` says what is lost; then the page asks for confirmation.
    """

    label: str
    do: str
    values: tuple[tuple[str, str], ...]
    loses: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantRow:
    """A role and its scope; `remove` is None if the role comes from a group, which `through` names."""

    role: str
    where: str
    through: str = ""
    remove: PersonChange | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonRow:
    """A person: how they sign in, in words, when they last did, their groups and roles."""

    username: str
    email: str
    active: bool
    ways: str
    last_sign_in: datetime | None
    groups: tuple[str, ...]
    grants: tuple[GrantRow, ...]
    switch: PersonChange


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """A group with its members and roles."""

    name: str
    members: tuple[tuple[str, PersonChange], ...]
    grants: tuple[GrantRow, ...]
    remove: PersonChange


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerRow:
    """Who owns which subjects."""

    owner: str
    is_group: bool
    where: str
    remove: PersonChange


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeForm:
    """A form of several fields."""

    title: str
    do: str
    fields: tuple[Field, ...]
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SamePersonRow:
    """Two accounts that count as one person, and who stated it."""

    one: str
    other: str
    reason: str
    by: str
    at: datetime
    remove: PersonChange


@dataclass(frozen=True, slots=True, kw_only=True)
class PeoplePage:
    """The page; `made` is the name and password of a person who was just added, shown once."""

    frame: Frame
    search: SearchBox
    people: tuple[PersonRow, ...]
    groups: tuple[GroupRow, ...]
    owners: tuple[OwnerRow, ...]
    same: tuple[SamePersonRow, ...]
    forms: tuple[ChangeForm, ...]
    change_url: str
    made: tuple[str, str] | None = None
    problem: Problem | None = None


@dataclass(frozen=True)
class ChangeKind:
    """A service, its fields of the form, and the message of success."""

    service: Callable[..., Any]
    fields: tuple[str, ...]
    success: str


_PLACE = ("registry", "subject_pattern")
CHANGES: dict[str, ChangeKind] = {
    "add": ChangeKind(services.add_person, ("username",), later("Person added.")),
    "shut": ChangeKind(services.set_active, ("username", "active"), later("Account deactivated.")),
    "open": ChangeKind(services.set_active, ("username", "active"), later("Account reactivated.")),
    "mail": ChangeKind(services.set_email, ("username", "email"), later("Email address saved.")),
    "grant": ChangeKind(services.grant, ("username", "role", *_PLACE), later("Role granted.")),
    "revoke": ChangeKind(services.revoke_grant, ("grant_id",), later("Role revoked.")),
    "make group": ChangeKind(services.make_group, ("name",), later("Group created.")),
    "remove group": ChangeKind(services.remove_group, ("name",), later("Group removed.")),
    "join": ChangeKind(services.add_member, ("group", "username"), later("Member added.")),
    "leave": ChangeKind(services.remove_member, ("group", "username"), later("Member removed.")),
    "grant to group": ChangeKind(services.grant_to_group, ("group", "role", *_PLACE), later("Role granted.")),
    "revoke from group": ChangeKind(services.remove_group_grant, ("grant_id",), later("Role revoked.")),
    "own": ChangeKind(services.add_owner, ("username", "group", *_PLACE), later("Owner added.")),
    "disown": ChangeKind(services.remove_owner, ("ownership_id",), later("Owner removed.")),
    "same": ChangeKind(state_same_person, ("one", "other", "reason"), later("Accounts linked.")),
    "two": ChangeKind(withdraw_same_person, ("statement_id",), later("Accounts unlinked.")),
}
_NUMBERS = ("grant_id", "ownership_id", "statement_id")


def make_change(do: str, posted: Mapping[str, str], *, by: Actor) -> Any:
    """Make the change of a form, and return the service's result. Raises InvalidInput and what the service raises."""
    kind = CHANGES.get(do)
    if kind is None:
        raise InvalidInput(gettext("Unknown change."))
    values: dict[str, Any] = {name: posted.get(name, "") for name in kind.fields}
    if "active" in values:
        values["active"] = do == "open"
    for name in _NUMBERS:
        if name in values:
            values[name] = whole_number(values[name], digits=18) or 0
    return kind.service(by=by, **values)


def change_forms(*, people: list[str], groups: list[str], registries: list[str]) -> tuple[ChangeForm, ...]:
    """The forms below the lists."""
    person, group = _select("username", gettext("Person"), people), _select("group", gettext("Group"), groups)
    scope = (
        _select("registry", gettext("Registry"), registries, empty=gettext("all")),
        Field(
            name="subject_pattern",
            label=gettext("Subjects"),
            value="*",
            code=True,
            help=gettext("A pattern such as orders-*."),
        ),
    )
    role = _select("role", gettext("Role"), list(ROLES))
    forms = [
        ChangeForm(
            title=gettext("Add a person"),
            do="add",
            fields=(Field(name="username", label=gettext("Username"), required=True),),
            label=gettext("Add person"),
        ),
        ChangeForm(
            title=gettext("Grant a role to a person"),
            do="grant",
            fields=(person, role, *scope),
            label=gettext("Grant role"),
        ),
        ChangeForm(
            title=gettext("Set a person’s email address"),
            do="mail",
            fields=(
                person,
                Field(name="email", label=gettext("Email address"), help=gettext("Leave empty to send no email.")),
            ),
            label=gettext("Save address"),
        ),
        ChangeForm(
            title=gettext("Create a group"),
            do="make group",
            fields=(Field(name="name", label=gettext("Name"), required=True),),
            label=gettext("Create group"),
        ),
        ChangeForm(
            title=gettext("Add a person as owner"), do="own", fields=(person, *scope), label=gettext("Add owner")
        ),
    ]
    forms.append(_same_person(people))
    if groups:
        forms += [
            ChangeForm(
                title=gettext("Grant a role to a group"),
                do="grant to group",
                fields=(group, role, *scope),
                label=gettext("Grant role"),
            ),
            ChangeForm(
                title=gettext("Add a person to a group"), do="join", fields=(group, person), label=gettext("Add member")
            ),
            ChangeForm(
                title=gettext("Add a group as owner"), do="own", fields=(group, *scope), label=gettext("Add owner")
            ),
        ]
    return tuple(forms)


def _same_person(people: list[str]) -> ChangeForm:
    return ChangeForm(
        title=gettext("Link two accounts of the same person"),
        do="same",
        fields=(
            _select("one", gettext("Account"), people),
            _select("other", gettext("Other account of the same person"), people),
            Field(
                name="reason",
                label=gettext("Reason"),
                required=True,
                help=gettext(
                    "Recorded in the audit log. After this, neither account can approve what the other one requested."
                ),
            ),
        ),
        label=gettext("Link accounts"),
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


WAYS = {"password": later("password"), "oidc": later("single sign-on")}


def people_page(
    request: HttpRequest, *, made: tuple[str, str] | None = None, problem: SchemadeskError | None = None
) -> PeoplePage:
    """The page of people; `made` is a name with its new password."""
    query = request.GET.get("q", "").strip()
    people, groups = list_people(text=query), list_groups()
    return PeoplePage(
        frame=make_frame(request, title=gettext("People and groups")),
        search=SearchBox(
            url=reverse("ui:people"),
            query=query,
            label=gettext("Search people"),
            placeholder=gettext("name or email address"),
        ),
        people=tuple(map(_person, people)),
        groups=tuple(map(_group, groups)),
        owners=tuple(map(_owner, list_ownerships())),
        same=tuple(map(_same, same_person_statements())),
        forms=change_forms(
            people=[info.username for info in people if info.active],
            groups=[info.name for info in groups],
            registries=list_environments(),
        ),
        change_url=reverse("ui:people_change"),
        made=made,
        problem=Problem(what=problem.message) if problem else None,
    )


def _person(info: PersonInfo) -> PersonRow:
    do, label, loses = (
        (
            "shut",
            gettext("Deactivate account"),
            gettext("This person is signed out and can no longer sign in. Their API tokens are refused."),
        )
        if info.active
        else ("open", gettext("Reactivate account"), "")
    )
    return PersonRow(
        username=info.username,
        email=info.email,
        active=info.active,
        ways=joined(WAYS[way] for way in info.signs_in_by) or gettext("Can’t sign in"),
        last_sign_in=info.last_sign_in,
        groups=info.groups,
        grants=_grants(info.grants),
        switch=PersonChange(label=label, do=do, values=(("username", info.username),), loses=loses),
    )


def _grants(infos: Iterable[GrantInfo], *, of_group: bool = False) -> tuple[GrantRow, ...]:
    do = "revoke from group" if of_group else "revoke"
    return tuple(
        GrantRow(
            role=info.role,
            where=place_words(info.registry, info.subject_pattern),
            through="" if of_group else info.group,
            remove=PersonChange(
                label=gettext("Revoke role"),
                do=do,
                values=(("grant_id", str(info.grant_id)),),
                loses=gettext("All members lose the permissions of this role there.")
                if of_group
                else gettext("This person loses the permissions of this role there."),
            )
            if of_group or not info.group
            else None,
        )
        for info in infos
    )


def _group(info: GroupInfo) -> GroupRow:
    return GroupRow(
        name=info.name,
        members=tuple(
            (
                name,
                PersonChange(
                    label=gettext("Remove member"),
                    do="leave",
                    values=(("group", info.name), ("username", name)),
                    loses=gettext("This person loses the roles and subjects that come from the group."),
                ),
            )
            for name in info.members
        ),
        grants=_grants(info.grants, of_group=True),
        remove=PersonChange(
            label=gettext("Remove group"),
            do="remove group",
            values=(("name", info.name),),
            loses=gettext("Its members lose the group’s roles, and the group no longer owns its subjects."),
        ),
    )


def _owner(info: OwnershipInfo) -> OwnerRow:
    return OwnerRow(
        owner=info.username or info.group,
        is_group=bool(info.group),
        where=place_words(info.registry, info.subject_pattern),
        remove=PersonChange(
            label=gettext("Remove owner"),
            do="disown",
            values=(("ownership_id", str(info.ownership_id)),),
            loses=gettext("This owner is no longer asked about these subjects or notified of changes."),
        ),
    )


def _same(info: SamePersonInfo) -> SamePersonRow:
    return SamePersonRow(
        one=info.one,
        other=info.other,
        reason=info.reason,
        by=info.stated_by,
        at=info.stated_at,
        remove=PersonChange(
            label=gettext("Unlink accounts"),
            do="two",
            values=(("statement_id", str(info.id)),),
            loses=gettext("After this, each account can approve what the other one requested."),
        ),
    )
