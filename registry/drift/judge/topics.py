"""Compares the schemas of a topic's messages, and their framing, with what is registered.

Framing may be missing, cut off, doubled or mixed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from registry.drift.judge import versions
from registry.drift.judge.finding_builder import (
    FRAMINGS,
    HINTS,
    SHOWN,
    SideOfTopic,
    both,
    counted,
    either,
    mark_evidence,
    mark_words,
    moment,
    named,
    owners,
    subject_of_topic,
)
from registry.drift.judge.model import JudgedFinding, Mark, Memory, Registered, RegisteredVersion, make_finding
from registry.drift.judge.topic_observations import (
    SIDES,
    PartitionSpan,
    TopicObservations,
    bare_name,
    context_of,
    count_of,
    parts_of,
    positions,
    subjects_of_side,
)
from registry.drift.rules import Severity
from registry.formats import format_of
from registry.observations import (
    BEGINS_AS_OBJECT,
    Observation,
    OffsetsExpired,
    SchemaNotUsed,
    TopicRemade,
    UndecodableMessages,
    UnframedMessages,
)

CUT = "cut_frame"
MOST_OFFSETS: Final = 200  # in the evidence; the first ones of every partition first
MOST_REASONS: Final = 20
SHOWN_REASONS: Final = 3  # per sentence
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
    elif topic is not None and not topic.compacted:
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


def bad_offsets(bad: Sequence[UndecodableMessages]) -> dict[str, Any]:
    """Return the first offsets of each partition with reasons, and the number of messages by reason, as evidence."""
    ranked: list[tuple[int, int, int, str]] = []
    for group in bad:
        reasons = [*group.reasons, *[""] * len(group.offsets)]
        ranked += [
            (rank, group.partition, *pair) for rank, pair in enumerate(zip(group.offsets, reasons, strict=False))
        ]
    by_reason, others = reasons_of(bad)
    return {
        "offsets": [
            {"partition": partition, "offset": offset, **({"reason": reason} if reason else {})}
            for _, partition, offset, reason in sorted(sorted(ranked)[:MOST_OFFSETS], key=lambda row: row[1:])
        ],
        "by_reason": by_reason,
        **({"other_reasons": others} if others else {}),
    }


def reasons_of(bad: Iterable[UndecodableMessages]) -> tuple[dict[str, int], int]:
    """Return messages by the most frequent reasons, and how many have another or an unknown reason."""
    counts: Counter[str] = Counter()
    messages = 0
    for group in bad:
        counts.update(group.by_reason)
        messages += group.span.messages
    most = dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_REASONS])
    return most, max(0, messages - sum(most.values()))


def reason_words(by_reason: Mapping[str, int], others: int) -> str:
    """Return why messages couldn't be read: the only reason, or each with its number."""
    if len(by_reason) == 1 and not others:
        return next(iter(by_reason))
    phrases = [f"{reason} ({counted(number, 'message')})" for reason, number in list(by_reason.items())[:SHOWN_REASONS]]
    others += sum(list(by_reason.values())[SHOWN_REASONS:])
    if others and phrases:
        phrases.append(f"other or unknown reasons ({counted(others, 'message')})")
    return both(phrases) or "the reason isn't known"


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


MOST_EXPIRED: Final = 100  # ranges in the evidence


def judge_topic(reading: TopicObservations, registered: Registered, memory: Memory) -> Iterator[JudgedFinding]:
    """Yield the findings of one topic by ids and framing; `fields` has those of its fields."""
    governed = False
    for side in SIDES:
        owner = subjects_of_side((reading.topic, side), reading.marks(side), registered)
        where = SideOfTopic(reading, side, registered, memory, owner.subjects)
        governed = governed or bool(owner.subjects)
        if owner.subjects:
            yield from _of_governed(where)
        else:
            yield from _of_ungoverned(where)
        yield from judge_framing(where)
        yield from _not_read(where)
    if reading.others and governed:
        yield _folded(reading, registered, memory)
    yield from _not_decoded(reading)


def _of_governed(where: SideOfTopic) -> Iterator[JudgedFinding]:
    for mark in where.reading.marks(where.side):
        yield from _of_mark(where, mark, where.reading.framed[where.side, mark])
    yield from versions.judge_versions(where)


