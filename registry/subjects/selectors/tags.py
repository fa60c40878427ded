"""The tags that hold in stored schemas, and which of their fields are personal data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.conf import settings

from registry.errors import SchemadeskError
from registry.formats.base import OutlineField, ParsedSchema
from registry.formats.effective_tags import SchemaTags, effective_tags
from registry.subjects import engines
from registry.subjects.models import Registry, Schema, SchemaVersion
from registry.subjects.names import SubjectName
from registry.subjects.selectors.notes import Note, notes_of
from registry.subjects.selectors.parsed import parse_stored
from registry.subjects.selectors.readings import Reading, parsed_of
from registry.subjects.selectors.versions import VersionInfo

#: of a schema whose fields can't be told: all of it may be personal
UNTOLD = SchemaTags(is_personal=True)


def is_personal_tag(tag: str) -> bool:
    """Whether a tag means personal data, by the setting."""
    return tag.lower() in {word.lower() for word in settings.PERSONAL_TAGS}


def tags_of_outline(
    schema_type: str, outline: Sequence[OutlineField], metadata: Mapping[str, object] | None, note: Note
) -> SchemaTags:
    """The tags of a schema's fields, with those of its subject."""
    return effective_tags(
        outline,
        metadata=metadata,
        around=note.tags,
        personal=settings.PERSONAL_TAGS,
        any_root=schema_type == "PROTOBUF",
    )


def tags_of_parsed(parsed: ParsedSchema, metadata: Mapping[str, object] | None, note: Note) -> SchemaTags:
    """The same of a parsed schema; UNTOLD where reading it takes more than is allowed."""
    try:
        outline = engines.outline(parsed)
    except SchemadeskError:
        return UNTOLD
    return tags_of_outline(parsed.schema_type, outline, metadata, note)


def tags_of_info(registry: Registry, info: VersionInfo, note: Note, readings: Sequence[Reading] = ()) -> SchemaTags:
    """The tags of a version; UNTOLD where its schema can't be read any more. `readings` are those that there are already."""
    try:
        parsed = parsed_of(registry, info, readings)
    except SchemadeskError:
        return UNTOLD
    return tags_of_parsed(parsed, info.schema.metadata, note)


def tags_of_schemas(registry: Registry, schemas: Sequence[Schema]) -> dict[int, SchemaTags]:
    """The tags of definitions, by their rows, each with those of all subjects that have it; a few queries.

    UNTOLD for one that can't be read.
    """
    pks = [row.pk for row in schemas]
    uses: dict[int, set[SubjectName]] = {}
    rows = SchemaVersion.objects.filter(schema__in=pks).values_list(
        "schema_id", "subject__context__name", "subject__name"
    )
    for pk, context, name in rows:
        uses.setdefault(pk, set()).add(SubjectName(context, name))
    notes = notes_of(registry, {name for names in uses.values() for name in names})
    parsed = _parsed(schemas)
    return {
        row.pk: tags_of_parsed(
            found, row.metadata, _together([notes[name] for name in uses.get(row.pk, ()) if name in notes])
        )
        if (found := parsed.get(row.pk)) is not None
        else UNTOLD
        for row in schemas
    }


def _parsed(schemas: Sequence[Schema]) -> dict[int, ParsedSchema]:
    try:
        return {row.pk: parsed for row, parsed in zip(schemas, parse_stored(schemas), strict=True)}
    except SchemadeskError:
        return {row.pk: parsed for row in schemas if (parsed := _one(row)) is not None}


def _one(row: Schema) -> ParsedSchema | None:
    try:
        return parse_stored([row])[0]
    except SchemadeskError:  # stored under other limits than today's
        return None


def _together(notes: Sequence[Note]) -> Note:
    return Note(tags=tuple(sorted({tag for note in notes for tag in note.tags})))
