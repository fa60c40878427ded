"""What a restart does to aggregations, joins, deduplications and all other operators whose state the plan determines.

Spark compares the schemas of an operator's stores by position and ignores names (`StateSchemaCompatibilityChecker` of
Spark 4.2), and the names and numbers of operators (`IncrementalExecution`). It doesn't compare what the fields mean:
that takes the description of the running query.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Final

from registry.checkpoints.model import EVOLVING, Checkpoint, Operator
from registry.checkpoints.plans.operator_rules import OPERATOR_RULES
from registry.checkpoints.plans.queries import DescribedOperator, Description, Meaning
from registry.errors import first_few
from registry.formats.policies.spark_state import StateChange, StructType, parse_struct
from registry.formats.policies.spark_state.restart_plan import Mismatch, mismatches
from registry.formats.policies.spark_state.schema_changes import change
from registry.formats.policies.spark_state.struct_types import Atomic, label

#: changes of a join's type after which the buffered rows are still right
_NARROWED: Final = frozenset({("LeftOuter", "Inner"), ("RightOuter", "Inner"), ("Inner", "LeftSemi")})
_FORMATS: Final[Mapping[str, str]] = {
    "stateStoreSave": "spark.sql.streaming.aggregation.stateFormatVersion",
    "symmetricHashJoin": "spark.sql.streaming.join.stateFormatVersion",
    "flatMapGroupsWithState": "spark.sql.streaming.flatMapGroupsWithState.stateFormatVersion",
    "applyInPandasWithState": "spark.sql.streaming.flatMapGroupsWithState.stateFormatVersion",
}
_FILTER: Final = re.compile(r"(?P<what>(?:\w+: )*filter (?:of keys )?)(?P<condition>.*)")
_AND: Final = " AND "
_ON_KEYS: Final = re.compile(r"(?:\w+: )*filter of keys ")
_CAST: Final = re.compile(r"cast\(([^()]*) as [a-z]+(?:\(\d+,\d+\))?\)")
_CALL: Final = re.compile(r"(?P<name>\w+)\((?P<first>.*?)(?:, (?P<rest>.*))?\)")
#: what a description has for a random number: another one each time. Older descriptions have a moment for
# `current_timestamp()` and a date for `current_date()`
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+|\brandn?\(?-?\d+")
_CLOCK: Final = re.compile(r"\bcurrent_(?:timestamp|date)\(\)")
_DATE: Final = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_OF_STRUCT: Final = re.compile(r"(?P<name>max|min)\(struct\((?P<fields>.*)\)\)", re.DOTALL)
_PLAIN_NAME: Final = re.compile(r"[\w.]+")
#: an aggregate of a cast, which Spark also adds by itself, to a type that its state has anyway
_OF_CAST: Final = re.compile(
    r"(?P<call>(?:max|min)\(|sum\(|avg\()cast\((?P<argument>[\w.]+) as (?P<type>bigint|double)\)\)"
)
#: functions that keep the same state for the same argument
_VARIANCES: Final = frozenset({"var_samp", "var_pop", "variance", "stddev_samp", "stddev_pop", "stddev", "std"})
#: functions of which it depends on the rows or the mode
_DEPENDS: Final = ({"first", "last"}, {"percentile_approx"})
#: settings that change what expressions mean
_TIME_ZONE: Final = "spark.sql.session.timeZone"
#: expressions that mean the same in every time zone: windows are cut in UTC
_FREE_OF_ZONES: Final = frozenset({"window", "session_window", "sum", "count", "avg", "min", "max", "isnotnull", "AND"})
_OF_EXPRESSIONS: Final = (_TIME_ZONE, "spark.sql.ansi.enabled", "spark.sql.caseSensitive")
SCHEMA_CHECK: Final = "spark.sql.streaming.stateStore.stateSchemaCheck"
_COLLATED_KEY: Final = "STATE_STORE_UNSUPPORTED_OPERATION_BINARY_INEQUALITY"
_AGGREGATIONS: Final = ("stateStoreSave", "sessionWindowStateStoreSaveExec")
_DEDUPLICATIONS: Final = ("dedupe", "dedupeWithinWatermark")
#: output modes before and after, of which one removes groups that the other has
_OTHER_GROUPS: Final = (("Append", "Complete"), ("Complete", "Append"), ("Update", "Complete"))
_GROUPS: Final = ("applyInPandasWithState", "flatMapGroupsWithState")  # their fields have names, but no expressions
LONG: Final = 5_000  # characters of an expression that is only compared as a whole
#: properties that `describe` hasn't always had; what adds or removes one changes the rows of an operator too
_LATER_DESCRIBED: Final = ("functions", "static data")
UNSEEN_DATA: Final = "rows that aren't described"  # as schemadesk_spark has it
UNKNOWN_MEANING: Final = "give the description of the running query to compare"


@dataclass(frozen=True, slots=True)
class OperatorResult:
    """The changes of one operator, and what about it couldn't be compared."""

    number: int
    changes: tuple[StateChange, ...] = ()
    doubts: tuple[str, ...] = ()


