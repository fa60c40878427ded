"""What the compiler's descriptors say of a whole file: its pool, syntax, imports and comments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.protobuf.descriptor_pb2 import Edition, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from registry.errors import InvalidSchema


def pool_of(protos: Sequence[FileDescriptorProto]) -> DescriptorPool:
    """A private pool with these files; raises InvalidSchema where the runtime doesn't take what the compiler took."""
    pool = DescriptorPool()
    try:
        for proto in protos:
            bare = FileDescriptorProto()
            bare.CopyFrom(proto)
            bare.ClearField("source_code_info")
            pool.AddSerializedFile(bare.SerializeToString())
            pool.FindFileByName(proto.name)
    except (TypeError, KeyError, ValueError) as error:
        raise InvalidSchema(f"the Protobuf runtime refuses the schema: {str(error)[:300]}") from None
    return pool


def imports(proto: FileDescriptorProto) -> dict[str, str]:
    """Import paths with the kind of each: "", "public", "weak" or "option"."""
    found = dict.fromkeys(proto.dependency, "")
    for kind, places in (("public", proto.public_dependency), ("weak", proto.weak_dependency)):
        found.update({proto.dependency[place]: kind for place in places})
    found.update(dict.fromkeys(proto.option_dependency, "option"))
    return found


def syntax_of(proto: FileDescriptorProto) -> str:
    """`proto2`, `proto3`, or `edition 2023`."""
    if proto.syntax == "editions":
        return f"edition {Edition.Name(proto.edition).removeprefix('EDITION_')}"
    return proto.syntax or "proto2"


def comments(proto: FileDescriptorProto) -> dict[tuple[int, ...], str]:
    """The comments before (or else behind) declarations, by the descriptor's path."""
    docs: dict[tuple[int, ...], str] = {}
    for place in proto.source_code_info.location:
        comment: Any = place.leading_comments or place.trailing_comments
        if comment:
            docs[tuple(place.path)] = "\n".join(line.strip() for line in comment.strip().splitlines())
    return docs
