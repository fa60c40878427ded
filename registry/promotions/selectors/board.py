"""The board: subjects × environments, with what differs and whether each could go on. Constant in queries."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db import connection, transaction
from django.utils import timezone

from registry.access.roles import Actor, may, may_somewhere, require
from registry.errors import InvalidInput
from registry.promotions.basis import basis_query, pairs_of
from registry.promotions.models import Environment, FreezeWindow, PromotionOutlook, PromotionRequest, RequestItem
from registry.subjects.models import SchemaVersion, VersionStanding
from registry.subjects.names import SubjectName, parse_subject
from registry.subjects.selectors.standing import Standing

BEHIND: Final = "behind"
BLOCKED: Final = "blocked"
OTHER_ID: Final = "id differs"
OTHER_CONTENT: Final = "different content"
FILTERS: Final = (BEHIND, BLOCKED, OTHER_ID, OTHER_CONTENT)
MAX_ROWS: Final = 100
MAX_WORDS: Final = 8
MAX_TEXT: Final = 200

#: the subjects that somebody may read and searches for, in each place; %(…)s are given by `_places`
_HERE: Final = """
WITH place(n, registry) AS (SELECT * FROM unnest(%(n)s::int[], %(registries)s::bigint[])),
readable(registry, context, subject) AS (
    SELECT * FROM unnest(%(readable_registries)s::bigint[], %(readable_contexts)s::text[], %(readable_subjects)s::text[])
), here AS (
    SELECT s.id, place.n, c.name AS context, s.name AS subject
    FROM place
    JOIN subjects_context c ON c.registry_id = place.registry
    JOIN subjects_subject s ON s.context_id = c.id
    WHERE (place.registry = ANY(%(open)s)
           OR (place.registry, c.name, s.name) IN (SELECT registry, context, subject FROM readable))
    AND s.name ILIKE ALL(%(words)s::text[])
)"""
#: without a filter: those with a live version; a filter asks for the versions themselves
_ALL: Final = """
    SELECT context, subject FROM here
    WHERE EXISTS (SELECT 1 FROM subjects_schemaversion v WHERE v.subject_id = here.id AND v.deleted_at IS NULL)"""
#: the tables that the filters look at, each made once and only for the filters that need it
_TABLES: Final = {
    "newest": """newest AS MATERIALIZED (
    SELECT DISTINCT ON (v.subject_id) v.subject_id, v.schema_id
    FROM subjects_schemaversion v
    WHERE v.deleted_at IS NULL
    ORDER BY v.subject_id, v.version DESC
)""",
    # the newest that isn't quarantined, which is the one to promote
    "trusted": """trusted AS MATERIALIZED (
    SELECT DISTINCT ON (v.subject_id) v.subject_id, v.schema_id
    FROM subjects_schemaversion v
    WHERE v.deleted_at IS NULL AND v.id NOT IN (
        SELECT st.version_id FROM subjects_versionstanding st WHERE st.standing = 'quarantined')
    ORDER BY v.subject_id, v.version DESC
)""",
    "pairs": """pairs AS (
    SELECT source.n + 1 AS n, source.context, source.subject, source.id AS source_id, target.id AS target_id
    FROM here source
    LEFT JOIN here target ON target.n = source.n + 1 AND target.context = source.context
        AND target.subject = source.subject
    WHERE source.n < %(last)s
)""",
    "ahead": """ahead AS (
    SELECT pairs.n, pairs.context, pairs.subject
    FROM pairs
    JOIN trusted ON trusted.subject_id = pairs.source_id
    JOIN subjects_schema sc ON sc.id = trusted.schema_id
    WHERE NOT EXISTS (
        SELECT 1 FROM subjects_schemaversion x JOIN subjects_schema sx ON sx.id = x.schema_id
        WHERE x.subject_id = pairs.target_id AND x.deleted_at IS NULL AND sx.fingerprint = sc.fingerprint)
)""",
}
#: filter → the tables that it needs, and those that it leaves
_CHOICES: Final = {
    BEHIND: (("trusted", "pairs", "ahead"), "SELECT context, subject FROM ahead"),
    BLOCKED: (
        ("trusted", "pairs", "ahead"),
        """
    SELECT ahead.context, ahead.subject FROM ahead
    WHERE ahead.n = ANY(%(frozen)s::int[]) OR (ahead.n, ahead.context, ahead.subject) IN (
        SELECT pair.n, outlook.context_name, outlook.subject_name
        FROM unnest(%(pair_numbers)s::int[], %(pair_sources)s::bigint[], %(pair_targets)s::bigint[])
            AS pair(n, source_id, target_id)
        JOIN promotions_promotionoutlook outlook ON outlook.source_id = pair.source_id
            AND outlook.target_id = pair.target_id
        WHERE outlook.verdict = 'no')""",
    ),
    OTHER_ID: (
        ("newest", "pairs"),
        """
    SELECT pairs.context, pairs.subject
    FROM pairs
    JOIN newest ON newest.subject_id = pairs.target_id
    JOIN subjects_schema held ON held.id = newest.schema_id
    JOIN subjects_schemaversion v ON v.subject_id = pairs.source_id AND v.deleted_at IS NULL
    JOIN subjects_schema sc ON sc.id = v.schema_id
    WHERE sc.fingerprint = held.fingerprint AND sc.schema_id <> held.schema_id""",
    ),
    OTHER_CONTENT: (
        ("pairs",),
        """
    SELECT pairs.context, pairs.subject
    FROM pairs
    JOIN subjects_schemaversion v ON v.subject_id = pairs.source_id AND v.deleted_at IS NULL
    JOIN subjects_schemaversion w ON w.subject_id = pairs.target_id AND w.deleted_at IS NULL AND w.version = v.version
    JOIN subjects_schema sc ON sc.id = v.schema_id
    JOIN subjects_schema held ON held.id = w.schema_id
    WHERE sc.fingerprint <> held.fingerprint""",
    ),
}
_PAGE: Final = """
    SELECT context, subject, (SELECT count(*) FROM chosen) FROM chosen
    WHERE (context COLLATE "C", subject COLLATE "C") > (%(context)s, %(subject)s)
    ORDER BY context COLLATE "C", subject COLLATE "C" LIMIT %(limit)s
