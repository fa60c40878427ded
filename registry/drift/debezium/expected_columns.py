"""The row and key that the connector should emit for a table, from the catalog and the configuration.

The types are those of connector 3.7 (its PostgreSQL value converter); unknown types are left open, not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Final

from registry.drift.debezium.columns import NO_DEFAULT, UNKNOWN_DEFAULT, FieldShape, Late, RowShape
from registry.drift.debezium.connector import ConnectorConfig
from registry.drift.debezium.tables import Column, Table, field_name

_DATA: Final = "io.debezium.data."
_GEOMETRY: Final = "io.debezium.data.geometry."
_TIME: Final = "io.debezium.time."
_CONNECT: Final = "org.apache.kafka.connect.data."

#: types whose shape doesn't depend on settings: kind and semantic type
_FIXED: Final[dict[str, tuple[str, str]]] = {
    "bool": ("boolean", ""),
    "int2": ("int16", ""),
    "int4": ("int32", ""),
    "int8": ("int64", ""),
    "oid": ("int64", ""),
    "float4": ("float32", ""),
    "float8": ("float64", ""),
    **dict.fromkeys(("text", "varchar", "bpchar", "char", "name", "citext", "isbn"), ("string", "")),
    **dict.fromkeys(("inet", "cidr", "macaddr", "macaddr8"), ("string", "")),
    **dict.fromkeys(("tsrange", "tstzrange", "daterange", "int4range", "int8range", "numrange"), ("string", "")),
    "json": ("string", f"{_DATA}Json"),
    "jsonb": ("string", f"{_DATA}Json"),
    "xml": ("string", f"{_DATA}Xml"),
    "uuid": ("string", f"{_DATA}Uuid"),
    "ltree": ("string", f"{_DATA}Ltree"),
    "tsvector": ("string", f"{_DATA}Tsvector"),
    "point": ("struct", f"{_GEOMETRY}Point"),
    "circle": ("struct", f"{_GEOMETRY}Circle"),
    "line": ("struct", f"{_GEOMETRY}Line"),
    **dict.fromkeys(("box", "lseg", "path", "polygon", "geometry"), ("struct", f"{_GEOMETRY}Geometry")),
    "geography": ("struct", f"{_GEOMETRY}Geography"),
    "vector": ("array", f"{_DATA}DoubleVector"),
    "halfvec": ("array", f"{_DATA}FloatVector"),
    "sparsevec": ("struct", f"{_DATA}SparseDoubleVector"),
}
#: mode → date, time with up to millisecond precision, time, timestamp with up to millisecond precision, timestamp
_TIMES: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "adaptive": (
        ("int32", f"{_TIME}Date"),
        ("int32", f"{_TIME}Time"),
        ("int64", f"{_TIME}MicroTime"),
        ("int64", f"{_TIME}Timestamp"),
        ("int64", f"{_TIME}MicroTimestamp"),
    ),
    "adaptive_time_microseconds": (
        ("int32", f"{_TIME}Date"),
        ("int64", f"{_TIME}MicroTime"),
        ("int64", f"{_TIME}MicroTime"),
        ("int64", f"{_TIME}Timestamp"),
        ("int64", f"{_TIME}MicroTimestamp"),
    ),
    "connect": (
        ("int32", f"{_CONNECT}Date"),
        ("int32", f"{_CONNECT}Time"),
        ("int32", f"{_CONNECT}Time"),
        ("int64", f"{_CONNECT}Timestamp"),
        ("int64", f"{_CONNECT}Timestamp"),
    ),
    "microseconds": (
        ("int32", f"{_TIME}Date"),
        *((("int64", f"{_TIME}MicroTime"),) * 2),
        *((("int64", f"{_TIME}MicroTimestamp"),) * 2),
    ),
    "nanoseconds": (
        ("int32", f"{_TIME}Date"),
        *((("int64", f"{_TIME}NanoTime"),) * 2),
        *((("int64", f"{_TIME}NanoTimestamp"),) * 2),
    ),
    "isostring": (
        ("string", f"{_TIME}IsoDate"),
        *((("string", f"{_TIME}IsoTime"),) * 2),
        *((("string", f"{_TIME}IsoTimestamp"),) * 2),
    ),
    "structured": (
        ("struct", f"{_TIME}StructuredDate"),
        *((("struct", f"{_TIME}StructuredTime"),) * 2),
        *((("struct", f"{_TIME}StructuredTimestamp"),) * 2),
    ),
}
#: arrays that the connector omits, by element type
_ARRAYS_LEFT_OUT: Final = frozenset({"money", "name", "interval", "varbit", "xml", "point", "refcursor"})
_MILLISECONDS: Final = 3
_BITS_WITHOUT_LENGTH: Final = 2_147_483_647


@dataclass(frozen=True)
class OmittedColumn:
    """A column that the events omit, and why; `lost` if its data is meant to be there."""

    column: str
    why: str
    lost: bool = False


@dataclass(frozen=True)
class ExpectedShape:
    """The expected output for a table: None if the configuration leaves it unknown; a key without fields is null.

    `columns` maps fields to columns. `either` are fields that may be present or not: a generated column is in the
    schema after the connector reads the catalog, and missing after the next change in the log.
    """

    row: RowShape | None
    key: RowShape | None
    columns: dict[str, str]
    left_out: tuple[OmittedColumn, ...]
    either: frozenset[str] = frozenset()


def expected_of(table: Table, config: ConnectorConfig) -> ExpectedShape:
    """Return the expected row and key of a table."""
    key_columns = key_of(table, config)
    shapes: dict[str, FieldShape] = {}
    row: dict[str, FieldShape] = {}
    left_out, either, unknown = [], set(), False
    for column in table.columns:
        if column.generated:
            left_out.append(
                OmittedColumn(
                    column.name, "it is generated, and logical decoding carries no generated values", lost=True
                )
            )
            either.add(field_name(column.name, config.field_names))
            continue
        shape = shape_of(column, config)
        if shape is None:
            why = f"the connector doesn't support type {column.declared} (include.unknown.datatypes is off)"
            left_out.append(OmittedColumn(column.name, why, lost=True))
            continue
        named = replace(shape, name=field_name(column.name, config.field_names))
        shapes[column.name] = named
        why_not = _why_not(table, column, config)
        if why_not is None:
            unknown = True
        elif why_not:
            left_out.append(OmittedColumn(column.name, why_not))
        else:
            row[named.name] = named
    columns = {shape.name: name for name, shape in shapes.items()}
    key = None
    if key_columns is not None:
        key = RowShape({shapes[name].name: shapes[name] for name in key_columns if name in shapes})
    return ExpectedShape(None if unknown else RowShape(row), key, columns, tuple(left_out), frozenset(either))


def key_of(table: Table, config: ConnectorConfig) -> tuple[str, ...] | None:
    """Return the events' key columns: message.key.columns, the primary key, or else the first unique index by name.

    The connector accepts any unique index without an expression, including a partial one or one on nullable columns.
    None if the setting isn't understood.
    """
    names = [column.name for column in table.columns]
    return config.key_columns.of(table.schema, table.name, names, table.primary_key or _unique_key(table))


def _unique_key(table: Table) -> tuple[str, ...]:
    usable = sorted((index.name, index.columns) for index in table.unique if index.columns)
    return usable[0][1] if usable else ()


def _why_not(table: Table, column: Column, config: ConnectorConfig) -> str | None:
    """Return why a column isn't in the value: empty if it is, None if unknown."""
    taken = config.columns.takes(table.schema, table.name, column.name)
    if taken is None:
        return None
    if not taken:
        return "the connector's column filter excludes it"
    published = table.published_columns.get(config.publication) if config.plugin == "pgoutput" else None
    if published is not None and column.name not in published:
        return "the publication's column list excludes it"
    return ""


