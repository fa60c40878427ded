"""Stored schemas, parsed and cached; by schema id, by version id, and as text in another form."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from django.conf import settings

from registry.errors import InvalidReference, SchemaNotFound, SchemaTooLarge
from registry.formats import format_of
from registry.formats.base import ParsedSchema, Reference, ResolvedReference
from registry.formats.tags import EntityTags, with_any_of
from registry.sandbox import WeighedCache
from registry.subjects.engine import schema_engine
from registry.subjects.models import Registry, Schema, SchemaReference, SchemaVersion
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, SubjectName, parse_subject
from registry.subjects.versions.versions import JOINED, SchemaInfo, VersionInfo, infos_of, live, parse_version

#: characters of text whose parsed forms are cached; these take some twenty times as many bytes
CACHED_CHARACTERS = 3_000_000
MAX_REFERENCE_DEPTH = 64
#: a subject and a version of it, None for the latest
ReferenceKey = tuple[SubjectName, int | None]

_cache = WeighedCache[ParsedSchema](CACHED_CHARACTERS, lambda schema: len(schema.text))


def forget() -> None:
    """Clear the cache, so that stored texts are read again: a damaged text has the same identity as the intact one."""
    _cache.clear()


def refuse_too_large(text: str) -> None:
    """Raise SchemaTooLarge for a text over the limit in bytes."""
    most = settings.SCHEMA_MAX_BYTES
    if len(text) > most or len(text.encode("utf-8", "surrogatepass")) > most:
        raise SchemaTooLarge(f"The schema is too large: at most {most} bytes are allowed (SCHEMA_MAX_BYTES).")


def parse_schema(
    schema_type: str, text: str, references: tuple[ResolvedReference, ...] = (), *, is_new: bool = True
) -> ParsedSchema:
    """Parse a schema; one that isn't new was accepted earlier, and is read as in `schema_engine.parse`.

    Raises SchemaTooLarge for a new text over the limit in bytes, before it is read, and InvalidSchema for one that
    doesn't parse or has an unknown format.
    """
    if is_new:
        refuse_too_large(text)
    return parse_measured(schema_type, text, references, is_new=is_new)


def parse_measured(
    schema_type: str, text: str, references: tuple[ResolvedReference, ...], *, is_new: bool
) -> ParsedSchema:
    """Parse a text whose size the caller has checked."""
    if references:
        return schema_engine.parse(schema_type, text, references, is_new=is_new)
    return _cache.get((schema_type, text, is_new), lambda: schema_engine.parse(schema_type, text, is_new=is_new))


def is_parsed(schema_type: str, text: str) -> bool:
    """Return whether a new text without references was parsed here not long ago."""
    return (schema_type, text, True) in _cache


@dataclass(frozen=True)
class _Stored:
    """A stored definition as a cache key: its content and references are compared, not the graph itself.

    A chain of references that uses each schema twice is small as a graph and huge as a tree, so it is never hashed or
    compared.
    """

    fingerprint: str
    identity: str
    schema_type: str = field(compare=False)
    text: str = field(compare=False, repr=False)
    references: tuple[ResolvedReference, ...] = field(compare=False, repr=False)


def _parse_stored(stored: _Stored) -> ParsedSchema:
    return _cache.get(
        stored, lambda: schema_engine.parse(stored.schema_type, stored.text, stored.references, is_new=False)
    )


def keep_parsed(row: Schema, submitted: ParsedSchema) -> None:
    """Cache a stored schema as parsed from the submitted text, if both texts are the same JSON.

    The next version is compared with it, so it isn't parsed once more then.
    """
    if submitted.references or not format_of(row.schema_type).is_json:
        return
    try:
        stored = json.dumps(json.loads(submitted.text), separators=(",", ":"), ensure_ascii=False)
    except (ValueError, RecursionError):
        return
    if stored == row.canonical == submitted.canonical:
        key = _Stored(row.fingerprint, row.identity, row.schema_type, row.canonical, ())
        _cache.get(key, lambda: replace(submitted, text=row.canonical))


def parse_stored(schemas: Sequence[Schema], *, refer: bool = True) -> list[ParsedSchema]:
    """Return the parsed schemas with their references resolved; one query per level of references.

    With `refer` False, none of them has references, so there are no queries.
    """
    parse = parser_of(schemas) if refer else _parse_plain
    return [parse(row) for row in schemas]


def _parse_plain(row: Schema) -> ParsedSchema:
    return _parse_stored(_Stored(row.fingerprint, row.identity, row.schema_type, row.canonical, ()))


def parser_of(schemas: Sequence[Schema], graph: ReferenceGraph | None = None) -> Callable[[Schema], ParsedSchema]:
    """Return a function that parses each of those schemas on demand; their references are read now.

    `graph` is the result of `read_graph`, if it exists already. Raises InvalidReference if it is too deep.
    """
    resolver = (graph or read_graph({schema.pk for schema in schemas})).resolver()

    def parse(row: Schema) -> ParsedSchema:
        references = resolver.references_of(row.pk)
        return _parse_stored(_Stored(row.fingerprint, row.identity, row.schema_type, row.canonical, references))

    return parse


def too_deep() -> InvalidReference:
    """Return the error for references that are nested too deeply."""
    return InvalidReference(f"References are nested more than {MAX_REFERENCE_DEPTH} deep.")


@dataclass(frozen=True)
class ReferenceGraph:
    """The references of schemas, followed up to the maximum depth; `is_whole` says whether that is all of them."""

    rows: dict[int, list[SchemaReference]]
    is_whole: bool

    def references(self) -> dict[int, tuple[Reference, ...]]:
        """Return the references by schema, as `references_of` does."""
        return {
            pk: tuple(Reference(row.name, row.subject_name, row.target.version) for row in rows)
            for pk, rows in self.rows.items()
        }

    def resolver(self) -> Resolver:
        """Return the graph's resolver. Raises InvalidReference if references are nested too deeply."""
        if not self.is_whole:
            raise too_deep()
        return Resolver(self.rows)


