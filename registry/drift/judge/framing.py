"""Judges the framing of a topic's messages: missing, cut off, doubled or mixed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from registry.drift.judge.finding_builder import (
    FRAMINGS,
    HINTS,
    SideOfTopic,
    both,
    counted,
    either,
    mark_words,
    named,
    owners,
)
from registry.drift.judge.model import JudgedFinding, Mark, RegisteredVersion
from registry.drift.judge.topic_observations import PartitionSpan, count_of, parts_of
from registry.drift.judge.undecodable import bad_offsets
from registry.formats import format_of
from registry.observations import BEGINS_AS_OBJECT, UndecodableMessages, UnframedMessages

CUT: Final = "cut_frame"
#: data that a schema could describe; other data needs none
_STRUCTURED = frozenset({"json_object", "json_array", "xml", "avro_file", "glue", "azure", "single_object"})
_INTERNAL = ("_", "connect-")


def judge_framing(where: SideOfTopic) -> Iterator[JudgedFinding]:
    """Yield the findings about a side's framing."""
    unframed = where.reading.unframed.get(where.side, [])
    if where.subjects:
        cut = [messages for messages in unframed if messages.hint == CUT]
        bare = [messages for messages in unframed if messages.hint != CUT]
        if bare:
            yield _unframed(where, bare)
        if cut:
            yield _cut(where, cut)
        yield from _mixed(where)
        yield from _null(where)
    elif where.side == "value":
        yield from _without_subject(where, unframed)
    yield from _not_json(where)
    yield from _twice(where)


def _unframed(where: SideOfTopic, messages: Sequence[UnframedMessages]) -> JudgedFinding:
    by_hint = _by_hint(messages)
    names = {
        "have": "has" if sum(by_hint.values()) == 1 else "have",
        "expected": either(where.subjects),
        "hints": either([HINTS[hint] for hint in by_hint]),
    }
    return where.finding("UNFRAMED_DATA", parts_of(messages), names, evidence={"looks_like": by_hint})


def _cut(where: SideOfTopic, messages: Sequence[UnframedMessages]) -> JudgedFinding:
    is_one = sum(group.span.messages for group in messages) == 1
    names = {"begin": "begins" if is_one else "begin", "end": "ends" if is_one else "end"}
    return where.finding("FRAME_TRUNCATED", parts_of(messages), names)


def _null(where: SideOfTopic) -> Iterator[JudgedFinding]:
    """Yield messages without a key that a schema describes, and tombstones that nothing removes.

    Not of change events: a table may have no key, and Debezium writes tombstones whether a topic is compacted or not.
    """
    nulls, topic = where.reading.nulls.get(where.side), where.memory.topics.get(where.reading.topic)
    if not nulls or where.reading.has_change_events:
        return
    is_one = sum(group.span.messages for group in nulls) == 1
    names = {"have": "has" if is_one else "have", "are": "is a tombstone" if is_one else "are tombstones"}
    if where.side == "key":
        yield where.finding("KEYS_MISSING", parts_of(nulls), {**names, "expected": either(where.subjects)})
    elif topic is not None and topic.compacted is False:
        yield where.finding("TOMBSTONES_NOT_COMPACTED", parts_of(nulls), names)


def _mixed(where: SideOfTopic) -> Iterator[JudgedFinding]:
    """Yield this scan's messages that deviate from the side's usual framing, recent earlier scans included.

    Older messages don't count: the topic has moved from one framing to another.
    """
    by_framing: dict[str, list[PartitionSpan]] = {}
    for mark in where.reading.marks(where.side):
        if where.registered.versions.get(mark):  # an unknown mark is a finding of its own, and may be any bytes
            by_framing.setdefault(mark[0], []).extend(where.reading.framed[where.side, mark])
    before = _framings_before(where) if by_framing else {}
    counts = {framing: count_of(by_framing[framing]) for framing in sorted(by_framing)}
    totals = {framing: counts.get(framing, 0) + before.get(framing, 0) for framing in sorted({*counts, *before})}
    usual = max(totals, key=lambda framing: (totals[framing], before.get(framing, 0)), default="")
    deviating = [framing for framing in counts if framing != usual]
    if deviating:
        parts = [part for framing in deviating for part in by_framing[framing]]
        earlier = {framing: number for framing, number in sorted(before.items()) if framing not in counts}
        names = {
            "carry": "carries" if count_of(parts) == 1 else "carry",
            "framings": either([FRAMINGS[framing] for framing in deviating]),
            "usual": FRAMINGS[usual],
        }
        evidence = {"framings": counts, **({"framings_before": earlier} if earlier else {})}
        yield where.finding("FRAMING_MIXED", parts, names, evidence=evidence)


