"""The rows of the board: subjects × environments, with what differs and whether each version could be promoted.

The number of queries is constant.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final

from django.db import connection

from registry.access.name_patterns import escaped
from registry.access.permission_filters import extent_of
from registry.access.roles import Actor, may, may_somewhere, require
from registry.audit import time_travel
from registry.errors import InvalidInput
from registry.promotions.board.board_index import (
    BEHIND,
    BLOCKED,
    FILTERS,
    OTHER_CONTENT,
    OTHER_ID,
    ReadableSubjects,
    page_of,
)
from registry.promotions.board.readiness_fingerprint import basis_query, pairs_of
from registry.promotions.environments.freezes import window_of
from registry.promotions.environments.selectors import environment_rows
from registry.promotions.models import Environment, PromotionRequest, RequestItem
from registry.promotions.plan.target_state import rolled_back_from
from registry.subjects.models import VersionStatus
from registry.subjects.versions.qualified_names import SubjectName, parse_subject
from registry.subjects.versions.versions import StatusInfo

__all__ = ["BEHIND", "BLOCKED", "FILTERS", "OTHER_CONTENT", "OTHER_ID"]


@dataclass(frozen=True)
class BoardCell:
    """A subject in an environment, compared with the previous environment.

    `version` is the newest live one, 0 if there is none, added at `since`; `status` is its status. `row` is its
    primary key, and `live` has number and primary key of each live version, ascending. `behind`: it lacks `wanted`, the
    previous environment's version to promote, or was rolled back from it; then `rolled_back` is that version's number
    here, else 0. `id_differs`: the schema of `version` has another id in the previous environment. `other_content`:
    version numbers with other schemas there. `verdict` is the readiness: "" if there is nothing to promote, "unknown"
    if it hasn't been computed since the last change. `request` is the open request for it.
    """

    place: str
    version: int = 0
    fingerprint: str = ""
    schema_id: int = 0
    row: int = 0
    live: tuple[tuple[int, int], ...] = ()
    since: datetime | None = None
    status: StatusInfo | None = None
    wanted: int = 0
    behind: bool = False
    rolled_back: int = 0
    id_differs: bool = False
    other_content: tuple[int, ...] = ()
    verdict: str = ""
    reasons: tuple[Mapping[str, str], ...] = ()
    request: int | None = None
    request_state: str = ""


@dataclass(frozen=True)
class BoardRow:
    """A subject with a cell for each environment."""

    subject: SubjectName
    cells: tuple[BoardCell, ...]


@dataclass(frozen=True)
class _Version:
    """A live version of a subject on the page."""

    number: int
    fingerprint: str
    schema_id: int
    row: int = 0
    since: datetime | None = None
    status: StatusInfo | None = None

    @property
    def is_trusted(self) -> bool:
        """Whether it can be promoted."""
        return self.status is None or self.status.status != VersionStatus.QUARANTINED


_LiveVersions = Mapping[tuple[int, SubjectName], Sequence[_Version]]


def rows_of(environments: Sequence[Environment], subjects: Sequence[SubjectName], by: Actor) -> tuple[BoardRow, ...]:
    """Return the rows of these subjects, with the cells that the actor may read; a constant number of queries."""
    if not subjects:
        return ()
    versions = _live_versions(environments, subjects, by)
    steps = {subject: _steps(environments, subject, versions) for subject in subjects}
    behind = [subject for subject, row in steps.items() if any(step.is_behind for step in row)]
    outlooks = _readiness(environments, behind)
    requests = _requests(environments, behind)
    return tuple(
        BoardRow(subject, tuple(_cell(step, subject, outlooks, requests) for step in row))
        for subject, row in steps.items()
    )


#: an index finds the subjects of a page by name
_VERSIONS: Final = """
SELECT c.registry_id, c.name, s.name, v.version, sc.fingerprint, sc.schema_id, v.id, v.created_at,
       st.standing, st.message, st.ends_at, st.decided_by, st.decided_at
