"""The stateful operators of a streaming query, read from the physical plan that Spark's `explain` makes; runs nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from py4j.protocol import Py4JError

from schemadesk_spark.expressions import Columns, aliases_of, columns_of, items
from schemadesk_spark.functions import functions_of
from schemadesk_spark.static import static_data

Json = dict[str, Any]
#: nodes of a plan that don't change which rows reach an operator, or only by expressions that are described elsewhere
_NEUTRAL: Final = frozenset((
    "Project", "WholeStageCodegen", "InputAdapter", "ShuffleExchange", "Exchange", "Sort", "EventTimeWatermark",
    "HashAggregate", "ObjectHashAggregate", "SortAggregate", "MergingSessions", "UpdatingSessions", "Expand",
    "LocalLimit", "Coalesce", "UpdateEventTimeColumn", "Union", "ColumnarToRow", "StreamingRelation", "BroadcastExchange", "ReusedExchange", "AQEShuffleRead",
))  # fmt: skip
_RESTORES: Final = ("StateStoreRestoreExec", "SessionWindowStateStoreRestoreExec")
_NULL: Final = "void"
#: aggregates that keep hashes of their argument; others with hidden types keep it serialised, as a binary value
_HASHED: Final = ("HyperLogLogPlusPlus",)


def name_of(node: Any) -> str:
    """Return the name of a node's class."""
    return str(node.getClass().getSimpleName())


def read(node: Any, method: str) -> Any:
    """Return what a method of a node gives, None if this version of Spark doesn't have it."""
    try:
        return getattr(node, method)()
    except Py4JError:
        return None


def children(node: Any) -> list[Any]:
    """Return a node's children; an adaptive plan has its first plan as its only child."""
    return [node.inputPlan()] if name_of(node) == "AdaptiveSparkPlanExec" else list(items(node.children()))


def walk(node: Any) -> Iterator[Any]:
    """Yield the nodes of a plan, children first."""
    for child in children(node):
        yield from walk(child)
    yield node


