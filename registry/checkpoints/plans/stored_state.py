"""A checkpoint's state variables in Spark's stored form, with its wrapping of map keys and of values with a TTL."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

from registry.checkpoints.files import CheckpointFiles
from registry.checkpoints.logs import OperatorInfo, read_operator_info
from registry.checkpoints.model import (
    EVOLVING,
    KINDS,
    UNUSED_DEFAULT,
    Checkpoint,
    Operator,
    StateVariable,
    internal_meaning,
)
from registry.checkpoints.plans.model import PlannedState, StatePlan
from registry.checkpoints.reader import is_ttl_wrapped
from registry.checkpoints.schema_files import Family, StoredSchemas, operator_history
from registry.errors import InvalidCheckpoint, InvalidInput
from registry.formats.policies.spark_state import PlannedVariable, StoredVariable, StoredVersion, parse_struct
from registry.formats.policies.spark_state.restart_plan import mismatches

_EMPTY: Final[Mapping[str, Any]] = {"type": "struct", "fields": []}
# Families that Spark keeps next to a variable, by kind and by whether entries expire.
_BESIDE: Final[Mapping[tuple[str, bool], tuple[str, ...]]] = {
    ("value", True): ("$ttl_",),
    ("map", True): ("$ttl_",),
    ("list", False): ("$rowCounter_",),
    ("list", True): ("$ttl_", "$min_", "$count_", "$rowCounter_"),
}


@dataclass(frozen=True)
class StoredState:
    """An operator, its variables by name, and the content of its schema files, oldest first."""

    operator: Operator
    variables: Mapping[str, StateVariable]
    history: tuple[StoredSchemas, ...]
    last_batch: int | None = None
    info: OperatorInfo | None = None

    @cached_property
    def newest(self) -> Mapping[str, Family]:
        """Return the families of the newest schema file by name."""
        return {family.name: family for family in self.history[-1].content.families} if self.history else {}

    @cached_property
    def committed(self) -> Mapping[str, Family]:
        """Return the families of the newest schema file of a committed batch, by name."""
        files = [file for file in self.history if self.is_committed(file)]
        return {family.name: family for family in files[-1].content.families} if files else {}

    def kind_of(self, name: str) -> str:
        """Return a variable's kind in the metadata that Spark compares with at a restart; empty if it has none."""
        return KINDS.get(self.info.variables.get(name, ("", False))[0], "") if self.info else ""

    def had_ttl(self, name: str) -> bool | None:
        """Return whether rows of the last committed batch expire; None if it lacks the variable."""
        family = self.committed.get(name)
        return is_ttl_wrapped(family.value_schema) if family else None

    def is_committed(self, file: StoredSchemas) -> bool:
        """Return whether a committed batch wrote a schema file."""
        return file.batch is None or self.last_batch is None or file.batch <= self.last_batch

    def stored(self) -> list[StoredVariable]:
        """Return all families that ever existed, with all their schemas."""
        versions: dict[str, list[StoredVersion]] = {}
        uncommitted: Counter[str] = Counter()
        for file in self.history:
            for family in file.content.families:
                listed = versions.setdefault(family.name, [])
                made = StoredVersion(family.value_id, family.key_schema, family.value_schema)
                if not listed or listed[-1] != made:
                    listed.append(made)
                    uncommitted[family.name] += not self.is_committed(file)
        current, committed = self.newest, self.committed
        return [
            StoredVariable(name, tuple(listed), name in current, uncommitted[name], name in committed)
            for name, listed in versions.items()
        ]


def read_state(files: CheckpointFiles, checkpoint: Checkpoint, number: int | None) -> StoredState:
    """Return the state of one operator: number `number`, else the only transformWithState, else the first.

    Raises InvalidCheckpoint for a query without state, and for one that hasn't committed a batch yet, whose state is
    unknown; InvalidInput if the operator is ambiguous.
    """
    if checkpoint.is_starting:
        raise InvalidCheckpoint(
            "this query is starting: no batch has been committed, so its state is not known; check again after the "
            "first commit"
        )
    operator = _operator(checkpoint, number)
    folder = str(operator.number)
    history = tuple(operator_history(files, folder, "default"))
    info = read_operator_info(files, folder, checkpoint.last_committed_batch)
    variables = {variable.name: variable for variable in operator.variables}
    return StoredState(operator, variables, history, checkpoint.last_committed_batch, info)


