"""The content of a checkpoint, as frozen values and as observations.

Also the column families that Spark keeps next to the user's variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from registry.observations import Observation, StateLimit, StateSchemaVersion, StateVariableRead


@dataclass(frozen=True)
class SchemaVersion:
    """One version of a state variable's schemas, as Spark's StructType JSON.

    `value_schema` and `key_schema` are the user's own, without Spark's wrapping for TTL and for map keys
    (`map_key_schema` is the key of a map). `batch` is the first batch written with this version, None if Spark keeps no
    history; `written_at` is the file's time in milliseconds since 1970. `encoding` and `provider` are those of that
    batch, None if its offsets are gone.
    """

    version: int
    schema_id: int
    batch: int | None
    written_at: int | None
    key_schema: str
    value_schema: str
    map_key_schema: str | None
    file: str
    encoding: str | None = None
    provider: str | None = None


@dataclass(frozen=True)
class StateVariable:
    """A state variable, or the state of a built-in operator; `removed_at` is the first batch without it."""

    name: str
    label: str
    kind: str
    ttl: bool
    versions: tuple[SchemaVersion, ...]
    removed_at: int | None = None

    @property
    def newest(self) -> SchemaVersion:
        """Return the version that the last batch wrote."""
        return self.versions[-1]

    @property
    def value_schemas_used(self) -> int:
        """Return the number of value schemas that Spark counts against its limit: the ids so far, from 0."""
        return self.newest.schema_id + 1


@dataclass(frozen=True)
class InternalFamily:
    """A column family of Spark's own, and its meaning to the user."""

    name: str
    meaning: str


@dataclass(frozen=True)
class Operator:
    """A stateful operator and its variables; `why_fixed` is why their schemas can't evolve, None if they can.

    `missing_files` are the schema files that its metadata names and that don't exist.
    """

    number: int
    name: str
    description: str
    partitions: int
    time_mode: str | None
    variables: tuple[StateVariable, ...]
    internal: tuple[InternalFamily, ...]
    schema_files: int
    encoding: str
    why_fixed: str | None
    output_mode: str | None = None
    missing_files: tuple[str, ...] = ()

    @property
    def evolvable(self) -> bool:
        """Return whether Spark lets value schemas of this operator evolve."""
        return self.why_fixed is None


@dataclass(frozen=True)
class QuerySource:
    """A source of the query by its number or name; `topics` are Kafka's, empty for other kinds.

    `kind` is kafka, files, delta, rate or unknown. `folder` is that of a file which it has read, empty if unknown.
    `had_rows` is whether the last batch had rows of it, as far as its offsets show.
    """

    name: str
    kind: str
    description: str
    topics: tuple[str, ...]
    folder: str = ""
    had_rows: bool = True


@dataclass(frozen=True)
class SettingsRun:
    """Settings of the query that are unchanged from one batch to another (both inclusive)."""

    first_batch: int
    last_batch: int
    provider: str
    encoding: str
    settings: Mapping[str, str]


@dataclass(frozen=True)
class Limits:
    """Spark's limits for this query: from its settings, else Spark's defaults."""

    value_schemas: int
    schema_files: int


@dataclass(frozen=True)
class Budget:
    """One of Spark's limits and its use; `variable` is None for schema files, which all variables share."""

    limit: Literal["value_schemas", "schema_files"]
    operator: int
    variable: str | None
    used: int
    allowed: int

    @property
    def left(self) -> int:
        """Return how many more are allowed."""
        return max(0, self.allowed - self.used)


@dataclass(frozen=True)
class Stop:
    """A file that stops Spark at the next start; `error` is the class of Spark's error, empty if unknown."""

    file: str
    problem: str
    remedy: str
    error: str


@dataclass(frozen=True)
class Checkpoint:
    """A query's checkpoint. Times are milliseconds since 1970; batches count from 0.

    `problems` are problems that leave the rest readable; `stops` are those that affect the next start. `written_by` is
    the Spark version recognised by the files' form: a checkpoint doesn't record it. `format_version` is that of the
    state's checkpoints (spark.sql.streaming.stateStore.checkpointFormatVersion), None before the first commit.
    """

    path: str
    query_id: str
    operators: tuple[Operator, ...]
    settings: tuple[SettingsRun, ...]
    last_planned_batch: int | None
    last_committed_batch: int | None
    last_batch_time: int | None
    limits: Limits
    problems: tuple[str, ...]
    sources: tuple[QuerySource, ...] = ()
    written_by: str = ""
    format_version: int | None = None
    stops: tuple[Stop, ...] = ()

    @property
    def is_starting(self) -> bool:
        """Return whether no batch is committed yet: the query may be writing its first state."""
        return self.last_committed_batch is None

    @property
    def topics(self) -> tuple[str, ...]:
        """Return the Kafka topics that the query reads, by name."""
        return tuple(sorted({topic for source in self.sources for topic in source.topics}))

    @property
    def budgets(self) -> tuple[Budget, ...]:
        """Return Spark's limits on evolution with their use; none for operators whose state can't evolve."""
        items = []
        for operator in self.operators:
            for variable in operator.variables:
                if operator.evolvable and variable.removed_at is None:
                    used = variable.value_schemas_used
                    items.append(
                        Budget("value_schemas", operator.number, variable.name, used, self.limits.value_schemas)
                    )
            if operator.schema_files:
                used = operator.schema_files
                items.append(Budget("schema_files", operator.number, None, used, self.limits.schema_files))
        return tuple(items)


