"""What becomes of findings from scan to scan. Pure: no database, no clock.

A finding is `open` when it is seen first. A person may acknowledge it; it opens again when the acknowledgement is over
or when it gets worse. It is `resolved` after so many scans in a row that could have seen it and did not, and opens
again when it comes back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

SEVERITY_RANK: Final = {"break": 0, "risk": 1, "notice": 2}


@dataclass(frozen=True)
class MutePattern:
    """Shell patterns of what a mute covers; an empty one means any."""

    rule: str
    subject: str
    location: str


@dataclass(frozen=True)
class Standing:
    """How a finding stands before a scan is kept."""

    state: str
    severity: str
    count: int


@dataclass(frozen=True)
class Seen:
    """What a scan that saw the finding makes of it."""

    state: str
    count: int
    reopened: bool


def is_muted(mutes: Iterable[MutePattern], rule: str, subject: str, location: str) -> bool:
    """Whether a mute covers a finding: all of its patterns fit."""
    return any(
        all(
            not pattern or fnmatchcase(text, pattern)
            for pattern, text in ((mute.rule, rule), (mute.subject, subject), (mute.location, location))
        )
        for mute in mutes
    )


def seen_again(before: Standing, *, severity: str, count: int, adds: bool) -> Seen:
    """A known finding that a scan saw: resolved ones open again, and acknowledged ones that got worse.

    `adds` tells that the scan read what no scan had read before, so that its count adds to what was counted.
    """
    worse = SEVERITY_RANK[severity] < SEVERITY_RANK[before.severity]
    reopened = before.state == "resolved" or (before.state == "acknowledged" and worse)
    return Seen(
        state="open" if reopened else before.state,
        count=before.count + count if adds else count,
        reopened=reopened,
    )


def could_have_seen(topic: str, *, complete: bool, clean_topics: Collection[str]) -> bool:
    """Whether a scan could have seen a finding of a topic (empty: of none) if it still held.

    A topic that the scan didn't read to its end proves nothing, and neither does a scan that a bound cut short.
    """
    return topic in clean_topics if topic else complete
