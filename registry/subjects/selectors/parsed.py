"""Stored schemas as parsed ones, cached: a definition never changes under its identity."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from registry.errors import InvalidReference
from registry.formats.base import ParsedSchema, Reference, ResolvedReference
from registry.sandbox.cache import WeighedCache
from registry.subjects import engines
from registry.subjects.models import Registry, Schema, SchemaReference, SchemaVersion
from registry.subjects.names import DEFAULT_CONTEXT, SubjectName, parse_subject
from registry.subjects.selectors.versions import live, parse_version

#: characters of text whose parsed forms are kept; those take some twenty times as many bytes
CACHED_CHARACTERS = 3_000_000
MAX_REFERENCE_DEPTH = 64
#: a subject and a version of it, None for the latest
Place = tuple[SubjectName, int | None]

_cache = WeighedCache[ParsedSchema](CACHED_CHARACTERS, lambda schema: len(schema.text))


def forget() -> None:
    """Forget what was parsed, so that stored texts are read again: a damaged one has the identity of the sound one."""
    _cache.clear()


def parse_schema(
    schema_type: str, text: str, references: tuple[ResolvedReference, ...] = (), *, is_new: bool = True
) -> ParsedSchema:
    """The parsed schema; what isn't new was accepted once, and is read as `engines.parse` says.

    Raises InvalidSchema for a text that doesn't parse or a format that isn't known.
    """
    if references:
        return engines.parse(schema_type, text, references, is_new=is_new)
    return _cache.get((schema_type, text, is_new), lambda: engines.parse(schema_type, text, is_new=is_new))


@dataclass(frozen=True)
class _Stored:
    """A stored definition as a cache's key: what it says and what it refers to decide, not the graph itself.

    A chain of references in which each schema is used twice is small as a graph and huge as a tree, so it
    is never hashed or compared.
    """

    fingerprint: str
    identity: str
    schema_type: str = field(compare=False)
    text: str = field(compare=False, repr=False)
    references: tuple[ResolvedReference, ...] = field(compare=False, repr=False)


def _parse_stored(stored: _Stored) -> ParsedSchema:
    return _cache.get(stored, lambda: engines.parse(stored.schema_type, stored.text, stored.references, is_new=False))


def parse_stored(schemas: Sequence[Schema], *, refer: bool = True) -> list[ParsedSchema]:
    """The parsed forms of stored schemas, their references resolved; one query for each depth of references.

    None with `refer` False, which says of all of them that they refer to nothing.
    """
    parse = parser_of(schemas) if refer else _parse_plain
    return [parse(row) for row in schemas]


def _parse_plain(row: Schema) -> ParsedSchema:
    return _parse_stored(_Stored(row.fingerprint, row.identity, row.schema_type, row.canonical, ()))


def parser_of(schemas: Sequence[Schema]) -> Callable[[Schema], ParsedSchema]:
    """Parses those schemas one by one as they are asked for; what they refer to is read at once."""
    resolver = Resolver(_reference_graph({schema.pk for schema in schemas}))

    def parse(row: Schema) -> ParsedSchema:
        references = resolver.references_of(row.pk)
        return _parse_stored(_Stored(row.fingerprint, row.identity, row.schema_type, row.canonical, references))

    return parse


def _reference_graph(schema_pks: set[int]) -> dict[int, list[SchemaReference]]:
    graph, is_whole = read_graph(schema_pks)
    if not is_whole:
        raise too_deep()
    return graph


def too_deep() -> InvalidReference:
    """What is said of references that nobody follows to their end."""
    return InvalidReference(f"References are nested more than {MAX_REFERENCE_DEPTH} deep.")


def read_graph(schema_pks: set[int]) -> tuple[dict[int, list[SchemaReference]], bool]:
    """What schemas refer to, and what that refers to, as deep as is followed; and whether that is all of it.

    One query for each depth.
    """
    graph: dict[int, list[SchemaReference]] = {}
    wanted = schema_pks
    for _ in range(MAX_REFERENCE_DEPTH):
        rows = (
            SchemaReference.objects.filter(schema_id__in=wanted).select_related("target__schema").order_by("position")
        )
        for pk in wanted:
            graph[pk] = []
        for row in rows:
            graph[row.schema_id].append(row)
        wanted = {row.target.schema_id for row in rows} - graph.keys()
        if not wanted:
            return graph, True
    return graph, False


class Resolver:
    """Resolves each schema of a graph once.

    A reference is to a version that was there before its referrer, so the graph has no cycle.
    """

    def __init__(self, graph: dict[int, list[SchemaReference]]) -> None:
        self.graph = graph
        self.resolved: dict[int, tuple[ResolvedReference, ...]] = {}

    def references_of(self, schema_pk: int) -> tuple[ResolvedReference, ...]:
        """What a schema refers to, with what that refers to."""
        if schema_pk not in self.resolved:
            self.resolved[schema_pk] = tuple(
                self.to(row.name, row.subject_name, row.target) for row in self.graph[schema_pk]
            )
        return self.resolved[schema_pk]

    def to(self, name: str, subject: str, target: SchemaVersion) -> ResolvedReference:
        """A reference to a version."""
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
    """Each reference with its text and its live version; -1 means the latest. Raises InvalidReference.

    With `deleted` a soft-deleted version will do, as one that is brought from elsewhere may refer to one. The number of queries grows with the depth of the references, not with their number.
    """
    wanted = wanted_of(references, context=context)
    if not wanted:
        return ()
    targets = targets_of(registry, {place for _, place in wanted}, deleted=deleted)
    for reference, place in wanted:
        if place not in targets:
            raise missing_reference(reference)
    resolver = Resolver(_reference_graph({row.schema_id for row in targets.values()}))
    return tuple(
        (resolver.to(reference.name, reference.subject, targets[place]), targets[place]) for reference, place in wanted
    )


def wanted_of(references: Iterable[Reference], *, context: str) -> list[tuple[Reference, Place]]:
    """References with the places that they name. Raises InvalidName, InvalidVersion."""
    return [(item, (parse_subject(item.subject, context=context), parse_version(item.version))) for item in references]


def missing_reference(reference: Reference) -> InvalidReference:
    """What is said of a reference that leads nowhere."""
    return InvalidReference(
        f'No schema reference found for subject "{reference.subject}" and version {reference.version}'
        f" (named {reference.name!r}): register that version first.",
        reference=reference.name,
    )


def targets_of(registry: Registry, places: set[Place], *, deleted: bool) -> dict[Place, SchemaVersion]:
    """The live versions at those places (with `deleted` all); a place without one is left out."""
    rows = live(
        SchemaVersion.objects.filter(
            subject__context__registry=registry, subject__name__in={name.subject for name, _ in places}
        ),
        deleted=deleted,
    )
    columns = ("pk", "subject__context__name", "subject__name", "version")
    found: dict[Place, int] = {}
    numbered = rows.filter(version__in={number for _, number in places})
    for pk, context, subject, version in numbered.values_list(*columns):
        found[SubjectName(context, subject), version] = pk
    if any(number is None for _, number in places):
        latest = rows.order_by("subject_id", "-version").distinct("subject_id")
        for pk, context, subject, _ in latest.values_list(*columns):
            found[SubjectName(context, subject), None] = pk
    targets = SchemaVersion.objects.select_related("schema").in_bulk(found[place] for place in places & found.keys())
    return {place: targets[found[place]] for place in places & found.keys() if found[place] in targets}
