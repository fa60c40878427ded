"""Topics of a Kafka cluster as a source: selected, compared with earlier scans, read by Spark, and judged."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from django.utils.translation import gettext, gettext_noop, ngettext

from registry.drift.judge import in_order, judge, pending
from registry.drift.models import Source
from registry.drift.rules import topics as topic_rules
from registry.drift.scan.db_retry import retry_while_database_away
from registry.drift.sources import kafka_cluster
from registry.drift.sources.base import (
    BOUNDS_SET,
    WHAT_TO_READ,
    FieldSet,
    OnProgress,
    ScannedTopic,
    ScanResult,
    SourceDraft,
    SourceKind,
    note_topics,
)
from registry.drift.sources.kafka_connection import connect
from registry.drift.sources.kafka_offsets import backlog_of, read_json
from registry.drift.sources.kafka_passes import observe
from registry.drift.sources.kafka_survey import named_topics, survey_cluster, topics_after, with_lost_offsets
from registry.errors import BrokerUnavailable, InvalidSource
from registry.observations import Observation, ScanTotals

NO_TOPIC: Final = "The cluster lists no topic that the source's patterns match. It doesn't list topics that its user may not Describe."


class TopicKind(SourceKind):
    """Base class of kinds that read topics of a cluster."""

    icon = "rows-3"
    has_topics = True

    def amount(self, read: Mapping[str, Any]) -> str:
        """Return the number of messages and topics as text; for scans by earlier releases, of partitions."""
        count = read.get("messages", 0)
        if "topics_asked" not in read:
            parts = len(read.get("partitions", ()))
            text = ngettext(
                "%(messages)s messages in %(n)s partition", "%(messages)s messages in %(n)s partitions", parts
            )
            return text % {"messages": f"{count:,}", "n": f"{parts:,}"}
        topics = ngettext("%(n)s topic", "%(n)s topics", read["topics_asked"]) % {"n": f"{read['topics_asked']:,}"}
        if not count:
            return gettext("no new messages in %(topics)s") % {"topics": topics}
        text = ngettext(
            "%(n)s new message in %(read)s of %(topics)s", "%(n)s new messages in %(read)s of %(topics)s", count
        )
        return text % {"n": f"{count:,}", "read": f"{read['topics_read']:,}", "topics": topics}


class KafkaTopics(TopicKind):
    """The committed messages of a cluster's topics."""

    name = "kafka"
    label = gettext_noop("Kafka topics")
    name_help = gettext_noop("The name shown here, for example orders.")
    rules = (*topic_rules.TOPIC_RULES, *topic_rules.FIELD_RULES)
    connects = True
    form = (
        FieldSet(WHAT_TO_READ, ("cluster", "bootstrap", "include", "exclude", "name")),
        FieldSet(gettext_noop("How"), ("registry", "context", "mode", "every_seconds")),
        BOUNDS_SET,
    )

    def check(self, draft: SourceDraft) -> str:
        """Check that the cluster answers and has the topics that are named without a pattern.

        Raises InvalidSource, BrokerUnavailable, AddressRefused, InvalidSecret.
        """
        name = super().check(draft)
        if draft.cluster is None:
            raise InvalidSource("Give the cluster whose topics are scanned.")
        connected = connect(draft.cluster)
        missing = [name for name in named_topics(draft.include) if name not in connected.metadata.topics]
        for reason in kafka_cluster.why_missing(connected.admin, missing).values():
            raise InvalidSource(reason.text)
        if missing:
            raise InvalidSource(
                f"Cluster {draft.cluster.name} has no topic "
                f"{missing[0]!r}{f' (and {len(missing) - 1} more are missing)' if len(missing) > 1 else ''}. "
                "Correct the name, or use a pattern if the topic will be created later."
            )
        return name

    def scan(self, source: Source, *, tag: str, on_progress: OnProgress) -> ScanResult:
        """Read new messages of the topics within the limits, and judge them."""
        from registry.drift.scan.offsets import with_offsets
        from registry.drift.scan.personal_data import without_personal
        from registry.drift.scan_context.topics import (  # imported late: it loads all formats
            deleted_in_use,
            memory_of,
            registered_for,
        )

        on_progress(0, 0, "fetching topics and offsets from the cluster")
        started = time.monotonic()
        survey = retry_while_database_away(lambda: survey_cluster(source))
        retry_while_database_away(lambda: note_topics(source, survey.topics.values()))
        scanned = observe(source, survey.reads, tag=tag, on_progress=on_progress) if survey.order else []
        scanned = with_lost_offsets(source, survey, scanned)
        on_progress(0, 0, "judging")
        topics = topics_after(survey, scanned)
        require_any(source, topics)
        observations = retry_while_database_away(lambda: without_personal(source, scanned))
        registered, memory = retry_while_database_away(
            lambda: (registered_for(source, observations), memory_of(source, survey.order, survey.topics))
        )
        before = retry_while_database_away(lambda: deleted_in_use(source, topics, observations, registered, memory))
        findings = with_offsets(
            source, in_order([*judge(observations, registered, memory), *before]), tag=tag, on_progress=on_progress
        )
        return ScanResult(
            findings=tuple(findings),
            read=read_json(
                topics,
                observations,
                seconds=time.monotonic() - started,
                pending=[asdict(item) for item in pending(observations, registered, memory)],
            )
            | {"behind": retry_while_database_away(lambda: backlog_of(source, observations))}
            | ({} if topics else {"notes": [NO_TOPIC]}),
            # Without an observation nothing was judged, so nothing unseen is proved to be gone.
            complete=bool(survey.order) and _bound(observations) is None and not any(item.problem for item in topics),
            topics=topics,
            observations=tuple(observations),
            registered=registered,
            waits=waits_of(topics),
        )


def _bound(observations: Sequence[Observation]) -> str | None:
    return next((item.bound_reached for item in observations if isinstance(item, ScanTotals)), None)


def waits_of(topics: Sequence[ScannedTopic]) -> str:
    """Return why some topics must be read again soon because a broker is away; empty otherwise."""
    return " ".join(topic.problem for topic in topics if topic.waits)


def require_any(source: Source, topics: Sequence[ScannedTopic]) -> None:
    """Raise BrokerUnavailable if no topic could be read and an unavailable broker is the cause."""
    waiting = [topic for topic in topics if topic.waits]
    if waiting and all(not topic.messages and (topic.problem or topic.gone) for topic in topics):
        where = source.cluster.bootstrap if source.cluster else ""
        raise BrokerUnavailable(
            f"A broker of the Kafka cluster at {where} is unavailable: {waiting[0].problem} Check that the "
            "cluster's brokers are running.",
            bootstrap=where,
        )
