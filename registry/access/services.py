"""Changes of people, groups, owners and their roles; the audit records each with who made it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import Group
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from registry import hooks
from registry.access.account_names import address_key, checked_email, checked_username, same_name
from registry.access.contact_channels import clean_channel
from registry.access.models import ApiToken, GroupChannel, GroupGrant, Ownership, RoleGrant, User
from registry.access.permission_filters import checked_role, checked_scope, describe_scope
from registry.access.roles import Actor, Grant, RightsChange, guard, require
from registry.access.selectors import full_admins, grants_of
from registry.access.tokens import IssuedToken, issue_token, make_token, revoke_token
from registry.audit.context import record
from registry.errors import Conflict, InvalidInput, NotFound

__all__ = ["IssuedToken", "issue_token", "make_token", "revoke_token"]


# Changes of who is an admin run one at a time: two admins who remove each other concurrently would leave none.
_ADMINS_LOCK = 7_311_001


@transaction.atomic
def ensure_person(*, username: str, role: str, by: Actor) -> str | None:
    """Make a user with a role in all registries; return the new password, None if the user exists.

    An account whose name differs only in case stays as it is. For the first start and for tests: it checks no
    permission. Raises InvalidInput for a role that doesn't exist.
    """
    checked_role(role)
    names = set(User.objects.filter(username__iexact=username).values_list("username", flat=True))
    if names and username not in names:
        return None
    record(by=by, why=f"grant {username} the role {role}")
    user, created = User.objects.get_or_create(username=username)
    RoleGrant.objects.get_or_create(user=user, role=role, registry="", subject_pattern="*")
    return _new_password(user) if created else None


@transaction.atomic
def add_person(*, username: str, by: Actor) -> str:
    """Make an account without a role, and return its password, which can't be read again.

    In closed environments it counts as its maker's until another person confirms that it isn't (linked_accounts.py).
    Raises NotSignedIn, NotAllowed, InvalidInput for an invalid name, Conflict for one that is taken or looks the same.
    """
    require(by, "people.manage")
    username = checked_username(username)
    taken = same_name(username, User.objects.order_by("username").values_list("username", flat=True))
    if taken is not None:
        raise _taken_username(username, taken)
    record(by=by, why=f"add {username}")
    try:
        with transaction.atomic():
            user = User.objects.create(username=username)
    except IntegrityError as error:  # another person added it meanwhile
        raise _taken_username(username, username) from error
    for added in hooks.added_accounts:
        added(user.pk, by)
    return _new_password(user)


def _taken_username(username: str, taken: str) -> Conflict:
    if taken == username:
        return Conflict(f"The username {username} is already taken.", field="username")
    return Conflict(f"The username {username} is too similar to the existing username {taken}.", field="username")


@transaction.atomic
def grant(*, username: str, role: str, by: Actor, registry: str = "", subject_pattern: str = "*") -> int:
    """Give a person a role somewhere, and return the grant's id; an existing grant stays.

    Raises NotSignedIn, NotAllowed, InvalidInput, NotFound.
    """
    require(by, "people.manage")
    role = checked_role(role)
    registry, subject_pattern = checked_scope(registry, subject_pattern, by)
    user = person_named(username)
    sentence = f"grant {username} the role {role} for {describe_scope(registry, subject_pattern)}"
    record(by=by, why=sentence)
    values = {"username": username, "role": role, "registry": registry, "subject_pattern": subject_pattern}
    grants = (Grant(role, registry, subject_pattern),)
    if not RoleGrant.objects.filter(user=user, role=role, registry=registry, subject_pattern=subject_pattern).exists():
        guard(RightsChange("grant", values, sentence, users=(user.pk,), grants=grants), by)
    row, _ = RoleGrant.objects.get_or_create(user=user, role=role, registry=registry, subject_pattern=subject_pattern)
    return row.pk


@transaction.atomic
def revoke_grant(*, grant_id: int, by: Actor) -> None:
    """Revoke a person's role.

    Raises NotSignedIn, NotAllowed, NotFound, SecondPersonRequired, and Conflict as keep_an_admin does.
    """
    require(by, "people.manage")
    lock_admins()
    row = RoleGrant.objects.select_related("user").filter(pk=grant_id).first()
    if row is None:
        raise NotFound(f"Role grant {grant_id} not found.")
    before = full_admins()
    scope = describe_scope(row.registry, row.subject_pattern)
    sentence = f"revoke the role {row.role} for {scope} from {row.user.get_username()}"
    record(by=by, why=sentence)
    taken = (Grant(row.role, row.registry, row.subject_pattern),)
    change = RightsChange(
        "revoke_grant", {"grant_id": grant_id}, sentence, users=(row.user_id,), grants=taken, removes=True
    )
    guard(change, by)
    row.delete()
    keep_an_admin(by, before)


@transaction.atomic
def set_active(*, username: str, active: bool, by: Actor) -> None:
    """Deactivate or reactivate an account. An inactive one can't sign in; its sessions and tokens end for good.

    Raises NotSignedIn, NotAllowed, NotFound, and Conflict for one's own account or as keep_an_admin does.
    """
    require(by, "people.manage")
    lock_admins()
    user = person_named(username)
    if user.pk == by.user_id and not active:
        raise Conflict("You can't deactivate your own account. Another admin can.")
    if user.is_active == active:
        return
    before = full_admins()
    sentence = f"{'reactivate' if active else 'deactivate'} the account {username}"
    record(by=by, why=sentence)
    guard(
        RightsChange(
            "set_active",
            {"username": username, "active": active},
            sentence,
            # an inactive account counts as nobody's
            users=() if active else (user.pk,),
            grants=tuple(grants_of(user.pk)),
            groups=tuple(user.groups.values_list("name", flat=True)) if active else (),
            owner=active and user.ownerships.exists(),
            removes=not active,
        ),
        by,
    )
    user.is_active = active
    _end_access(user)
    keep_an_admin(by, before)


def _end_access(user: User) -> None:
    """End all sessions, tokens and webhooks, also on reactivation: deactivation didn't always revoke tokens."""
    user.session_epoch += 1
    user.save(update_fields=["is_active", "session_epoch"])  # locks the row: no token can be made until the commit
    ApiToken.objects.filter(user=user, revoked_at=None).update(revoked_at=timezone.now())
    reason = "The account of its owner was deactivated."
    user.webhooks.filter(active=True).update(active=False, disabled_reason=reason)


