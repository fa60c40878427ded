"""From what a scan observed and what is registered to findings. Pure: no database, no Spark, no clock."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from registry.drift.rules import BUDGET_SEVERITIES, RULES, Severity
from registry.drift.state_schemas import field_changes, suspected_renames
from registry.observations import (
    FramedMessages,
    Observation,
    OtherGroups,
    SchemaNotUsed,
    Side,
    Span,
    StateFieldNulls,
    StateLimit,
    StateRows,
    StateSchemaVersion,
    StateUnreadable,
    TopicTotals,
    UndecodableMessages,
    UnframedMessages,
)

HINTS = {
    "empty": "nothing at all",
    "json_object": "a JSON object",
    "json_array": "a JSON array",
    "xml": "XML",
    "avro_file": "an Avro file",
    "gzip": "gzip",
    "text": "text",
    "binary": "binary data",
}
SHOWN_PLACES = 4  # partitions named in a location; the evidence has them all


@dataclass(frozen=True)
class RegisteredVersion:
    """A version that a schema id stands for."""

    subject: str
    version: int
    deleted: bool = False


@dataclass(frozen=True)
class Registered:
    """What the registry holds for a source.

    `versions` maps every schema id (at least those seen in the scan) to its versions; `expected` names the subjects
    of a topic's key and value. A side without subjects isn't governed: plain keys are normal there.
    """

    registry: str
    versions: Mapping[int, tuple[RegisteredVersion, ...]] = field(default_factory=dict)
    expected: Mapping[Side, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class JudgedFinding:
    """A judgement: `fingerprint` stays the same from scan to scan, `count` is messages (or 1), `evidence` is JSON."""

    rule: str
    severity: Severity
    fingerprint: str
    sentence: str
    remedy: str
    location: str
    count: int
    evidence: dict[str, Any]


def nothing_read(observations: Iterable[Observation]) -> bool:
    """Whether a scan saw neither a message nor a state schema nor a row: such a source is not scanned, never clean."""
    for seen in observations:
        if isinstance(seen, TopicTotals) and seen.messages:
            return False
        if isinstance(seen, FramedMessages | UnframedMessages | OtherGroups | StateSchemaVersion):
            return False
        if isinstance(seen, StateRows) and seen.rows:
            return False
    return True


def judge(observations: Iterable[Observation], registered: Registered) -> list[JudgedFinding]:
    """The findings of one scan, in the order of their severity; none when nothing was read (see `nothing_read`)."""
    seen = list(observations)
    if nothing_read(seen):
        return []
    found = [*_judge_topic(seen, registered), *_judge_state(seen)]
    order = list(RULES)
    rank = {"break": 0, "risk": 1, "notice": 2}
    return sorted(
        found, key=lambda each: (rank[each.severity], order.index(each.rule), each.location, each.fingerprint)
    )


# ---- topics -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Part:
    """Messages of one partition that a finding is about."""

    partition: int
    span: Span


def _judge_topic(seen: Sequence[Observation], registered: Registered) -> Iterable[JudgedFinding]:
    totals = next((each for each in seen if isinstance(each, TopicTotals)), None)
    if totals is None:
        return
    topic = _Topic(totals, registered)
    undecodable: dict[tuple[Side, int], list[_Part]] = {}
    framed: dict[tuple[Side, int], list[_Part]] = {}
    unframed: dict[Side, list[UnframedMessages]] = {}
    for each in seen:
        if isinstance(each, UndecodableMessages):
            undecodable.setdefault((each.side, each.schema_id), []).append(_Part(each.partition, each.span))
        elif isinstance(each, FramedMessages):
            framed.setdefault((each.side, each.schema_id), []).append(_Part(each.partition, each.span))
        elif isinstance(each, UnframedMessages) and registered.expected.get(each.side):
            unframed.setdefault(each.side, []).append(each)
    for (side, schema_id), parts in framed.items():
        yield from topic.framed(side, schema_id, parts, undecodable.get((side, schema_id), []))
    yield from topic.ungoverned(framed)
    for side, messages in unframed.items():
        yield topic.unframed(side, messages)
    yield from topic.folded([each for each in seen if isinstance(each, OtherGroups)])
    used = {schema_id for _, schema_id in framed}
    for each in seen:
        if isinstance(each, SchemaNotUsed) and each.schema_id in used:
            yield topic.not_decoded(each)


class _Topic:
    """The judgements of one topic."""

    def __init__(self, totals: TopicTotals, registered: Registered) -> None:
        self._totals = totals
        self._registered = registered

    def framed(
        self, side: Side, schema_id: int, parts: list[_Part], undecodable: list[_Part]
    ) -> Iterable[JudgedFinding]:
        """What is to say of one schema id on a side that has a subject."""
        expected = self._registered.expected.get(side, ())
        if not expected:
            return
        versions = self._registered.versions.get(schema_id, ())
        own = [version for version in versions if version.subject in expected]
        names = {"schema_id": schema_id, "expected": _either(expected), "owners": _owners(own or versions)}
        if not versions:
            yield self._finding("UNKNOWN_SCHEMA_ID", side, parts, names)
        elif not own:
            extra = {"undecodable_messages": _count(undecodable)}
            yield self._finding("ID_OF_OTHER_SUBJECT", side, parts, names, extra)
        else:
            if all(version.deleted for version in own):
                yield self._finding("ID_DELETED", side, parts, names)
            if undecodable:
                yield self._finding("UNDECODABLE", side, undecodable, names, {"of_messages": _count(parts)})

    def ungoverned(self, framed: Mapping[tuple[Side, int], list[_Part]]) -> Iterable[JudgedFinding]:
        """Known schema ids on a side without a subject: one finding a side. Unknown ones may be any binary data."""
        for side in ("key", "value"):
            if self._registered.expected.get(side):
                continue
            known = {
                schema_id: self._registered.versions[schema_id]
                for each_side, schema_id in framed
                if each_side == side and self._registered.versions.get(schema_id)
            }
            if known:
                parts = [part for schema_id in known for part in framed[side, schema_id]]
                owners = _owners([version for versions in known.values() for version in versions])
                yield self._finding("SUBJECT_MISSING", side, parts, {"owners": owners, "schema_ids": sorted(known)})

    def unframed(self, side: Side, messages: list[UnframedMessages]) -> JudgedFinding:
        """All unframed bytes of a side, whatever they look like."""
        hints = sorted({each.hint for each in messages})
        names = {
            "expected": _either(self._registered.expected[side]),
            "hints": " or ".join(HINTS[hint] for hint in hints),
        }
        parts = [_Part(each.partition, each.span) for each in messages]
        by_hint = {hint: _count([_Part(0, each.span) for each in messages if each.hint == hint]) for hint in hints}
        return self._finding("UNFRAMED_DATA", side, parts, names, {"looks_like": by_hint})

    def folded(self, groups: list[OtherGroups]) -> Iterable[JudgedFinding]:
        """Ids beyond the scan's bound, where any side has a subject: elsewhere any bytes are normal."""
        if groups and any(self._registered.expected.values()):
            parts = [_Part(each.partition, each.span) for each in groups]
            yield self._finding("TOO_MANY_IDS", None, parts, {"groups": max(each.groups for each in groups)})

    def not_decoded(self, schema: SchemaNotUsed) -> JudgedFinding:
        """An id whose schema Spark couldn't use."""
        names = {"schema_id": schema.schema_id, "reason": schema.reason.rstrip(".")}
        return self._finding("SCHEMA_NOT_DECODED", None, [], names)

    def _finding(
        self,
        rule: str,
        side: Side | None,
        parts: list[_Part],
        names: Mapping[str, Any],
        extra: Mapping[str, Any] | None = None,
    ) -> JudgedFinding:
        topic, count = self._totals.topic, _count(parts)
        filled = {
            **names,
            "topic": topic,
            "side": side,
            "registry": self._registered.registry,
            "messages": f"{count:,} message{'s' if count != 1 else ''}",
        }
        evidence = {
            "topic": topic,
            "side": side,
            **{name: value for name, value in names.items() if name not in ("hints", "reason")},
            "messages": count,
            "of_messages_read": self._totals.messages,
            **_when(parts),
            "partitions": [_part_evidence(part) for part in _merged(parts)],
            **(extra or {}),
        }
        identity = (topic, side or "", str(names.get("schema_id", "")))
        place = _places(topic, side, parts)
        return _finding(rule, filled, identity, location=place, count=max(1, count), evidence=evidence)


