"""What data say of a proposed schema, collected: the statistics of its fields, a replay, and the report beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.db.models import F, Max, Min, Sum
from django.utils import timezone

from registry.access.roles import Actor, require
from registry.drift.models import FieldStatistic, Topic
from registry.drift.replay import DEFAULT_MESSAGES, ReplayReport, replay_proposal, side_of, topics_of
from registry.drift.weighing import EvidenceLine, FieldSeen, ReplaySeen, findings_of, weigh
from registry.formats.assessment import Assessment
from registry.formats.base import Reference
from registry.formats.report import ReportItem
from registry.subjects.models import Registry
from registry.subjects.names import SubjectName
from registry.subjects.selectors.comparison import report_proposal
from registry.subjects.selectors.versions import get_version

DAYS: Final = 30
MAX_PATHS: Final = 5_000
#: of a report, the level whose findings are weighed: all versions, both directions
_ALL: Final = "FULL_TRANSITIVE"


@dataclass(frozen=True)
class WeighedReplay:
    """A replay and what it says beside the report."""

    replay: ReplayReport
    evidence: tuple[EvidenceLine, ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {**self.replay.to_dict(), "evidence": [vars(line) for line in self.evidence]}


def replay_and_weigh(
    registry: Registry,
    subject: SubjectName,
    *,
    by: Actor,
    text: str = "",
    schema_type: str = "AVRO",
    references: Sequence[Reference] = (),
    version: int | str = "",
    topic: str = "",
    messages: int = DEFAULT_MESSAGES,
) -> WeighedReplay:
    """A replay of a text or a version, weighed with its report. Raises as `replay_proposal` does."""
    if not text:
        info = get_version(registry, subject, version or "latest", deleted=True)
        text, schema_type, references = info.schema.text, info.schema.schema_type, info.schema.references
    found = replay_proposal(
        registry,
        subject,
        by=by,
        text=text,
        schema_type=schema_type,
        references=references,
        topic=topic,
        messages=messages,
    )
    proposal = report_proposal(registry, subject, text=text, schema_type=schema_type, references=references, by=by)
    return WeighedReplay(found, evidence_lines(registry, subject, proposal.assessment, found, by=by))


def evidence_lines(
    registry: Registry, subject: SubjectName, assessment: Assessment, replay: ReplayReport | None = None, *, by: Actor
) -> tuple[EvidenceLine, ...]:
    """What the last weeks' data, and a replay where there is one, say beside a report. Four queries. Raises NotAllowed."""
    return lines_of_items(registry, subject, assessment.strip.reports[_ALL].items, replay, by=by)


def lines_of_items(
    registry: Registry,
    subject: SubjectName,
    items: Sequence[ReportItem],
    replay: ReplayReport | None = None,
    *,
    by: Actor,
) -> tuple[EvidenceLine, ...]:
    """The same beside findings of any report. Four queries. Raises NotAllowed."""
    require(by, "schema.read", registry=registry.name, subject=subject.qualified)
    seen = fields_seen(registry, subject)
    if not seen and replay is None:
        return ()
    return weigh(findings_of(items), seen, seen_of(replay) if replay else None)


def scanned_by(registry: Registry, subject: SubjectName) -> int | None:
    """The source of that topic of a subject which was looked at longest ago; None where no source has one."""
    own = [item.topic_id for item in topics_of(registry, subject) if item.gone_at is None]
    rows = Topic.objects.filter(pk__in=own).order_by(F("checked_at").asc(nulls_first=True))
    return rows.values_list("source_id", flat=True).first()


def fields_seen(registry: Registry, subject: SubjectName) -> tuple[FieldSeen, ...]:
    """The fields of the subject's data in the last weeks, over all of its writers."""
    topics = [topic.topic_id for topic in topics_of(registry, subject)]
    since = timezone.now().date() - timedelta(days=DAYS)
    rows = (
        FieldStatistic.objects.filter(topic__in=topics, side=side_of(subject), day__gte=since)
        .values("path")
        .annotate(
            all_messages=Sum("messages"),
            all_present=Sum("present"),
            all_nulls=Sum("nulls"),
            first=Min("day"),
            last=Max("day"),
        )
        .order_by("path")
    )
    return tuple(
        FieldSeen(row["path"], row["all_messages"], row["all_present"], row["all_nulls"], row["first"], row["last"])
        for row in rows[:MAX_PATHS]
    )


def seen_of(replay: ReplayReport) -> ReplaySeen:
    """The replay in numbers; messages that aren't their writer's were not tried."""
    losses: dict[str, int] = {}
    changes: dict[str, int] = {}
    for writer in replay.writers:
        for path, counts in writer.fields.items():
            for kind, held in (("lost", losses), ("changed", changes)):
                if kind in counts:
                    held[path] = held.get(path, 0) + counts[kind]
    first = min((failure for writer in replay.writers for failure in writer.failures), key=_place, default=None)
    words = f"offset {first.offset:,} of partition {first.partition}: {first.reason}" if first else ""
    return ReplaySeen(
        replay.topic, replay.read + replay.failed, replay.failed, words, tuple(losses.items()), tuple(changes.items())
    )


def _place(failure: Any) -> tuple[int, int]:
    return failure.partition, failure.offset
