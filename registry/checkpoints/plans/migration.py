"""The way out of a restart that isn't safe: a script that carries the state over to a new checkpoint, where one can.

The script is `schemadesk_spark/state_migration.py` with a plan made here: which field of the new state comes from which
field of the old one, by the expressions of both releases. Names and schemas are in it as Python literals only.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from pprint import pformat
from typing import Any, Final

from registry.checkpoints.logs import CHECKPOINT_FORMAT
from registry.checkpoints.model import EVOLVING, Checkpoint, Operator, StateVariable
from registry.checkpoints.plans.model import APIS, SCALA_OPERATOR, PlannedState, StateCheck, StatePlan
from registry.checkpoints.plans.operators import by_field, changes_of_rows
from registry.checkpoints.plans.queries import DescribedOperator, Description, Meaning
from registry.checkpoints.plans.rules import SPARK_TIME_MODES, output_mode_of, time_mode_of
from registry.checkpoints.plans.state_types import can_order, empty_fields, is_number, keeps_meaning
from registry.checkpoints.plans.stored_state import StoredState, ttl_of
from registry.errors import first_few
from registry.formats.policies.spark_state import StructType, parse_struct
from registry.formats.policies.spark_state.struct_types import Atomic, SparkType, spark_json

_SOURCE: Final = Path(__file__).parents[3] / "schemadesk_spark" / "state_migration.py"
_MARK: Final = "from __future__ import annotations\n"
#: operators whose state a seeding query can write
_SEEDED: Final = ("stateStoreSave", "dedupe", "dedupeWithinWatermark")
#: rules of changes with which Spark doesn't start the query on any checkpoint
STARTS_NOWHERE: Final = frozenset(
    {
        "ASYNC_PROGRESS_REFUSED",
        "ENCODING_NOT_SUPPORTED",
        "MUST_BE_NULLABLE",
        "NAMES_DIFFER_IN_CASE",
        "NO_AVRO_FORM",
        "QUERY_REFUSED",
        "TTL_NEEDS_PROCESSING_TIME",
        "TYPE_NOT_READ_BACK",
        "VARIABLE_NAME_REFUSED",
    }
)
#: rules of changes after which old state or old offsets are of no use
USELESS: Final[Mapping[str, str]] = {
    **dict.fromkeys(STARTS_NOWHERE, "Spark doesn't start the next release on any checkpoint"),
    **dict.fromkeys(("CHECKPOINT_DAMAGED", "SCHEMA_FILE_MISSING"), "the checkpoint is damaged"),
    **dict.fromkeys(("SOURCES_ADDED_OR_REMOVED", "SOURCE_KIND_CHANGED"), "the offsets belong to other sources"),
    **dict.fromkeys(("SOURCE_FOLDER_CHANGED", "SOURCE_FOLDER_READ_AGAIN"), "the offsets belong to another folder"),
    **dict.fromkeys(
        ("TOPICS_REMOVED", "TOPICS_REMOVED_SILENTLY", "TOPIC_RECREATED"), "the offsets belong to other topics"
    ),
    **dict.fromkeys(
        ("OTHER_GROUPS_KEPT", "WATERMARK_REMOVED"), "the old state lacks groups that the next release keeps"
    ),
    "ASYNC_PROGRESS_REPEATS": "the offsets are older than the output",
    "SINK_NOT_RECOVERED": "the memory sink starts empty",
    "ROWS_OF_STATE_CHANGED": "the state was made of other rows",
    **dict.fromkeys(("SINK_FOLDER_CHANGED", "SINK_FORMAT_CHANGED"), "the output so far is in another place or form"),
    "STATE_ADDED": "the checkpoint has no state",
}
#: aggregate → of each of its fields: how two values become one, and the value without rows
_FIELDS: Final[Mapping[str, tuple[tuple[str, object], ...]]] = {
    "sum": (("sum", None), ("and", True)),  # the second one only for decimals: whether it is empty
    "count": (("sum", 0),),
    "avg": (("sum", 0), ("sum", 0)),
    "min": (("min", None),),
    "max": (("max", None),),
    "first": (("", None), ("", False)),
    "last": (("", None), ("", False)),
}
_CALL: Final = re.compile(r"(?P<name>\w+)\((?P<argument>.*)\)")
_CAST: Final = re.compile(r"cast\((?P<inner>.*) as (?P<type>[a-z]+(?:\(\d+,\d+\))?)\)")
_TIME_ZONE: Final = "spark.sql.session.timeZone"
_WHOLE: Final = ("byte", "short", "integer", "long")


@dataclass(frozen=True, slots=True)
class Migration:
    """A script, or why there is none; `lost` is what starts empty on the new checkpoint."""

    script: str = ""
    lost: tuple[str, ...] = ()
    why_not: str = ""


class _Impossible(Exception):
    """The state can't be carried over; says why."""


