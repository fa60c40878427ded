"""The cells of a page of the board: what each environment holds of a subject, held against the one before it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final

from django.db import connection

from registry.access.roles import Actor, may
from registry.promotions.basis import basis_query, pairs_of
from registry.promotions.models import Environment, PromotionRequest, RequestItem
from registry.subjects.models import VersionStanding
from registry.subjects.names import SubjectName
from registry.subjects.selectors.standing import Standing


@dataclass(frozen=True)
class BoardCell:
    """A subject in an environment, held against the environment before it.

    `version` is the newest live one, 0 where there is none; it came `since`, and `standing` is what was decided of it.
    `row` is its number in the database, and `live` has number and row of each live one, ascending.
    `behind`: it lacks `wanted`, the version there that would be promoted. `id_differs`: the schema of `version` has another id there. `other_content`: version numbers that stand for
    other schemas there. `verdict` is the answer to whether it could be promoted: "" where the question doesn't arise,
    "unknown" where it wasn't worked out since something moved. `request` is the open request for it.
    """

    place: str
    version: int = 0
    fingerprint: str = ""
    schema_id: int = 0
    row: int = 0
    live: tuple[tuple[int, int], ...] = ()
    since: datetime | None = None
    standing: Standing | None = None
    wanted: int = 0
    behind: bool = False
    id_differs: bool = False
    other_content: tuple[int, ...] = ()
    verdict: str = ""
    reasons: tuple[Mapping[str, str], ...] = ()
    request: int | None = None
    request_state: str = ""


@dataclass(frozen=True)
class BoardRow:
    """A subject with a cell for each place."""

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
    standing: Standing | None = None

    @property
    def is_trusted(self) -> bool:
        """Whether it may be promoted."""
        return self.standing is None or self.standing.standing != VersionStanding.QUARANTINED


_Held = Mapping[tuple[int, SubjectName], Sequence[_Version]]


def rows_of(environments: Sequence[Environment], subjects: Sequence[SubjectName], by: Actor) -> tuple[BoardRow, ...]:
    """The rows of these subjects, with cells as somebody may read them; a constant number of queries."""
    if not subjects:
        return ()
    held = _held(environments, subjects, by)
    steps = {subject: _steps(environments, subject, held) for subject in subjects}
    behind = [subject for subject, found in steps.items() if any(step.is_behind for step in found)]
    outlooks = _outlooks(environments, behind)
    requests = _requests(environments, behind)
    return tuple(
        BoardRow(subject, tuple(_cell(step, subject, outlooks, requests) for step in found))
        for subject, found in steps.items()
    )


#: those of a page are found by their names, in an index
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


def _held(environments: Sequence[Environment], subjects: Sequence[SubjectName], by: Actor) -> _Held:
    """The live versions of the page's subjects, ascending, where somebody may read them; one query."""
    readable = {
        (place.registry_id, name.context, name.subject): (place.pk, name)
        for place in environments
        for name in subjects
        if may(by, "schema.read", registry=place.registry.name, subject=name.qualified)
    }
    given: dict[str, Any] = {"registries": [place.registry_id for place in environments], **_names(subjects)}
    found: dict[tuple[int, SubjectName], list[_Version]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_VERSIONS, given)
        for registry, context, subject, number, fingerprint, schema_id, row, since, *decided in cursor.fetchall():
            key = readable.get((registry, context, subject))
            if key is not None:
                standing = Standing(*decided) if decided[0] else None
                found.setdefault(key, []).append(_Version(number, fingerprint, schema_id, row, since, standing))
    return found


def _names(subjects: Sequence[SubjectName]) -> dict[str, list[str]]:
    return {"contexts": [name.context for name in subjects], "subjects": [name.subject for name in subjects]}


