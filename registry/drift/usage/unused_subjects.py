"""Unused subjects: no topic carries them, no message of theirs was seen, and nothing refers to them.

Unscanned topics are unknown, so the answer includes how many topics it rests on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db import connection
from django.db.models import Q

from registry.access.roles import Actor, may, may_somewhere, require
from registry.drift.models import SIDES, SchemaUse, Topic
from registry.subjects.listing.filters import REFERRED
from registry.subjects.models import Registry
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

MAX_ROWS: Final = 200

#: subjects of a registry with live versions, to which no live version of another subject refers
_UNREFERRED: Final = """
SELECT c.name, s.name, count(v.id), max(v.version), max(v.created_at), array_agg(sc.schema_id), array_agg(sc.guid::text)
FROM subjects_context c
JOIN subjects_subject s ON s.context_id = c.id
JOIN subjects_schemaversion v ON v.subject_id = s.id AND v.deleted_at IS NULL
JOIN subjects_schema sc ON sc.id = v.schema_id
WHERE c.registry_id = %(registry)s
AND NOT EXISTS (
    SELECT 1 FROM subjects_schemareference r
    JOIN subjects_schemaversion target ON target.id = r.target_id
    JOIN subjects_schemaversion referrer ON referrer.schema_id = r.schema_id AND referrer.deleted_at IS NULL
    WHERE target.subject_id = s.id AND referrer.subject_id <> s.id)
GROUP BY c.name, s.name
ORDER BY c.name COLLATE "C", s.name COLLATE "C"
"""


@dataclass(frozen=True)
class UnusedSubject:
    """A subject that nothing is known to need; `newest` is its newest version's number."""

    subject: SubjectName
    versions: int
    newest: int
    since: datetime


@dataclass(frozen=True)
class UnusedSubjectPage:
    """A page of unused subjects by name; `topics` is how many topics were checked, `read` how many have read messages.

    With `topics` 0 nothing is known, and there are no rows. `after` starts the next page, "" on the last.
    """

    rows: tuple[UnusedSubject, ...]
    total: int
    topics: int
    read: int
    after: str


def find_unused_subjects(registry: Registry, *, by: Actor, after: str = "", limit: int = 50) -> UnusedSubjectPage:
    """Return the unused subjects that `by` may read; three queries. Raises NotSignedIn, NotAllowed, InvalidName."""
    if not may_somewhere(by, "schema.read"):
        require(by, "schema.read", registry=registry.name)
    topics = list(
        Topic.objects.filter(source__registry=registry).values_list("name", "subjects", "source__context", "read_at")
    )
    if not topics:
        return UnusedSubjectPage((), 0, 0, 0, "")
    carried = subjects_of_topics(topics)
    seen_schemas = MessageMarks(registry)
    start = parse_subject(after) if after else SubjectName("", "")
    unused = []
    with connection.cursor() as cursor:
        cursor.execute(_UNREFERRED, {"registry": registry.pk})
        for context, name, versions, newest, since, ids, guids in cursor:
            subject = SubjectName(context, name)
            if subject in carried or seen_schemas.has(subject, ids, guids):
                continue
            if may(by, "schema.read", registry=registry.name, subject=subject.qualified):
                unused.append(UnusedSubject(subject, versions, newest, since))
    rest = [row for row in unused if (row.subject.context, row.subject.subject) > (start.context, start.subject)]
    shown = rest[: max(1, min(limit, MAX_ROWS))]
    more = shown[-1].subject.qualified if len(rest) > len(shown) else ""
    return UnusedSubjectPage(tuple(shown), len(unused), len(topics), sum(read is not None for *_, read in topics), more)


def subjects_of_topics(topics: Iterable[tuple[str, object, str, datetime | None]]) -> set[SubjectName]:
    """Return the subjects of topics, as found by scans or by name."""
    subjects_found: set[SubjectName] = set()
    for name, subjects, context, _ in topics:
        written = context_name(context)
        listed = subjects if isinstance(subjects, dict) else {}
        for side in SIDES:
            subjects_found.add(SubjectName(written, f"{name}-{side}"))
            subjects_found |= {
                parse_subject(subject, context=written)
                for subject in listed.get(side) or ()
                if isinstance(subject, str)
            }
    return subjects_found


