"""How messages say which schema wrote them: not at all, cut off, twice, or in several ways."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from registry.drift.judge.model import JudgedFinding, Mark
from registry.drift.judge.reading import Part, parts_of
from registry.drift.judge.telling import SideOfTopic
from registry.drift.judge.words import FRAMINGS, HINTS, both, counted, either, mark_words
from registry.observations import UndecodableMessages, UnframedMessages

CUT = "cut_frame"
#: what a schema could describe; anything else needs none
_STRUCTURED = frozenset({"json_object", "json_array", "xml", "avro_file"})
_INTERNAL = ("_", "connect-")


def judge_framing(where: SideOfTopic) -> Iterator[JudgedFinding]:
    """The findings of a side by its framing."""
    unframed = where.reading.unframed.get(where.side, [])
    if where.subjects:
        cut = [each for each in unframed if each.hint == CUT]
        bare = [each for each in unframed if each.hint != CUT]
        if bare:
            yield _unframed(where, bare)
        if cut:
            yield _cut(where, cut)
        yield from _mixed(where)
    else:
        if where.side == "value":
            yield from _without_subject(where, unframed)
        yield from _not_json(where)
    yield from _twice(where)


def _unframed(where: SideOfTopic, messages: Sequence[UnframedMessages]) -> JudgedFinding:
    by_hint = _by_hint(messages)
    names = {"expected": either(where.subjects), "hints": either([HINTS[hint] for hint in by_hint])}
    return where.finding("UNFRAMED_DATA", parts_of(messages), names, evidence={"looks_like": by_hint})


def _cut(where: SideOfTopic, messages: Sequence[UnframedMessages]) -> JudgedFinding:
    is_one = sum(each.span.messages for each in messages) == 1
    names = {"begin": "begins" if is_one else "begin", "end": "ends" if is_one else "end"}
    return where.finding("FRAME_CUT", parts_of(messages), names)


def _mixed(where: SideOfTopic) -> Iterator[JudgedFinding]:
    """Several framings on a side, in this scan or beside what earlier scans saw in the last days.

    What ended longer ago is no reason: a topic that moved from one framing to another is done with it.
    """
    by_framing: dict[str, list[Part]] = {}
    for mark in where.reading.marks(where.side):
        if where.registered.versions.get(mark):  # an unknown mark is a finding of its own, and may be any bytes
            by_framing.setdefault(mark[0], []).extend(where.reading.framed[where.side, mark])
    before = _framings_before(where) if by_framing else {}
    framings = sorted({*by_framing, *before})
    if len(framings) > 1:
        counts = {framing: sum(part.messages for part in by_framing[framing]) for framing in sorted(by_framing)}
        earlier = {framing: before[framing] for framing in framings if framing not in by_framing}
        yield where.finding(
            "FRAMING_MIXED",
            [part for framing in sorted(by_framing) for part in by_framing[framing]],
            {"framings": both([FRAMINGS[framing] for framing in framings])},
            evidence={"framings": counts, **({"framings_before": earlier} if earlier else {})},
        )


def _framings_before(where: SideOfTopic) -> dict[str, int]:
    """Messages of earlier scans by framing, of those that were still written in the last days."""
    found: dict[str, int] = {}
    for use in where.memory.uses_of_side.get((where.reading.topic, where.side), ()) if where.side else ():
        if where.registered.versions.get((use.framing, use.mark)) and where.memory.is_recent(use.last_time):
            found[use.framing] = found.get(use.framing, 0) + use.messages
    return found


def _twice(where: SideOfTopic) -> Iterator[JudgedFinding]:
    """Of messages whose header and body both name a schema, those of a mark whose bodies don't decode.

    A bare body may begin like a frame by chance; then it decodes.
    """
    for (side, mark), seen in sorted(where.reading.twice.items()):
        if side != where.side or (side, mark) not in where.reading.undecodable:
            continue
        number = sum(each.span.messages for each in seen)
        ids = sorted({each.schema_id for each in seen})
        key: Mark = mark
        names = {
            "mark": mark_words(mark),
            "schema_id": either([str(each) for each in ids]),
            "carry": "carries" if number == 1 else "carry",
        }
        yield where.finding(
            "FRAMED_TWICE", parts_of(seen), names, key=key, evidence={"guid": mark[1], "schema_ids": ids}
        )


def _without_subject(where: SideOfTopic, messages: Sequence[UnframedMessages]) -> Iterator[JudgedFinding]:
    """Structured values that nothing describes, on a topic that isn't Kafka's own or a tool's.

    What else such a topic holds is no reason for the finding, and is said with it: each kind with its number.
    """
    told = [each for each in messages if each.hint in _STRUCTURED]
    if told and not where.reading.topic.startswith(_INTERNAL):
        looks = _by_hint([each for each in messages if each.hint != CUT])
        yield where.finding(
            "TOPIC_WITHOUT_SUBJECT", parts_of(told), {"looks": _looks(looks)}, evidence={"looks_like": looks}
        )


def _by_hint(messages: Iterable[UnframedMessages]) -> dict[str, int]:
    """Messages by what they look like, what a schema could describe first."""
    found: dict[str, int] = {}
    for each in sorted(messages, key=lambda each: (each.hint not in _STRUCTURED, each.hint)):
        found[each.hint] = found.get(each.hint, 0) + each.span.messages
    return found


def _looks(by_hint: Mapping[str, int]) -> str:
    """`2 messages look like XML and 1 message looks like gzip`."""
    return both(
        [
            f"{counted(number, 'message')} {'looks' if number == 1 else 'look'} like {HINTS[hint]}"
            for hint, number in by_hint.items()
        ]
    )


def bad_offsets(bad: Iterable[UndecodableMessages]) -> list[dict[str, Any]]:
    """The first offsets of each partition with the reason, as evidence."""
    return [
        {"partition": each.partition, "offsets": list(each.offsets), "reason": each.reason}
        for each in sorted(bad, key=lambda each: each.partition)
    ]


def _not_json(where: SideOfTopic) -> Iterator[JudgedFinding]:
    """Bytes that begin and end like JSON and are none, on a side that holds JSON otherwise."""
    seen = where.reading.not_json.get(where.side, [])
    parsed = max(
        (each.messages for each in where.reading.profiles if each.side == where.side and not each.framing), default=0
    )
    broken = sum(each.span.messages for each in seen)
    if broken and parsed > broken:
        offsets = bad_offsets(seen)
        names = {"look": "looks" if broken == 1 else "look", "are": "is" if broken == 1 else "are"}
        yield where.finding("NOT_JSON", parts_of(seen), names, evidence={"parsed": parsed, "offsets": offsets})