def operator_results(
    checkpoint: Checkpoint, planned: Description, running: Description | None
) -> tuple[OperatorResult, ...]:
    """Return the result of every operator except transformWithState; none if the sets of operators differ."""
    stored = {operator.number: operator for operator in checkpoint.operators}
    if {number: operator.name for number, operator in stored.items()} != {
        operator.number: operator.name for operator in planned.operators
    }:
        return ()
    before = _by_number(planned, running)
    running = running if before else None
    return tuple(
        _result(checkpoint, stored[operator.number], operator, before.get(operator.number), planned, running)
        for operator in planned.operators
        if operator.name not in EVOLVING
    )


def _by_number(planned: Description, running: Description | None) -> dict[int, DescribedOperator]:
    """Return the operators of the running query; none if it has other sources, as names of columns then say nothing."""
    if running is None or [each.kind for each in running.sources] != [each.kind for each in planned.sources]:
        return {}
    return {operator.number: operator for operator in running.operators}


def evolving_results(planned: Description, running: Description | None) -> Iterator[OperatorResult]:
    """Yield what changes in the keys and the rows of transformWithState; its variables are the plan's."""
    before = _by_number(planned, running)
    for operator in planned.operators:
        former = before.get(operator.number)
        if former is not None and former.name == operator.name and operator.name in EVOLVING:
            name = f"operator {operator.number} ({operator.description})"
            one, other = (replace(each, values=(), properties={}) for each in (former, operator))
            changes, doubts = _meanings(one, other, name, mode=planned.output_mode or "")
            yield OperatorResult(operator.number, tuple(changes), tuple(doubts))


def _result(
    checkpoint: Checkpoint,
    stored: Operator,
    planned: DescribedOperator,
    before: DescribedOperator | None,
    query: Description,
    running: Description | None,
) -> OperatorResult:
    name = f"operator {stored.number} ({stored.description})"
    stores, doubts = _as_written(checkpoint, planned, name)
    changes = list(_schema_changes(stored, stores, name))
    if changes and query.settings.get(SCHEMA_CHECK, "true").strip().lower() == "false":
        return OperatorResult(
            stored.number, (), (*doubts, f"{name}: {changes[0].message}, and {SCHEMA_CHECK} is false")
        )
    missing = [f"its stored schema {store}" for store in stores if store not in _stored(stored)]
    missing += [] if doubts else [f"its state {store}, which the description lacks" for store in _lacks(stored, stores)]
    doubts += [f"{name}: {each}" for each in missing]
    if missing:
        return OperatorResult(stored.number, tuple(changes), tuple(doubts))
    if before is None or running is None or before.name != planned.name:
        changes += [] if changes else _renamed_aggregates(stored, stores, name)
        doubts += [] if changes else [f"{name}: what its keys and its state mean ({UNKNOWN_MEANING})"]
    elif not _is_of(stored, _as_written(checkpoint, before, name)[0], name):
        doubts.append(f"{name}: the description of the running query isn't that of this checkpoint")
    elif not changes:
        changes, more = _meanings(before, planned, name, mode=query.output_mode or "")
        changes += _query_changes(planned, running, query, name)
        doubts += more + list(_query_doubts(planned, running, query, name))
    return OperatorResult(stored.number, tuple(changes), tuple(doubts))


Stores = Mapping[str, tuple[StructType, StructType]]


def _stored(operator: Operator) -> Stores:
    return {
        variable.name: (parse_struct(variable.newest.key_schema), parse_struct(variable.newest.value_schema))
        for variable in operator.variables
    }


def _lacks(stored: Operator, planned: Stores) -> list[str]:
    return [store for store in _stored(stored) if store not in planned]


