"""How often a field of a subject was null or missing in the data that scans have seen, day by day."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from django.db.models import Sum
from django.utils import timezone

from registry.drift.data_evidence import DAYS, MAX_PATHS
from registry.drift.models import FieldStatistic
from registry.drift.replay import side_of, topics_of
from registry.drift.weighing import below_root, steps_of
from registry.subjects.models import Registry
from registry.subjects.names import SubjectName

#: days that are told one by one
MAX_DAYS: Final = DAYS


@dataclass(frozen=True)
class FieldOnDay:
    """Of the messages of a day that were looked at, how many had the field, and in how many of those it was null."""

    day: date
    messages: int
    present: int
    nulls: int

    @property
    def empty(self) -> int:
        """The messages in which it had no value: missing, or null."""
        return self.messages - self.present + self.nulls


def field_on_days(registry: Registry, subject: SubjectName, path: str) -> tuple[FieldOnDay, ...]:
    """The last weeks, newest first, over all writers and topics of the subject; none where nothing was looked at.

    `path` is the schema's (`Order.items[].price`). The caller asks for the right.
    """
    wanted = below_root(path)
    topics = [topic.topic_id for topic in topics_of(registry, subject)]
    since = timezone.now().date() - timedelta(days=MAX_DAYS)
    rows = FieldStatistic.objects.filter(topic__in=topics, side=side_of(subject), day__gte=since)
    named = rows.filter(path__contains=wanted.rpartition(".")[2]).order_by("path").values_list("path", flat=True)
    paths = [found for found in named.distinct()[:MAX_PATHS] if steps_of(found) == wanted]
    days = (
        rows.filter(path__in=paths)
        .order_by("-day")
        .values_list("day")
        .annotate(all_messages=Sum("messages"), all_present=Sum("present"), all_nulls=Sum("nulls"))
    )
    return tuple(FieldOnDay(*found) for found in days)
