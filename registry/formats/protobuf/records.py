"""Where messages of two schemas meet in the records of a topic: the root, and the fields that lead on from it."""

from __future__ import annotations

from dataclasses import dataclass

from registry.formats.protobuf.compiler import KNOWN_NAMES
from registry.formats.protobuf.model import Field, Message


@dataclass(frozen=True, slots=True)
class Step:
    """A field that leads from one pair of messages to the next."""

    theirs: Field
    ours: Field


@dataclass(frozen=True, slots=True)
class Pair:
    """Two messages that meet, and the way from the root of a record to them."""

    writer: Message
    reader: Message
    root_writer: Message
    root_reader: Message
    steps: tuple[Step, ...] = ()

    @property
    def path(self) -> str:
        """The way for people: `Order.items[]`."""
        parts = [self.root_writer.local_name]
        for step in self.steps:
            suffix = "{}" if step.theirs.is_map else "[]" if step.theirs.is_repeated else ""
            parts.append(step.theirs.shown_name + suffix)
        return ".".join(parts)


def held_message(field: Field) -> Message | None:
    """The message in a field, or in the values of a map."""
    if field.is_map and field.message is not None:
        return field.message.by_number[2].message
    return field.message


def is_known(pair: Pair) -> bool:
    """Both sides have the same definition from the known types."""
    return (
        pair.writer.source == pair.reader.source
        and pair.writer.source in KNOWN_NAMES
        and (pair.writer.full_name == pair.reader.full_name)
    )
