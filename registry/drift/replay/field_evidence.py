"""What scans saw of a subject's fields: by day, or summed over many days with the open findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Final

from django.db.models import Max, Min, Q, Sum

from registry.drift.models import Finding, Topic
from registry.drift.replay.evidence import DAYS, MAX_PATHS, FieldTotals, below_root, decoded_fields, steps_of
from registry.drift.replay.schema_replay import topics_of
from registry.drift.scan.aggregation import SEVERITY_RANK
from registry.subjects.models import Registry
from registry.subjects.versions.qualified_names import SubjectName

#: days listed individually
MAX_DAYS: Final = DAYS
#: open findings listed with a subject's fields
MAX_MARKS: Final = 200


@dataclass(frozen=True)
class FieldOnDay:
    """Of a day's scanned messages, how many had the field, and in how many of those it was null."""

    day: date
    messages: int
    present: int
    nulls: int

    @property
    def empty(self) -> int:
        """Return the messages in which it had no value: missing, or null."""
        return self.messages - self.present + self.nulls


def field_on_days(registry: Registry, subject: SubjectName, path: str) -> tuple[FieldOnDay, ...]:
    """Return the last weeks, newest first, over all writers and topics of the subject; empty if nothing was scanned.

    `path` is the schema's (`Order.items[].price`). The caller checks the right.
    """
    steps = below_root(path)
    topics = [topic.topic_id for topic in topics_of(registry, subject)]
    rows = decoded_fields(registry, subject, topics)
    named = rows.filter(path__contains=steps.rpartition(".")[2]).order_by("path").values_list("path", flat=True)
    paths = [row for row in named.distinct()[:MAX_PATHS] if steps_of(row) == steps]
    days = (
        rows.filter(path__in=paths)
        .order_by("-day")
        .values_list("day")
        .annotate(all_messages=Sum("messages"), all_present=Sum("present"), all_nulls=Sum("nulls"))
    )
    return tuple(FieldOnDay(*row) for row in days)


@dataclass(frozen=True)
class FieldMark:
    """An open finding about a field of the data; `path` is the data's."""

    finding: int
    rule: str
    severity: str
    sentence: str
    path: str


@dataclass(frozen=True)
class ObservedFields:
    """Counts of scans and open findings about some fields of a schema, by the schema's path.

    `is_scanned` is whether any data of the subject was read; `elsewhere` are the findings about other fields of the
    data.
    """

    is_scanned: bool
    fields: Mapping[str, FieldTotals] = field(default_factory=dict)
    marks: Mapping[str, tuple[FieldMark, ...]] = field(default_factory=dict)
    elsewhere: tuple[FieldMark, ...] = ()


def fields_in_data(
    registry: Registry, subject: SubjectName, paths: Iterable[str], topics: Iterable[Topic]
) -> ObservedFields:
    """Return the fields at the schema's `paths` over the last weeks; `topics` are the subject's `own_topics`.

    Two queries in total; one more if none of the fields was seen. The caller checks the right.
    """
    forms_by_path = {path: _as_data(path) for path in paths}
    recent = decoded_fields(registry, subject, [topic.pk for topic in topics])
    rows = (
        recent.filter(path__in={form for forms in forms_by_path.values() for form in forms})
        .values_list("path")
        .annotate(Sum("messages"), Sum("present"), Sum("nulls"), Min("day"), last=Max("day", filter=Q(present__gt=0)))
    )
    by_form = {row[0]: FieldTotals(*row) for row in rows}
    by_path = (
        (path, next((by_form[form] for form in forms if form in by_form), None))
        for path, forms in forms_by_path.items()
    )
    marks, elsewhere = _marks(registry, subject, forms_by_path)
    return ObservedFields(
        is_scanned=bool(by_form or marks or elsewhere) or recent.exists(),
        fields={path: field for path, field in by_path if field is not None},
        marks=marks,
        elsewhere=elsewhere,
    )


def _as_data(path: str) -> tuple[str, ...]:
    """Return a schema's path as data may have it, likeliest first: without root; a map's entries as array items."""
    inside = path.partition(".")[2]
    return tuple(dict.fromkeys((inside, inside.replace("{}", "[]"), steps_of(inside))))


def _marks(
    registry: Registry, subject: SubjectName, forms_by_path: Mapping[str, tuple[str, ...]]
) -> tuple[dict[str, tuple[FieldMark, ...]], tuple[FieldMark, ...]]:
    """Return the open findings about the wanted fields, worst first, and those about others."""
    rows = Finding.objects.filter(
        state="open", muted=False, source__registry=registry, subject_name=subject.qualified, evidence__has_key="field"
    ).order_by("-last_seen", "pk")
    listed = rows.values_list("pk", "rule", "severity", "sentence", "evidence__field")[:MAX_MARKS]
    marks = sorted((FieldMark(*row[:4], str(row[4])) for row in listed), key=lambda mark: SEVERITY_RANK[mark.severity])
    of_form = {form: path for path, forms in forms_by_path.items() for form in reversed(forms)}
    by_path: dict[str, tuple[FieldMark, ...]] = {}
    for mark in marks:
        if (path := of_form.get(mark.path)) is not None:
            by_path[path] = (*by_path.get(path, ()), mark)
    return by_path, tuple(mark for mark in marks if mark.path not in of_form)
