"""Reads a whole checkpoint, and detects which Spark version wrote it.

A checkpoint doesn't record the version. The tables below have what each version was the first to write.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from registry.checkpoints.files import CheckpointFiles, ReadCache, ReadLimits
from registry.checkpoints.log_checks import log_stops
from registry.checkpoints.logs import (
    DEFAULT_ENCODING,
    OperatorInfo,
    batch_numbers,
    earlier_variables,
    limits_of,
    query_sources,
    read_format_version,
    read_offsets,
    read_operator_info,
    read_query_id,
    settings_runs,
)
from registry.checkpoints.model import (
    EVOLVING,
    KINDS,
    OPERATORS,
    STORES,
    UNUSED_DEFAULT,
    Checkpoint,
    InternalFamily,
    Operator,
    SchemaVersion,
    SettingsRun,
    StateVariable,
    internal_meaning,
)
from registry.checkpoints.object_store import ObjectStore
from registry.checkpoints.schema_files import (
    Family,
    StoredSchemas,
    missing_schema_files,
    operator_folders,
    operator_history,
    partition_schema,
    partition_stores,
    require_checkpoint,
    without_schema_file,
)
from registry.errors import InvalidCheckpoint

SETTING: Final = "spark.sql.streaming."


@dataclass(frozen=True)
class Marks:
    """What reveals the version: the offset log's format, its newest settings, and the operators.

    A metadata format is 0 for an operator without metadata.
    """

    offsets_format: int
    settings: Mapping[str, str]
    metadata_formats: tuple[int, ...]
    operators: tuple[str, ...] = ()


# written only by that version and later ones; the first match counts
FORMS: Final[tuple[tuple[str, Callable[[Marks], bool]], ...]] = (
    ("Databricks Runtime", lambda marks: any("databricks" in f"{k}{v}" for k, v in marks.settings.items())),
    ("Spark 4.2 or later", lambda marks: marks.offsets_format == 2),
    ("Spark 4.2 or later", lambda marks: f"{SETTING}queryEvolution.enableSourceEvolution" in marks.settings),
    ("Spark 4.2 or later", lambda marks: f"{SETTING}stateStore.rowChecksum.enabled" in marks.settings),
    # 4.1 records the same as 4.0: only new operators distinguish them.
    ("Spark 4.1 or later", lambda marks: "transformWithStateInPySparkExec" in marks.operators),
    ("Spark 4.0 or later", lambda marks: f"{SETTING}stateStore.encodingFormat" in marks.settings),
    ("Spark 4.0 or later", lambda marks: any(marks.metadata_formats)),
    ("Spark 3.5 or earlier", lambda marks: bool(marks.metadata_formats)),
)


def written_by(marks: Marks) -> str:
    """Return the newest version that matches; "any Spark" for a stateless query without marks."""
    return next((version for version, fits in FORMS if fits(marks)), "any Spark")


Columns = Mapping[str, Any]  # name → type in StructType JSON, in order


def _columns(schema: str) -> Columns:
    fields: list[dict[str, Any]] = json.loads(schema)["fields"]
    return {str(field["name"]): field["type"] for field in fields}


def _is_session_window(key: Columns, value: Columns) -> bool:
    return list(key)[-1:] == ["sessionStartTime"] or "session_window" in (*value, *list(key)[-1:])


def _is_group_state(_: Columns, value: Columns) -> bool:
    """Return whether it is group state: in format 2 one column, in format 1 the user's columns and maybe a timeout."""
    return list(value) in (["groupState", "timeoutTimestamp"], ["groupState"]) or list(value)[-1:] == [
        "timeoutTimestamp"
    ]