FROM (SELECT DISTINCT * FROM unnest(%(contexts)s::text[], %(subjects)s::text[])) AS wanted(context, subject)
JOIN subjects_context c ON c.name = wanted.context AND c.registry_id = ANY(%(registries)s)
JOIN subjects_subject s ON s.context_id = c.id AND s.name = wanted.subject
JOIN subjects_schemaversion v ON v.subject_id = s.id AND v.deleted_at IS NULL
JOIN subjects_schema sc ON sc.id = v.schema_id
LEFT JOIN subjects_versionstanding st ON st.version_id = v.id
ORDER BY v.version
"""


def _live_versions(environments: Sequence[Environment], subjects: Sequence[SubjectName], by: Actor) -> _LiveVersions:
    """Return the live versions of the page's subjects that the actor may read, ascending; one query."""
    readable = {
        (environment.registry_id, name.context, name.subject): (environment.pk, name)
        for environment in environments
        for name in subjects
        if may(by, "schema.read", registry=environment.registry.name, subject=name.qualified)
    }
    parameters: dict[str, Any] = {
        "registries": [environment.registry_id for environment in environments],
        **_names(subjects),
    }
    versions: dict[tuple[int, SubjectName], list[_Version]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_VERSIONS, parameters)
        for registry, context, subject, number, fingerprint, schema_id, row, since, *decided in cursor.fetchall():
            key = readable.get((registry, context, subject))
            if key is not None:
                status = StatusInfo(*decided) if decided[0] else None
                versions.setdefault(key, []).append(_Version(number, fingerprint, schema_id, row, since, status))
    return versions


def _names(subjects: Sequence[SubjectName]) -> dict[str, list[str]]:
    return {"contexts": [name.context for name in subjects], "subjects": [name.subject for name in subjects]}


_Outlooks = Mapping[tuple[int, SubjectName], tuple[str, tuple[Mapping[str, str], ...]]]
#: the answers whose fingerprint still matches
_FRESH: Final = """
SELECT known.n, known.context, known.subject, outlook.verdict, outlook.reasons::text
FROM ({basis}) known
JOIN unnest(%(n)s::int[], %(source_ids)s::bigint[], %(target_ids)s::bigint[]) AS place(n, source_id, target_id)
    ON place.n = known.n
JOIN promotions_promotionoutlook outlook ON outlook.source_id = place.source_id
    AND outlook.target_id = place.target_id AND outlook.context_name = known.context
    AND outlook.subject_name = known.subject AND outlook.basis = known.basis
"""


def _readiness(environments: Sequence[Environment], subjects: Sequence[SubjectName]) -> _Outlooks:
    """Return (position of the pair, subject) → the answer, if it is still fresh."""
    pairs = pairs_of(environments)
    if not pairs or not subjects:
        return {}
    basis, parameters = basis_query(pairs, subjects)
    rows = {"source_ids": [pair.source.pk for pair in pairs], "target_ids": [pair.target.pk for pair in pairs]}
    with connection.cursor() as cursor:
        cursor.execute(_FRESH.format(basis=basis), parameters | rows)
        return {
            (number, SubjectName(context, name)): (verdict, tuple(json.loads(reasons)))
            for number, context, name, verdict, reasons in cursor.fetchall()
        }


_Requests = Mapping[tuple[int, SubjectName, str], tuple[int, str]]


def _requests(environments: Sequence[Environment], subjects: Sequence[SubjectName]) -> _Requests:
    """Return (target, subject, fingerprint) → the open request for it, and its state."""
    if not subjects:
        return {}
    rows = RequestItem.objects.filter(
        open_in__in=environments,
        context_name__in={name.context for name in subjects},
        subject_name__in={name.subject for name in subjects},
    ).exclude(request__state=PromotionRequest.DRAFT)
    columns = ("open_in", "context_name", "subject_name", "fingerprint", "request", "request__state")
    return {
        (environment, SubjectName(context, subject), fingerprint): (request, state)
        for environment, context, subject, fingerprint, request, state in rows.values_list(*columns)
    }


@dataclass(frozen=True)
class _SubjectStep:
    """A subject's versions in an environment and in the one before it; `number` is the environment's position."""

    number: int
    environment: Environment
    here: Sequence[_Version]
    before: Sequence[_Version]

    @cached_property
    def candidate(self) -> _Version | None:
        """The version that would be promoted: the newest that isn't quarantined."""
        return next((version for version in reversed(self.before) if version.is_trusted), None)

    @cached_property
    def is_behind(self) -> bool:
        """Whether this environment lacks the candidate or was rolled back from it."""
        if self.candidate is None:
            return False
        return bool(self.rolled_back) or all(v.fingerprint != self.candidate.fingerprint for v in self.here)

    @cached_property
    def rolled_back(self) -> int:
        """The number that the candidate has here if this environment went back from it, else 0."""
        before, here = ([(v.number, v.fingerprint) for v in line] for line in (self.before, self.here))
        return rolled_back_from(before, here, self.candidate.number) if self.candidate else 0


def _steps(
    environments: Sequence[Environment], subject: SubjectName, live_versions: _LiveVersions
) -> list[_SubjectStep]:
    versions = [live_versions.get((environment.pk, subject), ()) for environment in environments]
    return [
        _SubjectStep(number, environment, versions[number], versions[number - 1] if number else ())
        for number, environment in enumerate(environments)
    ]


