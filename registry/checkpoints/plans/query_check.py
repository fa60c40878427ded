"""The check of a query's description: its operators besides transformWithState, and what the plan leaves to it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from registry.checkpoints.logs import CHECKPOINT_FORMAT, DEFAULT_ENCODING, ENCODING, PROVIDER
from registry.checkpoints.model import EVOLVING, Checkpoint, Operator
from registry.checkpoints.plans.model import (
    APIS,
    OUTPUT_MODES,
    SCALA_OPERATOR,
    STATUSES_OF,
    TIME_MODES,
    VERDICTS_OF,
    CheckStatus,
    Language,
    OperatorCheck,
    StateCheck,
    StatePlan,
    VariableCheck,
    to_ddl,
)
from registry.checkpoints.plans.operator_rules import OPERATOR_RULES
from registry.checkpoints.plans.operators import OperatorResult, evolving_results, operator_results
from registry.checkpoints.plans.queries import DescribedOperator, Description
from registry.checkpoints.plans.rules import SPARK_TIME_MODES, damage_changes
from registry.checkpoints.plans.source_rules import SOURCE_RULES
from registry.checkpoints.plans.sources import source_changes, source_doubts
from registry.formats.policies.spark_state import StateChange
from registry.formats.policies.spark_state.rules import EFFECTS
from registry.formats.policies.spark_state.schema_changes import change
from registry.formats.policies.spark_state.struct_types import spark_json

_SINK: Final = re.compile(r"(?P<kind>[^\[]*)\[(?P<path>.*)\]", re.DOTALL)
_CONDITION: Final = re.compile(r"\[([A-Z][A-Z0-9_]+)(?:\.[A-Z0-9_]+)*\]")
_FILE_SINKS: Final = frozenset({"FileSink", "parquet", "json", "csv", "text", "orc", "avro", "xml"})
_MEMORY_SINKS: Final = frozenset({"memory", "memorysink"})
#: versions of Spark whose rules are known
_KNOWN_SPARK: Final = re.compile(r"4\.[0-2]\..*")
_ONCE: Final = ("availableNow", "once")
ASYNC_PROGRESS: Final = "asyncProgressTrackingEnabled"
#: the ends of the names of Spark's own providers
_PROVIDERS: Final = (".HDFSBackedStateStoreProvider", ".RocksDBStateStoreProvider")
#: settings of the next start that the description always has
_OF_THE_START: Final = (CHECKPOINT_FORMAT, ENCODING)


def as_described(plan: StatePlan, checkpoint: Checkpoint, defaults: Sequence[str]) -> StatePlan:
    """Return the plan with what its description says and the plan itself doesn't."""
    query = plan.query
    if query is None:
        return plan
    recorded = checkpoint.settings[-1].settings if checkpoint.settings else {}
    known = {*defaults, *_OF_THE_START, *recorded}
    settings = {name: value for name, value in query.settings.items() if name in known}
    evolving = next((operator for operator in query.operators if operator.name in EVOLVING), None)
    modes = evolving.properties if evolving else {}
    time_modes = {SPARK_TIME_MODES.get(name, name): name for name in TIME_MODES}
    output = modes.get("output", "")
    api = next((api for api, name in APIS.items() if evolving and name == evolving.name), None)
    language: Language | None = None if evolving is None else "scala" if evolving.name == SCALA_OPERATOR else "python"
    return replace(
        plan,
        settings={**settings, **plan.settings},
        operators=plan.operators or tuple(operator.description for operator in query.operators),
        sources=query.sources if plan.sources is None else plan.sources,
        time_mode=plan.time_mode or time_modes.get(modes.get("time", "")),
        output_mode=plan.output_mode or (output if output in OUTPUT_MODES else None),
        api=plan.api or api,
        language=plan.language or language,
    )


def of_other_query(plan: StatePlan, checkpoint: Checkpoint) -> str:
    """Return why the description of the running version doesn't apply to the checkpoint; "" if it does."""
    number = plan.running.query_id if plan.running else ""
    if not number or not checkpoint.query_id or number == checkpoint.query_id:
        return ""
    return (
        f"The description of the running query isn't used: it is of query {number[:100]}, and the checkpoint is of "
        f"query {checkpoint.query_id}."
    )


