"""Which accounts are one person's: those with one address of mail, and those of which an administrator has said so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from registry.access.models import User
from registry.promotions.models import SamePerson


def address_key(address: str) -> str:
    """An address of mail as it is compared; "" for none."""
    return address.strip().casefold()


def persons_of(addresses: Mapping[int, str], joined: Sequence[int] = ()) -> dict[int, int]:
    """Account → a number that all accounts of its person have, from the addresses by account; one query.

    `joined` are accounts that count as one person besides.
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
    """Whether two accounts are one person's."""
    found = persons_of(dict(User.objects.filter(pk__in=(one, other)).values_list("pk", "email")))
    return one == other or found[one] == found[other]
