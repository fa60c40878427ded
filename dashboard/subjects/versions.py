"""The versions on a subject's page: the table, its paging, and the strip of environments above it.

The strip has a lane per environment and a column per content; cells are joined by content, not by number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final

from django.utils.translation import gettext

from dashboard.components.badges import Verdict, channel_name
from dashboard.components.frame import environment_of
from dashboard.components.links import offset_paging, subject_url, whole_number
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import Paging
from dashboard.subjects.lifecycle import marks_of
from dashboard.subjects.presenters import Lane, LaneCell, LaneHead, LaneStrip, LivePlace, SubjectVersionRow
from registry.errors import VersionNotFound
from registry.promotions.selectors import VersionTimeline
from registry.subjects.history.version_presence import FIRST_OF_GROUP, NOT_ASKED, NOT_READ
from registry.subjects.selectors import SubjectPresence, VersionInfo, VersionSummary
from registry.subjects.versions.qualified_names import SubjectName

#: why a version isn't judged → label in its row
_UNJUDGED: Final = {
    NOT_ASKED: _("not checked"),
    FIRST_OF_GROUP: _("first in its group"),
    NOT_READ: _("can’t be checked"),
}

Releases = Mapping[tuple[str, int], int]


def version_rows(
    registry: str,
    name: SubjectName,
    infos: Sequence[VersionInfo],
    summaries: Mapping[int, VersionSummary],
    presence: SubjectPresence,
    releases: Releases,
    lives: Mapping[int, VersionTimeline],
    order: list[str],
    selected: int,
) -> tuple[SubjectVersionRow, ...]:
    """Return a row per version, in the order of `infos`."""
    return tuple(
        SubjectVersionRow(
            info=info,
            url=subject_url(registry, name.qualified, version=info.version),
            **_against(registry, name, info, summaries.get(info.version)),
            via=gettext("request %(request)s") % {"request": releases[registry, info.version]}
            if (registry, info.version) in releases
            else channel_name(info.channel),
            live_in=_live_in(name, presence, info.schema.fingerprint, order),
            selected=info.version == selected,
            marks=marks_of(lives[info.version]) if info.version in lives else (),
        )
        for info in infos
    )


def _against(registry: str, name: SubjectName, info: VersionInfo, summary: VersionSummary | None) -> dict[str, Any]:
    """Return the row's comparison with the previous version; none for a deleted version."""
    if summary is None:
        if info.deleted:
            return {"summary": gettext("soft-deleted"), "verdict_note": gettext("not checked")}
        return {"summary": gettext("first version")}
    verdict = None
    if summary.is_compatible is not None:
        verdict = Verdict.OK if summary.is_compatible else Verdict.BREAKS
    elif summary.unjudged == NOT_READ:
        verdict = Verdict.UNKNOWN
    note = _UNJUDGED.get(summary.unjudged, "")
    if summary.against not in (None, summary.previous):
        note = gettext("against version %(version)s in its group") % {"version": summary.against}
    return {
        "summary": summary.sentence or gettext("changes unknown"),
        "problem": summary.problem,
        "verdict": verdict,
        "verdict_note": note,
        "compare_url": subject_url(registry, name.qualified, "compare", from_=summary.previous, to=info.version),
    }


def _live_in(name: SubjectName, presence: SubjectPresence, fingerprint: str, order: list[str]) -> tuple[LivePlace, ...]:
    """Return the environments with the version's content, and its version, schema id and time there."""
    environments = []
    for environment in order:
        version = presence.version_with(environment, fingerprint)
        if version is not None:
            arrival = presence.arrivals[environment, version]
            environments.append(
                LivePlace(
                    environment=environment_of(environment, order),
                    version=version,
                    schema_id=arrival.schema_id,
                    since=arrival.since,
                    url=subject_url(environment, name.qualified, version=version),
                )
            )
    return tuple(environments)


#: the number of newest columns to show
LANE_VERSIONS: Final = 12


@dataclass(frozen=True)
class _Column:
    """A content: a version of this registry, or one that only another environment has."""

    since: datetime
    environment: str
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
    """Return the strip over the newest contents, by arrival, with a lane per `shown` environment.

    None if the registry isn't one of them or has no content.
    """
    if registry not in shown or not presence.fingerprints.get(registry):
        return None
    columns = _columns(presence, registry, shown)
    drawn = columns[-LANE_VERSIONS:]
    return LaneStrip(
        heads=tuple(
            LaneHead(
                version=column.version,
                since=column.since,
                elsewhere="" if column.environment == registry else column.environment,
            )
            for column in drawn
        ),
        lanes=_lanes(name, presence, releases, drawn, shown, list(order)),
        total=len(columns),
    )