def _part_evidence(part: _Part) -> dict[str, int]:
    span = part.span
    return {
        "partition": part.partition,
        "messages": span.messages,
        "first_offset": span.first_offset,
        "last_offset": span.last_offset,
        "first_time": span.first_time,
        "last_time": span.last_time,
    }


def _merged(parts: Iterable[_Part]) -> list[_Part]:
    """One part a partition, ascending."""
    merged: dict[int, Span] = {}
    for part in parts:
        one, other = merged.get(part.partition), part.span
        merged[part.partition] = (
            other
            if one is None
            else Span(
                one.messages + other.messages,
                one.bytes + other.bytes,
                min(one.first_offset, other.first_offset),
                max(one.last_offset, other.last_offset),
                min(one.first_time, other.first_time),
                max(one.last_time, other.last_time),
            )
        )
    return [_Part(partition, span) for partition, span in sorted(merged.items())]


def _when(parts: Sequence[_Part]) -> dict[str, int]:
    if not parts:
        return {}
    return {
        "first_time": min(part.span.first_time for part in parts),
        "last_time": max(part.span.last_time for part in parts),
    }


def _places(topic: str, side: Side | None, parts: list[_Part]) -> str:
    """Where it is, as `orders:0@17–240, orders:1@3 (value)`."""
    merged = _merged(parts)
    shown = []
    for part in merged[:SHOWN_PLACES]:
        first, last = part.span.first_offset, part.span.last_offset
        shown.append(f"{topic}:{part.partition}@{first}" + (f"–{last}" if last != first else ""))
    if len(merged) > SHOWN_PLACES:
        shown.append(f"and {len(merged) - SHOWN_PLACES} more partitions")
    return (", ".join(shown) or topic) + (f" ({side})" if side else "")


