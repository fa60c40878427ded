"""A subject's live versions, parsed one by one, with their tags and a generated example message."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings

from registry.errors import InvalidDatum, InvalidReference, InvalidSchema, SchemadeskError, Unavailable
from registry.formats import format_of
from registry.formats.base import OutlineField, ParsedSchema
from registry.formats.personal_data import Placeholders, SchemaTags, effective_tags
from registry.subjects.comparison.comparison import stored_version
from registry.subjects.engine import schema_engine
from registry.subjects.lifecycle.notes import Note, note_of, notes_of
from registry.subjects.models import Registry, Schema, SchemaVersion
from registry.subjects.policy.data_contracts import Contract, property_of
from registry.subjects.versions.lookup import get_subject
from registry.subjects.versions.parsed_schemas import ReferenceGraph, parse_stored, parser_of, read_graph
from registry.subjects.versions.qualified_names import SubjectName
from registry.subjects.versions.versions import VersionInfo, infos_of, named_versions

#: what reading or comparing a stored text may meet: it is damaged, refers to what is, or takes more than is allowed now
UNREADABLE: Final = (InvalidSchema, InvalidReference, Unavailable)


@dataclass(frozen=True)
class Reading:
    """A version as it was read: without a `schema` where that can't be, which `error` says."""

    version: int
    schema_type: str
    metadata: Contract | None
    schema: ParsedSchema | None
    error: SchemadeskError | None = None


def version_numbers(registry: Registry, subject: SubjectName) -> list[tuple[int, bool]]:
    """All versions, newest first, each with whether it is soft-deleted; no text is read. Raises SubjectNotFound."""
    rows = SchemaVersion.objects.filter(
        subject__context__registry=registry, subject__context__name=subject.context, subject__name=subject.subject
    ).order_by("-version")
    numbers = [(number, deleted_at is not None) for number, deleted_at in rows.values_list("version", "deleted_at")]
    if not numbers:
        get_subject(registry, subject, deleted=True)
    return numbers


def earlier_peers(registry: Registry, subject: SubjectName, numbers: Collection[int], group: str) -> set[int]:
    """For each of those versions the live one before it that has the same `group` in its metadata; one query."""
    rows = named_versions(registry, subject).select_related(None).order_by("version")
    last: dict[Any, int] = {}
    peers = set()
    for number, metadata in rows.values_list("version", "schema__metadata"):
        kind = property_of(metadata, group)
        if number in numbers and kind in last:
            peers.add(last[kind])
        last[kind] = number
    return peers


def read_whole(
    registry: Registry, subject: SubjectName, *, only: Collection[int] | None = None
) -> tuple[list[VersionInfo], tuple[Reading, ...]]:
    """Versions as values, newest first, soft-deleted ones too; and the live ones as they were read, ascending.

    All of them, or those of `only` that are there. Their texts are read once, which is most of what a subject of wide
    schemas costs. Raises SubjectNotFound.
    """
    versions = named_versions(registry, subject, deleted=True)
    rows = list((versions if only is None else versions.filter(version__in=only)).order_by("-version"))
    if not rows:
        get_subject(registry, subject, deleted=True)
    graph = read_graph({row.schema_id for row in rows})
    live_rows = [row for row in reversed(rows) if row.deleted_at is None]
    return infos_of(rows, graph.references()), _readings(live_rows, graph)


def parsed_of(registry: Registry, info: VersionInfo, readings: Sequence[Reading]) -> ParsedSchema:
    """A version's schema: of the readings where it is among them, else read now. Raises what UNREADABLE names."""
    reading = next((candidate for candidate in readings if candidate.version == info.version), None)
    if reading is None:
        return stored_version(registry, info.subject, info.version, deleted=True)[1]
    if reading.schema is None:
        raise reading.error or InvalidSchema("The schema can't be read.")
    return reading.schema