@transaction.atomic
def end_sessions(*, username: str, by: Actor) -> None:
    """Sign a person out everywhere; their tokens stay. Raises NotSignedIn, NotAllowed, NotFound.

    People may end their own.
    """
    user = person_named(username)
    if user.pk != by.user_id or by.limit is not None:
        require(by, "people.manage")
    record(by=by, why=f"end all sessions of {username}")
    user.session_epoch += 1
    user.save(update_fields=["session_epoch"])


@transaction.atomic
def set_email(*, username: str, email: str, by: Actor) -> None:
    """Set where a person's mail goes; "" for nowhere. Raises NotSignedIn, NotAllowed, NotFound, InvalidInput."""
    require(by, "people.manage")
    user, email = person_named(username), checked_email(email.strip())
    sentence = f"{'change' if email else 'remove'} the email address of {username}"
    record(by=by, why=sentence)
    values = {"username": username, "email": email}
    if address_key(user.email) != address_key(email):
        apart, joined = _others_with(user.email, user), _others_with(email, user)
        if apart:
            guard(RightsChange("set_email", values, sentence, accounts=(user.pk, *apart)), by)
        if joined:
            guard(RightsChange("set_email", values, sentence, joined=(user.pk, *joined)), by)
    user.email = email
    user.save(update_fields=["email"])


def _others_with(email: str, user: User) -> tuple[int, ...]:
    """Return the ids of other accounts with this address; accounts that share an address count as one person."""
    key = address_key(email)
    others = User.objects.exclude(pk=user.pk).exclude(email="").values_list("pk", "email") if key else ()
    return tuple(number for number, address in others if address_key(address) == key)


def person_named(username: str) -> User:
    """Return the person with that name, active or not. Raises NotFound."""
    user = User.objects.filter(username=username).first() if username.isprintable() else None
    if user is None:
        raise NotFound(f"User {username[:150]!r} not found.")
    return user