def _count(parts: Iterable[_Part]) -> int:
    return sum(part.span.messages for part in parts)


def _either(names: Sequence[str]) -> str:
    return " or ".join(names)


def _owners(versions: Iterable[RegisteredVersion]) -> str:
    return ", ".join(sorted({f"{version.subject} version {version.version}" for version in versions}))


# ---- state stores -------------------------------------------------------------------------------------------------


def _judge_state(seen: Sequence[Observation]) -> Iterable[JudgedFinding]:
    history: dict[tuple[int, str], list[StateSchemaVersion]] = {}
    for each in seen:
        if isinstance(each, StateSchemaVersion):
            history.setdefault((each.operator, each.variable), []).append(each)
    nulls = [each for each in seen if isinstance(each, StateFieldNulls)]
    for versions in history.values():
        versions.sort(key=lambda version: version.version)
        for old, new in pairwise(versions):
            yield from _evolution(old, new, nulls, newest=new is versions[-1])
    yield from _budgets(seen)
    latest = {(each.operator, each.variable): each.batch for each in seen if isinstance(each, StateRows)}
    for each in seen:
        # A batch that Spark has cleaned up is no finding as long as a newer one was read.
        if isinstance(each, StateUnreadable) and (each.operator, each.variable) not in latest:
            names = {"operator": each.operator, "variable": each.variable or "", "reason": each.reason.rstrip(".")}
            evidence = {**names, "batch": each.batch}
            yield _state_finding("STATE_UNREADABLE", names, (str(each.operator), each.variable or ""), evidence)


