"""What most likely made a finding: the last version of its subject that came before its first message.

Only what can change what producers write is a cause. Another subject's version can't, nor can a level or a mode: those
decide which versions may come, and the version that came is the nearer cause.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from registry.drift.judge.model import Event, Memory, Registered, fingerprint_of
from registry.drift.judge.reading import Part
from registry.drift.judge.words import moment, span_of_time

WINDOW: Final = 60 * 60 * 1000  # what was done longer before is no likely cause


def cause_of(
    rule: str,
    identity: Sequence[str],
    parts: Sequence[Part],
    *,
    starts: Mapping[int, int],
    registered: Registered,
    memory: Memory,
    subjects: Sequence[str] = (),
) -> str:
    """A sentence, or nothing. A finding that is known already keeps its cause: it began in an earlier scan.

    Where the first message that the scan read is affected already, the beginning isn't known and nothing is said.
    """
    known = memory.findings.get(fingerprint_of(rule, identity))
    if known is not None:
        return known.cause
    if not parts:
        return ""
    first = min(parts, key=lambda part: (part.first_time, part.partition, part.first_offset))
    if any(part.first_offset <= starts.get(part.partition, -1) for part in parts):
        return ""
    return caused_by(first.first_time, registered.events, subjects)


def caused_by(began: int, events: Sequence[Event], subjects: Sequence[str]) -> str:
    """The last version of one of those subjects that came in the hour before `began`, as a sentence."""
    near = [event for event in events if event.subject in subjects and 0 <= began - event.at <= WINDOW]
    if not near:
        return ""
    last = max(near, key=lambda event: (event.at, event.sentence))
    return f"Began {moment(began)}, {span_of_time(began - last.at)} after {last.sentence}."
