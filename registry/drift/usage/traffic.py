"""Messages of each version by day, as scans that profile fields have counted them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, date, datetime

from django.db.models import Max

from registry.drift.models import FieldStatistic
from registry.drift.usage.version_usage import SubjectUse
from registry.subjects.models import Registry, SchemaVersion
from registry.subjects.versions.qualified_names import SubjectName

#: version → messages
Counts = Mapping[int, int]


def traffic_by_day(use: SubjectUse, *, since: date) -> dict[date, Counts]:
    """Return the messages that scans read, by the day of the scan and the version that they carry; one query.

    A message that carries several versions' mark (equal schemas) counts for the newest of them. Only topics in `use`
    count: those that the reader may see.
    """
    versions = {
        (topic.topic_id, topic.side, topic.framing, topic.mark): version.version
        for version in use.versions
        for topic in version.topics
    }
    rows = (
        FieldStatistic.objects.filter(topic_id__in={key[0] for key in versions}, day__gte=since)
        .values_list("topic_id", "side", "framing", "mark", "day")
        .annotate(most=Max("messages"))  # each field of a message has the number of messages
    )
    days: dict[date, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for *key, day, messages in rows:
        if version := versions.get(tuple(key)):
            days[day][version] += messages
    return {day: dict(counts) for day, counts in days.items()}


def versions_by_day(registry: Registry, name: SubjectName, *, since: date) -> dict[date, list[int]]:
    """Return the versions that were registered on each day (UTC) since then, deleted ones too; one query."""
    begin = datetime(since.year, since.month, since.day, tzinfo=UTC)
    rows = SchemaVersion.objects.filter(
        subject__context__registry=registry, subject__context__name=name.context, subject__name=name.subject,
        created_at__gte=begin,
    ).order_by("version")  # fmt: skip
    days: dict[date, list[int]] = defaultdict(list)
    for version, at in rows.values_list("version", "created_at"):
        days[at.astimezone(UTC).date()].append(version)
    return dict(days)
