"""The context of a change, which the audit triggers read: who acts, through which channel, from where and why."""

from __future__ import annotations

from typing import Final, Protocol

from django.db import connection, transaction


class AuditActor(Protocol):
    """An actor as the audit sees it: a name, a channel and an origin."""

    @property
    def name(self) -> str:
        """The actor's name."""

    @property
    def channel(self) -> str:
        """The channel."""

    @property
    def origin(self) -> str:
        """The origin: an address, a token's name; may be empty."""


#: the SQL of `record`, for inclusion in other statements; takes the parameters of `recording`
RECORDING: Final = (
    "set_config('schemadesk.actor', %(actor)s, true), set_config('schemadesk.door', %(door)s, true),"
    " set_config('schemadesk.origin', %(origin)s, true), set_config('schemadesk.why', %(why)s, true)"
)


def recording(by: AuditActor, why: str) -> dict[str, str]:
    """Return the parameters of `RECORDING`.

    Raises TransactionManagementError outside a transaction, where they would be lost.
    """
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError("record(…) works only inside a transaction")
    # A reason may quote a name from a URL.
    return {"actor": by.name, "door": by.channel, "origin": by.origin, "why": storable_text(why)}


def storable_text(text: str) -> str:
    """Replace the characters that PostgreSQL can't store: NUL and lone surrogates."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def record(*, by: AuditActor, why: str) -> None:
    """Set actor, channel, origin and reason for every governed row that this transaction changes from now on.

    Call it inside a transaction, before the first write. Raises TransactionManagementError outside a transaction, where
    the settings would be lost.
    """
    values = recording(by, why)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {RECORDING}", values)


def recorded() -> str:
    """Return the last recorded reason of this transaction; "" if there is none."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(current_setting('schemadesk.why', true), '')")
        (why,) = cursor.fetchone()
    return str(why)