# operators by the content of their default store, for queries from before Spark 4.0; the first match counts
SHAPES: Final[tuple[tuple[str, Callable[[Columns, Columns], bool]], ...]] = (
    ("sessionWindowStateStoreSaveExec", _is_session_window),
    ("groupsWithState", _is_group_state),
    ("dedupe", lambda _, value: list(value) == ["__dummy__"]),
    ("dedupeWithinWatermark", lambda _, value: list(value) == ["expiresAtMicros"]),
    ("globalLimit", lambda key, value: (key, value) == ({"key": "void"}, {"value": "long"})),
)
GROUPS_FORMAT: Final = f"{SETTING}flatMapGroupsWithState.stateFormatVersion"


def operator_by_form(stores: Iterable[str], schemas: Mapping[str, tuple[str, str]], settings: Mapping[str, str]) -> str:
    """Return the operator's name from its stores, its (key, value) schemas and the newest settings.

    An aggregation's state may have any columns. So may group state in format 1: if the settings rule that out, any
    other form is an aggregation; otherwise the name is empty.
    """
    if any(store.startswith(("left-", "right-")) for store in stores):
        return "symmetricHashJoin"
    default = schemas.get("default")
    if default is None:
        return ""
    key, value = _columns(default[0]), _columns(default[1])
    otherwise = "stateStoreSave" if settings.get(GROUPS_FORMAT) == "2" else ""
    return next((name for name, fits in SHAPES if fits(key, value)), otherwise)


def read_checkpoint(
    path: str,
    allowed_roots: Iterable[str | os.PathLike[str]],
    *,
    store: ObjectStore | None = None,
    cache: ReadCache | None = None,
    patience: ReadLimits | None = None,
) -> Checkpoint:
    """Read the checkpoint at `path`; changes nothing and reads no rows.

    `path` is absolute, a `file:` address, or an address in the open `store`, and is inside one of `allowed_roots`
    (folders and addresses) with its links resolved. With a `cache`, an unchanged checkpoint isn't read again.
    `patience` limits the bytes and the time. Raises InvalidCheckpoint if the path isn't allowed or isn't a checkpoint,
    and if one of its files is damaged, too large or of an unknown format; for an object store also RemoteUnavailable
    and AddressRefused.
    """
    roots = tuple(allowed_roots)
    if cache is not None and (unchanged := _unchanged(path, roots, store, cache, patience)) is not None:
        return unchanged
    files = CheckpointFiles(path, roots, store=store, cache=cache, patience=patience)
    checkpoint = _read(files, path)
    if cache is not None:
        cache.keep_checkpoint(files.cache_name, path, files.listings, checkpoint)
    return checkpoint


def _unchanged(
    path: str,
    roots: tuple[str | os.PathLike[str], ...],
    store: ObjectStore | None,
    cache: ReadCache,
    patience: ReadLimits | None,
) -> Checkpoint | None:
    """Return the last read checkpoint if every folder listed for it still has the same entries, sizes and stamps."""
    files = CheckpointFiles(path, roots, store=store, patience=patience)
    cached = cache.checkpoint(files.cache_name, path)
    if cached is None:
        return None
    listings, checkpoint = cached
    return checkpoint if all(files.entries(*parts) == before for parts, before in listings.items()) else None


def _read(files: CheckpointFiles, path: str) -> Checkpoint:
    require_checkpoint(files, path)
    # Commits first: the files of a committed batch exist whenever they are read later.
    numbers = batch_numbers(files, "commits")
    log = read_offsets(files)
    batches = log.batches
    runs = settings_runs(batches)
    encoding = runs[-1].encoding if runs else DEFAULT_ENCODING
    problems: list[str] = []
    if log.left_out:
        problems.append(f"settings of the oldest {log.left_out} batches weren't read: offsets holds too many files")
    read = [_operator(files, folder, encoding, runs, problems) for folder in operator_folders(files)]
    if not numbers:
        problems = [problem for problem in problems if not problem.startswith("operator ")]  # still being written
    query_id = read_query_id(files)
    stops = (
        log_stops(files, numbers, query_id, log.newest) if read or not numbers else ()
    )  # stateless queries may skip batches
    problems += [f"{stop.problem}; {stop.remedy}" for stop in stops]
    format_version = _format_version(files, numbers[-1], problems) if numbers and not stops else None
    settings = batches[-1].settings if batches else {}
    return Checkpoint(
        path=files.path,
        query_id=query_id,
        operators=tuple(operator for operator, _ in read),
        settings=runs,
        last_planned_batch=batches[-1].number if batches else None,
        last_committed_batch=numbers[-1] if numbers else None,
        last_batch_time=batches[-1].time if batches else None,
        limits=limits_of(settings),
        problems=tuple(problems),
        sources=query_sources(files, log.offsets),
        format_version=format_version,
        stops=stops,
        written_by=written_by(
            Marks(
                log.format,
                settings,
                tuple(version for _, version in read),
                tuple(operator.name for operator, _ in read),
            )
        ),
    )


