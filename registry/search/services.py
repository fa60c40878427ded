"""Updates of the index: any number of workers index queued subjects in batches; and the size of the backlog."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from django.core.exceptions import ObjectDoesNotExist
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from registry.audit.context import storable_text
from registry.errors import SchemadeskError, Unavailable
from registry.formats import format_of
from registry.formats.base import OutlineField
from registry.search.models import (
    DOC,
    NAME,
    PARENT,
    TAGS,
    TYPE,
    IndexedField,
    IndexedSubject,
    StaleSubject,
    digest,
    fold,
    lines,
    stored_text,
)
from registry.subjects.engine import schema_engine
from registry.subjects.models import SchemaReference, SchemaVersion
from registry.subjects.versions.parsed_schemas import parse_schema, parse_stored
from registry.subjects.versions.qualified_names import SubjectName

logger = logging.getLogger(__name__)

BATCH: Final = 100
#: limits of a run
MAX_SUBJECTS: Final = 2_000
MAX_SECONDS: Final = 20.0
#: characters of a subject's descriptions and of its references
LONGEST_DOC: Final = 20_000
#: the advisory lock that indexing shares and pruning holds exclusively
_TERMS_LOCK: Final = 7_265_318_402

_CLAIM: Final = """
WITH picked AS (
    SELECT subject_id FROM search_stalesubject ORDER BY id LIMIT %(most)s FOR UPDATE SKIP LOCKED
)
SELECT subject_id FROM (SELECT DISTINCT subject_id FROM picked) each
WHERE pg_try_advisory_xact_lock(hashtextextended('search ' || subject_id, 0))
"""
_HELD: Final = "SELECT id FROM search_stalesubject WHERE subject_id = ANY(%(subjects)s) FOR UPDATE SKIP LOCKED"
_KNOWN: Final = """
SELECT t.kind, t.digest, t.id FROM search_searchterm t
JOIN unnest(%(kinds)s::text[], %(digests)s::uuid[]) AS given(kind, digest) ON t.kind = given.kind AND t.digest = given.digest
"""
# In a fixed order, so that two workers don't deadlock.
_ADD: Final = """
INSERT INTO search_searchterm (kind, value, folded, digest)
SELECT * FROM unnest(%(kinds)s::text[], %(values)s::text[], %(folded)s::text[], %(digests)s::uuid[])
    AS given(kind, value, folded, digest)
ORDER BY kind, digest
ON CONFLICT (kind, digest) DO NOTHING
"""
_FIELDS: Final = """
INSERT INTO search_indexedfield (subject_id, position, name_id, parent_id, type_id, doc_id, tags_id)
SELECT * FROM unnest(%(subjects)s::bigint[], %(positions)s::smallint[], %(names)s::int[], %(parents)s::int[],
                     %(types)s::int[], %(docs)s::int[], %(tags)s::int[])
"""
# What no trigger queued: rows that were restored without triggers, and schemas that couldn't be read in time.
_MISSING: Final = """
INSERT INTO search_stalesubject (subject_id)
SELECT coalesce(newest.subject_id, entry.subject_id)
FROM (
    SELECT DISTINCT ON (subject_id) subject_id, id FROM subjects_schemaversion
    WHERE deleted_at IS NULL ORDER BY subject_id, version DESC
) newest
FULL JOIN search_indexedsubject entry ON entry.subject_id = newest.subject_id
LEFT JOIN subjects_subjectnote note ON note.subject_id = newest.subject_id
WHERE (newest.id IS DISTINCT FROM entry.version_pk OR note.updated_at IS DISTINCT FROM entry.noted_at
       OR (entry.problem <> '' AND entry.indexed_at < %(again)s))
