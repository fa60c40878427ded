"""Reading a checkpoint as a whole."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from registry.checkpoints.families import EVOLVING, KINDS, OPERATORS, STORES, internal_meaning
from registry.checkpoints.files import CheckpointFiles
from registry.checkpoints.layout import (
    StoredSchemas,
    missing_schema_files,
    operator_folders,
    operator_history,
    partition_schema,
    require_checkpoint,
)
from registry.checkpoints.logs import (
    DEFAULT_ENCODING,
    OperatorInfo,
    batch_numbers,
    earlier_variables,
    limits_of,
    read_batches,
    read_operator_info,
    read_query_id,
    settings_runs,
)
from registry.checkpoints.model import Checkpoint, InternalFamily, Operator, SchemaVersion, StateVariable
from registry.checkpoints.schema_files import Family


def read_checkpoint(path: str, allowed_roots: Iterable[str | os.PathLike[str]]) -> Checkpoint:
    """What the checkpoint at `path` says of its query's state; nothing in it is changed, no rows are read.

    `path` is absolute, or a `file:` address, and lies (links followed) in one of `allowed_roots`. Raises
    InvalidCheckpoint when it doesn't, when it is no checkpoint, and when one of its files is damaged or too large.
    """
    files = CheckpointFiles(path, allowed_roots)
    require_checkpoint(files, path)
    batches = read_batches(files)
    runs = settings_runs(batches)
    encoding = runs[-1].encoding if runs else DEFAULT_ENCODING
    problems: list[str] = []
    operators = tuple(_operator(files, folder, encoding, problems) for folder in operator_folders(files))
    commits = batch_numbers(files, "commits")
    return Checkpoint(
        path=str(files.path),
        query_id=read_query_id(files),
        operators=operators,
        settings=runs,
        last_planned_batch=batches[-1].number if batches else None,
        last_committed_batch=commits[-1] if commits else None,
        last_batch_time=batches[-1].time if batches else None,
        limits=limits_of(batches[-1].settings if batches else {}),
        problems=tuple(problems),
    )


def _operator(files: CheckpointFiles, folder: str, encoding: str, problems: list[str]) -> Operator:
    info = read_operator_info(files, folder)
    if info is None:
        problems.append(f"operator {folder} has no metadata: its kind and variables' kinds aren't known")
        info = OperatorInfo(int(folder), "", (), None, {})
    stores = [store.name for store in info.stores] or ["default"]
    history: list[StoredSchemas] = []
    for store in stores:
        written = operator_history(files, folder, store)
        missing = missing_schema_files(info, store, written)
        problems.extend(f"operator {folder}: the schema file {name} is missing" for name in missing)
        history += written
    removed = {family.name for stored in history for family in stored.content.families} - set(info.variables)
    if any(internal_meaning(name) is None for name in removed):
        info = replace(info, variables=earlier_variables(files, folder) | dict(info.variables))
    built_in = {} if history else {store: partition_schema(files, folder, store) for store in stores}
    families = _families(history) if history else _store_families(built_in)
    known = [(name, versions) for name, versions in families.items() if internal_meaning(name) is None]
    internal = tuple(InternalFamily(name, internal_meaning(name) or "") for name in families if internal_meaning(name))
    if not families:
        problems.append(f"operator {folder} has no schema file")
    return Operator(
        number=info.number,
        name=info.name,
        description=OPERATORS.get(info.name, info.name or "an operator of an older Spark"),
        partitions=max((store.partitions for store in info.stores), default=0),
        time_mode=info.time_mode,
        variables=tuple(_variable(name, versions, info, history) for name, versions in known),
        internal=internal,
        schema_files=len(history),
        encoding=encoding if info.name in EVOLVING else DEFAULT_ENCODING,
        why_fixed=_why_fixed(info, encoding),
    )


def _why_fixed(info: OperatorInfo, encoding: str) -> str | None:
    if info.name not in EVOLVING:
        return "only transformWithState lets its state's schemas evolve; this operator needs a new checkpoint"
    if encoding != "avro":
        return f"the state is encoded as {encoding}; only Avro-encoded state can evolve"
    return None


def _families(history: list[StoredSchemas]) -> dict[str, list[tuple[StoredSchemas, Family]]]:
    """Every column family with the files in which its schemas changed."""
    families: dict[str, list[tuple[StoredSchemas, Family]]] = {}
    for stored in history:
        for family in stored.content.families:
            seen = families.setdefault(family.name, [])
            if not seen or seen[-1][1] != family:
                seen.append((stored, family))
    return families


def _store_families(stores: dict[str, StoredSchemas | None]) -> dict[str, list[tuple[StoredSchemas, Family]]]:
    return {
        store: [(stored, stored.content.families[0])]
        for store, stored in stores.items()
        if stored is not None and stored.content.families
    }


def _variable(
    name: str, versions: list[tuple[StoredSchemas, Family]], info: OperatorInfo, history: list[StoredSchemas]
) -> StateVariable:
    label, kind = STORES.get(name, (name, "unknown"))
    spark_kind, ttl = info.variables.get(name, ("", False))
    wrapped = ttl or _is_ttl_wrapped(versions[-1][1].value_schema)
    return StateVariable(
        name=name,
        label=label,
        kind=KINDS.get(spark_kind, kind),
        ttl=wrapped,
        versions=tuple(_version(number, *each) for number, each in enumerate(versions, start=1)),
        removed_at=_removed_at(name, history),
    )


def _removed_at(name: str, history: list[StoredSchemas]) -> int | None:
    """The first batch of those at the end in which the family is absent."""
    removed = None
    for stored in reversed(history):
        if any(family.name == name for family in stored.content.families):
            break
        removed = stored.batch
    return removed


def _version(number: int, stored: StoredSchemas, family: Family) -> SchemaVersion:
    key = family.key_schema
    if family.user_key is not None:
        key = _inner(key, "key") or key  # map state: struct<key, userKey>
    value = family.value_schema
    if _is_ttl_wrapped(value):
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
    )


def _is_ttl_wrapped(value_schema: str) -> bool:
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
