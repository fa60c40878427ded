"""The database is away: recognised in one place, and told by every dialect and the pages in words of their own.

What the database says about a statement (a deadlock, a number that doesn't fit, a table that isn't there) is none of it.
"""

from __future__ import annotations

import logging
from typing import Final, TypeVar

from django.db import OperationalError
from django.http import HttpResponseBase

from registry.errors import SchemadeskError, Unavailable

#: seconds after which to ask again. A database that is back is asked within a quarter of a second (dashboard/database).
RETRY_SECONDS: Final = 2
#: SQLSTATE: shut down by its administrator, ended by a crash, starting up or recovering; ended an idle connection; full
_STATES: Final = frozenset({"57P01", "57P02", "57P03", "57P05", "53300"})
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

    def __init__(self, *, is_unknown: bool = False) -> None:
        """`is_unknown`: it went away while a change was being committed."""
        cure = f"Try again in {RETRY_SECONDS} seconds."
        if is_unknown:
            message = (
                "The connection was lost while the change was being saved, so it may or may not be saved. Check"
                f" before you send it again. A registration can always be sent again. {cure}"
            )
        else:
            message = f"The database is unavailable. {cure}"
        super().__init__(message, retry_after=RETRY_SECONDS, outcome="unknown" if is_unknown else "refused")
        self.seconds = RETRY_SECONDS
        self.is_unknown = is_unknown


def away_of(error: BaseException | None) -> DatabaseAway | None:
    """What to answer where an error comes of a database that is away; None where it is another error."""
    if isinstance(error, SchemadeskError):
        return error if isinstance(error, DatabaseAway) else None
    cause, is_away = error, False
    for _ in range(_DEPTH):
        if isinstance(cause, OutcomeUnknown):
            return _noted(DatabaseAway(is_unknown=True), cause)
        if isinstance(cause, OperationalError):
            is_away = is_away or _is_lost(cause)
        if cause is None:
            break
        cause = cause.__cause__
    return _noted(DatabaseAway(), error) if is_away else None


def tell_when(response: R, error: BaseException) -> R:
    """Say in the answer when to ask again, where the error knows; the same answer."""
    if isinstance(error, DatabaseAway):
        response["Retry-After"] = str(error.seconds)
    elif isinstance(error, Unavailable) and (seconds := error.details.get("retry_after")):
        response["Retry-After"] = str(seconds)
    return response


def _is_lost(error: OperationalError) -> bool:
    """Whether it is about the connection: then it has no SQLSTATE, as the server said nothing, or one of a few."""
    state = getattr(error.__cause__, "sqlstate", None)
    return state is None or state in _STATES or str(state).startswith(_CONNECTION)


def _noted(away: DatabaseAway, error: BaseException | None) -> DatabaseAway:
    # One line a request: what is wrong with the database is said once, by the pool of connections.
    logger.warning("answered without the database: %s", type((error and error.__cause__) or error).__name__)
    return away
