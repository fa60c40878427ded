"""People, groups and owners as lists."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import Group
from django.db.models import Prefetch

from registry.access.models import GroupGrant, Ownership, RoleGrant, User

MAX_PEOPLE = 500


@dataclass(frozen=True)
class GrantInfo:
    """A role in a registry ("": all) for the subjects of a pattern; `group` is the group that has it, "" for own."""

    grant_id: int
    role: str
    registry: str
    subject_pattern: str
    group: str = ""


@dataclass(frozen=True)
class PersonInfo:
    """A person; `signs_in_by` has `password`, `oidc`, both or neither."""

    username: str
    email: str
    active: bool
    last_sign_in: datetime | None
    signs_in_by: tuple[str, ...]
    groups: tuple[str, ...]
    grants: tuple[GrantInfo, ...]


@dataclass(frozen=True)
class GroupInfo:
    """A group with its active and inactive members and its roles."""

    name: str
    members: tuple[str, ...]
    grants: tuple[GrantInfo, ...]


@dataclass(frozen=True)
class OwnershipInfo:
    """Whose the subjects of a pattern are: exactly one of `username` and `group` is filled."""

    ownership_id: int
    registry: str
    subject_pattern: str
    username: str
    group: str


def list_people(*, text: str = "") -> list[PersonInfo]:
    """People by name, those whose name or address has the text, 500 at most, in a constant number of queries."""
    people = User.objects.order_by("username")
    if text and text.isprintable():
        people = people.filter(username__icontains=text) | people.filter(email__icontains=text)
    groups = Prefetch("groups", queryset=Group.objects.order_by("name").prefetch_related("role_grants"))
    rows = list(people.prefetch_related("role_grants", groups)[:MAX_PEOPLE])
    # the identities (issuer, subject) stand in allauth's table, which this package knows by name alone
    by_oidc = set(
        User.objects.filter(pk__in=[row.pk for row in rows], socialaccount__isnull=False).values_list("pk", flat=True)
    )
    return [_person(row, by_oidc) for row in rows]


def _person(row: User, by_oidc: set[int]) -> PersonInfo:
    groups = list(row.groups.all())
    through_groups = [info for group in groups for info in _grants(group.role_grants.all(), group.name)]
    ways = [way for way, has in (("password", row.has_usable_password()), ("oidc", row.pk in by_oidc)) if has]
    return PersonInfo(
        username=row.username,
        email=row.email,
        active=row.is_active,
        last_sign_in=row.last_login,
        signs_in_by=tuple(ways),
        groups=tuple(group.name for group in groups),
        grants=(*_grants(row.role_grants.all()), *through_groups),
    )


def list_groups() -> list[GroupInfo]:
    """All groups by name, in a constant number of queries."""
    members = Prefetch("user_set", queryset=User.objects.order_by("username").only("username"))
    rows = Group.objects.order_by("name").prefetch_related("role_grants", members)
    return [
        GroupInfo(
            name=row.name,
            members=tuple(user.username for user in row.user_set.all()),
            grants=tuple(_grants(row.role_grants.all(), row.name)),
        )
        for row in rows
    ]


def list_ownerships() -> list[OwnershipInfo]:
    """All ownerships, by registry and pattern."""
    rows = Ownership.objects.select_related("user", "group").order_by("registry", "subject_pattern", "pk")
    return [
        OwnershipInfo(
            ownership_id=row.pk,
            registry=row.registry,
            subject_pattern=row.subject_pattern,
            username=row.user.username if row.user else "",
            group=row.group.name if row.group else "",
        )
        for row in rows
    ]


def _grants(rows: Iterable[RoleGrant | GroupGrant], group: str = "") -> list[GrantInfo]:
    return sorted(
        (GrantInfo(row.pk, row.role, row.registry, row.subject_pattern, group) for row in rows),
        key=lambda info: (info.registry, info.subject_pattern, info.role),
    )