def read_graph(schema_pks: set[int]) -> ReferenceGraph:
    """Return the graph of those schemas; one query per level."""
    graph: dict[int, list[SchemaReference]] = {}
    level = schema_pks
    for _ in range(MAX_REFERENCE_DEPTH):
        rows = SchemaReference.objects.filter(schema_id__in=level).select_related("target__schema").order_by("position")
        for pk in level:
            graph[pk] = []
        for row in rows:
            graph[row.schema_id].append(row)
        level = {row.target.schema_id for row in rows} - graph.keys()
        if not level:
            return ReferenceGraph(graph, is_whole=True)
    return ReferenceGraph(graph, is_whole=False)


class Resolver:
    """Resolves each schema of a graph once.

    A version exists before another one can refer to it, so the graph has no cycle.
    """

    def __init__(self, graph: dict[int, list[SchemaReference]]) -> None:
        self.graph = graph
        self.resolved: dict[int, tuple[ResolvedReference, ...]] = {}

    def references_of(self, schema_pk: int) -> tuple[ResolvedReference, ...]:
        """Return a schema's references, with theirs."""
        if schema_pk not in self.resolved:
            self.resolved[schema_pk] = tuple(
                self.to(row.name, row.subject_name, row.target) for row in self.graph[schema_pk]
            )
        return self.resolved[schema_pk]

    def to(self, name: str, subject: str, target: SchemaVersion) -> ResolvedReference:
        """Return a reference to a version."""
        return ResolvedReference(
            name=name,
            subject=subject,
            version=target.version,
            text=target.schema.canonical,
            references=self.references_of(target.schema_id),
        )


def resolve_references(
    registry: Registry, references: Iterable[Reference], *, context: str = DEFAULT_CONTEXT, deleted: bool = False
) -> tuple[tuple[ResolvedReference, SchemaVersion], ...]:
    """Return each reference with its text and its live version; -1 means the latest. Raises InvalidReference.

    With `deleted`, a reference may be to a soft-deleted version, as in imports. The number of queries grows with the
    depth of the references, not with their number.
    """
    keyed = keyed_references(references, context=context)
    if not keyed:
        return ()
    targets = targets_of(registry, {key for _, key in keyed}, deleted=deleted)
    for reference, key in keyed:
        if key not in targets:
            raise missing_reference(reference)
    resolver = read_graph({row.schema_id for row in targets.values()}).resolver()
    return tuple(
        (resolver.to(reference.name, reference.subject, targets[key]), targets[key]) for reference, key in keyed
    )


def keyed_references(references: Iterable[Reference], *, context: str) -> list[tuple[Reference, ReferenceKey]]:
    """Return references with the keys of their targets. Raises InvalidName, InvalidVersion."""
    return [(item, (parse_subject(item.subject, context=context), parse_version(item.version))) for item in references]


def missing_reference(reference: Reference) -> InvalidReference:
    """Return the error for a reference to a missing version."""
    return InvalidReference(
        f'No schema reference found for subject "{reference.subject}" and version {reference.version}'
        f" (named {reference.name!r}): register that version first.",
        reference=reference.name,
    )