def _format_version(files: CheckpointFiles, batch: int, problems: list[str]) -> int | None:
    try:
        return read_format_version(files, batch)
    except InvalidCheckpoint as error:
        problems.append(error.message)
        return None


def _operator(
    files: CheckpointFiles, folder: str, encoding: str, runs: tuple[SettingsRun, ...], problems: list[str]
) -> tuple[Operator, int]:
    """Return an operator, and the format of its metadata (0 without metadata)."""
    info = read_operator_info(files, folder)
    if info is None:
        # Queries from before Spark 4.0 have none; the content of their stores gives most of it.
        info = OperatorInfo(int(folder), "", (), None, {})
        stores = partition_stores(files, folder)
    else:
        stores = [store.name for store in info.stores] or ["default"]
    history: list[StoredSchemas] = []
    missing: list[str] = []
    for store in stores:
        written = operator_history(files, folder, store)
        missing += missing_schema_files(info, store, written)
        history += written
    problems.extend(f"operator {folder}: the schema file {name} is missing" for name in missing)
    removed = {family.name for stored in history for family in stored.content.families} - set(info.variables)
    if info.format and any(internal_meaning(name) is None for name in removed):
        info = replace(info, variables=earlier_variables(files, folder) | dict(info.variables))
    built_in = {} if history else {store: partition_schema(files, folder, store) for store in stores}
    families = _families(history) if history else _store_families(built_in)
    if not info.name:
        info = replace(info, name=_name_by_form(families, runs[-1].settings if runs else {}))
        problems.append(f"operator {folder} has no metadata: its kind is derived from the form of its state")
    if not families:
        problems.append(without_schema_file(files, folder))
    made = _made(info, families, history, encoding, runs)
    return replace(made, missing_files=tuple(missing)), info.format


def _name_by_form(families: Mapping[str, list[tuple[StoredSchemas, Family]]], settings: Mapping[str, str]) -> str:
    schemas = {name: (versions[-1][1].key_schema, versions[-1][1].value_schema) for name, versions in families.items()}
    return operator_by_form(families, schemas, settings)


def _made(
    info: OperatorInfo,
    families: Mapping[str, list[tuple[StoredSchemas, Family]]],
    history: list[StoredSchemas],
    encoding: str,
    runs: tuple[SettingsRun, ...],
) -> Operator:
    evolving = info.name in EVOLVING
    if evolving and UNUSED_DEFAULT not in info.variables:
        families = {name: versions for name, versions in families.items() if name != UNUSED_DEFAULT}
    own_families = [(name, versions) for name, versions in families.items() if internal_meaning(name) is None]
    removed = _removed(history)
    return Operator(
        number=info.number,
        name=info.name,
        description=OPERATORS.get(info.name, info.name or "an operator of an older Spark"),
        partitions=max((store.partitions for store in info.stores), default=0),
        time_mode=info.time_mode,
        variables=tuple(
            _variable(name, versions, info, removed.get(name), runs if evolving else ())
            for name, versions in own_families
        ),
        internal=tuple(
            InternalFamily(name, internal_meaning(name) or "") for name in families if internal_meaning(name)
        ),
        schema_files=len(history),
        encoding=encoding if evolving else DEFAULT_ENCODING,
        why_fixed=_why_fixed(info, encoding),
        output_mode=info.output_mode,
    )


