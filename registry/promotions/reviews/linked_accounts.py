"""Which accounts count as a second person: not those of the same person, nor those that one person alone let in.

Accounts with one e-mail address belong to one person, and so do those that an admin has linked. A person who
adds an account sees its first password, and could request with one account and approve with the other. So in closed
environments the two count as one person until somebody else confirms that they aren't, by unlinking them.

A person who opens break-glass could give a second account the right to review, confirm the break-glass with it, and
approve their own changes. So rights given within a day after a break-glass was opened and used don't count in a closed
environment until it is confirmed, whoever gave them: by that time another account could have the right to give, or the
environment could be open. Roles to review that environment don't count however late they were given, because the other
reviewers could have been removed under it. The first other reviewer, who can be added by an admin alone,
otherwise counts after a day. Not affected are rights that another person approved, groups from the identity provider,
and rights given by programs on the server. The audit has who gave what and when, and the application can't change it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final

from django.db import connection, transaction
from django.utils import timezone

from registry.access.account_names import address_key
from registry.access.models import User
from registry.access.roles import ACTIONS, Actor, Grant, RightsChange, guard, may, require
from registry.access.selectors import approval_refusal
from registry.audit.context import record
from registry.errors import InvalidInput, NotFound, WrongState
from registry.promotions.environments.change_guard import FIRST_REVIEWER, LOOSENS
from registry.promotions.environments.locking import readable
from registry.promotions.environments.selectors import CONFIRM_WITHIN
from registry.promotions.models import SamePerson

REVIEW: Final = "promotion.review"
FIRST_WAITS: Final = timedelta(days=1)

#: the events that one person alone caused: all within a day after an unconfirmed break-glass; later ones by which
#: somebody became a reviewer of its environment; and those of the last day that added the first other reviewer
_EVENTS: Final = """
    passages AS (
        SELECT g.id, r.name, g.opened_at AS since, g.opened_at + %s AS day_over
        FROM promotions_breakglass g JOIN promotions_environment v ON v.id = g.environment_id
        JOIN subjects_registry r ON r.id = v.registry_id WHERE g.confirmed_at IS NULL AND g.uses > 0
        UNION ALL SELECT NULL, '', %s::timestamptz - %s, 'infinity'
    ), events AS (
        SELECT e.*, p.id AS glass, p.name AS place FROM passages p JOIN audit_auditevent e ON e.at >= p.since
        AND (
            e.at < p.day_over OR strpos(e.why, %s || p.name || ';') > 0 OR e.why NOT LIKE %s AND (
                e.after ->> 'role' = ANY(%s) AND e.after ->> 'registry' IN ('', p.name)
                OR e."table" = 'access_user_groups' AND EXISTS (
                    SELECT FROM access_groupgrant t WHERE t.group_id = (e.after ->> 'group_id')::bigint
                    AND t.role = ANY(%s) AND t.registry IN ('', p.name)
                )))
        WHERE {condition} AND e.door NOT IN ('command', 'task', 'sql')
        AND (e.why NOT LIKE %s OR e.why LIKE %s) AND e.why NOT LIKE %s AND (p.id IS NOT NULL OR e.why LIKE %s)
    )"""
_GIVEN: Final = _EVENTS.format(
    condition="""(
        e.operation = 'INSERT'
        AND e."table" IN ('access_rolegrant', 'access_groupgrant', 'access_user_groups', 'access_ownership')
        OR e.operation = 'UPDATE' AND e."table" = 'access_user'
        AND (e.after ->> 'is_active')::boolean AND NOT (e.before ->> 'is_active')::boolean
        AND NOT EXISTS (
            SELECT FROM audit_auditevent later WHERE later."table" = e."table" AND later.row_id = e.row_id
            AND later.id > e.id AND later.before -> 'is_active' <> later.after -> 'is_active'
        ))"""
)
_ACCOUNTS: Final = f"""
WITH {_GIVEN}, doubtful AS (SELECT "table" AS kind, row_id::bigint AS id, glass, place FROM events),
rights AS (
    SELECT user_id, role, registry, subject_pattern, 'access_rolegrant' AS kind, id, NULL::bigint AS membership
    FROM access_rolegrant
    UNION ALL SELECT m.user_id, g.role, g.registry, g.subject_pattern, 'access_groupgrant', g.id, m.id
    FROM access_groupgrant g JOIN access_user_groups m ON m.group_id = g.group_id
    UNION ALL SELECT m.user_id, '', '', '', '', NULL, m.id FROM access_user_groups m
    UNION ALL SELECT coalesce(o.user_id, m.user_id), '', '', '', 'access_ownership', o.id, m.id
    FROM access_ownership o LEFT JOIN access_user_groups m ON m.group_id = o.group_id
    UNION ALL SELECT id, '', '', '', 'access_user', id, NULL FROM access_user
)
SELECT r.user_id, max(d.glass), max(d.place), bool_or(d.kind = 'access_user'),
    jsonb_agg(jsonb_build_array(r.role, r.registry, r.subject_pattern)) FILTER (WHERE d.kind IS NULL AND r.role <> '')
