"""The topics whose messages belong to a subject, and by which naming strategy."""

from __future__ import annotations

from dataclasses import dataclass

from registry.drift.judge.strategies import TOPIC_NAME
from registry.drift.models import SIDES
from registry.drift.use_rows import owner_of, topics_of
from registry.subjects.models import Registry
from registry.subjects.names import SubjectName


@dataclass(frozen=True)
class CarryingTopic:
    """A topic's side that belongs to a subject; `strategies` lead from it there, `is_found` where a scan saw that in data.

    Otherwise the topic's name alone says so.
    """

    name: str
    source: int
    side: str
    strategies: tuple[str, ...]
    is_found: bool


def carrying_topics(registry: Registry, subject: SubjectName) -> tuple[CarryingTopic, ...]:
    """The topics that are there, by name; one query."""
    found = []
    for row in topics_of(registry, subject, ()).values():
        if row.gone_at is not None:
            continue
        for side in SIDES:
            if owner_of(row, side, subject) == "this":
                is_found = bool(row.subjects.get(side))
                strategies = _leading(f"{row.name}-{side}" == subject.subject, row.strategies.get(side) or ())
                found.append(CarryingTopic(row.name, row.source_id, side, strategies, is_found))
    return tuple(found)


def _leading(is_topic_name: bool, strategies: list[str] | tuple[str, ...]) -> tuple[str, ...]:
    """Of the strategies that a side's subjects were found by, those that can lead to this one."""
    if is_topic_name:
        return (TOPIC_NAME,)
    return tuple(name for name in strategies if name != TOPIC_NAME)