def _cell(step: _SubjectStep, subject: SubjectName, outlooks: _Outlooks, requests: _Requests) -> BoardCell:
    newest = step.here[-1] if step.here else _Version(0, "", 0)
    verdict, reasons = outlooks.get((step.number - 1, subject), ("unknown", ())) if step.is_behind else ("", ())
    request, state = (None, "")
    if step.candidate is not None and step.is_behind:
        request, state = requests.get((step.environment.pk, subject, step.candidate.fingerprint), (None, ""))
    return BoardCell(
        place=step.environment.registry.name,
        version=newest.number,
        fingerprint=newest.fingerprint,
        schema_id=newest.schema_id,
        row=newest.row,
        live=tuple((version.number, version.row) for version in step.here),
        since=newest.since,
        status=newest.status,
        wanted=step.candidate.number if step.candidate else 0,
        behind=step.is_behind,
        rolled_back=step.rolled_back,
        id_differs=_has_other_id(newest, step.before),
        other_content=_other_content(step.before, step.here),
        verdict=verdict,
        reasons=reasons,
        request=request,
        request_state=state,
    )


def _has_other_id(newest: _Version, before: Iterable[_Version]) -> bool:
    return any(
        version.fingerprint == newest.fingerprint and version.schema_id != newest.schema_id for version in before
    )


def _other_content(before: Iterable[_Version], here: Iterable[_Version]) -> tuple[int, ...]:
    fingerprints = {version.number: version.fingerprint for version in before}
    return tuple(
        version.number
        for version in here
        if fingerprints.get(version.number, version.fingerprint) != version.fingerprint
    )


MAX_ROWS: Final = 100
MAX_WORDS: Final = 8
MAX_TEXT: Final = 200


@dataclass(frozen=True)
class BoardPlace:
    """An environment as a column; `frozen` says until when it is frozen, "" if it isn't."""

    name: str
    position: int
    is_closed: bool
    frozen: str = ""


@dataclass(frozen=True)
class Board:
    """A page of the board; `total` counts the rows of all pages, `after` starts the next page ("" on the last)."""

    environments: tuple[BoardPlace, ...]
    rows: tuple[BoardRow, ...]
    total: int
    after: str


def board_rows(
    *,
    by: Actor,
    text: str = "",
    filters: Collection[str] = (),
    after: str = "",
    limit: int = 50,
    rows: Sequence[Environment] | None = None,
) -> Board:
    """Return a page of the subjects, by name, that the actor may read and that match all words and filters.

    `blocked` uses the last stored answers; a cell whose state has changed since says `unknown`. `text` has words of the
    name. `after` comes from the previous page; `rows` are those of `environment_rows`, if the caller has read them
    already. Raises NotSignedIn, NotAllowed, InvalidInput, InvalidName.
    """
    if not may_somewhere(by, "schema.read"):
        require(by, "schema.read")
    if time_travel.moment() and BLOCKED in filters:
        raise InvalidInput("Past readiness is not stored. Filter by blocked only for the present.")
    unknown = sorted(set(filters) - set(FILTERS))
    if unknown:
        raise InvalidInput(f"Unknown filter {unknown[0][:40]!r}. Use one of {', '.join(FILTERS)}.")
    extent = extent_of(by, "schema.read")
    environments = [row for row in (environment_rows() if rows is None else rows) if extent.has(row.registry.name)]
    frozen = _frozen(environments)
    most = max(1, min(limit, MAX_ROWS))
    keys, total = page_of(
        ReadableSubjects(environments, extent),
        filters=filters,
        patterns=_patterns(text),
        frozen=frozen,
        after=parse_subject(after) if after else SubjectName("", ""),
        limit=most + 1,
    )
    shown = keys[:most]
    columns = tuple(
        BoardPlace(row.registry.name, row.position, row.is_closed, frozen.get(row.pk, "")) for row in environments
    )
    page_rows = rows_of(environments, shown, by)
    return Board(columns, page_rows, total, shown[-1].qualified if len(keys) > len(shown) else "")


def _patterns(text: str) -> list[str]:
    """Return an escaped LIKE pattern for each word."""
    if len(text) > MAX_TEXT or "\0" in text:
        raise InvalidInput(f"Search text can have at most {MAX_TEXT} characters and no NUL.")
    terms = text.split()[:MAX_WORDS]
    return [f"%{escaped(word)}%" for word in terms]


def _frozen(environments: Sequence[Environment]) -> dict[int, str]:
    """Return environment → the freeze that is in force, as a sentence."""
    windows = ((row.pk, window_of(row, time_travel.present())) for row in environments)
    return {
        number: f"Frozen until {window.ends_at:%Y-%m-%d %H:%M} UTC: {window.reason}"
        for number, window in windows
        if window is not None
    }
