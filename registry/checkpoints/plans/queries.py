"""Descriptions of streaming queries, as `schemadesk_spark.describe` writes them in a job's build."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final, NoReturn

from registry.checkpoints.model import OPERATORS
from registry.checkpoints.plans.sources import PlannedSource
from registry.errors import InvalidSchema
from registry.formats.policies.spark_state import StructType, parse_struct

#: the key by which a document is recognised as a description, and the known versions of its form
MARK: Final = "schemadesk_spark"
FORMATS: Final = (1,)
MAX_OPERATORS: Final = 100
MAX_FIELDS: Final = 10_000
MAX_WATERMARKS: Final = 1_000
MAX_TEXT: Final = 100_000  # characters of a text, and of all expressions of an operator
MODES: Final = ("Append", "Update", "Complete")
#: format of a source → kind, as a checkpoint names it
_KINDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("json", "csv", "text", "parquet", "orc", "avro", "xml", "binaryFile"), "files"),
    **dict.fromkeys(("rate", "rate-micro-batch", "socket", "memory", "MemoryStream"), "rate"),
}


@dataclass(frozen=True, slots=True)
class Meaning:
    """The expression of a grouping key, or of a part of the state with its number of fields.

    `types` are those of its arguments, where the state's schema doesn't show them.
    """

    expression: str
    fields: int = 1
    types: str = ""


@dataclass(frozen=True, slots=True)
class DescribedOperator:
    """A stateful operator: what its keys and values mean, and the (key, value) schemas of its stores by name.

    `input` are the filters and other changes of the rows below it; `state_format` is None if it has only one.
    """

    number: int
    name: str
    keys: tuple[Meaning, ...]
    values: tuple[Meaning, ...]
    properties: Mapping[str, str]
    input: tuple[str, ...]
    stores: Mapping[str, tuple[StructType, StructType]]
    state_format: int | None = None

    @property
    def description(self) -> str:
        """Return its name for users."""
        return OPERATORS.get(self.name, self.name)


@dataclass(frozen=True, slots=True)
class Description:
    """A streaming query: its stateful operators by number, its sources, output mode, settings and sink.

    `columns` is the DDL of its result; `refused` is why Spark starts no such query, whatever the checkpoint, empty if it
    does, and None if the description doesn't have it. `query_id` is Spark's, which the checkpoint has too; empty if the query wasn't started. `spark` is the
    version that described it.
    """

    operators: tuple[DescribedOperator, ...]
    sources: tuple[PlannedSource, ...]
    watermarks: tuple[tuple[str, str], ...] = ()
    output_mode: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    sink: str = ""
    sink_options: Mapping[str, str] = field(default_factory=dict)
    columns: str = ""
    trigger: str = ""
    refused: str | None = None
    query_id: str = ""
    spark: str = ""


def read_description(document: Any, pointer: str = "") -> Description:
    """Parse a description in JSON values; raises InvalidSchema with the JSON Pointer of what isn't as described."""
    if not isinstance(document, Mapping) or document.get(MARK) not in FORMATS:
        _refuse(f"{pointer}/{MARK}", f"a description of a query has {MARK!r}: {FORMATS[-1]}")
    listed = _list(document, "operators", pointer, MAX_OPERATORS)
    operators = [_operator(each, f"{pointer}/operators/{at}") for at, each in enumerate(listed)]
    if len({operator.number for operator in operators}) < len(operators):
        _refuse(f"{pointer}/operators", "two operators have the same number")
    sources = _list(document, "sources", pointer, MAX_FIELDS)
    return Description(
        operators=tuple(sorted(operators, key=lambda operator: operator.number)),
        sources=tuple(_source(each, f"{pointer}/sources/{at}") for at, each in enumerate(sources)),
        watermarks=_watermarks(document, pointer),
        output_mode=_mode(document, pointer),
        settings=_texts(document, "settings", pointer),
        sink_options=_texts(document, "sink_options", pointer),
        refused=_text(document, "refused", pointer) if "refused" in document else None,
        **{name: _text(document, name, pointer) for name in _TEXTS},
    )


_TEXTS: Final = ("sink", "columns", "trigger", "query_id", "spark")


def _watermarks(document: Any, pointer: str) -> tuple[tuple[str, str], ...]:
    listed = _list(document, "watermarks", pointer, MAX_WATERMARKS)
    texts = [
        tuple(_text(each, name, f"{pointer}/watermarks/{at}") for name in ("column", "delay"))
        for at, each in enumerate(listed)
    ]
    if not all(map(all, texts)):
        _refuse(f"{pointer}/watermarks", "a watermark has a column and a delay")
    return tuple((column, delay) for column, delay in texts)


