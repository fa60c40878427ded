"""The state that an application's next version declares, and the report of a check: as values, text and Markdown.

`to_ddl` writes StructType JSON as Spark's DDL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from registry.checkpoints.plans.ddl import PLAIN
from registry.checkpoints.plans.queries import Description
from registry.checkpoints.plans.sources import PlannedSource
from registry.formats.policies.spark_state import Budget, StateChange, VariableStatus
from registry.formats.policies.spark_state.rules import Effect
from registry.formats.rendering import code, plain

Kind = Literal["value", "list", "map"]
Language = Literal["python", "scala"]
KINDS: Final[tuple[Kind, ...]] = ("value", "list", "map")
LANGUAGES: Final[tuple[Language, ...]] = ("python", "scala")
TIME_MODES: Final = ("None", "ProcessingTime", "EventTime")  # as the application names them
OUTPUT_MODES: Final = ("Append", "Update", "Complete")
#: PySpark's API methods → the names of Spark's operators; Scala has only one
APIS: Final[Mapping[str, str]] = {
    "transformWithState": "transformWithStateInPySparkExec",
    "transformWithStateInPandas": "transformWithStateInPandasExec",
}
SCALA_OPERATOR: Final = "transformWithStateExec"

MAX_VARIABLES: Final = 1_000
MAX_NAME: Final = 1_000  # characters of a variable's name


@dataclass(frozen=True, slots=True)
class PlannedState:
    """A state variable as the next version declares it; schemas are StructType JSON values.

    `key` is the schema of the grouping key, None if unchanged; `user_key` is that of a map's key. `has_ttl` is None if
    the plan doesn't say: then it is unchanged. `place` is the variable's position in the plan.
    """

    name: str
    kind: Kind
    value: Mapping[str, Any]
    user_key: Mapping[str, Any] | None = None
    key: Mapping[str, Any] | None = None
    has_ttl: bool | None = None
    place: str = ""


@dataclass(frozen=True, slots=True)
class StatePlan:
    """The plan of a restart.

    `removed` are the variables that the next version calls `deleteIfExists` for; `settings` are Spark's, by full name,
    for the next start; `operator` is the number of the stateful operator, None if there is only one. `operators`
    describes all stateful operators of the next version in the order of their numbers, as in `OPERATORS` of
    `registry.checkpoints.model`. None means unchanged for `language`, `time_mode`, `output_mode`, `api` (one of APIS)
    `operators` and `sources`, which are in the order of their numbers. `query` is the description of the next version, `running` that of the version
    that wrote the checkpoint.
    """

    variables: tuple[PlannedState, ...]
    removed: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    language: Language | None = None
    operator: int | None = None
    time_mode: str | None = None
    output_mode: str | None = None
    api: str | None = None
    operators: tuple[str, ...] | None = None
    sources: tuple[PlannedSource, ...] | None = None
    query: Description | None = None
    running: Description | None = None

    @property
    def running_sources(self) -> tuple[PlannedSource, ...]:
        """Return the described sources of the version that wrote the checkpoint."""
        return self.running.sources if self.running else ()


Verdict = Literal["safe", "loses data", "silently wrong", "fails later", "fails at start", "not checked"]
#: the verdict that an effect means
VERDICTS_OF: Final[Mapping[Effect, Verdict]] = {
    "refused": "fails at start",
    "fails later": "fails later",
    "silently wrong": "silently wrong",
    "loses data": "loses data",
}
CheckStatus = VariableStatus | Literal["accepted but silently wrong", "not checked"]
#: the status of a variable that an effect means
STATUSES_OF: Final[Mapping[str, CheckStatus]] = {
    "refused": "refused",
    "fails later": "accepted but fails later",
    "silently wrong": "accepted but silently wrong",
    "loses data": "accepted but loses data",
}
#: each verdict as pages, reports and commands show it
LABELS: Final[dict[Verdict, str]] = {
    "safe": "Safe",
    "loses data": "Loses data",
    "silently wrong": "Silently wrong",
    "fails later": "Fails later",
    "fails at start": "Fails at start",
    "not checked": "Not checked",
}
#: each verdict in a sentence
VERDICTS: Final[dict[Verdict, str]] = {
    "safe": "The query starts. This check knows of no value that would be lost.",
    "loses data": "The query starts without an error, but values are lost or misread.",
    "silently wrong": "The query starts without an error, but uses its old state as something else.",
    "fails later": "The query starts, but fails or reads garbage once it accesses old rows.",
    "fails at start": "Spark refuses to start the query.",
    "not checked": "Not everything that the restart affects was checked: it is not known whether the restart is safe.",
}
#: each status of a variable in a sentence
STATUSES: Final[dict[CheckStatus, str]] = {
    "unchanged": "Nothing changes.",
    "added": "The variable is new and starts empty.",
    "removed": "The variable is no longer declared.",
    "evolves": "Spark accepts the new schema and reads existing rows with it.",
    "accepted but loses data": "Spark accepts it without an error, but values are lost or misread.",
    "accepted but silently wrong": "Spark accepts it without an error, but uses the old values as something else.",
    "accepted but fails later": "Spark accepts it at the start, but fails or reads garbage once old rows are accessed.",
    "refused": "Spark refuses to start.",
    "not checked": "Not checked: the plan says nothing about it.",
}


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that the check used: its value, and its origin: the plan, the checkpoint or Spark's default."""

    name: str
    value: str
    said_by: Literal["plan", "checkpoint", "default"]