AND NOT EXISTS (
    SELECT 1 FROM search_stalesubject queued WHERE queued.subject_id = coalesce(newest.subject_id, entry.subject_id)
)
"""
_UNUSED: Final = """
DELETE FROM search_searchterm term WHERE term.kind = %(kind)s AND NOT EXISTS (
    SELECT 1 FROM search_indexedfield f WHERE f.{column} = term.id
)
"""
_COLUMNS: Final[Mapping[str, str]] = {
    NAME: "name_id", PARENT: "parent_id", TYPE: "type_id", DOC: "doc_id", TAGS: "tags_id",
}  # fmt: skip

#: a kind and a text
_Text = tuple[str, str]


@dataclass(frozen=True)
class _Field:
    """A field with its texts; `doc` and `tags` are None if it has none."""

    name: _Text
    parent: _Text
    type: _Text
    doc: _Text | None
    tags: _Text | None

    @property
    def texts(self) -> list[_Text]:
        return [text for text in (self.name, self.parent, self.type, self.doc, self.tags) if text is not None]


@dataclass(frozen=True)
class _Read:
    """The content of a subject's newest version; `problem` says why it can't be read."""

    version: SchemaVersion
    fields: tuple[_Field, ...] = ()
    doc: str = ""
    refs: tuple[str, ...] = ()
    problem: str = ""
    note: tuple[tuple[str, ...], str, datetime | None] = field(default=((), "", None))


def index_stale(*, most: int = MAX_SUBJECTS, seconds: float = MAX_SECONDS) -> int:
    """Index changed subjects again, within a time; return how many."""
    end, done = time.monotonic() + seconds, 0
    while done < most and time.monotonic() < end:
        count = _index_batch(min(BATCH, most - done), end)
        if not count:
            break
        done += count
    return done


def queue_missing() -> int:
    """Queue the subjects whose entry is out of date; return how many."""
    with connection.cursor() as cursor:
        cursor.execute(_MISSING, {"again": timezone.now() - timedelta(days=1)})
        return int(cursor.rowcount)


def prune_terms() -> int:
    """Delete the terms that no field has, unless a batch is being written; return how many."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_TERMS_LOCK])
        (is_alone,) = cursor.fetchone() or (False,)
        if not is_alone:
            return 0
        count = 0
        for kind, column in _COLUMNS.items():
            cursor.execute(_UNUSED.format(column=column), {"kind": kind})
            count += cursor.rowcount
        return count


# -- a batch ----------------------------------------------------------------------------------------------------------


