"""A query's sources before and after a restart: their number, their kinds, and the folders and topics that they read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from registry.checkpoints.files import CheckpointFiles, Missing
from registry.checkpoints.logs import START_LIMIT
from registry.checkpoints.model import Checkpoint, QuerySource
from registry.formats.policies.spark_state import StateChange
from registry.formats.policies.spark_state.rules import StateRule
from registry.formats.policies.spark_state.schema_changes import change

SOURCES_ADDED_OR_REMOVED: Final = StateRule(
    "SOURCES_ADDED_OR_REMOVED",
    "the number of sources changes from {before} to {after}",
    "Spark assigns the checkpoint's offsets to sources by position and compares their number at the start.",
    "keep the sources and their order, or use a new checkpoint",
    "DBX-4",
    "refused",
    "",
    "AssertionError",
)
SOURCE_FOLDER_CHANGED: Final = StateRule(
    "SOURCE_FOLDER_CHANGED",
    "source {detail} reads {after} instead of {before}",
    "The source's log names files of the old folder. Spark lists the files of the last batch again at the start, and "
    "rejects files outside of the source's folder.",
    "keep the folder (its files can be moved into a folder below it), or use a new checkpoint",
    "DBX-4",
    "refused",
    "",
    "IllegalArgumentException",
)
RULES: Final = (SOURCES_ADDED_OR_REMOVED, SOURCE_FOLDER_CHANGED)
_GLOB: Final = frozenset("*?[{")


@dataclass(frozen=True, slots=True)
class PlannedSource:
    """A source of the next version: its kind, as in `QuerySource`, and its folder or its topics if they are known."""

    kind: str
    path: str = ""
    topics: tuple[str, ...] = ()


def with_folders(files: CheckpointFiles, checkpoint: Checkpoint) -> Checkpoint:
    """Return the checkpoint with the folder of a file that each source of files has read."""
    sources = (
        replace(source, folder=_folder(files, source.name)) if source.kind == "files" else source
        for source in checkpoint.sources
    )
    return replace(checkpoint, sources=tuple(sources))


def _folder(files: CheckpointFiles, source: str) -> str:
    """Return the folder of the first file in the source's newest log; empty if the log names none."""
    names = [entry.name for entry in files.entries("sources", source) if entry.name.split(".")[0].isdigit()]
    for name in sorted(names, key=lambda name: -int(name.split(".")[0]))[:1]:
        try:
            lines = files.read("sources", source, name, limit=START_LIMIT).decode("utf-8", "replace").splitlines()
            return str(json.loads(lines[1])["path"]).rpartition("/")[0]
        except (Missing, ValueError, LookupError, TypeError, RecursionError):
            return ""
    return ""


def source_changes(stored: Sequence[QuerySource], planned: Sequence[PlannedSource]) -> Iterable[StateChange]:
    """Yield what stops Spark at the start."""
    if len(stored) != len(planned):
        yield change(SOURCES_ADDED_OR_REMOVED, "", str(len(stored)), str(len(planned)))
        return
    for number, (before, after) in enumerate(zip(stored, planned, strict=True)):
        if before.folder and after.kind == "files" and _is_folder(after.path) and not _reads(after.path, before.folder):
            yield change(SOURCE_FOLDER_CHANGED, "", before.folder, after.path, detail=str(number))


def source_doubts(stored: Sequence[QuerySource], planned: Sequence[PlannedSource]) -> Iterable[str]:
    """Describe the sources for which it isn't known what Spark does."""
    if len(stored) != len(planned):
        return
    for before, after in zip(stored, planned, strict=True):
        if before.kind != after.kind:
            yield f"source {before.name} ({before.description} becomes {after.kind})"
        elif before.kind == "files" and bool(before.folder) is not _is_folder(after.path):
            yield f"source {before.name} (whether it still reads the same folder)"
        elif before.kind == "kafka" and not set(before.topics) <= set(after.topics):
            yield f"source {before.name} (it no longer reads the same topics)"
    if any(not source.name.isdigit() for source in stored):
        yield "sources that have names"


def _is_folder(path: str) -> bool:
    return bool(path) and _GLOB.isdisjoint(path)


def _reads(path: str, folder: str) -> bool:
    """Return whether the folder is the path or below it."""
    path, folder = (_plain(text) for text in (path, folder))
    return f"{folder}/".startswith(f"{path}/")


def _plain(path: str) -> str:
    scheme, sign, rest = path.rstrip("/").partition(":")
    if not sign:
        return path.rstrip("/")
    return "/" + rest.lstrip("/") if scheme == "file" else f"{scheme}:{rest}"
