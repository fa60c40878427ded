"""Messages that carry a version which people said not to use: deprecated, too old, retired, quarantined."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from registry.drift.judge.model import JudgedFinding, Mark, RegisteredVersion
from registry.drift.judge.reading import Part
from registry.drift.judge.telling import SideOfTopic
from registry.drift.judge.words import moment

QUARANTINED: Final = "quarantined"
#: in good standing or deprecated, but older than the least version that producers may write
BELOW: Final = "below the least version"
#: standing → rule; from the mildest on
_RULES: Final[Mapping[str, str]] = {
    "deprecated": "ID_DEPRECATED",
    BELOW: "ID_BELOW_LEAST",
    "retired": "ID_RETIRED",
    QUARANTINED: "ID_QUARANTINED",
}
_ORDER: Final = tuple(_RULES)


def judge_standing(
    where: SideOfTopic,
    mark: Mark,
    parts: Sequence[Part],
    live: Sequence[RegisteredVersion],
    names: Mapping[str, Any],
    evidence: Mapping[str, Any],
) -> Iterator[JudgedFinding]:
    """The finding of one mark, where no live version that it stands for is in good standing.

    What was written before a version was deprecated or retired, or another was made the least, is as it should be; of
    one in quarantine nothing is.
    """
    if not all(version.standing in _RULES for version in live):
        return
    mildest = min(live, key=lambda version: (_ORDER.index(version.standing), -version.standing_since))
    since = mildest.standing_since
    told = list(parts) if mildest.standing == QUARANTINED else [part for part in parts if part.last_time > since]
    if not told:
        return
    until = mildest.standing_until
    is_over = bool(until) and any(part.last_time > until for part in told)
    said = f", to be used until {moment(until)} at most" if until else ""
    yield where.finding(
        _RULES[mildest.standing],
        told,
        {**names, "since": moment(since), "until": said, "message": mildest.standing_message, "least": mildest.least},
        key=mark,
        evidence={
            **evidence,
            "standing": mildest.standing,
            "since": since,
            "until": until or None,
            **({"least": mildest.least} if mildest.least else {}),
        },
        subject=mildest.subject,
        severity="risk" if is_over else None,
    )
