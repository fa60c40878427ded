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
#: format of a source → kind, as a checkpoint names it
_KINDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("json", "csv", "text", "parquet", "orc", "avro", "xml", "binaryFile"), "files"),
    **dict.fromkeys(("rate", "rate-micro-batch", "socket", "memory", "MemoryStream"), "rate"),
}


@dataclass(frozen=True, slots=True)
class Meaning:
    """The expression of a grouping key, or of a part of the state with its number of fields."""

    expression: str
    fields: int = 1


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

    `columns` is the DDL of its result; `refused` is why Spark starts no such query, whatever the checkpoint, and empty
    if it does. `query_id` is Spark's, which the checkpoint has too; empty if the query wasn't started.
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
    refused: str = ""
    query_id: str = ""


def read_description(document: Any, pointer: str = "") -> Description:
    """Parse a description in JSON values; raises InvalidSchema with the JSON Pointer of what isn't as described."""
    if not isinstance(document, Mapping) or document.get(MARK) not in FORMATS:
        _refuse(f"{pointer}/{MARK}", f"a description of a query has {MARK!r}: {FORMATS[-1]}")
    listed = _list(document, "operators", pointer, MAX_OPERATORS)
    watermarks = _list(document, "watermarks", pointer, MAX_FIELDS)
    settings = document.get("settings") or {}
    mode = document.get("output_mode")
    if not isinstance(settings, Mapping) or not isinstance(mode, str | None):
        _refuse(pointer, "settings must be an object, and output_mode a text")
    operators = (_operator(each, f"{pointer}/operators/{at}") for at, each in enumerate(listed))
    return Description(
        operators=tuple(sorted(operators, key=lambda operator: operator.number)),
        sources=tuple(map(_source, _list(document, "sources", pointer, MAX_FIELDS))),
        watermarks=tuple((_text(each, "column"), _text(each, "delay")) for each in watermarks),
        output_mode=mode,
        settings={str(name): str(value) for name, value in settings.items()},
        sink=_text(document, "sink"),
        sink_options=_texts(document, "sink_options"),
        columns=_text(document, "columns"),
        trigger=_text(document, "trigger"),
        refused=_text(document, "refused"),
        query_id=_text(document, "query_id"),
    )


def _operator(values: Any, pointer: str) -> DescribedOperator:
    number, stores, properties = (_get(values, key) for key in ("number", "stores", "properties"))
    if not (isinstance(number, int) and isinstance(stores, Mapping) and isinstance(properties, Mapping)):
        _refuse(pointer, "an operator has a number, stores and properties")
    version = values.get("state_format")
    return DescribedOperator(
        number=number,
        name=_text(values, "name"),
        keys=_meanings(values, "keys", pointer),
        values=_meanings(values, "values", pointer),
        properties={str(name): str(value) for name, value in properties.items()},
        input=tuple(map(str, _list(values, "input", pointer, MAX_FIELDS))),
        stores={str(name): _schemas(store, f"{pointer}/stores/{name}") for name, store in stores.items()},
        state_format=version if isinstance(version, int) else None,
    )


def _meanings(values: Any, key: str, pointer: str) -> tuple[Meaning, ...]:
    listed = _list(values, key, pointer, MAX_FIELDS)
    fields = [_get(each, "fields") for each in listed]
    return tuple(
        Meaning(_text(each, "expression"), number if isinstance(number, int) and 0 <= number <= MAX_FIELDS else 1)
        for each, number in zip(listed, fields, strict=True)
    )


def _schemas(store: Any, pointer: str) -> tuple[StructType, StructType]:
    try:
        return parse_struct(_get(store, "key") or {}), parse_struct(_get(store, "value") or {})
    except (InvalidSchema, RecursionError) as error:
        _refuse(pointer, f"the schemas of a store must be StructTypes: {error}")


def _source(values: Any) -> PlannedSource:
    provider = PurePosixPath(_text(values, "provider")).name
    topics, options = _get(values, "topics"), _texts(values, "options")
    return PlannedSource(
        kind=_KINDS.get(provider, provider),
        path=_text(values, "path"),
        topics=tuple(map(str, topics)) if isinstance(topics, list) else (),
        pattern=options.get("subscribepattern", ""),
        provider=provider,
        options=options,
        topic_ids=_texts(values, "topic_ids"),
    )


def _texts(values: Any, key: str) -> Mapping[str, str]:
    found = _get(values, key)
    return {str(name): str(value) for name, value in found.items()} if isinstance(found, Mapping) else {}


def _list(values: Any, key: str, pointer: str, most: int) -> Sequence[Any]:
    listed = _get(values, key)
    if not isinstance(listed, list) or len(listed) > most:
        _refuse(f"{pointer}/{key}", f"a list of at most {most:,} is expected")
    return listed


def _get(values: Any, key: str) -> Any:
    return values.get(key) if isinstance(values, Mapping) else None


def _text(values: Any, key: str) -> str:
    text = _get(values, key)
    return text if isinstance(text, str) else ""


def _refuse(pointer: str, message: str) -> NoReturn:
    raise InvalidSchema(f"{pointer or 'the description'}: {message}", pointer=pointer)
