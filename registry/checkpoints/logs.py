"""A checkpoint's logs: the query's id, the settings of each batch, and the metadata of operators and sources."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NoReturn

from registry.checkpoints.files import CheckpointFiles, Missing
from registry.checkpoints.model import Limits, QuerySource, SettingsRun
from registry.errors import InvalidCheckpoint

MAX_BATCHES = 1_000  # of offsets; Spark keeps 100 by default
MAX_SOURCES: Final = 1_000
MAX_LINES: Final = 10_000  # of a batch in `offsets`: one of each source
LOG_LIMIT = 16 * 1024 * 1024  # bytes; offsets name every partition of every topic
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ENCODING = "spark.sql.streaming.stateStore.encodingFormat"
PARTITIONS = "spark.sql.shuffle.partitions"
CHECKPOINT_FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
VALUE_SCHEMAS = "spark.sql.streaming.stateStore.valueStateSchemaEvolutionThreshold"
SCHEMA_FILES = "spark.sql.streaming.stateStore.maxNumStateSchemaFiles"
DEFAULT_LIMITS = Limits(value_schemas=16, schema_files=128)  # Spark 4.0 to 4.2
NO_JSON: Final = object()  # what a text without JSON has as its values
DEFAULT_ENCODING = "unsaferow"  # written by queries from before Spark 4.0, which don't record it


@dataclass(frozen=True)
class Batch:
    """A planned batch: its number, its time in milliseconds since 1970, and its settings."""

    number: int
    time: int | None
    settings: Mapping[str, str]


@dataclass(frozen=True)
class OffsetLog:
    """The newest batches of `offsets`, ascending, and the last offset of each source by its number or name.

    `format` is the newest file's, 0 without files; `left_out` counts older batches that weren't read; `newest` has the
    bytes of the two newest files by batch.
    """

    batches: tuple[Batch, ...]
    offsets: Mapping[str, str]
    format: int
    left_out: int
    newest: Mapping[int, bytes]


@dataclass(frozen=True)
class StoreInfo:
    """A state store of an operator, and the names of its schema files (none if Spark keeps no history).

    `checkpoint` is the path of the checkpoint when the newest of them was written, empty without files.
    """

    name: str
    partitions: int
    schema_files: tuple[str, ...]
    checkpoint: str = ""


@dataclass(frozen=True)
class OperatorInfo:
    """An operator's metadata; `variables` maps a state variable to its kind (in Spark's spelling) and TTL."""

    number: int
    name: str
    stores: tuple[StoreInfo, ...]
    time_mode: str | None
    variables: Mapping[str, tuple[str, bool]]
    format: int = 0
    output_mode: str | None = None


def read_query_id(files: CheckpointFiles) -> str:
    """Return the query's id from `metadata`; raises InvalidCheckpoint if the file is missing or invalid."""
    parsed = _json(files.read("metadata", limit=64 * 1024), "metadata")
    query_id = parsed.get("id")
    if not isinstance(query_id, str) or not query_id:
        raise InvalidCheckpoint('metadata has no text "id", so this is not a query\'s checkpoint', file="metadata")
    return query_id


def batch_numbers(files: CheckpointFiles, log: str) -> list[int]:
    """Return the batches that a log (`offsets` or `commits`) still has, ascending."""
    names = (entry.name for entry in files.entries(log) if not entry.is_folder and _is_number(entry.name))
    return sorted(int(name) for name in names if name == "0" or not name.startswith("0"))