def context_name(written: str) -> str:
    """Return the name of a context that a source writes without its dot or between colons."""
    name = written.strip(":")
    return name if name.startswith(".") else f".{name}"


class MessageMarks:
    """The marks of all messages that were seen; ids are those of a source's context."""

    def __init__(self, registry: Registry) -> None:
        rows = SchemaUse.objects.filter(Q(topic__source__registry=registry))
        self.ids: set[tuple[str, str]] = set()
        self.guids: set[str] = set()
        self.types: set[str] = set()
        marks = rows.values_list("framing", "mark", "schema_id", "topic__source__context").distinct()
        for framing, mark, schema_id, context in marks:
            if framing == "id":
                self.ids.add((context_name(context), str(mark if schema_id is None else schema_id)))
            elif framing == "guid":
                self.guids.add(mark)
            else:
                self.types.add(mark.rpartition(".v")[0])

    def has(self, subject: SubjectName, ids: Iterable[int], guids: Iterable[str]) -> bool:
        """Return whether a message was seen that may belong to the subject."""
        if any((subject.context, str(number)) in self.ids for number in ids):
            return True
        by_type = any(kind.endswith(f".{subject.subject}") for kind in self.types)
        return by_type or not self.guids.isdisjoint(guids)


#: subjects by topic; by ids, GUIDs and content types in messages; and by reference
_NEEDED: Final = f"""
WITH place(id, name) AS (SELECT id, name FROM subjects_context WHERE registry_id = %(registry)s), needed(id) AS (
    SELECT s.id FROM unnest(%(contexts)s::text[], %(names)s::text[]) carried(context, name)
    JOIN place ON place.name = carried.context
    JOIN subjects_subject s ON s.context_id = place.id AND s.name = carried.name
    UNION
    SELECT v.subject_id FROM unnest(%(id_contexts)s::text[], %(ids)s::bigint[]) seen(context, number)
    JOIN place ON place.name = seen.context
    JOIN subjects_schema sc ON sc.context_id = place.id AND sc.schema_id = seen.number
    JOIN subjects_schemaversion v ON v.schema_id = sc.id AND v.deleted_at IS NULL
    UNION
    SELECT v.subject_id FROM subjects_schema sc
    JOIN place ON place.id = sc.context_id
    JOIN subjects_schemaversion v ON v.schema_id = sc.id AND v.deleted_at IS NULL
    WHERE sc.guid::text = ANY (%(guids)s::text[])
    UNION
    SELECT s.id FROM subjects_subject s JOIN place ON place.id = s.context_id WHERE s.name = ANY (%(types)s::text[])
    UNION
    {REFERRED}
)
SELECT array_agg(id)::text FROM needed"""  # noqa: S608  only constants


def needed_subjects(registry: Registry) -> str | None:
    """Return the numbers of needed subjects as a PostgreSQL array; None if no topic was checked. Three queries."""
    rows = Topic.objects.filter(source__registry=registry)
    topics = list(rows.values_list("name", "subjects", "source__context", "read_at"))
    if not topics:
        return None
    carried, seen_schemas = subjects_of_topics(topics), MessageMarks(registry)
    ids = [(context, int(mark)) for context, mark in seen_schemas.ids if mark.isdecimal() and len(mark) < 18]
    parts = [kind.split(".") for kind in seen_schemas.types]
    parameters: dict[str, Any] = {
        "registry": registry.pk,
        "contexts": [name.context for name in carried],
        "names": [name.subject for name in carried],
        "id_contexts": [context for context, _ in ids],
        "ids": [number for _, number in ids],
        "guids": list(seen_schemas.guids),
        "types": [".".join(labels[start:]) for labels in parts for start in range(1, len(labels))],
    }
    with connection.cursor() as cursor:
        cursor.execute(_NEEDED, parameters)
        return cursor.fetchone()[0] or "{}"
