"""Findings with their sentences, pointers and cures, as both the judgement and the truth tell them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from registry.formats.base import Incompatibility, Severity, Witness
from registry.formats.protobuf.model import Field, Message
from registry.formats.protobuf.rules import RULES


@dataclass(frozen=True, slots=True)
class Side:
    """A place in one of the two schemas: its pointer, and the import path where it is in another file."""

    pointer: str | None
    source: str | None = None

    @staticmethod
    def of(part: Field | Message) -> Side:
        """The place of a field or message."""
        return Side(part.pointer, part.source)


@dataclass(frozen=True, slots=True)
class Place:
    """Where two schemas meet: the path for people, the place as Confluent writes it, and both sides."""

    path: str
    location: str
    reader: Side
    writer: Side


def finding(
    rule_id: str,
    place: Place,
    *,
    name: str,
    writer: Any,
    reader: Any,
    severity: Severity | None = None,
    example: str = "",
    witness: Witness | None = None,
) -> Incompatibility:
    """A finding of that rule; `writer` and `reader` are what each side has there, None where it has nothing."""
    rule = RULES[rule_id]
    values = {"name": name, "writer": _shown(writer), "reader": _shown(reader)}
    return Incompatibility(
        rule=rule.id,
        kind=rule.kind,
        reader_pointer=place.reader.pointer,
        writer_pointer=place.writer.pointer,
        path=place.path,
        before=writer,
        after=reader,
        message=rule.sentence.format_map(values),
        severity=severity or rule.severity,
        location=place.location,
        why=rule.why,
        remedy_in_reader=rule.in_reader.format_map(values),
        remedy_in_writer=rule.in_writer.format_map(values),
        reader_source=place.reader.source,
        writer_source=place.writer.source,
        example=example,
        witness=witness,
    )


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} = {number}" for name, number in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "nothing" if value is None else str(value)


def plain_finding(rule_id: str, place: Place, name: str, writer: Any, reader: Any) -> Incompatibility:
    """A finding of that rule without proof, as the judgement tells it."""
    return finding(rule_id, place, name=name, writer=writer, reader=reader)


def field_path(message: Message, field: Field) -> str:
    """The path of a field in the message that declares it: `Order.price`."""
    return f"{message.local_name}.{field.shown_name}"
