"""What a query reads, as far as its checkpoint tells: the offsets of each source have the form of its connector."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from registry.checkpoints.files import CheckpointFiles
from registry.checkpoints.filesystem import Missing
from registry.checkpoints.model import QuerySource

START_LIMIT: Final = 16 * 1024 * 1024  # bytes; a Kafka source's first offsets name every partition
MAX_TOPICS: Final = 10_000
MAX_SOURCES: Final = 1_000
NO_OFFSET: Final = "-"  # how Spark writes that a source had nothing yet


def _is_kafka(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and bool(value)
        and all(isinstance(parts, dict) and _are_offsets(parts) for parts in value.values())
    )


def _are_offsets(partitions: Mapping[str, Any]) -> bool:
    return all(part.isdigit() and isinstance(offset, int) for part, offset in partitions.items())


def _has(*names: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(name in value for name in names)


INTEGER: Final = "Spark's own test source, or a socket"  # whose offset is a number alone
# kind, what it is to people, and the form of its offset; the first that fits counts
FORMS: Final[tuple[tuple[str, str, Callable[[Any], bool]], ...]] = (
    ("kafka", "Kafka topics", _is_kafka),
    ("files", "a folder of files", _has("logOffset")),
    ("delta", "a Delta table", _has("sourceVersion", "reservoirVersion")),
    ("rate", "Spark's own test source", _has("offset", "timestamp")),
    ("rate", INTEGER, lambda value: isinstance(value, int)),
)


def query_sources(files: CheckpointFiles, offsets: Mapping[str, str]) -> tuple[QuerySource, ...]:
    """The query's sources by the last offset that each recorded; `offsets` maps a source's number or name to it.

    A sink isn't in a checkpoint's metadata. A source that had nothing yet is looked up where it keeps its beginning.
    """
    sources = []
    for name, text in list(offsets.items())[:MAX_SOURCES]:
        offset = text if text != NO_OFFSET else _beginning(files, name)
        sources.append(_source(name, offset))
    return tuple(sources)


def _source(name: str, text: str | None) -> QuerySource:
    if text is None:
        return QuerySource(name, "unknown", "a source with nothing to read yet", ())
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None  # a connector may write its offsets in any form
    for kind, description, fits in FORMS:
        if fits(value):
            topics = tuple(sorted(value))[:MAX_TOPICS] if kind == "kafka" else ()
            return QuerySource(name, kind, description, topics)
    return QuerySource(name, "unknown", "a source whose offsets don't name what it reads", ())


def _beginning(files: CheckpointFiles, name: str) -> str | None:
    """The offsets that a source began with, which Kafka's keeps in a file of its own after a null byte and `v1`."""
    if not any(entry.name == "0" for entry in files.entries("sources", name)):
        return None
    try:
        text = files.read("sources", name, "0", limit=START_LIMIT).decode("utf-8", "replace")
    except Missing:
        return None
    version, _, rest = text.lstrip("\0").partition("\n")
    return rest.strip() if version == "v1" else None
