"""Debezium's change events among decoded values."""

from __future__ import annotations

import base64
from typing import Any, NamedTuple

OPERATIONS = frozenset("cudrtm")
UNAVAILABLE = "__debezium_unavailable_value"
UNAVAILABLE_FORMS = frozenset(
    {UNAVAILABLE, UNAVAILABLE.encode(), base64.b64encode(UNAVAILABLE.encode()).decode("ascii")}
)
LONGEST_NAME = 255


class Change(NamedTuple):
    """A change event: its operation and table (empty for a message), and what marks it."""

    op: str
    database: str
    schema: str
    table: str
    with_before: bool
    snapshot: bool
    in_transaction: bool
    unavailable: bool


def change_of(value: Any) -> Change | None:
    """The change event that a decoded value is; None when it is none.

    Its `source` names the connector, which every one of Debezium's connectors writes.
    """
    if not isinstance(value, dict):
        return None
    op, source = value.get("op"), value.get("source")
    if op not in OPERATIONS or not isinstance(source, dict) or not isinstance(source.get("connector"), str):
        return None
    rows = (value.get("before"), value.get("after"))
    return Change(
        op=op,
        database=_name(source, "db"),
        schema=_name(source, "schema"),
        table="" if op == "m" else _name(source, "table", "collection"),
        with_before=rows[0] is not None,
        snapshot=source.get("snapshot") not in (None, False, "", "false"),
        in_transaction=_is_transactional(op, value, source),
        unavailable=any(_is_unavailable(inner) for row in rows if isinstance(row, dict) for inner in row.values()),
    )


def _is_transactional(op: str, value: dict[str, Any], source: dict[str, Any]) -> bool:
    """Rows: metadata of transactions are added; messages: they were written inside of one."""
    if value.get("transaction") is not None:
        return True
    return op == "m" and source.get("txId") is not None


def _is_unavailable(value: Any) -> bool:
    while isinstance(value, list) and value:
        value = value[0]
    return isinstance(value, (str, bytes)) and value in UNAVAILABLE_FORMS


def _name(source: dict[str, Any], *keys: str) -> str:
    for key in keys:
        if isinstance(source.get(key), str):
            return str(source[key])[:LONGEST_NAME]
    return ""
