"""Makes the findings of messages that can't be decoded, violate their schema or weren't read, with the reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from registry.drift.judge.finding_builder import SideOfTopic, both, counted, either, mark_evidence, mark_words, owners
from registry.drift.judge.model import JudgedFinding, Mark, RegisteredVersion, make_finding
from registry.drift.judge.topic_observations import (
    SIDES,
    PartitionSpan,
    TopicObservations,
    count_of,
    parts_of,
    positions,
)
from registry.drift.rules import Severity
from registry.observations import SchemaNotUsed, UndecodableMessages

MOST_OFFSETS: Final = 200  # in the evidence; the first ones of every partition first
MOST_REASONS: Final = 20
SHOWN_REASONS: Final = 3  # per sentence


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


def undecodable_finding(
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
    names = mark_names(where, mark, own)
    return where.finding(
        rule, parts_of(bad), names, key=mark, evidence=evidence, subject=own[0].subject, severity=severity
    )


def judge_not_read(where: SideOfTopic) -> Iterator[JudgedFinding]:
    """Yield bodies whose reading was given up, whatever the side's subject: they may stop any consumer."""
    for (side, mark), bad in sorted(where.reading.not_read.items(), key=repr):
        if side == where.side:
            evidence = {**(mark_evidence(mark) if mark else {}), **bad_offsets(bad)}
            names = {"reason": reason_words(*reasons_of(bad))}
            yield where.finding("MESSAGE_NOT_READ", parts_of(bad), names, key=mark or ("", ""), evidence=evidence)


def judge_not_decoded(reading: TopicObservations) -> Iterable[JudgedFinding]:
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


def mark_names(where: SideOfTopic, mark: Mark, versions: Sequence[RegisteredVersion]) -> Mapping[str, Any]:
    """Return the names that the sentences about a mark share: the mark, its owners and what the side expects."""
    return {"mark": mark_words(mark), "owners": owners(versions), "expected": either(where.subjects)}
