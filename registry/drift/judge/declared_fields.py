"""The fields that a schema declares, named as in observations: the *declared* side of a comparison with data.

Kinds are JSON's: string, integer, number, boolean, object, array, null. What a schema leaves open, or nests too deep,
is marked as open, so that nothing is concluded from it. For a JSON Schema, `properties`, `items`, `$ref` and `allOf`
are read; the rest is open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from registry.formats.avro import model as avro
from registry.formats.base import ParsedSchema
from registry.formats.protobuf import model as protobuf

__all__ = ["MAX_FIELDS", "DeclaredField", "DeclaredFields", "declared_fields"]


#: undeclared names in an object: forbidden, allowed by default, or allowed explicitly
Others = Literal["closed", "silent", "open"]
MAX_FIELDS: Final = 2_000
MAX_DEPTH: Final = 12
MAX_STEPS: Final = 20_000
MAX_MEMBERS: Final = 64  # per allOf


@dataclass(frozen=True)
class DeclaredField:
    """A path: the allowed kinds and enum symbols (None: any), and whether it is required."""

    kinds: frozenset[str] | None
    required: bool = False
    symbols: frozenset[str] | None = None


@dataclass(frozen=True)
class DeclaredFields:
    """All fields of a schema by path, siblings in the order of their bytes.

    `others` says what else each object (the root's path is empty) may contain. `messages` are the full names of Protobuf message types by index path, such as `0` or `1.0`. `is_cut`: a limit kept
    more from being read, so nothing may be assumed about the whole schema.
    """

    fields: Mapping[str, DeclaredField] = field(default_factory=dict)
    others: Mapping[str, Others] = field(default_factory=dict)
    messages: Mapping[str, str] = field(default_factory=dict)
    is_cut: bool = False


class FieldCollector:
    """Collects fields as they are found."""

    def __init__(self) -> None:
        self.fields: dict[str, DeclaredField] = {}
        self.others: dict[str, Others] = {}
        self.messages: dict[str, str] = {}
        self.is_cut = False

    def is_full(self, depth: int) -> bool:
        """Return whether to stop before an object because of a limit; then `is_cut` is set."""
        is_over = depth >= MAX_DEPTH or len(self.fields) >= MAX_FIELDS
        self.is_cut = self.is_cut or is_over
        return is_over

    def add(self, path: str, kinds: frozenset[str] | None, required: bool, symbols: frozenset[str] | None) -> None:
        """Add a field; if a path is declared twice, either declaration may apply."""
        before = self.fields.get(path)
        if before is not None:
            kinds = None if kinds is None or before.kinds is None else kinds | before.kinds
            symbols = None if symbols is None or before.symbols is None else symbols | before.symbols
            required = required and before.required
        self.fields[path] = DeclaredField(kinds, required, symbols)


def below(path: str, name: str) -> str:
    """Return the path of a field of the object at `path`."""
    return f"{path}.{name}" if path else name


def parent_of(path: str) -> str:
    """Return the path of the enclosing object or list; empty for the root's fields."""
    if path.endswith(("[]", "{}")):
        return path[:-2]
    return path.rpartition(".")[0]


_KNOWN_KINDS: Final = frozenset({"string", "integer", "number", "boolean", "object", "array", "null"})
#: keywords that may add fields to an object or invalidate what is read here
_UNFOLLOWED: Final = (
    "$dynamicRef", "$recursiveRef", "patternProperties", "unevaluatedProperties", "dependentSchemas", "if", "not",
    "propertyNames", "anyOf", "oneOf",
)  # fmt: skip


#: stands for a part that can't be followed: nothing is concluded from it
UNKNOWN: Final[dict[str, Any]] = {"anyOf": []}


def read_json_schema(parsed: ParsedSchema, collected: FieldCollector) -> None:
    """Collect the fields of a parsed JSON Schema, from its bundle if it has references."""
    model = parsed.model
    root = model.root if len(model.documents) == 1 else model.bundle.value
    _JsonSchema(root, collected).inside(root, "", 0, frozenset())


class _JsonSchema:
    """Reads a document with only internal references."""

    def __init__(self, root: Any, collected: FieldCollector) -> None:
        self._root = root
        self._found = collected
        self._steps = 0

    def inside(self, schema: Any, path: str, depth: int, inside: frozenset[str]) -> None:
        """Collect the fields below a path."""
        parts = list(self._parts(schema, inside))
        has_more = any("properties" in part or "items" in part for part, _ in parts)
        is_over = len(inside) > 4 * MAX_DEPTH or self._steps > MAX_STEPS
        self._found.is_cut = self._found.is_cut or is_over
        if not parts or is_over or (has_more and self._found.is_full(depth)):
            self._found.others[path] = "open"
            return
        self._found.others[path] = self._others(parts)
        required = {name for part, _ in parts for name in _names(part.get("required"))}
        for part, around in parts:
            properties = part.get("properties")
            for name, property_schema in properties.items() if isinstance(properties, dict) else ():
                here = below(path, name)
                self._add(here, property_schema, name in required, around)
                self.inside(property_schema, here, depth + 1, around)
            if isinstance(part.get("items"), dict | bool):
                self._add(f"{path}[]", part["items"], False, around)
                self.inside(part["items"], f"{path}[]", depth + 1, around)

    def _parts(self, schema: Any, inside: frozenset[str]) -> Iterable[tuple[dict[str, Any], frozenset[str]]]:
        """Yield the schema with the parts of `$ref` and `allOf`; UNKNOWN for a part that can't be followed.

        Definitions that each use the next one twice are small as text and huge as a tree, so steps are counted.
        """
        self._steps += 1
        if not isinstance(schema, dict):
            return
        if self._steps > MAX_STEPS:
            yield UNKNOWN, inside
            return
        yield schema, inside
        reference = schema.get("$ref")
        if isinstance(reference, str):
            target = None if reference in inside else pointed(self._root, reference)
            if target is None:
                yield UNKNOWN, inside
            else:
                yield from self._parts(target, inside | {reference})
        members = schema.get("allOf")
        if isinstance(members, list) and len(inside) <= 4 * MAX_DEPTH:
            self._found.is_cut = self._found.is_cut or len(members) > MAX_MEMBERS
            for index, member in enumerate(members[:MAX_MEMBERS]):
                yield from self._parts(member, inside | {f"{id(schema)}/{index}"})

    def _others(self, parts: list[tuple[dict[str, Any], frozenset[str]]]) -> Others:
        if any(keyword in part for part, _ in parts for keyword in _UNFOLLOWED):
            return "open"
        additional = [part["additionalProperties"] for part, _ in parts if "additionalProperties" in part]
        if any(value is False for value in additional):
            return "closed"
        declares = any(isinstance(part.get("properties"), dict) for part, _ in parts)
        return "silent" if declares and not additional else "open"

    def _add(self, path: str, schema: Any, required: bool, inside: frozenset[str]) -> None:
        parts = list(self._parts(schema, inside))
        kinds: frozenset[str] | None = None
        symbols: frozenset[str] | None = None
        if not any(keyword in part for part, _ in parts for keyword in ("anyOf", "oneOf", "if", "not")):
            for part, _ in parts:
                allowed = _kinds_of(part)
                kinds = allowed if kinds is None else kinds if allowed is None else kinds & allowed
                listed = _symbols_of(part)
                symbols = listed if symbols is None else symbols if listed is None else symbols & listed
        self._found.add(path, kinds, required, symbols)


def _names(value: Any) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


def _kinds_of(schema: Mapping[str, Any]) -> frozenset[str] | None:
    declared = schema.get("type")
    names = [declared] if isinstance(declared, str) else _names(declared)
    if not names or not _KNOWN_KINDS.issuperset(names):
        return None
    return frozenset(names) | ({"integer"} if "number" in names else frozenset())


def _symbols_of(schema: Mapping[str, Any]) -> frozenset[str] | None:
    listed = schema["enum"] if isinstance(schema.get("enum"), list) else None
    if "const" in schema:
        listed = [schema["const"]]
    if listed is None or not all(isinstance(value, str | None) for value in listed):
        return None
    return frozenset(value for value in listed if value is not None)


def pointed(root: Any, reference: str) -> Any:
    """Resolve `#/…`; None for anything else."""
    if reference == "#":
        return root
    if not reference.startswith("#/") or "%" in reference:
        return None
    node = root
    for step in reference[2:].split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and name in node:
            node = node[name]
        elif isinstance(node, list) and name.isdigit() and int(name) < len(node):
            node = node[int(name)]
        else:
            return None
    return node


_AVRO_KINDS: Final[Mapping[str, frozenset[str]]] = {
    "null": frozenset({"null"}),
    "boolean": frozenset({"boolean"}),
    "int": frozenset({"integer"}),
    "long": frozenset({"integer"}),
    "float": frozenset({"number", "integer"}),
    "double": frozenset({"number", "integer"}),
    "bytes": frozenset({"string"}),
    "fixed": frozenset({"string"}),
    "string": frozenset({"string"}),
    "enum": frozenset({"string"}),
    "array": frozenset({"array"}),
    "map": frozenset({"object"}),
    "record": frozenset({"object"}),
}
_WHOLE: Final = frozenset({"integer", "string"})  # Protobuf's JSON form writes 64-bit integers as text, and reads both
_REAL: Final = frozenset({"number", "integer", "string"})
_PROTOBUF_KINDS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("int32", "int64", "uint32", "uint64", "sint32", "sint64"), _WHOLE),
    **dict.fromkeys(("fixed32", "fixed64", "sfixed32", "sfixed64"), _WHOLE),
    **dict.fromkeys(("float", "double"), _REAL),
    "bool": frozenset({"boolean"}),
    "string": frozenset({"string"}),
    "bytes": frozenset({"string"}),
    "enum": frozenset({"string", "integer"}),
    "message": frozenset({"object"}),
    "group": frozenset({"object"}),
}


