"""Lists of people, groups, owners, contacts and tokens. A token's secret can't be read back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from django.conf import settings
from django.contrib.auth.models import Group
from django.db.models import CharField, F, Prefetch, Q, QuerySet, Value
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
from registry.access.permission_filters import describe_scope
from registry.frozen_rows import row_info

__all__ = [
    "actor_of_token",
    "actor_of_user",
    "admin_names",
    "anonymous_actor",
    "approval_refusal",
    "digest",
    "full_admins",
    "grants_of",
]


MAX_PEOPLE = 500
#: (`user` or `group`, name)
_OwnerName = tuple[str, str]


class _Scoped:
    """The base of what is limited to a registry ("": all) and to subjects that match a pattern."""

    registry: str
    subject_pattern: str

    @property
    def where(self) -> str:
        """The scope in words."""
        return describe_scope(self.registry, self.subject_pattern)


@dataclass(frozen=True)
class GrantInfo(_Scoped):
    """A role in a registry ("": all) for subjects that match a pattern; `group` has it, "" for a person's own role."""

    grant_id: int
    role: str
    registry: str
    subject_pattern: str
    group: str = ""


@dataclass(frozen=True)
class PersonInfo:
    """A person; `signs_in_by` contains `password`, `oidc`, both or neither."""

    username: str
    email: str
    active: bool
    last_sign_in: datetime | None
    signs_in_by: tuple[str, ...]
    groups: tuple[str, ...]
    grants: tuple[GrantInfo, ...]


@dataclass(frozen=True)
class GroupInfo:
    """A group with its active and inactive members, its roles and its contact channel."""

    name: str
    members: tuple[str, ...]
    grants: tuple[GrantInfo, ...]
    channel: str = ""


@dataclass(frozen=True)
class OwnershipInfo(_Scoped):
    """The owner of the subjects that match a pattern: exactly one of `username` and `group` is set."""

    ownership_id: int
    registry: str
    subject_pattern: str
    username: str
    group: str


def list_people(*, text: str = "") -> list[PersonInfo]:
    """List people whose name or address contains the text, by name, 500 at most; a constant number of queries."""
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
    """List all groups by name, in a constant number of queries."""
    members = Prefetch("user_set", queryset=User.objects.order_by("username").only("username"))
    rows = Group.objects.order_by("name").select_related("channel").prefetch_related("role_grants", members)
    return [
        GroupInfo(
            name=row.name,
            members=tuple(user.username for user in row.user_set.all()),
            grants=tuple(_grants(row.role_grants.all(), row.name)),
            channel=row.channel.channel if hasattr(row, "channel") else "",
        )
        for row in rows
    ]


def list_ownerships() -> list[OwnershipInfo]:
    """List all ownerships, by registry and pattern."""
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
    """An active owner of a subject; `groups` are the owning groups that they are in, empty for a direct owner."""

    username: str
    user_id: int
    groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class Owners:
    """The owners of a subject: the people, by name, the owning groups (empty ones too), and where those talk."""

    people: tuple[Owner, ...] = ()
    groups: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()

    @property
    def user_ids(self) -> frozenset[int]:
        """The people's ids."""
        return frozenset(owner.user_id for owner in self.people)


@dataclass(frozen=True)
class Ownerships:
    """The ownerships of a registry. `rules` are pairs of a pattern and its owner, (`user` or `group`, name).

    `accounts` are those of each owner, the person or the members of the group, as (username, id, whether it is active).
    `channels` are those of the groups that have one.
    """

    rules: tuple[tuple[str, _OwnerName], ...]
    accounts: Mapping[_OwnerName, tuple[tuple[str, int, bool], ...]]
    channels: Mapping[str, str]

    @property
    def patterns(self) -> tuple[str, ...]:
        """The patterns of all ownerships."""
        return tuple(sorted({pattern for pattern, _ in self.rules}))

    @property
    def patterns_with_channel(self) -> tuple[str, ...]:
        """The patterns of the groups that have a channel."""
        return tuple(
            sorted({pattern for pattern, (kind, name) in self.rules if kind == "group" and name in self.channels})
        )

    @property
    def names(self) -> list[_OwnerName]:
        """All owners."""
        return sorted({owner for _, owner in self.rules})

    def patterns_of(self, kind: str, name: str) -> tuple[str, ...]:
        """Return the patterns that a `user` owns, directly or through a group, or a `group` owns; empty if unknown."""
        owners = self._owners_with.get(name, set()) if kind == "user" else {(kind, name)}
        return tuple(sorted({pattern for pattern, owner in self.rules if owner in owners}))

    @cached_property
    def _owners_with(self) -> dict[str, set[_OwnerName]]:
        """Username → the owners that include the account: the person and their groups."""
        owners: dict[str, set[_OwnerName]] = {}
        for owner, accounts in self.accounts.items():
            for username, *_ in accounts:
                owners.setdefault(username, set()).add(owner)
        return owners

    def of(self, subject: str) -> Owners:
        """Return the owners of a subject, by its qualified name: everybody with an ownership whose pattern matches."""
        owners = {owner for pattern, owner in self.rules if name_pattern(pattern).allows(subject)}
        groups_by_person: dict[tuple[str, int], set[str]] = {}
        for kind, name in owners:
            for username, number, is_active in self.accounts.get((kind, name), ()):
                if is_active:
                    groups_by_person.setdefault((username, number), set()).add(name if kind == "group" else "")
        people = (
            Owner(username, number, () if "" in groups else tuple(sorted(groups)))
            for (username, number), groups in groups_by_person.items()
        )
        groups = tuple(sorted(name for kind, name in owners if kind == "group"))
        channels = dict.fromkeys(self.channels[name] for name in groups if name in self.channels)
        return Owners(tuple(sorted(people)), groups, tuple(channels))