def _evolution(
    old: StateSchemaVersion, new: StateSchemaVersion, nulls: Sequence[StateFieldNulls], *, newest: bool
) -> Iterable[JudgedFinding]:
    changes = field_changes(old.value_schema, new.value_schema)
    if not changes:
        return
    renames = suspected_renames(changes)
    renamed = {rename.dropped for rename in renames}
    names = {"operator": new.operator, "variable": new.variable, "batch": new.batch}
    place = (str(new.operator), new.variable, str(new.version))
    evidence = {**names, "kind": new.kind, "encoding": new.encoding, "versions": [old.version, new.version]}
    if newest:
        listed = "; ".join(map(str, changes))
        fields = [{"field": change.path, "before": change.before, "after": change.after} for change in changes]
        schemas = {"old_schema": old.value_schema, "new_schema": new.value_schema}
        yield _state_finding(
            "STATE_SCHEMA_EVOLVED", {**names, "changes": listed}, place, {**evidence, "changes": fields, **schemas}
        )
    for rename in renames:
        lost, shares = _loss(new, rename.dropped, nulls)
        filled = {**names, "dropped": rename.dropped, "added": rename.added, "loss": lost or "read as null"}
        now = _nulls_now(new, rename.added, nulls)
        details = {**evidence, "field": rename.dropped, "added": rename.added, "type": rename.type, **shares, **now}
        yield _state_finding("RENAME_SUSPECTED", filled, (*place, rename.dropped, rename.added), details)
    for change in changes:
        lost, shares = _loss(new, change.path, nulls)
        if change.after is None and change.path not in renamed and lost:
            filled = {**names, "dropped": change.path, "loss": lost}
            details = {**evidence, "field": change.path, "type": change.before, **shares}
            yield _state_finding("STATE_FIELD_DROPPED", filled, (*place, change.path), details)


def _loss(new: StateSchemaVersion, field_path: str, nulls: Sequence[StateFieldNulls]) -> tuple[str, dict[str, int]]:
    """How much a dropped field held in the last batch before `new`, in words and in numbers; nothing if unknown."""
    for seen in nulls:
        before = new.batch is not None and 0 <= seen.batch < new.batch
        if before and (seen.operator, seen.variable, seen.path) == (new.operator, new.variable, f"value.{field_path}"):
            held = seen.rows - seen.nulls
            if held:
                share = {"rows_before": seen.rows, "filled_before": held, "batch_before": seen.batch}
                return f"were filled in {held:,} of {seen.rows:,} rows as of batch {seen.batch}", share
    return "", {}


def _nulls_now(new: StateSchemaVersion, field_path: str, nulls: Sequence[StateFieldNulls]) -> dict[str, int]:
    """How many rows have no value in an added field as of the last batch that was read."""
    same = [
        seen
        for seen in nulls
        if (seen.operator, seen.variable, seen.path) == (new.operator, new.variable, f"value.{field_path}")
    ]
    latest = max(same, key=lambda seen: seen.batch, default=None)
    return {} if latest is None else {"rows_now": latest.rows, "null_now": latest.nulls, "batch_now": latest.batch}


def _budgets(seen: Sequence[Observation]) -> Iterable[JudgedFinding]:
    rules = {"value_schemas": "EVOLUTION_BUDGET", "schema_files": "SCHEMA_FILE_BUDGET"}
    for each in seen:
        if not isinstance(each, StateLimit):
            continue
        share = each.used / each.allowed
        severity = next((severity for least, severity in BUDGET_SEVERITIES if share >= least), None)
        if severity is not None:
            variable = each.variable or ""
            names = {"operator": each.operator, "variable": variable, "used": each.used, "allowed": each.allowed}
            evidence = {**names, "share": round(share, 4)}
            yield _state_finding(rules[each.limit], names, (str(each.operator), variable), evidence, severity)


def _state_finding(
    rule: str,
    names: Mapping[str, Any],
    identity: Sequence[str],
    evidence: dict[str, Any],
    severity: Severity | None = None,
) -> JudgedFinding:
    variable = names.get("variable")
    location = f"operator {names['operator']}" + (f", state variable {variable}" if variable else "")
    if names.get("batch") is not None:
        location += f", batch {names['batch']}"
    return _finding(rule, names, identity, location=location, count=1, evidence=evidence, severity=severity)


def _finding(
    rule: str,
    names: Mapping[str, Any],
    identity: Sequence[str],
    *,
    location: str,
    count: int,
    evidence: dict[str, Any],
    severity: Severity | None = None,
) -> JudgedFinding:
    row = RULES[rule]
    return JudgedFinding(
        rule=rule,
        severity=severity or row.severity,
        fingerprint=hashlib.sha256("\x1f".join((rule, *identity)).encode("utf-8", "surrogatepass")).hexdigest(),
        sentence=row.sentence.format_map(names),
        remedy=row.remedy.format_map(names),
        location=location,
        count=count,
        evidence=evidence,
    )
