"""The moment of planning: Spark puts it in the place of `current_timestamp()` and `current_date()`, so it is named again.

Spark also computes with it, so that `current_date() - 7` would be another constant each day. Plans with these functions
are made without that rule of the optimizer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final

_FUNCTIONS: Final = re.compile(r"\b(?:current_timestamp|now|current_date|localtimestamp)\(")
_EXCLUDED: Final = "spark.sql.optimizer.excludedRules"
_FOLDING: Final = "org.apache.spark.sql.catalyst.optimizer.ConstantFolding"
_LITERAL: Final = re.compile(r"\b\d{4}-\d\d-\d\d(?: \d\d:\d\d:\d\d(?:\.\d+)?)?")
_LENGTH_OF_DATE: Final = 10


def without_clock(session: Any, logical: Any, describe: Callable[[], Any]) -> Any:
    """Return what `describe` says of a logical plan, with the moment of planning named by its function."""
    text = logical.toString()
    if not _FUNCTIONS.search(text):
        return describe()
    excluded = session.conf.get(_EXCLUDED, None)
    session.conf.set(_EXCLUDED, f"{excluded},{_FOLDING}" if excluded else _FOLDING)
    try:
        first = _now(session, 0)
        described = describe()
        last = _now(session, 1)
    finally:
        session.conf.unset(_EXCLUDED) if excluded is None else session.conf.set(_EXCLUDED, excluded)
    # A literal of the query that is today's date could be another one tomorrow, so it stays, as do all dates then.
    days = {day for day in (first[:_LENGTH_OF_DATE], last[:_LENGTH_OF_DATE]) if day not in text}

    def named(match: re.Match[str]) -> str:
        literal = match[0]
        if literal in days:
            return "current_date()"
        is_now = len(literal) > _LENGTH_OF_DATE and first <= literal <= last
        return "current_timestamp()" if is_now else literal

    return json.loads(_LITERAL.sub(named, json.dumps(described)))


def _now(session: Any, later: int) -> str:
    """Return the local time of the session, some seconds later, as Spark writes a timestamp."""
    java = session._jvm
    zone = java.org.apache.spark.sql.catalyst.util.DateTimeUtils.getZoneId(
        session.conf.get("spark.sql.session.timeZone")
    )
    return str(java.java.time.LocalDateTime.now(zone).plusSeconds(later).toString()).replace("T", " ")
