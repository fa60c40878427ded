"""Lists the messages of findings by offset: what the scan observed, and what Spark finds for the rest.

A finding keeps at most MOST_RANGES ranges, those of the newest scans.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from django.db.models import Count, F, Window
from django.db.models.functions import RowNumber

from registry.drift.judge import JudgedFinding
from registry.drift.models import MOST_RANGES, Finding, FindingRange, Source
from registry.drift.sources.base import OnProgress, session_of, spark_remote
from registry.drift.sources.kafka_connection import kafka_connection
from registry.errors import ScanInterrupted, SparkUnavailable

logger = logging.getLogger(__name__)

MOST_OF_A_SCAN: Final = 100_000
SEARCH_SECONDS: Final = 60.0
BATCH: Final = 5_000


def with_offsets(
    source: Source, findings: Sequence[JudgedFinding], *, tag: str, on_progress: OnProgress
) -> list[JudgedFinding]:
    """Return the findings with the offsets of their messages, as far as Spark finds them in SEARCH_SECONDS.

    Raises ScanInterrupted if the scan was cancelled.
    """
    from registry.pipeline.offsets import find_offsets  # imported late: only a scan needs PySpark

    groups = {part.group: None for finding in findings for part in finding.offending if part.group is not None}
    if not groups or source.cluster is None:
        return list(findings)
    try:
        ranges = find_offsets(
            kafka_connection(source.cluster),
            tuple(groups),
            remote=spark_remote(),
            seconds=SEARCH_SECONDS,
            tag=tag,
            session_id=session_of(tag),
            on_progress=on_progress,
        )
    except (SparkUnavailable, ScanInterrupted) as error:
        if isinstance(error, ScanInterrupted) and error.details.get("reason") != "deadline":
            raise
        logger.warning("the offsets of findings weren't listed: %s", error)
        return list(findings)
    return [
        replace(
            finding,
            offending=tuple(
                part if part.group is None else replace(part, ranges=ranges.get(part.group, ()))
                for part in finding.offending
            ),
        )
        for finding in findings
    ]


def keep_ranges(kept: Sequence[tuple[Finding, JudgedFinding]], recounted: Iterable[int]) -> None:
    """Store the ranges of findings; for those in `recounted` (their numbers) instead of the ranges stored before."""
    FindingRange.objects.filter(finding__in=list(recounted)).delete()
    rows = (
        FindingRange(finding=row, partition=part.partition, first_offset=first, last_offset=last)
        for row, judged in kept
        for part, (first, last) in islice(
            ((part, ends) for part in judged.offending for ends in part.ranges), MOST_RANGES
        )
    )
    FindingRange.objects.bulk_create(islice(rows, MOST_OF_A_SCAN), batch_size=BATCH, ignore_conflicts=True)
    numbers = [row.pk for row, judged in kept if judged.offending]
    over = FindingRange.objects.filter(finding__in=numbers).values("finding").annotate(ranges=Count("pk"))
    full = list(over.filter(ranges__gt=MOST_RANGES).values_list("finding", flat=True))
    if full:
        newest = Window(RowNumber(), partition_by=F("finding"), order_by=F("pk").desc())
        old = FindingRange.objects.filter(finding__in=full).annotate(rank=newest).filter(rank__gt=MOST_RANGES)
        FindingRange.objects.filter(pk__in=list(old.values_list("pk", flat=True))).delete()
