"""Fields that were seen, added to an Avro record: each a union with null, null by default. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from registry.drift.proposing_tree import DEEPEST, ITEMS, KEYED, Notes, Seen
from registry.errors import InvalidInput

NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SCALARS: Final = {"boolean": "boolean", "integer": "long", "number": "double", "string": "string"}
_NAMED: Final = ("record", "error", "enum", "fixed")


def new_schema(root: Seen, name: str, notes: Notes) -> dict[str, Any]:
    """A record of what was seen. Raises InvalidInput where messages aren't objects."""
    if root.kinds != {"object"} or not root.fields:
        raise InvalidInput("An Avro record is proposed of objects with fields alone.")
    record: dict[str, Any] = {"type": "record", "name": avro_name(name), "fields": []}
    _Adder(record, notes).to_record(record, root, 0)
    return record


def add_to(document: Any, root: Seen, notes: Notes) -> None:
    """Declare in the document what it doesn't yet. Raises InvalidInput for one that is no record."""
    if not isinstance(document, dict) or document.get("type") not in ("record", "error"):
        raise InvalidInput("The declared schema isn't a record that fields could be added to.")
    _Adder(document, notes).to_record(document, root, 0)


def avro_name(text: str) -> str:
    """A name of those characters that Avro allows in one."""
    kept = re.sub(r"[^A-Za-z0-9_]+", "_", text).strip("_") or "Value"
    return kept if NAME.fullmatch(kept) else f"_{kept}"


class _Adder:
    """Adds fields to the records of one document; knows the names that are taken in it."""

    def __init__(self, document: dict[str, Any], notes: Notes) -> None:
        self._notes = notes
        self._named: dict[str, dict[str, Any]] = {}
        for full_name, found in _named_types(document, ""):
            self._named.setdefault(full_name, found)
        self._taken = {name.rpartition(".")[2] for name in self._named}
        self._spaces = {id(found): name.rpartition(".")[0] for name, found in self._named.items()}

    def to_record(self, record: dict[str, Any], seen: Seen, depth: int) -> None:
        """The fields of an object that the record doesn't have, and those below the ones that it has."""
        fields = record.get("fields")
        if depth >= DEEPEST or not isinstance(fields, list):
            return
        known = {each["name"]: each for each in fields if isinstance(each, dict) and "name" in each}
        for name, each in seen.fields.items():
            if name in known:
                self._below(known[name].get("type"), each, self._spaces.get(id(record), ""), depth)
                continue
            kind = self._type(each, record, depth + 1) if NAME.fullmatch(name) else None
            if kind is None:
                self._notes.leave_out(each.path, self._why_not(name, each))
                continue
            fields.append({"name": name, "type": ["null", *kind], "default": None})
            self._notes.add(each)

    def _why_not(self, name: str, each: Seen) -> str:
        if not NAME.fullmatch(name):
            return "Avro allows no such name"
        return "null alone was seen" if not each.kinds else "nothing was seen inside"

    def _below(self, type_: Any, seen: Seen, space: str, depth: int) -> None:
        """Follow a declared type to the records in it, as far as data was seen."""
        for branch in type_ if isinstance(type_, list) else [type_]:
            held = self._resolved(branch, space)
            kind = held.get("type") if held else None
            if held is None:
                continue
            if isinstance(kind, dict | list):
                self._below(kind, seen, space, depth + 1)
            elif kind in ("record", "error"):
                self.to_record(held, seen, depth + 1)
            elif kind == "array" and ITEMS in seen.below and depth < DEEPEST:
                self._below(held.get("items"), seen.below[ITEMS], space, depth + 1)

    def _resolved(self, branch: Any, space: str) -> dict[str, Any] | None:
        if isinstance(branch, dict):
            return branch
        if not isinstance(branch, str):
            return None
        return self._named.get(branch if "." in branch or not space else f"{space}.{branch}") or self._named.get(branch)

    def _type(self, seen: Seen, inside: dict[str, Any], depth: int) -> list[Any] | None:
        """The branches beside null, none where the kind isn't known."""
        branches: list[Any] = []
        for kind in sorted(seen.kinds):
            branch = _SCALARS.get(kind) or self._container(kind, seen, inside, depth)
            if branch is None:
                return None
            branches.append(branch)
        return branches or None

    def _container(self, kind: str, seen: Seen, inside: dict[str, Any], depth: int) -> Any:
        if depth >= DEEPEST:
            return None
        if kind == "array":
            return self._of("array", "items", seen.below.get(ITEMS), inside, depth)
        if seen.fields and KEYED not in seen.below:
            return self._record(seen, depth)
        return self._of("map", "values", seen.below.get(KEYED), inside, depth) if not seen.fields else None

    def _of(self, kind: str, key: str, inner: Seen | None, inside: dict[str, Any], depth: int) -> Any:
        found = self._type(inner, inside, depth + 1) if inner is not None else None
        if found is None or inner is None:
            return None
        return {"type": kind, key: ["null", *found] if inner.nullable or len(found) > 1 else found[0]}

    def _record(self, seen: Seen, depth: int) -> Any:
        made: dict[str, Any] = {"type": "record", "name": self._free_name(seen.path), "fields": []}
        for name, each in seen.fields.items():
            kind = self._type(each, made, depth + 1) if NAME.fullmatch(name) else None
            if kind is None:
                self._notes.leave_out(each.path, self._why_not(name, each))
            else:
                made["fields"].append({"name": name, "type": ["null", *kind], "default": None})
        return made if made["fields"] else None

    def _free_name(self, path: str) -> str:
        base = avro_name("_".join(part for part in re.split(r"[^A-Za-z0-9]+", path) if part).title().replace("_", ""))
        name, number = base, 2
        while name in self._taken:
            name, number = f"{base}{number}", number + 1
        self._taken.add(name)
        return name


def _named_types(type_: Any, space: str, depth: int = 0) -> Iterator[tuple[str, dict[str, Any]]]:
    """The named types inside a type by their full names."""
    if depth > 4 * DEEPEST:
        return
    if isinstance(type_, list):
        for branch in type_:
            yield from _named_types(branch, space, depth + 1)
    if not isinstance(type_, dict):
        return
    if type_.get("type") in _NAMED and isinstance(type_.get("name"), str):
        name = type_["name"]
        own = name.rpartition(".")[0] if "." in name else str(type_.get("namespace") or space)
        bare = name.rpartition(".")[2]
        yield (f"{own}.{bare}" if own else bare), type_
        space = own
    for key in ("type", "items", "values"):
        if isinstance(type_.get(key), dict | list):
            yield from _named_types(type_[key], space, depth + 1)
    fields = type_.get("fields")
    for each in fields if isinstance(fields, list) else []:
        yield from _named_types(each.get("type") if isinstance(each, dict) else None, space, depth + 1)
