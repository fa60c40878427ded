"""Making people, giving and taking roles, shutting accounts."""

from __future__ import annotations

import secrets

from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import connection, transaction

from registry.access import guard
from registry.access.guard import RightsChange
from registry.access.models import RoleGrant, User
from registry.access.roles import Actor, Grant, require
from registry.access.selectors import full_admins, grants_of
from registry.access.services.places import checked_place, checked_role, place_words
from registry.audit.services import record
from registry.errors import Conflict, InvalidInput, NotFound

# One at a time changes who is an admin: two admins who remove each other at once would leave none.
_ADMINS_LOCK = 7_311_001


@transaction.atomic
def ensure_person(*, username: str, role: str, by: Actor) -> str | None:
    """Make a user with a role in all registries; gives the new password, or None where the user is there already.

    For the first start and for tests: it asks for no right. Raises InvalidInput for a role that doesn't exist.
    """
    checked_role(role)
    record(by=by, why=f"give {username} the role {role}")
    user, created = User.objects.get_or_create(username=username)
    RoleGrant.objects.get_or_create(user=user, role=role, registry="", subject_pattern="*")
    return _new_password(user) if created else None


@transaction.atomic
def add_person(*, username: str, by: Actor) -> str:
    """Make an account without any role, and give its password, this one time.

    Raises NotSignedIn, NotAllowed, InvalidInput for a name that can't be, Conflict for one that is taken.
    """
    require(by, "people.manage")
    username = username.strip()
    try:
        UnicodeUsernameValidator()(username)
    except ValidationError as error:
        raise InvalidInput("A user name has letters, digits and @ . + - _ only.") from error
    if len(username) > 150:
        raise InvalidInput("A user name has at most 150 characters.")
    record(by=by, why=f"add {username}")
    user, created = User.objects.get_or_create(username=username)
    if not created:
        raise Conflict(f"There is somebody named {username} already.")
    return _new_password(user)


@transaction.atomic
def grant(*, username: str, role: str, by: Actor, registry: str = "", subject_pattern: str = "*") -> int:
    """Give a person a role somewhere, and give the grant's number; one that they have stays.

    Raises NotSignedIn, NotAllowed, InvalidInput, NotFound.
    """
    require(by, "people.manage")
    role = checked_role(role)
    registry, subject_pattern = checked_place(registry, subject_pattern)
    user = person_named(username)
    sentence = f"give {username} the role {role} for {place_words(registry, subject_pattern)}"
    record(by=by, why=sentence)
    values = {"username": username, "role": role, "registry": registry, "subject_pattern": subject_pattern}
    given = (Grant(role, registry, subject_pattern),)
    if not RoleGrant.objects.filter(user=user, role=role, registry=registry, subject_pattern=subject_pattern).exists():
        guard.ask(RightsChange("grant", values, sentence, users=(user.pk,), grants=given), by)
    row, _ = RoleGrant.objects.get_or_create(user=user, role=role, registry=registry, subject_pattern=subject_pattern)
    return row.pk


@transaction.atomic
def revoke_grant(*, grant_id: int, by: Actor) -> None:
    """Take a role away.

    Raises NotSignedIn, NotAllowed, NotFound, SecondPersonRequired, and Conflict where keep_an_admin does.
    """
    require(by, "people.manage")
    lock_admins()
    row = RoleGrant.objects.select_related("user").filter(pk=grant_id).first()
    if row is None:
        raise NotFound(f"There is no grant {grant_id}.")
    before = full_admins()
    place = place_words(row.registry, row.subject_pattern)
    sentence = f"take the role {row.role} for {place} from {row.user.get_username()}"
    record(by=by, why=sentence)
    taken = (Grant(row.role, row.registry, row.subject_pattern),)
    change = RightsChange(
        "revoke_grant", {"grant_id": grant_id}, sentence, users=(row.user_id,), grants=taken, removes=True
    )
    guard.ask(change, by)
    row.delete()
    keep_an_admin(by, before)


@transaction.atomic
def set_active(*, username: str, active: bool, by: Actor) -> None:
    """Shut an account, or open it again. A shut one can't sign in; its sessions and tokens end with the next call.

    Raises NotSignedIn, NotAllowed, NotFound, and Conflict where keep_an_admin does or for one's own account.
    """
    require(by, "people.manage")
    lock_admins()
    user = person_named(username)
    if user.pk == by.user_id and not active:
        raise Conflict("Nobody shuts their own account; another admin can.")
    if user.is_active == active:
        return
    before = full_admins()
    sentence = f"{'open' if active else 'shut'} the account {username}"
    record(by=by, why=sentence)
    guard.ask(
        RightsChange(
            "set_active",
            {"username": username, "active": active},
            sentence,
            # a shut account counts as nobody's until it is open
            users=() if active else (user.pk,),
            grants=tuple(grants_of(user.pk)),
            groups=tuple(user.groups.values_list("name", flat=True)) if active else (),
            owner=active and user.ownerships.exists(),
            removes=not active,
        ),
        by,
    )
    user.is_active = active
    user.save(update_fields=["is_active"])
    keep_an_admin(by, before)


@transaction.atomic
def set_email(*, username: str, email: str, by: Actor) -> None:
    """Where a person's mail goes; "" for nowhere. Raises NotSignedIn, NotAllowed, NotFound, InvalidInput."""
    require(by, "people.manage")
    user, email = person_named(username), email.strip()
    if email:
        try:
            validate_email(email)
        except ValidationError as error:
            raise InvalidInput("That is no address of mail.", field="email") from error
    if len(email) > 254:
        raise InvalidInput("An address of mail has at most 254 characters.", field="email")
    sentence = f"{'change' if email else 'remove'} the address of mail of {username}"
    record(by=by, why=sentence)
    values = {"username": username, "email": email}
    if user.email.strip().casefold() != email.casefold():
        apart, joined = _others_with(user.email, user), _others_with(email, user)
        if apart:
            guard.ask(RightsChange("set_email", values, sentence, accounts=(user.pk, *apart)), by)
        if joined:
            guard.ask(RightsChange("set_email", values, sentence, joined=(user.pk, *joined)), by)
    user.email = email
    user.save(update_fields=["email"])


def _others_with(email: str, user: User) -> tuple[int, ...]:
    """The other accounts with this address; two accounts with one address are one person's."""
    if not email.strip():
        return ()
    return tuple(User.objects.filter(email__iexact=email.strip()).exclude(pk=user.pk).values_list("pk", flat=True))


def person_named(username: str) -> User:
    """The person of that name, active or not. Raises NotFound."""
    user = User.objects.filter(username=username).first() if username.isprintable() else None
    if user is None:
        raise NotFound(f"There is nobody named {username[:150]!r}.")
    return user


def lock_admins() -> None:
    """Let nobody else change who is an admin until this transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_ADMINS_LOCK])


def keep_an_admin(by: Actor, before: set[int]) -> None:
    """Raise Conflict if the change leaves no active admin of everything, or took that right from who made it."""
    after = full_admins()
    if before and not after:
        raise Conflict("That would leave no admin. Make somebody else an admin of all registries first.")
    if by.user_id in before and by.user_id not in after:
        raise Conflict("That would take your own admin right away; another admin can.")


def _new_password(user: User) -> str:
    password = secrets.token_urlsafe(12)
    user.set_password(password)
    user.save(update_fields=["password"])
    return password
