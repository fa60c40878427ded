"""The report of a check as text for a terminal and as Markdown for a merge request, and StructType JSON as Spark's DDL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from registry.checkpoints.plans.ddl import PLAIN
from registry.checkpoints.plans.model import StateCheck, VariableCheck
from registry.formats.policies.spark_state import Budget, StateChange
from registry.formats.rendering import code, plain


def check_text(check: StateCheck) -> str:
    """The report for a terminal."""
    lines = [f"{check.verdict}: {check.sentence}"]
    if check.error:
        lines.append(f"Spark fails with {check.error}: {check.error_message}")
    if check.operator.why_fixed:
        lines.append(f"operator {check.operator.number} ({check.operator.description}): {check.operator.why_fixed}")
    for item in check.changes:
        lines += _change_text(item)
    for variable in check.variables:
        lines += ["", f"{variable.name} ({_kind(variable)}): {variable.status}"]
        for item in variable.changes:
            lines += _change_text(item)
        if variable.budget:
            lines.append(f"  value schemas: {budget_words(variable.budget)}")
    lines += ["", *([f"schema files: {budget_words(check.files)}"] if check.files else [])]
    lines += [f"note: {item}" for item in check.notes]
    return "\n".join(lines).rstrip("\n")


def _change_text(change: StateChange) -> list[str]:
    error = f" [{change.error}]" if change.error else ""
    lines = [f"  {change.effect}: {change.message}{error}", f"    why: {change.why}"]
    return [*lines, f"    do: {change.remedy}"] if change.effect != "note" else lines


def check_markdown(check: StateCheck, *, title: str = "State check") -> str:
    """The report as GitHub-flavoured Markdown."""
    parts = [f"# {plain(title)}", f"**{plain(check.verdict)}**: {plain(check.sentence)}"]
    if check.error:
        parts.append(f"Spark fails with {code(check.error)}: {plain(check.error_message)}")
    parts.append(
        f"Checkpoint {code(check.path)}, operator {check.operator.number} ({plain(check.operator.description)})"
    )
    if check.operator.why_fixed:
        parts.append(plain(check.operator.why_fixed))
    parts += ["\n".join(_change_markdown(item) for item in check.changes)] if check.changes else []
    rows = [f"| {code(e.name)} | {_kind(e)} | {e.status} | {_budget_cell(e.budget)} |" for e in check.variables]
    if rows:
        head = "| state variable | kind | what happens | value schemas before → after, of |\n|---|---|---|---|"
        parts.append("\n".join([head, *rows]))
    for variable in check.variables:
        if variable.changes:
            listed = "\n".join(_change_markdown(item) for item in variable.changes)
            parts.append(f"## {code(variable.name)}: {variable.status}\n\n{listed}")
    if check.files:
        parts.append(f"Schema files: {budget_words(check.files)}")
    parts += ["\n".join(f"- {plain(item)}" for item in check.notes)] if check.notes else []
    return "\n\n".join(parts) + "\n"


def _change_markdown(change: StateChange) -> str:
    error = f" {code(change.error)}" if change.error else ""
    text = f"- **{change.effect}**: {plain(change.message)}{error}\n  - why: {plain(change.why)}"
    return f"{text}\n  - do: {plain(change.remedy)}" if change.effect != "note" else text


def budget_words(budget: Budget) -> str:
    """A budget in words."""
    return f"{budget.before} before, {budget.after} after the restart, of {budget.allowed} ({budget.left} left)"


def _budget_cell(budget: Budget | None) -> str:
    return f"{budget.before} → {budget.after}, {budget.allowed}" if budget else "–"


def _kind(variable: VariableCheck) -> str:
    return f"{variable.kind}{', with a time to live' if variable.has_ttl else ''}"


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
    return ", ".join(_column(field, " ") for field in struct["fields"])


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
        return f"STRUCT<{', '.join(_column(field, ': ') for field in kind['fields'])}>"
    if kind.get("type") == "array":
        return f"ARRAY<{_type(kind['elementType'], collations, f'{path}.element')}>"
    if kind.get("type") == "map":
        key = _type(kind["keyType"], collations, f"{path}.key")
        return f"MAP<{key}, {_type(kind['valueType'], collations, f'{path}.value')}>"
    return str(kind.get("class") or kind.get("pyClass") or "UDT")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"
