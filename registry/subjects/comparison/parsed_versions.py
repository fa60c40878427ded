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

#: the errors of reading or comparing a stored text: it is damaged, its references are, or it exceeds the current limits
UNREADABLE: Final = (InvalidSchema, InvalidReference, Unavailable)


@dataclass(frozen=True)
class Reading:
    """A version as it was read; if it can't be, `schema` is None and `error` says why."""

    version: int
    schema_type: str
    metadata: Contract | None
    schema: ParsedSchema | None
    error: SchemadeskError | None = None


def version_numbers(registry: Registry, subject: SubjectName) -> list[tuple[int, bool]]:
    """Return all versions, newest first, with whether each is soft-deleted; reads no text. Raises SubjectNotFound."""
    rows = SchemaVersion.objects.filter(
        subject__context__registry=registry, subject__context__name=subject.context, subject__name=subject.subject
    ).order_by("-version")
    numbers = [(number, deleted_at is not None) for number, deleted_at in rows.values_list("version", "deleted_at")]
    if not numbers:
        get_subject(registry, subject, deleted=True)
    return numbers


def earlier_peers(registry: Registry, subject: SubjectName, numbers: Collection[int], group: str) -> set[int]:
    """Return, for each version, the live one before it with the same `group` in its metadata; one query."""
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
    """Return versions as values, newest first, with soft-deleted ones; and the readings of the live ones, ascending.

    All versions, or the existing ones of `only`. Their texts are read once, which is most of the cost of a subject with
    wide schemas. Raises SubjectNotFound.
    """
    versions = named_versions(registry, subject, deleted=True)
    rows = list((versions if only is None else versions.filter(version__in=only)).order_by("-version"))
    if not rows:
        get_subject(registry, subject, deleted=True)
    graph = read_graph({row.schema_id for row in rows})
    live_rows = [row for row in reversed(rows) if row.deleted_at is None]
    return infos_of(rows, graph.references()), _readings(live_rows, graph)


def parsed_of(registry: Registry, info: VersionInfo, readings: Sequence[Reading]) -> ParsedSchema:
    """Return a version's schema, from the readings if it is among them. Raises the errors in UNREADABLE."""
    reading = next((candidate for candidate in readings if candidate.version == info.version), None)
    if reading is None:
        return stored_version(registry, info.subject, info.version, deleted=True)[1]
    if reading.schema is None:
        raise reading.error or InvalidSchema("The schema can't be read.")
    return reading.schema


def _readings(rows: Sequence[SchemaVersion], graph: ReferenceGraph) -> tuple[Reading, ...]:
    try:
        parse = parser_of([row.schema for row in rows], graph)
    except UNREADABLE as error:  # references are nested too deeply; which version has them isn't known
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
    """Return the path of every field of the newest version, with the version that added it, or added it again.

    A field that first appears after an unreadable version is left out: it may have come with that version. So is a
    field of the first reading if that isn't the subject's first version (`is_whole` False).
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


#: for a schema whose fields can't be read: all of it may be personal
UNKNOWN_TAGS = SchemaTags(is_personal=True)


def is_personal_tag(tag: str) -> bool:
    """Return whether a tag means personal data, by the setting PERSONAL_TAGS."""
    return tag.lower() in {word.lower() for word in settings.PERSONAL_TAGS}


def tags_of_outline(
    schema_type: str, outline: Sequence[OutlineField], metadata: Mapping[str, object] | None, note: Note
) -> SchemaTags:
    """Return the tags of a schema's fields, with those of its subject."""
    return effective_tags(
        outline,
        metadata=metadata,
        around=note.tags,
        personal=settings.PERSONAL_TAGS,
        any_root=format_of(schema_type).has_many_roots,
    )


def tags_of_parsed(parsed: ParsedSchema, metadata: Mapping[str, object] | None, note: Note) -> SchemaTags:
    """Return the tags of a parsed schema's fields; UNKNOWN_TAGS if reading them exceeds the limits."""
    try:
        outline = schema_engine.outline(parsed)
    except SchemadeskError:
        return UNKNOWN_TAGS
    return tags_of_outline(parsed.schema_type, outline, metadata, note)


def tags_of_info(registry: Registry, info: VersionInfo, note: Note, readings: Sequence[Reading] = ()) -> SchemaTags:
    """Return a version's tags; UNKNOWN_TAGS if its schema can't be read. `readings` are those that exist already."""
    try:
        parsed = parsed_of(registry, info, readings)
    except SchemadeskError:
        return UNKNOWN_TAGS
    return tags_of_parsed(parsed, info.schema.metadata, note)


def tags_of_schemas(registry: Registry, schemas: Sequence[Schema]) -> dict[int, SchemaTags]:
    """Return the tags of definitions by row, each with those of all subjects that have it; a few queries.

    UNKNOWN_TAGS for a definition that can't be read.
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
        else UNKNOWN_TAGS
        for row in schemas
    }


def parse_readable(schemas: Sequence[Schema]) -> dict[int, ParsedSchema]:
    """Return the parsed schemas by row; if one is refused, the schemas are read one by one."""
    try:
        return {row.pk: parsed for row, parsed in zip(schemas, parse_stored(schemas), strict=True)}
    except SchemadeskError:
        return {row.pk: parsed for row in schemas if (parsed := _one(row)) is not None}


def _one(row: Schema) -> ParsedSchema | None:
    try:
        return parse_stored([row])[0]
    except SchemadeskError:  # stored under other limits than the current ones
        return None


def _together(notes: Sequence[Note]) -> Note:
    return Note(tags=tuple(sorted({tag for note in notes for tag in note.tags})))


@dataclass(frozen=True)
class ExampleMessage:
    """A generated message in the format's JSON form, encoded by the engine; `refused` is why it is invalid, or empty.

    `placeholders` counts values of personal fields, replaced by a placeholder; these can make the message invalid.
    """

    value: Any
    placeholders: int = 0
    refused: str = ""


def example_of(registry: Registry, subject: SubjectName, version: int) -> ExampleMessage:
    """Return an example of a version, which may be soft-deleted; always the same one.

    Raises SubjectNotFound, VersionNotFound, InvalidSchema, SchemaTooCostly, InvalidDatum if no data can be generated
    for the schema.
    """
    row, parsed = stored_version(registry, subject, version, deleted=True)
    return example_message(parsed, tags_of_parsed(parsed, row.schema.metadata, note_of(registry, subject)))


def example_message(parsed: ParsedSchema, tags: SchemaTags) -> ExampleMessage:
    """Return an example of a parsed schema with its tags. Raises InvalidDatum, SchemaTooCostly."""
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
