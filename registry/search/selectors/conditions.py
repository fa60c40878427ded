"""SQL shared by the groups.

What is readable, patterns of folded texts, operators on subjects, a time limit, and cursors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from django.conf import settings
from django.db import OperationalError, connection, transaction

from registry.access.name_patterns import escaped, name_pattern
from registry.access.permission_filters import READ, extent_of
from registry.access.roles import Actor, may, may_somewhere, require
from registry.errors import InvalidInput
from registry.search.models import fold
from registry.search.query import Query, as_guid, as_number
from registry.subjects.models import Config, Context, Registry
from registry.subjects.policy.effective_policy import DEFAULT_LEVEL


@dataclass(frozen=True)
class ReadScope:
    """The searched registries, id → name, and the condition of what is readable, on `e.registry_id` and `e.name`.

    `e.name` is qualified. `whole`: everything is readable, and the condition is always true.
    """

    registries: Mapping[int, str]
    whole: bool
    condition: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def on(self, registry: str, name: str) -> str:
        """Return the condition on other columns."""
        return self.condition.replace("e.registry_id", registry).replace("e.name", name)


def require_sight(by: Actor) -> None:
    """Raise NotSignedIn or NotAllowed if the actor may read nothing at all."""
    if not may_somewhere(by, READ):
        require(by, READ)


def read_scope_of(by: Actor) -> ReadScope:
    """Return what the actor may search: subjects of the registries that have pages. Raises NotSignedIn, NotAllowed."""
    require_sight(by)
    rows = list(Registry.objects.order_by("pk").values_list("pk", "name", "project", "location"))
    here = {key: name for key, name, *parent in rows if parent == [settings.DEFAULT_PROJECT, settings.DEFAULT_LOCATION]}
    wide = [key for key, name in here.items() if may(by, READ, registry=name)]
    if len(wide) == len(rows):
        return ReadScope(here, whole=True, condition="TRUE")
    conditions = ["e.registry_id = ANY(%(sight_wide)s)"]
    parameters: dict[str, Any] = {"sight_wide": wide}
    extent = extent_of(by, READ)
    for key, name in here.items():
        if key in wide:
            continue
        for part in extent.within(name).parts:
            number = len(conditions)
            parameters[f"sight_{number}"] = key
            parts = [f"e.registry_id = %(sight_{number})s"]
            for index, pattern in enumerate(part.patterns):
                parameters[f"sight_{number}_{index}"] = name_pattern(pattern).like
                parts.append(f"e.name LIKE %(sight_{number}_{index})s")
            conditions.append(f"({' AND '.join(parts)})")
    return ReadScope(here, whole=False, condition=f"({' OR '.join(conditions)})", parameters=parameters)


MAX_SWAPPED: Final = 12
_RUN: Final = re.compile(r"\w{3}")
#: PostgreSQL's SQLSTATE for a statement that reached its time limit
_CANCELLED: Final = "57014"

#: the subjects of an id, without soft-deleted versions
_OF_ID: Final = """
SELECT v.subject_id FROM subjects_schema sc JOIN subjects_schemaversion v ON v.schema_id = sc.id
WHERE v.deleted_at IS NULL AND {which}
"""
_DRIFTING: Final = """(e.registry_id, e.name) IN (
    SELECT source.registry_id, finding.subject_name FROM drift_finding finding
    JOIN drift_source source ON source.id = finding.source_id
    WHERE finding.state = 'open' AND NOT finding.muted AND finding.subject_name <> ''
)"""
_OWN_LEVEL: Final = """
SELECT s.id FROM subjects_config own
JOIN subjects_subject s ON s.context_id = own.context_id AND s.name = own.subject_name
WHERE own.subject_name IS NOT NULL AND own.compatibility_level {which}
"""


@dataclass
class Sql:
    """Conditions joined by AND, with their parameters, each of which has a name of its own."""

    conditions: list[str] = field(default_factory=list)
    parameters: dict[str, Any] = field(default_factory=dict)

    def give(self, value: Any) -> str:
        """Add a value; return its placeholder."""
        name = f"p{len(self.parameters)}"
        self.parameters[name] = value
        return f"%({name})s"

    def add(self, condition: str) -> None:
        """Add a condition."""
        self.conditions.append(condition)

    @property
    def where(self) -> str:
        """All conditions, joined by AND."""
        return " AND ".join(self.conditions) or "TRUE"


def contains(text: str) -> str:
    """Return the pattern of texts that contain a text; without three word characters in a row, that begin with it."""
    return anywhere(text) if _RUN.search(text) else begins(text)


def anywhere(text: str) -> str:
    """Return the pattern of texts that contain a text, however short it is."""
    return f"%{escaped(fold(text))}%"


def begins(text: str) -> str:
    """Return the pattern of texts that begin with a text."""
    return f"{escaped(fold(text))}%"


def swapped_letters(word: str) -> list[str]:
    """Return the word with each pair of neighbouring letters swapped in turn; trigrams miss such typing errors."""
    if not 3 <= len(word) <= MAX_SWAPPED:
        return []
    pairs = (word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(len(word) - 1))
    return [swapped for swapped in dict.fromkeys(pairs) if swapped != word]


def whole_line(text: str) -> str:
    """Return the pattern of texts that have this text as one of their lines."""
    return f"%\n{escaped(fold(text))}\n%"


def of_subjects(query: Query, sight: ReadScope) -> Sql | None:
    """Return the conditions on subjects `e`: the query's operators and what is readable; None if there are none."""
    sql = Sql(parameters=dict(sight.parameters))
    if not sight.whole:
        sql.add(sight.condition)
    for value in query.of("id"):
        sql.add(f"e.subject_id IN ({_OF_ID.format(which=_which_id(value, sql))})")
    for value in query.of("drift"):
        sql.add(_DRIFTING if value == "yes" else f"NOT ({_DRIFTING})")
    for value in query.of("ref"):
        sql.add(f"(e.folded_refs <> '' AND e.folded_refs LIKE {sql.give(anywhere(value))})")
    for value in query.of("compat"):
        _add_level(sql, value)
    return sql if sql.conditions else None


