"""The rows that tell of a subject's use: marks, topics, and what else has its schemas; each in one query."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from django.db.models import Q

from registry.drift.models import SIDES, SchemaUse, Topic
from registry.subjects.models import Registry, SchemaReference, SchemaVersion
from registry.subjects.names import DEFAULT_CONTEXT, SubjectName


def uses_of(registry: Registry, subject: SubjectName, rows: Sequence[SchemaVersion]) -> list[SchemaUse]:
    """The rows whose mark may stand for one of the versions: an id is one of its context, a GUID one everywhere."""
    ids = {row.schema.schema_id for row in rows}
    named = Q(framing="content_type", mark__contains=f".{subject.subject}.v")
    by_id = Q(framing="id", schema_id__in=ids) | Q(framing="id", mark__in=[str(number) for number in ids])
    wanted = (
        (by_id & Q(topic__source__context__in=_context_names(subject.context)))
        | Q(framing="guid", mark__in=[str(row.schema.guid) for row in rows])
        | named
    )
    found = SchemaUse.objects.filter(wanted, topic__source__registry=registry)
    return list(found.order_by("topic_id", "side", "framing", "mark", "partition"))


def _context_names(context: str) -> tuple[str, ...]:
    """How a source may write it: the default one is left out most often."""
    return (context, context.removeprefix("."), f":{context}:")


def is_of(use: SchemaUse, row: SchemaVersion, subject: SubjectName) -> bool:
    """Whether a use's mark stands for that version."""
    if use.framing == "content_type":
        return use.mark.endswith(f".{subject.subject}.v{row.version}")
    if use.framing == "guid":
        return use.mark == str(row.schema.guid)
    return (use.schema_id if use.schema_id is not None else use.mark) in (
        row.schema.schema_id,
        str(row.schema.schema_id),
    )


def topics_of(registry: Registry, subject: SubjectName, used: Iterable[int]) -> dict[int, Topic]:
    """The topics with such messages, those that scans found to be the subject's, and that of its name."""
    names = [subject.subject.removesuffix(f"-{side}") for side in SIDES if subject.subject.endswith(f"-{side}")]
    wanted = Q(pk__in=set(used)) | Q(name__in=names, source__context__in=_context_names(subject.context))
    for side in SIDES:
        for name in {subject.subject, subject.qualified}:
            wanted |= Q(**{f"subjects__{side}__contains": [name]})
    rows = (
        Topic.objects.filter(wanted, source__registry=registry).select_related("source__cluster").order_by("name", "pk")
    )
    return {row.pk: row for row in rows}


def own_topics(registry: Registry, subject: SubjectName) -> list[int]:
    """The topics that scans found to be the subject's, and that of its name where they found none for it."""
    found = topics_of(registry, subject, ()).values()
    return [row.pk for row in found if any(owner_of(row, side, subject) == "this" for side in SIDES)]


def owner_of(topic: Topic, side: str, subject: SubjectName) -> Literal["this", "other", "unknown"]:
    """Whose a side of a topic is as far as scans found, else as its name says."""
    names = topic.subjects.get(side) if isinstance(topic.subjects, dict) else None
    if not names:
        return "this" if f"{topic.name}-{side}" == subject.subject else "unknown"
    return "this" if subject.subject in names or subject.qualified in names else "other"


@dataclass(frozen=True)
class Others:
    """Versions of other subjects: by name those that the reader may read, by number the rest."""

    names: tuple[str, ...] = ()
    hidden: int = 0


#: tells whether a reader may read a subject, by its qualified name
Readable = Callable[[str], bool]


def shared_with(rows: Sequence[SchemaVersion], readable: Readable) -> dict[int, Others]:
    """By schema: the live versions of other subjects that have it."""
    own = rows[0].subject_id
    others = (
        SchemaVersion.objects.filter(schema_id__in={row.schema_id for row in rows}, deleted_at=None)
        .exclude(subject_id=own)
        .order_by("subject__name", "version")
        .values_list("schema_id", "subject__context__name", "subject__name", "version")
    )
    found: dict[int, dict[tuple[str, int], None]] = {}
    for schema, context, name, version in others:
        found.setdefault(schema, {})[SubjectName(context, name).qualified, version] = None
    return {schema: _in_sight(versions, readable) for schema, versions in found.items()}


def _in_sight(versions: Iterable[tuple[str, int]], readable: Readable) -> Others:
    listed = list(versions)
    names = tuple(f"{subject} version {version}" for subject, version in listed if readable(subject))
    return Others(names, len(listed) - len(names))


def referrers_of(rows: Sequence[SchemaVersion], readable: Readable) -> dict[int, Others]:
    """By version: the live versions whose schema refers to it."""
    own = [row.pk for row in rows]
    links = (
        SchemaReference.objects.filter(target_id__in=own, schema__versions__deleted_at=None)
        .exclude(schema__versions=None)
        .values_list(
            "target_id",
            "schema__versions__subject__context__name",
            "schema__versions__subject__name",
            "schema__versions__version",
        )
    )
    found: dict[int, set[tuple[str, int]]] = {}
    for target, context, name, version in links:
        found.setdefault(target, set()).add((SubjectName(context or DEFAULT_CONTEXT, name).qualified, version))
    return {target: _in_sight(sorted(versions), readable) for target, versions in found.items()}
