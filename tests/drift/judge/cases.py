"""From the short forms of the judge's case files to what the judge takes. Times in cases are days since 1970."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from registry.drift.judge import (
    Event,
    FieldDay,
    FieldKey,
    KnownFinding,
    MarkUse,
    Memory,
    Registered,
    RegisteredVersion,
    SubjectSummary,
    TopicMemory,
    TopicVolume,
    declared_fields,
)
from registry.drift.judge.field_history import day_of
from registry.drift.judge.model import Cause, fingerprint_of
from registry.drift.judge.topic_observations import bare_name, context_of
from registry.formats import FORMATS
from registry.observations import (
    ContractRule,
    ContractRuleResult,
    FieldProfile,
    FramedMessages,
    FramedTwice,
    LimitExceeded,
    MessageIndexes,
    NullMessages,
    Observation,
    OffsetsExpired,
    OtherGroups,
    PartitionRead,
    RankedMessages,
    Sample,
    SchemaNotUsed,
    Span,
    StateFieldNulls,
    StateLimit,
    StateRows,
    StateSchemaVersion,
    StateUnreadable,
    TopicLost,
    TopicRemade,
    TopicTotals,
    UndecodableMessages,
    UnframedMessages,
)

DAY = 86_400_000
NOW = 20_000  # the day of the judgement, unless a case says another one
GUID = "6f1a2b3c-0000-4000-8000-000000000001"


def load_cases(name: str) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / name).read_text())
    return cases


def span(messages: int, first: int = 0, last: int | None = None, begin: float = NOW, end: float | None = None) -> Span:
    last = first + messages - 1 if last is None else last
    return Span(messages, messages * 50, first, last, int(begin * DAY), int((begin if end is None else end) * DAY))


def mark_of(value: Any) -> tuple[Any, str]:
    """7 → a schema id, `guid` → a GUID, anything else → a content type; None → neither."""
    if value is None:
        return None, ""
    if isinstance(value, int):
        return "id", str(value)
    return ("guid", GUID) if value == "guid" else ("content_type", str(value))


def struct(fields: dict[str, Any]) -> str:
    listed = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in fields.items()]
    return json.dumps({"type": "struct", "fields": listed})


def state(operator: int, variable: str, version: int, batch: int, fields: dict[str, str]) -> StateSchemaVersion:
    key = struct({"id": "long"})
    return StateSchemaVersion(operator, variable, "value", version, version - 1, batch, "avro", key, struct(fields))


def profile(
    topic: str,
    side: Any,
    mark: Any,
    path: str,
    messages: int,
    present: int,
    nulls: int = 0,
    kinds: dict[str, int] | None = None,
    values: dict[str, int] | None = None,
    undeclared: Sequence[int] = (),
    declared: str = "",
    first_of_kind: Mapping[str, Sequence[int]] = MappingProxyType({}),
    absent: Sequence[int] = (),
    other_types: int = 0,
) -> FieldProfile:
    framing, text = mark_of(mark)
    counts = (messages, present, nulls, kinds or {}, None, None, None, values or {}, tuple(undeclared), declared)
    firsts = {kind: tuple(place) for kind, place in first_of_kind.items()}
    return FieldProfile(topic, side, framing, text, path, *counts, firsts, tuple(absent), other_types)


_REASONS = {"undecodable": "a length of −3", "violates": "at properties/qty/type", "not_read": "it is nested too deep"}


def observation(form: str, arguments: list[Any]) -> Observation:
    """One observation; `form@topic` is about another topic than orders."""
    form, _, topic = form.partition("@")
    topic = topic or "orders"
    match form, arguments:
        case "framed", [side, part, mark, *where]:
            return FramedMessages(topic, side, part, *mark_of(mark), span(*where))
        case ("undecodable" | "violates" | "not_read") as problem, [side, part, mark, messages, first, last, *extra]:
            offsets = tuple(range(first, last + 1))[:3]
            where = span(messages, first, last)
            reason = _REASONS[problem]
            reasons, counts = extra or [[reason] * len(offsets), {reason: messages}]
            kind = "malformed" if problem == "undecodable" else problem
            return UndecodableMessages(
                topic, side, part, *mark_of(mark), where, offsets, tuple(reasons), kind, dict(counts)
            )
        case "expired", [part, start, end]:
            return OffsetsExpired(topic, part, start, end)
        case "twice", [side, part, schema_id, *where]:
            return FramedTwice(topic, side, part, GUID, schema_id, span(*where))
        case "unframed", [side, part, hint, *where]:
            return UnframedMessages(topic, side, part, hint, span(*where))
        case "null", [side, part, messages]:
            return NullMessages(topic, side, part, span(messages))
        case "indexes", [side, part, mark, indexes, *where]:
            return MessageIndexes(topic, side, part, *mark_of(mark), indexes, span(*where))
        case "rule", [side, mark, rule, messages, broken, *more]:
            made = ContractRule(**({"type": "CEL", "mode": "WRITEREAD", "on_failure": "ERROR"} | rule))
            first = tuple((0, offset) for offset in range(min(broken, 2)))
            return ContractRuleResult(topic, side, *mark_of(mark), made, messages, broken, first, *more)
        case "profile", _:
            return profile(topic, *arguments)
        case "values", [side, mark, path, messages, kind, distinct, low, high]:
            counted = profile(topic, side, mark, path, messages, messages, 0, {kind: messages})
            return replace(counted, distinct=distinct, minimum=low, maximum=high)
        case "ranked", [side, part, mark, first, paths, rows]:
            ranks = [row for number, row in rows for _ in range(number)]
            places = ((part, first + offset, tuple(row)) for offset, row in enumerate(ranks))
            return RankedMessages(topic, side, *mark_of(mark), tuple(paths), tuple(places))
        case "sample", [side, part, mark, offset, text]:
            return Sample(topic, side, part, offset, int(NOW * DAY), *mark_of(mark), text, text.startswith("revealed"))
        case "left_out", [side, mark, *what]:
            return LimitExceeded(topic, side, *mark_of(mark), *what)
        case "other", [part, groups, messages]:
            return OtherGroups(topic, part, groups, span(messages))
        case "not_used", [mark, reason, *topic_side]:
            return SchemaNotUsed(*mark_of(mark), reason, *topic_side)
        case "read", [part, start, end]:
            return PartitionRead(topic, part, start, end, 0, end, end - start)
        case "remade", [before, now, day, unread]:
            return TopicRemade(topic, before, now, int(day * DAY), unread)
        case "lost", [reason]:
            return TopicLost(topic, reason)
        case "totals", [messages]:
            return TopicTotals(topic, messages, messages * 50, None)
        case "state", _:
            return state(*arguments)
        case "limit", _:
            return StateLimit(*arguments)
        case "rows", _:
            return StateRows(*arguments)
        case "nulls", _:
            return StateFieldNulls(*arguments)
        case "unreadable", _:
            return StateUnreadable(*arguments)
    raise ValueError(f"no form {form} with {arguments}")


def observations(case: dict[str, Any]) -> list[Observation]:
    return [observation(form, arguments) for form, *arguments in case["observations"]]


def version_of(subject: str, number: int, more: dict[str, Any]) -> RegisteredVersion:
    at = int(more.pop("at", 0) * DAY)
    for name in ("status_since", "status_until"):
        more[name] = int(more.get(name, 0) * DAY)
    return RegisteredVersion(subject, number, registered_at=at, registered_by=more.pop("by", "ci"), **more)


def registered(case: dict[str, Any]) -> Registered:
    """`ids`: mark → [[subject, version, {more}]]; those of another context than `context` are found elsewhere."""
    values = case.get("registered", {})
    context = values.get("context", ".")
    by_mark = {
        mark_of(mark): [
            version_of(item[0], item[1], _numbered(mark) | (dict(item[2]) if len(item) > 2 else {})) for item in listed
        ]
        for mark, listed in values.get("ids", {}).items()
    }
    here = {
        mark: tuple(v for v in versions_ if context_of(v.subject) == context) for mark, versions_ in by_mark.items()
    }
    histories: dict[str, list[RegisteredVersion]] = {}
    for versions_ in here.values():
        for version in versions_:
            if version not in histories.setdefault(version.subject, []):
                histories[version.subject].append(version)
    for subject, listed in values.get("more_versions", {}).items():
        histories.setdefault(subject, []).extend(version_of(subject, n, dict(more)) for n, more in listed)
    subjects = {
        bare_name(name): SubjectSummary(
            name, sum(not v.deleted for v in versions_), min(v.registered_at for v in versions_)
        )
        for name, versions_ in histories.items()
    }
    return Registered(
        registry="dev",
        context=context,
        versions={mark: versions_ for mark, versions_ in here.items() if versions_},
        elsewhere={mark: tuple(versions_) for mark, versions_ in by_mark.items() if not here[mark]},
        subjects=subjects,
        histories={name: tuple(sorted(versions_, key=lambda v: v.version)) for name, versions_ in histories.items()},
        declared={
            (subject, number): versions_
            for subject, number, kind, text in values.get("declared", [])
            if (versions_ := declared_fields(FORMATS[kind].parse(text))) is not None
        },
        associated={("orders", side): tuple(names) for side, names in values.get("associated", {}).items()},
        events=tuple(Event(int(at * DAY), sentence, about) for at, sentence, about in values.get("events", [])),
    )


def _numbered(mark: Any) -> dict[str, Any]:
    return {"schema_id": mark} if isinstance(mark, int) else {"guid": GUID} if mark == "guid" else {}


def memory(case: dict[str, Any]) -> Memory:
    """`baseline`: [[side, mark, path, days, {of one day; a list is gone through day by day}]], up to yesterday."""
    values = case.get("memory", {})
    now = values.get("as_of", NOW)
    baselines = {}
    for side, mark, path, days, counts in values.get("baseline", []):
        framing, text = mark_of(mark)
        listed = [
            FieldDay(day_of((now - days + index) * DAY), **{name: _on(value, index) for name, value in counts.items()})
            for index in range(days)
        ]
        baselines[FieldKey("orders", side, framing or "", text, path)] = tuple(listed)
    return Memory(
        as_of=int(now * DAY),
        topics={
            name: TopicMemory(
                more.get("compacted", False),
                more.get("gone", False),
                message_types={
                    side: {
                        subject: {index: (int(first * DAY), int(last * DAY)) for index, (first, last) in types.items()}
                        for subject, types in of_side.items()
                    }
                    for side, of_side in more.get("types", {}).items()
                },
                volume=volume(now, *more["volume"]) if "volume" in more else None,
            )
            for name, more in values.get("topics", {}).items()
        },
        all_topics=frozenset(values.get("all_topics", ["orders"])),
        discovered=values.get("discovered", False),
        include=tuple(values.get("include", ())),
        exclude=tuple(values.get("exclude", ())),
        uses=tuple(
            MarkUse("orders", side, *mark_of(mark), messages, int(first * DAY), int(last * DAY))
            for side, mark, messages, first, last in values.get("uses", [])
        ),
        baselines=baselines,
        findings={
            fingerprint_of(rule, identity): KnownFinding(Cause(cause), int(since * DAY))
            for rule, identity, cause, since in values.get("findings", [])
        },
        accepted={fingerprint_of(rule, identity): day * DAY for rule, identity, day in values.get("accepted", [])},
    )


def volume(now: int, days: int, by_hour: int, last: Sequence[int]) -> TopicVolume:
    """As many messages in each hour of the days before, but for the last hours, of which the very last isn't over."""
    hours = (*[by_hour] * (days * 24 - len(last)), *last)
    return TopicVolume(now * 24 - len(hours) + 1, hours, 0, now * 24 - 1)


def _on(value: Any, day: int) -> Any:
    return value[day % len(value)] if isinstance(value, list) else value
