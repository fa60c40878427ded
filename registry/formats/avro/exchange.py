"""A datum on its way from a writer to a reader, by really encoding and decoding; and a datum to begin with."""

from __future__ import annotations

from typing import Any

from registry.errors import InvalidDatum
from registry.formats.avro.codec import Codec, are_one, branch_name, codec, plain_error
from registry.formats.avro.covering import Coverage, TooMuchData
from registry.formats.avro.datum import datum_from_json, datum_to_json, plain, written_value
from registry.formats.avro.findings import root_path
from registry.formats.avro.model import AvroType, Enum, Field, Schema, Union
from registry.formats.avro.reading import Fastavro, Reading, UnexpectedReading, Unresolved
from registry.formats.avro.sides import Place
from registry.formats.base import FieldOutcome, Resolution


def resolve(reader: Schema, writer: Schema, value: Any) -> Resolution:
    """What the reader makes of a JSON value of the writer; raises InvalidDatum if it isn't one."""
    try:
        return _resolve(reader, writer, value)
    except RecursionError:
        raise InvalidDatum("the datum is nested too deep for this process") from None


def _resolve(reader: Schema, writer: Schema, value: Any) -> Resolution:
    datum = written_value(writer.root, datum_from_json(writer.root, value, root_path(writer.root)))
    write, read = _codec(writer, "writer"), _codec(reader, "reader")
    try:
        encoded = write.encode(datum)
    except Exception as error:
        raise InvalidDatum(f"the datum can't be encoded: {plain_error(error)}") from error
    shown = datum_to_json(datum)
    is_one = are_one(reader, writer)
    try:
        decoded = write.decode(encoded, None if is_one else read)
    except Exception as error:  # noqa: BLE001 - whatever stops the decoder is the answer
        return Resolution(shown, encoded.hex(), error=plain_error(error))
    place = Place("", root_path(reader.root), "", "", None, None)
    try:
        reading = Reading(
            reader.root, writer.root, datum, decoded, place, decoder=Unresolved() if is_one else Fastavro()
        )
    except UnexpectedReading:
        outcome = FieldOutcome(place.path, "converted", plain(datum), plain(decoded), "as the decoder gave it")
        return Resolution(shown, encoded.hex(), plain(decoded), (outcome,))
    return Resolution(shown, encoded.hex(), datum_to_json(reading.value), tuple(reading.fields))


def _codec(schema: Schema, side: str) -> Codec:
    try:
        return codec(schema)
    except Exception as error:
        raise InvalidDatum(f"fastavro doesn't take the {side}'s schema: {plain_error(error)}") from error


def example(schema: Schema) -> Any:
    """A datum of the schema in Avro's JSON encoding, with no null where something else can stand; raises InvalidDatum."""
    try:
        coverage = _Example(schema.root)
        if coverage.is_empty:
            raise InvalidDatum("the schema has no finite datum: a record holds itself in every branch")
        return datum_to_json(next(coverage.data()))
    except TooMuchData as limit:
        raise InvalidDatum(f"no example is made: {limit}") from None
    except RecursionError:
        raise InvalidDatum("no example is made: the schema is nested too deep") from None


class _Example(Coverage):
    """The first covering datum, with the branches and values that people expect.

    A field that has a default gets another value where its type has one, so that it can be told from a filled one.
    """

    def _branch(self, union: Union, index: int, entered: dict[int, int], depth: int) -> Any:
        finite = [branch for branch in union.branches if self._is_finite(branch)]
        branch = next((item for item in finite if item.kind != "null"), finite[0])
        return (branch_name(branch), self._value(branch, index, entered, depth + 1))

    def _field(self, field: Field, index: int, entered: dict[int, int], depth: int) -> Any:
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
