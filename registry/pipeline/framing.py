"""Framing, said in Spark's own functions: no row passes through Python.

A key or value says which schema wrote it in one of three places: the first five bytes (a zero byte and the schema id);
the header `__key_schema_id` or `__value_schema_id` (a byte 1, the GUID's 16 bytes, and for Protobuf the message's
indexes), where the whole of it is the body; or, for values, Spring's content type
`application/[prefix].[subject].v[n]+avro` in the header `contentType`, in quotes where it was written as JSON.
A header wins over the first bytes, as the established deserializers have it.
"""

from __future__ import annotations

import uuid
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql.connect import functions as f

from registry.observations import Framing, Side

SIDES: Final[tuple[Side, Side]] = ("key", "value")
FRAMINGS: Final[tuple[Framing, ...]] = ("id", "guid", "content_type")
# Where `{0}` is the side's column. The first one that holds names what its bytes are.
CLASSES: Final = (
    ("null", "{0} IS NULL"),
    ("guid", "{0}_guid IS NOT NULL"),
    ("content_type", "{0}_content_type IS NOT NULL"),
    ("id", "length({0}) >= 5 AND substring({0}, 1, 1) = X'00'"),
    ("empty", "length({0}) = 0"),
    ("cut_frame", "substring({0}, 1, 1) = X'00'"),
    ("json_object", "substring({0}, 1, 1) = X'7B' AND substring({0}, -1, 1) = X'7D'"),
    ("json_array", "substring({0}, 1, 1) = X'5B' AND substring({0}, -1, 1) = X'5D'"),
    ("xml", "substring({0}, 1, 1) = X'3C'"),
    ("avro_file", "substring({0}, 1, 4) = X'4F626A01'"),
    ("gzip", "substring({0}, 1, 2) = X'1F8B'"),
    ("text", "substring({0}, 1, 1) BETWEEN X'20' AND X'7E'"),
    ("binary", "true"),
)
# Without a lambda: functions with one keep Spark from compiling the query, and then each step copies every message.
_HEADER: Final = "get(headers.value, CAST(array_position(headers.key, '{0}') AS INT) - 1)"
_CONTENT_TYPE: Final = '^"?application/([A-Za-z0-9_.$-]{1,400}[.]v[0-9]{1,9})[+]avro *(?:;[^"]*)?"?$'
_MARKS: Final = {
    "guid": "substring({0}_guid, 2, 16)",
    "content_type": "encode({0}_content_type, 'UTF-8')",
    "id": "substring({0}, 2, 4)",
}


def with_framing(messages: DataFrame, *kept: str) -> DataFrame:
    """The columns `kept` of messages with headers, and of each side its class (a name of CLASSES), its raw mark,
    and what follows a GUID in its header: the indexes of a Protobuf message.
    """
    headers = {
        **{f"{side}_header": _header(f"__{side}_schema_id") for side in SIDES},
        "content_type_header": _header("contentType", "content-type"),
    }
    found = {f"{side}_guid": f.expr(_guid(f"{side}_header")) for side in SIDES}
    found["value_content_type"] = f.expr(
        "nullif(CASE WHEN content_type_header IS NOT NULL THEN "
        f"regexp_extract(CAST(content_type_header AS STRING), '{_CONTENT_TYPE}', 1) END, '')"
    )
    found["key_content_type"] = f.lit(None).cast("string")
    sides = {
        name: column
        for side in SIDES
        for name, column in (
            (f"{side}_class", _side_class(side)),
            (f"{side}_mark", _mark(side)),
            (f"{side}_indexes", f.expr(f"substring({side}_guid, 18)")),
        )
    }
    return messages.withColumns(headers).withColumns(found).withColumns(sides).select(*kept, *sides)


def body(side: Side) -> str:
    """The bytes of a side that its schema describes, as an SQL expression over `with_framing`."""
    return f"CASE WHEN {side}_class = 'id' THEN substring({side}, 6) ELSE {side} END"


def mark_of(framing: str, raw: bytes) -> str:
    """A raw mark as observations have it."""
    if framing == "id":
        return str(int.from_bytes(raw, "big"))
    return str(uuid.UUID(bytes=bytes(raw))) if framing == "guid" else bytes(raw).decode("utf-8", "replace")


def raw_mark(framing: Framing, mark: str) -> bytes:
    """The bytes of a mark as they stand in a message; raises ValueError for what is no mark."""
    if framing == "id":
        number = int(mark)
        if not 0 <= number < 2**32:
            raise ValueError(f"{mark[:40]} is no schema id of four bytes")
        return number.to_bytes(4, "big")
    return uuid.UUID(mark).bytes if framing == "guid" else mark.encode("utf-8")


def is_one_of(side: Side, marks: dict[Framing, list[bytes]]) -> str:
    """An SQL condition: the side's schema is one of these."""
    conditions = [
        f"({side}_class = '{framing}' AND {side}_mark IN ({', '.join(binary(raw) for raw in sorted(raws))}))"
        for framing, raws in marks.items()
        if raws
    ]
    return f"({' OR '.join(conditions)})" if conditions else "false"


def binary(raw: bytes) -> str:
    """Bytes as an SQL literal."""
    return f"X'{raw.hex()}'"


def text(value: str) -> str:
    """A text as an SQL literal, whatever stands in it."""
    return f"CAST({binary(value.encode('utf-8'))} AS STRING)"


def as_framing(name: str) -> Framing | None:
    """The framing that a class stands for; None for the classes of unframed bytes."""
    return name if name in FRAMINGS else None


def _header(*names: str) -> Column:
    """The first header of one of these names; null where there is none."""
    found = ", ".join(_HEADER.format(name) for name in names)
    return f.expr(f"CASE WHEN headers IS NOT NULL THEN coalesce({found}) END")


def _guid(header: str) -> str:
    return f"CASE WHEN length({header}) >= 17 AND substring({header}, 1, 1) = X'01' THEN {header} END"


def _side_class(side: Side) -> Column:
    whens = " ".join(f"WHEN {condition.format(side)} THEN '{name}'" for name, condition in CLASSES)
    return f.expr(f"CASE {whens} END")


def _mark(side: Side) -> Column:
    whens = [
        f"WHEN {{0}} IS NOT NULL AND {{0}}_{name} IS NOT NULL THEN {_MARKS[name]}" for name in ("guid", "content_type")
    ]
    whens.append(f"WHEN {dict(CLASSES)['id']} THEN {_MARKS['id']}")
    return f.expr(f"CASE {' '.join(whens)} END".format(side))
