"""A plan as a JSON document.

    {"language": "python", "operator": 0, "time_mode": "ProcessingTime",
     "variables": [{"name": "totals", "kind": "value", "value_schema": "orders BIGINT, note STRING", "ttl": false},
                   {"name": "by_status", "kind": "map", "user_key_schema": "status STRING", "value_schema": "n INT"}],
     "removed": ["old_totals"],
     "settings": {"spark.sql.streaming.stateStore.maxNumStateSchemaFiles": 256}}

Only `variables` is needed. `output_mode`, `api` and `operators` can be said as well. A schema is Spark's DDL or StructType JSON (as text or as an object), `key_schema` the
grouping key's if it changes; `ttl` is true, false or a number of milliseconds; what isn't said stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn, TypeVar

from registry.checkpoints.families import OPERATORS
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
)
from registry.errors import InvalidSchema
from registry.formats.json_source import DuplicateKey, SchemaProblem, check_text, decode, invalid
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
)
_VARIABLE_KEYS: Final = ("name", "kind", "value_schema", "user_key_schema", "key_schema", "ttl")
MAX_SETTINGS: Final = 200
_T = TypeVar("_T", bound=str)


def parse_plan(text: str) -> StatePlan:
    """The plan in a JSON text; raises InvalidSchema that names the place in the document, with line and column."""
    check_text(text, "a plan of state variables")
    try:
        return read_plan(decode(text, json.JSONDecoder(object_pairs_hook=_object), _refuse_duplicate))
    except _Misplaced as error:
        raise invalid(SchemaProblem(error.message, error.pointer), text) from None


def read_plan(given: Any) -> StatePlan:
    """The plan in JSON values; raises InvalidSchema that names the place by its JSON Pointer."""
    values = _keyed(given, "", _KEYS)
    variables = tuple(
        _variable(each, f"/variables/{number}")
        for number, each in enumerate(_listed(values, "variables", required=True))
    )
    if not variables and not values.get("removed"):
        raise _Misplaced("the plan names no state variable", "/variables")
    seen: set[str] = set()
    for number, each in enumerate(variables):
        if each.name in seen:
            raise _Misplaced(f"{each.name!r} is there twice", f"/variables/{number}/name")
        seen.add(each.name)
    removed = tuple(_name(each, f"/removed/{number}") for number, each in enumerate(_listed(values, "removed")))
    both = next((number for number, name in enumerate(removed) if name in seen), None)
    if both is not None:
        raise _Misplaced(f"{removed[both]!r} is among the variables too", f"/removed/{both}")
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
    )


def read_schema(given: Any, pointer: str) -> Mapping[str, Any]:
    """A schema as StructType JSON values, from DDL, StructType JSON text or its values; raises InvalidSchema."""
    try:
        if isinstance(given, str) and not given.lstrip().startswith("{"):
            values: Any = parse_ddl(given)
        else:
            values = decode(given, json.JSONDecoder(), _refuse_duplicate) if isinstance(given, str) else given
        parse_struct(values)
    except _Misplaced:
        raise
    except InvalidSchema as error:
        raise _Misplaced(error.placed, pointer) from None
    except RecursionError:
        raise _Misplaced("the schema is nested too deep", pointer) from None
    made: Mapping[str, Any] = values
    return made


class _Misplaced(InvalidSchema):
    """What is wrong at a JSON Pointer of the plan, which its message begins with."""

    def __init__(self, message: str, pointer: str) -> None:
        super().__init__(f"{pointer or 'the plan'}: {message}", pointer=pointer)
        self.pointer = pointer


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise DuplicateKey
    return made


def _refuse_duplicate() -> NoReturn:
    raise InvalidSchema("an object of the plan has the same key twice")


def _keyed(given: Any, pointer: str, keys: Sequence[str]) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise _Misplaced(f"a JSON object is expected, found {_shown(given)}", pointer)
    unknown = next((key for key in given if key not in keys), None)
    if unknown is not None:
        raise _Misplaced(f"there is no key {str(unknown)[:60]!r} here; the keys are {', '.join(keys)}", pointer)
    return given


def _listed(values: Mapping[str, Any], key: str, *, required: bool = False) -> Sequence[Any]:
    found = values.get(key)
    if found is None and not required:
        return ()
    if not isinstance(found, list):
        raise _Misplaced(f"{key} must be a list, found {_shown(found)}", f"/{key}" if key in values else "")
    if len(found) > MAX_VARIABLES:
        raise _Misplaced(f"more than {MAX_VARIABLES:,} are listed", f"/{key}")
    return found


def _variable(given: Any, pointer: str) -> PlannedState:
    values = _keyed(given, pointer, _VARIABLE_KEYS)
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


def _name(given: Any, pointer: str) -> str:
    if not isinstance(given, str) or not given.strip() or len(given) > MAX_NAME:
        raise _Misplaced(f"a variable's name has 1 to {MAX_NAME:,} characters, found {_shown(given)}", pointer)
    if given.startswith("$"):
        raise _Misplaced(f"{given[:60]!r} can't be declared: names with $ are Spark's own", pointer)
    return given


def _ttl(given: Any, pointer: str) -> bool | None:
    if given is None or isinstance(given, bool):
        return given
    if isinstance(given, int) and given >= 0:
        return given > 0
    raise _Misplaced(f"ttl is true, false or milliseconds, found {_shown(given)}", pointer)


def _settings(given: Any) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, Mapping) or len(given) > MAX_SETTINGS:
        raise _Misplaced(f"settings are an object of at most {MAX_SETTINGS} names and values", "/settings")
    made = {}
    for name, value in given.items():
        if not isinstance(value, str | int | bool):
            raise _Misplaced(
                f"{str(name)[:80]!r} is set to {_shown(value)}; a text, number or truth is expected", "/settings"
            )
        made[str(name)] = str(value).lower() if isinstance(value, bool) else str(value)
    return made


def _operator(given: Any) -> int | None:
    if given is None or (isinstance(given, int) and not isinstance(given, bool) and 0 <= given < 2**31):
        return given
    raise _Misplaced(f"operator is the number of a stateful operator, found {_shown(given)}", "/operator")


def _operators(values: Mapping[str, Any]) -> tuple[str, ...] | None:
    if values.get("operators") is None:
        return None
    known = tuple(sorted(set(OPERATORS.values())))
    listed = _listed(values, "operators")
    return tuple(_one_of(each, known, f"/operators/{number}") for number, each in enumerate(listed))


def _choice(values: Mapping[str, Any], key: str, known: Sequence[_T]) -> _T | None:
    return _one_of(values[key], known, f"/{key}") if values.get(key) else None


def _one_of(given: Any, known: Sequence[_T], pointer: str) -> _T:
    found = next((each for each in known if each == given), None)
    if found is None:
        raise _Misplaced(f"it is one of {', '.join(known)}, not {_shown(given)}", pointer)
    return found


def _shown(given: Any) -> str:
    if given is None:
        return "nothing"
    if isinstance(given, str | int | float):
        return repr(given)[:60]
    return "a list" if isinstance(given, list) else "an object"
