"""An administrator's word that two accounts are one person's, and taking it back."""

from __future__ import annotations

from django.db import transaction

from registry.access import guard
from registry.access.guard import RightsChange
from registry.access.models import User
from registry.access.roles import Actor, require
from registry.audit.services import record
from registry.errors import InvalidInput, NotFound, WrongState
from registry.promotions.models import SamePerson
from registry.promotions.services.environments import readable

MANAGE = "people.manage"


@transaction.atomic
def state_same_person(*, one: str, other: str, reason: str, by: Actor) -> int:
    """Count two accounts, by their names, as one person where a second one is needed; gives the statement's number.

    Raises NotAllowed, NotSignedIn, InvalidInput, NotFound for a name that nobody has, WrongState where it is stated, and
    SecondPersonRequired where it leaves nobody else to review for a closed environment.
    """
    require(by, MANAGE)
    why = readable(reason, "reason")
    if one == other:
        raise InvalidInput("Name two accounts: one is itself in any case.", field="other")
    first, second = sorted((_account(one), _account(other)), key=lambda user: user.pk)
    sentence = f"state that {first} and {second} are one person"
    record(by=by, why=f"{sentence}: {why}")
    values = {"one": one, "other": other, "reason": reason}
    guard.ask(RightsChange("state_same_person", values, sentence, joined=(first.pk, second.pk)), by)
    row, made = SamePerson.objects.get_or_create(
        one=first, other=second, defaults={"reason": why, "stated_by": by.name[:150]}
    )
    if not made:
        raise WrongState(f"That {first} and {second} are one person is stated already, by {row.stated_by}.")
    return row.pk


@transaction.atomic
def withdraw_same_person(*, statement_id: int, by: Actor) -> None:
    """Count them as two again. Raises NotAllowed, NotSignedIn, NotFound, SecondPersonRequired."""
    require(by, MANAGE)
    row = SamePerson.objects.select_for_update().filter(pk=statement_id).first()
    if row is None:
        raise NotFound(f"There is no statement {statement_id}.", statement=statement_id)
    sentence = f"no longer state that {row.one} and {row.other} are one person"
    record(by=by, why=sentence)
    accounts = (row.one_id, row.other_id)
    guard.ask(RightsChange("withdraw_same_person", {"statement_id": statement_id}, sentence, accounts=accounts), by)
    row.delete()


def _account(name: str) -> User:
    found = User.objects.filter(username=name).first() if "\0" not in name else None
    if found is None:
        raise NotFound(f"There is no account {name[:150]!r}.", username=name[:150])
    return found