def _operator(checkpoint: Checkpoint, number: int | None) -> Operator:
    if not checkpoint.operators:
        raise InvalidCheckpoint("this query keeps no state, so a restart can't change it")
    listed = ", ".join(f"{operator.number} ({operator.description})" for operator in checkpoint.operators[:20])
    if number is not None:
        match = next((operator for operator in checkpoint.operators if operator.number == number), None)
        if match is None:
            raise InvalidInput(f"The checkpoint has no operator {number}; it has {listed}.")
        return match
    evolving = [operator for operator in checkpoint.operators if operator.name in EVOLVING]
    if len(evolving) > 1:
        raise InvalidInput(
            f'Several operators have state variables. Set "operator" in the plan to one of them: {listed}.'
        )
    return evolving[0] if evolving else checkpoint.operators[0]


def as_stored(plan: StatePlan, state: StoredState) -> list[PlannedVariable]:
    """Return the planned variables in Spark's stored form, with the families that Spark keeps next to them."""
    current = state.newest
    grouping = _grouping_key(state)
    made = [_wrapped(variable, grouping, ttl_of(variable, state)) for variable in plan.variables]
    names = set()
    declared = {variable.name for variable in plan.variables}
    if UNUSED_DEFAULT in current and UNUSED_DEFAULT not in state.variables and UNUSED_DEFAULT not in declared:
        names.add(UNUSED_DEFAULT)
    for variable in plan.variables:
        names |= {f"{prefix}{variable.name}" for prefix in _BESIDE.get((variable.kind, ttl_of(variable, state)), ())}
    names |= {name for name in current if "Timers_" in name and internal_meaning(name) is not None}
    expected = internal_families(state)
    for name in sorted(names):
        family = current.get(name)
        schemas = expected.get(name) or ((family.key_schema, family.value_schema) if family else None)
        made.append(PlannedVariable(name, *schemas) if schemas else _unknown(name))
    return made


def internal_families(state: StoredState) -> Mapping[str, tuple[Any, Any]]:
    """Return the (key, value) schemas of Spark's families for the variables and timers of the newest schema file."""
    grouping = _grouping_key(state)
    families = {
        name: make(grouping) for name, make in _TIMERS.items() if name in state.newest and grouping is not _EMPTY
    }
    for variable in state.variables.values():
        if variable.name in state.newest:
            key = _parsed(state.newest[variable.name].key_schema)
            for prefix in _BESIDE.get((variable.kind, variable.ttl), ()):
                families[f"{prefix}{variable.name}"] = _BESIDE_VARIABLES[prefix](key)
    return families


def internal_doubts(state: StoredState) -> Iterable[str]:
    """Describe Spark's families whose names or schemas differ from those that Spark writes next to the variables."""
    expected = internal_families(state)
    for name in sorted(expected.keys() - state.newest.keys()):
        yield f"{name} (an internal family of a variable, missing in the newest schema file)"
    for name in sorted(state.newest.keys() - expected.keys()):
        if name.startswith("$"):
            yield f"{name} (an internal family in the newest schema file without its variable)"
    for file in state.history:
        for family in file.content.families:
            schemas = expected.get(family.name)
            if schemas and schemas != (_parsed(family.key_schema), _parsed(family.value_schema)):
                yield f"{family.name} (its schemas in {file.name} are not the ones that Spark writes)"


def key_doubts(state: StoredState) -> Iterable[str]:
    """Describe variables whose key type differs between consecutive schema files: Spark lets no key change."""
    for before, after in pairwise(state.history):
        keys = {family.name: family.key_schema for family in before.content.families}
        for family in after.content.families:
            if internal_meaning(family.name) is not None or family.name not in keys:
                continue
            old, new = keys[family.name], family.key_schema
            if old != new and mismatches(parse_struct(_parsed(old)), parse_struct(_parsed(new))):
                yield f"{family.name} (its key type differs between {before.name} and {after.name})"


