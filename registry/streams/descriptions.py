"""Descriptions that running queries sent of themselves: what a restart is compared with.

A checkpoint says which state there is, not what it means: `sum(v)` and `sum(w)` look alike. So a job or its pipeline
sends what `schemadesk_spark.describe` says after a start, and the newest ones are kept with the query.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final

from django.db import transaction
from django.db.models import Q

from registry.access.permission_filters import READ, require_extent
from registry.access.roles import Actor
from registry.audit.context import record
from registry.checkpoints.plans.queries import Description, read_description
from registry.errors import InvalidInput, NotFound, first_few
from registry.frozen_rows import row_info
from registry.streams.models import QueryRun, RunningDescription, StreamQuery
from registry.streams.selectors import LARGEST

DESCRIBE: Final = "query.describe"
#: descriptions that are kept of a query
KEPT: Final = 10
MAX_DESCRIPTION: Final = 2 * 1024 * 1024  # characters of the JSON as it is kept: laid out, in ASCII


@dataclass(frozen=True)
class RunningInfo:
    """A description as it was sent.

    `later_start` is when a run began of which a listener reported, but no description. `contradicted` is when the last
    known run sent another one of itself: a pipeline then described a version that isn't known to run.
    """

    id: int
    sent_at: datetime
    sent_by: str
    text: str
    later_start: datetime | None = None
    contradicted: datetime | None = None

    @cached_property
    def values(self) -> dict[str, Any]:
        """Return it as JSON values."""
        values: dict[str, Any] = json.loads(self.text)
        return values

    @property
    def description(self) -> Description:
        """Return it for a check."""
        return read_description(self.values)

    @property
    def is_stale(self) -> bool:
        """Return whether the running version may be another one."""
        return self.contradicted is not None or (self.later_start is not None and "run_id" in self.values)

    @property
    def sentence(self) -> str:
        """Say whose description is compared, or why it isn't."""
        whose = f"the description of the running query that {self.sent_by} sent at {_moment(self.sent_at)}"
        text = f"Not compared with {whose}." if self.is_stale else f"Compared with {whose}."
        if self.contradicted is not None:
            at = _moment(self.contradicted)
            return f"{text} The query sent another one of itself at {at}, and no later start of it is known."
        if self.later_start is None:
            return text
        return f"{text} The query was started again at {_moment(self.later_start)}, and that run sent none."


def _moment(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


@dataclass(frozen=True)
class KeptDescription:
    """What was sent, and the query that it belongs to; not `is_new` if it was there already."""

    query: int
    id: int
    is_new: bool


def find_query(query: str, *, by: Actor, registry: str = "", action: str = READ) -> StreamQuery:
    """Return a query by its checkpoint's path or folder name, by Spark's id, or by its number in a link.

    One for which the actor may not do the action counts as missing. Raises NotSignedIn, NotAllowed, NotFound, and InvalidInput if several have the name.
    """
    require_extent(by, action, registry=registry)
    path = query.strip().rstrip("/")
    condition = Q(path=path) | Q(path__endswith=f"/{path}") | Q(query_id=path)
    if path.isascii() and path.isdigit() and int(path) <= LARGEST:
        condition |= Q(pk=int(path))
    rows = (
        StreamQuery.objects.visible_to(by, action).filter(condition).select_related("registry").order_by("path", "id")
    )
    queries = list(rows.filter(registry__name=registry) if registry else rows) if path else []
    queries = [row for row in queries if row.path == path] or queries
    if not queries:
        where = f" in {registry}" if registry else ""
        raise NotFound(
            f"There is no streaming query {query[:200]!r}{where}. Scan its checkpoint first.", query=query[:200]
        )
    if len(queries) > 1:
        paths = first_few([f"{row.path} (number {row.pk}, {row.registry.name})" for row in queries])
        raise InvalidInput(f"Several queries are named {query[:200]!r}: {paths}. Give the path or the number.")
    return queries[0]


def keep_description(*, description: Any, by: Actor, query: str = "", registry: str = "") -> KeptDescription:
    """Keep what a query says of itself after a start. A second delivery of the same changes nothing.

    Without `query`, the description has Spark's id of it. Raises InvalidSchema, InvalidInput, NotSignedIn, NotAllowed,
    NotFound.
    """
    require_extent(by, DESCRIBE, registry=registry)
    text = json.dumps(description, sort_keys=True, indent=2)
    if len(text) > MAX_DESCRIPTION:
        raise InvalidInput(f"A description may have up to {MAX_DESCRIPTION:,} characters; this has {len(text):,}.")
    described = read_description(description)
    name = query or described.query_id
    if not name:
        raise InvalidInput(
            "Name the query: this description is of a DataFrame, which has no checkpoint.", field="query"
        )
    row = find_query(name, by=by, registry=registry, action=DESCRIBE)
    if described.query_id and described.query_id != row.query_id:
        raise InvalidInput(
            f"This description is of query {described.query_id[:100]}, but {row.path[:200]} is of query "
            f"{row.query_id[:100]}. If its checkpoint is new, scan it again.",
            field="query",
        )
    with transaction.atomic():
        StreamQuery.objects.select_for_update().get(pk=row.pk)
        stored = list(row.descriptions.all())
        # One of a run that ended may arrive again, late; one without a run can only repeat the newest.
        repeatable = stored if description.get("run_id") else stored[:1]
        same = next((former for former in repeatable if former.text == text), None)
        if same is not None:
            return KeptDescription(row.pk, same.pk, is_new=False)
        record(by=by, why=f"describe the running query at {row.path[:200]}")
        made = row.descriptions.create(sent_by=by.name, text=text)
        row.descriptions.filter(pk__in=[former.pk for former in stored[KEPT - 1 :]]).delete()
    return KeptDescription(row.pk, made.pk, is_new=True)


def list_descriptions(query_id: int) -> list[RunningInfo]:
    """List what is kept of a query, newest first; one query."""
    rows = RunningDescription.objects.filter(query_id=query_id)
    return [row_info(RunningInfo, row, later_start=None, contradicted=None) for row in rows]


def running_description(checkpoint: str, *, query: StreamQuery | None = None) -> RunningInfo | None:
    """Return the newest description of the query with this checkpoint; two queries.

    Several registries can have the checkpoint: with `query`, only what was sent for that registry's counts.
    """
    of_query = Q(query=query) if query else Q(query__path=checkpoint.strip().rstrip("/"))
    rows = RunningDescription.objects.filter(of_query)
    kept = [row_info(RunningInfo, row, later_start=None, contradicted=None) for row in rows[:KEPT]]
    if not kept:
        return None
    newest, of_run = kept[0], next((each for each in kept if "run_id" in each.values), None)
    known = of_run or newest
    runs = QueryRun.objects.filter(of_query, started_at__gt=known.sent_at)
    starts = list(runs.values_list("started_at", flat=True))
    later = [start for start in starts if start > newest.sent_at]
    differs = of_run is not None and of_run is not newest and not says_the_same(of_run.description, newest.description)
    return replace(
        newest,
        later_start=later[0] if later else None,
        contradicted=known.sent_at if differs and not starts else None,
    )


def says_the_same(one: Description, other: Description) -> bool:
    """Return whether two descriptions describe the same version of a query; who sent them doesn't matter."""
    return replace(one, query_id="") == replace(other, query_id="")
