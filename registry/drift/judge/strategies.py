"""Which subjects a topic's keys and values belong to: found from names and data, not asked for.

TopicName (`orders-value`) counts where that subject is registered. Otherwise the marks of the messages tell: a subject
called like its own record is RecordName, one called like the topic and its record TopicRecordName. What was said to be
a topic's subject counts beside either. A content type names its subject itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from registry.drift.judge.model import DEFAULT_CONTEXT, Mark, Registered, RegisteredVersion, TopicSide

TOPIC_NAME: Final = "TopicName"
RECORD_NAME: Final = "RecordName"
TOPIC_RECORD_NAME: Final = "TopicRecordName"
ASSOCIATION: Final = "association"
CONTENT_TYPE: Final = "content type"


@dataclass(frozen=True)
class Belonging:
    """The strategies that were found, and the qualified names of the subjects that they lead to, both sorted."""

    strategies: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()


def bare_name(qualified: str) -> str:
    """A subject's name without its context."""
    return qualified.split(":", 2)[2] if qualified.startswith(":.") and qualified.count(":") > 1 else qualified


def context_of(qualified: str) -> str:
    """A subject's context."""
    return qualified.split(":", 2)[1] if qualified.startswith(":.") and qualified.count(":") > 1 else DEFAULT_CONTEXT


def belonging(where: TopicSide, marks: Iterable[Mark], registered: Registered) -> Belonging:
    """The subjects of a topic's side; none where it isn't governed."""
    topic, side = where
    found: dict[str, str] = {}
    own = registered.subjects.get(f"{topic}-{side}")
    if own is not None:
        found[own.name] = TOPIC_NAME
    for name in registered.associated.get(where, ()):
        found.setdefault(name, ASSOCIATION)
    for mark in marks:
        for version in registered.versions.get(mark, ()):
            if mark[0] == "content_type":
                found.setdefault(version.subject, CONTENT_TYPE)
            elif own is None:
                strategy = _strategy(topic, version)
                if strategy:
                    found.setdefault(version.subject, strategy)
    return Belonging(tuple(sorted(set(found.values()))), tuple(sorted(found)))


def _strategy(topic: str, version: RegisteredVersion) -> str:
    name = bare_name(version.subject)
    if version.record and name == version.record:
        return RECORD_NAME
    if version.record and name == f"{topic}-{version.record}":
        return TOPIC_RECORD_NAME
    return ""
