"""Adds observed fields to an Avro record or a JSON Schema. Pure.

In Avro, each field is a union with null, null by default.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from registry.drift.judge.declared_fields import pointed
from registry.errors import InvalidInput, first_few
from registry.observations import FieldProfile

ITEMS: Final = "[]"
KEYED: Final = "{}"
#: kinds of JSON values; data of other kinds was checked against a schema when it was decoded
KINDS: Final = ("array", "boolean", "integer", "number", "object", "string")
DEEPEST: Final = 20
SHOWN_NAME: Final = 80


@dataclass
class ObservedNode:
    """The values at a path: their kinds, whether null occurs, and the paths below.

    `share` is the share of messages that have the path; below a list or map keys it means nothing.
    """

    path: str
    kinds: frozenset[str] = frozenset()
    nullable: bool = False
    share: float = 0.0
    below: dict[str, ObservedNode] = field(default_factory=dict)

    @property
    def fields(self) -> dict[str, ObservedNode]:
        """Return the fields of an object by name, without items and keys that are data."""
        return {name: child for name, child in self.below.items() if name not in (ITEMS, KEYED)}


def tree_of(fields: Iterable[FieldProfile]) -> ObservedNode:
    """Return the paths as a tree; each is below the longest path that it starts with, as names may contain dots."""
    root = ObservedNode("", kinds=frozenset({"object"}))
    by_path = {"": root}
    for profile in sorted(fields, key=lambda profile: (len(profile.path), profile.path)):
        if not profile.path:
            root.kinds = _kinds(profile)
            continue
        node = ObservedNode(
            profile.path,
            _kinds(profile),
            bool(profile.nulls or profile.kinds.get("null")),
            profile.present / max(1, profile.messages),
        )
        parent, step = _parent(profile.path, by_path)
        by_path[parent].below[step] = node
        by_path[profile.path] = node
    for node in by_path.values():
        node.below = dict(sorted(node.below.items()))
        if node.path:
            node.kinds |= _implied(node)
    if set(root.below) == {ITEMS}:
        root.kinds = frozenset({"array"})
    return root


def _kinds(profile: FieldProfile) -> frozenset[str]:
    kinds = {kind for kind, number in profile.kinds.items() if number and kind in KINDS}
    return frozenset(kinds - {"integer"} if "number" in kinds else kinds)


def _implied(node: ObservedNode) -> frozenset[str]:
    """Return the kinds that a value with something below it must have, if its own weren't counted."""
    kinds = {"array"} if ITEMS in node.below else set()
    return frozenset(kinds | ({"object"} if node.below.keys() - {ITEMS} else set()))


def _parent(path: str, nodes: dict[str, ObservedNode]) -> tuple[str, str]:
    for step in (ITEMS, KEYED):
        if path.endswith(step) and path[: -len(step)] in nodes:
            return path[: -len(step)], step
    cut = path.rfind(".")
    while cut > 0:
        if path[:cut] in nodes and path[cut + 1 :]:
            return path[:cut], path[cut + 1 :]
        cut = path.rfind(".", 0, cut)
    return "", path


@dataclass
class Notes:
    """What a proposal adds and omits, and the number of messages behind it."""

    messages: int
    added: list[str] = field(default_factory=list)
    shares: dict[str, float] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def add(self, node: ObservedNode) -> None:
        """Record a path that the proposal declares."""
        self.added.append(node.path)
        self.shares[node.path] = node.share

    def leave_out(self, path: str, reason: str) -> None:
        """Record a path that the proposal omits, and why."""
        self.left_out.setdefault(path, reason)

    def words(self, most: int) -> str:
        """Return the notes as sentences."""
        named = first_few([f"{_short(path)} (in {self.shares[path]:.0%})" for path in self.added], most)
        counted = f"{self.messages:,} message{'' if self.messages == 1 else 's'}"
        sentence = f"Proposed from {counted}: added {named}, all optional."
        return f"{sentence} {self.left_out_words()}" if self.left_out else sentence

    def left_out_words(self) -> str:
        """Return the omissions as a sentence."""
        return f"Left out: {first_few([f'{_short(path)} ({reason})' for path, reason in self.left_out.items()])}."


def _short(path: str) -> str:
    return path if len(path) <= SHOWN_NAME else f"{path[: SHOWN_NAME - 1]}…"


NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SCALARS: Final = {"boolean": "boolean", "integer": "long", "number": "double", "string": "string"}
_NAMED: Final = ("record", "error", "enum", "fixed")


