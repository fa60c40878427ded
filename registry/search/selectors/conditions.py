"""Pieces of SQL that the groups share: what somebody may read, patterns of folded texts, what is asked of subjects, a limit of time, and reading a cursor."""

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
class Sight:
    """The registries that are searched, by number, and the condition on `e.registry_id` and `e.name` (qualified).

    `whole`: nothing is out of sight, and the condition is always true.
    """

    registries: Mapping[int, str]
    whole: bool
    condition: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def on(self, registry: str, name: str) -> str:
        """The condition on other columns."""
        return self.condition.replace("e.registry_id", registry).replace("e.name", name)


def require_sight(by: Actor) -> None:
    """Raise NotSignedIn or NotAllowed where somebody may read nothing at all."""
    if not may_somewhere(by, READ):
        require(by, READ)


def sight_of(by: Actor) -> Sight:
    """What somebody may search through: subjects of the registries that have pages. Raises NotSignedIn, NotAllowed."""
    require_sight(by)
    rows = list(Registry.objects.order_by("pk").values_list("pk", "name", "project", "location"))
    here = {key: name for key, name, *parent in rows if parent == [settings.DEFAULT_PROJECT, settings.DEFAULT_LOCATION]}
    wide = [key for key, name in here.items() if may(by, READ, registry=name)]
    if len(wide) == len(rows):
        return Sight(here, whole=True, condition="TRUE")
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
    return Sight(here, whole=False, condition=f"({' OR '.join(conditions)})", parameters=parameters)


MAX_SWAPPED: Final = 12
_RUN: Final = re.compile(r"\w{3}")
#: what PostgreSQL calls a statement that took longer than it may
_CANCELLED: Final = "57014"

#: the subjects of an id, soft-deleted versions left out
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
    """Conditions that hold together, with their parameters, which each get a name of their own."""

    conditions: list[str] = field(default_factory=list)
    parameters: dict[str, Any] = field(default_factory=dict)

    def give(self, value: Any) -> str:
        """The placeholder of a value."""
        name = f"p{len(self.parameters)}"
        self.parameters[name] = value
        return f"%({name})s"

    def add(self, condition: str) -> None:
        """One more condition."""
        self.conditions.append(condition)

    @property
    def where(self) -> str:
        """All of them."""
        return " AND ".join(self.conditions) or "TRUE"


def contains(text: str) -> str:
    """The pattern of what contains a text; of one or two characters, which have no trigram, of what begins with it."""
    return anywhere(text) if _RUN.search(text) else begins(text)


def anywhere(text: str) -> str:
    """The pattern of what contains a text, however short it is."""
    return f"%{escaped(fold(text))}%"


def begins(text: str) -> str:
    """The pattern of what begins with a text."""
    return f"{escaped(fold(text))}%"


def swapped_letters(word: str) -> list[str]:
    """The word with two neighbours that changed places, each pair in turn; trigrams alone don't see that they are alike."""
    if not 3 <= len(word) <= MAX_SWAPPED:
        return []
    pairs = (word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(len(word) - 1))
    return [swapped for swapped in dict.fromkeys(pairs) if swapped != word]


def whole_line(text: str) -> str:
    """The pattern of texts that have it as one of their lines."""
    return f"%\n{escaped(fold(text))}\n%"


def of_subjects(query: Query, sight: Sight) -> Sql | None:
    """What a query asks of subjects `e`, and what may be seen of them; None where that is everything."""
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
        # the key begins with the context: with all of them it is an index that is asked, not the table
        return f"sc.schema_id = {sql.give(number)} AND sc.context_id IN (SELECT id FROM subjects_context)"
    if (guid := as_guid(value)) is not None:
        return f"sc.guid = {sql.give(guid)}"
    return f"sc.fingerprint = {sql.give(value)}"


which_id = _which_id


def _add_level(sql: Sql, level: str) -> None:
    """Those that set the level themselves, and those that set none in contexts where it is what they inherit."""
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
    """The rows of a query."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return list(cursor.fetchall())


def numbers_in(cursor: str, count: int) -> list[int]:
    """The numbers of a cursor. Raises InvalidInput."""
    parts = cursor.split(".")
    if len(parts) != count or not all(re.fullmatch(r"[0-9]{1,18}", part) for part in parts):
        raise InvalidInput("The cursor is not from a search in this group. Start without a cursor.")
    return [int(part) for part in parts]


class TookTooLong(Exception):
    """The database would have taken longer than it may."""


_TIMEOUT: Final = "SELECT current_setting('statement_timeout'), set_config('statement_timeout', %s, true)"


def _milliseconds(seconds: float) -> str:
    return f"{max(1, round(seconds * 1000))}ms"


@contextmanager
def in_time(seconds: float) -> Iterator[Callable[[float], None]]:
    """Each statement of the block has so long; an error takes the limit back with the savepoint. Raises TookTooLong.

    It gives what sets another limit for the statements that follow.
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