def with_operators(report: StateCheck, checkpoint: Checkpoint, query: Description, plan: StatePlan) -> StateCheck:
    """Return the report with the results of the operators that the description determines.

    The verdict isn't computed again.
    """
    of_plan = operator_results(checkpoint, query, plan.running)
    checked = {result.number for result in of_plan}
    results = (*of_plan, *evolving_results(query, plan.running))
    recorded = checkpoint.settings[-1].settings if checkpoint.settings else {}
    provider = recorded.get(PROVIDER) or query.settings.get(PROVIDER, "")  # the checkpoint's overrules the session's
    unknown = [*_sink_doubts(query, plan.running), *_description_doubts(query)]
    unknown += [f"the state store provider {provider[:200]}"] if provider and not provider.endswith(_PROVIDERS) else []
    encoding = recorded.get(ENCODING, DEFAULT_ENCODING)
    if encoding != DEFAULT_ENCODING and not any(operator.name in EVOLVING for operator in checkpoint.operators):
        unknown.append(f"the encoding of the state ({encoding[:40]})")
    stored = {operator.number: operator for operator in checkpoint.operators}
    names = {f"operator {number} ({stored[number].description})" for number in checked}
    doubts = [doubt for result in results for doubt in result.doubts]
    own = next((result for result in of_plan if result.number == report.operator.number), None)
    variables = report.variables
    if own is not None:
        variables = tuple(_variables(stored[own.number], own, query))
    changes = [
        *_query_changes(query, plan.running),
        *report.changes,
        *(item for result in results for item in result.changes),
    ]
    changes.sort(key=lambda item: -EFFECTS.index(item.effect))
    return replace(
        report,
        changes=tuple(changes),
        variables=variables,
        not_checked=(*(each for each in report.not_checked if each not in names), *doubts, *unknown),
        notes=(*report.notes, *_sink_notes(query, plan.running)),
    )


def _sink_notes(query: Description, running: Description | None) -> Iterable[str]:
    """Yield what is assumed of a sink that one of the descriptions doesn't name."""
    if not query.sink or running is None or not running.sink:
        yield (
            "The sink is assumed unchanged because the descriptions don't both name it. With another sink or folder, "
            "rows can be written twice or not at all, without an error."
        )


def _sink_of(text: str) -> tuple[bool, str]:
    """Return whether a sink writes files, and its folder if it is known."""
    match = _SINK.fullmatch(text)
    kind, path = (match["kind"], match["path"]) if match else (text, "")
    return kind in _FILE_SINKS, path


def _kind(sink: str) -> str:
    return sink.partition("[")[0]


def _sink_changes(query: Description, running: Description | None) -> Iterable[StateChange]:
    if running is None or not running.sink or not query.sink or running.sink == query.sink:
        return
    (wrote_files, before), (writes_files, after) = _sink_of(running.sink), _sink_of(query.sink)
    sinks = (running.sink[:300], query.sink[:300])
    if writes_files and after and (before != after if before else not wrote_files):
        yield change(SOURCE_RULES["SINK_FOLDER_CHANGED"], "", *sinks)
    elif writes_files and wrote_files and before and "FileSink" not in (_kind(running.sink), _kind(query.sink)):
        yield change(SOURCE_RULES["SINK_FORMAT_CHANGED"], "", *sinks)


def _sink_doubts(query: Description, running: Description | None) -> Iterable[str]:
    if _is_async(query) and not _is_async(running):
        yield f"the sink with asynchronous progress tracking ({query.sink[:200] or 'no sink'})"
    if "continuous" in (query.trigger, running.trigger if running else ""):
        yield "continuous processing"
    if running is not None and _sink_of(query.sink)[0] and "" != running.columns != query.columns != "":
        yield f"the files of the sink (its columns {running.columns[:200]} become {query.columns[:200]})"
    if running is None or not running.sink or running.sink == query.sink:
        return
    (wrote_files, before), (writes_files, after) = _sink_of(running.sink), _sink_of(query.sink)
    if not query.sink:
        yield from [f"the sink, which the description lacks (it was {running.sink[:200]})"] if wrote_files else []
        return
    is_same = wrote_files and writes_files and before == after != ""
    if not is_same and not list(_sink_changes(query, running)):
        yield f"the sink ({running.sink[:200]} becomes {query.sink[:200]})"