def metadata_doubts(state: StoredState) -> Iterable[str]:
    """Describe schema files that a committed batch wrote but the operator's metadata doesn't name."""
    named = {name for store in state.info.stores for name in store.schema_files} if state.info else set()
    for file in state.history if named else ():
        if file.name not in named and state.is_committed(file):
            yield (
                f"schema file {file.name} (not named by the newest operator metadata: newer metadata is missing in "
                f"state/{state.operator.number}/_metadata/v2; restore it from a copy)"
            )


def ttl_of(planned: PlannedState, state: StoredState) -> bool:
    """Return whether entries of a planned variable expire: by the plan, else as stored."""
    if planned.has_ttl is not None:
        return planned.has_ttl
    stored_variable = state.variables.get(planned.name)
    return stored_variable.ttl if stored_variable else False


def _unknown(name: str) -> PlannedVariable:
    return PlannedVariable(name, _EMPTY, _EMPTY)


def _grouping_key(state: StoredState) -> Any:
    """Return the grouping key's schema in the newest schema file; an empty one before the first file."""
    for variable in state.variables.values():
        if variable.name in state.newest:
            return _parsed(variable.newest.key_schema)
    return _EMPTY


def _wrapped(planned: PlannedState, grouping: Any, has_ttl: bool) -> PlannedVariable:
    key: Any = _adopted(planned.key, grouping) if planned.key is not None else grouping
    if planned.kind == "map":
        key = _struct(_nullable("key", key), _nullable("userKey", planned.user_key or _EMPTY))
    value: Any = planned.value
    if has_ttl:
        value = _struct(_nullable("value", value), _nullable("ttlExpirationMs", "long"))
    return PlannedVariable(planned.name, key, value)


def _adopted(planned: Any, stored: Any) -> Any:
    """Return a planned key with the stored one's nullability, which the query determines, not the declaration."""
    if not (isinstance(planned, Mapping) and isinstance(stored, Mapping)):
        return planned
    if planned.get("type") != "struct" or stored.get("type") != "struct":
        return planned
    listed = list(planned["fields"])
    for at, (new, old) in enumerate(zip(listed, stored["fields"], strict=False)):
        listed[at] = {**new, "nullable": old["nullable"], "type": _adopted(new["type"], old["type"])}
    return {**planned, "fields": listed}


def _nullable(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


def _struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def _parsed(schema: str) -> Any:
    return json.loads(schema)


def _counted(key: Any) -> tuple[Any, Any]:
    return key, _struct(_nullable("count", "long"))


def _earliest(key: Any) -> tuple[Any, Any]:
    return key, _struct(_nullable("expirationMs", "long"))


def _expiring(key: Any) -> tuple[Any, Any]:
    by_time = _struct(_nullable("expirationMs", "long"), _nullable("elementKey", key))
    return by_time, _struct(_nullable("__empty__", "void"))


def _timers_by_key(key: Any) -> tuple[Any, Any]:
    return _struct(_nullable("key", key), _EXPIRY), _struct(_nullable("__dummy__", "void"))


def _timers_by_time(key: Any) -> tuple[Any, Any]:
    return _struct(_EXPIRY, _nullable("key", key)), _struct(_nullable("__dummy__", "void"))


_EXPIRY: Final = {"name": "expiryTimestampMs", "type": "long", "nullable": False, "metadata": {}}
#: the families of Spark 4.0 to 4.2 next to a variable, by name prefix: from the variable's key to the schemas
_BESIDE_VARIABLES: Final[Mapping[str, Callable[[Any], tuple[Any, Any]]]] = {
    "$rowCounter_": _counted,
    "$count_": _counted,
    "$min_": _earliest,
    "$ttl_": _expiring,
}
#: the same for timers, from the grouping key
_TIMERS: Final[Mapping[str, Callable[[Any], tuple[Any, Any]]]] = {
    "$procTimers_keyToTimestamp": _timers_by_key,
    "$procTimers_timestampToKey": _timers_by_time,
    "$eventTimers_keyToTimestamp": _timers_by_key,
    "$eventTimers_timestampToKey": _timers_by_time,
}
