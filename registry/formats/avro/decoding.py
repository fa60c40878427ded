"""Decoding of bytes, and resolution of data from writer to reader; errors name the field and the byte."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final

from registry.errors import InvalidDatum
from registry.formats.avro.datum import (
    Codec,
    branch_name,
    branch_position,
    codec,
    datum_from_json,
    datum_to_json,
    plain,
    plain_error,
    skips_resolution,
    written_value,
)
from registry.formats.avro.decoded_fields import Fastavro, Reading, UnexpectedReading, Unresolved
from registry.formats.avro.findings import PairLocation, root_path
from registry.formats.avro.model import (
    Array,
    AvroSchema,
    AvroType,
    Enum,
    Fixed,
    Map,
    Record,
    RecordField,
    Union,
    type_label,
)
from registry.formats.avro.sample_data import Coverage, TooMuchData
from registry.formats.avro.value_hazards import shown
from registry.formats.base import FieldOutcome, Resolution


def resolve(reader: AvroSchema, writer: AvroSchema, value: Any) -> Resolution:
    """Read a writer's JSON value with the reader; raises InvalidDatum if it isn't valid for the writer."""
    try:
        return _resolve(reader, writer, value)
    except RecursionError:
        raise InvalidDatum("the record is nested too deeply for this process") from None


def _resolve(reader: AvroSchema, writer: AvroSchema, value: Any) -> Resolution:
    datum = written_value(writer.root, datum_from_json(writer.root, value, root_path(writer.root)))
    write, read = _codec(writer, "writer"), _codec(reader, "reader")
    try:
        encoded = write.encode(datum)
    except Exception as error:
        raise InvalidDatum(f"the record can't be encoded: {plain_error(error)}") from error
    shown = datum_to_json(datum)
    is_one = skips_resolution(reader, writer)
    try:
        decoded = write.decode(encoded, None if is_one else read)
    except Exception as error:  # noqa: BLE001 - any failure of the decoder is the answer
        return Resolution(shown, encoded.hex(), error=plain_error(error))
    location = PairLocation("", root_path(reader.root), "", "", None, None)
    try:
        reading = Reading(
            reader.root, writer.root, datum, decoded, location, decoder=Unresolved() if is_one else Fastavro()
        )
    except UnexpectedReading:
        outcome = FieldOutcome(location.path, "converted", plain(datum), plain(decoded), "as returned by the decoder")
        return Resolution(shown, encoded.hex(), plain(decoded), (outcome,))
    return Resolution(shown, encoded.hex(), datum_to_json(reading.value), tuple(reading.fields))


def _codec(schema: AvroSchema, side: str) -> Codec:
    try:
        return codec(schema)
    except Exception as error:
        raise InvalidDatum(f"fastavro rejects the {side} schema: {plain_error(error)}") from error


def example(schema: AvroSchema) -> Any:
    """Return a datum in Avro's JSON encoding, without null where another value is possible; raises InvalidDatum."""
    try:
        coverage = _Example(schema.root)
        if coverage.is_empty:
            raise InvalidDatum("the schema has no finite value: a record contains itself in every branch")
        return datum_to_json(next(coverage.data()))
    except TooMuchData as limit:
        raise InvalidDatum(f"no example: {limit}") from None
    except RecursionError:
        raise InvalidDatum("no example: the schema is nested too deeply") from None


class _Example(Coverage):
    """The first covering datum, with branches and values that people expect.

    A field with a default gets another value if its type has one, to distinguish it from a filled field.
    """

    def _branch(self, union: Union, index: int, entered: dict[int, int], depth: int) -> Any:
        finite = [branch for branch in union.branches if self._is_finite(branch)]
        branch = next((item for item in finite if item.kind != "null"), finite[0])
        return (branch_name(branch), self._value(branch, index, entered, depth + 1))

    def _field(self, field: RecordField, index: int, entered: dict[int, int], depth: int) -> Any:
        value = super()._field(field, index, entered, depth)
        if not field.has_default or plain(value) != field.default:
            return value
        if isinstance(value, bool):
            return not value
        if isinstance(field.type, Enum):
            return next((symbol for symbol in field.type.symbols if symbol != field.default), value)
        if isinstance(value, (int, float)):
            return value + 1
        return f"{value} 2" if isinstance(value, str) else value

    @staticmethod
    def _leaf(type_: AvroType, index: int) -> Any:
        plain_values = {"int": 1, "long": 1, "double": 1.5, "bytes": b"b", "string": "text"}
        if type_.logical is None and type_.kind in plain_values:
            return plain_values[type_.kind]
        return Coverage._leaf(type_, index)


