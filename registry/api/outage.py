"""The database is away: recognised in one place, and told by every dialect and the pages in words of their own.

A database that can't save, as on a full disk, counts as well. What the database says about a statement (a deadlock, a
number that doesn't fit, a table that isn't there) is none of it.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import Final, TypeVar

from django.db import DatabaseError, InternalError, OperationalError
from django.http import HttpResponseBase

from registry.errors import SchemadeskError, Unavailable

#: seconds after which to ask again. A database that is back is asked within a quarter of a second (dashboard/database).
RETRY_SECONDS: Final = 2
#: seconds for which `/readyz` tells of a write that the database refused; disks don't get empty in two seconds
REMEMBERED_SECONDS: Final = 30
#: SQLSTATE: shut down by its administrator, ended by a crash, starting up or recovering; ended an idle connection; full
_STATES: Final = frozenset({"57P01", "57P02", "57P03", "57P05", "53300"})
#: it can't save: out of resources (disk, memory), an error of the disk; a transaction that may only read
_UNWRITABLE: Final = frozenset({"53000", "53100", "53200", "58030", "25006"})
_CONNECTION: Final = "08"  # the class of everything about connections
_DEPTH: Final = 10  # of causes
R = TypeVar("R", bound=HttpResponseBase)

logger = logging.getLogger(__name__)


class OutcomeUnknown(OperationalError):
    """The connection was lost while a change was being committed: nobody knows whether it was."""


class DatabaseAway(Unavailable):
    """The database can't be reached, or is starting; `Retry-After` says when to ask again.

    Nothing in it names the server.
    """

    seconds = RETRY_SECONDS

    def __init__(self, message: str = "The database is unavailable.", *, is_unknown: bool = False) -> None:
        """`is_unknown`: it went away while a change was being committed."""
        if is_unknown:
            message = (
                "The connection was lost while the change was being saved, so it may or may not be saved. Check"
                " before you send it again. A registration can always be sent again."
            )
        outcome = "unknown" if is_unknown else "refused"
        super().__init__(f"{message} Try again in {self.seconds} seconds.", retry_after=self.seconds, outcome=outcome)
        self.is_unknown = is_unknown


class WriteRefused(DatabaseAway):
    """The database answers but can't save: its disk is full, or it is read-only, as a standby is."""

    seconds = REMEMBERED_SECONDS

    def __init__(self) -> None:
        super().__init__("The database can't save anything at the moment. Nothing was changed.")


@dataclass
class LastRefusal:
    """The last write that the database refused to this process."""

    reason: str = ""
    at: float = 0.0

    def note(self, reason: str) -> None:
        """It has just been refused."""
        self.reason, self.at = reason, time.monotonic()

    def recent(self) -> str:
        """The reason, if it was refused lately; else empty."""
        return self.reason if time.monotonic() - self.at < REMEMBERED_SECONDS else ""


LAST_REFUSAL: Final = LastRefusal()


def away_of(error: BaseException | None) -> DatabaseAway | None:
    """What to answer where an error comes of a database that is away; None where it is another error."""
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


def tell_when(response: R, error: BaseException) -> R:
    """Say in the answer when to ask again, where the error knows; the same answer."""
    if isinstance(error, DatabaseAway):
        response["Retry-After"] = str(error.seconds)
    elif isinstance(error, Unavailable) and (seconds := error.details.get("retry_after")):
        response["Retry-After"] = str(seconds)
    return response


def _kind(error: DatabaseError) -> type[DatabaseAway | WriteRefused] | None:
    """What to answer for an error of the database; one without SQLSTATE is about the connection, as no server spoke."""
    state = getattr(error.__cause__, "sqlstate", None)
    if state in _UNWRITABLE:
        LAST_REFUSAL.note(type(error.__cause__).__name__)
        return WriteRefused
    is_lost = state is None or state in _STATES or str(state).startswith(_CONNECTION)
    return DatabaseAway if is_lost and isinstance(error, OperationalError) else None


def _noted(away: DatabaseAway, error: BaseException | None) -> DatabaseAway:
    # One line a request: what is wrong with the database is said once, by the pool of connections.
    log = logger.error if isinstance(away, WriteRefused) else logger.warning
    log("answered without the database: %s", type((error and error.__cause__) or error).__name__)
    return away
