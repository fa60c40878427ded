"""Columns from Avro schemas, with what Connect's converters add: `connect.name`, `connect.type`, `connect.parameters`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from registry.drift.debezium.shapes import NO_DEFAULT, FieldShape

MAX_UNIONS: Final = 100
_KINDS: Final[Mapping[str, str]] = {
    "int": "int32",
    "long": "int64",
    "float": "float32",
    "double": "float64",
    "boolean": "boolean",
    "string": "string",
    "bytes": "bytes",
    "fixed": "bytes",
    "enum": "string",
    "record": "struct",
    "map": "map",
    "array": "array",
}
_CONNECT: Final = "org.apache.kafka.connect.data."
#: Avro's logical types that Connect's converters write for its own
_LOGICAL: Final = {
    "date": f"{_CONNECT}Date",
    "time-millis": f"{_CONNECT}Time",
    "timestamp-millis": f"{_CONNECT}Timestamp",
    "decimal": f"{_CONNECT}Decimal",
}


class AvroReader:
    """Reads fields of an Avro document (JSON that was checked for depth)."""

    def __init__(self, document: Any) -> None:
        self.named: dict[str, dict[str, Any]] = {}
        #: whether a Connect converter wrote it: then a type without `connect.name` has no semantic type
        self.from_connect = False
        self._collect(document, "")

    def _collect(self, node: Any, namespace: str) -> None:
        if isinstance(node, list):
            for each in node:
                self._collect(each, namespace)
        if not isinstance(node, dict):
            return
        self.from_connect = self.from_connect or "connect.name" in node
        name = node.get("name")
        if isinstance(name, str) and isinstance(node.get("type"), str) and node["type"] in ("record", "enum", "fixed"):
            namespace = name.rpartition(".")[0] or str(node.get("namespace", namespace))
            self.named.setdefault(f"{namespace}.{name.rpartition('.')[2]}".lstrip("."), node)
            self.named.setdefault(name, node)
        for key in ("fields", "items", "values", "type"):
            self._collect(node.get(key), namespace)

    def record(self, node: Any) -> dict[str, Any] | None:
        """The record that a type is, or that a nullable type holds."""
        found = self._named(self._without_null(node)[0])
        return found if isinstance(found, dict) and found.get("type") == "record" else None

    def envelope_row(self, record: Mapping[str, Any]) -> dict[str, Any] | None:
        """The record of `after`, where the record is an envelope."""
        named = {each["name"]: each for each in record["fields"]}
        if not {"after", "op"} <= named.keys():
            return None
        return self.record(named["after"]["type"])

    def fields(self, record: Mapping[str, Any]) -> list[FieldShape]:
        """The fields of a record."""
        return [self._field(each) for each in record["fields"]]

    def _field(self, field: Mapping[str, Any]) -> FieldShape:
        shape = self._shape(field["type"])
        default = shape.default
        if default is NO_DEFAULT and field.get("default") is not None:
            default = field["default"]
        return replace(shape, name=str(field["name"]), default=default)

    def _shape(self, node: Any) -> FieldShape:
        kind, optional = self._without_null(node)
        if isinstance(kind, list):
            return FieldShape("", "unknown", None, optional=optional)
        kind = self._named(kind)
        details: Mapping[str, Any] = kind if isinstance(kind, dict) else {"type": kind}
        base = details["type"]
        found: Any = _KINDS[base] if isinstance(base, str) and base in _KINDS else "unknown"
        if details.get("connect.type") in ("int8", "int16"):
            found = details["connect.type"]
        if found == "unknown":
            return FieldShape("", "unknown", None, optional=optional)
        return FieldShape(
            "",
            found,
            self._semantic(details),
            optional=optional,
            parameters=_parameters(details),
            default=details.get("connect.default", NO_DEFAULT),
            items=self._shape(details["items"]) if base == "array" else None,
        )

    def _semantic(self, details: Mapping[str, Any]) -> str | None:
        name = details.get("connect.name") or _LOGICAL.get(str(details.get("logicalType", "")))
        if name is None and isinstance(details.get("logicalType"), str):
            return None  # of Avro's other logical types nobody says which of Connect's is meant
        return str(name) if name is not None else ("" if self.from_connect else None)

    def _named(self, node: Any) -> Any:
        return self.named.get(node, node) if isinstance(node, str) and node not in _KINDS else node

    def _without_null(self, node: Any) -> tuple[Any, bool]:
        """The one branch beside null (a list where there are several), and whether null is one."""
        if not isinstance(node, list):
            return node, False
        others = [each for each in node[:MAX_UNIONS] if each != "null"]
        return (others[0] if len(others) == 1 else others), len(others) < len(node)


def _parameters(details: Mapping[str, Any]) -> dict[str, str]:
    given = details.get("connect.parameters")
    found = {str(name): str(value) for name, value in given.items()} if isinstance(given, dict) else {}
    if details.get("logicalType") == "decimal":
        found.setdefault("scale", str(details.get("scale", 0)))
        if "precision" in details:
            found.setdefault("connect.decimal.precision", str(details["precision"]))
    if details.get("type") == "enum" and isinstance(details.get("symbols"), list):
        found.setdefault("allowed", ",".join(map(str, details["symbols"])))
    return found