def shape_of(column: Column, config: ConnectorConfig) -> FieldShape | None:
    """Return the field of a column; None if the connector omits it, of kind `unknown` if the type isn't known."""
    array = column.type.startswith("_") and column.type != "_"
    element = column.type[1:] if array else column.type
    if array and element in _ARRAYS_LEFT_OUT:
        return None
    shape = _element(element, column, config)
    if shape is None:
        return None
    if array:
        shape = FieldShape("", "array", items=replace(shape, name="", optional=True))
    default = _default(column, shape)
    late: Late = "nullability" if column.required_by_domain else "labels" if column.kind == "enum" else ""
    return replace(shape, name=column.name, optional=column.nullable, default=default, late=late)


def _element(kind: str, column: Column, config: ConnectorConfig) -> FieldShape | None:
    if column.kind == "enum":
        return FieldShape("", "string", f"{_DATA}Enum", parameters={"allowed": ",".join(column.labels)})
    if kind in _FIXED:
        fixed_kind, logical = _FIXED[kind]
        return FieldShape("", fixed_kind, logical)  # type: ignore[arg-type]
    if kind in _BY_SETTING:
        return _BY_SETTING[kind](column, config)
    if column.kind in ("composite", "range", "other"):
        return _binary(column, config) if config.unknown_types else None
    return FieldShape("", "unknown", None)


