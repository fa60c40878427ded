"""Detects that the database is unavailable; every dialect and the pages report that in their own format.

This includes a database that can't write, as on a full disk. It excludes errors about a statement (a deadlock, a number
out of range, a missing table).
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import Final, TypeVar

from django.db import DatabaseError, InternalError, OperationalError
from django.http import HttpResponseBase

from registry.errors import SchemadeskError, Unavailable

#: seconds until a retry. The connection to a recovered database is restored within 0.25 s (dashboard/database).
RETRY_SECONDS: Final = 2
#: seconds for which `/readyz` reports a refused write; a disk isn't freed within two seconds
REMEMBERED_SECONDS: Final = 30
#: SQLSTATEs: shut down by an administrator, crashed, starting or recovering; ended an idle connection; too many
#: connections; a lock wasn't free in time, as when a process that holds it hangs
_STATES: Final = frozenset({"57P01", "57P02", "57P03", "57P05", "53300", "55P03"})
#: SQLSTATEs of a failed write: out of resources (disk, memory), a disk error; a read-only transaction
_UNWRITABLE: Final = frozenset({"53000", "53100", "53200", "58030", "25006"})
_CONNECTION: Final = "08"  # the SQLSTATE class of connection errors
_DEPTH: Final = 10  # the most causes of an error that are followed
R = TypeVar("R", bound=HttpResponseBase)

logger = logging.getLogger(__name__)


class OutcomeUnknown(OperationalError):
    """The connection was lost during a commit, so it is unknown whether the change was committed."""


class DatabaseAway(Unavailable):
    """The database is unreachable or starting; `Retry-After` says when to retry.

    Its message doesn't name the server.
    """

    seconds = RETRY_SECONDS

    def __init__(self, message: str = "The database is unavailable.", *, is_unknown: bool = False) -> None:
        """Set the message; `is_unknown` means that the connection was lost during a commit."""
        if is_unknown:
            message = (
                "The connection was lost while the change was being saved, so it may or may not be saved. Check"
                " before you send it again. A registration can always be sent again."
            )
        outcome = "unknown" if is_unknown else "refused"
        super().__init__(f"{message} Try again in {self.seconds} seconds.", retry_after=self.seconds, outcome=outcome)
        self.is_unknown = is_unknown


class WriteRefused(DatabaseAway):
    """The database responds but can't write: its disk is full, or it is read-only, as a standby is."""

    seconds = REMEMBERED_SECONDS

    def __init__(self) -> None:
        super().__init__("The database can't save anything at the moment. Nothing was changed.")


@dataclass
class LastRefusal:
    """The last write that the database refused in this process."""

    reason: str = ""
    at: float = 0.0

    def note(self, reason: str) -> None:
        """Record a refusal now."""
        self.reason, self.at = reason, time.monotonic()

    def recent(self) -> str:
        """Return the reason if a write was refused recently; otherwise ""."""
        return self.reason if time.monotonic() - self.at < REMEMBERED_SECONDS else ""


LAST_REFUSAL: Final = LastRefusal()


def unavailable_error(error: BaseException | None) -> DatabaseAway | None:
    """Return the answer for an error caused by an unavailable database; None for other errors."""
    if isinstance(error, SchemadeskError):
        return error if isinstance(error, DatabaseAway) else None
    cause, kind = error, None
    for _ in range(_DEPTH):
        if isinstance(cause, OutcomeUnknown):
            return _noted(DatabaseAway(is_unknown=True), cause)
        if isinstance(cause, OperationalError | InternalError):
            kind = _kind(cause) or kind
        if cause is None:
            break
        cause = cause.__cause__
    return _noted(kind(), error) if kind else None


def set_retry_after(response: R, error: BaseException) -> R:
    """Set `Retry-After` if the error knows when to retry; returns the same response."""
    if isinstance(error, DatabaseAway):
        response["Retry-After"] = str(error.seconds)
    elif isinstance(error, Unavailable) and (seconds := error.details.get("retry_after")):
        response["Retry-After"] = str(seconds)
    return response


def _kind(error: DatabaseError) -> type[DatabaseAway | WriteRefused] | None:
    """Classify a database error; without SQLSTATE it is about the connection, because no server answered."""
    state = getattr(error.__cause__, "sqlstate", None)
    if state in _UNWRITABLE:
        LAST_REFUSAL.note(type(error.__cause__).__name__)
        return WriteRefused
    is_lost = state is None or state in _STATES or str(state).startswith(_CONNECTION)
    return DatabaseAway if is_lost and isinstance(error, OperationalError) else None


def _noted(away: DatabaseAway, error: BaseException | None) -> DatabaseAway:
    # One line per request: the connection pool logs the cause once.
    log = logger.error if isinstance(away, WriteRefused) else logger.warning
    log("answered without the database: %s", type((error and error.__cause__) or error).__name__)
    return away