def read_offsets(files: CheckpointFiles) -> OffsetLog:
    """Read the newest MAX_BATCHES of `offsets`; raises InvalidCheckpoint for a damaged file or an unknown format.

    A running query removes its oldest files meanwhile; removed files are skipped.
    """
    numbers = batch_numbers(files, "offsets")
    batches: list[Batch] = []
    offsets: dict[str, str] = {}
    version = 0
    newest: dict[int, bytes] = {}
    files.fetch("offsets", names=[str(number) for number in numbers[-MAX_BATCHES:]], limit=LOG_LIMIT)
    for number in numbers[-MAX_BATCHES:]:
        where = f"offsets/{number}"
        try:
            content = files.read("offsets", str(number), limit=LOG_LIMIT)
        except Missing:
            continue
        if number in numbers[-2:]:
            newest[number] = content
        lines = _lines(content, where)
        version = _known_format(lines[0], where)
        if len(lines) > MAX_LINES:
            raise InvalidCheckpoint(f"{where} has more than {MAX_LINES:,} lines, one of each source", file=where)
        described = _json(lines[1].encode() if len(lines) > 1 else b"", where)
        settings = described.get("conf")
        time = described.get("batchTimestampMs")
        plain = {str(k): str(v) for k, v in settings.items()} if isinstance(settings, dict) else {}
        batches.append(Batch(number, time if isinstance(time, int) else None, plain))
        for name, text in _source_offsets(lines[2:], version):
            if text != "-" or name not in offsets:
                offsets[name] = text
    return OffsetLog(tuple(batches), offsets, version, max(0, len(numbers) - MAX_BATCHES), newest)


def last_offsets(files: CheckpointFiles) -> list[dict[str, str]]:
    """Return the offsets of each source in the two newest batches, ascending."""
    newest = []
    for number in batch_numbers(files, "offsets")[-2:]:
        where = f"offsets/{number}"
        lines = _lines(files.read("offsets", str(number), limit=LOG_LIMIT), where)
        newest.append(dict(_source_offsets(lines[2:], _known_format(lines[0], where))))
    return newest


def _source_offsets(lines: list[str], version: int) -> Iterable[tuple[str, str]]:
    """Yield each source with its offset: by position in format 1, by the name before the first colon in format 2."""
    for position, line in enumerate(lines):
        if version == 1:
            yield str(position), line.strip()
        elif ":" in line:
            name, _, text = line.partition(":")
            yield name, text.strip()


def _known_format(line: str, where: str) -> int:
    """Return a log's format from its first line; raises InvalidCheckpoint for an empty file or an unknown format."""
    if line in ("v1", "v2"):
        return int(line[1])
    if not line:
        raise InvalidCheckpoint(
            f"{where} is empty: it was only partly written, or is being written now; read the checkpoint again; if "
            "the file stays empty, the query won't start from it either",
            file=where,
        )
    later = "; a later Spark may have written it, in a format that is unknown here" if _is_version(line) else ""
    raise InvalidCheckpoint(f"{where} starts with {line[:20]!r} instead of v1 or v2{later}", file=where)


def _is_version(line: str) -> bool:
    return line.startswith("v") and _is_number(line[1:])


def settings_runs(batches: Iterable[Batch]) -> tuple[SettingsRun, ...]:
    """Group consecutive batches with the same settings."""
    runs: list[SettingsRun] = []
    for batch in batches:
        unchanged = bool(runs) and runs[-1].settings == batch.settings
        first = runs.pop().first_batch if unchanged else batch.number
        provider = batch.settings.get(PROVIDER, "").rpartition(".")[2].removesuffix("StateStoreProvider")
        encoding = batch.settings.get(ENCODING, DEFAULT_ENCODING)
        runs.append(SettingsRun(first, batch.number, provider, encoding, batch.settings))
    return tuple(runs)


def limits_of(settings: Mapping[str, str]) -> Limits:
    """Return Spark's limits from a batch's settings, else its defaults. Spark 4.2 doesn't record them."""
    return Limits(
        value_schemas=_positive(settings.get(VALUE_SCHEMAS), DEFAULT_LIMITS.value_schemas),
        schema_files=_positive(settings.get(SCHEMA_FILES), DEFAULT_LIMITS.schema_files),
    )