def make_migration(checkpoint: Checkpoint, state: StoredState, plan: StatePlan, report: StateCheck) -> Migration:
    """Return the script that carries the state over to the planned release. `plan` has what its description says."""
    try:
        document, lost = _document(checkpoint, state, plan, report)
    except _Impossible as reason:
        return Migration(why_not=str(reason))
    recorded = checkpoint.settings[-1].settings if checkpoint.settings else {}
    old = {**recorded, CHECKPOINT_FORMAT: str(checkpoint.format_version or 1)}
    if plan.query and _TIME_ZONE in plan.query.settings:
        old[_TIME_ZONE] = plan.query.settings[_TIME_ZONE]
    new = {name: value for name, value in plan.settings.items() if name.startswith("spark.sql.")}
    changed = {name: value for name, value in new.items() if old.get(name) != value}
    settings = {"old_settings": old, "settings": changed}
    whole = {"operator": state.operator.number, **document, **settings}
    return Migration(_script(checkpoint.path, whole, lost), lost)


def _document(
    checkpoint: Checkpoint, state: StoredState, plan: StatePlan, report: StateCheck
) -> tuple[dict[str, Any], tuple[str, ...]]:
    rules = [change.rule for change in report.all_changes]
    useless = next((reason for rule, reason in USELESS.items() if rule in rules), None)
    if useless:
        raise _Impossible(useless)
    if len(checkpoint.operators) != 1 or len(plan.operators or (1,)) != 1:
        raise _Impossible("a script carries over the state of one stateful operator, and the query has several or none")
    if any(not source.name.isdigit() for source in checkpoint.sources):
        raise _Impossible("the sources have names")
    kinds = [source.kind for source in checkpoint.sources]
    if plan.sources is not None and [source.kind for source in plan.sources] != kinds:
        raise _Impossible("the offsets belong to other sources")
    planned = plan.query.operators[0] if plan.query and plan.query.operators else None
    if planned is not None and planned.name not in EVOLVING and state.operator.name not in EVOLVING:
        return _of_operator(checkpoint, state.operator, planned, plan.running)
    if plan.variables:
        return _of_variables(state, plan, report)
    raise _Impossible("the state of one kind of operator can't be used by the other")


# Aggregation and deduplication.


def _of_operator(
    checkpoint: Checkpoint, stored: Operator, planned: DescribedOperator, running: Description | None
) -> tuple[dict[str, Any], tuple[str, ...]]:
    if not stored.variables:
        raise _Impossible("the checkpoint is damaged")
    for operator in (stored, planned):
        if operator.name not in _SEEDED:
            raise _Impossible(f"no script can write the state of this operator ({operator.description})")
    if planned.name == "dedupeWithinWatermark" and stored.name != planned.name:
        raise _Impossible("the old state has no times at which keys expire")
    recorded = checkpoint.settings[-1].settings if checkpoint.settings else {}
    version = recorded.get("spark.sql.streaming.aggregation.stateFormatVersion", "2")
    if planned.name == "stateStoreSave" and (version != "2" or planned.state_format != 2):
        raise _Impossible("it needs state format 2 of aggregations, before and after")
    before = running.operators[0] if running and len(running.operators) == 1 else None
    if before is None and stored.name != "dedupe":
        raise _Impossible("what the old state means isn't known: give the description of the running query")
    if before is not None and (before.name != stored.name or not _is_of(before, stored)):
        raise _Impossible("the description of the running query isn't that of this checkpoint")
    if before is not None and changes_of_rows(before) != changes_of_rows(planned):
        raise _Impossible("the state was made of other rows")
    old_key = parse_struct(stored.variables[0].newest.key_schema)
    old_keys = list(by_field(before.keys)) if before else [field.name for field in old_key.fields]
    key, value = planned.stores["default"]
    names = list(by_field(planned.keys)) if before else [field.name for field in key.fields]
    if len(names) != len(key.fields):
        raise _Impossible("the description doesn't say what each field of the key means")
    if len(old_keys) != len(old_key.fields):
        raise _Impossible("the description of the running query isn't that of this checkpoint")
    keys = [_key(name, old_keys, old_key, field.type) for name, field in zip(names, key.fields, strict=True)]
    kept = {key["from"] for key in keys}
    may_merge = len(kept) < len(old_keys) or any(
        key["type"] != spark_json(old_key.fields[key["from"]].type) for key in keys
    )
    types = [field.type for field in value.fields]
    fields, lost = ([], []) if planned.name == "dedupe" else _state_fields(before, planned, types, stored)
    merges = may_merge and all(field["merge"] for field in fields)
    if len(kept) < len(old_keys) and not merges:
        raise _Impossible("keys fall together, and the state of several of them can't be added up")
    has_expired = running is None or bool(running.watermarks)
    if has_expired and (len(kept) < len(old_keys) or stored.name != planned.name):
        lost.append("the keys that the watermark has removed")
    document = {"kind": planned.name, "keys": keys, "fields": fields, "merges": merges}
    return document, tuple(lost)