def targets_of(registry: Registry, keys: set[ReferenceKey], *, deleted: bool) -> dict[ReferenceKey, SchemaVersion]:
    """Return the live versions with those keys (with `deleted` all); missing ones are left out."""
    rows = live(
        SchemaVersion.objects.filter(
            subject__context__registry=registry, subject__name__in={name.subject for name, _ in keys}
        ),
        deleted=deleted,
    )
    columns = ("pk", "subject__context__name", "subject__name", "version")
    version_pks: dict[ReferenceKey, int] = {}
    numbered = rows.filter(version__in={number for _, number in keys})
    for pk, context, subject, version in numbered.values_list(*columns):
        version_pks[SubjectName(context, subject), version] = pk
    if any(number is None for _, number in keys):
        latest = rows.order_by("subject_id", "-version").distinct("subject_id")
        for pk, context, subject, _ in latest.values_list(*columns):
            version_pks[SubjectName(context, subject), None] = pk
    targets = SchemaVersion.objects.select_related("schema").in_bulk(
        version_pks[key] for key in keys & version_pks.keys()
    )
    return {key: targets[version_pks[key]] for key in keys & version_pks.keys() if version_pks[key] in targets}


def self_contained_schemas(
    registry: Registry, schema_ids: Collection[int], *, schema_type: str, context: str = DEFAULT_CONTEXT
) -> dict[int, str]:
    """Return the texts of the ids with that format, with everything that they refer to included."""
    rows = list(
        Schema.objects.filter(
            context__registry=registry, context__name=context, schema_id__in=schema_ids, schema_type=schema_type
        )
    )
    return {
        row.schema_id: schema_engine.self_contained(parsed)
        for row, parsed in zip(rows, parse_stored(rows), strict=True)
    }


def text_in_form(registry: Registry, schema: SchemaInfo, form: str) -> str:
    """Return the text in the requested form; the stored text if the schema's format doesn't have that form."""
    forms = {"resolved": "self_contained", **format_of(schema.schema_type).forms}
    verb = forms.get(form.strip().lower())
    return schema.text if verb is None else schema_engine.text_by(verb, _parsed(registry, schema))


def find_tags(registry: Registry, schema: SchemaInfo, names: Sequence[str]) -> tuple[EntityTags, ...]:
    """Return a schema's records and fields that have one of the tags, or (`*`) any tag."""
    return with_any_of(schema_engine.tags(_parsed(registry, schema)), names)


def _parsed(registry: Registry, schema: SchemaInfo) -> ParsedSchema:
    row = Schema.objects.get(context__registry=registry, context__name=schema.context, schema_id=schema.schema_id)
    return parse_stored([row])[0]


def version_by_id(registry: Registry, version_id: int) -> VersionInfo:
    """Return this registry's live version with the id. Raises SchemaNotFound."""
    rows = SchemaVersion.objects.filter(pk=version_id, subject__context__registry=registry)
    row = live(rows).select_related(*JOINED).first()
    if row is None:
        raise SchemaNotFound(f"Schema {version_id} not found", schema_id=version_id)
    return infos_of([row])[0]


def versions_of_format(
    registry: Registry, subject: SubjectName, schema_type: str, *, version: int | None = None
) -> list[VersionInfo]:
    """Return the subject's live versions of a format, ascending (with `version`: only that one); may be empty.

    A constant number of queries, however many versions there are.
    """
    rows = SchemaVersion.objects.filter(
        subject__context__registry=registry,
        subject__context__name=subject.context,
        subject__name=subject.subject,
        schema__schema_type=schema_type,
    )
    if version is not None:
        rows = rows.filter(version=version)
    return infos_of(list(live(rows).select_related(*JOINED).order_by("version")))


def canonical_texts(registry: Registry, subject: SubjectName, schema_type: str) -> Iterator[tuple[int, str]]:
    """Yield number and canonical text of the subject's live versions of a format, ascending; one query, streamed."""
    rows = SchemaVersion.objects.filter(
        subject__context__registry=registry,
        subject__context__name=subject.context,
        subject__name=subject.subject,
        schema__schema_type=schema_type,
    )
    yield from live(rows).order_by("version").values_list("version", "schema__canonical").iterator(chunk_size=50)


def standalone_texts(versions: Sequence[VersionInfo]) -> dict[int, str]:
    """Return, by the versions' ids, texts for readers that don't support references.

    That is the submitted text; if it has references, these are included. Two queries and one per level of references.
    """
    texts = {info.id: info.submitted for info in versions}
    referring = [info.id for info in versions if info.schema.references]
    if not referring:
        return texts
    pairs = SchemaVersion.objects.filter(pk__in=referring).values_list("pk", "schema_id")
    schema_of = dict(pairs)
    rows = list(Schema.objects.filter(pk__in=set(schema_of.values())))
    whole = {
        row.pk: format_of(row.schema_type).self_contained(parsed)
        for row, parsed in zip(rows, parse_stored(rows), strict=True)
    }
    return texts | {version_id: whole[schema_pk] for version_id, schema_pk in schema_of.items()}
