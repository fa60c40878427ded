"""A plan as a JSON document, parsed from text or generated from a checkpoint's current state.

    {"language": "python", "operator": 0, "time_mode": "ProcessingTime",
     "variables": [{"name": "totals", "kind": "value", "value_schema": "orders BIGINT, note STRING", "ttl": false},
                   {"name": "by_status", "kind": "map", "user_key_schema": "status STRING", "value_schema": "n INT"}],
     "removed": ["old_totals"],
     "settings": {"spark.sql.streaming.stateStore.maxNumStateSchemaFiles": 256}}

Only `variables` is required. `query` and `running`, the descriptions of the next and the running version by
`schemadesk_spark`, replace it where the query has no state variables; the document may also be such a description
itself. `output_mode`, `api`, `operators` and `sources` are also optional. A schema is Spark's DDL or
StructType JSON (as text or as an object); `key_schema` is the grouping key's, if it changes; `ttl` is true, false or a
number of milliseconds. Omitted values stay as they are.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NoReturn, TypeVar

from registry.checkpoints.files import CheckpointFiles
from registry.checkpoints.logs import CHECKPOINT_FORMAT
from registry.checkpoints.model import OPERATORS, Checkpoint, QuerySource, StateVariable
from registry.checkpoints.object_store import ObjectStore
from registry.checkpoints.plans.ddl import parse_ddl
from registry.checkpoints.plans.model import (
    APIS,
    KINDS,
    LANGUAGES,
    MAX_NAME,
    MAX_VARIABLES,
    OUTPUT_MODES,
    TIME_MODES,
    PlannedState,
    StatePlan,
    to_ddl,
)
from registry.checkpoints.plans.queries import MARK, Description, read_description
from registry.checkpoints.plans.rules import SPARK_TIME_MODES, language_of, operators_of, output_mode_of, time_mode_of
from registry.checkpoints.plans.sources import PlannedSource, with_folders
from registry.checkpoints.plans.stored_state import StoredState, read_state
from registry.checkpoints.reader import read_checkpoint
from registry.errors import InvalidCheckpoint, InvalidSchema
from registry.formats.json_pointer import SchemaProblem, check_text, decode, invalid, object_of
from registry.formats.policies.spark_state import parse_struct

_KEYS: Final = (
    "variables",
    "removed",
    "settings",
    "language",
    "operator",
    "time_mode",
    "output_mode",
    "api",
    "operators",
    "sources",
    "query",
    "running",
)
_SOURCE_KEYS: Final = ("kind", "path", "topics")
_VARIABLE_KEYS: Final = ("name", "kind", "value_schema", "user_key_schema", "key_schema", "ttl")
MAX_SETTINGS: Final = 200
_T = TypeVar("_T", bound=str)


def parse_plan(text: str) -> StatePlan:
    """Parse a plan in JSON text; raises InvalidSchema with the JSON Pointer, line and column."""
    check_text(text, "a plan of state variables")
    try:
        return read_plan(decode(text, json.JSONDecoder(object_pairs_hook=object_of), _refuse_duplicate))
    except _Misplaced as error:
        raise invalid(SchemaProblem(error.message, error.pointer), text) from None


def read_plan(document: Any) -> StatePlan:
    """Parse a plan in JSON values; raises InvalidSchema with the JSON Pointer."""
    if isinstance(document, Mapping) and MARK in document:
        document = {"query": document}
    values = _keyed(document, "", _KEYS)
    query, running = (_description(values, key) for key in ("query", "running"))
    variables = tuple(
        _variable(entry, f"/variables/{number}")
        for number, entry in enumerate(_listed(values, "variables", required=query is None))
    )
    if not variables and not values.get("removed") and query is None:
        raise _Misplaced("the plan has no state variables", "/variables")
    names: set[str] = set()
    for number, entry in enumerate(variables):
        if entry.name in names:
            raise _Misplaced(f"{entry.name!r} is listed twice", f"/variables/{number}/name")
        names.add(entry.name)
    removed = tuple(_name(entry, f"/removed/{number}") for number, entry in enumerate(_listed(values, "removed")))
    both = next((number for number, name in enumerate(removed) if name in names), None)
    if both is not None:
        raise _Misplaced(f"{removed[both]!r} is also listed in the variables", f"/removed/{both}")
    return StatePlan(
        variables=variables,
        removed=tuple(dict.fromkeys(removed)),
        settings=_settings(values.get("settings")),
        language=_choice(values, "language", LANGUAGES),
        operator=_operator(values.get("operator")),
        time_mode=_choice(values, "time_mode", TIME_MODES),
        output_mode=_choice(values, "output_mode", OUTPUT_MODES),
        api=_choice(values, "api", tuple(APIS)),
        operators=_operators(values),
        sources=None if values.get("sources") is None else read_sources(_listed(values, "sources"), "/sources"),
        query=query,
        running=running,
    )


def read_schema(schema: Any, pointer: str) -> Mapping[str, Any]:
    """Return a schema as StructType JSON values, from DDL, JSON text or JSON values; raises InvalidSchema."""
    try:
        if isinstance(schema, str) and not schema.lstrip().startswith("{"):
            values: Any = parse_ddl(schema)
        else:
            values = decode(schema, json.JSONDecoder(), _refuse_duplicate) if isinstance(schema, str) else schema
        parse_struct(values)
    except _Misplaced:
        raise
    except InvalidSchema as error:
        raise _Misplaced(f"{error.message}{_within(schema, error)}", pointer) from None
    except RecursionError:
        raise _Misplaced("the schema is nested too deeply", pointer) from None
    made: Mapping[str, Any] = values
    return made


def _within(schema: Any, error: InvalidSchema) -> str:
    """Return the position in the schema's text; the position in the plan is given separately."""
    if error.line is None or not isinstance(schema, str):
        return ""
    line = f"line {error.line}, " if "\n" in schema.strip() else ""
    return f", at {line}character {error.column} of the schema"