FROM rights r LEFT JOIN doubtful d
    ON d.kind = r.kind AND d.id = r.id OR d.kind = 'access_user_groups' AND d.id = r.membership
WHERE r.user_id IS NOT NULL GROUP BY r.user_id HAVING bool_or(d.kind IS NOT NULL)
"""  # noqa: S608
#: accounts that are linked, or were until one person alone unlinked them, and the former addresses of accounts; with
#: the addresses of these accounts, which connect them with further ones
_LINKS: Final = f"""
WITH {
    _EVENTS.format(
        condition='''(
        e.operation = 'DELETE' AND e."table" = 'promotions_sameperson'
        OR e.operation = 'UPDATE' AND e."table" = 'access_user' AND e.before -> 'email' <> e.after -> 'email')'''
    )
}, links AS (
    SELECT one_id, other_id, '' AS email, is_added FROM promotions_sameperson
    UNION ALL SELECT (before ->> 'one_id')::bigint, (before ->> 'other_id')::bigint, '',
        coalesce((before ->> 'is_added')::boolean, false) FROM events WHERE operation = 'DELETE'
    UNION ALL SELECT row_id::bigint, NULL, before ->> 'email', false FROM events WHERE operation = 'UPDATE'
)
SELECT one_id, other_id, email, is_added FROM links
UNION ALL SELECT id, NULL, email, false FROM access_user
WHERE email <> '' AND id IN (SELECT one_id FROM links UNION ALL SELECT other_id FROM links)
"""  # noqa: S608
#: accounts by name, the links, and whether there is any right that doesn't count, so that `_ACCOUNTS` is rarely needed;
#: identities (issuer, subject) are in allauth's table, which this package knows only by name
_FACTS: Final = f"""
SELECT (
    SELECT jsonb_agg(jsonb_build_array(u.id, u.username, u.email, u.is_active, EXISTS (
        SELECT FROM socialaccount_socialaccount s WHERE s.user_id = u.id)) ORDER BY u.username)
    FROM access_user u WHERE u.id = ANY(%s)
), (SELECT jsonb_agg(jsonb_build_array(one_id, other_id, email, is_added)) FROM ({_LINKS}) AS connected),
EXISTS (WITH {_GIVEN} SELECT FROM events)
"""  # noqa: S608


def parameters() -> list[Any]:
    """Return the parameters of a query with the events, in order."""
    return [
        CONFIRM_WITHIN,
        timezone.now(),
        FIRST_WAITS,
        f"{FIRST_REVIEWER} ",
        f"{LOOSENS}: break-glass %",  # a later one, whose own day counts
        sorted(ACTIONS[REVIEW]),
        sorted(ACTIONS[REVIEW]),
        f"{LOOSENS}: change %",
        f"_%{LOOSENS}: %",  # besides the approval, one person alone loosened another environment
        "groups from the identity provider%",
        f"%{LOOSENS}: {FIRST_REVIEWER}%",
    ]


@dataclass(frozen=True)
class Account:
    """An account; `is_identified` says whether it has an identity of the issuer."""

    number: int
    username: str
    email: str
    is_active: bool
    is_identified: bool


@dataclass(frozen=True)
class Accounts:
    """Accounts by name. `persons` maps each to a number that all accounts of its person share in closed environments.

    `persons_when_open` is the same for open ones, where an added account isn't its maker's.
    """

    rows: tuple[Account, ...]
    persons: Mapping[int, int]
    persons_when_open: Mapping[int, int]
    any_unconfirmed: bool

    def persons_in(self, *, is_closed: bool) -> Mapping[int, int]:
        """Return account → the number of its person, in closed environments or in open ones."""
        return self.persons if is_closed else self.persons_when_open

    def unconfirmed(self) -> dict[int, UnconfirmedAccount]:
        """Return all accounts with rights that don't count; a query only if there is one."""
        return unconfirmed_accounts() if self.any_unconfirmed else {}