def _of_mark(where: SideOfTopic, mark: Mark, parts: list[PartitionSpan]) -> Iterator[JudgedFinding]:
    """Yield the findings about one mark on a side with a subject."""
    versions = where.registered.versions.get(mark, ())
    own = [version for version in versions if version.subject in where.subjects]
    undecodable = parts_of(where.reading.undecodable.get((where.side, mark), ()))
    if not versions:
        yield _unknown(where, mark, parts)
    elif not own:
        yield where.finding(
            "ID_OF_OTHER_SUBJECT",
            parts,
            {**_names(where, mark, versions)},
            key=mark,
            evidence={
                **mark_evidence(mark),
                "owners": owners(versions),
                **({"undecodable_messages": count_of(undecodable)} if where.reading.is_tried(where.side, mark) else {}),
            },
        )
    else:
        yield from _own(where, mark, parts, own)
        if undecodable and (where.side, mark) not in where.reading.twice:
            yield _undecodable(where, "UNDECODABLE", where.reading.undecodable[where.side, mark], mark, parts, own)
        violating = where.reading.violating.get((where.side, mark))
        if violating:
            yield _undecodable(where, "SCHEMA_VIOLATED", violating, mark, parts, own)


def _unknown(where: SideOfTopic, mark: Mark, parts: list[PartitionSpan]) -> JudgedFinding:
    """Return the finding of an unknown mark; it names another context if that one has the topic's subject or its GUID.

    Every context counts ids from 1, so the number alone proves nothing; a GUID does.
    """
    elsewhere = where.registered.elsewhere.get(mark, ())
    names = {bare_name(subject) for subject in where.subjects}
    likely = [version for version in elsewhere if mark[0] != "id" or bare_name(version.subject) in names]
    if likely:
        contexts = sorted({context_of(version.subject) for version in likely})
        return where.finding(
            "ID_OF_OTHER_CONTEXT",
            parts,
            {**_names(where, mark, likely), "context": where.registered.context},
            key=mark,
            evidence={**mark_evidence(mark), "owners": owners(likely), "contexts": contexts},
        )
    evidence: dict[str, Any] = mark_evidence(mark)
    if elsewhere:
        evidence["same_number_elsewhere"] = owners(elsewhere)
    return where.finding("UNKNOWN_SCHEMA_ID", parts, _names(where, mark, ()), key=mark, evidence=evidence)


def _own(
    where: SideOfTopic, mark: Mark, parts: list[PartitionSpan], own: Sequence[RegisteredVersion]
) -> Iterator[JudgedFinding]:
    names = _names(where, mark, own)
    evidence = {**mark_evidence(mark), "owners": owners(own)}
    live = [version for version in own if not version.deleted]
    if not live:
        yield where.finding("ID_DELETED", parts, names, key=mark, evidence=evidence, subject=own[0].subject)
        return
    yield from versions.judge_status(where, mark, parts, live, {**names, "owners": owners(live)}, evidence)
    trusted = [version for version in live if version.status != versions.QUARANTINED]
    if trusted and all(version.released is False for version in trusted):
        registered = [
            {"version": version.version, "by": version.registered_by, "at": version.registered_at} for version in own
        ]
        yield where.finding(
            "ID_NOT_RELEASED",
            parts,
            names,
            key=mark,
            evidence={**evidence, "registered": registered},
            subject=own[0].subject,
        )


def _undecodable(
    where: SideOfTopic,
    rule: str,
    bad: Sequence[UndecodableMessages],
    mark: Mark,
    parts: list[PartitionSpan],
    own: Sequence[RegisteredVersion],
    *,
    severity: Severity | None = None,
) -> JudgedFinding:
    """Return the finding of bodies that their schema doesn't decode, or whose values it forbids."""
    evidence = {**mark_evidence(mark), "owners": owners(own), "of_messages": count_of(parts), **bad_offsets(bad)}
    names = _names(where, mark, own)
    return where.finding(
        rule, parts_of(bad), names, key=mark, evidence=evidence, subject=own[0].subject, severity=severity
    )


