"""StructType JSON as Spark's DDL, which `ddl` reads back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from registry.checkpoints.plans.ddl import PLAIN

# Of several words for a type, those that people write.
_TEXTS: Final[Mapping[str, str]] = {name: word for word, name in PLAIN.items()} | {
    "string": "STRING",
    "integer": "INT",
    "long": "BIGINT",
    "short": "SMALLINT",
    "byte": "TINYINT",
    "float": "FLOAT",
    "timestamp": "TIMESTAMP",
}
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def to_ddl(struct: Mapping[str, Any]) -> str:
    """The DDL of a StructType in JSON values; types that DDL has no word for stand as they are in JSON.

    Elements and map values that can't be null are shown as if they could: DDL can't say it.
    """
    return ", ".join(_column(each, " ") for each in struct["fields"])


def _column(field: Mapping[str, Any], separator: str) -> str:
    name = field["name"]
    shown = name if _PLAIN_NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"
    needed = "" if field["nullable"] else " NOT NULL"
    metadata = field.get("metadata") or {}
    comment = f" COMMENT {_quoted(metadata['comment'])}" if isinstance(metadata.get("comment"), str) else ""
    collation = metadata.get("__COLLATIONS")
    collations = collation if isinstance(collation, Mapping) else {}
    return f"{shown}{separator}{_type(field['type'], collations, name)}{needed}{comment}"


def _type(kind: Any, collations: Mapping[str, Any], path: str) -> str:
    if isinstance(kind, str):
        collation = str(collations.get(path, "")).rpartition(".")[2]
        if kind == "string" and collation:
            return f"STRING COLLATE {collation}"
        return _TEXTS.get(kind) or kind.upper()
    if kind.get("type") == "struct":
        return f"STRUCT<{', '.join(_column(each, ': ') for each in kind['fields'])}>"
    if kind.get("type") == "array":
        return f"ARRAY<{_type(kind['elementType'], collations, f'{path}.element')}>"
    if kind.get("type") == "map":
        key = _type(kind["keyType"], collations, f"{path}.key")
        return f"MAP<{key}, {_type(kind['valueType'], collations, f'{path}.value')}>"
    return str(kind.get("class") or kind.get("pyClass") or "UDT")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"