MAX_DEPTH: Final = 150
MAX_VALUES: Final = 100_000
_MAX_VARINT_BYTES: Final = 10


def decode_body(schema: AvroSchema, body: bytes) -> Any:
    """Return the datum in the bytes, in the form that `Codec.encode` takes; all bytes must be used.

    Raises InvalidDatum with `path` and `byte` (from 0, in the body).
    """
    reader = _Body(body)
    try:
        datum = reader.value(schema.root, root_path(schema.root), 0)
    except RecursionError:
        raise InvalidDatum(f"the body is nested more than {MAX_DEPTH} levels deep") from None
    if reader.at != len(body):
        raise reader.wrong(
            root_path(schema.root), f"the data ends here, but {len(body) - reader.at} bytes are left over"
        )
    return datum


def resolve_body(reader: AvroSchema, writer: AvroSchema, body: bytes) -> Resolution:
    """Read the writer's bytes with the reader; paths have neither indexes nor map keys.

    Raises InvalidDatum if the bytes aren't valid for the writer.
    """
    datum = decode_body(writer, body)
    try:
        write, read = codec(writer), codec(reader)
    except Exception as error:  # fastavro rejects schemas with errors of many types
        raise InvalidDatum(f"fastavro rejects one of the schemas: {plain_error(error)}") from error
    shown = datum_to_json(datum)
    is_one = skips_resolution(reader, writer)
    try:
        decoded = write.decode(body, None if is_one else read)
    except Exception as error:  # noqa: BLE001 - any failure of the decoder is the answer
        return Resolution(shown, "", error=plain_error(error))
    location = PairLocation("", root_path(reader.root), "", "", None, None)
    decoder = Unresolved() if is_one else Fastavro()
    try:
        reading = Reading(reader.root, writer.root, datum, decoded, location, decoder=decoder, is_general=True)
    except UnexpectedReading:
        outcome = FieldOutcome(location.path, "converted", plain(datum), plain(decoded), "as returned by the decoder")
        return Resolution(shown, "", plain(decoded), (outcome,))
    return Resolution(shown, "", datum_to_json(reading.value), tuple(reading.fields))