@dataclass(frozen=True, slots=True)
class VariableCheck:
    """The effect on one state variable; `stored` and `planned` are its value schemas as DDL, None if it has none.

    `changes` are worst first. `budget` counts value schemas, None if they don't evolve. `place` is the declaration's
    position in the plan.
    """

    name: str
    kind: str
    status: CheckStatus
    changes: tuple[StateChange, ...]
    error: str = ""
    has_ttl: bool = False
    budget: Budget | None = None
    stored: str | None = None
    planned: str | None = None
    user_key: str | None = None
    place: str = ""

    @property
    def sentence(self) -> str:
        """Return the status as a sentence."""
        return STATUSES[self.status]

    def to_dict(self) -> dict[str, Any]:
        """Return the check as JSON values."""
        return {
            "name": self.name,
            "kind": self.kind,
            "ttl": self.has_ttl,
            "status": self.status,
            "sentence": self.sentence,
            "error": self.error,
            "stored": self.stored,
            "planned": self.planned,
            "user_key": self.user_key,
            "place": self.place,
            "budget": self.budget.to_dict() if self.budget else None,
            "changes": [item.to_dict() for item in self.changes],
        }


@dataclass(frozen=True, slots=True)
class OperatorCheck:
    """The operator whose state was checked."""

    number: int
    name: str
    description: str
    encoding: str
    why_fixed: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return the operator as JSON values."""
        return asdict(self)


Way = Literal["undo", "two-step release", "state migration", "initial state", "new checkpoint", "check again"]
#: each way as pages, reports and commands show it
WAYS: Final[dict[Way, str]] = {
    "undo": "Undo the change",
    "two-step release": "Release in two steps",
    "state migration": "Migrate the state",
    "initial state": "Start with an initial state",
    "new checkpoint": "Start on a new checkpoint",
    "check again": "Check again",
}


@dataclass(frozen=True, slots=True)
class WayOut:
    """Something that can be done instead of the restart; `has_script` if the report comes with a script for it."""

    way: Way
    text: str
    has_script: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {"way": self.way, "label": WAYS[self.way], "text": self.text, "has_script": self.has_script}


@dataclass(frozen=True, slots=True)
class StateCheck:
    """The report of a check; variables worst first, then by name.

    `error` is the class of the error that stops Spark at start, empty if it starts. `files` counts schema files, None
    if the format keeps only one. `notes` have further information. `not_checked` describes the query's operators that
    the check doesn't cover, and files whose effect on Spark is unknown. `ways_out` say what to do, best first; `script`
    is the Python file that carries the state over, empty if there is none.
    """

    path: str
    query_id: str
    last_batch: int | None
    language: str
    verdict: Verdict
    operator: OperatorCheck
    variables: tuple[VariableCheck, ...]
    changes: tuple[StateChange, ...] = ()
    files: Budget | None = None
    error: str = ""
    error_message: str = ""
    settings: tuple[Setting, ...] = ()
    notes: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = ()
    ways_out: tuple[WayOut, ...] = ()
    script: str = ""

    @property
    def sentence(self) -> str:
        """Return the verdict as a sentence."""
        if self.verdict == "not checked" and self.not_checked:
            return f"{VERDICTS[self.verdict]} Not checked: {', '.join(self.not_checked)}."
        return VERDICTS[self.verdict]

    @property
    def all_changes(self) -> tuple[StateChange, ...]:
        """Return the changes of the query and of its variables."""
        return (*self.changes, *(change for variable in self.variables for change in variable.changes))

    @property
    def starts(self) -> bool | None:
        """Return whether the query starts; None if that wasn't checked."""
        return False if self.error else None if self.verdict == "not checked" else True

    @property
    def is_safe(self) -> bool:
        """Return whether the restart is safe: it starts, and loses nothing that the check knows of."""
        return self.verdict == "safe"

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "checkpoint": self.path,
            "query_id": self.query_id,
            "last_batch": self.last_batch,
            "language": self.language,
            "verdict": self.verdict,
            "label": LABELS[self.verdict],
            "sentence": self.sentence,
            "starts": self.starts,
            "error": self.error,
            "error_message": self.error_message,
            "operator": self.operator.to_dict(),
            "files": self.files.to_dict() if self.files else None,
            "changes": [item.to_dict() for item in self.changes],
            "variables": [item.to_dict() for item in self.variables],
            "settings": [{"name": e.name, "value": e.value, "said_by": e.said_by} for e in self.settings],
            "notes": list(self.notes),
            "not_checked": list(self.not_checked),
            "ways_out": [item.to_dict() for item in self.ways_out],
        }