def _is_of(stored: Operator, described: Stores, name: str) -> bool:
    """Return whether the stores are those that the checkpoint has."""
    return not _lacks(stored, described) and next(_schema_changes(stored, described, name), None) is None


def _as_written(checkpoint: Checkpoint, planned: DescribedOperator, name: str) -> tuple[Stores, list[str]]:
    """Return the planned stores in the state format of the checkpoint, which overrules that of the session."""
    recorded = checkpoint.settings[-1].settings if checkpoint.settings else {}
    version = recorded.get(_FORMATS.get(planned.name, ""), "")
    if planned.state_format is None or version in ("", str(planned.state_format)):
        return planned.stores, []
    if planned.name == "stateStoreSave" and version in ("1", "2"):
        return {store: (key, _with_keys(key, value, version)) for store, (key, value) in planned.stores.items()}, []
    if planned.name == "symmetricHashJoin" and "1" not in (version, str(planned.state_format)):
        return planned.stores, []
    return {}, [f"{name}: state format {version}, which the description doesn't have"]


def _with_keys(key: StructType, value: StructType, version: str) -> StructType:
    """Return an aggregation's value in format 1, which repeats the key, or in format 2, which doesn't."""
    own = [field for field in value.fields if field not in key.fields]
    return replace(value, fields=tuple(own if version == "2" else (*key.fields, *own)))


def _schema_changes(stored: Operator, planned: Stores, name: str) -> Iterator[StateChange]:
    for store, (key, value) in _stored(stored).items():
        if store not in planned:
            continue
        for rule, old, new in (
            ("STATE_KEY_CHANGED", key, planned[store][0]),
            ("STATE_VALUE_CHANGED", value, planned[store][1]),
        ):
            first = next(mismatches(old, new), None)
            if first is not None:
                where = name if store == "default" else f"{name}, {store.partition('-')[0]} side,"
                is_collated = rule == "STATE_KEY_CHANGED" and " collate " in first.after
                error = _COLLATED_KEY if is_collated else None
                yield change(OPERATOR_RULES[rule], *_place(first, old, new), detail=where, error=error)


def _place(first: Mismatch, old: StructType, new: StructType) -> tuple[str, str, str]:
    """Return path, before and after: the whole structs if the number of fields differs."""
    if first.path:
        return first.path, first.before, first.after
    return "", label(old)[:300], label(new)[:300]


def _renamed_aggregates(stored: Operator, planned: Stores, name: str) -> list[StateChange]:
    """Return the aggregates that keep a field of another name: Spark names it after the function (max, sum, count)."""
    if stored.name != "stateStoreSave":
        return []
    pairs = [
        (old.name, new.name)
        for store, (_, value) in _stored(stored).items()
        for old, new in zip(value.fields, planned[store][1].fields, strict=False)
        if old.name != new.name
    ]
    return [change(OPERATOR_RULES["VALUE_MEANING_CHANGED"], "", old, new, detail=name) for old, new in pairs]


def _meanings(
    before: DescribedOperator, planned: DescribedOperator, name: str, *, mode: str
) -> tuple[list[StateChange], list[str]]:
    changes, doubts = [], []
    named = {value.expression for value in planned.values}
    for rule, old, new in (
        ("KEY_MEANING_CHANGED", before.keys, planned.keys),
        ("VALUE_MEANING_CHANGED", before.values, planned.values),
    ):
        for one, other in zip_longest(by_field(old), by_field(new), fillvalue="nothing"):
            if one == other:
                continue
            if _keep_the_same(one, other) or _names_differ(one, other):
                changes.append(change(OPERATOR_RULES["STATE_READ_OTHERWISE"], "", one, other, detail=name))
            elif _is_unknown(one, other) or (planned.name in _GROUPS and old is before.values and one not in named):
                doubts.append(f"{name}: {one[:200]} becomes {other[:200]}")
            else:
                changes.append(change(OPERATOR_RULES[rule], "", one[:300], other[:300], detail=name))
    more_changes, more_doubts = _hidden_types(before, planned, name)
    changes += more_changes
    doubts += more_doubts
    # In complete mode all groups are written, in append mode those that end: also the filtered ones that are kept.
    keeps_silent = mode == "Update" or planned.name in _DEDUPLICATIONS
    rows, planned_rows = changes_of_rows(before), changes_of_rows(planned)
    is_clocked = _is_clocked(" ".join(rows), " ".join(planned_rows))
    if rows != planned_rows and (is_clocked or _timeless(rows) == _timeless(planned_rows)):
        doubts.append(f"{name}: which rows reach it, as that depends on the time or on a random number")
    else:
        changes += _row_changes(rows, planned_rows, name, can_filter_keys=keeps_silent)
    for property_ in sorted(before.properties.keys() | planned.properties.keys()):
        one, other = (each.properties.get(property_, "") for each in (before, planned))
        if one == other or (property_ in _LATER_DESCRIBED and not (one and other)):
            continue
        if property_ == "limit" and _is_less(other, one):
            changes.append(change(OPERATOR_RULES["LIMIT_CHANGED"], "", one, other))
        elif property_ == "session":
            changes.append(change(OPERATOR_RULES["SESSION_CHANGED"], "", one, other, detail=name))
        elif (one, other) in _NARROWED:
            changes.append(change(OPERATOR_RULES["JOIN_NARROWED"], "", one, other))
        elif property_ == "limit" and _is_less(one, other):
            doubts.append(
                f"{name}: whether {one} rows were reached, because rows beyond them don't come back for {other}"
            )
        else:
            doubts.append(f"{name}: its {property_} ({one[:200] or 'none'} becomes {other[:200] or 'none'})")
    return list(dict.fromkeys(changes)), list(dict.fromkeys(doubts))


