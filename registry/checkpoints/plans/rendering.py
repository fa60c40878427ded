"""A check before a restart as text for a terminal, and as Markdown for a merge request."""

from __future__ import annotations

from registry.checkpoints.plans.report import StateCheck, VariableCheck
from registry.formats.markdown import code, plain
from registry.formats.policies.spark_state import Budget, StateChange


def check_text(check: StateCheck) -> str:
    """The report for a terminal."""
    lines = [f"{check.verdict}: {check.sentence}"]
    if check.error:
        lines.append(f"Spark stops with {check.error}: {check.error_message}")
    if check.operator.why_fixed:
        lines.append(f"operator {check.operator.number} ({check.operator.description}): {check.operator.why_fixed}")
    for each in check.changes:
        lines += _change_text(each)
    for variable in check.variables:
        lines += ["", f"{variable.name} ({_kind(variable)}): {variable.status}"]
        for each in variable.changes:
            lines += _change_text(each)
        if variable.budget:
            lines.append(f"  value schemas: {budget_words(variable.budget)}")
    lines += ["", *([f"schema files: {budget_words(check.files)}"] if check.files else [])]
    lines += [f"note: {each}" for each in check.notes]
    return "\n".join(lines).rstrip("\n")


def _change_text(change: StateChange) -> list[str]:
    error = f" [{change.error}]" if change.error else ""
    lines = [f"  {change.effect}: {change.message}{error}", f"    why: {change.why}"]
    return [*lines, f"    do: {change.remedy}"] if change.effect != "note" else lines


def check_markdown(check: StateCheck, *, title: str = "State check") -> str:
    """The report as GitHub-flavoured Markdown."""
    parts = [f"# {plain(title)}", f"**{plain(check.verdict)}**: {plain(check.sentence)}"]
    if check.error:
        parts.append(f"Spark stops with {code(check.error)}: {plain(check.error_message)}")
    parts.append(
        f"Checkpoint {code(check.path)}, operator {check.operator.number} ({plain(check.operator.description)})"
    )
    if check.operator.why_fixed:
        parts.append(plain(check.operator.why_fixed))
    parts += ["\n".join(_change_markdown(each) for each in check.changes)] if check.changes else []
    rows = [f"| {code(e.name)} | {_kind(e)} | {e.status} | {_budget_cell(e.budget)} |" for e in check.variables]
    if rows:
        head = "| state variable | kind | what happens | value schemas before → after, of |\n|---|---|---|---|"
        parts.append("\n".join([head, *rows]))
    for variable in check.variables:
        if variable.changes:
            listed = "\n".join(_change_markdown(each) for each in variable.changes)
            parts.append(f"## {code(variable.name)}: {variable.status}\n\n{listed}")
    if check.files:
        parts.append(f"Schema files: {budget_words(check.files)}")
    parts += ["\n".join(f"- {plain(each)}" for each in check.notes)] if check.notes else []
    return "\n\n".join(parts) + "\n"


def _change_markdown(change: StateChange) -> str:
    error = f" {code(change.error)}" if change.error else ""
    said = f"- **{change.effect}**: {plain(change.message)}{error}\n  - why: {plain(change.why)}"
    return f"{said}\n  - do: {plain(change.remedy)}" if change.effect != "note" else said


def budget_words(budget: Budget) -> str:
    """A budget in words."""
    return f"{budget.before} before, {budget.after} after the restart, of {budget.allowed} ({budget.left} left)"


def _budget_cell(budget: Budget | None) -> str:
    return f"{budget.before} → {budget.after}, {budget.allowed}" if budget else "–"


def _kind(variable: VariableCheck) -> str:
    return f"{variable.kind}{', with time to live' if variable.has_ttl else ''}"