# prefix of a family's name → its purpose; {0} is the rest of the name
INTERNAL: Final = (
    ("$rowCounter_", "the number of entries of list {0}"),
    ("$procTimers_keyToTimestamp", "processing-time timers by key"),
    ("$procTimers_timestampToKey", "processing-time timers by time"),
    ("$eventTimers_keyToTimestamp", "event-time timers by key"),
    ("$eventTimers_timestampToKey", "event-time timers by time"),
    ("$ttl_", "the expiry of entries of {0}"),
    ("$min_", "the earliest expiry in list {0}"),
    ("$count_", "the number of entries of list {0}"),
    ("$", "internal to Spark"),
    ("left-keyToNumValues", "the number of buffered rows by key, left side of the join"),
    ("right-keyToNumValues", "the number of buffered rows by key, right side of the join"),
)

# families and stores of built-in operators → (user-facing label, kind)
STORES: Final = {
    "left-keyWithIndexToValue": ("buffered rows, left side of the join", "join_rows"),
    "right-keyWithIndexToValue": ("buffered rows, right side of the join", "join_rows"),
    "default": ("the operator's state", "operator"),
}

# stateVariableType in the operator's metadata → kind
KINDS: Final = {"ValueState": "value", "ListState": "list", "MapState": "map", "TimerState": "timer"}

# operatorName in the metadata → its name for users
OPERATORS: Final = {
    "transformWithStateExec": "transformWithState",
    "transformWithStateInPySparkExec": "transformWithState (Python)",
    "transformWithStateInPandasExec": "transformWithStateInPandas",
    "stateStoreSave": "streaming aggregation",
    "sessionWindowStateStoreSaveExec": "session windows",
    "dedupe": "dropDuplicates",
    "dedupeWithinWatermark": "dropDuplicatesWithinWatermark",
    "symmetricHashJoin": "stream-stream join",
    "flatMapGroupsWithState": "flatMapGroupsWithState",
    "applyInPandasWithState": "applyInPandasWithState",
    "globalLimit": "limit",
    # recognised by the form of its state, which is the same for both
    "groupsWithState": "flatMapGroupsWithState or applyInPandasWithState",
}
#: the family that transformWithState of Scala declares next to its variables and never uses
UNUSED_DEFAULT: Final = "default"
EVOLVING: Final = frozenset(name for name in OPERATORS if name.startswith("transformWithState"))


def internal_meaning(family: str) -> str | None:
    """Return the meaning of a family of Spark's own; None for a user's variable."""
    for prefix, meaning in INTERNAL:
        if family.startswith(prefix):
            return meaning.format(family.removeprefix(prefix))
    return None


def observe_schemas(checkpoint: Checkpoint) -> list[Observation]:
    """Return every schema version of every state variable, and the use of Spark's limits."""
    observed: list[Observation] = []
    for operator in checkpoint.operators:
        for variable in operator.variables:
            observed += _versions(operator, variable)
    observed += [
        StateLimit(budget.limit, budget.operator, budget.variable, budget.used, budget.allowed)
        for budget in checkpoint.budgets
    ]
    return observed


def _versions(operator: Operator, variable: StateVariable) -> list[StateSchemaVersion]:
    return [
        StateSchemaVersion(
            operator=operator.number,
            variable=variable.name,
            kind=variable.kind,
            version=version.version,
            schema_id=version.schema_id,
            batch=version.batch,
            encoding=operator.encoding,
            key_schema=version.key_schema,
            value_schema=version.value_schema,
            written_at=version.written_at,
        )
        for version in variable.versions
    ]


def rows_to_read(checkpoint: Checkpoint) -> tuple[StateVariableRead, ...]:
    """Return the reads of a checkpoint's rows: each variable as of the last committed batch.

    An evolved variable is also read as of the last batch before it evolved, to count the values in fields that it lost.
    """
    reads = []
    for operator in checkpoint.operators:
        for variable in operator.variables:
            if variable.removed_at is not None:
                continue
            name = variable.name if operator.name.startswith("transformWithState") else None
            side = _join_side(variable.name)
            last = checkpoint.last_committed_batch
            reads.append(StateVariableRead(operator.number, name, variable.kind, last, side))
            evolved_in = variable.newest.batch
            if len(variable.versions) > 1 and evolved_in:
                reads.append(StateVariableRead(operator.number, name, variable.kind, evolved_in - 1, side))
    return tuple(reads)


def _join_side(store: str) -> Literal["left", "right"] | None:
    return "left" if store.startswith("left-") else "right" if store.startswith("right-") else None
