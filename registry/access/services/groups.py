"""Groups, their roles and members, and the owners of subjects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import Group
from django.db import transaction

from registry.access import guard
from registry.access.guard import RightsChange
from registry.access.models import GroupGrant, Ownership, User
from registry.access.roles import Actor, Grant, require
from registry.access.selectors import full_admins
from registry.access.services.people import keep_an_admin, lock_admins, person_named
from registry.access.services.places import checked_place, checked_role, place_words
from registry.audit.services import record
from registry.errors import Conflict, InvalidInput, NotFound


@transaction.atomic
def make_group(*, name: str, by: Actor) -> None:
    """Make a group. Raises NotSignedIn, NotAllowed, InvalidInput, and Conflict for a name that is taken."""
    require(by, "people.manage")
    name = name.strip()
    if not 1 <= len(name) <= 150 or not name.isprintable() or "/" in name:
        raise InvalidInput("A group has a name of 1 to 150 characters that show, none of them a slash.")
    record(by=by, why=f"make the group {name}")
    _, created = Group.objects.get_or_create(name=name)
    if not created:
        raise Conflict(f"There is a group {name} already.")


@transaction.atomic
def remove_group(*, name: str, by: Actor) -> None:
    """Remove a group with its roles and what it owns. Raises NotSignedIn, NotAllowed, NotFound, Conflict."""
    require(by, "people.manage")
    lock_admins()
    group, before = group_named(name), full_admins()
    record(by=by, why=f"remove the group {name}")
    guard.ask(_leaving("remove_group", {"name": name}, f"remove the group {name}", group, _members(group)), by)
    group.delete()
    keep_an_admin(by, before)


@transaction.atomic
def add_member(*, group: str, username: str, by: Actor) -> None:
    """Put a person into a group. Raises NotSignedIn, NotAllowed, NotFound."""
    require(by, "people.manage")
    found, user = group_named(group), person_named(username)
    sentence = f"put {username} into the group {group}"
    record(by=by, why=sentence)
    if not user.groups.filter(pk=found.pk).exists():
        values = {"group": group, "username": username}
        guard.ask(RightsChange("add_member", values, sentence, users=(user.pk,), groups=(group,)), by)
    user.groups.add(found)


@transaction.atomic
def remove_member(*, group: str, username: str, by: Actor) -> None:
    """Take a person out of a group. Raises NotSignedIn, NotAllowed, NotFound, and Conflict for the last admin."""
    require(by, "people.manage")
    lock_admins()
    found, user, before = group_named(group), person_named(username), full_admins()
    sentence = f"take {username} out of the group {group}"
    record(by=by, why=sentence)
    values = {"group": group, "username": username}
    guard.ask(_leaving("remove_member", values, sentence, found, (user.pk,)), by)
    user.groups.remove(found)
    keep_an_admin(by, before)


@transaction.atomic
def grant_to_group(*, group: str, role: str, by: Actor, registry: str = "", subject_pattern: str = "*") -> int:
    """Give everybody in a group a role somewhere, and give the grant's number; one that it has stays.

    Raises NotSignedIn, NotAllowed, InvalidInput, NotFound.
    """
    require(by, "people.manage")
    role = checked_role(role)
    registry, subject_pattern = checked_place(registry, subject_pattern)
    found = group_named(group)
    sentence = f"give the group {group} the role {role} for {place_words(registry, subject_pattern)}"
    record(by=by, why=sentence)
    values = {"group": group, "role": role, "registry": registry, "subject_pattern": subject_pattern}
    place = Grant(role, registry, subject_pattern)
    if not found.role_grants.filter(role=role, registry=registry, subject_pattern=subject_pattern).exists():
        guard.ask(RightsChange("grant_to_group", values, sentence, users=_members(found), grants=(place,)), by)
    row, _ = GroupGrant.objects.get_or_create(
        group=found, role=role, registry=registry, subject_pattern=subject_pattern
    )
    return row.pk


@transaction.atomic
def remove_group_grant(*, grant_id: int, by: Actor) -> None:
    """Take a role from a group. Raises NotSignedIn, NotAllowed, NotFound, and Conflict for the last admin."""
    require(by, "people.manage")
    lock_admins()
    row = GroupGrant.objects.select_related("group").filter(pk=grant_id).first()
    if row is None:
        raise NotFound(f"There is no grant {grant_id} of a group.")
    before = full_admins()
    sentence = f"take the role {row.role} from the group {row.group.name}"
    record(by=by, why=sentence)
    taken = (Grant(row.role, row.registry, row.subject_pattern),)
    change = RightsChange(
        "remove_group_grant", {"grant_id": grant_id}, sentence, users=_members(row.group), grants=taken, removes=True
    )
    guard.ask(change, by)
    row.delete()
    keep_an_admin(by, before)


@transaction.atomic
def add_owner(*, subject_pattern: str, by: Actor, registry: str = "", username: str = "", group: str = "") -> int:
    """Name a person or a group as owner of the subjects of a pattern, and give the number of that.

    Raises NotSignedIn, NotAllowed, NotFound, and InvalidInput unless exactly one of the two is named.
    """
    require(by, "people.manage")
    if bool(username) == bool(group):
        raise InvalidInput("An owner is a person or a group: name one of the two.")
    registry, subject_pattern = checked_place(registry, subject_pattern)
    owner = {"user": person_named(username), "group": None} if username else {"user": None, "group": group_named(group)}
    sentence = f"make {username or f'the group {group}'} owner of {place_words(registry, subject_pattern)}"
    record(by=by, why=sentence)
    if not Ownership.objects.filter(registry=registry, subject_pattern=subject_pattern, **owner).exists():
        values = {"subject_pattern": subject_pattern, "registry": registry, "username": username, "group": group}
        guard.ask(RightsChange("add_owner", values, sentence, owner=True), by)
    row, _ = Ownership.objects.get_or_create(registry=registry, subject_pattern=subject_pattern, **owner)
    return row.pk


@transaction.atomic
def remove_owner(*, ownership_id: int, by: Actor) -> None:
    """End an ownership. Raises NotSignedIn, NotAllowed, NotFound."""
    require(by, "people.manage")
    row = Ownership.objects.select_related("user", "group").filter(pk=ownership_id).first()
    if row is None:
        raise NotFound(f"There is no ownership {ownership_id}.")
    record(by=by, why=f"end the ownership of {row.user or row.group} of {row.subject_pattern}")
    row.delete()


@transaction.atomic
def set_mapped_groups(*, user: User, wanted: set[str], mapped: set[str], by: Actor) -> None:
    """Put a person into the wanted groups and out of the other mapped ones; groups that aren't mapped stay.

    For who was just identified by an issuer whose claims say so: it asks for no right. Groups are made where missing.
    """
    has = set(user.groups.filter(name__in=mapped).values_list("name", flat=True))
    if has == wanted:
        return
    record(by=by, why="groups as the issuer has them")
    user.groups.remove(*Group.objects.filter(name__in=has - wanted))
    user.groups.add(*(Group.objects.get_or_create(name=name)[0] for name in wanted - has))


def _members(group: Group) -> tuple[int, ...]:
    return tuple(User.objects.filter(groups=group).values_list("pk", flat=True))


def _leaving(
    action: str, values: Mapping[str, Any], sentence: str, group: Group, users: tuple[int, ...]
) -> RightsChange:
    """That people lose what a group gives them."""
    places = GroupGrant.objects.filter(group=group).values_list("role", "registry", "subject_pattern")
    grants = tuple(Grant(*place) for place in places)
    return RightsChange(action, values, sentence, users=users, grants=grants, removes=True)


def group_named(name: str) -> Group:
    """The group of that name. Raises NotFound."""
    group = Group.objects.filter(name=name).first() if name.isprintable() else None
    if group is None:
        raise NotFound(f"There is no group {name[:150]!r}.")
    return group