def _framings_before(where: SideOfTopic) -> dict[str, int]:
    """Return messages of earlier scans by framing, only of marks still written recently."""
    counts: dict[str, int] = {}
    for use in where.memory.uses_of_side.get((where.reading.topic, where.side), ()) if where.side else ():
        if where.registered.versions.get((use.framing, use.mark)) and where.memory.is_recent(use.last_time):
            counts[use.framing] = counts.get(use.framing, 0) + use.messages
    return counts


def _twice(where: SideOfTopic) -> Iterator[JudgedFinding]:
    """Yield messages whose header and body both name a schema, for marks with bodies that don't decode.

    An unframed body may start like a frame by chance; then it decodes.
    """
    for (side, mark), groups in sorted(where.reading.twice.items()):
        if side != where.side or (side, mark) not in where.reading.undecodable:
            continue
        number = sum(group.span.messages for group in groups)
        ids = sorted({group.schema_id for group in groups})
        key: Mark = mark
        names = {
            "mark": mark_words(mark),
            "schema_id": either([str(group) for group in ids]),
            "carry": "carries" if number == 1 else "carry",
        }
        yield where.finding(
            "FRAMED_TWICE", parts_of(groups), names, key=key, evidence={"guid": mark[1], "schema_ids": ids}
        )


def _without_subject(where: SideOfTopic, messages: Sequence[UnframedMessages]) -> Iterator[JudgedFinding]:
    """Yield structured values without a schema, on a topic that isn't internal to Kafka or a tool.

    Other data on the topic is no reason for the finding, but its sentence gives each kind with its number.
    """
    structured = [group for group in messages if group.hint in _STRUCTURED]
    if structured and not where.reading.topic.startswith(_INTERNAL):
        looks = _by_hint([group for group in messages if group.hint != CUT])
        bad = count_of(parts_of(where.reading.not_json.get(where.side, ())))
        evidence = {"looks_like": looks, **({"undecodable_messages": bad} if bad else {})}
        yield where.finding("TOPIC_WITHOUT_SUBJECT", parts_of(structured), {"looks": _looks(looks)}, evidence=evidence)


def _by_hint(messages: Iterable[UnframedMessages]) -> dict[str, int]:
    """Count messages by what they look like, structured ones first."""
    counts: dict[str, int] = {}
    for group in sorted(messages, key=lambda group: (group.hint not in _STRUCTURED, group.hint)):
        counts[group.hint] = counts.get(group.hint, 0) + group.span.messages
    return counts


def _looks(by_hint: Mapping[str, int]) -> str:
    """Return `2 messages look like XML and 1 message looks like gzip`."""
    return both(
        [
            f"{counted(number, 'message')} {'looks' if number == 1 else 'look'} like {HINTS[hint]}"
            for hint, number in by_hint.items()
        ]
    )


def _not_json(where: SideOfTopic) -> Iterator[JudgedFinding]:
    """Yield invalid JSON on a side that should have JSON."""
    groups = where.reading.not_json.get(where.side, [])
    parsed = max(
        (item.messages for item in where.reading.profiles if item.side == where.side and not item.framing), default=0
    )
    broken = sum(item.span.messages for item in groups)
    expected = _json_expected(where, parsed, groups) if broken else ""
    if expected:
        names = {
            "look": "looks" if broken == 1 else "look",
            "are": "is" if broken == 1 else "are",
            "expected": expected,
        }
        yield where.finding("NOT_JSON", parts_of(groups), names, evidence={"parsed": parsed, **bad_offsets(groups)})


def _json_expected(where: SideOfTopic, parsed: int, broken: Sequence[UndecodableMessages]) -> str:
    """Return why the messages of a side should be JSON; empty if they needn't.

    Log lines and templates may also be in brackets, but hardly any of them begins like an object.
    """
    if where.subjects:
        declaring = [version for version in _live_versions(where) if format_of(version.schema_type).has_value_rules]
        return (
            f"{owners(declaring)} {'declares' if len(named(declaring)) == 1 else 'declare'} JSON" if declaring else ""
        )
    if parsed > count_of(parts_of(broken)):
        return "most of those that look like it are"
    begin = sum(
        number for group in broken for reason, number in group.by_reason.items() if reason.endswith(BEGINS_AS_OBJECT)
    )
    whole = count_of(parts_of(where.reading.unframed.get(where.side, ())))
    whole += sum(count_of(where.reading.framed[where.side, mark]) for mark in where.reading.marks(where.side))
    return "most messages begin like JSON objects" if 2 * (parsed + begin) > whole else ""


def _live_versions(where: SideOfTopic) -> Iterator[RegisteredVersion]:
    for subject in where.subjects:
        for version in where.registered.histories.get(subject, ()):
            if not version.deleted:
                yield version