def check_text(check: StateCheck) -> str:
    """Return the report for a terminal."""
    lines = [f"{LABELS[check.verdict]}: {check.sentence}"]
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
    lines += ["", *(f"what to do: {WAYS[item.way]}. {item.text}" for item in check.ways_out)]
    lines += [f"schema files: {budget_words(check.files)}"] if check.files else []
    lines += [f"note: {item}" for item in check.notes]
    return "\n".join(lines).rstrip("\n")


def _change_text(change: StateChange) -> list[str]:
    error = f" [{change.error}]" if change.error else ""
    lines = [f"  {change.effect}: {change.message}{error}", f"    why: {change.why}"]
    return [*lines, f"    do: {change.remedy}"] if change.effect != "note" else lines


def check_markdown(check: StateCheck, *, title: str = "State check") -> str:
    """Return the report as GitHub-flavoured Markdown."""
    parts = [f"# {plain(title)}", f"**{LABELS[check.verdict]}**: {plain(check.sentence)}"]
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
    if check.ways_out:
        listed = "\n".join(f"- **{WAYS[item.way]}**: {plain(item.text)}" for item in check.ways_out)
        parts.append(f"## What to do\n\n{listed}")
    if check.files:
        parts.append(f"Schema files: {budget_words(check.files)}")
    parts += ["\n".join(f"- {plain(item)}" for item in check.notes)] if check.notes else []
    return "\n\n".join(parts) + "\n"


def _change_markdown(change: StateChange) -> str:
    error = f" {code(change.error)}" if change.error else ""
    text = f"- **{change.effect}**: {plain(change.message)}{error}\n  - why: {plain(change.why)}"
    return f"{text}\n  - do: {plain(change.remedy)}" if change.effect != "note" else text


def budget_words(budget: Budget) -> str:
    """Return a budget in words."""
    return f"{budget.before} before, {budget.after} after the restart, of {budget.allowed} ({budget.left} left)"


def _budget_cell(budget: Budget | None) -> str:
    return f"{budget.before} → {budget.after}, {budget.allowed}" if budget else "–"


def _kind(variable: VariableCheck) -> str:
    return f"{variable.kind}{', with a time to live' if variable.has_ttl else ''}"


# If a type has several names, the usual one.
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
    """Return the DDL of a StructType in JSON values; types without a DDL name keep their JSON name.

    Elements and map values that can't be null look nullable: DDL can't express it.
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
