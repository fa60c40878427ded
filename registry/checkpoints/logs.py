"""A checkpoint's logs: the query's id, the settings recorded with each batch, and what operators say of themselves."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from registry.checkpoints.files import CheckpointFiles
from registry.checkpoints.model import Limits, SettingsRun
from registry.errors import InvalidCheckpoint

LOG_LIMIT = 16 * 1024 * 1024  # bytes; offsets name every partition of every topic
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ENCODING = "spark.sql.streaming.stateStore.encodingFormat"
VALUE_SCHEMAS = "spark.sql.streaming.stateStore.valueStateSchemaEvolutionThreshold"
SCHEMA_FILES = "spark.sql.streaming.stateStore.maxNumStateSchemaFiles"
DEFAULT_LIMITS = Limits(value_schemas=16, schema_files=128)  # Spark 4.0 to 4.2
DEFAULT_ENCODING = "unsaferow"  # what queries from before Spark 4.0, which don't record it, wrote


@dataclass(frozen=True)
class Batch:
    """A planned batch: its number, its time in milliseconds since 1970, and the settings it runs with."""

    number: int
    time: int | None
    settings: Mapping[str, str]


@dataclass(frozen=True)
class StoreInfo:
    """A state store of an operator, and its schema files' names (none where Spark keeps no history)."""

    name: str
    partitions: int
    schema_files: tuple[str, ...]


@dataclass(frozen=True)
class OperatorInfo:
    """An operator's metadata; `variables` maps a state variable to its kind (as Spark writes it) and its TTL."""

    number: int
    name: str
    stores: tuple[StoreInfo, ...]
    time_mode: str | None
    variables: Mapping[str, tuple[str, bool]]


def read_query_id(files: CheckpointFiles) -> str:
    """The query's id from `metadata`; raises InvalidCheckpoint when the file is missing or something else."""
    parsed = _json(files.read("metadata", limit=64 * 1024), "metadata")
    query_id = parsed.get("id")
    if not isinstance(query_id, str) or not query_id:
        raise InvalidCheckpoint('metadata has no text "id", so this is no query\'s checkpoint', file="metadata")
    return query_id


def batch_numbers(files: CheckpointFiles, log: str) -> list[int]:
    """The batches that a log (`offsets` or `commits`) still holds, ascending."""
    return sorted(int(entry.name) for entry in files.entries(log) if not entry.is_folder and _is_number(entry.name))


def read_batches(files: CheckpointFiles) -> list[Batch]:
    """The batches of `offsets`, ascending; raises InvalidCheckpoint for a damaged file."""
    batches = []
    for number in batch_numbers(files, "offsets"):
        where = f"offsets/{number}"
        lines = _lines(files.read("offsets", str(number), limit=LOG_LIMIT), where)
        if lines[0] not in ("v1", "v2"):
            raise InvalidCheckpoint(f"{where} begins with {lines[0][:20]!r}, not with v1 or v2", file=where)
        described = _json(lines[1].encode() if len(lines) > 1 else b"", where)
        settings = described.get("conf")
        time = described.get("batchTimestampMs")
        plain = {str(k): str(v) for k, v in settings.items()} if isinstance(settings, dict) else {}
        batches.append(Batch(number, time if isinstance(time, int) else None, plain))
    return batches


def settings_runs(batches: Iterable[Batch]) -> tuple[SettingsRun, ...]:
    """Batches in a row that ran with the same settings, as one entry each."""
    runs: list[SettingsRun] = []
    for batch in batches:
        unchanged = bool(runs) and runs[-1].settings == batch.settings
        first = runs.pop().first_batch if unchanged else batch.number
        provider = batch.settings.get(PROVIDER, "").rpartition(".")[2].removesuffix("StateStoreProvider")
        encoding = batch.settings.get(ENCODING, DEFAULT_ENCODING)
        runs.append(SettingsRun(first, batch.number, provider, encoding, batch.settings))
    return tuple(runs)


def limits_of(settings: Mapping[str, str]) -> Limits:
    """Spark's limits as a batch's settings have them. Spark 4.2 doesn't record them, so usually its defaults."""
    return Limits(
        value_schemas=_positive(settings.get(VALUE_SCHEMAS), DEFAULT_LIMITS.value_schemas),
        schema_files=_positive(settings.get(SCHEMA_FILES), DEFAULT_LIMITS.schema_files),
    )


def read_operator_info(files: CheckpointFiles, operator: str) -> OperatorInfo | None:
    """The newest metadata of an operator's folder; None when it has none (queries from before Spark 3.5)."""
    base = ("state", operator, "_metadata")
    numbers = _metadata_numbers(files, operator)
    if numbers:
        return _read_info(files, (*base, "v2", str(numbers[-1])))
    if files.is_file(*base, "metadata"):
        return _read_info(files, (*base, "metadata"))
    return None


def earlier_variables(files: CheckpointFiles, operator: str) -> dict[str, tuple[str, bool]]:
    """Kind and TTL of the variables in all metadata that an operator still has, for those that were removed since."""
    known: dict[str, tuple[str, bool]] = {}
    for number in _metadata_numbers(files, operator):
        known.update(_read_info(files, ("state", operator, "_metadata", "v2", str(number))).variables)
    return known


def _metadata_numbers(files: CheckpointFiles, operator: str) -> list[int]:
    entries = files.entries("state", operator, "_metadata", "v2")
    return sorted(int(entry.name) for entry in entries if _is_number(entry.name))


def _read_info(files: CheckpointFiles, parts: tuple[str, ...]) -> OperatorInfo:
    where = files.shown(*parts)
    lines = _lines(files.read(*parts, limit=LOG_LIMIT), where)
    if lines[0] not in ("v1", "v2"):
        raise InvalidCheckpoint(f"{where} begins with {lines[0][:20]!r}, not with v1 or v2", file=where)
    parsed = _json("\n".join(lines[1:]).encode(), where)
    try:
        return _operator_info(parsed, where)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InvalidCheckpoint(f"{where} lacks what operator metadata has: {error}", file=where) from error


def _operator_info(parsed: dict[str, Any], where: str) -> OperatorInfo:
    stores = tuple(
        StoreInfo(
            name=str(store["storeName"]),
            partitions=int(store["numPartitions"]),
            # Written with the path that the checkpoint had then; it may have been moved since.
            schema_files=tuple(str(path).rpartition("/")[2] for path in store.get("stateSchemaFilePaths") or ()),
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
    time_mode = properties.get("timeMode")
    return OperatorInfo(
        number=int(info["operatorId"]),
        name=str(info["operatorName"]),
        stores=stores,
        time_mode=str(time_mode) if time_mode is not None else None,
        variables=variables,
    )


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) <= 18


def _positive(text: str | None, default: int) -> int:
    return int(text) if text is not None and _is_number(text) and int(text) > 0 else default


def _lines(content: bytes, where: str) -> list[str]:
    try:
        return content.decode("utf-8").split("\n")
    except UnicodeError as error:
        raise InvalidCheckpoint(f"{where} is no text in UTF-8", file=where) from error


def _json(content: bytes, where: str) -> dict[str, Any]:
    try:
        parsed = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InvalidCheckpoint(f"{where} holds no JSON where it should: {error}", file=where) from error
    if not isinstance(parsed, dict):
        raise InvalidCheckpoint(f"{where} holds no JSON object", file=where)
    return parsed
