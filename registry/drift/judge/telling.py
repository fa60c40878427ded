"""Making findings of a topic's side: the names, the evidence and the cause that all of them have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from registry.drift.judge.causes import cause_of
from registry.drift.judge.model import JudgedFinding, Mark, Memory, Registered, make_finding
from registry.drift.judge.reading import Part, Reading, count_of, positions, where
from registry.drift.judge.sampling import samples_of
from registry.drift.judge.words import capitalised, counted, either
from registry.drift.rules import Severity
from registry.observations import Side


def mark_evidence(mark: Mark) -> dict[str, Any]:
    """A mark as evidence; a schema id as a number too."""
    framing, text = mark
    evidence: dict[str, Any] = {"framing": framing, "mark": text}
    if framing == "id" and text.isdecimal():
        evidence["schema_id"] = int(text)
    return evidence


@dataclass(frozen=True)
class SideOfTopic:
    """A topic's keys or values (None: both) as they were read, and all that they are held against."""

    reading: Reading
    side: Side | None
    registered: Registered
    memory: Memory
    subjects: tuple[str, ...]

    def finding(
        self,
        rule: str,
        parts: Sequence[Part],
        names: Mapping[str, Any],
        *,
        key: Sequence[str] = (),
        evidence: Mapping[str, Any] | None = None,
        subject: str = "",
        severity: Severity | None = None,
        count: int | None = None,
    ) -> JudgedFinding:
        """A finding about those messages; `key` tells it from others of its rule on this side."""
        topic, side = self.reading.topic, self.side or ""
        number = count_of(parts) if count is None else count
        identity = (topic, side, *key)
        filled = {
            "topic": topic,
            "side": side,
            "registry": self.registered.registry,
            "messages": counted(number, "message"),
            **names,
        }
        if "mark" in filled:
            filled["Mark"] = capitalised(str(filled["mark"]))
        concerned = subject or (self.subjects[0] if self.subjects else "")
        details = {
            "topic": topic,
            "side": self.side,
            **({"expected": either(self.subjects)} if self.subjects else {}),
            "messages": number,
            "of_messages_read": self.reading.messages,
            **(evidence or {}),
            **positions(parts),
        }
        samples = samples_of(rule, self.reading, self.side, parts)
        if samples:
            details["samples"] = samples
        return make_finding(
            rule,
            filled,
            identity,
            location=where((topic, self.side or ""), parts),
            count=max(1, number),
            evidence=details,
            severity=severity,
            topic=topic,
            subject=concerned,
            cause=cause_of(
                rule,
                identity,
                parts,
                starts=self.reading.starts,
                registered=self.registered,
                memory=self.memory,
                subjects=self.subjects,
            ),
        )