def _hidden_types(
    before: DescribedOperator, planned: DescribedOperator, name: str
) -> tuple[list[StateChange], list[str]]:
    """Return what changes in the types of arguments that the state's schema doesn't show: hashes and binary values."""
    changes, doubts = [], []
    _, value = before.stores.get("default", (StructType(), StructType()))
    kinds = [field.type for field in value.fields][len(value.fields) - sum(each.fields for each in before.values) :]
    for old, new in zip(before.values, planned.values, strict=False):
        own, kinds = kinds[: old.fields], kinds[old.fields :]
        is_hidden = Atomic("binary") in own or old.expression.startswith("approx_count_distinct(")
        is_kept = old.expression == new.expression or _keep_the_same(old.expression, new.expression)
        if not (is_kept and is_hidden) or "" != old.types == new.types:
            continue
        if not (old.types and new.types) or old.expression.startswith("percentile"):
            doubts.append(f"{name}: the types of what {old.expression[:200]} keeps")
        else:
            texts = (f"{each.expression[:300]} of {each.types[:300]}" for each in (old, new))
            changes.append(change(OPERATOR_RULES["VALUE_MEANING_CHANGED"], "", *texts, detail=name))
    return changes, doubts


def _timeless(steps: list[str]) -> list[str]:
    return sorted(_MOMENT.sub("", step) for step in steps)


def _is_clocked(one: str, other: str) -> bool:
    """Return whether one text has the current time where the other, of an older description, can have its moment."""
    before, after = bool(_CLOCK.search(one)), bool(_CLOCK.search(other))
    return before != after and bool(_DATE.search(one if after else other))


def _row_changes(before: list[str], after: list[str], name: str, *, can_filter_keys: bool) -> Iterator[StateChange]:
    """Yield what changes the rows that reach an operator."""
    added = [step for step in after if step not in before]
    only_keys = can_filter_keys and all(map(_ON_KEYS.match, added))
    if only_keys and before == [step for step in after if step not in added]:
        for step in added:
            yield change(OPERATOR_RULES["KEYS_FILTERED"], "", None, step[:300], detail=name)
    elif before != after:
        texts = (first_few([text[:200] for text in side]) or "nothing" for side in (before, after))
        yield change(OPERATOR_RULES["ROWS_OF_STATE_CHANGED"], "", *texts, detail=name)


def _is_unknown(one: str, other: str) -> bool:
    """Return whether it depends on the rows, the mode or names within a struct if two expressions give the same."""
    names = {text.partition("(")[0] for text in (one, other)}
    return (
        _uncast(one) == _uncast(other)
        or _is_clocked(one, other)
        or names in _DEPENDS
        or "coalesce" in names
        or ("struct(" in one and "struct(" in other and None in (_struct_values(one), _struct_values(other)))
    )


def _names_differ(one: str, other: str) -> bool:
    """Return whether two aggregates of a struct differ in the names of its fields alone, which the state doesn't have."""
    return None is not _struct_values(one) == _struct_values(other)