def _mode(document: Any, pointer: str) -> str | None:
    mode = _text(document, "output_mode", pointer).capitalize()
    if mode and mode not in MODES:
        _refuse(f"{pointer}/output_mode", f"one of {', '.join(MODES)} is expected")
    return mode or None


def _operator(values: Any, pointer: str) -> DescribedOperator:
    number, stores, properties = (_get(values, key) for key in ("number", "stores", "properties"))
    if not (_is_count(number) and isinstance(stores, Mapping) and isinstance(properties, Mapping)):
        _refuse(pointer, "an operator has a number, stores and properties")
    version = values.get("state_format")
    if version is not None and not _is_count(version):
        _refuse(f"{pointer}/state_format", "a whole number is expected")
    operator = DescribedOperator(
        number=number,
        name=_text(values, "name", pointer),
        keys=_meanings(values, "keys", pointer),
        values=_meanings(values, "values", pointer),
        properties=_texts(values, "properties", pointer),
        input=tuple(map(str, _list(values, "input", pointer, MAX_FIELDS))),
        stores={str(name): _schemas(store, f"{pointer}/stores/{name}") for name, store in stores.items()},
        state_format=version,
    )
    meanings = [each.expression for each in (*operator.keys, *operator.values)]
    if sum(map(len, (*meanings, *operator.input, *operator.properties.values()))) > MAX_TEXT:
        _refuse(pointer, f"its expressions have more than {MAX_TEXT:,} characters")
    return operator


def _meanings(values: Any, key: str, pointer: str) -> tuple[Meaning, ...]:
    meanings = []
    for at, each in enumerate(_list(values, key, pointer, MAX_FIELDS)):
        place = f"{pointer}/{key}/{at}"
        fields = 1 if _get(each, "fields") is None else each["fields"]
        expression = _text(each, "expression", place)
        if not expression or not _is_count(fields) or fields > MAX_FIELDS:
            _refuse(place, f"an expression is expected, with at most {MAX_FIELDS:,} fields")
        meanings.append(Meaning(expression, fields, _text(each, "types", place)))
    return tuple(meanings)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _schemas(store: Any, pointer: str) -> tuple[StructType, StructType]:
    try:
        return parse_struct(_get(store, "key") or {}), parse_struct(_get(store, "value") or {})
    except (InvalidSchema, RecursionError) as error:
        _refuse(pointer, f"the schemas of a store must be StructTypes: {error}")


def _source(values: Any, pointer: str) -> PlannedSource:
    provider = PurePosixPath(_text(values, "provider", pointer)).name
    topics, options = _get(values, "topics"), _texts(values, "options", pointer)
    return PlannedSource(
        kind=_KINDS.get(provider, provider),
        path=_text(values, "path", pointer),
        topics=tuple(map(str, topics)) if isinstance(topics, list) else (),
        pattern=options.get("subscribepattern", ""),
        provider=provider,
        options=options,
        topic_ids=_texts(values, "topic_ids", pointer),
    )


def _texts(values: Any, key: str, pointer: str) -> Mapping[str, str]:
    found = _get(values, key)
    if found is None:
        return {}
    if not isinstance(found, Mapping) or not all(isinstance(value, str | int) for value in found.values()):
        _refuse(f"{pointer}/{key}", "an object with texts is expected")
    return {str(name): str(value) for name, value in found.items()}


def _list(values: Any, key: str, pointer: str, most: int) -> Sequence[Any]:
    listed = _get(values, key)
    if not isinstance(listed, list) or len(listed) > most:
        _refuse(f"{pointer}/{key}", f"a list of at most {most:,} is expected")
    return listed


def _get(values: Any, key: str) -> Any:
    return values.get(key) if isinstance(values, Mapping) else None


def _text(values: Any, key: str, pointer: str) -> str:
    text = _get(values, key)
    if text is None:
        return ""
    if not isinstance(text, str) or len(text) > MAX_TEXT:
        _refuse(f"{pointer}/{key}", f"a text of at most {MAX_TEXT:,} characters is expected")
    return text


def _refuse(pointer: str, message: str) -> NoReturn:
    raise InvalidSchema(f"{pointer or 'the description'}: {message}", pointer=pointer)
