"""Columns from JSON Schema, with what Connect's converter adds: `title` (the name), `connect.type`, `connect.parameters`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from registry.drift.debezium.shapes import NO_DEFAULT, FieldShape

MAX_REFERENCES: Final = 20
_SEEN: Final = {
    "integer": "json_integer",
    "number": "json_number",
    "string": "json_string",
    "boolean": "json_boolean",
    "object": "json_object",
    "array": "json_array",
}
_CONNECT_KINDS: Final = frozenset({"int8", "int16", "int32", "int64", "float32", "float64", "bytes", "map"})


class JsonSchemaReader:
    """Reads fields of a JSON Schema document (JSON that was checked for depth); references inside it alone."""

    def __init__(self, document: Any) -> None:
        self.document = document
        self.from_connect = '"connect.' in str(document).replace("'", '"')

    def resolved(self, node: Any) -> dict[str, Any]:
        """The schema behind local references; one that leads elsewhere says nothing."""
        for _ in range(MAX_REFERENCES):
            if not isinstance(node, dict):
                return {}
            target = node.get("$ref")
            if not isinstance(target, str):
                return node
            node = self._at(target)
        return {}

    def _at(self, pointer: str) -> Any:
        if not pointer.startswith("#"):
            return {}
        node = self.document
        for part in filter(None, pointer[1:].split("/")):
            key = part.replace("~1", "/").replace("~0", "~")
            node = node.get(key) if isinstance(node, dict) else None
        return node

    def envelope_row(self, root: Mapping[str, Any]) -> dict[str, Any] | None:
        """The schema of `after`, where the root is an envelope."""
        properties = root.get("properties")
        if not isinstance(properties, dict) or not {"after", "op"} <= properties.keys():
            return None
        return self._without_null(properties["after"])[0]

    def fields(self, node: Mapping[str, Any]) -> list[FieldShape] | None:
        """The properties as fields, None where there are none."""
        properties = node.get("properties")
        if not isinstance(properties, dict):
            return None
        listed = node.get("required")
        required = listed if isinstance(listed, list) else []
        return [self._field(str(name), each, name in required) for name, each in properties.items()]

    def _field(self, name: str, node: Any, required: bool) -> FieldShape:
        schema, nullable = self._without_null(node)
        kind, logical = self._kind(schema)
        given = schema.get("connect.parameters")
        items = schema.get("items") if kind in ("array", "json_array") else None
        # A property that needn't be there may as well be null for those who read rows.
        return FieldShape(
            name,
            kind,
            logical,
            optional=nullable or not (required or self.from_connect),
            parameters={str(each): str(value) for each, value in given.items()} if isinstance(given, dict) else {},
            default=schema.get("default", NO_DEFAULT) if schema.get("default") is not None else NO_DEFAULT,
            items=self._field("", items, False) if isinstance(items, dict) else None,
        )

    def _kind(self, schema: Mapping[str, Any]) -> tuple[Any, str | None]:
        title = schema.get("title")
        own = schema.get("connect.type")
        if own in _CONNECT_KINDS:
            return own, title if isinstance(title, str) else ""
        declared = schema.get("type")
        seen = _SEEN.get(declared) if isinstance(declared, str) else None
        if seen is None:
            return "unknown", None
        if self.from_connect and isinstance(title, str):
            plain = {"json_object": "struct", "json_string": "string", "json_array": "array", "json_boolean": "boolean"}
            return plain.get(seen, seen), title
        return seen, None

    def _without_null(self, node: Any) -> tuple[dict[str, Any], bool]:
        """The one alternative beside null, and whether null is one."""
        schema = self.resolved(node)
        for word in ("oneOf", "anyOf"):
            branches = schema.get(word)
            if isinstance(branches, list):
                others = [self.resolved(each) for each in branches if self.resolved(each).get("type") != "null"]
                return (others[0] if len(others) == 1 else {}), len(others) < len(branches)
        listed = schema.get("type")
        if isinstance(listed, list):
            others_named = [each for each in listed if each != "null"]
            one = {**schema, "type": others_named[0] if len(others_named) == 1 else others_named}
            return one, "null" in listed
        return schema, False