_Outlooks = Mapping[tuple[int, SubjectName], tuple[str, tuple[Mapping[str, str], ...]]]
#: the answers that were worked out from what is there now
_FRESH: Final = """
SELECT known.n, known.context, known.subject, outlook.verdict, outlook.reasons::text
FROM ({basis}) known
JOIN unnest(%(n)s::int[], %(source_ids)s::bigint[], %(target_ids)s::bigint[]) AS place(n, source_id, target_id)
    ON place.n = known.n
JOIN promotions_promotionoutlook outlook ON outlook.source_id = place.source_id
    AND outlook.target_id = place.target_id AND outlook.context_name = known.context
    AND outlook.subject_name = known.subject AND outlook.basis = known.basis
"""


def _outlooks(environments: Sequence[Environment], subjects: Sequence[SubjectName]) -> _Outlooks:
    """(number of the pair, subject) → the answer that still holds."""
    pairs = pairs_of(environments)
    if not pairs or not subjects:
        return {}
    basis, parameters = basis_query(pairs, subjects)
    places = {
        "source_ids": [pair.source.pk for pair in pairs],
        "target_ids": [pair.target.pk for pair in pairs],
    }
    with connection.cursor() as cursor:
        cursor.execute(_FRESH.format(basis=basis), parameters | places)
        return {
            (number, SubjectName(context, name)): (verdict, tuple(json.loads(reasons)))
            for number, context, name, verdict, reasons in cursor.fetchall()
        }


_Requests = Mapping[tuple[int, SubjectName, str], tuple[int, str]]


def _requests(environments: Sequence[Environment], subjects: Sequence[SubjectName]) -> _Requests:
    """(target, subject, fingerprint) → the open request for it, and its state."""
    if not subjects:
        return {}
    rows = RequestItem.objects.filter(
        open_in__in=environments,
        context_name__in={name.context for name in subjects},
        subject_name__in={name.subject for name in subjects},
    ).exclude(request__state=PromotionRequest.DRAFT)
    columns = ("open_in", "context_name", "subject_name", "fingerprint", "request", "request__state")
    return {
        (place, SubjectName(context, subject), fingerprint): (request, state)
        for place, context, subject, fingerprint, request, state in rows.values_list(*columns)
    }


@dataclass(frozen=True)
class _Step:
    """A subject's versions in an environment and in the one before it; `number` is that of the place in the order."""

    number: int
    place: Environment
    here: Sequence[_Version]
    before: Sequence[_Version]

    @cached_property
    def wanted(self) -> _Version | None:
        """The one that would be promoted: the newest that isn't quarantined."""
        return next((version for version in reversed(self.before) if version.is_trusted), None)

    @cached_property
    def is_behind(self) -> bool:
        """Whether that one isn't here."""
        return self.wanted is not None and all(v.fingerprint != self.wanted.fingerprint for v in self.here)


def _steps(environments: Sequence[Environment], subject: SubjectName, held: _Held) -> list[_Step]:
    versions = [held.get((place.pk, subject), ()) for place in environments]
    return [
        _Step(number, place, versions[number], versions[number - 1] if number else ())
        for number, place in enumerate(environments)
    ]


def _cell(step: _Step, subject: SubjectName, outlooks: _Outlooks, requests: _Requests) -> BoardCell:
    newest = step.here[-1] if step.here else _Version(0, "", 0)
    verdict, reasons = outlooks.get((step.number - 1, subject), ("unknown", ())) if step.is_behind else ("", ())
    request, state = (None, "")
    if step.wanted is not None and step.is_behind:
        request, state = requests.get((step.place.pk, subject, step.wanted.fingerprint), (None, ""))
    return BoardCell(
        place=step.place.registry.name,
        version=newest.number,
        fingerprint=newest.fingerprint,
        schema_id=newest.schema_id,
        row=newest.row,
        live=tuple((version.number, version.row) for version in step.here),
        since=newest.since,
        standing=newest.standing,
        wanted=step.wanted.number if step.wanted else 0,
        behind=step.is_behind,
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
    known = {version.number: version.fingerprint for version in before}
    return tuple(
        version.number for version in here if known.get(version.number, version.fingerprint) != version.fingerprint
    )
