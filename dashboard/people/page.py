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


def make_change(do: str, posted: Mapping[str, str], *, by: Actor) -> Any:
    """Make the change of a form, and return the service's result. Raises InvalidInput and what the service raises."""
    kind = CHANGES.get(do)
    if kind is None:
        raise InvalidInput(gettext("There is no such change."))
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
            title=gettext("Give a person a role"), do="grant", fields=(person, role, *scope), label=gettext("Give")
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
        ChangeForm(title=gettext("Name a person as owner"), do="own", fields=(person, *scope), label=gettext("Name")),
    ]
    forms.append(_same_person(people))
    if groups:
        forms += [
            ChangeForm(
                title=gettext("Give a group a role"),
                do="grant to group",
                fields=(group, role, *scope),
                label=gettext("Give"),
            ),
            ChangeForm(
                title=gettext("Put a person into a group"), do="join", fields=(group, person), label=gettext("Put")
            ),
            ChangeForm(title=gettext("Name a group as owner"), do="own", fields=(group, *scope), label=gettext("Name")),
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
            placeholder=gettext("name or address"),
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
            gettext("Shut the account"),
            gettext("They are signed out and can’t sign in, and their tokens are refused."),
        )
        if info.active
        else ("open", gettext("Open again"), "")
    )
    return PersonRow(
        username=info.username,
        email=info.email,
        active=info.active,
        ways=joined(WAYS[way] for way in info.signs_in_by) or gettext("cannot sign in"),
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
                label=gettext("Take away"),
                do=do,
                values=(("grant_id", str(info.grant_id)),),
                loses=gettext("All members lose what the role allows there.")
                if of_group
                else gettext("They lose what the role allows there."),
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
                    label=gettext("Take out"),
                    do="leave",
                    values=(("group", info.name), ("username", name)),
                    loses=gettext("They lose the roles and subjects that they have through the group."),
                ),
            )
            for name in info.members
        ),
        grants=_grants(info.grants, of_group=True),
        remove=PersonChange(
            label=gettext("Remove the group"),
            do="remove group",
            values=(("name", info.name),),
            loses=gettext("Its members lose the roles that it has, and what it owns has that owner no more."),
        ),
    )


def _owner(info: OwnershipInfo) -> OwnerRow:
    return OwnerRow(
        owner=info.username or info.group,
        is_group=bool(info.group),
        where=place_words(info.registry, info.subject_pattern),
        remove=PersonChange(
            label=gettext("End"),
            do="disown",
            values=(("ownership_id", str(info.ownership_id)),),
            loses=gettext("They are no longer asked and told about these subjects."),
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
            label=gettext("Count as two"),
            do="two",
            values=(("statement_id", str(info.id)),),
            loses=gettext("Each account may then approve what the other asked for."),
        ),
    )