"""
#: A filter compares every version with its counterpart. The planner takes the few that it expects one by one, and they
#: are tens of thousands: it is told to hash, and in memory. Of the blocked there are few, which it sees by itself.
_PLANNED: Final = "SET LOCAL enable_nestloop TO off; SET LOCAL work_mem TO '32MB'"
_PLANNED_AS_EVER: Final = "SET LOCAL enable_nestloop TO DEFAULT; SET LOCAL work_mem TO DEFAULT"


@dataclass(frozen=True)
class BoardPlace:
    """An environment as a column; `frozen` says until when nothing is applied there, "" if something is."""

    name: str
    position: int
    is_closed: bool
    frozen: str = ""


@dataclass(frozen=True)
class BoardCell:
    """A subject in an environment, held against the environment before it.

    `version` is the newest live one, 0 where there is none; it came `since`, and `standing` is what was decided of it. `behind`: it lacks `wanted`, the version there that would be
    promoted. `id_differs`: the schema of `version` has another id there. `other_content`: version numbers that stand for
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
class Board:
    """A page of the board; `total` counts the rows of all pages, `after` begins the next one ("" on the last)."""

    places: tuple[BoardPlace, ...]
    rows: tuple[BoardRow, ...]
    total: int
    after: str


def board_rows(*, by: Actor, text: str = "", filters: Collection[str] = (), after: str = "", limit: int = 50) -> Board:
    """A page of the subjects that somebody may read, by name, with all of the words in `text` and fitting all filters.

    `blocked` goes by what was worked out last; a cell where something moved since then says that it isn't known.
    `after` is what the page before gave. Raises NotSignedIn, NotAllowed, InvalidInput, InvalidName.
    """
    if not may_somewhere(by, "schema.read"):
        require(by, "schema.read")
    unknown = sorted(set(filters) - set(FILTERS))
    if unknown:
        raise InvalidInput(f"{unknown[0][:40]!r} is no filter: use one of {', '.join(FILTERS)}.")
    environments = [
        row
        for row in Environment.objects.select_related("registry").order_by("position")
        if any(_sees(by, row, subject) for subject in (None, ""))
    ]
    frozen = _frozen(environments)
    most = max(1, min(limit, MAX_ROWS))
    parameters = _places(environments, by) | _pair_parameters(environments, frozen) | {"words": _patterns(text)}
    keys, total = _keys(filters, parameters, after, most)
    shown = keys[:most]
    places = tuple(
        BoardPlace(row.registry.name, row.position, row.is_closed, frozen.get(row.pk, "")) for row in environments
    )
    rows = _rows(environments, shown, by)
    return Board(places, rows, total, shown[-1].qualified if len(keys) > len(shown) else "")


def _sees(by: Actor, place: Environment, subject: str | None) -> bool:
    """Whether somebody may read a subject there; of None, whether there may be any."""
    registry = place.registry.name
    if subject is None:
        limits = (by.limit,) if by.limit else ()
        has_place = all(limit.registry in ("", registry) for limit in limits)
        return has_place and any(grant.registry in ("", registry) for grant in by.grants)
    return may(by, "schema.read", registry=registry, subject=subject)


