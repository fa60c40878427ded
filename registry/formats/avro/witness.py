"""Proof of a break: covering data of the writer, really encoded and really decoded with the reader by fastavro."""

from __future__ import annotations

from registry.formats.avro.codec import codec, plain_error
from registry.formats.avro.covering import Coverage, TooMuchData, json_datum
from registry.formats.avro.model import Schema
from registry.formats.base import Witness


def find_witness(reader: Schema, writer: Schema) -> Witness | None:
    """A datum of the writer that the reader can't decode; None if all covering data decode.

    Where the data can't be made, or the codec doesn't take one of the schemas, a witness that isn't found says why.
    """
    try:
        write, read = codec(writer), codec(reader)
    except Exception as error:  # noqa: BLE001 - fastavro refuses schemas with errors of many types
        return Witness(False, reason=f"fastavro doesn't take one of the schemas: {plain_error(error)}")
    try:
        coverage = Coverage(writer.root)
        if coverage.is_empty:
            return Witness(False, reason="no finite datum of the writer's schema exists")
        for datum in coverage.data():
            encoded = write.encode(datum)
            try:
                write.decode(encoded, read)
            except Exception as error:  # noqa: BLE001 - whatever stops the decoder is the proof
                return Witness(True, json_datum(datum), encoded.hex(), plain_error(error))
    except TooMuchData as limit:
        return Witness(False, reason=str(limit))
    except RecursionError:
        return Witness(False, reason="the covering data are nested too deep")
    return None
