"""Whose schemas a topic's messages carry, held against what is registered."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from registry.drift.judge import framing, standing, versions
from registry.drift.judge.model import JudgedFinding, Mark, Memory, Registered, RegisteredVersion, make_finding
from registry.drift.judge.reading import SIDES, Part, Reading, count_of, parts_of
from registry.drift.judge.strategies import bare_name, belonging, context_of
from registry.drift.judge.telling import SideOfTopic, mark_evidence
from registry.drift.judge.words import SHOWN, counted, either, mark_words, moment, owners
from registry.drift.rules import Severity
from registry.observations import Observation, OffsetsExpired, TopicRemade, UndecodableMessages

MOST_EXPIRED: Final = 100  # ranges in the evidence


def judge_topic(reading: Reading, registered: Registered, memory: Memory) -> Iterator[JudgedFinding]:
    """The findings of one topic by ids and framing; those of its fields are in `fields`."""
    governed = False
    for side in SIDES:
        found = belonging((reading.topic, side), reading.marks(side), registered)
        where = SideOfTopic(reading, side, registered, memory, found.subjects)
        governed = governed or bool(found.subjects)
        if found.subjects:
            yield from _of_governed(where)
        else:
            yield from _of_ungoverned(where)
        yield from framing.judge_framing(where)
        yield from _not_read(where)
    if reading.others and governed:
        yield _folded(reading, registered, memory)
    yield from _not_decoded(reading, registered, memory)


def _of_governed(where: SideOfTopic) -> Iterator[JudgedFinding]:
    for mark in where.reading.marks(where.side):
        yield from _of_mark(where, mark, where.reading.framed[where.side, mark])
    yield from versions.judge_versions(where)


def _of_mark(where: SideOfTopic, mark: Mark, parts: list[Part]) -> Iterator[JudgedFinding]:
    """What is to say of one mark on a side that has a subject."""
    found = where.registered.versions.get(mark, ())
    own = [version for version in found if version.subject in where.subjects]
    undecodable = parts_of(where.reading.undecodable.get((where.side, mark), ()))
    if not found:
        yield _unknown(where, mark, parts)
    elif not own:
        yield where.finding(
            "ID_OF_OTHER_SUBJECT",
            parts,
            {**_names(where, mark, found)},
            key=mark,
            evidence={**mark_evidence(mark), "owners": owners(found), "undecodable_messages": count_of(undecodable)},
        )
    else:
        yield from _own(where, mark, parts, own)
        if undecodable and (where.side, mark) not in where.reading.twice:
            yield _undecodable(where, "UNDECODABLE", where.reading.undecodable[where.side, mark], mark, parts, own)
        violating = where.reading.violating.get((where.side, mark))
        if violating:
            yield _undecodable(where, "SCHEMA_VIOLATED", violating, mark, parts, own)


def _unknown(where: SideOfTopic, mark: Mark, parts: list[Part]) -> JudgedFinding:
    """A mark that the context doesn't know: another context's where that has the topic's subject, or is sure to.

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
    where: SideOfTopic, mark: Mark, parts: list[Part], own: Sequence[RegisteredVersion]
) -> Iterator[JudgedFinding]:
    names = _names(where, mark, own)
    evidence = {**mark_evidence(mark), "owners": owners(own)}
    live = [version for version in own if not version.deleted]
    if not live:
        yield where.finding("ID_DELETED", parts, names, key=mark, evidence=evidence, subject=own[0].subject)
        return
    yield from standing.judge_standing(where, mark, parts, live, {**names, "owners": owners(live)}, evidence)
    trusted = [version for version in live if version.standing != standing.QUARANTINED]
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
    parts: list[Part],
    own: Sequence[RegisteredVersion],
    *,
    severity: Severity | None = None,
) -> JudgedFinding:
    """Bodies of a mark that its schema doesn't decode, or whose values it forbids; with the first offsets of each."""
    evidence = {
        **mark_evidence(mark),
        "owners": owners(own),
        "of_messages": count_of(parts),
        "offsets": framing.bad_offsets(bad),
    }
    names = _names(where, mark, own)
    return where.finding(
        rule, parts_of(bad), names, key=mark, evidence=evidence, subject=own[0].subject, severity=severity
    )


def _not_read(where: SideOfTopic) -> Iterator[JudgedFinding]:
    """Bodies whose reading was given up, whatever subject the side has: they may stop any consumer."""
    for (side, mark), bad in sorted(where.reading.not_read.items(), key=repr):
        if side == where.side:
            evidence = {**(mark_evidence(mark) if mark else {}), "offsets": framing.bad_offsets(bad)}
            reason = min(bad, key=lambda each: (each.partition, each.span.first_offset)).reason
            key = mark or ("", "")
            yield where.finding("MESSAGE_NOT_READ", parts_of(bad), {"reason": reason}, key=key, evidence=evidence)