@transaction.atomic
def _index_batch(most: int, end: float) -> int:
    """Index the next subjects of the queue; return how many. Those that there is no time for stay queued."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock_shared(%s)", [_TERMS_LOCK])
        cursor.execute(_CLAIM, {"most": most})
        subjects = [subject for (subject,) in cursor.fetchall()]
        if not subjects:
            return 0
        cursor.execute(_HELD, {"subjects": subjects})
        locked_ids = [row for (row,) in cursor.fetchall()]
    versions = _newest(subjects)
    read = _read_all(versions, end)
    done = [subject for subject in subjects if subject not in versions or subject in read]
    _write(done, read)
    StaleSubject.objects.filter(pk__in=locked_ids, subject_id__in=done).delete()
    return len(done)


def _newest(subjects: Sequence[int]) -> dict[int, SchemaVersion]:
    rows = (
        SchemaVersion.objects.filter(subject__in=subjects, deleted_at=None)
        .select_related("schema", "subject__context", "subject__note")
        .defer("submitted")
        .order_by("subject_id", "-version")
        .distinct("subject_id")
    )
    return {row.subject_id: row for row in rows}


def _read_all(versions: Mapping[int, SchemaVersion], end: float) -> dict[int, _Read]:
    """Read the versions, at least one and as many as there is time for; skip one if no process is free to read it."""
    refs: dict[int, list[str]] = {}
    schemas = [version.schema_id for version in versions.values()]
    for row in SchemaReference.objects.filter(schema__in=schemas).order_by("schema", "position"):
        refs.setdefault(row.schema_id, []).extend((row.name, row.subject_name))
    entries: dict[int, _Read] = {}
    for subject, version in versions.items():
        if entries and time.monotonic() >= end:
            break
        try:
            entries[subject] = _read(version, tuple(dict.fromkeys(refs.get(version.schema_id, ()))))
        except Unavailable:
            logger.warning("no process was free to read subject %s for the search; it stays queued", subject)
    return entries


def _read(version: SchemaVersion, refs: tuple[str, ...]) -> _Read:
    note = _note(version)
    schema = version.schema
    try:
        parsed = parse_stored([schema])[0] if refs else parse_schema(schema.schema_type, schema.canonical, is_new=False)
        fields = tuple(_field(row) for row in schema_engine.outline(parsed))
        return _Read(version, fields, format_of(schema.schema_type).documentation(schema.canonical), refs, note=note)
    except (Unavailable, DatabaseError):
        raise
    except SchemadeskError as error:
        return _Read(version, refs=refs, problem=error.placed, note=note)
    except Exception as error:
        # Whatever goes wrong with a schema, the others must be found.
        logger.exception("subject %s can't be read for the search", version.subject_id)
        return _Read(version, refs=refs, problem=f"It can't be read: {type(error).__name__}.", note=note)


def _note(version: SchemaVersion) -> tuple[tuple[str, ...], str, datetime | None]:
    try:
        note = version.subject.note
    except ObjectDoesNotExist:
        return (), "", None
    return tuple(note.tags), note.doc, note.updated_at


def _field(row: OutlineField) -> _Field:
    return _Field(
        name=_text(NAME, row.name),
        parent=_text(PARENT, row.path[: -len(row.name) - 1] if row.name else row.path),
        type=_text(TYPE, row.type),
        doc=_text(DOC, row.doc) if row.doc.strip() else None,
        tags=_text(TAGS, lines(row.tags)) if row.tags else None,
    )


def _text(kind: str, value: str) -> _Text:
    return kind, stored_text(kind, value)


# -- writing -----------------------------------------------------------------------------------------------------------


def _write(subjects: Sequence[int], read: Mapping[int, _Read]) -> None:
    """Write the entries of the subjects as they were read; delete those without a live version."""
    IndexedField.objects.filter(subject_id__in=subjects).delete()
    IndexedSubject.objects.filter(pk__in=[subject for subject in subjects if subject not in read]).delete()
    terms = _terms({text for entry in read.values() for row in entry.fields for text in row.texts})
    IndexedSubject.objects.bulk_create(
        (_entry(subject, entry) for subject, entry in sorted(read.items())),
        update_conflicts=True,
        unique_fields=["subject_id"],
        update_fields=[
            "registry_id", "context_id", "name", "schema_type", "version", "version_pk", "field_count", "problem",
            "doc", "tags", "folded_name", "folded_doc", "folded_tags", "folded_refs", "noted_at", "indexed_at",
        ],
    )  # fmt: skip
    rows = [(subject, position, row) for subject, entry in read.items() for position, row in enumerate(entry.fields, 1)]
    with connection.cursor() as cursor:
        cursor.execute(
            _FIELDS,
            {
                "subjects": [subject for subject, _, _ in rows],
                "positions": [position for _, position, _ in rows],
                "names": [terms[row.name] for _, _, row in rows],
                "parents": [terms[row.parent] for _, _, row in rows],
                "types": [terms[row.type] for _, _, row in rows],
                "docs": [terms[row.doc] if row.doc else None for _, _, row in rows],
                "tags": [terms[row.tags] if row.tags else None for _, _, row in rows],
            },
        )


def _entry(subject: int, read: _Read) -> IndexedSubject:
    row, (tags, note_text, noted_at) = read.version, read.note
    context = row.subject.context
    name = SubjectName(context.name, row.subject.name).qualified
    doc = storable_text("\n".join(filter(None, (note_text, read.doc))))[:LONGEST_DOC]
    return IndexedSubject(
        subject_id=subject,
        registry_id=context.registry_id,
        context_id=context.pk,
        name=name,
        schema_type=row.schema.schema_type,
        version=row.version,
        version_pk=row.pk,
        field_count=len(read.fields),
        problem=storable_text(read.problem)[:2_000],
        doc=doc,
        tags=lines(tags),
        folded_name=fold(name),
        folded_doc=fold(doc),
        folded_tags=fold(lines(tags)),
        folded_refs=fold(storable_text(lines(read.refs))[:LONGEST_DOC]),
        noted_at=noted_at,
    )


def _terms(texts: set[_Text]) -> dict[_Text, int]:
    """Return the ids of the texts, new ones for new texts."""
    digests = {text: digest(text[1]) for text in texts}
    term_ids = _stored_term_ids(digests)
    missing = {text: key for text, key in digests.items() if text not in term_ids}
    if missing:
        with connection.cursor() as cursor:
            cursor.execute(
                _ADD,
                {
                    "kinds": [kind for kind, _ in missing],
                    "values": [value for _, value in missing],
                    "folded": [fold(value) for _, value in missing],
                    "digests": list(missing.values()),
                },
            )
        term_ids |= _stored_term_ids(missing)  # also those that another worker added meanwhile
    return term_ids


def _stored_term_ids(digests: Mapping[_Text, uuid.UUID]) -> dict[_Text, int]:
    by_digest = {(text[0], key): text for text, key in digests.items()}
    with connection.cursor() as cursor:
        cursor.execute(_KNOWN, {"kinds": [kind for kind, _ in by_digest], "digests": [key for _, key in by_digest]})
        return {by_digest[kind, key]: number for kind, key, number in cursor.fetchall()}


MOST = 10_000


def backlog() -> int:
    """Count the subjects to index again, up to ten thousand. One query."""
    return StaleSubject.objects.order_by()[:MOST].count()
