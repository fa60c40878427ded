"""What stands in a topic, held against what is registered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from registry.drift.judge.model import JudgedFinding, Registered, RegisteredVersion, make_finding
from registry.observations import (
    FramedMessages,
    Observation,
    OtherGroups,
    SchemaNotUsed,
    Side,
    Span,
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
class _Part:
    """Messages of one partition that a finding is about."""

    partition: int
    span: Span


def judge_topic(seen: Sequence[Observation], registered: Registered) -> Iterable[JudgedFinding]:
    """The findings of a topic scan; none when the observations are of something else."""
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
        return make_finding(rule, filled, identity, location=place, count=max(1, count), evidence=evidence)


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
