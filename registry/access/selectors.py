"""Lists of people, groups, owners, contacts and tokens. A token's secret can't be read back."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.conf import settings
from django.contrib.auth.models import Group
from django.db.models import F, Prefetch, Q
from django.db.models.functions import Lower
from django.utils import timezone

from registry.access.actors import (
    actor_of_token,
    actor_of_user,
    admin_names,
    anonymous_actor,
    approval_refusal,
    digest,
    full_admins,
    grants_of,
)
from registry.access.models import ApiToken, GroupGrant, Ownership, RoleGrant, User
from registry.access.name_patterns import name_pattern
from registry.access.permission_filters import place_words
from registry.frozen_rows import row_info

__all__ = [
    "ContactPerson",
    "GrantInfo",
    "GroupInfo",
    "Owner",
    "Owners",
    "OwnershipInfo",
    "PersonInfo",
    "TokenInfo",
    "actor_of_token",
    "actor_of_user",
    "address_key",
    "admin_names",
    "anonymous_actor",
    "approval_refusal",
    "digest",
    "full_admins",
    "grants_of",
    "list_groups",
    "list_ownerships",
    "list_people",
    "list_tokens",
    "owner_names",
    "owners_of",
    "owners_of_many",
    "patterns_of",
    "people_named",
]


def address_key(address: str) -> str:
    """An email address in the form in which addresses are compared; "" for none.

    Capital letters, and letters that stand for others such as the Kelvin sign for K, don't make another address.
    """
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", address).casefold()).strip()


MAX_PEOPLE = 500


class _Scoped:
    """What is limited to a registry ("": all) and the subjects of a pattern."""

    registry: str
    subject_pattern: str

    @property
    def where(self) -> str:
        """The scope in words."""
        return place_words(self.registry, self.subject_pattern)


@dataclass(frozen=True)
class GrantInfo(_Scoped):
    """A role in a registry ("": all) for the subjects of a pattern; `group` is the group that has it, "" for an own role."""

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
class OwnershipInfo(_Scoped):
    """The owner of the subjects of a pattern: exactly one of `username` and `group` is set."""

    ownership_id: int
    registry: str
    subject_pattern: str
    username: str
    group: str


def list_people(*, text: str = "") -> list[PersonInfo]:
    """People by name whose name or address contains the text, 500 at most; a constant number of queries."""
    people = User.objects.order_by("username")
    if text and text.isprintable():
        people = people.filter(username__icontains=text) | people.filter(email__icontains=text)
    groups = Prefetch("groups", queryset=Group.objects.order_by("name").prefetch_related("role_grants"))
    rows = list(people.prefetch_related("role_grants", groups)[:MAX_PEOPLE])
    # identities (issuer, subject) are in allauth's table, which this package knows only by name
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


@dataclass(frozen=True, order=True)
class Owner:
    """An active person who owns a subject; `groups` are those through which they do, empty for a direct owner."""

    username: str
    user_id: int
    groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class Owners:
    """The owners of a subject: the people, by name, and the owning groups (empty ones too)."""

    people: tuple[Owner, ...] = ()
    groups: tuple[str, ...] = ()

    @property
    def user_ids(self) -> frozenset[int]:
        """The people's numbers."""
        return frozenset(owner.user_id for owner in self.people)


def owners_of(registry: str, subject: str) -> Owners:
    """The owners of a subject, by its qualified name: everybody with an ownership whose pattern matches. One query."""
    return owners_of_many(registry, [subject])[subject]


#: of an ownership: its pattern and its owner, a person or each member of a group
_OWNING: Final = (
    "subject_pattern",
    *("group__name", "user", "user__username", "user__is_active"),
    *("group__user", "group__user__username", "group__user__is_active"),
)


def owners_of_many(registry: str, subjects: Iterable[str]) -> dict[str, Owners]:
    """The owners of each of the subjects, in one query however many they are."""
    rules = list(Ownership.objects.filter(registry__in=("", registry)).values_list(*_OWNING))
    return {
        subject: _together([owner for pattern, *owner in rules if name_pattern(pattern).allows(subject)])
        for subject in subjects
    }


def owner_names(registry: str) -> list[tuple[str, str]]:
    """The owners of anything in a registry, as (`user` or `group`, name), sorted; one query."""
    rules = Ownership.objects.filter(registry__in=("", registry)).select_related("user", "group")
    return sorted({("group", rule.group.name) if rule.group else ("user", str(rule.user)) for rule in rules})


def patterns_of(registry: str, kind: str, name: str) -> tuple[str, ...]:
    """The patterns that a `user` owns, directly or through a group, or a `group` owns; none if unknown; one query."""
    if kind not in ("user", "group") or "\0" in name:
        return ()
    rules = Ownership.objects.filter(registry__in=("", registry))
    whose = Q(group__name=name) if kind == "group" else Q(user__username=name) | Q(group__user__username=name)
    return tuple(sorted(set(rules.filter(whose).values_list("subject_pattern", flat=True))))