def read_operator_info(files: CheckpointFiles, operator: str, last_batch: int | None = None) -> OperatorInfo | None:
    """Return the newest metadata of an operator's folder; None if it has none (queries from before Spark 4.0).

    With `last_batch`, return the newest up to that batch, which Spark compares with at a restart.
    """
    base = ("state", operator, "_metadata")
    present = {entry.name: entry.is_folder for entry in files.entries(*base)}
    unknown = sorted(name for name, is_folder in present.items() if is_folder and _is_version(name) and name != "v2")
    if unknown:
        where = files.shown(*base, unknown[-1])
        raise InvalidCheckpoint(
            f"{where} is operator metadata in an unknown format (v1 and v2 are known): a later Spark wrote it",
            file=where,
        )
    numbers = _metadata_numbers(files, operator) if "v2" in present else []
    for number in reversed([batch for batch in numbers if last_batch is None or batch <= last_batch] or numbers[:1]):
        try:
            return _read_info(files, (*base, "v2", str(number)))
        except Missing:  # removed by the running query; an older one describes the same operator
            continue
    if present.get("metadata") is False:
        return _read_info(files, (*base, "metadata"))
    return None


def read_format_version(files: CheckpointFiles, batch: int) -> int:
    """Return the state checkpoint format of a committed batch: 2 if each store's checkpoint has an id, else 1."""
    try:
        content = files.read("commits", str(batch), limit=LOG_LIMIT)
    except Missing:  # removed by the running query
        return 1
    lines = _lines(content, f"commits/{batch}")
    described = _json(lines[1].encode() if len(lines) > 1 else b"{}", f"commits/{batch}")
    return 2 if described.get("stateUniqueIds") else 1


def earlier_variables(files: CheckpointFiles, operator: str) -> dict[str, tuple[str, bool]]:
    """Return kind and TTL of the variables in all metadata of an operator, to find those of removed variables."""
    variables: dict[str, tuple[str, bool]] = {}
    for number in _metadata_numbers(files, operator):
        try:
            variables.update(_read_info(files, ("state", operator, "_metadata", "v2", str(number))).variables)
        except Missing:  # removed by the running query
            continue
    return variables


def _metadata_numbers(files: CheckpointFiles, operator: str) -> list[int]:
    entries = files.entries("state", operator, "_metadata", "v2")
    return sorted(int(entry.name) for entry in entries if _is_number(entry.name))


def _read_info(files: CheckpointFiles, parts: tuple[str, ...]) -> OperatorInfo:
    where = files.shown(*parts)
    lines = _lines(files.read(*parts, limit=LOG_LIMIT), where)
    version = _known_format(lines[0], where)
    parsed = _json("\n".join(lines[1:]).encode(), where)
    try:
        return replace(_operator_info(parsed, where), format=version)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InvalidCheckpoint(f"{where} is incomplete operator metadata: {error}", file=where) from error


def _checkpoint_of(paths: Iterable[Any]) -> str:
    """Return the path of the checkpoint when the newest of its schema files was written; empty without files."""
    *_, newest = ("", *(str(path) for path in paths))
    return newest.rpartition("/state/")[0]


def _operator_info(parsed: dict[str, Any], where: str) -> OperatorInfo:
    stores = tuple(
        StoreInfo(
            name=str(store["storeName"]),
            partitions=int(store["numPartitions"]),
            # Spark writes the path of that time; the checkpoint may have been moved since.
            schema_files=tuple(str(path).rpartition("/")[2] for path in store.get("stateSchemaFilePaths") or ()),
            checkpoint=_checkpoint_of(store.get("stateSchemaFilePaths") or ()),
        )
        for store in parsed["stateStoreInfo"]
    )
    described = parsed.get("operatorPropertiesJson") or "{}"
    properties = _json(str(described).encode(), f"{where} (operatorPropertiesJson)")
    variables = {
        str(variable["stateName"]): (str(variable["stateVariableType"]), bool(variable.get("ttlEnabled")))
        for variable in properties.get("stateVariables") or ()
    }
    info = parsed["operatorInfo"]
    time_mode, output_mode = properties.get("timeMode"), properties.get("outputMode")
    return OperatorInfo(
        number=int(info["operatorId"]),
        name=str(info["operatorName"]),
        stores=stores,
        time_mode=str(time_mode) if time_mode is not None else None,
        variables=variables,
        output_mode=str(output_mode) if output_mode is not None else None,
    )


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) <= 18