def judge_expired(observations: Iterable[Observation], registered: Registered) -> Iterator[JudgedFinding]:
    """One finding a topic of which offsets were deleted before a scan read them."""
    by_topic: dict[str, list[OffsetsExpired]] = {}
    for each in observations:
        if isinstance(each, OffsetsExpired) and each.start < each.end:
            by_topic.setdefault(each.topic, []).append(each)
    for topic, expired in sorted(by_topic.items()):
        expired.sort(key=lambda each: (each.partition, each.start))
        number = sum(each.end - each.start for each in expired)
        yield make_finding(
            "OFFSETS_EXPIRED",
            {"topic": topic, "offsets": counted(number, "offset"), "registry": registered.registry},
            (topic,),
            location=", ".join(_offsets(topic, each) for each in expired[:SHOWN]),
            count=number,
            evidence={
                "topic": topic,
                "messages": number,
                "expired": [
                    {"partition": each.partition, "start": each.start, "end": each.end}
                    for each in expired[:MOST_EXPIRED]
                ],
            },
            topic=topic,
        )


def judge_remade(
    observations: Iterable[Observation], registered: Registered, memory: Memory
) -> Iterator[JudgedFinding]:
    """One finding a topic that was deleted and made again since a scan read it."""
    for each in sorted((seen for seen in observations if isinstance(seen, TopicRemade)), key=lambda seen: seen.topic):
        known = {"topic_id_before": each.id_before, "topic_id": each.id_now, "unread_before": each.unread}
        yield make_finding(
            "TOPIC_MADE_ANEW",
            {
                "topic": each.topic,
                "since": moment(each.last_read),
                "unread": _unread(each.unread),
                "registry": registered.registry,
            },
            (each.topic,),
            location=each.topic,
            count=each.unread or 1,
            evidence={
                "topic": each.topic,
                "last_read_at": each.last_read,
                "noticed_at": memory.as_of,
                **{name: value for name, value in known.items() if value not in ("", None)},
            },
            topic=each.topic,
        )


def _unread(number: int | None) -> str:
    if number is None:
        return "how many of its messages were unread isn't known"
    return (
        f"{counted(number, 'message')} {'was' if number == 1 else 'were'} unread" if number else "all was read by then"
    )


def _offsets(topic: str, expired: OffsetsExpired) -> str:
    last = expired.end - 1
    return f"{topic}:{expired.partition}@{expired.start}" + (f"–{last}" if last > expired.start else "")


def _of_ungoverned(where: SideOfTopic) -> Iterator[JudgedFinding]:
    """Known marks on a side without a subject are one finding; unknown ones may be any binary data.

    Beside known marks they are counted in its evidence, with all else that couldn't be told.
    """
    known = {
        mark: where.registered.versions[mark]
        for mark in where.reading.marks(where.side)
        if where.registered.versions.get(mark)
    }
    if known:
        parts = [part for mark in known for part in where.reading.framed[where.side, mark]]
        found = [version for versions_ in known.values() for version in versions_]
        yield where.finding(
            "SUBJECT_MISSING",
            parts,
            {"owners": owners(found)},
            evidence={
                "marks": [mark_words(mark) for mark in known],
                "owners": owners(found),
                **_not_told(where, known),
            },
        )
    for mark, versions_ in known.items():
        yield from _bad_of_ungoverned(where, mark, versions_)


def _not_told(where: SideOfTopic, known: Collection[Mark]) -> dict[str, Any]:
    """Messages beside those of known schemas that nothing can be told of, by what is in the way."""
    reading, side = where.reading, where.side
    unknown = [part for mark in reading.marks(side) if mark not in known for part in reading.framed[side, mark]]
    bad = [each for mark in known for each in reading.undecodable.get((side, mark), ())]
    cut = [each for each in reading.unframed.get(side, ()) if each.hint == framing.CUT]
    counts = {
        "unknown_id": count_of(unknown),
        "undecodable": count_of(parts_of(bad)),
        "cut_frame": count_of(parts_of(cut)),
    }
    found = {name: number for name, number in counts.items() if number}
    return {"not_told": found} if found else {}


def _bad_of_ungoverned(
    where: SideOfTopic, mark: Mark, versions_: Sequence[RegisteredVersion]
) -> Iterator[JudgedFinding]:
    """Bodies under a known mark that don't decode, or that their schema forbids, on a side without a subject.

    Lengths and counters in binary data may pass for ids, and hardly any of their bodies decodes. So this is as severe
    as with a subject once most bodies decode; else it is a notice, and only of a live version.
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


def _folded(reading: Reading, registered: Registered, memory: Memory) -> JudgedFinding:
    """Ids beyond the scan's bound, where any side has a subject: elsewhere any bytes are normal."""
    where = SideOfTopic(reading, None, registered, memory, ())
    groups = max(each.groups for each in reading.others)
    names = {"groups": f"{groups:,}"}
    return where.finding("TOO_MANY_IDS", parts_of(reading.others), names, evidence={"groups": groups})


def _not_decoded(reading: Reading, registered: Registered, memory: Memory) -> Iterable[JudgedFinding]:
    where = SideOfTopic(reading, None, registered, memory, ())
    for each in reading.not_used:
        mark: Mark = (each.framing, each.mark)
        names = {"mark": mark_words(mark), "reason": each.reason.rstrip(".")}
        yield where.finding(
            "SCHEMA_NOT_DECODED", [], names, key=mark, evidence={**mark_evidence(mark), "reason": each.reason}
        )


def _names(where: SideOfTopic, mark: Mark, found: Sequence[RegisteredVersion]) -> Mapping[str, Any]:
    return {"mark": mark_words(mark), "owners": owners(found), "expected": either(where.subjects)}
