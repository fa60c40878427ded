"""A Spark checkpoint: its schema files read without Spark, its rows through Spark, judged together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings

from registry.checkpoints import Checkpoint, read_checkpoint
from registry.checkpoints.observed import observe_schemas, rows_to_read
from registry.drift.judge import Registered, judge, nothing_read
from registry.drift.sources.base import CheckedSource, OnProgress, Place, ScanResult, session_of, spark_remote
from registry.errors import InvalidSource
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


class StateStore:
    """The state of one streaming query."""

    def check(self, *, name: str, bootstrap: str) -> CheckedSource:
        """The path is a checkpoint below an allowed root. Raises InvalidCheckpoint, InvalidSource."""
        if not name:
            raise InvalidSource("Give the path of the query's checkpoint folder.")
        read_checkpoint(name, settings.CHECKPOINT_ROOTS)
        return CheckedSource(name=name.rstrip("/"))

    def scan(self, place: Place, *, tag: str, on_progress: OnProgress) -> ScanResult:
        """Read the schema files, then the rows, and judge both."""
        from registry.pipeline.run import run  # late: only a scan needs PySpark

        on_progress(0, 0, "reading the checkpoint's files")
        checkpoint = read_checkpoint(place.name, settings.CHECKPOINT_ROOTS)
        reads = rows_to_read(checkpoint)
        rows: list[Observation] = []
        if reads:
            spec = StateScan(
                path=place.name,
                variables=reads,
                bounds=Bounds(deadline_seconds=float(settings.SCAN_DEADLINE_SECONDS)),
            )
            rows = run(spec, remote=spark_remote(), on_progress=on_progress, tag=tag, session_id=session_of(tag))
        observations = [*observe_schemas(checkpoint), *rows]
        totals = next((seen for seen in rows if isinstance(seen, StateTotals)), None)
        return ScanResult(
            findings=tuple(judge(observations, Registered(registry=place.registry.name))),
            read=_what_was_read(checkpoint, observations, totals),
            complete=totals is None or totals.bound_reached is None,
        )


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