def lock_admins() -> None:
    """Block other changes of who is an admin until this transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_ADMINS_LOCK])


def keep_an_admin(by: Actor, before: set[int]) -> None:
    """Raise Conflict if the change leaves no active full admin, or removes that right from the person who makes it."""
    after = full_admins()
    if before and not after:
        raise Conflict("This would leave no admin. Make another person an admin of all registries first.")
    if by.user_id in before and by.user_id not in after:
        raise Conflict("This would remove your own admin role. Another admin can do it.")


def _new_password(user: User) -> str:
    password = secrets.token_urlsafe(12)
    user.set_password(password)
    user.save(update_fields=["password"])
    return password


@transaction.atomic
def make_group(*, name: str, by: Actor) -> None:
    """Make a group. Raises NotSignedIn, NotAllowed, InvalidInput, and Conflict if the name is taken or too similar."""
    require(by, "people.manage")
    name = name.strip()
    if not 1 <= len(name) <= 150 or not name.isprintable() or "/" in name:
        raise InvalidInput("A group name must have 1 to 150 visible characters and no slash.")
    taken = same_name(name, Group.objects.order_by("name").values_list("name", flat=True))
    if taken is not None and taken != name:
        raise Conflict(f"The group name {name} is too similar to the existing group {taken}.", field="name")
    record(by=by, why=f"create the group {name}")
    _, created = Group.objects.get_or_create(name=name)
    if not created:
        raise Conflict(f"The group {name} already exists.", field="name")


@transaction.atomic
def remove_group(*, name: str, by: Actor) -> None:
    """Remove a group with its roles and ownerships. Raises NotSignedIn, NotAllowed, NotFound, Conflict."""
    require(by, "people.manage")
    lock_admins()
    group, before = group_named(name), full_admins()
    record(by=by, why=f"remove the group {name}")
    guard(_leaving("remove_group", {"name": name}, f"remove the group {name}", group, _members(group)), by)
    group.delete()
    keep_an_admin(by, before)


@transaction.atomic
def set_group_channel(*, group: str, channel: str, by: Actor) -> None:
    """Say where the members of a group talk, "" for nowhere. Raises InvalidInput, NotSignedIn, NotAllowed, NotFound."""
    require(by, "people.manage")
    row, value = group_named(group), clean_channel(channel)
    record(by=by, why=f"set the channel of the group {group}" if value else f"remove the channel of the group {group}")
    if value:
        GroupChannel.objects.update_or_create(group=row, defaults={"channel": value})
    else:
        GroupChannel.objects.filter(group=row).delete()


@transaction.atomic
def add_member(*, group: str, username: str, by: Actor) -> None:
    """Add a person to a group. Raises NotSignedIn, NotAllowed, NotFound."""
    require(by, "people.manage")
    row, user = group_named(group), person_named(username)
    sentence = f"add {username} to the group {group}"
    record(by=by, why=sentence)
    if not user.groups.filter(pk=row.pk).exists():
        values = {"group": group, "username": username}
        guard(RightsChange("add_member", values, sentence, users=(user.pk,), groups=(group,)), by)
    user.groups.add(row)


@transaction.atomic
def remove_member(*, group: str, username: str, by: Actor) -> None:
    """Remove a person from a group. Raises NotSignedIn, NotAllowed, NotFound, and Conflict for the last admin."""
    require(by, "people.manage")
    lock_admins()
    row, user, before = group_named(group), person_named(username), full_admins()
    sentence = f"remove {username} from the group {group}"
    record(by=by, why=sentence)
    values = {"group": group, "username": username}
    guard(_leaving("remove_member", values, sentence, row, (user.pk,)), by)
    user.groups.remove(row)
    keep_an_admin(by, before)


@transaction.atomic
def grant_to_group(*, group: str, role: str, by: Actor, registry: str = "", subject_pattern: str = "*") -> int:
    """Give all members of a group a role somewhere, and return the grant's id; an existing grant stays.

    Raises NotSignedIn, NotAllowed, InvalidInput, NotFound.
    """
    require(by, "people.manage")
    role = checked_role(role)
    registry, subject_pattern = checked_scope(registry, subject_pattern, by)
    row_of_group = group_named(group)
    sentence = f"grant the group {group} the role {role} for {describe_scope(registry, subject_pattern)}"
    record(by=by, why=sentence)
    values = {"group": group, "role": role, "registry": registry, "subject_pattern": subject_pattern}
    role_grant = Grant(role, registry, subject_pattern)
    if not row_of_group.role_grants.filter(role=role, registry=registry, subject_pattern=subject_pattern).exists():
        guard(RightsChange("grant_to_group", values, sentence, users=_members(row_of_group), grants=(role_grant,)), by)
    row, _ = GroupGrant.objects.get_or_create(
        group=row_of_group, role=role, registry=registry, subject_pattern=subject_pattern
    )
    return row.pk


@transaction.atomic
def remove_group_grant(*, grant_id: int, by: Actor) -> None:
    """Revoke a group's role. Raises NotSignedIn, NotAllowed, NotFound, and Conflict for the last admin."""
    require(by, "people.manage")
    lock_admins()
    row = GroupGrant.objects.select_related("group").filter(pk=grant_id).first()
    if row is None:
        raise NotFound(f"Role grant {grant_id} of a group not found.")
    before = full_admins()
    sentence = f"revoke the role {row.role} from the group {row.group.name}"
    record(by=by, why=sentence)
    taken = (Grant(row.role, row.registry, row.subject_pattern),)
    change = RightsChange(
        "remove_group_grant", {"grant_id": grant_id}, sentence, users=_members(row.group), grants=taken, removes=True
    )
    guard(change, by)
    row.delete()
    keep_an_admin(by, before)