class _Misplaced(InvalidSchema):
    """An error at a JSON Pointer of the plan, which starts its message."""

    def __init__(self, message: str, pointer: str) -> None:
        super().__init__(f"{pointer or 'the plan'}: {message}", pointer=pointer)
        self.pointer = pointer


def _refuse_duplicate() -> NoReturn:
    raise InvalidSchema("an object of the plan has the same key twice")


def _keyed(value: Any, pointer: str, keys: Sequence[str]) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _Misplaced(f"a JSON object is expected, found {_shown(value)}", pointer)
    unknown = next((key for key in value if key not in keys), None)
    if unknown is not None:
        raise _Misplaced(f"{str(unknown)[:60]!r} is not a key here; the keys are {', '.join(keys)}", pointer)
    return value


def _listed(values: Mapping[str, Any], key: str, *, required: bool = False) -> Sequence[Any]:
    entries = values.get(key)
    if entries is None and not required:
        return ()
    if not isinstance(entries, list):
        raise _Misplaced(f"{key} must be a list, found {_shown(entries)}", f"/{key}" if key in values else "")
    if len(entries) > MAX_VARIABLES:
        raise _Misplaced(f"more than {MAX_VARIABLES:,} are listed", f"/{key}")
    return entries


def _variable(entry: Any, pointer: str) -> PlannedState:
    values = _keyed(entry, pointer, _VARIABLE_KEYS)
    name = _name(values.get("name"), f"{pointer}/name" if "name" in values else pointer)
    kind = _one_of(values.get("kind", "value"), KINDS, f"{pointer}/kind")
    if values.get("value_schema") is None:
        raise _Misplaced(f"{name!r} has no value_schema", pointer)
    if (kind == "map") is (values.get("user_key_schema") is None):
        needs = "a map needs a user_key_schema" if kind == "map" else f"a {kind} has no user_key_schema"
        raise _Misplaced(needs, pointer)
    schemas = {
        key: read_schema(values[key], f"{pointer}/{key}")
        for key in ("value_schema", "user_key_schema", "key_schema")
        if values.get(key) is not None
    }
    return PlannedState(
        name=name,
        kind=kind,
        value=schemas["value_schema"],
        user_key=schemas.get("user_key_schema"),
        key=schemas.get("key_schema"),
        has_ttl=_ttl(values.get("ttl"), f"{pointer}/ttl"),
        place=pointer,
    )


def _name(name: Any, pointer: str) -> str:
    if not isinstance(name, str) or not name.strip() or len(name) > MAX_NAME:
        raise _Misplaced(f"a variable name must have 1 to {MAX_NAME:,} characters, found {_shown(name)}", pointer)
    if name.startswith("$"):
        raise _Misplaced(f"{name[:60]!r} can't be declared: names with $ are reserved for Spark", pointer)
    return name


def _ttl(ttl: Any, pointer: str) -> bool | None:
    if ttl is None or isinstance(ttl, bool):
        return ttl
    if isinstance(ttl, int) and ttl >= 0:
        return ttl > 0
    raise _Misplaced(f"ttl must be true, false or milliseconds, found {_shown(ttl)}", pointer)


def _settings(entries: Any) -> dict[str, str]:
    if entries is None:
        return {}
    if not isinstance(entries, Mapping) or len(entries) > MAX_SETTINGS:
        raise _Misplaced(f"settings must be an object of at most {MAX_SETTINGS} names and values", "/settings")
    made = {}
    for name, value in entries.items():
        if not isinstance(value, str | int | bool):
            raise _Misplaced(
                f"{str(name)[:80]!r} is set to {_shown(value)}; a text, number or boolean is expected", "/settings"
            )
        made[str(name)] = str(value).lower() if isinstance(value, bool) else str(value)
    return made


def _operator(number: Any) -> int | None:
    if number is None or (isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 2**31):
        return number
    raise _Misplaced(f"operator must be the number of a stateful operator, found {_shown(number)}", "/operator")