def _columns(presence: SubjectPresence, registry: str, order: Sequence[str]) -> list[_Column]:
    """Return the registry's versions by number, merged with contents of other environments, oldest first."""
    own = _of(presence, registry)
    fingerprints, others = {column.fingerprint for column in own}, []
    for environment in order:
        for column in _of(presence, environment):
            if column.fingerprint not in fingerprints:
                fingerprints.add(column.fingerprint)
                others.append(column)
    columns: list[_Column] = []
    others.sort(key=lambda column: column.since)
    for column in own:  # imported versions can be older than lower numbers: the number decides
        while others and others[0].since < column.since:
            columns.append(others.pop(0))
        columns.append(column)
    return [*columns, *others]


def _of(presence: SubjectPresence, environment: str) -> list[_Column]:
    return [
        _Column(presence.arrivals[environment, version].since, environment, version, fingerprint)
        for version, fingerprint in sorted(presence.fingerprints.get(environment, {}).items())
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
    for environment in shown:
        newest = max(presence.fingerprints.get(environment, {}), default=0)
        cells = []
        for column in columns:
            there = presence.version_with(environment, column.fingerprint)
            linked = column.fingerprint in above
            cells.append(_cell(environment, name, column.version, there, newest, presence, releases, linked=linked))
        above = {column.fingerprint for column, cell in zip(columns, cells, strict=True) if cell.there}
        lanes.append(Lane(environment=environment_of(environment, order), cells=tuple(cells)))
    return tuple(lanes)


def _cell(
    environment: str,
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
    arrival = presence.arrivals[environment, there]
    return LaneCell(
        version=number,
        there=there,
        current=there == newest,
        direct=(environment, there) not in releases,
        linked=linked,
        url=subject_url(environment, name.qualified, version=there),
        schema_id=arrival.schema_id,
        since=arrival.since,
    )


#: versions on a page
ROWS: Final = 50


@dataclass(frozen=True)
class Window:
    """The versions of a subject, newest first, each with whether it is soft-deleted; rows start at `begin`."""

    numbers: Sequence[tuple[int, bool]]
    selected: int
    begin: int = 0

    @cached_property
    def live(self) -> list[int]:
        """The live versions, newest first."""
        return [number for number, is_deleted in self.numbers if not is_deleted]

    @property
    def newest(self) -> int:
        """The newest live version; the newest of all if none is live."""
        return self.live[0] if self.live else self.numbers[0][0]

    @cached_property
    def rows(self) -> list[int]:
        """The versions in the table, newest first."""
        return [number for number, _ in self.numbers[self.begin : self.begin + ROWS]]

    @cached_property
    def run(self) -> list[int]:
        """The live versions in the table and the next older live one, newest first, without gaps."""
        oldest = self.rows[-1]
        before = next((number for number in self.live if number < oldest), None)
        drawn = [number for number, is_deleted in self.numbers[self.begin : self.begin + ROWS] if not is_deleted]
        return drawn if before is None else [*drawn, before]

    @property
    def chain(self) -> list[int]:
        """The live versions up to the selected one, as far as they are read, newest first."""
        is_drawn = self.selected in self.rows
        return [number for number in self.run if number <= self.selected] if is_drawn else [self.selected]

    @property
    def is_whole_chain(self) -> bool:
        """Whether the chain includes the subject's first live version."""
        return self.chain[-1:] == self.live[-1:]

    @property
    def read(self) -> set[int]:
        """All versions that the page reads."""
        return {*self.rows, *self.run, self.selected, self.newest}

    def paging(self, registry: str, name: SubjectName) -> Paging | None:
        """Return links to newer and older rows; None if all fit."""
        total = len(self.numbers)
        if total <= ROWS:
            return None

        def url(begin: int) -> str:
            before = self.numbers[begin][0] + 1
            return subject_url(registry, name.qualified, version=self.selected, before=before) + "#versions-title"

        return offset_paging(self.begin, len(self.rows), total, ROWS, url)


def window_of(numbers: Sequence[tuple[int, bool]], version: str, before: str, name: SubjectName) -> Window:
    """Return the window with the given version ("": the newest), or with the rows before a version.

    Raises VersionNotFound.
    """
    positions = {str(number): position for position, (number, _) in enumerate(numbers)}
    if version and version not in positions:
        raise VersionNotFound(
            gettext("Subject %(subject)s has no version %(version)s.")
            % {"subject": name.qualified, "version": version[:40]},
            version=version[:40],
        )
    window = Window(numbers, int(version)) if version else Window(numbers, Window(numbers, 0).newest)
    limit = whole_number(before, digits=10)
    begin = next(
        (position for position, (number, _) in enumerate(numbers) if limit is not None and number < limit), None
    )
    if begin is None:
        begin = positions[str(window.selected)] // ROWS * ROWS
    return Window(numbers, window.selected, begin)