def _temporal(index: int, milliseconds: int | None = None) -> Callable[[Column, ConnectorConfig], FieldShape]:
    def shape(column: Column, config: ConnectorConfig) -> FieldShape:
        fine = column.scale is None or column.scale > _MILLISECONDS
        kind, logical = _TIMES[config.times][index if fine or milliseconds is None else milliseconds]
        return FieldShape("", kind, logical)  # type: ignore[arg-type]

    return shape


def _zoned(plain: str, structured: str) -> Callable[[Column, ConnectorConfig], FieldShape]:
    def shape(_column: Column, config: ConnectorConfig) -> FieldShape:
        if config.times == "structured":
            return FieldShape("", "struct", f"{_TIME}{structured}")
        return FieldShape("", "string", f"{_TIME}{plain}")

    return shape


def _numeric(column: Column, config: ConnectorConfig) -> FieldShape:
    if config.decimals != "precise":
        return FieldShape("", "float64" if config.decimals == "double" else "string")
    if column.precision is None:
        return FieldShape("", "struct", f"{_DATA}VariableScaleDecimal")
    parameters = {"scale": str(column.scale or 0), "connect.decimal.precision": str(column.precision)}
    return FieldShape("", "bytes", f"{_CONNECT}Decimal", parameters=parameters)


def _money(_column: Column, config: ConnectorConfig) -> FieldShape:
    if config.decimals != "precise":
        return FieldShape("", "float64" if config.decimals == "double" else "string")
    return FieldShape("", "bytes", f"{_CONNECT}Decimal", parameters={"scale": str(config.money_digits)})


def _binary(_column: Column, config: ConnectorConfig) -> FieldShape:
    return FieldShape("", "bytes" if config.binaries == "bytes" else "string")


def _bits(column: Column, _config: ConnectorConfig) -> FieldShape:
    length = column.length or (_BITS_WITHOUT_LENGTH if column.type.endswith("varbit") else 1)
    if length == 1:
        return FieldShape("", "boolean")
    return FieldShape("", "bytes", f"{_DATA}Bits", parameters={"length": str(length)})


def _interval(_column: Column, config: ConnectorConfig) -> FieldShape:
    if config.times == "structured":
        return FieldShape("", "struct", f"{_TIME}StructuredDuration")
    if config.intervals == "string":
        return FieldShape("", "string", f"{_TIME}Interval")
    return FieldShape("", "int64", f"{_TIME}MicroDuration")


def _hstore(_column: Column, config: ConnectorConfig) -> FieldShape:
    return FieldShape("", "string", f"{_DATA}Json") if config.hstore == "json" else FieldShape("", "map")


