"""Telling the triggers who acts."""

from __future__ import annotations

from typing import Protocol

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


def record(*, by: Named, why: str) -> None:
    """Set who, door, from where and why for every governed row that this transaction changes from here on.

    Call it inside a transaction, before the first write; outside one the settings would be lost at
    once, so that raises TransactionManagementError.
    """
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError("record(…) works only inside a transaction")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('schemadesk.actor', %s, true), set_config('schemadesk.door', %s, true),"
            " set_config('schemadesk.origin', %s, true), set_config('schemadesk.why', %s, true)",
            [by.name, by.door, by.origin, why],
        )


def recorded() -> str:
    """Why this transaction changes things, as it was recorded last; empty where nothing was."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(current_setting('schemadesk.why', true), '')")
        (why,) = cursor.fetchone()
    return str(why)
