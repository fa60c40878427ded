"""A Spark checkpoint: its schema files read without Spark, its rows through Spark, judged together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.conf import settings
from django.utils import timezone

from registry.checkpoints import Checkpoint, read_checkpoint
from registry.checkpoints.observed import observe_schemas, rows_to_read
from registry.drift.judge import in_order, judge, nothing_read
from registry.drift.judge.queries import QueryFacts, judge_query
from registry.drift.judge.reading import milliseconds
from registry.drift.models import Scan, Source
from registry.drift.patience import patiently
from registry.drift.sources.base import Given, OnProgress, ScanResult, session_of, spark_remote
from registry.drift.state_rows import rows_by_variable, timers_by_operator, timers_to_read
from registry.errors import InvalidCheckpoint, InvalidSource, SparkUnavailable
from registry.observations import (
    Bounds,
    Observation,
    StateLimit,
    StateRows,
    StateScan,
    StateSchemaVersion,
    StateTotals,
    StateUnreadable,
)
from registry.streams.models import CheckpointStore
from registry.streams.seen import query_seen
from registry.streams.stores import place_of, spark_path, why_rows_are_not_readable

MAX_NAME: Final = 1024
NO_ROWS_HERE: Final = "rows not readable here"  # what why_rows_are_not_readable says begins so
#: the rules of findings that only rows show
OF_ROWS: Final = frozenset({"STATE_FIELD_DROPPED", "STATE_UNREADABLE"})
MAX_ROWS: Final = 10**10  # they are counted where they are: time is what bounds them


class StateStore:
    """The state of one streaming query."""

    def check(self, given: Given) -> str:
        """The path or address is a checkpoint below an allowed root.

        Raises InvalidCheckpoint, InvalidSource, and for an object store InvalidInput, InvalidSecret, AddressRefused and
        RemoteUnavailable.
        """
        if not given.name or len(given.name) > MAX_NAME:
            raise InvalidSource(
                f"Give the path of the query's checkpoint folder, or its address: 1 to {MAX_NAME} characters."
            )
        if given.include or given.exclude:
            raise InvalidSource("A checkpoint has no topics to include or exclude.")
        place = place_of(given.name, given.store)
        read_checkpoint(place.path, place.roots, store=place.store)
        return place.path.rstrip("/")

    def scan(self, source: Source, *, tag: str, on_progress: OnProgress) -> ScanResult:
        """Read the schema files, then the rows, and judge both. Without Spark the rows stay unread, and that is said."""
        from registry.drift.knowledge import memory_of, registered_for  # late: it loads all formats
        from registry.drift.known_queries import facts_of, inputs_of

        on_progress(0, 0, "reading the checkpoint's files")
        place = place_of(source.name, patiently(lambda: CheckpointStore.objects.filter(source=source).first()))
        try:
            checkpoint = read_checkpoint(place.path, place.roots, store=place.store, cache=place.cache)
        except InvalidCheckpoint as error:
            if "file" not in error.details:
                raise  # it isn't there, or may not be read: nothing is known of it
            return _damaged(source, error.message)
        since = patiently(lambda: _unread_since(source))
        never = why_rows_are_not_readable(checkpoint.path)
        if never and since:
            never = never.replace(NO_ROWS_HERE, f"{NO_ROWS_HERE} since {since[:10]}", 1)
        rows, problem, waits = (
            ([], never, False) if never else _rows(source, checkpoint, tag=tag, on_progress=on_progress)
        )
        observations = [*observe_schemas(checkpoint), *rows]
        totals = next((seen for seen in rows if isinstance(seen, StateTotals)), None)
        registered, memory = patiently(lambda: (registered_for(source, observations), memory_of(source, ())))
        inputs = patiently(lambda: inputs_of(source, checkpoint.topics))
        facts = patiently(lambda: facts_of(source, checkpoint, inputs, milliseconds(timezone.now())))
        read = _what_was_read(checkpoint, observations, totals) | {"rows_problem": problem}
        read["rows_unread_since"] = since if problem else ""
        return ScanResult(
            findings=tuple(in_order([*judge(observations, registered, memory), *judge_query(facts)])),
            read=read,
            # Rows that Spark can't open here are no part of a scan: what the files tell is all that it could see.
            complete=(not problem or bool(never)) and (totals is None or totals.bound_reached is None),
            # But what rows showed when they could be opened isn't gone because they can't be any more.
            out_of_reach=OF_ROWS if never else frozenset(),
            query=query_seen(checkpoint, inputs, rows_by_variable(checkpoint, rows, problem), timers_by_operator(rows)),
            waits=problem if waits else "",
        )


def _unread_since(source: Source) -> str:
    """Since when rows can't be read, if this scan doesn't read them: from now on where the last one did.

    Empty where no scan is known that read them.
    """
    scans = Scan.objects.filter(source=source, state="done").order_by("-pk")
    before: dict[str, Any] | None = scans.values_list("read", flat=True).first()
    if not before:
        return ""
    if before.get("rows_problem"):
        return str(before.get("rows_unread_since", ""))
    return timezone.now().isoformat(timespec="minutes")


def _damaged(source: Source, problem: str) -> ScanResult:
    """One of the checkpoint's own files can't be read: that is found, and what was known of the query stays."""
    facts = QueryFacts(path=source.name, observed_at=milliseconds(timezone.now()), problems=(problem,))
    read = {
        "nothing": False,
        "rows": 0,
        "seconds": 0,
        "bound_reached": None,
        "last_batch": None,
        "rows_problem": problem,
    }
    empty: dict[str, Any] = {"variables": [], "limits": [], "unreadable": []}
    return ScanResult(findings=tuple(judge_query(facts)), read=read | empty, complete=False)


def _rows(
    source: Source, checkpoint: Checkpoint, *, tag: str, on_progress: OnProgress
) -> tuple[list[Observation], str, bool]:
    """What Spark reads of the rows; else why there is no Spark to read them, as a sentence, and whether it may be back."""
    from registry.pipeline.run import run  # late: only a scan needs PySpark

    reads = (*rows_to_read(checkpoint), *timers_to_read(checkpoint))
    if not reads:
        return [], "", False
    spec = StateScan(
        path=spark_path(source.name),
        variables=reads,
        bounds=Bounds(
            max_messages=MAX_ROWS, deadline_seconds=float(min(source.max_seconds, settings.SCAN_DEADLINE_SECONDS))
        ),
    )
    try:
        return run(spec, remote=spark_remote(), on_progress=on_progress, tag=tag, session_id=session_of(tag)), "", False
    except SparkUnavailable as error:
        return [], f"The rows weren't read: {error.message}", not error.details.get("is_lasting")


def _what_was_read(
    checkpoint: Checkpoint, observations: Sequence[Observation], totals: StateTotals | None
) -> dict[str, Any]:
    """What the page shows: variables with versions, rows and budgets."""
    versions: dict[tuple[int, str], StateSchemaVersion] = {}
    for seen in observations:
        if isinstance(seen, StateSchemaVersion):
            newest = versions.get((seen.operator, seen.variable))
            versions[seen.operator, seen.variable] = max(newest or seen, seen, key=lambda version: version.version)
    counts = {(seen.operator, seen.variable): seen.rows for seen in observations if isinstance(seen, StateRows)}
    return {
        "nothing": nothing_read(observations),
        "rows": totals.rows if totals else 0,
        "seconds": round(totals.seconds, 2) if totals else 0,
        "bound_reached": totals.bound_reached if totals else None,
        "last_batch": checkpoint.last_committed_batch,
        "variables": [
            {
                "operator": operator,
                "variable": variable,
                "kind": newest.kind,
                "encoding": newest.encoding,
                "version": newest.version,
                "batch": newest.batch,
                "rows": counts.get((operator, variable)),
            }
            for (operator, variable), newest in sorted(versions.items())
        ],
        "limits": [
            {
                "limit": seen.limit,
                "operator": seen.operator,
                "variable": seen.variable,
                "used": seen.used,
                "allowed": seen.allowed,
            }
            for seen in observations
            if isinstance(seen, StateLimit)
        ],
        "unreadable": [
            {"operator": seen.operator, "variable": seen.variable, "reason": seen.reason}
            for seen in observations
            if isinstance(seen, StateUnreadable)
        ],
    }
