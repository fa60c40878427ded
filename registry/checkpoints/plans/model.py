"""The state that an application's next version declares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

Kind = Literal["value", "list", "map"]
Language = Literal["python", "scala"]
KINDS: Final[tuple[Kind, ...]] = ("value", "list", "map")
LANGUAGES: Final[tuple[Language, ...]] = ("python", "scala")
TIME_MODES: Final = ("None", "ProcessingTime", "EventTime")  # as the application names them
OUTPUT_MODES: Final = ("Append", "Update", "Complete")
#: the methods of PySpark's API, by the names of Spark's operators; Scala has one
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

    `key` is the grouping key's, None where it stays as it is; `user_key` a map's. `has_ttl` is None where the plan
    doesn't say: then it stays as it is. `place` is where in the plan the variable stands.
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
    """What a restart would bring.

    `removed` are the variables that the next version calls `deleteIfExists` for; `settings` Spark's, by full name, as
    the next start sets them; `operator` the number of the stateful operator, None where there is one alone.
    `operators` describes all stateful operators of the next version in the order of their numbers, as `OPERATORS` of
    `registry.checkpoints.families` does. None is what stays as it is: `language`, `time_mode`, `output_mode`, `api`
    (one of APIS), `operators`.
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
