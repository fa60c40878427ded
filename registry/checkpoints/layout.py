"""Where things lie in a checkpoint: its operators, their stores, and the schema files of each."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from registry.checkpoints.entries import Entry
from registry.checkpoints.files import CheckpointFiles, Missing
from registry.checkpoints.logs import OperatorInfo
from registry.checkpoints.schema_files import SchemaFile, parse_schema_file
from registry.errors import InvalidCheckpoint

SCHEMA_FILE_LIMIT = 8 * 1024 * 1024  # bytes; a thousand variables of a thousand fields have less
SCHEMA_FILE_NAME = re.compile(r"(?P<batch>\d{1,18})_[0-9A-Za-z-]{1,64}")
SCHEMA = ("_metadata", "schema")
MAX_STORES = 50  # of one partition; a join has four
MAX_PARTITIONS = 20  # that are looked into
LOOKED_FOR = ("metadata", "offsets", "commits", "state")


@dataclass(frozen=True)
class StoredSchemas:
    """A parsed schema file: the batch that wrote it first (None where Spark keeps no history), its time and name."""

    batch: int | None
    written_at: int
    name: str
    content: SchemaFile


def looks_like_a_checkpoint(entries: Iterable[Entry]) -> bool:
    """Whether a folder's listing has what every checkpoint has: the file metadata and the folder offsets."""
    kinds = {entry.name: entry.is_folder for entry in entries}
    return kinds.get("metadata") is False and kinds.get("offsets") is True


def require_checkpoint(files: CheckpointFiles, given: str) -> None:
    """Raise InvalidCheckpoint, saying what was looked for and what was found, unless this is a query's checkpoint."""
    if not files.is_folder():
        raise InvalidCheckpoint(f"there is no folder {given[:300]}", looked_for=list(LOOKED_FOR), found=[])
    entries = files.entries()
    if looks_like_a_checkpoint(entries):
        return
    names = [entry.name for entry in entries]
    found = ", ".join(name[:60] for name in names[:8]) or "nothing"
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    raise InvalidCheckpoint(
        f"{given[:300]} is no checkpoint: looked for the file metadata and the folder offsets, "
        f"found {found}{more}; {_cure(set(names))}",
        looked_for=list(LOOKED_FOR),
        found=names[:50],
    )


def _cure(names: set[str]) -> str:
    if "metadata" in names:
        return "its query has planned no batch yet, or the folder was copied in part"
    if names & {"offsets", "commits"}:
        return (
            "its query is starting just now, or it was copied in part: the file metadata, which has the query's id, is "
            "missing"
        )
    if {"_metadata"} & names or "_stateSchema" in names:
        return "this is one operator's state; name the folder that has state, offsets and metadata in it"
    return "name the folder that the query has as its checkpointLocation"


def operator_folders(files: CheckpointFiles) -> list[str]:
    """The folders of the stateful operators, in the order of their numbers; none for a stateless query."""
    names = [entry.name for entry in files.entries("state") if entry.is_folder and _is_number(entry.name)]
    return sorted(names, key=int)


def operator_history(files: CheckpointFiles, operator: str, store: str) -> list[StoredSchemas]:
    """The schema files (v3) of an operator's store, ascending by batch; empty where Spark keeps no history."""
    folder = ("state", operator, "_stateSchema", store)
    found = []
    entries = files.entries(*folder)
    names = [entry.name for entry in entries if SCHEMA_FILE_NAME.fullmatch(entry.name)]
    files.fetch(*folder, names=names, limit=SCHEMA_FILE_LIMIT)
    for entry in entries:
        match = SCHEMA_FILE_NAME.fullmatch(entry.name)
        if match is None or entry.is_folder:
            continue
        where = files.shown(*folder, entry.name)
        try:
            content = files.read(*folder, entry.name, limit=SCHEMA_FILE_LIMIT)
        except Missing:  # the running query removed it meanwhile
            continue
        found.append(
            StoredSchemas(int(match["batch"]), entry.written_at, entry.name, parse_schema_file(content, where))
        )
    return sorted(found, key=lambda stored: (stored.batch or 0, stored.name))


def partition_stores(files: CheckpointFiles, operator: str) -> list[str]:
    """The stores of a built-in operator without metadata, by the folders of its first partition that have a schema
    file; only the default one where that partition has none.
    """
    for partition in _partitions(files, operator):
        entries = files.entries("state", operator, partition)
        named = [entry.name for entry in entries if entry.is_folder and entry.name not in ("_metadata", "_stateSchema")]
        stores = [name for name in named[:MAX_STORES] if files.is_file("state", operator, partition, name, *SCHEMA)]
        if stores:
            return stores
    return ["default"]


def partition_schema(files: CheckpointFiles, operator: str, store: str) -> StoredSchemas | None:
    """The one schema file (v1, v2) of a built-in operator's store, of its first partition that has one."""
    inner = () if store == "default" else (store,)
    for partition in _partitions(files, operator):
        folder = ("state", operator, partition, *inner, "_metadata")
        written = {entry.name: entry.written_at for entry in files.entries(*folder)}
        if "schema" in written:
            where = files.shown(*folder, "schema")
            content = parse_schema_file(files.read(*folder, "schema", limit=SCHEMA_FILE_LIMIT), where)
            return StoredSchemas(None, written["schema"], where, content)
    return None


def _partitions(files: CheckpointFiles, operator: str) -> list[str]:
    """The first partitions by number: one without a schema file was never written to, and a few such are skipped."""
    entries = files.entries("state", operator)
    numbers = [entry.name for entry in entries if entry.is_folder and _is_number(entry.name)]
    return sorted(numbers, key=int)[:MAX_PARTITIONS]


def missing_schema_files(info: OperatorInfo, store: str, present: list[StoredSchemas]) -> list[str]:
    """Names of schema files that the operator's metadata points to and that aren't there."""
    names = {stored.name for stored in present}
    return [name for known in info.stores if known.name == store for name in known.schema_files if name not in names]


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) <= 9