@transaction.atomic
def add_owner(*, subject_pattern: str, by: Actor, registry: str = "", username: str = "", group: str = "") -> int:
    """Make a person or a group owner of the subjects that match a pattern, and return the ownership's id.

    Raises NotSignedIn, NotAllowed, NotFound, and InvalidInput unless exactly one of the two is named.
    """
    require(by, "people.manage")
    if bool(username) == bool(group):
        raise InvalidInput("An owner is either a person or a group. Choose one of the two.")
    registry, subject_pattern = checked_scope(registry, subject_pattern, by)
    owner = {"user": person_named(username), "group": None} if username else {"user": None, "group": group_named(group)}
    sentence = f"make {username or f'the group {group}'} owner of {describe_scope(registry, subject_pattern)}"
    record(by=by, why=sentence)
    if not Ownership.objects.filter(registry=registry, subject_pattern=subject_pattern, **owner).exists():
        values = {"subject_pattern": subject_pattern, "registry": registry, "username": username, "group": group}
        guard(RightsChange("add_owner", values, sentence, owner=True), by)
    row, _ = Ownership.objects.get_or_create(registry=registry, subject_pattern=subject_pattern, **owner)
    return row.pk


@transaction.atomic
def remove_owner(*, ownership_id: int, by: Actor) -> None:
    """End an ownership. Raises NotSignedIn, NotAllowed, NotFound."""
    require(by, "people.manage")
    row = Ownership.objects.select_related("user", "group").filter(pk=ownership_id).first()
    if row is None:
        raise NotFound(f"Ownership {ownership_id} not found.")
    record(by=by, why=f"end the ownership of {row.user or row.group} of {row.subject_pattern}")
    row.delete()


@transaction.atomic
def set_mapped_groups(*, user: User, claimed: set[str], mapped: set[str], by: Actor) -> None:
    """Put a person into the claimed groups and out of the other mapped ones; groups that aren't mapped stay.

    Checks no permission: an issuer has just identified the person with these claims. Makes missing groups.
    """
    has = set(user.groups.filter(name__in=mapped).values_list("name", flat=True))
    if has == claimed:
        return
    record(by=by, why="groups from the identity provider")
    user.groups.remove(*Group.objects.filter(name__in=has - claimed))
    user.groups.add(*(Group.objects.get_or_create(name=name)[0] for name in claimed - has))


def _members(group: Group) -> tuple[int, ...]:
    return tuple(User.objects.filter(groups=group).values_list("pk", flat=True))


def _leaving(
    action: str, values: Mapping[str, Any], sentence: str, group: Group, users: tuple[int, ...]
) -> RightsChange:
    """Describe the change in which people lose what a group gives them."""
    rows = GroupGrant.objects.filter(group=group).values_list("role", "registry", "subject_pattern")
    grants = tuple(Grant(*row) for row in rows)
    return RightsChange(action, values, sentence, users=users, grants=grants, removes=True)


def group_named(name: str) -> Group:
    """Return the group with that name. Raises NotFound."""
    group = Group.objects.filter(name=name).first() if name.isprintable() else None
    if group is None:
        raise NotFound(f"Group {name[:150]!r} not found.")
    return group
