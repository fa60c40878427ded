"""What types of values have in common: groups that the established check treats as one, and lossy conversions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from registry.formats.protobuf.model import Field

# Types of one group are compatible for Confluent's registry, whatever happens to their values.
GROUPS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("int32", "int64", "uint32", "uint64", "bool", "enum"), "number"),
    **dict.fromkeys(("sint32", "sint64"), "signed"),
    **dict.fromkeys(("string", "bytes"), "text"),
    **dict.fromkeys(("fixed32", "sfixed32"), "fixed32"),
    **dict.fromkeys(("fixed64", "sfixed64"), "fixed64"),
    "float": "float",
    "double": "double",
}

RANGES: Final[Mapping[str, tuple[int, int]]] = {
    **dict.fromkeys(("int32", "sint32", "sfixed32"), (-(2**31), 2**31 - 1)),
    **dict.fromkeys(("int64", "sint64", "sfixed64"), (-(2**63), 2**63 - 1)),
    **dict.fromkeys(("uint32", "fixed32"), (0, 2**32 - 1)),
    **dict.fromkeys(("uint64", "fixed64"), (0, 2**64 - 1)),
    "bool": (0, 1),
}


def is_narrowing(writer: Field, reader: Field) -> bool:
    """Whether a value of one type changes in another type of its group; bytes and enum values aside."""
    if writer.kind == reader.kind:
        return False
    if GROUPS.get(writer.kind) != GROUPS.get(reader.kind):
        return False
    written = _written(writer)
    if written is None:
        return False
    low, high = written
    if reader.enum is not None and reader.enum.is_closed:
        return high - low > 1 or not {low, high} <= reader.enum.by_number.keys()
    reader_low, reader_high = RANGES["int32"] if reader.enum is not None else RANGES[reader.kind]
    return low < reader_low or high > reader_high


def _written(field: Field) -> tuple[int, int] | None:
    """The smallest and the largest number that a field is written with."""
    if field.enum is not None and not field.enum.is_closed:
        return RANGES["int32"]
    if field.enum is not None:
        return min(field.enum.by_number), max(field.enum.by_number)
    return RANGES.get(field.kind)
