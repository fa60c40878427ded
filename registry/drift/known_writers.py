"""The registered schemas that the bodies of some topics may be written with."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, cast

from django.db.models import Q

from registry.drift.judge.model import Mark
from registry.drift.known_schemas import read_schemas
from registry.drift.known_versions import VersionRow, by_mark, condition_of, subject_summaries, version_rows
from registry.drift.models import SchemaUse, Source
from registry.observations import Framing, SchemaKind, WriterSchema
from registry.subjects.models import Schema
from registry.subjects.names import DEFAULT_CONTEXT

MAX_WRITERS: Final = 300


def writers_for(
    source: Source, topics: Collection[str], marks: Collection[tuple[Framing, str]] = ()
) -> tuple[WriterSchema, ...]:
    """The schemas that bodies of those topics may be written with, MAX_WRITERS at most, of each mark one.

    Candidates are the topic's subjects by TopicName, those called `<topic>-…`, all that earlier scans saw in these
    topics, and `marks`. Those that were seen come first, then the newest. A schema that can't be read is left out.
    """
    registry, context = source.registry, source.context or DEFAULT_CONTEXT
    uses = SchemaUse.objects.filter(topic__source=source, topic__name__in=topics)
    seen: set[Mark] = {*marks, *cast("Iterable[Mark]", uses.values_list("framing", "mark").distinct())}
    names = _named_after(topics, subject_summaries(registry, context))
    wanted = condition_of(seen) | Q(subject__name__in=names)
    rows = [
        row
        for row in version_rows(registry, wanted & Q(subject__context__name=context), ghosts=None)
        if row.version.schema_id
    ]
    order: dict[Mark, VersionRow] = {}
    for mark, found in sorted(by_mark(rows, seen).items()):
        if found:
            order[mark] = found[0]
    for row in sorted(rows, key=lambda row: -row.version.registered_at):
        if row.name in names:
            order.setdefault(("id", str(row.version.schema_id)), row)
    chosen = dict(list(order.items())[:MAX_WRITERS])
    read = read_schemas(Schema.objects.filter(pk__in={row.schema_pk for row in chosen.values()}))
    texts = {pk: schema.text() for pk, schema in read.items()}
    return tuple(
        WriterSchema(mark[0], mark[1], cast("SchemaKind", row.version.schema_type), text)
        for mark, row in chosen.items()
        if (text := texts.get(row.schema_pk)) is not None
    )


def _named_after(topics: Collection[str], subjects: Iterable[str]) -> set[str]:
    """Subjects called `<topic>-…`, of any topic."""
    known = set(topics)
    return {
        name for name in subjects if any(char == "-" and name[:position] in known for position, char in enumerate(name))
    }