def _positive(text: str | None, default: int) -> int:
    return int(text) if text is not None and _is_number(text) and int(text) > 0 else default


def _lines(content: bytes, where: str) -> list[str]:
    try:
        return content.decode("utf-8").split("\n")
    except UnicodeError as error:
        raise InvalidCheckpoint(f"{where} is not UTF-8 text", file=where) from error


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def parse_json(text: str | bytes) -> Any:
    """Return the values of JSON text as Spark reads it, so without Python's NaN; NO_JSON for any other text."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return NO_JSON


def _json(content: bytes, where: str) -> dict[str, Any]:
    parsed = parse_json(content)
    if parsed is NO_JSON:
        raise InvalidCheckpoint(f"{where} has invalid JSON", file=where)
    if not isinstance(parsed, dict):
        raise InvalidCheckpoint(f"{where} has no JSON object", file=where)
    return parsed


START_LIMIT: Final = 16 * 1024 * 1024  # bytes; a Kafka source's first offsets name every partition
MAX_TOPICS: Final = 10_000
NO_OFFSET: Final = "-"  # Spark's offset of a source without data


def _is_kafka(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and bool(value)
        and all(isinstance(parts, dict) and _are_offsets(parts) for parts in value.values())
    )


def _are_offsets(partitions: Mapping[str, Any]) -> bool:
    return all(part.isdigit() and isinstance(offset, int) for part, offset in partitions.items())


def _has(*names: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(name in value for name in names)


INTEGER: Final = "Spark's own test source, or a socket"  # its offset is a bare number
# kind, description for people, and the form of its offset; the first match counts
FORMS: Final[tuple[tuple[str, str, Callable[[Any], bool]], ...]] = (
    ("kafka", "Kafka topics", _is_kafka),
    ("files", "a folder of files", _has("logOffset")),
    ("delta", "a Delta table", _has("sourceVersion", "reservoirVersion")),
    ("rate", "Spark's own test source", _has("offset", "timestamp")),
    ("rate", INTEGER, lambda value: isinstance(value, int)),
)


def query_sources(files: CheckpointFiles, offsets: Mapping[str, str]) -> tuple[QuerySource, ...]:
    """Return the query's sources from the last offset of each; `offsets` maps a source's number or name to it.

    A checkpoint's metadata doesn't name the sink. For a source without data, its initial offsets are read.
    """
    sources = []
    for name, text in list(offsets.items())[:MAX_SOURCES]:
        offset = text if text != NO_OFFSET else _beginning(files, name)
        sources.append(_source(name, offset))
    return tuple(sources)


def _source(name: str, text: str | None) -> QuerySource:
    if text is None:
        return QuerySource(name, "unknown", "a source with nothing to read yet", ())
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None  # a connector may use any format for its offsets
    for kind, description, fits in FORMS:
        if fits(value):
            topics = tuple(sorted(value))[:MAX_TOPICS] if kind == "kafka" else ()
            return QuerySource(name, kind, description, topics)
    return QuerySource(name, "unknown", "a source whose offsets don't name what it reads", ())


def _beginning(files: CheckpointFiles, name: str) -> str | None:
    """Return the initial offsets of a source; Kafka's are in a file of their own after a null byte and `v1`."""
    if not any(entry.name == "0" for entry in files.entries("sources", name)):
        return None
    try:
        text = files.read("sources", name, "0", limit=START_LIMIT).decode("utf-8", "replace")
    except Missing:
        return None
    version, _, rest = text.lstrip("\0").partition("\n")
    return rest.strip() if version == "v1" else None