def _struct_values(text: str) -> tuple[str, ...] | None:
    """Return an aggregate of a struct without the names in it; None if it is something else."""
    match = _OF_STRUCT.fullmatch(text) if len(text) <= LONG else None
    if match is None:
        return None
    parts, depth = [""], 0
    for each in match["fields"]:
        depth += (each in "([{<") - (each in ")]}>")
        if depth == 0 and each == ",":
            parts.append("")
        else:
            parts[-1] += each
    values = [part.strip() for part in parts[1::2]]
    is_known = depth == 0 and len(parts) % 2 == 0 and all(map(_PLAIN_NAME.fullmatch, map(str.strip, parts)))
    return (match["name"], *values) if is_known else None


def _keep_the_same(one: str, other: str) -> bool:
    """Return whether two aggregates keep the same state and only their results differ."""
    if max(len(one), len(other)) > LONG:
        return False
    if _without_cast(one) == _without_cast(other):
        return True
    before, after = _CALL.fullmatch(one), _CALL.fullmatch(other)
    if not before or not after or before["first"] != after["first"]:
        return False
    if (before["name"], after["name"]) == ("collect_list", "collect_set"):
        return before["rest"] == after["rest"]
    if before["name"] == after["name"] == "percentile_approx":
        return (before["rest"] or "").split(", ")[1:] == (after["rest"] or "").split(", ")[1:]
    return {before["name"], after["name"]} <= _VARIANCES and before["rest"] == after["rest"]


def _without_cast(text: str) -> str:
    """Return an aggregate without a cast that does nothing if its state is of the same type without it.

    Values of a sum of whole numbers, and of a maximum, are of its own type; averages are doubles.
    """
    match = _OF_CAST.fullmatch(text)
    if match is None or (match["call"] == "avg(" and match["type"] != "double"):
        return text
    return f"{match['call']}{match['argument']})"


def by_field(meanings: Sequence[Meaning]) -> Iterator[str]:
    """Yield the expression of every field."""
    for meaning in meanings:
        yield from [meaning.expression] * meaning.fields


def _uncast(text: str) -> str:
    """Return an expression without casts, which Spark also adds by itself."""
    while len(text) <= LONG and (shorter := _CAST.sub(r"\1", text)) != text:
        text = shorter
    return text


def changes_of_rows(operator: DescribedOperator) -> list[str]:
    """Return what changes the rows; filters as conditions, without those of nulls that Spark adds by itself.

    Spark adds them for columns that another condition, a key or a window needs.
    """
    rows, checks = set(), []
    for step in operator.input:
        match = _FILTER.fullmatch(step)
        if match is None:
            rows.add(step)
            continue
        conditions = list(_conjuncts(match["condition"]))
        checks += [(match["what"], each) for each in conditions if each.startswith("isnotnull(")]
        rows |= {match["what"] + each for each in conditions if not each.startswith("isnotnull(")}
    meanings = [*operator.properties.values(), *(key.expression for key in operator.keys)]
    needed = re.sub(r"[()]", " ", " ".join([*rows, *meanings]))
    rows |= {what + each for what, each in checks if re.sub(r"[()]", " ", each[9:]).strip() not in needed}
    return sorted(rows)


def _conjuncts(text: str) -> Iterator[str]:
    """Yield the conditions that AND joins, each without the parentheses around it; takes time in proportion to the text."""
    pairs, opened = {}, []
    for at, each in enumerate(text):
        if each == "(":
            opened.append(at)
        elif each == ")" and opened:
            pairs[opened.pop()] = at
    pending = [(0, len(text))]
    while pending:
        start, end = pending.pop()
        if pairs.get(start) == end - 1:
            pending.append((start + 1, end - 1))
            continue
        parts, at, first = [], start, start
        while at < end:
            if text.startswith(_AND, at, end):
                parts.append((first, at))
                first = at + len(_AND)
            at = max(first, pairs.get(at, at) + 1)
        if parts:
            pending += [*parts, (first, end)]
        else:
            yield text[start:end].strip()


