"""People, groups and owners as their page shows them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dashboard.presenters.frame import Field, Frame, Problem, Search


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A form with one button: what it does (`do`), and the values that go with it.

    `loses` says what is lost by it: then it is asked once more.
    """

    label: str
    do: str
    values: tuple[tuple[str, str], ...]
    loses: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantRow:
    """A role and where it counts; `remove` is None where it comes from a group, which `through` names."""

    role: str
    where: str
    through: str = ""
    remove: Change | None = None


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
    switch: Change


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """A group with its members and roles."""

    name: str
    members: tuple[tuple[str, Change], ...]
    grants: tuple[GrantRow, ...]
    remove: Change


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerRow:
    """Who owns which subjects."""

    owner: str
    is_group: bool
    where: str
    remove: Change


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeForm:
    """A form of several fields."""

    title: str
    do: str
    fields: tuple[Field, ...]
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SamePersonRow:
    """Two accounts that count as one person's, and who said so."""

    one: str
    other: str
    reason: str
    by: str
    at: datetime
    remove: Change


@dataclass(frozen=True, slots=True, kw_only=True)
class PeoplePage:
    """The page; `made` is the name and password of somebody who was just added, shown this one time."""

    frame: Frame
    search: Search
    people: tuple[PersonRow, ...]
    groups: tuple[GroupRow, ...]
    owners: tuple[OwnerRow, ...]
    same: tuple[SamePersonRow, ...]
    forms: tuple[ChangeForm, ...]
    change_url: str
    made: tuple[str, str] | None = None
    problem: Problem | None = None