def _why_fixed(info: OperatorInfo, encoding: str) -> str | None:
    if info.name not in EVOLVING:
        return (
            "only transformWithState state schemas can evolve; another schema of this operator needs a new checkpoint"
        )
    if encoding != "avro":
        return f"the state is encoded as {encoding}; only Avro-encoded state can evolve"
    return None


def _families(history: list[StoredSchemas]) -> dict[str, list[tuple[StoredSchemas, Family]]]:
    """Return every column family with the files in which its schemas changed."""
    families: dict[str, list[tuple[StoredSchemas, Family]]] = {}
    for stored in history:
        for family in stored.content.families:
            versions = families.setdefault(family.name, [])
            if not versions or versions[-1][1] != family:
                versions.append((stored, family))
    return families


def _store_families(stores: dict[str, StoredSchemas | None]) -> dict[str, list[tuple[StoredSchemas, Family]]]:
    return {
        store: [(stored, stored.content.families[0])]
        for store, stored in stores.items()
        if stored is not None and stored.content.families
    }


def _variable(
    name: str,
    versions: list[tuple[StoredSchemas, Family]],
    info: OperatorInfo,
    removed_at: int | None,
    runs: tuple[SettingsRun, ...],
) -> StateVariable:
    label, kind = STORES.get(name, (name, "unknown"))
    spark_kind, ttl = info.variables.get(name, ("", False))
    wrapped = ttl or is_ttl_wrapped(versions[-1][1].value_schema)
    return StateVariable(
        name=name,
        label=label,
        kind=KINDS.get(spark_kind, kind),
        ttl=wrapped,
        versions=tuple(_version(number, *version, runs) for number, version in enumerate(versions, start=1)),
        removed_at=removed_at,
    )


def _removed(history: list[StoredSchemas]) -> dict[str, int | None]:
    """Return families that the newest file lacks, each with the batch of the first file without it."""
    last = {family.name: number for number, stored in enumerate(history) for family in stored.content.families}
    return {name: history[number + 1].batch for name, number in last.items() if number + 1 < len(history)}


def _version(number: int, stored: StoredSchemas, family: Family, runs: tuple[SettingsRun, ...]) -> SchemaVersion:
    at = stored.batch
    run = next(
        (candidate for candidate in runs if at is not None and candidate.first_batch <= at <= candidate.last_batch),
        None,
    )
    key = family.key_schema
    if family.user_key is not None:
        key = _inner(key, "key") or key  # map state: struct<key, userKey>
    value = family.value_schema
    if is_ttl_wrapped(value):
        value = _inner(value, "value") or value
    return SchemaVersion(
        version=number,
        schema_id=family.value_id,
        batch=stored.batch,
        written_at=stored.written_at,
        key_schema=key,
        value_schema=value,
        map_key_schema=family.user_key,
        file=stored.name,
        encoding=run.encoding if run else None,
        provider=run.provider if run else None,
    )


def is_ttl_wrapped(value_schema: str) -> bool:
    """Return whether a value schema is Spark's `struct<value, ttlExpirationMs>`."""
    fields = _fields(value_schema)
    return [field.get("name") for field in fields] == ["value", "ttlExpirationMs"]


def _inner(schema: str, name: str) -> str | None:
    for field in _fields(schema):
        inner = field.get("type")
        if field.get("name") == name and isinstance(inner, dict) and inner.get("type") == "struct":
            return json.dumps(inner, separators=(",", ":"), ensure_ascii=False)
    return None


def _fields(schema: str) -> list[dict[str, Any]]:
    fields: list[dict[str, Any]] = json.loads(schema)["fields"]
    return fields