def logical_values(type_: AvroType, datum: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield (path, meaning) of each value that its logical type gives another meaning, for people."""
    if isinstance(type_, Union):
        name, value = datum
        yield from logical_values(type_.branches[branch_position(type_, name)], value, path)
    elif isinstance(type_, Record):
        for field in type_.fields:
            yield from logical_values(field.type, datum[field.name], f"{path}.{field.name}")
    elif isinstance(type_, Array):
        for index, item in enumerate(datum):
            yield from logical_values(type_.items, item, f"{path}[{index}]")
    elif isinstance(type_, Map):
        for key, item in datum.items():
            yield from logical_values(type_.values, item, f"{path}{{{key}}}")
    elif type_.logical is not None and (text := shown(type_, datum)) != str(datum) and "the bytes" not in text:
        yield path, text


class _Body:
    """A decoder of one datum; `at` is the offset of the next byte."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._values_left = MAX_VALUES
        self.at = 0

    def wrong(self, path: str, what: str) -> InvalidDatum:
        """Return the error for this place."""
        return InvalidDatum(f"{path}, byte {self.at}: {what}", path=path, byte=self.at)

    def value(self, type_: AvroType, path: str, depth: int) -> Any:
        """Return the next value of a type."""
        self._values_left -= 1
        if self._values_left < 0:
            raise self.wrong(path, f"the body declares more than {MAX_VALUES:,} values")
        if depth > MAX_DEPTH:
            raise self.wrong(path, f"the body is nested more than {MAX_DEPTH} levels deep")
        if isinstance(type_, Record):
            return {field.name: self.value(field.type, f"{path}.{field.name}", depth + 1) for field in type_.fields}
        if isinstance(type_, Union):
            return self._union(type_, path, depth)
        if isinstance(type_, Array):
            return self._array(type_, path, depth)
        if isinstance(type_, Map):
            return self._map(type_, path, depth)
        if isinstance(type_, Enum):
            return type_.symbols[self._index(len(type_.symbols), f"symbol of {type_.full_name}", path)]
        if isinstance(type_, Fixed):
            return self._take(type_.size, path)
        return self._primitive(type_.kind, path)

    def _primitive(self, kind: str, path: str) -> Any:
        if kind == "null":
            return None
        if kind == "string":
            return self._text(path)
        if kind == "int":
            return self._int(path)
        if kind == "long":
            return self._long(path)
        if kind == "boolean":
            return self._boolean(path)
        if kind == "bytes":
            return self._sized(path)
        size, form = (4, "<f") if kind == "float" else (8, "<d")
        return struct.unpack(form, self._take(size, path))[0]

    def _union(self, union: Union, path: str, depth: int) -> tuple[str, Any]:
        branch = union.branches[self._index(len(union.branches), f"branch of {type_label(union)}", path)]
        return branch_name(branch), self.value(branch, path, depth + 1)

    def _array(self, array: Array, path: str, depth: int) -> list[Any]:
        items: list[Any] = []
        while count := self._block(path):
            first = len(items)
            items += [self.value(array.items, f"{path}[{first + at}]", depth + 1) for at in range(count)]
        return items

    def _map(self, map_type: Map, path: str, depth: int) -> dict[str, Any]:
        entries: dict[str, Any] = {}
        while count := self._block(path):
            for _ in range(count):
                key = self._text(f"{path}{{}}")
                entries[key] = self.value(map_type.values, f"{path}{{}}", depth + 1)
        return entries

    def _block(self, path: str) -> int:
        """Return the number of items in the next block; after a negative count, the block's size in bytes follows."""
        count = self._long(path)
        if count < 0:
            count = -count
            self._long(path)
        if count > self._values_left:
            raise self.wrong(path, f"a block declares {count:,} items; at most {MAX_VALUES:,} values are read")
        return count

    def _index(self, count: int, what: str, path: str) -> int:
        index = self._int(path)
        if not 0 <= index < count:
            raise self.wrong(path, f"there is no {what[:200]} with the index {index}")
        return index

    def _text(self, path: str) -> str:
        began, data = self.at, self._sized(path)
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            self.at = began
            raise self.wrong(path, f"the string isn't UTF-8 ({error.reason})") from None

    def _sized(self, path: str) -> bytes:
        size = self._long(path)
        if size < 0:
            raise self.wrong(path, f"a length of {size} is negative")
        return self._take(size, path)

    def _take(self, size: int, path: str) -> bytes:
        if size > len(self._data) - self.at:
            left = len(self._data) - self.at
            raise self.wrong(path, f"{size:,} bytes are declared, but {left:,} are left")
        self.at += size
        return self._data[self.at - size : self.at]

    def _boolean(self, path: str) -> bool:
        byte = self._take(1, path)[0]
        if byte > 1:
            self.at -= 1
            raise self.wrong(path, f"a boolean is 0 or 1, not {byte}")
        return byte == 1

    def _int(self, path: str) -> int:
        value = self._long(path)
        if not -(2**31) <= value < 2**31:
            raise self.wrong(path, "the number has more than the 32 bits of an int")
        return value

    def _long(self, path: str) -> int:
        data, at, value = self._data, self.at, 0
        for shift in range(0, 7 * _MAX_VARINT_BYTES, 7):
            if at >= len(data):
                raise self.wrong(path, "the body ends in the middle of a number" if shift else "the body ends here")
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value >= 2**64:
                    break
                self.at = at
                return (value >> 1) ^ -(value & 1)
        raise self.wrong(path, "the number has more than the 64 bits of a long")
