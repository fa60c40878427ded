"""Two versions of a state variable's value schema, field by field, as Spark's StructType JSON has them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

LIKELY = 0.5  # how alike two names are (0 to 1) when one of several added fields can be the renamed one


@dataclass(frozen=True)
class FieldChange:
    """A field that is there in one version only (`before` or `after` is None), or changed its type."""

    path: str
    before: str | None
    after: str | None

    def __str__(self) -> str:
        if self.before is None:
            return f"{self.path} added ({self.after})"
        if self.after is None:
            return f"{self.path} removed ({self.before})"
        return f"{self.path} {self.before} → {self.after}"


@dataclass(frozen=True)
class SuspectedRename:
    """A field that disappeared and one of the same type that came in the same version."""

    dropped: str
    added: str
    type: str


def field_changes(old: str, new: str) -> list[FieldChange]:
    """The differences of two value schemas, by path; moved fields are no difference, Spark matches by name."""
    before, after = _flat(json.loads(old), ""), _flat(json.loads(new), "")
    changed = [FieldChange(path, kind, after.get(path)) for path, kind in before.items() if after.get(path) != kind]
    return changed + [FieldChange(path, None, kind) for path, kind in after.items() if path not in before]


def suspected_renames(changes: list[FieldChange]) -> list[SuspectedRename]:
    """Pairs of a removed and an added field of one type in one struct, the most alike names first.

    A single candidate is taken whatever its name; of several, one that is at least LIKELY alike.
    """
    dropped = [change for change in changes if change.after is None]
    added = [change for change in changes if change.before is None]
    pairs = sorted(
        (
            (_alike(gone.path, come.path), gone, come)
            for gone in dropped
            for come in added
            if gone.before == come.after and _parent(gone.path) == _parent(come.path)
        ),
        key=lambda pair: (-pair[0], pair[1].path, pair[2].path),
    )
    found: list[SuspectedRename] = []
    taken: set[str] = set()
    for alike, gone, come in pairs:
        if gone.path in taken or come.path in taken:
            continue
        rivals = sum(1 for _, other, _ in pairs if other is gone)
        if rivals == 1 or alike >= LIKELY:
            taken |= {gone.path, come.path}
            found.append(SuspectedRename(gone.path, come.path, gone.before or ""))
    return found


def _alike(one: str, other: str) -> float:
    one, other = one.rpartition(".")[2].lower(), other.rpartition(".")[2].lower()
    if one in other or other in one:
        return max(LIKELY, SequenceMatcher(None, one, other).ratio())
    return SequenceMatcher(None, one, other).ratio()


def _parent(path: str) -> str:
    return path.rpartition(".")[0]


def _flat(struct: dict[str, Any], prefix: str) -> dict[str, str]:
    """Path → type of every field, nested structs followed; elements of lists and maps keep their brackets."""
    flat: dict[str, str] = {}
    for field in struct.get("fields", ()):
        _add(flat, f"{prefix}{field['name']}", field["type"])
    return flat


def _add(flat: dict[str, str], path: str, kind: Any) -> None:
    if isinstance(kind, str):
        flat[path] = kind
        return
    name = kind.get("type")
    if name == "struct":
        flat[path] = "struct"
        flat.update(_flat(kind, f"{path}."))
    elif name == "array":
        flat[path] = "array"
        _add(flat, f"{path}[]", kind["elementType"])
    elif name == "map":
        flat[path] = "map"
        _add(flat, f"{path}{{key}}", kind["keyType"])
        _add(flat, f"{path}{{value}}", kind["valueType"])
    else:
        flat[path] = json.dumps(kind, sort_keys=True)
