"""Options as text that the compiler accepts, and the options that the server declares itself."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

from google.protobuf import text_encoding, text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import Edition, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from registry.errors import InvalidSchema
from registry.formats.protobuf.compiler import MAIN, compile_files


def pool_of(protos: Sequence[FileDescriptorProto]) -> DescriptorPool:
    """Return a private pool with the files; raises InvalidSchema if the runtime rejects what the compiler accepted."""
    pool = DescriptorPool()
    try:
        for proto in protos:
            bare = FileDescriptorProto()
            bare.CopyFrom(proto)
            bare.ClearField("source_code_info")
            pool.AddSerializedFile(bare.SerializeToString())
            pool.FindFileByName(proto.name)
    except (TypeError, KeyError, ValueError) as error:
        raise InvalidSchema(f"the Protobuf runtime rejects the schema: {str(error)[:300]}") from None
    return pool


def imports(proto: FileDescriptorProto) -> dict[str, str]:
    """Return the import paths with the kind of each: "", "public", "weak" or "option"."""
    kinds = dict.fromkeys(proto.dependency, "")
    for kind, indexes in (("public", proto.public_dependency), ("weak", proto.weak_dependency)):
        kinds.update({proto.dependency[index]: kind for index in indexes})
    kinds.update(dict.fromkeys(proto.option_dependency, "option"))
    return kinds


def syntax_of(proto: FileDescriptorProto) -> str:
    """Return `proto2`, `proto3`, or for example `edition 2023`."""
    if proto.syntax == "editions":
        return f"edition {Edition.Name(proto.edition).removeprefix('EDITION_')}"
    return proto.syntax or "proto2"


def comments(proto: FileDescriptorProto) -> dict[tuple[int, ...], str]:
    """Return the comments before declarations, or else after them, by the descriptor's path."""
    docs: dict[tuple[int, ...], str] = {}
    for location in proto.source_code_info.location:
        comment: Any = location.leading_comments or location.trailing_comments
        if comment:
            docs[tuple(location.path)] = "\n".join(line.strip() for line in comment.strip().splitlines())
    return docs


_NUMBERS: Final = frozenset(
    {
        FieldDescriptor.CPPTYPE_INT32,
        FieldDescriptor.CPPTYPE_INT64,
        FieldDescriptor.CPPTYPE_UINT32,
        FieldDescriptor.CPPTYPE_UINT64,
    }
)
# Fields that the text expresses in another way.
_IMPLIED: Final = "map_entry"
_UNDECLARED: Final = "uninterpreted_option"


class Options:
    """A reader of the options of descriptors, including the custom ones that the files of a pool declare."""

    def __init__(self, pool: DescriptorPool) -> None:
        self._pool = pool
        self._classes: dict[str, Any] = {}

    def read(self, options: Message) -> Message:
        """Return the options with custom ones resolved, in an order independent of the text."""
        name = options.DESCRIPTOR.full_name
        if name not in self._classes:
            try:
                self._classes[name] = GetMessageClass(self._pool.FindMessageTypeByName(name))
            except KeyError:
                self._classes[name] = None
        options_class = self._classes[name]
        if options_class is None:
            return options
        read: Message = options_class.FromString(options.SerializePartialToString())
        return read

    def items(self, options: Message) -> list[tuple[str, str]]:
        """Return (name, value) pairs by number; a repeated option has one pair for each value."""
        if not options.ByteSize():
            return []
        return list(_items(self.read(options)))

    def mapping(self, options: Message) -> dict[str, str]:
        """Return names and values for comparison; the values of a repeated option are joined."""
        values: dict[str, str] = {}
        for name, value in self.items(options):
            values[name] = f"{values[name]}, {value}" if name in values else value
        return values


def _items(options: Message) -> Iterator[tuple[str, str]]:
    for field, value in options.ListFields():
        if field.name == _IMPLIED and not field.is_extension:
            continue
        if field.name == _UNDECLARED and not field.is_extension:
            yield from (_undeclared(item) for item in value)
            continue
        name = f"(.{field.full_name})" if field.is_extension else field.name
        for item in value if field.is_repeated else (value,):
            yield name, value_text(field, item)


def _undeclared(option: Any) -> tuple[str, str]:
    """Return an undeclared option as it was written."""
    parts = (f"({part.name_part})" if part.is_extension else part.name_part for part in option.name)
    return ".".join(parts), option.aggregate_value


def value_text(field: FieldDescriptor, value: Any) -> str:
    """Return a value as the text of an option or default."""
    if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
        inside = text_format.MessageToString(value, as_one_line=True)
        return f"{{ {inside} }}" if inside else "{ }"
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        named = field.enum_type.values_by_number.get(value)
        return named.name if named is not None else str(value)
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return "true" if value else "false"
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return quoted(value)
    if field.cpp_type in _NUMBERS:
        return str(value)
    return float_text(value)


def float_text(value: float) -> str:
    """Return a number as the compiler reads it, with names for infinities and NaN."""
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return "nan" if math.isnan(value) else repr(value)


def quoted(value: str | bytes) -> str:
    """Return a quoted string or bytes with the language's escapes; UTF-8 stays readable in strings."""
    return f'"{text_encoding.CEscape(value, as_utf8=isinstance(value, str))}"'


#: the file that declares the options; every schema can import it
META: Final = "confluent/meta.proto"


@lru_cache(maxsize=1)
def meta_files() -> tuple[FileDescriptorProto, ...]:
    """Return the descriptors of META's imports and of META, in that order."""
    return compile_files({MAIN: f'syntax = "proto3"; import "{META}";'})[:-1]


@lru_cache(maxsize=1)
def known_options() -> Options:
    """Return an options reader that knows the options of META."""
    return Options(pool_of(meta_files()))