def declared_fields(parsed: ParsedSchema) -> DeclaredFields | None:
    """Return what a parsed schema declares; None if it has no model here, or an unknown format.

    At most MAX_FIELDS fields and MAX_DEPTH levels: beyond that, it is `open` and `is_cut`.
    """
    reader = _READERS.get(parsed.schema_type)
    if reader is None or parsed.model is None:
        return None
    collected = FieldCollector()
    reader(parsed, collected)
    return DeclaredFields(collected.fields, collected.others, collected.messages, collected.is_cut)


# ---- Avro ---------------------------------------------------------------------------------------------------------


def _read_avro(parsed: ParsedSchema, collected: FieldCollector) -> None:
    _avro_inside(parsed.model.root, "", 0, frozenset(), collected)


def _avro_inside(
    type_: avro.AvroType, path: str, depth: int, inside: frozenset[str], collected: FieldCollector
) -> None:
    if isinstance(type_, avro.Union):
        for branch in type_.branches:
            _avro_inside(branch, path, depth, inside, collected)
    elif isinstance(type_, avro.Record):
        if type_.full_name in inside or collected.is_full(depth):
            collected.others[path] = "open"
            return
        collected.others.setdefault(path, "closed")
        for field in type_.fields:
            here = below(path, field.name)
            collected.add(here, _avro_kinds(field.type), not field.has_default, _avro_symbols(field.type))
            _avro_inside(field.type, here, depth + 1, inside | {type_.full_name}, collected)
    elif isinstance(type_, avro.Array):
        collected.add(f"{path}[]", _avro_kinds(type_.items), False, _avro_symbols(type_.items))
        _avro_inside(type_.items, f"{path}[]", depth + 1, inside, collected)
    elif isinstance(type_, avro.Map):
        collected.others[path] = "open"  # its keys look like fields in plain JSON