def ownerships_in(registry: str) -> Ownerships:
    """Return the ownerships for a registry, including those for all, with the members of owning groups; one query."""
    rules = Ownership.objects.filter(registry__in=("", registry)).order_by()
    people = User.objects.filter(groups__in=rules.filter(group__isnull=False).values("group"))
    columns = ("subject_pattern", "group__name", "group__channel__channel", "user__username", "user", "user__is_active")
    nothing = Value(None, CharField())
    of_people = people.values_list(nothing, "groups__name", nothing, "username", "pk", "is_active")
    owned: list[tuple[str, _OwnerName]] = []
    channels: dict[str, str] = {}
    accounts: dict[_OwnerName, set[tuple[str, int, bool]]] = {}
    for pattern, group, channel, username, number, is_active in rules.values_list(*columns).union(of_people, all=True):
        owner = ("user", username) if group is None else ("group", group)
        if channel is not None:
            channels[group] = channel
        if pattern is not None:
            owned.append((pattern, owner))
        if number is not None:
            accounts.setdefault(owner, set()).add((username, number, is_active))
    return Ownerships(tuple(owned), {owner: tuple(sorted(those)) for owner, those in accounts.items()}, channels)


def group_channels(registry: str) -> QuerySet[Ownership, Any]:
    """Return rows of NULL, a pattern in a registry and the channel of the group that owns its subjects."""
    owned = Ownership.objects.filter(registry__in=("", registry), group__channel__isnull=False).order_by()
    return owned.values_list(Value(None, CharField()), "subject_pattern", "group__channel__channel")


def owners_of(registry: str, subject: str) -> Owners:
    """Return the owners of a subject, by its qualified name, in one query."""
    return ownerships_in(registry).of(subject)


def owners_of_many(registry: str, subjects: Iterable[str]) -> dict[str, Owners]:
    """Return the owners of each subject, in one query."""
    ownerships = ownerships_in(registry)
    return {subject: ownerships.of(subject) for subject in subjects}


@dataclass(frozen=True, order=True)
class ContactPerson:
    """An active person that a contact names."""

    username: str
    user_id: int


def people_named(contacts: Iterable[str]) -> dict[str, tuple[ContactPerson, ...]]:
    """Map each contact to the active people that it names, in two queries.

    A contact may name several accounts, e-mail addresses or groups, separated by commas, in any case. Unknown names,
    such as a chat channel, match nobody. With an issuer, only people with an identity match.
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
    """Return the names in a contact, in lower case, without unprintable ones."""
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
    """List a person's tokens (None: everybody's), 500 at most, live ones first, then by newest, in one query."""
    now = timezone.now()
    rows = ApiToken.objects.select_related("user")
    if user_id is not None:
        rows = rows.filter(user_id=user_id)
    tokens = [_info(row, now) for row in rows.order_by(F("revoked_at").desc(nulls_first=True), "-pk")[:MAX_TOKENS]]
    return sorted(tokens, key=lambda info: info.state != "live")


def _info(row: ApiToken, now: datetime) -> TokenInfo:
    state = "revoked" if row.revoked_at else "expired" if row.expires_at <= now else "live"
    return row_info(TokenInfo, row, token_id=row.pk, username=row.user.username, state=state)