def _places(environments: Sequence[Environment], by: Actor) -> dict[str, Any]:
    """The environments, and what may be read there: everything, or (by patterns of rights) the subjects listed."""
    limited = [row for row in environments if not _sees(by, row, "")]
    found: list[tuple[int, str, str]] = []
    if limited:
        names = _all_names([row.registry_id for row in limited])
        by_registry = {row.registry_id: row for row in limited}
        found = [
            (registry, name.context, name.subject)
            for registry, name in names
            if _sees(by, by_registry[registry], name.qualified)
        ]
    return {
        "n": list(range(len(environments))),
        "registries": [row.registry_id for row in environments],
        "open": [row.registry_id for row in environments if row not in limited],
        "readable_registries": [registry for registry, _, _ in found],
        "readable_contexts": [context for _, context, _ in found],
        "readable_subjects": [subject for _, _, subject in found],
    }


def _all_names(registries: Sequence[int]) -> list[tuple[int, SubjectName]]:
    rows = SchemaVersion.objects.filter(subject__context__registry__in=registries, deleted_at=None)
    columns = ("subject__context__registry", "subject__context__name", "subject__name")
    return [(registry, SubjectName(context, name)) for registry, context, name in rows.values_list(*columns).distinct()]


def _patterns(text: str) -> list[str]:
    """A pattern for each word, with nothing in it that PostgreSQL reads as one."""
    if len(text) > MAX_TEXT or "\0" in text:
        raise InvalidInput(f"Search with at most {MAX_TEXT} characters, and without NUL.")
    words = text.split()[:MAX_WORDS]
    return ["%" + "".join(f"\\{char}" if char in "\\%_" else char for char in word) + "%" for word in words] or ["%"]


def _frozen(environments: Sequence[Environment]) -> dict[int, str]:
    """Environment → why nothing is applied there now."""
    now = timezone.now()
    rows = FreezeWindow.objects.filter(environment__in=environments, starts_at__lte=now, ends_at__gt=now)
    return {
        row.environment_id: f"Frozen until {row.ends_at:%Y-%m-%d %H:%M} UTC: {row.reason}"
        for row in rows.order_by("ends_at")
    }


def _conditions(filters: Collection[str]) -> str:
    """The tables up to `chosen`, which has (context, subject) of the rows that fit all filters."""
    wanted = [_CHOICES[name] for name in FILTERS if name in filters]
    needed = [name for name in _TABLES if any(name in tables for tables, _ in wanted)]
    queries = [query for _, query in wanted] or [_ALL]
    chosen = " INTERSECT ".join(queries) if len(queries) > 1 else f"{queries[0]} GROUP BY 1, 2"
    return "".join(f", {_TABLES[name]}" for name in needed) + f", chosen AS MATERIALIZED ({chosen})"


def _pair_parameters(environments: Sequence[Environment], frozen: Mapping[int, str]) -> dict[str, Any]:
    """What the filters take besides the places: the pairs by the number of their target."""
    pairs = pairs_of(environments)
    return {
        "last": len(environments) - 1,
        "frozen": [number for number, row in enumerate(environments) if row.pk in frozen],
        "pair_numbers": list(range(1, len(environments))),
        "pair_sources": [pair.source.pk for pair in pairs],
        "pair_targets": [pair.target.pk for pair in pairs],
    }


def _keys(
    filters: Collection[str], parameters: Mapping[str, Any], after: str, limit: int
) -> tuple[list[SubjectName], int]:
    """The names of a page and one more, and how many there are on all pages."""
    start = parse_subject(after) if after else SubjectName("", "")
    query = _HERE + _conditions(filters) + _PAGE
    given = {**parameters, "context": start.context, "subject": start.subject, "limit": limit + 1}
    with _planned(in_bulk=bool(filters) and BLOCKED not in filters), connection.cursor() as cursor:
        cursor.execute(query, given)
        rows = cursor.fetchall()
    total = rows[0][2] if rows else 0
    return [SubjectName(context, subject) for context, subject, _ in rows], total


@contextmanager
def _planned(*, in_bulk: bool) -> Iterator[None]:
    """How PostgreSQL plans in the block; an error takes the settings back with the transaction."""
    if not in_bulk:
        yield
        return
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_PLANNED)
        yield
        cursor.execute(_PLANNED_AS_EVER)


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


def _rows(environments: Sequence[Environment], subjects: Sequence[SubjectName], by: Actor) -> tuple[BoardRow, ...]:
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
        if name in wanted and _sees(by, place, name.qualified):
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
