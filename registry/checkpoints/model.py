"""What a checkpoint says of itself, as frozen values and as observations.

Also the column families that Spark keeps beside the variables of the user.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from registry.observations import Observation, StateLimit, StateSchemaVersion, StateVariableRead


@dataclass(frozen=True)
class SchemaVersion:
    """One version of a state variable's schemas, as Spark's StructType JSON.

    `value_schema` and `key_schema` are the user's own: Spark's wrapping for time to live and for map keys is taken
    off (`map_key_schema` holds a map's key). `batch` is the first batch written with it, None where Spark keeps no
    history; `written_at` the file's time in milliseconds since 1970. `encoding` and `provider` are those of that batch,
    None where its offsets are gone.
    """

    version: int
    schema_id: int
    batch: int | None
    written_at: int | None
    key_schema: str
    value_schema: str
    map_key_schema: str | None
    key_encoding: str
    file: str
    encoding: str | None = None
    provider: str | None = None


@dataclass(frozen=True)
class StateVariable:
    """A state variable, or what a built-in operator keeps; `removed_at` is the first batch without it."""

    name: str
    label: str
    kind: str
    ttl: bool
    versions: tuple[SchemaVersion, ...]
    removed_at: int | None = None

    @property
    def newest(self) -> SchemaVersion:
        """The version that the last batch wrote with."""
        return self.versions[-1]

    @property
    def value_schemas_used(self) -> int:
        """Value schemas that Spark counts against its limit: the ids given so far, which begin with 0."""
        return self.newest.schema_id + 1


@dataclass(frozen=True)
class InternalFamily:
    """A column family of Spark's own, with what it means to the user."""

    name: str
    meaning: str


@dataclass(frozen=True)
class Operator:
    """A stateful operator: its variables, and whether their schemas can evolve (`why_fixed` when they can't).

    `missing_files` are the schema files that its metadata names and that aren't there.
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
        """Whether Spark lets value schemas of this operator evolve."""
        return self.why_fixed is None


@dataclass(frozen=True)
class QuerySource:
    """A source of the query by its number or name; `topics` are Kafka's, empty for sources of other kinds.

    `kind` is kafka, files, delta, rate or unknown.
    """

    name: str
    kind: str
    description: str
    topics: tuple[str, ...]


@dataclass(frozen=True)
class SettingsRun:
    """Settings that the query recorded, unchanged from one batch to another (both inclusive)."""

    first_batch: int
    last_batch: int
    provider: str
    encoding: str
    settings: Mapping[str, str]


@dataclass(frozen=True)
class Limits:
    """Spark's limits for this query: as recorded in its settings, else Spark's defaults."""

    value_schemas: int
    schema_files: int


@dataclass(frozen=True)
class Budget:
    """One of Spark's limits and how much of it is used; `variable` is None for schema files, which all share."""

    limit: Literal["value_schemas", "schema_files"]
    operator: int
    variable: str | None
    used: int
    allowed: int

    @property
    def left(self) -> int:
        """How many more there may be."""
        return max(0, self.allowed - self.used)


@dataclass(frozen=True)
class Stop:
    """Something about a file that stops Spark at the next start: `error` is the class of the error that it stops with,
    empty where it isn't known what Spark does with such a file.
    """

    file: str
    problem: str
    remedy: str
    error: str


@dataclass(frozen=True)
class Checkpoint:
    """A query's checkpoint. Times are milliseconds since 1970; batches count from 0.

    `problems` names what was found wrong without making the rest unreadable, `stops` what of it concerns the next start. `written_by` says which Spark's form the
    files have: a checkpoint doesn't record the version itself. `format_version` is that of the state's checkpoints
    (spark.sql.streaming.stateStore.checkpointFormatVersion), None before the first commit.
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
    last_commit_time: int | None = None
    written_by: str = ""
    format_version: int | None = None
    stops: tuple[Stop, ...] = ()

    @property
    def is_starting(self) -> bool:
        """Whether no batch was committed yet: the query may be writing its first state just now."""
        return self.last_committed_batch is None

    @property
    def topics(self) -> tuple[str, ...]:
        """The Kafka topics that the query reads, by name."""
        return tuple(sorted({topic for source in self.sources for topic in source.topics}))

    @property
    def budgets(self) -> tuple[Budget, ...]:
        """Spark's limits on evolutions, used and left; none for operators whose state can't evolve."""
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


# prefix of a family's name → what it is for; {0} is the rest of the name
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

# operatorName in the metadata → what it is in the user's words
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
    # told by its state's form, which is the same for both
    "groupsWithState": "flatMapGroupsWithState or applyInPandasWithState",
}
#: the family that transformWithState of Scala writes down beside its variables and keeps nothing in
UNUSED_DEFAULT: Final = "default"
EVOLVING: Final = frozenset(name for name in OPERATORS if name.startswith("transformWithState"))


def internal_meaning(family: str) -> str | None:
    """What a family of Spark's own means to the user; None for a user's variable."""
    for prefix, meaning in INTERNAL:
        if family.startswith(prefix):
            return meaning.format(family.removeprefix(prefix))
    return None


def observe_schemas(checkpoint: Checkpoint) -> list[Observation]:
    """Every schema version of every state variable, and how much of Spark's limits is used."""
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
    """The reads that show a checkpoint's rows: each variable as of the last committed batch, and an evolved one also
    as of the last batch before it evolved, which shows how much the fields held that it lost.
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