def _which_id(value: str, sql: Sql) -> str:
    if (number := as_number(value)) is not None:
        # the index begins with the context: it is used only if the contexts are given, here all of them
        return f"sc.schema_id = {sql.give(number)} AND sc.context_id IN (SELECT id FROM subjects_context)"
    if (guid := as_guid(value)) is not None:
        return f"sc.guid = {sql.give(guid)}"
    return f"sc.fingerprint = {sql.give(value)}"


which_id = _which_id


def _add_level(sql: Sql, level: str) -> None:
    """Add the condition for subjects that set the level, or set none in a context that has it."""
    rows = Config.objects.filter(subject_name=None).values_list("registry_id", "context_id", "compatibility_level")
    own_levels: dict[tuple[int, int | None], str] = {(registry, context): own for registry, context, own in rows if own}
    contexts = [
        context
        for context, registry in Context.objects.values_list("pk", "registry_id")
        if (own_levels.get((registry, context)) or own_levels.get((registry, None)) or DEFAULT_LEVEL) == level
    ]
    own = _OWN_LEVEL.format(which=f"= {sql.give(level)}")
    other = _OWN_LEVEL.format(which="IS NOT NULL")
    sql.add(
        f"(e.subject_id IN ({own}) OR (e.context_id = ANY({sql.give(contexts)}) AND e.subject_id NOT IN ({other})))"
    )


def rows_of(sql: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Run a query; return its rows."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return list(cursor.fetchall())


def numbers_in(cursor: str, count: int) -> list[int]:
    """Parse the numbers in a cursor. Raises InvalidInput."""
    parts = cursor.split(".")
    if len(parts) != count or not all(re.fullmatch(r"[0-9]{1,18}", part) for part in parts):
        raise InvalidInput("The cursor is not from a search in this group. Start without a cursor.")
    return [int(part) for part in parts]


class TookTooLong(Exception):
    """A statement that reached its time limit."""


_TIMEOUT: Final = "SELECT current_setting('statement_timeout'), set_config('statement_timeout', %s, true)"


def _milliseconds(seconds: float) -> str:
    return f"{max(1, round(seconds * 1000))}ms"


@contextmanager
def in_time(seconds: float) -> Iterator[Callable[[float], None]]:
    """Limit the seconds of each statement in the block; raises TookTooLong.

    An error restores the limit with the savepoint.
    """
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(_TIMEOUT, [_milliseconds(seconds)])
            before, _ = cursor.fetchone()
            yield lambda left: cursor.execute(_TIMEOUT, [_milliseconds(left)])
            cursor.execute(_TIMEOUT, [before])
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", "") == _CANCELLED:
            raise TookTooLong from error
        raise