class Plan:
    """A physical plan, with its columns resolved."""

    def __init__(self, session: Any, root: Any) -> None:
        self._session = session
        self._root = root
        self.columns = Columns()
        self._conditions: dict[int, str] = {}
        self._leaves = [node for node in walk(root) if not children(node)]
        for node in walk(root):
            self._define(node)

    def operators(self) -> list[Json]:
        """Return the stateful operators in the order of their numbers."""
        described = [self._operator(node) for node in walk(self._root) if _is_stateful(node)]
        return sorted(described, key=lambda operator: int(operator["number"]))

    def _define(self, node: Any) -> None:
        aggregates = read(node, "aggregateExpressions")
        if aggregates is not None:
            self._keep_conditions(aggregates)
            for aggregate, result in zip(items(aggregates), items(node.aggregateAttributes()), strict=True):
                self.columns.define_result(result, self._aggregate(aggregate))
        for method in ("projectList", "resultExpressions"):
            expressions = read(node, method)
            for alias in aliases_of(expressions) if expressions is not None else ():
                self.columns.define(alias, self.columns.meaning(alias))
        if name_of(node) == "ExpandExec":
            # Each row becomes one of every projection: windows that overlap, or the sets of a cube.
            projections = [list(map(self.columns.meaning, items(row))) for row in items(node.projections())]
            for (number, name), *meanings in zip(columns_of(node.output()), *projections, strict=True):
                self.columns.define_named(number, name, " or ".join(dict.fromkeys(meanings)))
        if name_of(node) == "UnionExec":
            for (number, name), *sides in zip(
                *(columns_of(each.output()) for each in (node, *children(node))), strict=True
            ):
                meanings = [self.columns.column(number_) for number_, _ in sides]
                self.columns.define_named(number, name, " or ".join(dict.fromkeys(meanings)))
        self._define_outputs(node)

    def _define_outputs(self, node: Any) -> None:
        prefix = f"{self._leaves.index(node)}." if len(self._leaves) > 1 and not children(node) else ""
        for number, name in columns_of(node.output()):
            if number not in self.columns:
                self.columns.define_named(number, name, f"{prefix}{name}")

    def _keep_conditions(self, aggregates: Any) -> None:
        """Keep which rows each aggregate counts: Spark tells it only where rows come in, not where it merges states."""
        for aggregate in items(aggregates):
            condition = aggregate.filter()
            if condition.isDefined():
                self._conditions[aggregate.resultId().id()] = self.columns.meaning(condition.get())

    def _aggregate(self, aggregate: Any) -> str:
        text = self.columns.expand(aggregate.aggregateFunction().toString())
        condition = self._conditions.get(aggregate.resultId().id())
        distinct = "distinct " if aggregate.isDistinct() else ""
        return f"{distinct}{text}" + (f" where {condition}" if condition else "")

    def _operator(self, node: Any) -> Json:
        spark_name = str(node.shortName())
        describe = _KINDS.get(spark_name, _with_keys)
        described = {
            "number": node.stateInfo().get().operatorId(),
            "name": spark_name,
            "keys": [],
            "values": [],
            "properties": {},
            "stores": {},
            "state_format": read(node, "stateFormatVersion"),
        }
        made = {**described, **describe(self, node), "input": list(self._input(node, "", self._key_columns(node)))}
        functions = [functions_of(self._session, each) for each in self._own_nodes(node)]
        digests = {"functions": " ".join(filter(None, functions))} if any(functions) else {}
        beside = ", ".join(sorted({text for each in self._own_nodes(node) for text in static_data(each)}))
        static = {"static data": beside} if beside else {}
        return {**made, "properties": {**made["properties"], **digests, **static}}

    def _own_nodes(self, node: Any) -> Iterator[Any]:
        """Yield an operator and what is between it and its sources, or the stateful operators below."""
        yield node
        for child in children(node):
            if not _is_stateful(child):
                yield from self._own_nodes(child)

    def _key_columns(self, node: Any) -> frozenset[int]:
        keys = read(node, "keyExpressions") or read(node, "groupingAttributes")
        return frozenset(number for number, _ in columns_of(keys)) if keys is not None else frozenset()

    def fields(self, expressions: Any) -> list[Json]:
        """Return named expressions as fields with their meaning."""
        return [_field(each, self.columns.meaning(each)) for each in items(expressions)]

    def output(self, node: Any) -> list[Json]:
        """Return the same for all columns of a node, whose schema has their names and types."""
        meanings = [self.columns.column(number) for number, _ in columns_of(node.output())]
        fields = json.loads(node.schema().json())["fields"]
        return [{**field, "expression": meaning} for field, meaning in zip(fields, meanings, strict=True)]

    def _input(self, node: Any, side: str, keys: frozenset[int]) -> Iterator[str]:
        """Yield what changes the rows between an operator and its sources, or the stateful operator below.

        `keys` are the ids of the columns that are grouping keys: a filter of these alone says so.
        """
        below = children(node)
        for number, child in enumerate(below):
            here = f"{side}{('left', 'right')[number]}: " if len(below) == 2 and name_of(node) != "UnionExec" else side
            if _is_stateful(child):
                continue
            yield from self._input(child, here, keys)
            kind = name_of(child).removesuffix("Exec")
            if kind == "Filter":
                columns = {number for number, _ in columns_of(child.condition().references().toSeq())}
                what = "filter of keys" if columns <= keys else "filter"
                yield f"{here}{what} {self.columns.meaning(child.condition())}"
            elif kind.endswith("Join"):
                yield f"{here}{self._static_join(child)}"
            elif children(child) and kind not in _NEUTRAL and name_of(child) not in _RESTORES:
                yield f"{here}{kind} {self.columns.expand(child.simpleString(1000))}"

    def _static_join(self, node: Any) -> str:
        """Return a join with data that isn't streaming, however Spark carries it out."""
        keys = [read(node, name) for name in ("leftKeys", "rightKeys")]
        sides = [", ".join(map(self.columns.meaning, items(each))) for each in keys if each is not None]
        condition = read(node, "condition")
        also = f", {self.columns.expand(condition.toString())}" if condition is not None else ""
        return f"join {node.joinType().toString()} {' = '.join(sides)}{also}"

    def aggregates(self, node: Any) -> list[Json]:
        """Return the aggregates that an operator keeps, each with the number of its fields in the state."""
        listed = next(each for each in reversed(list(walk(node))) if read(each, "aggregateExpressions") is not None)
        return [self._kept(each) for each in items(listed.aggregateExpressions())]

    def _kept(self, aggregate: Any) -> Json:
        """Return an aggregate; with the types of its arguments, where the state's schema doesn't show them."""
        function = aggregate.aggregateFunction()
        kept = {"expression": self._aggregate(aggregate), "fields": function.aggBufferSchema().length()}
        if name_of(function) not in _HASHED and "BINARY" not in function.aggBufferSchema().toDDL():
            return kept
        types = [child.dataType().catalogString() for child in items(function.children())]
        return {**kept, "types": ", ".join(types)}


def _is_stateful(node: Any) -> bool:
    return read(node, "stateInfo") is not None and name_of(node) not in _RESTORES


def _field(attribute: Any, meaning: str) -> Json:
    """Return a column, or the expression of a join's key, which has no name."""
    kind = json.loads(attribute.dataType().json())
    return {
        "name": read(attribute, "name") or "",
        "type": kind,
        "nullable": attribute.nullable(),
        "expression": meaning,
    }


