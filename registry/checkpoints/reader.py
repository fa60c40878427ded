"""Reads a checkpoint as a whole, and finds out which Spark versions write its form.

A checkpoint records no version. What each version began to write is known: the tables below.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from registry.checkpoints.files import CheckpointFiles, Patience, ReadCache
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
    """What tells the version: the offset log's format, its newest settings, the operators' metadata formats, 0 for an
    operator without any, and their names.
    """

    offsets_format: int
    settings: Mapping[str, str]
    metadata_formats: tuple[int, ...]
    operators: tuple[str, ...] = ()


# what only that version and later ones write; the first that fits counts
FORMS: Final[tuple[tuple[str, Callable[[Marks], bool]], ...]] = (
    ("Databricks Runtime", lambda marks: any("databricks" in f"{k}{v}" for k, v in marks.settings.items())),
    ("Spark 4.2 or later", lambda marks: marks.offsets_format == 2),
    ("Spark 4.2 or later", lambda marks: f"{SETTING}queryEvolution.enableSourceEvolution" in marks.settings),
    ("Spark 4.2 or later", lambda marks: f"{SETTING}stateStore.rowChecksum.enabled" in marks.settings),
    # 4.1 records what 4.0 does: only what is new in its operators tells them apart.
    ("Spark 4.1 or later", lambda marks: "transformWithStateInPySparkExec" in marks.operators),
    ("Spark 4.0 or later", lambda marks: f"{SETTING}stateStore.encodingFormat" in marks.settings),
    ("Spark 4.0 or later", lambda marks: any(marks.metadata_formats)),
    ("Spark 3.5 or earlier", lambda marks: bool(marks.metadata_formats)),
)


def written_by(marks: Marks) -> str:
    """The newest version whose form is recognised; "any Spark" for a stateless query that leaves no mark."""
    return next((version for version, fits in FORMS if fits(marks)), "any Spark")


Columns = Mapping[str, Any]  # name → type as StructType JSON has it, in their order


def _columns(schema: str) -> Columns:
    fields: list[dict[str, Any]] = json.loads(schema)["fields"]
    return {str(field["name"]): field["type"] for field in fields}


def _is_session_window(key: Columns, value: Columns) -> bool:
    return list(key)[-1:] == ["sessionStartTime"] or "session_window" in (*value, *list(key)[-1:])


def _is_group_state(_: Columns, value: Columns) -> bool:
    """Format 2 has the user's state as one column; format 1 has its columns, and with a time-out that column too."""
    return list(value) in (["groupState", "timeoutTimestamp"], ["groupState"]) or list(value)[-1:] == [
        "timeoutTimestamp"
    ]


# operators by what their default store holds, for queries from before Spark 4.0; the first that fits counts
SHAPES: Final[tuple[tuple[str, Callable[[Columns, Columns], bool]], ...]] = (
    ("sessionWindowStateStoreSaveExec", _is_session_window),
    ("groupsWithState", _is_group_state),
    ("dedupe", lambda _, value: list(value) == ["__dummy__"]),
    ("dedupeWithinWatermark", lambda _, value: list(value) == ["expiresAtMicros"]),
    ("globalLimit", lambda key, value: (key, value) == ({"key": "void"}, {"value": "long"})),
)
GROUPS_FORMAT: Final = f"{SETTING}flatMapGroupsWithState.stateFormatVersion"


def operator_by_form(stores: Iterable[str], schemas: Mapping[str, tuple[str, str]], settings: Mapping[str, str]) -> str:
    """The operator's name, told by its stores' names and its schemas (key, value), and by the newest settings.

    An aggregation's state has any columns. So have groups with state in their format 1; where the settings rule that
    out, whatever has no form of its own is an aggregation, else it is left unnamed: the empty text.
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
    patience: Patience | None = None,
) -> Checkpoint:
    """What the checkpoint at `path` says of its query's state; nothing in it is changed, no rows are read.

    `path` is absolute, a `file:` address, or one of the object store that `store` has open, and lies (links followed)
    in one of `allowed_roots`, which hold folders and addresses. With a `cache`, a checkpoint in which nothing was
    written since it was read last isn't read again. `patience` is how much of it is read, and for how long. Raises InvalidCheckpoint when the path isn't allowed, when it is
    no checkpoint, and when one of its files is damaged, too large or of an unknown format; for an object store also
    RemoteUnavailable and AddressRefused.
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
    patience: Patience | None,
) -> Checkpoint | None:
    """What was read last, if every folder that was listed for it has the same entries, of the same size and stamp."""
    files = CheckpointFiles(path, roots, store=store, patience=patience)
    cached = cache.checkpoint(files.cache_name, path)
    if cached is None:
        return None
    listings, checkpoint = cached
    return checkpoint if all(files.entries(*parts) == before for parts, before in listings.items()) else None


def _read(files: CheckpointFiles, path: str) -> Checkpoint:
    require_checkpoint(files, path)
    # Commits first: what a committed batch wrote is there whenever it is looked for later.
    commits = files.entries("commits")
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
        problems = [problem for problem in problems if not problem.startswith("operator ")]  # they are being written
    query_id = read_query_id(files)
    stops = (
        log_stops(files, numbers, query_id, log.newest) if read or not numbers else ()
    )  # stateless queries may leave batches out
    problems += [f"{stop.problem}; {stop.remedy}" for stop in stops]
    format_version = _format_version(files, numbers[-1], problems) if numbers and not stops else None
    last_commit = next((entry for entry in commits if numbers and entry.name == str(numbers[-1])), None)
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
        last_commit_time=last_commit.written_at if last_commit else None,
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
    """An operator, and the format of its metadata (0 without any)."""
    info = read_operator_info(files, folder)
    if info is None:
        # Queries from before Spark 4.0 have none: what their stores hold tells most of it.
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
        return "only transformWithState state schemas can evolve; this operator needs a new checkpoint"
    if encoding != "avro":
        return f"the state is encoded as {encoding}; only Avro-encoded state can evolve"
    return None


def _families(history: list[StoredSchemas]) -> dict[str, list[tuple[StoredSchemas, Family]]]:
    """Every column family with the files in which its schemas changed."""
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
    """Families that the newest file lacks, each with the batch of the first file after the last that has it."""
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
        key_encoding=family.key_encoder,
        file=stored.name,
        encoding=run.encoding if run else None,
        provider=run.provider if run else None,
    )


def is_ttl_wrapped(value_schema: str) -> bool:
    """Whether a value schema is Spark's `struct<value, ttlExpirationMs>`."""
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
