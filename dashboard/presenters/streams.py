"""Streaming queries, their state variables and the versions of their schemas, as pages show them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dashboard.presenters.comparison import Comparison
from dashboard.presenters.frame import Action, Choice, Environment, Fact, Frame, Link, Paging, Problem
from dashboard.presenters.looks import Look
from dashboard.presenters.state import StateChange
from dashboard.presenters.text_diff import TextDiff


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetMeter:
    """A limit of Spark's: what it counts, how much is used; `percent` is 0 to 100, `look` warns from 75 % on."""

    label: str
    used: int
    allowed: int
    left: int
    percent: int
    look: Look | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRow:
    """A query in the list; `budget` is its fullest one, None where its state can't evolve."""

    url: str
    name: str
    path: str
    environment: Environment
    state: Look
    variables: str
    encoding: str
    budget: BudgetMeter | None
    inputs: tuple[Link, ...]
    last_batch_at: datetime | None
    scanned_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryList:
    """All queries that scans have found; `add` leads to a new source."""

    frame: Frame
    rows: tuple[QueryRow, ...]
    paging: Paging
    add: Action
    check: Action


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableRow:
    """A state variable in its query; `change` says what its newest version changed."""

    url: str
    name: str
    kind: str
    look: Look
    rows: str
    versions: int
    budget: BudgetMeter | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorPanel:
    """A stateful operator with its variables."""

    title: str
    sentence: str
    facts: tuple[Fact, ...]
    variables: tuple[VariableRow, ...]
    budget: BudgetMeter | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """Batches in a row that ran with the same settings."""

    batches: str
    provider: str
    encoding: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPage:
    """One query; `number` is that of its address. `is_starting` says that no batch was committed yet."""

    frame: Frame
    name: str
    environment: Environment
    state: Look
    problems: tuple[Problem, ...]
    operators: tuple[OperatorPanel, ...]
    facts: tuple[Fact, ...]
    inputs: tuple[Link, ...]
    runs: tuple[RunRow, ...]
    scanned_at: datetime
    actions: tuple[Action, ...]
    number: str = ""
    is_starting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaRow:
    """A version of a variable's schemas; `look` is the worst of its changes, None for the first."""

    version: int
    url: str
    selected: bool
    summary: str
    look: Look | None
    compare_url: str
    schema_id: int
    batch: str
    start: str
    written_at: datetime | None
    carries: tuple[Link, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldRow:
    """A field of a variable's rows."""

    path: str
    type: str
    filled: str
    percent: int
    range: str
    size: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VariablePage:
    """One state variable with its timeline; `schemas` are (label, text) of the selected version."""

    frame: Frame
    name: str
    kind: str
    state: Look
    why_fixed: str
    versions: tuple[SchemaRow, ...]
    selected: int
    schemas: tuple[tuple[str, str], ...]
    no_avro: str
    facts: tuple[Fact, ...]
    budget: BudgetMeter | None
    rows_facts: tuple[Fact, ...]
    rows_at: datetime | None
    rows_problem: str
    fields: tuple[FieldRow, ...]
    compare_url: str
    compare_from: tuple[Choice, ...]
    compare_to: tuple[Choice, ...]
    check: Action


@dataclass(frozen=True, slots=True, kw_only=True)
class StateComparePage:
    """Two versions of a variable: what Spark makes of the change, then the Avro schemas that it derives from them."""

    frame: Frame
    look: Look
    sentence: str
    changes: tuple[StateChange, ...]
    compare_url: str
    compare_from: tuple[Choice, ...]
    compare_to: tuple[Choice, ...]
    comparison: Comparison | None
    text: TextDiff
    view: str
    unified_url: str
    split_url: str
    problem: Problem | None
    all_url: str = ""