def _operators(values: Mapping[str, Any]) -> tuple[str, ...] | None:
    if values.get("operators") is None:
        return None
    descriptions = tuple(sorted(set(OPERATORS.values())))
    listed = _listed(values, "operators")
    return tuple(_one_of(entry, descriptions, f"/operators/{number}") for number, entry in enumerate(listed))


def _description(values: Mapping[str, Any], key: str) -> Description | None:
    if values.get(key) is None:
        return None
    try:
        return read_description(values[key], f"/{key}")
    except InvalidSchema as error:
        pointer = str(error.details.get("pointer", f"/{key}"))
        raise _Misplaced(error.message.removeprefix(f"{pointer}: "), pointer) from None


def read_sources(entries: Sequence[Any], pointer: str) -> tuple[PlannedSource, ...]:
    """Return sources from JSON values: each has a kind, and a path or topics where it reads files or Kafka."""
    return tuple(_source(entry, f"{pointer}/{number}") for number, entry in enumerate(entries))


def _source(entry: Any, pointer: str) -> PlannedSource:
    values = _keyed(entry, pointer, _SOURCE_KEYS)
    kind, path, topics = values.get("kind"), values.get("path", ""), values.get("topics", [])
    if not (isinstance(kind, str) and isinstance(path, str) and isinstance(topics, list)):
        raise _Misplaced("a source has a kind (a text), and may have a path (a text) and topics (a list)", pointer)
    return PlannedSource(kind, path, tuple(map(str, topics)))


def _choice(values: Mapping[str, Any], key: str, choices: Sequence[_T]) -> _T | None:
    return _one_of(values[key], choices, f"/{key}") if values.get(key) else None


def _one_of(value: Any, choices: Sequence[_T], pointer: str) -> _T:
    choice = next((candidate for candidate in choices if candidate == value), None)
    if choice is None:
        raise _Misplaced(f"it must be one of {', '.join(choices)}, not {_shown(value)}", pointer)
    return choice


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, str | int | float):
        return repr(value)[:60]
    return "a list" if isinstance(value, list) else "an object"


def plan_as_is(
    path: str,
    allowed_roots: Iterable[str | os.PathLike[str]],
    operator: int | None = None,
    *,
    store: ObjectStore | None = None,
) -> str:
    """Return a plan document, as JSON text, that declares a checkpoint's state variables unchanged.

    Raises InvalidCheckpoint, also if the operator has no state variables of the user's; InvalidInput if the operator is
    ambiguous.
    """
    roots = tuple(allowed_roots)
    files = CheckpointFiles(path, roots, store=store)
    checkpoint = with_folders(files, read_checkpoint(path, roots, store=store))
    state = read_state(files, checkpoint, operator)
    listed = [
        _present_variable(variable)
        for variable in state.operator.variables
        if variable.removed_at is None and variable.kind in KINDS
    ]
    if not listed:
        raise InvalidCheckpoint(
            f"operator {state.operator.number} ({state.operator.description}) has no state variables that a plan "
            "can declare"
        )
    return json.dumps(_whole(checkpoint, state) | {"variables": listed}, indent=2, ensure_ascii=False)


def _whole(checkpoint: Checkpoint, state: StoredState) -> dict[str, Any]:
    """Return the plan's keys for everything else that Spark compares besides the variables."""
    operator = state.operator
    document: dict[str, Any] = {"operator": operator.number} if len(checkpoint.operators) > 1 else {}
    document["operators"] = list(operators_of(checkpoint))
    document["sources"] = [_present_source(source) for source in checkpoint.sources]
    document["language"] = language_of(operator)
    api = next((name for name, spark_name in APIS.items() if spark_name == operator.name), None)
    if api is not None:
        document["api"] = api
    mode = time_mode_of(state)
    time_mode = next((name for name in TIME_MODES if SPARK_TIME_MODES.get(name, name) == mode), None)
    if time_mode is not None:
        document["time_mode"] = time_mode
    if output_mode_of(state) in OUTPUT_MODES:
        document["output_mode"] = output_mode_of(state)
    if checkpoint.format_version not in (None, 1):
        document["settings"] = {CHECKPOINT_FORMAT: checkpoint.format_version}
    return document


def _present_source(source: QuerySource) -> dict[str, Any]:
    path = {"path": source.folder} if source.folder else {}
    return {"kind": source.kind} | path | ({"topics": list(source.topics)} if source.topics else {})


def _present_variable(variable: StateVariable) -> dict[str, Any]:
    newest = variable.newest
    made: dict[str, Any] = {"name": variable.name, "kind": variable.kind}
    if newest.map_key_schema is not None:
        made["user_key_schema"] = to_ddl(json.loads(newest.map_key_schema))
    made["value_schema"] = to_ddl(json.loads(newest.value_schema))
    return made | ({"ttl": True} if variable.ttl else {})