def _description_doubts(query: Description) -> Iterable[str]:
    """Yield what a description has to say for any result, and doesn't."""
    if query.operators and not query.output_mode:
        yield "the output mode, which the description lacks"
    if query.refused is None:
        yield "whether Spark starts such a query, which the description lacks"
    if not _KNOWN_SPARK.fullmatch(query.spark):
        version = f"Spark {query.spark[:40]}" if query.spark else "the version of Spark, which the description lacks"
        yield f"{version} (the rules of 4.0 to 4.2 are known)"


def _query_changes(query: Description, running: Description | None) -> Iterable[StateChange]:
    """Yield what concerns the query as a whole: whether Spark starts it at all, and its sink."""
    if query.refused:
        condition = _CONDITION.match(query.refused)
        error = condition[1] if condition else None
        yield change(OPERATOR_RULES["QUERY_REFUSED"], "", detail=query.refused[:500], error=error)
    if _is_async(query) and (query.operators or query.trigger in _ONCE or _sink_of(query.sink)[0]):
        yield change(SOURCE_RULES["ASYNC_PROGRESS_REFUSED"], "")
    if _is_async(running):
        yield change(SOURCE_RULES["ASYNC_PROGRESS_REPEATS"], "")
    if _kind(query.sink).lower() in _MEMORY_SINKS and query.output_mode in ("Append", "Update"):
        yield change(SOURCE_RULES["SINK_NOT_RECOVERED"], "", after=query.output_mode)
    yield from _sink_changes(query, running)


def _is_async(query: Description | None) -> bool:
    return query is not None and query.sink_options.get(ASYNC_PROGRESS, "").lower() == "true"


def _variables(operator: Operator, result: OperatorResult, query: Description) -> list[VariableCheck]:
    planned = next(each for each in query.operators if each.number == operator.number)
    worst = max((EFFECTS.index(item.effect) for item in result.changes), default=0)
    usual: CheckStatus = "not checked" if result.doubts else "unchanged"
    return [
        VariableCheck(
            name=variable.label,
            kind=variable.kind,
            status=STATUSES_OF.get(EFFECTS[worst], usual),
            changes=(),
            stored=to_ddl(json.loads(variable.newest.value_schema)),
            planned=_ddl(planned, variable.name),
        )
        for variable in operator.variables
    ]


def _ddl(planned: DescribedOperator, store: str) -> str | None:
    """Return the value schema of a planned store as DDL."""
    return to_ddl(spark_json(planned.stores[store][1])) if store in planned.stores else None


def without_state(checkpoint: Checkpoint, query: Description, running: Description | None) -> StateCheck:
    """Return the report for a checkpoint without state."""
    sources = running.sources if running else ()
    changes: list[StateChange] = [
        *damage_changes(checkpoint),
        *_query_changes(query, running),
        *source_changes(checkpoint.sources, query.sources, sources),
    ]
    if query.operators:
        changes.append(change(OPERATOR_RULES["STATE_ADDED"], ""))
    doubts = (
        *(stop.problem for stop in checkpoint.stops if not stop.error),
        *source_doubts(checkpoint.sources, query.sources, sources),
        *_sink_doubts(query, running),
        *_description_doubts(query),
    )
    changes.sort(key=lambda item: -EFFECTS.index(item.effect))
    first = next((item for item in changes if item.effect == "refused"), None)
    worst = next((VERDICTS_OF[item.effect] for item in changes if item.effect in VERDICTS_OF), None)
    return StateCheck(
        path=checkpoint.path,
        query_id=checkpoint.query_id,
        last_batch=checkpoint.last_committed_batch,
        language="python",
        verdict=worst or ("not checked" if doubts else "safe"),
        operator=OperatorCheck(0, "", "no stateful operator", "", None),
        variables=(),
        changes=tuple(changes),
        error=first.error if first else "",
        error_message=first.message if first else "",
        not_checked=doubts,
        notes=tuple(_sink_notes(query, running)),
    )