def new_avro_schema(root: ObservedNode, name: str, notes: Notes) -> dict[str, Any]:
    """Return a record of what was seen. Raises InvalidInput if the messages aren't objects."""
    if root.kinds != {"object"} or not root.fields:
        raise InvalidInput("An Avro record can only be proposed from objects with fields.")
    record: dict[str, Any] = {"type": "record", "name": avro_name(name), "fields": []}
    _Adder(record, notes).to_record(record, root, 0)
    return record


def add_to_avro(document: Any, root: ObservedNode, notes: Notes) -> None:
    """Add missing fields to the document. Raises InvalidInput if it isn't a record."""
    if not isinstance(document, dict) or document.get("type") not in ("record", "error"):
        raise InvalidInput("The declared schema is not a record, so fields can't be added to it.")
    _Adder(document, notes).to_record(document, root, 0)


def avro_name(text: str) -> str:
    """Return a valid Avro name for a text."""
    name = re.sub(r"[^A-Za-z0-9_]+", "_", text).strip("_") or "Value"
    return name if NAME.fullmatch(name) else f"_{name}"


class _Adder:
    """Adds fields to the records of one document; knows the names already used in it."""

    def __init__(self, document: dict[str, Any], notes: Notes) -> None:
        self._notes = notes
        self._named: dict[str, dict[str, Any]] = {}
        for full_name, definition in _named_types(document, ""):
            self._named.setdefault(full_name, definition)
        self._taken = {name.rpartition(".")[2] for name in self._named}
        self._spaces = {id(definition): name.rpartition(".")[0] for name, definition in self._named.items()}

    def to_record(self, record: dict[str, Any], node: ObservedNode, depth: int) -> None:
        """Add the fields of an object that the record lacks, and those below the fields that it has."""
        fields = record.get("fields")
        if depth >= DEEPEST or not isinstance(fields, list):
            return
        declared = {child["name"]: child for child in fields if isinstance(child, dict) and "name" in child}
        for name, child in node.fields.items():
            if name in declared:
                self._below(declared[name].get("type"), child, self._spaces.get(id(record), ""), depth)
                continue
            kind = self._type(child, record, depth + 1) if NAME.fullmatch(name) else None
            if kind is None:
                self._notes.leave_out(child.path, self._why_not(name, child))
                continue
            fields.append({"name": name, "type": ["null", *kind], "default": None})
            self._notes.add(child)

    def _why_not(self, name: str, node: ObservedNode) -> str:
        if not NAME.fullmatch(name):
            return "not a valid Avro name"
        return "only null seen" if not node.kinds else "no content seen"

    def _below(self, type_: Any, node: ObservedNode, space: str, depth: int) -> None:
        """Follow a declared type to the records in it, as far as data was seen."""
        for branch in type_ if isinstance(type_, list) else [type_]:
            schema = self._resolved(branch, space)
            kind = schema.get("type") if schema else None
            if schema is None:
                continue
            if isinstance(kind, dict | list):
                self._below(kind, node, space, depth + 1)
            elif kind in ("record", "error"):
                self.to_record(schema, node, depth + 1)
            elif kind == "array" and ITEMS in node.below and depth < DEEPEST:
                self._below(schema.get("items"), node.below[ITEMS], space, depth + 1)

    def _resolved(self, branch: Any, space: str) -> dict[str, Any] | None:
        if isinstance(branch, dict):
            return branch
        if not isinstance(branch, str):
            return None
        return self._named.get(branch if "." in branch or not space else f"{space}.{branch}") or self._named.get(branch)

    def _type(self, node: ObservedNode, inside: dict[str, Any], depth: int) -> list[Any] | None:
        """Return the branches besides null; None if the kind isn't known."""
        branches: list[Any] = []
        for kind in sorted(node.kinds):
            branch = _SCALARS.get(kind) or self._container(kind, node, inside, depth)
            if branch is None:
                return None
            branches.append(branch)
        return branches or None

    def _container(self, kind: str, node: ObservedNode, inside: dict[str, Any], depth: int) -> Any:
        if depth >= DEEPEST:
            return None
        if kind == "array":
            return self._of("array", "items", node.below.get(ITEMS), inside, depth)
        if node.fields and KEYED not in node.below:
            return self._record(node, depth)
        return self._of("map", "values", node.below.get(KEYED), inside, depth) if not node.fields else None

    def _of(self, kind: str, key: str, inner: ObservedNode | None, inside: dict[str, Any], depth: int) -> Any:
        branches = self._type(inner, inside, depth + 1) if inner is not None else None
        if branches is None or inner is None:
            return None
        return {"type": kind, key: ["null", *branches] if inner.nullable or len(branches) > 1 else branches[0]}

    def _record(self, node: ObservedNode, depth: int) -> Any:
        made: dict[str, Any] = {"type": "record", "name": self._free_name(node.path), "fields": []}
        for name, child in node.fields.items():
            kind = self._type(child, made, depth + 1) if NAME.fullmatch(name) else None
            if kind is None:
                self._notes.leave_out(child.path, self._why_not(name, child))
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
    """Yield the named types inside a type with their full names."""
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
    for member in fields if isinstance(fields, list) else []:
        yield from _named_types(member.get("type") if isinstance(member, dict) else None, space, depth + 1)


