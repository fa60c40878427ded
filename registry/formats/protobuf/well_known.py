"""Message types whose name says what their fields mean: two of them of one shape are still two meanings."""

from __future__ import annotations

from typing import Final

from registry.formats.protobuf.model import Message

_PACKAGES: Final = ("google.protobuf.", "google.type.", "confluent.type.")
# A wrapper means its value alone: what becomes of that is seen in the data.
_WRAPPERS: Final = frozenset(
    f"google.protobuf.{kind}Value"
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)


def is_reinterpreted(theirs: Message, ours: Message) -> bool:
    """Whether both are well-known types, and the reader's means something else than the writer's."""
    names = theirs.full_name, ours.full_name
    return (
        names[0] != names[1] and all(name.startswith(_PACKAGES) for name in names) and not _WRAPPERS.issuperset(names)
    )