def _query_changes(
    planned: DescribedOperator, running: Description, query: Description, name: str
) -> Iterator[StateChange]:
    """Yield what another watermark or output mode of the query means for an operator."""
    one, other = (dict(each.watermarks) for each in (running, query))
    for column in _removed_watermarks(planned, running, query):
        if _is_grouped_by(planned, column):
            yield change(OPERATOR_RULES["WATERMARK_REMOVED"], "", f"{column}, {one[column]}", detail=name)
    is_kept = one.keys() <= other.keys() or planned.name == "dedupe"
    if one != other and is_kept and planned.name not in (*_GROUPS, "globalLimit"):
        texts = (", ".join(f"{column} {delay}" for column, delay in sorted(each.items())) for each in (one, other))
        yield change(OPERATOR_RULES["WATERMARK_CHANGED"], "", *(text or "none" for text in texts), detail=name)
    zones = tuple(each.settings.get(_TIME_ZONE, "not given") for each in (running, query))
    if zones[0] != zones[1] and planned.keys and _is_free_of_zones(planned, query):
        yield change(OPERATOR_RULES["TIME_ZONE_UNUSED"], "", *zones, detail=name)
    modes = _modes(running, query)
    if planned.name in _AGGREGATIONS and modes in _OTHER_GROUPS and (running.watermarks or "Append" in modes):
        yield change(OPERATOR_RULES["OTHER_GROUPS_KEPT"], "", *modes, detail=name)


def _is_free_of_zones(operator: DescribedOperator, query: Description) -> bool:
    """Return whether neither an operator's expressions nor the times in its sources depend on the session's time zone."""
    meanings = [each.expression for each in (*operator.keys, *operator.values)]
    texts = " ".join([*meanings, *operator.input, *operator.properties.values()])
    has_other = {*re.findall(r"\w+(?=\()", texts)} - _FREE_OF_ZONES or _DATE.search(texts) or "'" in texts
    return not has_other and all(
        source.kind in ("kafka", "rate") or (source.kind == "files" and source.options.get("timezone"))
        for source in query.sources
    )


def _modes(running: Description, query: Description) -> tuple[str, str]:
    return running.output_mode or "", query.output_mode or ""


def _removed_watermarks(planned: DescribedOperator, running: Description, query: Description) -> list[str]:
    kept = {column for column, _ in query.watermarks}
    return [] if planned.name == "globalLimit" else [column for column, _ in running.watermarks if column not in kept]


def _is_grouped_by(operator: DescribedOperator, column: str) -> bool:
    texts = [*operator.properties.values(), *(key.expression for key in operator.keys)]
    return operator.name in _AGGREGATIONS and any(_has_word(text, column) for text in texts)


def _has_word(text: str, column: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(column)}(?!\w)", text) is not None


def _is_less(one: str, other: str) -> bool:
    return one.isdigit() and other.isdigit() and int(one) < int(other)


def _query_doubts(planned: DescribedOperator, running: Description, query: Description, name: str) -> Iterator[str]:
    removed = [column for column in _removed_watermarks(planned, running, query) if not _is_grouped_by(planned, column)]
    if planned.name == "dedupe":
        keyed = [column for column in removed if any(_has_word(key.expression, column) for key in planned.keys)]
        if keyed:
            yield f"{name}: whether rows repeat that the watermark has removed from its state, as they pass again"
        removed = []
    if removed or (planned.name in _GROUPS and {*running.watermarks} != {*query.watermarks}):
        yield f"{name}: another watermark"
    if planned.name == "dedupeWithinWatermark" and set(running.watermarks) != set(query.watermarks):
        yield f"{name}: the keys in its state expire by the old delay, so rows that repeat them can pass"
    modes = _modes(running, query)
    if modes[0] != modes[1] and planned.name not in (*_DEDUPLICATIONS, "globalLimit"):
        keeps_state = modes in (("Append", "Update"), ("Update", "Append" if query.watermarks else "Complete"))
        no_watermark = not running.watermarks and not query.watermarks and "Append" not in modes
        is_known = keeps_state or no_watermark or modes in _OTHER_GROUPS
        if not (is_known and planned.name in _AGGREGATIONS):
            yield f"{name}: output mode {modes[0] or 'not given'} becomes {modes[1] or 'not given'}"
    if UNSEEN_DATA in planned.properties.get("static data", ""):
        yield f"{name}: the rows of the static data that it is joined with"
    for setting in _OF_EXPRESSIONS:
        one, other = running.settings.get(setting), query.settings.get(setting)
        if setting == _TIME_ZONE and one != other and _is_free_of_zones(planned, query):
            continue
        if one != other and planned.keys:
            texts = f"{one or 'not given'} becomes {other or 'not given'}"
            yield f"{name}: its expressions with another {setting} ({texts})"
