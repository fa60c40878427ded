"""A trial of a data contract's rule on the newest messages of a subject's topic, before the rule is registered.

The messages are decoded and the rule evaluated as in a scan. Nothing is stored, and samples are masked. Several trials
tell a value as a question and answer do, so a subject with personal data needs the right to see it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from registry import observations
from registry.access.roles import Actor, may, require
from registry.drift.models import Topic
from registry.drift.replay.schema_replay import newest_ranges, side_of, topic_of, topics_of, watermarks_of
from registry.drift.scan.personal_data import without_personal
from registry.drift.scan_context.contract_rules import TYPES
from registry.drift.scan_context.versions import writers_for
from registry.drift.sources.base import spark_remote
from registry.drift.sources.kafka_connection import kafka_connection
from registry.errors import InvalidInput, InvalidSource
from registry.subjects.comparison.parsed_versions import tags_of_schemas
from registry.subjects.models import Registry, SchemaVersion
from registry.subjects.policy.data_contracts import read_rule_set
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName

DEFAULT_MESSAGES: Final = 500
MOST_MESSAGES: Final = 5_000
LONGEST: Final = 10_000  # characters of an expression
DEADLINE_SECONDS: Final = 60.0
SHOWN: Final = 5  # broken messages
NAME: Final = "trial"
UNREAD: Final = "the time of a trial ended before they were read"


@dataclass(frozen=True)
class BrokenMessage:
    """A message that breaks the rule; `value` is masked, empty if the reader may not see samples."""

    partition: int
    offset: int
    value: str


@dataclass(frozen=True)
class RuleTrial:
    """The result: of `read` messages with a schema of the subject, `evaluated` were, and `broken` break the rule.

    `paths` and `not_checked` are those of `ContractRuleResult`.
    """

    topic: str
    read: int
    evaluated: int
    broken: int
    first: tuple[BrokenMessage, ...]
    paths: Mapping[str, int]
    not_checked: Mapping[str, int]


def try_rule(
    registry: str,
    subject: SubjectName,
    *,
    by: Actor,
    expression: str,
    type: str = TYPES[0],  # the name in a rule
    tags: Sequence[str] = (),
    topic: str = "",
    messages: int = DEFAULT_MESSAGES,
) -> RuleTrial:
    """Evaluate a condition on the newest messages of the subject's topic.

    Raises NotAllowed, InvalidInput, InvalidRuleSet, InvalidSource if the subject has no topic or more than one,
    BrokerUnavailable, SparkUnavailable, ScanInterrupted.
    """
    require(by, "source.scan", registry=registry, subject=subject.qualified)
    if type not in TYPES or not expression.strip() or len(expression) > LONGEST:
        raise InvalidInput(f"Write an expression of at most {LONGEST:,} characters, of type CEL or CEL_FIELD.")
    if not 1 <= messages <= MOST_MESSAGES:
        raise InvalidInput(f"A trial reads 1 to {MOST_MESSAGES:,} messages, not {messages:,}.", field="messages")
    rule = {"name": NAME, "kind": "CONDITION", "type": type, "expr": expression, "tags": list(tags)}
    (condition,) = (read_rule_set({"domainRules": [rule]}) or {})["domainRules"]
    row = get_registry(registry)
    coverage = topic_of(subject, topic, topics_of(row, subject))
    carrier = Topic.objects.select_related("source__cluster").get(pk=coverage.topic_id)
    if carrier.source.cluster is None:  # the database guarantees a cluster for sources of topics
        raise InvalidSource(f"{carrier.name} has no cluster.")
    read = observations.TopicRead(carrier.name, newest_ranges(watermarks_of(carrier.source.cluster, carrier), messages))
    spec = observations.TopicScan(
        kafka_connection(carrier.source.cluster),
        (read,),
        _writers(row, subject, carrier, condition, by),
        observations.Profile(fields=False, samples=SHOWN),
        observations.Bounds(max_messages=messages, deadline_seconds=DEADLINE_SECONDS),
    )
    from registry.pipeline.run import run  # imported late: only a trial needs PySpark

    seen = without_personal(carrier.source, run(spec, remote=spark_remote()))
    marks = {(writer.framing, writer.mark) for writer in spec.writers}
    is_shown = may(by, "sample.read", registry=registry, subject=subject.qualified)
    return _trial(read, side_of(subject), marks, seen, is_shown=is_shown)


def _writers(
    registry: Registry, subject: SubjectName, carrier: Topic, condition: dict[str, Any], by: Actor
) -> tuple[observations.WriterSchema, ...]:
    """Return the writer schemas that are versions of the subject, each with the condition. Raises NotAllowed."""
    versions = SchemaVersion.objects.filter(
        subject__context__registry=registry, subject__context__name=subject.context, subject__name=subject.subject
    ).select_related("schema")
    tags = tags_of_schemas(registry, [version.schema for version in versions])
    if any(of_schema.has_personal for of_schema in tags.values()):
        require(by, "sample.personal", registry=registry.name, subject=subject.qualified)
    own = {
        mark
        for row in versions
        for mark in (
            ("id", str(row.schema.schema_id)),
            ("guid", str(row.schema.guid)),
            ("content_type", f"vnd.{subject.subject}.v{row.version}"),
        )
    }
    writers = writers_for(carrier.source, [carrier.name], rule=condition)
    return tuple(writer for writer in writers if (writer.framing, writer.mark) in own)


def _trial(
    asked: observations.TopicRead,
    side: str,
    marks: set[tuple[Any, str]],
    seen: Sequence[observations.Observation],
    *,
    is_shown: bool,
) -> RuleTrial:
    """Add up the results of all marks."""
    results = [item for item in seen if isinstance(item, observations.ContractRuleResult) and item.side == side]
    values = {
        (item.partition, item.offset): item.text
        for item in seen
        if isinstance(item, observations.Sample) and item.side == side
    }
    available = sum(max(0, min(part.end, part.high) - max(part.start, part.low)) for part in asked.ranges)
    unread = available - sum(item.end - item.start for item in seen if isinstance(item, observations.PartitionRead))
    places = sorted(place for result in results for place in result.first)[:SHOWN]
    return RuleTrial(
        topic=asked.topic,
        read=sum(
            item.span.messages
            for item in seen
            if isinstance(item, observations.FramedMessages)
            and item.side == side
            and (item.framing, item.mark) in marks
        ),
        evaluated=sum(result.messages for result in results),
        broken=sum(result.broken for result in results),
        first=tuple(BrokenMessage(*place, values.get(place, "") if is_shown else "") for place in places),
        paths=_sum(result.paths for result in results),
        not_checked=_sum([*(result.not_checked for result in results), {UNREAD: unread} if unread else {}]),
    )


def _sum(parts: Any) -> dict[str, int]:
    counts: dict[str, int] = {}
    for part in parts:
        for name, number in part.items():
            counts[name] = counts.get(name, 0) + number
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
