"""The strip above a subject's versions: one lane an environment, a column a content, joined by content, not by number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from dashboard.links import subject_url
from dashboard.pages.frame import environment_of
from dashboard.presenters.subjects import Lane, LaneCell, LaneHead, LaneStrip
from registry.subjects.names import SubjectName
from registry.subjects.selectors import SubjectPresence

#: columns that are drawn, the newest ones
LANE_VERSIONS: Final = 12

Releases = Mapping[tuple[str, int], int]


@dataclass(frozen=True)
class _Column:
    """A content: a version of the registry that is looked at, or one that another environment has alone."""

    since: datetime
    place: str
    version: int
    fingerprint: str


def lane_strip(
    name: SubjectName,
    presence: SubjectPresence,
    releases: Releases,
    registry: str,
    shown: Sequence[str],
    order: Sequence[str],
) -> LaneStrip | None:
    """The strip over the newest contents, by when they came, with a lane for each environment that is `shown`.

    None where the registry is none of them or has no content.
    """
    if registry not in shown or not presence.held.get(registry):
        return None
    columns = _columns(presence, registry, shown)
    drawn = columns[-LANE_VERSIONS:]
    return LaneStrip(
        heads=tuple(
            LaneHead(
                version=column.version,
                since=column.since,
                elsewhere="" if column.place == registry else column.place,
            )
            for column in drawn
        ),
        lanes=_lanes(name, presence, releases, drawn, shown, list(order)),
        total=len(columns),
    )


def _columns(presence: SubjectPresence, registry: str, order: Sequence[str]) -> list[_Column]:
    """The registry's versions, and contents that it lacks of the environments; oldest first, the registry's by number."""
    own = _of(presence, registry)
    known, others = {column.fingerprint for column in own}, []
    for place in order:
        for column in _of(presence, place):
            if column.fingerprint not in known:
                known.add(column.fingerprint)
                others.append(column)
    found: list[_Column] = []
    others.sort(key=lambda column: column.since)
    for column in own:  # imported ones may be older than what has a smaller number: the order of numbers goes first
        while others and others[0].since < column.since:
            found.append(others.pop(0))
        found.append(column)
    return [*found, *others]


def _of(presence: SubjectPresence, place: str) -> list[_Column]:
    return [
        _Column(presence.arrivals[place, version].since, place, version, fingerprint)
        for version, fingerprint in sorted(presence.held.get(place, {}).items())
    ]


def _lanes(
    name: SubjectName,
    presence: SubjectPresence,
    releases: Releases,
    columns: Sequence[_Column],
    shown: Sequence[str],
    order: list[str],
) -> tuple[Lane, ...]:
    lanes, above = [], set[str]()
    for place in shown:
        newest = max(presence.held.get(place, {}), default=0)
        cells = []
        for column in columns:
            there = presence.version_with(place, column.fingerprint)
            linked = column.fingerprint in above
            cells.append(_cell(place, name, column.version, there, newest, presence, releases, linked=linked))
        above = {column.fingerprint for column, cell in zip(columns, cells, strict=True) if cell.there}
        lanes.append(Lane(environment=environment_of(place, order), cells=tuple(cells)))
    return tuple(lanes)


def _cell(
    place: str,
    name: SubjectName,
    number: int,
    there: int | None,
    newest: int,
    presence: SubjectPresence,
    releases: Releases,
    *,
    linked: bool,
) -> LaneCell:
    if there is None:
        return LaneCell(version=number)
    arrival = presence.arrivals[place, there]
    return LaneCell(
        version=number,
        there=there,
        current=there == newest,
        direct=(place, there) not in releases,
        linked=linked,
        url=subject_url(place, name.qualified, version=there),
        schema_id=arrival.schema_id,
        since=arrival.since,
    )