_BY_SETTING: Final[dict[str, Callable[[Column, ConnectorConfig], FieldShape]]] = {
    "date": _temporal(0),
    "time": _temporal(2, 1),
    "timestamp": _temporal(4, 3),
    "timetz": _zoned("ZonedTime", "StructuredZonedTime"),
    "timestamptz": _zoned("ZonedTimestamp", "StructuredZonedTimestamp"),
    "interval": _interval,
    "numeric": _numeric,
    "money": _money,
    "bytea": _binary,
    "bit": _bits,
    "varbit": _bits,
    "hstore": _hstore,
}

# ---- defaults -----------------------------------------------------------------------------------------------------

#: as the connector recognises functions and the first quoted text
_FUNCTION: Final = re.compile(r"\(?[A-Za-z0-9_.]+\(.*")
_QUOTED: Final = re.compile(r"'((?:[^']|'')*)'")
_NUMBER: Final = re.compile(r"[+-]?\d{1,18}(\.\d{1,18})?")
_NUMBERS: Final = frozenset({"int2", "int4", "int8", "float4", "float8", "numeric"})
#: type → what stands for the result of a function
_OF_FUNCTION: Final[Mapping[str, object]] = {
    **dict.fromkeys(_NUMBERS, "0"),
    **dict.fromkeys(("text", "varchar", "bpchar"), ""),
    **dict.fromkeys(("json", "jsonb"), "{}"),
    "uuid": "00000000-0000-0000-0000-000000000000",
    "bool": "false",
    **dict.fromkeys(("date", "timestamp", "timestamptz"), "1970-01-01"),
}
_NOW: Final = frozenset({"CURRENT_DATE", "CURRENT_TIMESTAMP", "LOCALTIMESTAMP"})
_EPOCH: Final = date(1970, 1, 1)


def _default(column: Column, shape: FieldShape) -> object:
    """Return the default in the schema: a literal's value, or what the connector writes for a function.

    UNKNOWN_DEFAULT for types whose defaults aren't known here.
    """
    if column.default is None or column.default.startswith("NULL::"):
        return NO_DEFAULT  # an identity column has none either
    if column.type not in _OF_FUNCTION or column.kind != "base":
        return UNKNOWN_DEFAULT
    text = column.default
    if _FUNCTION.match(text) or text in _NOW:
        return _default_value(str(_OF_FUNCTION[column.type]), column, shape)
    quoted = _QUOTED.search(text)
    return _default_value(quoted[1].replace("''", "'") if quoted else text, column, shape)


def _default_value(text: str, column: Column, shape: FieldShape) -> object:
    if column.type in _NUMBERS:
        return _number_default(text, column, shape)
    if column.type == "bool":
        return text.lower() in ("true", "t")
    if column.type in ("date", "timestamp", "timestamptz"):
        return _time_default(text, column, shape)
    return text


def _number_default(text: str, column: Column, shape: FieldShape) -> object:
    if not _NUMBER.fullmatch(text):
        return NO_DEFAULT  # an expression that the connector can't read
    if column.type != "numeric" or shape.kind == "float64":
        return int(text) if text.lstrip("+-").isdigit() and shape.kind.startswith("int") else float(text)
    if "scale" not in shape.parameters:
        return UNKNOWN_DEFAULT
    unscaled = int(Decimal(text).scaleb(int(shape.parameters["scale"])))
    return unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True).decode("latin-1")


def _time_default(text: str, column: Column, shape: FieldShape) -> object:
    if text == "1970-01-01" and column.type == "timestamptz" and shape.kind == "string":
        return "1970-01-01T00:00:00.000000Z"
    try:
        days = (date.fromisoformat(text) - _EPOCH).days
    except ValueError:
        return UNKNOWN_DEFAULT
    if shape.kind == "int32" or (shape.kind == "int64" and not days):
        return float(days)
    return UNKNOWN_DEFAULT