@dataclass(frozen=True)
class UnconfirmedAccount:
    """An account with a right that doesn't count yet.

    `grants` are its other roles, which count. `break_glass` and `place` are the last break-glass after which it got the
    right, with its environment; None for the first other reviewer.
    """

    grants: tuple[Grant, ...]
    break_glass: int | None
    place: str

    def counts_in(self, registry: str) -> bool:
        """Return whether the account may review everything there without the right that doesn't count."""
        return reviews_all(self.grants, registry)

    def refusal(self, name: str, registry: str) -> str:
        """Return why the role of the account with that name doesn't count there, and what would help, as sentences."""
        return f"The role of {name} in {registry} doesn't count for this. {self._reason}"

    @property
    def _reason(self) -> str:
        if self.break_glass is None:
            return "An admin added them alone as the first other reviewer. The role counts a day after that."
        return (
            f"It was given after break-glass {self.break_glass} was opened in {self.place}, and counts once another person"
            " has confirmed that. If the day for this is over, revoke the role and request it with another person's"
            " approval. If nobody else can approve, an operator can give the role on the server, as described in the guide"
            " to promotions."
        )


def unconfirmed_accounts() -> dict[int, UnconfirmedAccount]:
    """Return the accounts with rights that don't count for decisions on closed environments; one query."""
    with connection.cursor() as cursor:
        cursor.execute(_ACCOUNTS, parameters())
        rows = cursor.fetchall()
    return {
        number: UnconfirmedAccount(
            () if reopened else tuple(Grant(*scope) for scope in json.loads(grants or "[]")), glass, place
        )
        for number, glass, place, reopened, grants in rows
    }


def unconfirmed_reviewers(registry: str) -> dict[int, UnconfirmedAccount]:
    """Return the accounts whose right to review a registry doesn't count; one query."""
    return {number: account for number, account in unconfirmed_accounts().items() if not account.counts_in(registry)}


def reviews_all(grants: Sequence[Grant], registry: str) -> bool:
    """Return whether these roles allow reviewing everything in a registry."""
    somebody = Actor("somebody", "task", grants=tuple(grants))
    return all(may(somebody, action, registry=registry) for action in ("schema.read", REVIEW))


def accounts_of(numbers: Collection[int], joined: Sequence[int] = ()) -> Accounts:
    """Return the existing accounts with these numbers, and which of them belong to one person; one query.

    `joined` are further accounts that count as one person. Accounts that one person alone unlinked still count
    together. Accounts can also be connected through others, which needn't be in `numbers`.
    """
    with connection.cursor() as cursor:
        cursor.execute(_FACTS, [list(numbers), *parameters(), *parameters()])
        accounts, links, any_unconfirmed = cursor.fetchone()
    rows, linked = tuple(Account(*row) for row in json.loads(accounts or "[]")), json.loads(links or "[]")
    persons = _persons(rows, linked, joined)
    stated = [link for link in linked if not link[3]]
    when_open = persons if len(stated) == len(linked) else _persons(rows, stated, joined)
    return Accounts(rows, persons, when_open, any_unconfirmed)


def _persons(rows: Sequence[Account], links: Sequence[Sequence[Any]], joined: Sequence[int]) -> dict[int, int]:
    above: dict[int, int] = {}

    def top(number: int) -> int:
        while above.setdefault(number, number) != number:
            number = above[number]
        return number

    first: dict[str, int] = {}
    for number, address in [
        *((row.number, row.email) for row in rows),
        *((one, address) for one, _, address, _ in links),
    ]:
        key = address_key(address)
        if key:
            above[top(number)] = top(first.setdefault(key, number))
    for one, other in [*((one, other) for one, other, *_ in links if other), *pairwise(joined)]:
        above[top(other)] = top(one)
    return {row.number: top(row.number) for row in rows}


def persons_of(numbers: Collection[int]) -> Mapping[int, int]:
    """Return account → a number that all accounts of its person share in a closed environment; one query."""
    return accounts_of(numbers).persons