def _struct(fields: list[Json], *more: tuple[str, str, bool]) -> Json:
    """Return a StructType of described fields, and of more fields by name, type and nullability."""
    made = [{key: field[key] for key in ("name", "type", "nullable")} for field in fields]
    made += [{"name": name, "type": kind, "nullable": nullable} for name, kind, nullable in more]
    return {"type": "struct", "fields": [{**field, "metadata": {}} for field in made]}


def _default(key: Json, value: Json) -> Json:
    return {"default": {"key": key, "value": value}}


def _aggregation(plan: Plan, node: Any) -> Json:
    keys = plan.fields(node.keyExpressions())
    value = json.loads(node.stateManager().getStateValueSchema().json())
    return {"keys": keys, "values": plan.aggregates(node), "stores": _default(_struct(keys), value)}


def _session(plan: Plan, node: Any) -> Json:
    keys = plan.fields(node.keyWithoutSessionExpressions())
    key = _struct(keys, ("sessionStartTime", "timestamp", False))
    window = plan.columns.meaning(node.sessionExpression())
    value = _struct(plan.output(node.child()))
    return {
        "keys": keys,
        "values": plan.aggregates(node),
        "properties": {"session": window},
        "stores": _default(key, value),
    }


def _deduplication(value: tuple[str, str, bool]) -> Callable[[Plan, Any], Json]:
    def describe(plan: Plan, node: Any) -> Json:
        keys = plan.fields(node.keyExpressions())
        return {"keys": keys, "stores": _default(_struct(keys), _struct([], value))}

    return describe


def _join(plan: Plan, node: Any) -> Json:
    stores, values = {}, []
    left, right = (plan.fields(keys) if keys is not None else [] for keys in (node.leftKeys(), node.rightKeys()))
    version = read(node, "stateFormatVersion") or 2
    for side, keys, child in (("left", node.leftKeys(), node.left()), ("right", node.rightKeys(), node.right())):
        numbered = [
            {"name": f"field{at}", "type": json.loads(key.dataType().json()), "nullable": key.nullable()}
            for at, key in enumerate(items(keys))
        ]
        columns = plan.output(child)
        matched = (("matched", "boolean", True),) if version > 1 else ()
        value = _struct(columns, *matched)
        stores[f"{side}-keyWithIndexToValue"] = {"key": _struct(numbered, ("index", "long", True)), "value": value}
        values += [{"expression": f"{side}: {column['expression']}", "fields": 1} for column in columns]
    full = node.condition().full()
    condition = plan.columns.meaning(full.get()) if full.isDefined() else ""
    keys = [
        {**key, "expression": f"{key['expression']} = {other['expression']}"}
        for key, other in zip(left, right, strict=True)
    ]
    properties = {"join": node.joinType().toString(), "condition": condition}
    return {"keys": keys, "values": values, "stores": stores, "properties": properties}


def _limit(plan: Plan, node: Any) -> Json:
    rows = read(node, "streamLimit")
    key, value = _struct([], ("key", _NULL, True)), _struct([], ("value", "long", True))
    return {"properties": {"limit": str(rows)}, "stores": _default(key, value)}


def _groups(plan: Plan, node: Any) -> Json:
    keys = plan.fields(node.groupingAttributes())
    value = json.loads(node.stateManager().stateSchema().json())
    state = value["fields"][0]["type"]
    columns = state["fields"] if isinstance(state, dict) and state.get("type") == "struct" else value["fields"]
    properties = {"timeout": node.timeoutConf().toString(), "output": node.outputMode().toString()}
    values = [{"expression": field["name"], "fields": 1} for field in columns]
    return {"keys": keys, "values": values, "properties": properties, "stores": _default(_struct(keys), value)}


def _with_keys(plan: Plan, node: Any) -> Json:
    """Describe transformWithState, whose variables only its code has, and operators of a later Spark."""
    keys = read(node, "groupingAttributes")
    modes = {"time": read(node, "timeMode"), "output": read(node, "outputMode")}
    return {
        "keys": plan.fields(keys) if keys is not None else [],
        "properties": {name: mode.toString() for name, mode in modes.items() if mode is not None},
    }


_KINDS: Final[Mapping[str, Callable[[Plan, Any], Json]]] = {
    "stateStoreSave": _aggregation,
    "sessionWindowStateStoreSaveExec": _session,
    "dedupe": _deduplication(("__dummy__", _NULL, True)),
    "dedupeWithinWatermark": _deduplication(("expiresAtMicros", "long", False)),
    "symmetricHashJoin": _join,
    "globalLimit": _limit,
    "flatMapGroupsWithState": _groups,
    "applyInPandasWithState": _groups,
}