def _not_read(where: SideOfTopic) -> Iterator[JudgedFinding]:
    """Yield bodies whose reading was given up, whatever the side's subject: they may stop any consumer."""
    for (side, mark), bad in sorted(where.reading.not_read.items(), key=repr):
        if side == where.side:
            evidence = {**(mark_evidence(mark) if mark else {}), **bad_offsets(bad)}
            names = {"reason": reason_words(*reasons_of(bad))}
            yield where.finding("MESSAGE_NOT_READ", parts_of(bad), names, key=mark or ("", ""), evidence=evidence)


def judge_expired(
    observations: Iterable[Observation], registered: Registered, memory: Memory
) -> Iterator[JudgedFinding]:
    """Yield a finding per topic with offsets that were deleted before a scan read them."""
    by_topic: dict[str, list[OffsetsExpired]] = {}
    for gap in observations:
        if isinstance(gap, OffsetsExpired) and gap.start < gap.end:
            by_topic.setdefault(gap.topic, []).append(gap)
    for topic, expired in sorted(by_topic.items()):
        expired.sort(key=lambda gap: (gap.partition, gap.start))
        number = sum(gap.end - gap.start for gap in expired)
        yield make_finding(
            "OFFSETS_EXPIRED",
            {"topic": topic, "offsets": counted(number, "offset"), "registry": registered.registry},
            (topic,),
            location=_first_gaps(topic, expired),
            count=number,
            evidence={
                "topic": topic,
                "messages": number,
                "expired": [
                    {"partition": gap.partition, "start": gap.start, "end": gap.end} for gap in expired[:MOST_EXPIRED]
                ],
                **({"expired_left_out": len(expired) - MOST_EXPIRED} if len(expired) > MOST_EXPIRED else {}),
            },
            topic=topic,
            subject=subject_of_topic(topic, registered, memory.topics.get(topic)),
        )


def judge_recreated(
    observations: Iterable[Observation], registered: Registered, memory: Memory
) -> Iterator[JudgedFinding]:
    """Yield a finding per topic that was deleted and recreated since a scan read it."""
    for remade in sorted((item for item in observations if isinstance(item, TopicRemade)), key=lambda item: item.topic):
        facts = {"topic_id_before": remade.id_before, "topic_id": remade.id_now, "unread_before": remade.unread}
        yield make_finding(
            "TOPIC_RECREATED",
            {
                "topic": remade.topic,
                "since": moment(remade.last_read),
                "unread": _unread(remade.unread),
                "registry": registered.registry,
            },
            (remade.topic,),
            location=remade.topic,
            count=remade.unread or 1,
            evidence={
                "topic": remade.topic,
                "last_read_at": remade.last_read,
                "noticed_at": memory.as_of,
                **{name: value for name, value in facts.items() if value not in ("", None)},
            },
            topic=remade.topic,
            subject=subject_of_topic(remade.topic, registered, memory.topics.get(remade.topic)),
        )


def _unread(number: int | None) -> str:
    if number is None:
        return "the number of unread messages is not known"
    return (
        f"{counted(number, 'message')} {'was' if number == 1 else 'were'} unread"
        if number
        else "everything was read by then"
    )


def _first_gaps(topic: str, expired: Sequence[OffsetsExpired]) -> str:
    shown = [_offsets(topic, gap) for gap in expired[:SHOWN]]
    return ", ".join([*shown, *([f"and {len(expired) - SHOWN:,} more"] if len(expired) > SHOWN else [])])


def _offsets(topic: str, expired: OffsetsExpired) -> str:
    last = expired.end - 1
    return f"{topic}:{expired.partition}@{expired.start}" + (f"–{last}" if last > expired.start else "")


def _of_ungoverned(where: SideOfTopic) -> Iterator[JudgedFinding]:
    """Yield one finding for known marks on a side without a subject; unknown ones may be any binary data.

    The evidence also counts unknown marks and messages that couldn't be identified.
    """
    versions_by_mark = {
        mark: where.registered.versions[mark]
        for mark in where.reading.marks(where.side)
        if where.registered.versions.get(mark)
    }
    if versions_by_mark:
        parts = [part for mark in versions_by_mark for part in where.reading.framed[where.side, mark]]
        versions = [version for versions_ in versions_by_mark.values() for version in versions_]
        yield where.finding(
            "SUBJECT_MISSING",
            parts,
            {"owners": owners(versions)},
            evidence={
                "marks": [mark_words(mark) for mark in versions_by_mark],
                "owners": owners(versions),
                **_uncounted_messages(where, versions_by_mark),
            },
        )
    for mark, versions_ in versions_by_mark.items():
        yield from _bad_of_ungoverned(where, mark, versions_)