def is_same_person(one: int, other: int, *, is_closed: bool = True) -> bool:
    """Return whether two accounts belong to one person, in a closed environment or in an open one."""
    persons = accounts_of((one, other)).persons_in(is_closed=is_closed)
    return one == other or persons[one] == persons[other]


def link_in_words(one: int, other: int) -> str:
    """Return why two accounts count as one person, as a sentence."""
    row = SamePerson.objects.filter(one__in=(one, other), other__in=(one, other), is_added=True).first()
    if row is None:
        return "Their accounts are linked or have the same email address."
    return (
        f"{row.one} added the account {row.other}, so in a closed environment they count as one person until another"
        " admin unlinks them on People and groups."
    )


def link_added_account(user_id: int, by: Actor) -> None:
    """Link a new account with its maker's in closed environments; a program on the server has no account to link."""
    if by.user_id is None:
        return
    SamePerson.objects.create(
        one_id=by.user_id,
        other_id=user_id,
        reason=f"{by.name} added the account and saw its first password.",
        stated_by=by.name[:150],
        is_added=True,
    )


@dataclass(frozen=True)
class SamePersonInfo:
    """A statement about two accounts: why, by whom and when.

    If `one` only added the account `other`, the statement `is_added`, and counts only in closed environments.
    """

    id: int
    one: str
    other: str
    reason: str
    stated_by: str
    stated_at: datetime
    is_added: bool = False


def same_person_statements() -> list[SamePersonInfo]:
    """Return all statements, newest first; one query."""
    columns = ("id", "one__username", "other__username", "reason", "stated_by", "stated_at", "is_added")
    return [SamePersonInfo(*row) for row in SamePerson.objects.order_by("-pk").values_list(*columns)]


MANAGE = "people.manage"


@transaction.atomic
def state_same_person(*, one: str, other: str, reason: str, by: Actor) -> int:
    """State that two accounts, by name, are one person if a second person is needed; returns the statement's number.

    Raises NotAllowed, NotSignedIn, InvalidInput, NotFound for an unknown name, WrongState if it is stated already, and
    SecondPersonRequired if it leaves nobody else to review for a closed environment.
    """
    require(by, MANAGE)
    why = readable(reason, "reason")
    if one == other:
        raise InvalidInput("Name two different accounts.", field="other")
    first, second = sorted((_account(one), _account(other)), key=lambda user: user.pk)
    sentence = f"link the accounts {first} and {second}"
    record(by=by, why=f"{sentence}: {why}")
    values = {"one": one, "other": other, "reason": reason}
    guard(RightsChange("state_same_person", values, sentence, joined=(first.pk, second.pk)), by)
    values_of_row = {"reason": why, "stated_by": by.name[:150], "is_added": False}
    row, made = SamePerson.objects.get_or_create(one=first, other=second, defaults=values_of_row)
    if not made and not row.is_added:
        raise WrongState(f"{first} and {second} are already linked, by {row.stated_by}.")
    if not made:
        SamePerson.objects.filter(pk=row.pk).update(**values_of_row)
    return row.pk


@transaction.atomic
def withdraw_same_person(*, statement_id: int, by: Actor) -> None:
    """Withdraw a statement, so that the accounts count as two people again.

    If an account was added, somebody other than the person who added it can confirm alone that it belongs to another
    person. Raises NotAllowed, NotSignedIn, NotFound, SecondPersonRequired.
    """
    require(by, MANAGE)
    row = SamePerson.objects.select_for_update().filter(pk=statement_id).first()
    if row is None:
        raise NotFound(f"Account link {statement_id} not found.", statement=statement_id)
    sentence = f"unlink the accounts {row.one} and {row.other}"
    record(by=by, why=sentence)
    accounts = (row.one_id, row.other_id)
    if not (row.is_added and _is_second_person(row.one_id, by)):
        guard(RightsChange("withdraw_same_person", {"statement_id": statement_id}, sentence, accounts=accounts), by)
    row.delete()


def _is_second_person(first: int, by: Actor) -> bool:
    """Return whether the actor is certainly another person than that account's, with rights that count everywhere."""
    if by.user_id is None or approval_refusal(by) or is_same_person(by.user_id, first):
        return False
    return unconfirmed_accounts().keys().isdisjoint((by.user_id,))


def _account(name: str) -> User:
    user = User.objects.filter(username=name).first() if "\0" not in name else None
    if user is None:
        raise NotFound(f"Account {name[:150]!r} not found.", username=name[:150])
    return user