def _avro_kinds(type_: avro.AvroType) -> frozenset[str] | None:
    if isinstance(type_, avro.Union):
        kinds = [_avro_kinds(branch) for branch in type_.branches]
        return None if any(kind is None for kind in kinds) else frozenset().union(*(kind or () for kind in kinds))
    if type_.logical is not None:
        return None  # dates, decimals and durations have no single form in JSON
    return _AVRO_KINDS.get(type_.kind)


def _avro_symbols(type_: avro.AvroType) -> frozenset[str] | None:
    branches = type_.branches if isinstance(type_, avro.Union) else (type_,)
    others = [branch for branch in branches if branch.kind != "null"]
    if len(others) == 1 and isinstance(others[0], avro.Enum):
        return frozenset(others[0].symbols)
    return None


# ---- Protobuf -----------------------------------------------------------------------------------------------------


def _read_protobuf(parsed: ParsedSchema, collected: FieldCollector) -> None:
    proto = parsed.model.proto
    _name_messages(proto.message_type, f"{proto.package}." if proto.package else "", "", collected)
    for message in parsed.model.main.messages.values():
        _message_inside(message, "", 0, frozenset(), collected)
        break  # JSON doesn't name its message type: it is compared with the first, whose indexes are omitted too


def _name_messages(messages: Iterable[Any], prefix: str, indexes: str, collected: FieldCollector) -> None:
    for number, message in enumerate(messages):
        if len(collected.messages) >= MAX_FIELDS or indexes.count(".") >= MAX_DEPTH:
            return
        index_path = f"{indexes}.{number}" if indexes else str(number)
        collected.messages[index_path] = f"{prefix}{message.name}"
        _name_messages(message.nested_type, f"{prefix}{message.name}.", index_path, collected)


def _message_inside(
    message: protobuf.Message, path: str, depth: int, inside: frozenset[str], collected: FieldCollector
) -> None:
    is_well_known = (message.full_name or "").startswith("google.protobuf.")
    if message.full_name in inside or is_well_known or collected.is_full(depth):
        collected.others[path] = "open"
        return
    collected.others.setdefault(path, "closed")
    for member in sorted(message.fields, key=lambda member: member.number):
        here = below(path, member.name)
        kinds = _PROTOBUF_KINDS.get(member.kind)
        if member.message is not None and member.message.full_name.startswith("google.protobuf."):
            kinds = None
        symbols = None  # an open enum may hold any number
        single = kinds if kinds is None else kinds | {"null"}
        if member.is_map:
            collected.add(here, frozenset({"object", "null"}), False, symbols)
            collected.others[here] = "open"
        elif member.is_repeated:
            collected.add(here, frozenset({"array", "null"}), False, symbols)
            collected.add(f"{here}[]", kinds, False, symbols)
            if member.message is not None:
                _message_inside(member.message, f"{here}[]", depth + 1, inside | {message.full_name}, collected)
        else:
            collected.add(here, single, member.is_required, symbols)
            if member.message is not None:
                _message_inside(member.message, here, depth + 1, inside | {message.full_name}, collected)


_READERS: Final[Mapping[str, Callable[[ParsedSchema, FieldCollector], None]]] = {
    "AVRO": _read_avro,
    "PROTOBUF": _read_protobuf,
    "JSON": read_json_schema,
}
