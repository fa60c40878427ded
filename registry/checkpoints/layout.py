"""Where things lie in a checkpoint: its operators, their stores, and the schema files of each."""

from __future__ import annotations

import re
from dataclasses import dataclass

from registry.checkpoints.files import CheckpointFiles
from registry.checkpoints.logs import OperatorInfo
from registry.checkpoints.schema_files import SchemaFile, parse_schema_file
from registry.errors import InvalidCheckpoint

SCHEMA_FILE_LIMIT = 8 * 1024 * 1024  # bytes; a thousand variables of a thousand fields have less
SCHEMA_FILE_NAME = re.compile(r"(?P<batch>\d{1,18})_[0-9A-Za-z-]{1,64}")
LOOKED_FOR = ("metadata", "offsets", "commits", "state")


@dataclass(frozen=True)
class StoredSchemas:
    """A parsed schema file: the batch that wrote it first (None where Spark keeps no history), its time and name."""

    batch: int | None
    written_at: int
    name: str
    content: SchemaFile


def require_checkpoint(files: CheckpointFiles, given: str) -> None:
    """Raise InvalidCheckpoint, saying what was looked for and what was found, unless this is a query's checkpoint."""
    if not files.is_folder():
        raise InvalidCheckpoint(f"there is no folder {given[:300]}", looked_for=list(LOOKED_FOR), found=[])
    names = [entry.name for entry in files.entries()]
    if files.is_file("metadata") and files.is_folder("offsets"):
        return
    found = ", ".join(name[:60] for name in names[:8]) or "nothing"
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    raise InvalidCheckpoint(
        f"{given[:300]} is no checkpoint: looked for the file metadata and the folder offsets, "
        f"found {found}{more}; name the folder that the query has as its checkpointLocation",
        looked_for=list(LOOKED_FOR),
        found=names[:50],
    )


def operator_folders(files: CheckpointFiles) -> list[str]:
    """The folders of the stateful operators, in the order of their numbers; none for a stateless query."""
    names = [entry.name for entry in files.entries("state") if entry.is_folder and entry.name.isdigit()]
    return sorted(names, key=int)


def operator_history(files: CheckpointFiles, operator: str, store: str) -> list[StoredSchemas]:
    """The schema files (v3) of an operator's store, ascending by batch; empty where Spark keeps no history."""
    folder = ("state", operator, "_stateSchema", store)
    found = []
    for entry in files.entries(*folder):
        match = SCHEMA_FILE_NAME.fullmatch(entry.name)
        if match is None or entry.is_folder:
            continue
        where = files.shown(*folder, entry.name)
        content = parse_schema_file(files.read(*folder, entry.name, limit=SCHEMA_FILE_LIMIT), where)
        found.append(StoredSchemas(int(match["batch"]), entry.written_at, entry.name, content))
    return sorted(found, key=lambda stored: (stored.batch or 0, stored.name))


def partition_schema(files: CheckpointFiles, operator: str, store: str) -> StoredSchemas | None:
    """The one schema file (v1, v2) of a built-in operator's store, of its first partition that has one."""
    partitions = [entry.name for entry in files.entries("state", operator) if entry.is_folder and entry.name.isdigit()]
    inner = () if store == "default" else (store,)
    for partition in sorted(partitions, key=int):
        folder = ("state", operator, partition, *inner, "_metadata")
        written = {entry.name: entry.written_at for entry in files.entries(*folder)}
        if "schema" in written:
            where = files.shown(*folder, "schema")
            content = parse_schema_file(files.read(*folder, "schema", limit=SCHEMA_FILE_LIMIT), where)
            return StoredSchemas(None, written["schema"], where, content)
    return None


def missing_schema_files(info: OperatorInfo, store: str, present: list[StoredSchemas]) -> list[str]:
    """Names of schema files that the operator's metadata points to and that aren't there."""
    names = {stored.name for stored in present}
    return [name for known in info.stores if known.name == store for name in known.schema_files if name not in names]
