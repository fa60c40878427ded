"""Finds checkpoints below a folder: those of one query or of many."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from registry.checkpoints.files import CheckpointFiles, ReadCache, ReadLimits
from registry.checkpoints.model import Checkpoint
from registry.checkpoints.object_store import ObjectStore
from registry.checkpoints.reader import read_checkpoint
from registry.checkpoints.schema_files import looks_like_a_checkpoint
from registry.errors import InvalidCheckpoint


@dataclass(frozen=True)
class Bounds:
    """Limits of the search: checkpoints found, folders listed, levels below the start, seconds including reading."""

    checkpoints: int = 500
    folders: int = 5_000
    depth: int = 6
    seconds: float = 60.0


@dataclass(frozen=True)
class Found:
    """A checkpoint below the folder: its content, or why it can't be read. One of the two is None."""

    path: str
    checkpoint: Checkpoint | None
    refused: str | None


@dataclass(frozen=True)
class Discovery:
    """The checkpoints found, by path. `ended_early` is the limit that ended the search, None if it is complete.

    `passed_over` names folders that couldn't be listed, with the reason.
    """

    found: tuple[Found, ...]
    folders: int
    ended_early: str | None
    passed_over: tuple[str, ...]


def find_checkpoints(
    path: str,
    allowed_roots: Iterable[str | os.PathLike[str]],
    *,
    store: ObjectStore | None = None,
    cache: ReadCache | None = None,
    bounds: Bounds | None = None,
) -> Discovery:
    """Return the checkpoints at and below `path`, sorted by path; folders inside a checkpoint aren't searched.

    Raises InvalidCheckpoint if the path itself isn't allowed or doesn't exist, and the errors of read_checkpoint for an
    object store that doesn't answer. An unreadable checkpoint is returned with its reason.
    """
    bounds = bounds or Bounds()
    roots = tuple(allowed_roots)
    walk = _FolderWalk(path, roots, store, bounds)
    checkpoints: list[Found] = []
    for folder in walk.checkpoints():
        if len(checkpoints) >= bounds.checkpoints:
            walk.ended_early = f"more than {bounds.checkpoints} checkpoints"
            break
        checkpoints.append(_read(folder, roots, store, cache, ReadLimits(seconds=max(1.0, walk.seconds_left))))
    checkpoints.sort(key=lambda item: item.path)
    return Discovery(tuple(checkpoints), walk.folders, walk.ended_early, tuple(walk.passed_over))


def _read(
    folder: str,
    roots: tuple[str | os.PathLike[str], ...],
    store: ObjectStore | None,
    cache: ReadCache | None,
    patience: ReadLimits,
) -> Found:
    try:
        return Found(folder, read_checkpoint(folder, roots, store=store, cache=cache, patience=patience), None)
    except InvalidCheckpoint as error:
        return Found(folder, None, error.message)


class _FolderWalk:
    """A breadth-first walk, so that it finds nearby checkpoints before a limit ends it."""

    def __init__(
        self, path: str, roots: tuple[str | os.PathLike[str], ...], store: ObjectStore | None, bounds: Bounds
    ) -> None:
        self._files = CheckpointFiles(path, roots, store=store, patience=ReadLimits(seconds=bounds.seconds + 1))
        if not self._files.is_folder():
            raise InvalidCheckpoint(f"folder {path[:300]} doesn't exist", found=[])
        self._bounds = bounds
        self._end = time.monotonic() + bounds.seconds
        self.folders = 0
        self.ended_early: str | None = None
        self.passed_over: list[str] = []

    @property
    def seconds_left(self) -> float:
        """Return the seconds left; negative after the end."""
        return self._end - time.monotonic()

    def checkpoints(self) -> Iterable[str]:
        """Yield the path of each checkpoint."""
        waiting: deque[tuple[str, ...]] = deque([()])
        visited: set[str] = set()
        while waiting:
            if self._has_ended():
                return
            parts = waiting.popleft()
            try:
                identity = self._files.identity(*parts)
                if identity in visited:  # a link back to a visited folder
                    continue
                visited.add(identity)
                self.folders += 1
                entries = self._files.entries(*parts)
            except InvalidCheckpoint as error:
                self._pass_over(parts, error)
                continue
            if looks_like_a_checkpoint(entries):
                yield "/".join((self._files.path, *parts))
            elif len(parts) < self._bounds.depth:
                waiting.extend((*parts, entry.name) for entry in entries if entry.is_folder)
            elif any(entry.is_folder for entry in entries):
                self.ended_early = f"folders more than {self._bounds.depth} levels deep"

    def _has_ended(self) -> bool:
        if self.folders >= self._bounds.folders:
            self.ended_early = f"more than {self._bounds.folders} folders"
        elif self.seconds_left < 0:
            self.ended_early = f"more than {self._bounds.seconds:g} s"
        else:
            return False
        return True

    def _pass_over(self, parts: tuple[str, ...], error: InvalidCheckpoint) -> None:
        if len(self.passed_over) < 100:
            self.passed_over.append(f"{self._files.shown(*parts)}: {error.message}")