def patterns_by_owner(registry: str) -> dict[tuple[str, str], tuple[str, ...]]:
    """(`user` or `group`, name) → the patterns they own in a registry, as `patterns_of` gives them; two queries."""
    rules = list(Ownership.objects.filter(registry__in=("", registry)).select_related("user", "group"))
    members = User.objects.filter(groups__in={rule.group_id for rule in rules if rule.group_id})
    of_group: dict[int, list[str]] = {}
    for group, name in members.values_list("groups", "username"):
        of_group.setdefault(group, []).append(name)
    named = {("group", rule.group.name) if rule.group else ("user", str(rule.user)) for rule in rules}
    patterns_of_owner: dict[tuple[str, str], set[str]] = {owner: set() for owner in named}
    for rule in rules:
        whose = [("group", rule.group.name)] if rule.group else [("user", str(rule.user))]
        whose += [("user", name) for name in of_group.get(rule.group_id or 0, ())]
        for owner in whose:
            if owner in patterns_of_owner:
                patterns_of_owner[owner].add(rule.subject_pattern)
    return {owner: tuple(sorted(patterns)) for owner, patterns in sorted(patterns_of_owner.items())}


def all_patterns(registry: str) -> tuple[str, ...]:
    """The patterns of all ownerships in a registry; one query."""
    rules = Ownership.objects.filter(registry__in=("", registry))
    return tuple(rules.order_by("subject_pattern").values_list("subject_pattern", flat=True).distinct())


def _together(rules: list[list[Any]]) -> Owners:
    """The owners of a subject, from the columns of `_OWNING` after the pattern."""
    people: dict[int, tuple[str, set[str]]] = {}
    named: set[int] = set()
    for group, *person, member, member_name, is_active_member in rules:
        number, username, is_active = person if group is None else (member, member_name, is_active_member)
        if is_active:
            people.setdefault(number, (username, set()))[1].add(group)
            named |= {number} if group is None else set()
    owners = (
        Owner(username, number, () if number in named else tuple(sorted(groups)))
        for number, (username, groups) in people.items()
    )
    return Owners(
        people=tuple(sorted(owners)), groups=tuple(sorted({group for group, *_ in rules if group is not None}))
    )


@dataclass(frozen=True, order=True)
class ContactPerson:
    """An active person whom a contact names."""

    username: str
    user_id: int


def people_named(contacts: Iterable[str]) -> dict[str, tuple[ContactPerson, ...]]:
    """Contact → the active people whom it names, with an identity of the issuer if there is one; two queries.

    A contact may name several accounts, e-mail addresses or groups, separated by commas, in any case. Unknown names, such
    as a chat channel, name nobody.
    """
    keys = {contact: _keys(contact) for contact in contacts}
    names = sorted({key for names_of_contact in keys.values() for key in names_of_contact})
    if not names:
        return dict.fromkeys(keys, ())
    active = User.objects.filter(is_active=True)
    if settings.OIDC_ISSUER:
        active = active.filter(socialaccount__isnull=False)
    people: dict[str, set[ContactPerson]] = {}
    own = active.alias(name=Lower("username"), mail=Lower("email")).filter(Q(name__in=names) | Q(mail__in=names))
    for number, username, email in own.values_list("pk", "username", "email").distinct():
        for key in (username.lower(), email.lower()):
            people.setdefault(key, set()).add(ContactPerson(username, number))
    members = active.annotate(group_key=Lower("groups__name")).filter(group_key__in=names)
    for key, number, username in members.values_list("group_key", "pk", "username"):
        people.setdefault(key, set()).add(ContactPerson(username, number))
    return {
        contact: tuple(sorted({one for key in names_of_contact for one in people.get(key, ())}))
        for contact, names_of_contact in keys.items()
    }


def _keys(contact: str) -> set[str]:
    """The names in a contact, in lower case; unprintable ones are left out."""
    parts = (part.strip().lower() for part in re.split("[,;]", contact))
    names = {part.removeprefix("mailto:").removeprefix("@").strip() for part in parts}
    return {part for part in names if part and part.isprintable()}


MAX_TOKENS = 500


@dataclass(frozen=True)
class TokenInfo(_Scoped):
    """A token; `state` is `live`, `expired` or `revoked`."""

    token_id: int
    username: str
    name: str
    scope: str
    registry: str
    subject_pattern: str
    state: str
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None
    last_used_at: datetime | None
    last_used_from: str


def list_tokens(*, user_id: int | None) -> list[TokenInfo]:
    """A person's tokens, None for everybody's: 500 at most, live ones and then the newest first, in one query."""
    now = timezone.now()
    rows = ApiToken.objects.select_related("user")
    if user_id is not None:
        rows = rows.filter(user_id=user_id)
    tokens = [_info(row, now) for row in rows.order_by(F("revoked_at").desc(nulls_first=True), "-pk")[:MAX_TOKENS]]
    return sorted(tokens, key=lambda info: info.state != "live")


def _info(row: ApiToken, now: datetime) -> TokenInfo:
    state = "revoked" if row.revoked_at else "expired" if row.expires_at <= now else "live"
    return row_info(TokenInfo, row, token_id=row.pk, username=row.user.username, state=state)
