"""The references of many texts that come together, one of which may lead to another: few queries for all of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from registry.formats.base import Reference, ResolvedReference
from registry.subjects.models import Registry, SchemaReference, SchemaVersion
from registry.subjects.names import SubjectName
from registry.subjects.selectors.parsed import (
    MAX_REFERENCE_DEPTH,
    Place,
    Resolver,
    missing_reference,
    read_graph,
    targets_of,
    too_deep,
)

#: a reference, and the place that it names
Wanted = tuple[Reference, Place]
#: a reference as a text has it, and the version that it leads to
Found = tuple[ResolvedReference, SchemaVersion]


class References:
    """What the references of a batch lead to: versions that are there, the soft-deleted ones too, and those that come.

    One that comes is added in its turn, so that those after it find it. Its schema has a primary key of some kind by
    then, which no other schema has.
    """

    def __init__(self, registry: Registry, places: Collection[Place]) -> None:
        self._targets = targets_of(registry, set(places), deleted=True) if places else {}
        schemas = {row.schema_id for row in self._targets.values()}
        self._graph = read_graph(schemas)[0] if schemas else {}
        self._resolver = Resolver(self._graph)

    def add(self, name: SubjectName, row: SchemaVersion, found: Sequence[Found]) -> None:
        """A version that comes, with what it refers to."""
        self._targets[name, row.version] = row
        newest = self._targets.get((name, None))
        if newest is None or newest.version < row.version:
            self._targets[name, None] = row
        self._graph.setdefault(
            row.schema_id,
            [SchemaReference(name=item.name, subject_name=item.subject, target=target) for item, target in found],
        )

    def resolve(self, wanted: Sequence[Wanted]) -> tuple[Found, ...]:
        """Each reference with its text and its version. Raises InvalidReference."""
        for reference, place in wanted:
            if place not in self._targets:
                raise missing_reference(reference)
        targets = [self._targets[place] for _, place in wanted]
        self._refuse_deep({row.schema_id for row in targets})
        return tuple(
            (self._resolver.to(reference.name, reference.subject, target), target)
            for (reference, _), target in zip(wanted, targets, strict=True)
        )

    def _refuse_deep(self, schemas: set[int]) -> None:
        """What is asked for by itself is read as deep, and no deeper."""
        seen, level = set(schemas), schemas
        for _ in range(MAX_REFERENCE_DEPTH):
            level = {link.target.schema_id for schema in level for link in self._graph[schema]} - seen
            if not level:
                return
            seen |= level
        raise too_deep()