def _readings(rows: Sequence[SchemaVersion], graph: ReferenceGraph) -> tuple[Reading, ...]:
    try:
        parse = parser_of([row.schema for row in rows], graph)
    except UNREADABLE as error:  # references that are nested too deep: of which version isn't known
        return tuple(_reading(row, None, error) for row in rows)
    return tuple(_read(row, parse) for row in rows)


def _read(row: SchemaVersion, parse: Callable[[Schema], ParsedSchema]) -> Reading:
    try:
        return _reading(row, parse(row.schema))
    except UNREADABLE as error:
        return _reading(row, None, error)


def _reading(row: SchemaVersion, schema: ParsedSchema | None, error: SchemadeskError | None = None) -> Reading:
    return Reading(row.version, row.schema.schema_type, row.schema.metadata, schema, error)


def origins_of(readings: Sequence[Reading], *, is_whole: bool = True) -> dict[str, int]:
    """The path of every field that the newest version has, with the version that brought it (back).

    A field that comes up behind a version that can't be read is left out: it may have come with that one. So is one
    that the first of them has where that isn't the subject's first (`is_whole` False).
    """
    origins: dict[str, int | None] = {}
    after_gap = not is_whole
    for reading in readings:
        paths = _paths(reading)
        if paths is None:
            after_gap = True
            continue
        origins = {path: origins.get(path, None if after_gap else reading.version) for path in paths}
        after_gap = False
    return {path: version for path, version in origins.items() if version is not None}


def _paths(reading: Reading) -> list[str] | None:
    if reading.schema is None:
        return None
    try:
        return [field.path for field in schema_engine.outline(reading.schema)]
    except UNREADABLE:
        return None


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
        any_root=format_of(schema_type).has_many_roots,
    )


def tags_of_parsed(parsed: ParsedSchema, metadata: Mapping[str, object] | None, note: Note) -> SchemaTags:
    """The same of a parsed schema; UNTOLD where reading it takes more than is allowed."""
    try:
        outline = schema_engine.outline(parsed)
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
    parsed = parse_readable(schemas)
    return {
        row.pk: tags_of_parsed(
            schema, row.metadata, _together([notes[name] for name in uses.get(row.pk, ()) if name in notes])
        )
        if (schema := parsed.get(row.pk)) is not None
        else UNTOLD
        for row in schemas
    }


def parse_readable(schemas: Sequence[Schema]) -> dict[int, ParsedSchema]:
    """The parsed forms by row; where a schema of the lot is refused, the others are read one by one."""
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


@dataclass(frozen=True)
class ExampleMessage:
    """A message in the format's JSON form. The engine made it and encoded it: `refused` is empty, or why it doesn't pass.

    `placeholders` counts values of personal fields, which stand for none: with them it may be that it doesn't pass.
    """

    value: Any
    placeholders: int = 0
    refused: str = ""


def example_of(registry: Registry, subject: SubjectName, version: int) -> ExampleMessage:
    """An example of a version, a soft-deleted one too; the same one each time.

    Raises SubjectNotFound, VersionNotFound, InvalidSchema, SchemaTooCostly, InvalidDatum where the schema has no data
    that can be made.
    """
    row, parsed = stored_version(registry, subject, version, deleted=True)
    return example_message(parsed, tags_of_parsed(parsed, row.schema.metadata, note_of(registry, subject)))


def example_message(parsed: ParsedSchema, tags: SchemaTags) -> ExampleMessage:
    """The same of a parsed schema with its tags. Raises InvalidDatum, SchemaTooCostly."""
    made = schema_engine.example(parsed)
    placeholders = Placeholders(tags, is_union_wrapped=format_of(parsed.schema_type).has_named_branches)
    value = placeholders.of(made)
    try:
        refused = schema_engine.resolve(parsed, parsed, value).error
    except InvalidDatum as error:
        refused = error.message
    except SchemadeskError as error:
        refused = error.message
    return ExampleMessage(value, placeholders.put, refused)