def _is_of(before: DescribedOperator, stored: Operator) -> bool:
    """Return whether a description has as many fields as the stored state."""
    newest = stored.variables[0].newest
    sizes = [len(parse_struct(schema).fields) for schema in (newest.key_schema, newest.value_schema)]
    own = [len(struct.fields) for struct in before.stores.get("default", ())]
    return own == sizes and len(list(by_field(before.keys))) == sizes[0]


def _key(name: str, old_keys: Sequence[str], old_key: StructType, kind: SparkType) -> dict[str, Any]:
    """Return where a field of the key comes from; `exact` if the query itself doesn't cast it."""
    cast = _CAST.fullmatch(name)
    for text in (name, cast["inner"] if cast else name):
        if text in old_keys:
            at = old_keys.index(text)
            if text == name and not keeps_meaning(old_key.fields[at].type, kind):
                raise _Impossible(f"the key {name[:200]} is of another type, and how its old values read isn't known")
            return {"from": at, "type": spark_json(kind), "exact": text == name}
    raise _Impossible(f"the key {name[:200]} isn't in the old state")


def _state_fields(
    before: DescribedOperator | None, planned: DescribedOperator, types: Sequence[SparkType], stored: Operator
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return each field of the new state, and the aggregates that the old state doesn't determine."""
    if planned.name == "dedupeWithinWatermark":
        return [{"from": 0, "type": spark_json(types[0]), "initial": None, "merge": ""}], []
    assert before is not None
    old_types = [field.type for field in parse_struct(stored.variables[0].newest.value_schema).fields]
    starts, at = {}, 0
    for value in before.values:
        starts[value.expression] = (at, value.types)
        at += value.fields
    fields: list[dict[str, Any]] = []
    lost = []
    for value in planned.values:
        own = types[len(fields) : len(fields) + value.fields]
        if not all(map(can_order, own)):
            raise _Impossible(f"no script can write the state of {value.expression[:200]}")
        origin = _origin(value, starts, old_types, own)
        name = value.expression.partition("(")[0]
        if origin is None and name not in _FIELDS:
            raise _Impossible(f"{value.expression[:200]} isn't in the old state")
        lost += [value.expression] if origin is None else []
        fields += _fields_of(name, [spark_json(kind) for kind in own], origin)
    if lost and len(lost) == len(planned.values):
        raise _Impossible(f"the old state has none of {first_few(lost)}")
    return fields, lost


def _fields_of(name: str, types: Sequence[Any], origin: Sequence[dict[str, Any]] | None) -> Iterator[dict[str, Any]]:
    known = _FIELDS.get(name, ())
    for at, kind in enumerate(types):
        merge, initial = known[at] if at < len(known) else ("", None)
        if name == "sum" and len(types) == 2 and at == 0:
            initial = 0  # of decimals: whether it is empty is in the next field
        yield {"from": None, "type": kind, "initial": initial, "merge": merge, **(origin[at] if origin else {})}


Starts = Mapping[str, tuple[int, str]]


def _origin(
    value: Meaning, starts: Starts, types: Sequence[SparkType], new_types: Sequence[SparkType]
) -> list[dict[str, Any]] | None:
    """Return where the fields of an aggregate come from; None if the old state doesn't determine them.

    `starts` has where the fields of each old aggregate begin, and the types of its arguments where they matter.
    """
    if value.expression in starts:
        start, arguments = starts[value.expression]
        old_types = types[start : start + value.fields]
        if arguments != value.types or not all(map(keeps_meaning, old_types, new_types)):
            raise _Impossible(f"{value.expression[:200]} is of other types, and the state can't be converted")
        return [{"from": start + at, "initial": None, "exact": True} for at in range(value.fields)]
    call = _CALL.fullmatch(value.expression)
    if call is None:
        return None
    name, cast = call["name"], _CAST.fullmatch(call["argument"])
    for argument in (call["argument"], *([cast["inner"]] if cast else [])):
        old = {name: starts[f"{name}({argument})"][0] for name in _FIELDS if f"{name}({argument})" in starts}
        wanted = _wanted(name, old)
        if wanted is None:
            continue
        source = types[wanted[0]["from"]]
        if cast and argument == cast["inner"] and not _is_exact(source, cast["type"], name):
            return None
        if name in ("sum", "avg") and isinstance(source, Atomic) and source.decimal:
            return None  # two fields, whose precisions depend on each other
        return [wanted[0], {**wanted[0], "is_null": True}][: value.fields] if name == "sum" else wanted
    return None


def _wanted(name: str, old: Mapping[str, int]) -> list[dict[str, Any]] | None:
    """Return the old fields that an aggregate can be made of; `old` has where those of the same argument begin."""
    if name == "sum" and "sum" in old:
        return [{"from": old["sum"]}]
    if name == "sum" and "avg" in old:
        return [{"from": old["avg"], "count": old["avg"] + 1}]
    if name == "count" and ("count" in old or "avg" in old):
        return [{"from": old["count"] if "count" in old else old["avg"] + 1}]
    if name == "avg" and {"sum", "count"} <= old.keys():
        return [{"from": old["sum"]}, {"from": old["count"]}]
    if name in ("min", "max") and name in old:
        return [{"from": old[name]}]
    return None


def _is_exact(source: SparkType, target: str, name: str) -> bool:
    """Return whether an aggregate of the cast values follows from that of the values. A count doesn't: a cast can fail."""
    if name == "count" or not is_number(source) or not isinstance(source, Atomic):
        return False
    return target == "double" or (source.name in _WHOLE and target.startswith(("bigint", "decimal")))


# transformWithState.


def _of_variables(state: StoredState, plan: StatePlan, report: StateCheck) -> tuple[dict[str, Any], tuple[str, ...]]:
    if state.operator.name == SCALA_OPERATOR or plan.language == "scala":
        raise _Impossible("a script in Python can't write the state of Scala's transformWithState")
    if state.operator.name != APIS["transformWithState"] or plan.api not in (None, "transformWithState"):
        raise _Impossible("it needs the row API (transformWithState), before and after")
    live = {name: variable for name, variable in state.variables.items() if variable.removed_at is None}
    sources = {variable.name: _source(variable, plan, live) for variable in plan.variables}
    if not any(sources.values()):
        raise _Impossible("none of the planned variables is in the old state")
    time_mode = plan.time_mode or {spark: name for name, spark in SPARK_TIME_MODES.items()}.get(
        time_mode_of(state) or "", time_mode_of(state)
    )
    variables = [_variable(variable, sources[variable.name], state, report) for variable in plan.variables]
    used = {source.name for source in sources.values() if source}
    lost = [variable.name for variable in plan.variables if sources[variable.name] is None]
    for planned, made in zip(plan.variables, variables, strict=True):
        missing = _empty_fields(planned, sources[planned.name], made["renamed"])
        lost += [f"{planned.name}.{path}" for path in missing]
    lost += [name for name in live if name not in used and name not in plan.removed]
    key = next((variable.key for variable in plan.variables if variable.key is not None), None)
    stored_key = next(source.newest.key_schema for source in sources.values() if source)
    document = {
        "variables": variables,
        "key": key,
        "key_renamed": _key_names(stored_key, key),
        "time_mode": time_mode or "None",
        "output_mode": plan.output_mode or output_mode_of(state) or "Update",
    }
    return document, tuple(lost)


def _source(planned: PlannedState, plan: StatePlan, live: Mapping[str, StateVariable]) -> StateVariable | None:
    """Return the stored variable of a planned one: of the same name, else the only one that it can be renamed from."""
    same = live.get(planned.name)
    if same is not None:
        return same if same.kind == planned.kind else None
    names = {variable.name for variable in plan.variables}
    gone = [variable for variable in live.values() if variable.kind == planned.kind and variable.name not in names]
    new = [variable for variable in plan.variables if variable.kind == planned.kind and variable.name not in live]
    return gone[0] if len(gone) == len(new) == 1 else None


def _variable(
    planned: PlannedState, source: StateVariable | None, state: StoredState, report: StateCheck
) -> dict[str, Any]:
    changes = next((variable.changes for variable in report.variables if variable.name == planned.name), ())
    return {
        "name": planned.name,
        "from": source.name if source else None,
        "kind": planned.kind,
        "value": planned.value,
        "user_key": planned.user_key,
        "ttl": ttl_of(planned, state),
        "renamed": {item.path: item.before for item in changes if item.rule == "RENAME_SUSPECTED"},
        "key_renamed": _key_names(source.newest.map_key_schema, planned.user_key) if source else {},
    }


def _empty_fields(planned: PlannedState, source: StateVariable | None, renamed: Mapping[str, str]) -> list[str]:
    """Return the fields of a variable's values that the old state doesn't have."""
    if source is None:
        return []
    newest = source.newest
    try:
        for stored, key in ((newest.map_key_schema, planned.user_key), (newest.key_schema, planned.key)):
            if key is None or not stored:
                continue
            missing = list(empty_fields(parse_struct(stored), parse_struct(key), _key_names(stored, key)))
            if missing:
                raise ValueError(f"the key has another field ({first_few(missing)})")
        return list(empty_fields(parse_struct(newest.value_schema), parse_struct(planned.value), renamed))
    except ValueError as problem:
        raise _Impossible(f"{planned.name[:200]}: {problem}") from None


def _key_names(stored: str | None, planned: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the old name of each field of a key: by position if the names differ, as Spark compares them."""
    if planned is None or not stored:
        return {}
    old, new = ([field.name for field in parse_struct(schema).fields] for schema in (stored, planned))
    return {} if set(old) == set(new) or len(old) != len(new) else dict(zip(new, old, strict=True))


# The script.

_HEAD: Final = '''"""Carries the state of a stopped streaming query over to a new checkpoint for its next release.

1. Stop the query.
2. Check what is below: the places, as Spark reaches them, and where each part of the new state comes from ("from" and
   "renamed"; None starts empty). Fill in TTL_MS: times to live in milliseconds, as the next release declares them.
3. Run this file with spark-submit, or with a Python that has PySpark, of the Spark version that runs the query.
4. Start the next release with TARGET/checkpoint as its checkpointLocation.

The old checkpoint is only read; TARGET must not exist, or be empty. The next release continues at the source offsets of
the last committed batch. Its batches are numbered from 1: a sink that remembers the numbers of batches (files, Delta
with an application id, foreachBatch with a check of its own) needs another folder or application id. Times to live
begin again at the migration. The first rows of the old and of the new state are printed.
"""
'''
_MAIN: Final = """

if __name__ == "__main__":
    migrate(SparkSession.builder.appName("state migration").getOrCreate(), PLAN, CHECKPOINT, TARGET, TTL_MS)
"""


def _script(path: str, document: Mapping[str, Any], lost: Sequence[str]) -> str:
    """Return the script. Everything that comes from the checkpoint and the plan is a Python literal in it."""
    if path.startswith("s3://"):  # Hadoop's client has another name for it
        path = f"s3a{path[2:]}"
    ttl = {variable["name"]: None for variable in document.get("variables", ()) if variable["ttl"]}
    constants = {
        "CHECKPOINT": path,
        "TARGET": f"{path.rstrip('/')}-migrated",
        "TTL_MS": ttl,
        "STARTS_EMPTY": list(lost),
        "PLAN": json.loads(json.dumps(document)),
    }
    lines = [f"{name} = {pformat(value, width=110, sort_dicts=False)}\n" for name, value in constants.items()]
    return "".join([_HEAD, _MARK, "\n", *lines, _body(), _MAIN])


@cache
def _body() -> str:
    """Return the text of `schemadesk_spark.state_migration` after its docstring and its first import."""
    text = _SOURCE.read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text))
    return text.partition(_MARK)[2]
