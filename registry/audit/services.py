"""Telling the triggers who acts."""

from __future__ import annotations

from typing import Final, Protocol

from django.db import connection, transaction


class Named(Protocol):
    """Whoever acts: a name, a door, and from where."""

    @property
    def name(self) -> str:
        """Who."""

    @property
    def door(self) -> str:
        """Through which door."""

    @property
    def origin(self) -> str:
        """From where: an address, a token's name; may be empty."""


#: what `record` does, for a statement that does more at once, with the parameters of `recording`
RECORDING: Final = (
    "set_config('schemadesk.actor', %(actor)s, true), set_config('schemadesk.door', %(door)s, true),"
    " set_config('schemadesk.origin', %(origin)s, true), set_config('schemadesk.why', %(why)s, true)"
)


def recording(by: Named, why: str) -> dict[str, str]:
    """The parameters of `RECORDING`; raises TransactionManagementError outside a transaction, where it would be lost."""
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError("record(…) works only inside a transaction")
    return {"actor": by.name, "door": by.door, "origin": by.origin, "why": why}


def record(*, by: Named, why: str) -> None:
    """Set who, door, from where and why for every governed row that this transaction changes from here on.

    Call it inside a transaction, before the first write; outside one the settings would be lost at
    once, so that raises TransactionManagementError.
    """
    values = recording(by, why)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {RECORDING}", values)


def recorded() -> str:
    """Why this transaction changes things, as it was recorded last; empty where nothing was."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(current_setting('schemadesk.why', true), '')")
        (why,) = cursor.fetchone()
    return str(why)
