"""Accounts that belong to one person: those with one e-mail address, and those that an administrator has linked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from django.db import transaction

from registry.access.models import User
from registry.access.rights_changes import RightsChange, guard
from registry.access.roles import Actor, require
from registry.audit.context import record
from registry.errors import InvalidInput, NotFound, WrongState
from registry.promotions.environments.services import readable
from registry.promotions.models import SamePerson


def address_key(address: str) -> str:
    """An e-mail address in the form that is compared; "" for none."""
    return address.strip().casefold()


def persons_of(addresses: Mapping[int, str], joined: Sequence[int] = ()) -> dict[int, int]:
    """Account → a number that all accounts of its person share, from the address of each account; one query.

    `joined` are further accounts that count as one person.
    """
    above = {number: number for number in addresses}

    def top(number: int) -> int:
        while above.setdefault(number, number) != number:
            number = above[number]
        return number

    first: dict[str, int] = {}
    for number, address in addresses.items():
        key = address_key(address)
        if key:
            above[top(number)] = top(first.setdefault(key, number))
    for one, other in [*SamePerson.objects.values_list("one", "other"), *pairwise(joined)]:
        above[top(other)] = top(one)
    return {number: top(number) for number in addresses}


def is_same_person(one: int, other: int) -> bool:
    """Whether two accounts belong to one person."""
    persons = persons_of(dict(User.objects.filter(pk__in=(one, other)).values_list("pk", "email")))
    return one == other or persons[one] == persons[other]


@dataclass(frozen=True)
class SamePersonInfo:
    """A statement about two accounts: why, by whom and when."""

    id: int
    one: str
    other: str
    reason: str
    stated_by: str
    stated_at: datetime


def same_person_statements() -> list[SamePersonInfo]:
    """All statements, newest first; one query."""
    columns = ("id", "one__username", "other__username", "reason", "stated_by", "stated_at")
    return [SamePersonInfo(*row) for row in SamePerson.objects.order_by("-pk").values_list(*columns)]


MANAGE = "people.manage"


@transaction.atomic
def state_same_person(*, one: str, other: str, reason: str, by: Actor) -> int:
    """State that two accounts, by name, are one person wherever a second person is needed; returns the statement's number.

    Raises NotAllowed, NotSignedIn, InvalidInput, NotFound for a name that nobody has, WrongState where it is stated, and
    SecondPersonRequired where it leaves nobody else to review for a closed environment.
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
    row, made = SamePerson.objects.get_or_create(
        one=first, other=second, defaults={"reason": why, "stated_by": by.name[:150]}
    )
    if not made:
        raise WrongState(f"{first} and {second} are already linked, by {row.stated_by}.")
    return row.pk


@transaction.atomic
def withdraw_same_person(*, statement_id: int, by: Actor) -> None:
    """Withdraw a statement: the accounts count as two people again. Raises NotAllowed, NotSignedIn, NotFound, SecondPersonRequired."""
    require(by, MANAGE)
    row = SamePerson.objects.select_for_update().filter(pk=statement_id).first()
    if row is None:
        raise NotFound(f"Account link {statement_id} not found.", statement=statement_id)
    sentence = f"unlink the accounts {row.one} and {row.other}"
    record(by=by, why=sentence)
    accounts = (row.one_id, row.other_id)
    guard(RightsChange("withdraw_same_person", {"statement_id": statement_id}, sentence, accounts=accounts), by)
    row.delete()


def _account(name: str) -> User:
    user = User.objects.filter(username=name).first() if "\0" not in name else None
    if user is None:
        raise NotFound(f"Account {name[:150]!r} not found.", username=name[:150])
    return user
