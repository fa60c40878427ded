"""The cells of a page of the board: what each environment holds of a subject, held against the one before it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from registry.access.roles import Actor, may
from registry.promotions.basis import basis_query, pairs_of
from registry.promotions.models import Environment, PromotionOutlook, PromotionRequest, RequestItem
from registry.subjects.models import SchemaVersion, VersionStanding
from registry.subjects.names import SubjectName
from registry.subjects.selectors.standing import Standing


@dataclass(frozen=True)
class BoardCell:
    """A subject in an environment, held against the environment before it.

    `version` is the newest live one, 0 where there is none; it came `since`, and `standing` is what was decided of it.
    `behind`: it lacks `wanted`, the version there that would be promoted. `id_differs`: the schema of `version` has another id there. `other_content`: version numbers that stand for
    other schemas there. `verdict` is the answer to whether it could be promoted: "" where the question doesn't arise,
    "unknown" where it wasn't worked out since something moved. `request` is the open request for it.
    """

    place: str
    version: int = 0
    fingerprint: str = ""
    schema_id: int = 0
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
    outlooks = _outlooks(environments, subjects)
    requests = _requests(environments, subjects)
    return tuple(
        BoardRow(
            subject,
            tuple(_cell(environments, place, subject, held, outlooks, requests) for place in range(len(environments))),
        )
        for subject in subjects
    )


def _held(environments: Sequence[Environment], subjects: Sequence[SubjectName], by: Actor) -> _Held:
    """The live versions of the page's subjects, ascending, where somebody may read them; one query."""
    by_registry = {row.registry_id: row for row in environments}
    wanted = set(subjects)
    rows = SchemaVersion.objects.filter(
        subject__context__registry__in=by_registry,
        subject__context__name__in={name.context for name in wanted},
        subject__name__in={name.subject for name in wanted},
        deleted_at=None,
    ).order_by("version")
    columns = rows.values_list(
        "subject__context__registry",
        "subject__context__name",
        "subject__name",
        "version",
        "schema__fingerprint",
        "schema__schema_id",
        "created_at",
        *(f"standing__{name}" for name in ("standing", "message", "ends_at", "decided_by", "decided_at")),
    )
    found: dict[tuple[int, SubjectName], list[_Version]] = {}
    for registry, context, subject, number, fingerprint, schema_id, since, *decided in columns:
        name, place = SubjectName(context, subject), by_registry[registry]
        if name in wanted and may(by, "schema.read", registry=place.registry.name, subject=name.qualified):
            standing = Standing(*decided) if decided[0] else None
            found.setdefault((place.pk, name), []).append(_Version(number, fingerprint, schema_id, since, standing))
    return found


_Outlooks = Mapping[tuple[int, SubjectName], tuple[str, tuple[Mapping[str, str], ...]]]


def _outlooks(environments: Sequence[Environment], subjects: Sequence[SubjectName]) -> _Outlooks:
    """(number of the pair, subject) → the answer that still holds."""
    pairs = pairs_of(environments)
    if not pairs:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(*basis_query(pairs, subjects))
        fresh = {(number, SubjectName(context, name)): basis for number, context, name, basis in cursor.fetchall()}
    numbers = {(pair.source.pk, pair.target.pk): number for number, pair in enumerate(pairs)}
    rows = PromotionOutlook.objects.filter(
        context_name__in={name.context for name in subjects}, subject_name__in={name.subject for name in subjects}
    )
    found = {}
    for row in rows:
        key = numbers.get((row.source_id, row.target_id)), SubjectName(row.context_name, row.subject_name)
        number, name = key
        if number is not None and fresh.get((number, name)) == row.basis:
            found[number, name] = row.verdict, tuple(row.reasons)
    return found


_Requests = Mapping[tuple[int, SubjectName, str], tuple[int, str]]


def _requests(environments: Sequence[Environment], subjects: Sequence[SubjectName]) -> _Requests:
    """(target, subject, fingerprint) → the open request for it, and its state."""
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


def _cell(
    environments: Sequence[Environment],
    place: int,
    subject: SubjectName,
    held: _Held,
    outlooks: _Outlooks,
    requests: _Requests,
) -> BoardCell:
    here = held.get((environments[place].pk, subject), ())
    newest = here[-1] if here else _Version(0, "", 0)
    before = held.get((environments[place - 1].pk, subject), ()) if place else ()
    wanted = next((version for version in reversed(before) if version.is_trusted), None)
    behind = wanted is not None and all(version.fingerprint != wanted.fingerprint for version in here)
    verdict, reasons = outlooks.get((place - 1, subject), ("unknown", ())) if behind else ("", ())
    request, state = (None, "")
    if wanted is not None and behind:
        request, state = requests.get((environments[place].pk, subject, wanted.fingerprint), (None, ""))
    return BoardCell(
        place=environments[place].registry.name,
        version=newest.number,
        fingerprint=newest.fingerprint,
        schema_id=newest.schema_id,
        since=newest.since,
        standing=newest.standing,
        wanted=wanted.number if wanted else 0,
        behind=behind,
        id_differs=_has_other_id(newest, before),
        other_content=_other_content(before, here),
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