def _uncounted_messages(where: SideOfTopic, known_marks: Collection[Mark]) -> dict[str, Any]:
    """Return messages without a known schema, counted by the reason why they can't be judged."""
    reading, side = where.reading, where.side
    unknown = [part for mark in reading.marks(side) if mark not in known_marks for part in reading.framed[side, mark]]
    bad = [group for mark in known_marks for group in reading.undecodable.get((side, mark), ())]
    cut = [group for group in reading.unframed.get(side, ()) if group.hint == CUT]
    counts = {
        "unknown_id": count_of(unknown),
        "undecodable": count_of(parts_of(bad)),
        "cut_frame": count_of(parts_of(cut)),
    }
    reasons = {name: number for name, number in counts.items() if number}
    return {"not_told": reasons} if reasons else {}


def _bad_of_ungoverned(
    where: SideOfTopic, mark: Mark, versions_: Sequence[RegisteredVersion]
) -> Iterator[JudgedFinding]:
    """Yield bodies with a known mark that don't decode or violate their schema, on a side without a subject.

    Lengths and counters in binary data may look like ids, and hardly any of their bodies decodes. So the severity is
    the same as with a subject once most bodies decode; otherwise it is a notice, and only for a live version.
    """
    parts = where.reading.framed[where.side, mark]
    bad = where.reading.undecodable.get((where.side, mark), [])
    is_meant = 2 * count_of(parts_of(bad)) < count_of(parts)
    is_live = any(not version.deleted for version in versions_)
    if bad and (is_meant or is_live) and (where.side, mark) not in where.reading.twice:
        yield _undecodable(where, "UNDECODABLE", bad, mark, parts, versions_, severity=None if is_meant else "notice")
    violating = where.reading.violating.get((where.side, mark))
    if violating and is_meant:
        yield _undecodable(where, "SCHEMA_VIOLATED", violating, mark, parts, versions_)


def _folded(reading: TopicObservations, registered: Registered, memory: Memory) -> JudgedFinding:
    """Return the finding of ids beyond the scan's limit, if a side has a subject: elsewhere any bytes are normal."""
    where = SideOfTopic(reading, None, registered, memory, ())
    groups = max(other.groups for other in reading.others)
    names = {"groups": f"{groups:,}"}
    return where.finding("TOO_MANY_IDS", parts_of(reading.others), names, evidence={"groups": groups})


def _not_decoded(reading: TopicObservations) -> Iterable[JudgedFinding]:
    """Yield schemas that couldn't be used to decode, with the number of their messages.

    The number is unknown if some messages were decoded before decoding was given up, or if keys and values both carry
    the mark, perhaps in the same messages.
    """
    by_mark: dict[Mark, list[SchemaNotUsed]] = {}
    for schema in reading.not_used:
        by_mark.setdefault((schema.framing, schema.mark), []).append(schema)
    for mark, unused in sorted(by_mark.items()):
        reason = "; ".join(dict.fromkeys(schema.reason.rstrip(".") for schema in unused))
        unused_sides = {schema.side for schema in unused}
        sides = [side for side in SIDES if (side, mark) in reading.framed and unused_sides & {None, side}]
        parts = [part for side in sides for part in reading.framed[side, mark]]
        is_counted = len(sides) == 1 and not reading.is_tried(sides[0], mark)
        yield make_finding(
            "SCHEMA_NOT_DECODED",
            {"topic": reading.topic, "mark": mark_words(mark), "reason": reason},
            (reading.topic, "", *mark),
            location=reading.topic,
            count=max(1, count_of(parts)) if is_counted else 1,
            evidence={
                "topic": reading.topic,
                "side": sides[0] if len(sides) == 1 else None,
                **mark_evidence(mark),
                **({"messages": count_of(parts), **positions(parts)} if is_counted else {}),
                "of_messages_read": reading.messages,
                "reason": reason,
            },
            topic=reading.topic,
        )


def _names(where: SideOfTopic, mark: Mark, versions: Sequence[RegisteredVersion]) -> Mapping[str, Any]:
    return {"mark": mark_words(mark), "owners": owners(versions), "expected": either(where.subjects)}
