"""What a kept copy has, read from its row. Nothing here asks the database."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

from registry.subjects.export_file import read_snapshot, version_of
from registry.subjects.models import KeptCopy, Registry
from registry.subjects.names import SubjectName, parse_subject
from registry.subjects.selectors.effective import COLUMNS
from registry.subjects.snapshot import NoteRecord, Scope, Snapshot


@dataclass(frozen=True)
class Contents:
    """The contents as those of a registry, and who owned the subject when it was deleted."""

    snapshot: Snapshot
    owners: tuple[str, ...] = ()


@dataclass(frozen=True)
class OpenCopy:
    """A copy that somebody may bring in, with its registry; its contents are read once."""

    place: Registry
    row: KeptCopy

    @cached_property
    def contents(self) -> Contents:
        """What is in it."""
        return contents_of_copy(self.row)


def contents_of_copy(row: KeptCopy) -> Contents:
    """What is in a copy; of a file as it was checked when it came."""
    if row.kind == KeptCopy.SENT:
        return Contents(read_snapshot(io.BytesIO(row.content.encode()), row.name))
    value = json.loads(row.content)
    name = parse_subject(row.name)
    note, config, mode = value["note"], value["config"], value["mode"]
    configs: dict[Scope, Mapping[str, Any]] = {name: _settings(config)} if config else {}
    return Contents(
        Snapshot(
            versions=tuple(version_of(_known(item)) for item in value["versions"]),
            contexts={},
            configs=configs,
            modes={name: mode} if mode else {},
            notes={name: NoteRecord(tuple(note["tags"]), note["doc"])} if note else {},
        ),
        owners=tuple(sorted({owner for pattern, owner in value["owners"] or () if _owns(pattern, name)})),
    )


def _known(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: part for name, part in value.items() if part is not None}


def _settings(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row[column] for name, column in COLUMNS.items() if row.get(column) is not None}


def _owns(pattern: str, name: SubjectName) -> bool:
    return fnmatchcase(name.qualified, pattern)
