"""Which branch of a reader's union a type of the writer is read as, and which one it means."""

from __future__ import annotations

from registry.formats.avro.model import Array, AvroType, Fixed, Map, Named, Union
from registry.formats.avro.resolution import READS


def first_match(reader: Union, writer: AvroType) -> tuple[int, AvroType] | None:
    """The reader's branch that a decoder takes for a type: the first that matches it, as the specification says."""
    return next(((at, branch) for at, branch in enumerate(reader.branches) if matches(branch, writer)), None)


def matches(reader: AvroType, writer: AvroType) -> bool:
    """Whether fastavro takes the reader's type for the writer's, before it looks at the data."""
    while True:
        if reader.kind == "union" or writer.kind == "union":
            return True
        if isinstance(reader, Array) and isinstance(writer, Array):
            reader, writer = reader.items, writer.items
        elif isinstance(reader, Map) and isinstance(writer, Map):
            reader, writer = reader.values, writer.values
        else:
            break
    if isinstance(reader, Named) and isinstance(writer, Named):
        if reader.kind != writer.kind:
            return False
        if isinstance(reader, Fixed) and isinstance(writer, Fixed) and reader.size != writer.size:
            return False
        return reader.simple == writer.simple or writer.full_name in reader.alias_set
    return writer.kind in READS.get(reader.kind, ())


def is_taken_by_order(reader: AvroType, writer: AvroType) -> bool:
    """Whether decoders part: the first branch that matches isn't the one of the same type, which the union has too."""
    if not isinstance(reader, Union) or isinstance(writer, Union):
        return False
    found = first_match(reader, writer)
    return found is not None and not _same(found[1], writer) and any(_same(item, writer) for item in reader.branches)


def meant_branch(reader: Union, writer: Named) -> int | None:
    """The branch that a named type means: of its full name, else of an alias; None where the names don't decide."""
    for position, branch in enumerate(reader.branches):
        if _same(branch, writer):
            return position
    for position, branch in enumerate(reader.branches):
        if isinstance(branch, Named) and branch.kind == writer.kind and writer.full_name in branch.alias_set:
            return position
    return None


def has_namesakes(reader: Union, writer: Named) -> bool:
    """Whether several branches match the simple name or an alias of a named type."""
    return sum(isinstance(branch, Named) and matches(branch, writer) for branch in reader.branches) > 1


def is_misnamed(reader: AvroType, writer: AvroType) -> bool:
    """Whether a decoder that goes by order takes a named type for another one: first by name, not the one meant."""
    if not isinstance(reader, Union) or not isinstance(writer, Named) or not has_namesakes(reader, writer):
        return False
    found = first_match(reader, writer)
    return found is not None and found[0] != meant_branch(reader, writer)


def _same(reader: AvroType, writer: AvroType) -> bool:
    if isinstance(reader, Named) and isinstance(writer, Named):
        return reader.kind == writer.kind and reader.full_name == writer.full_name
    return reader.kind == writer.kind