DRAFT: Final = "http://json-schema.org/draft-07/schema#"
MOST_STEPS: Final = 64
_CHOICES: Final = ("anyOf", "oneOf", "if", "not", "$dynamicRef", "$recursiveRef")


def new_json_schema(root: ObservedNode, name: str, notes: Notes) -> dict[str, Any]:
    """Return a schema of what was seen; it allows names that weren't seen."""
    return {"$schema": DRAFT, "title": name, **_fragment(root, notes, 0)}


def add_to_json_schema(document: Any, root: ObservedNode, notes: Notes) -> None:
    """Add missing fields to the document. Raises InvalidInput if it doesn't declare an object."""
    if not isinstance(document, dict):
        raise InvalidInput("The declared schema is not an object, so fields can't be added to it.")
    _add(document, document, root, notes, 0)


def _add(document: Any, schema: Any, node: ObservedNode, notes: Notes, depth: int) -> None:
    if depth >= DEEPEST or not node.below:
        return
    parts = _parts(document, schema)
    if parts is None:
        for child in node.fields.values():
            notes.leave_out(child.path, "the schema uses conditions or references here")
        return
    items = next((part["items"] for part in parts if isinstance(part.get("items"), dict)), None)
    if ITEMS in node.below and items is not None:
        _add(document, items, node.below[ITEMS], notes, depth + 1)
    for name, child in node.fields.items():
        declared = [part["properties"][name] for part in parts if name in _properties(part)]
        if declared:
            _add(document, declared[0], child, notes, depth + 1)
        elif any(_allows(part) for part in parts):
            continue  # the schema says that its names are data
        else:
            closed = [part for part in parts if part.get("additionalProperties") is False]
            part_to_extend = (closed or [part for part in parts if _properties(part)] or parts)[0]
            if not isinstance(part_to_extend.get("properties"), dict):
                part_to_extend["properties"] = {}
            part_to_extend["properties"][name] = _fragment(child, notes, depth + 1)
            notes.add(child)


def _properties(part: dict[str, Any]) -> dict[str, Any]:
    properties = part.get("properties")
    return properties if isinstance(properties, dict) else {}


def _allows(part: dict[str, Any]) -> bool:
    """Return whether the object is a map: undeclared names have a schema."""
    return isinstance(part.get("additionalProperties"), dict) or "patternProperties" in part


def _parts(document: Any, schema: Any) -> list[dict[str, Any]] | None:
    """Return the schema with the parts of `$ref` and `allOf`; None if it uses conditions or external references."""
    parts: list[dict[str, Any]] = []
    left = [schema]
    while left and len(parts) < MOST_STEPS:
        part = left.pop(0)
        if not isinstance(part, dict) or any(keyword in part for keyword in _CHOICES):
            return None
        if any(part is earlier for earlier in parts):
            continue
        parts.append(part)
        if "$ref" in part:
            target = pointed(document, part["$ref"]) if isinstance(part["$ref"], str) else None
            if target is None:
                return None
            left.append(target)
        members = part.get("allOf")
        left += members if isinstance(members, list) else []
    # older drafts ignore everything next to a reference
    return [part for part in parts if "$ref" not in part] or None


def _fragment(node: ObservedNode, notes: Notes, depth: int) -> dict[str, Any]:
    """Return a schema of what was seen at a path; null alone implies nothing."""
    kinds = [*sorted(node.kinds), *(["null"] if node.nullable and node.kinds else [])]
    schema: dict[str, Any] = {"type": kinds[0] if len(kinds) == 1 else kinds} if kinds else {}
    if depth >= DEEPEST:
        return schema
    if "array" in node.kinds and ITEMS in node.below:
        schema["items"] = _fragment(node.below[ITEMS], notes, depth + 1)
        if not depth:
            notes.add(node.below[ITEMS])
    if "object" in node.kinds and node.fields:
        schema["properties"] = {}
        for name, child in node.fields.items():
            schema["properties"][name] = _fragment(child, notes, depth + 1)
            if not depth:
                notes.add(child)
    if "object" in node.kinds and KEYED in node.below:
        schema["additionalProperties"] = _fragment(node.below[KEYED], notes, depth + 1)
    return schema
