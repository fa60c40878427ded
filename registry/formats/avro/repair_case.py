"""A finding seen from the side that is edited: what the steps of a repair look at."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from registry.formats.avro.model import AvroType, Field, Named, Record, Schema
from registry.formats.avro.places import Spot, field_at, root_of, type_at
from registry.formats.base import Incompatibility
from registry.formats.json_edit import NoSuchPlace, TextEdit, json_source

_PARTS: Final = ("/symbols", "/size")


@dataclass(frozen=True, slots=True)
class Case:
    """A finding seen from the side that is edited."""

    own: Schema
    found: Incompatibility
    pointer: str
    known: frozenset[str]
    other_root: AvroType | None
    other_pointer: str

    @classmethod
    def of(cls, own: Schema, other: Schema, found: Incompatibility, *, is_reader: bool) -> Case:
        """The case of a finding."""
        sides = [
            (found.reader_pointer, found.reader_source),
            (found.writer_pointer, found.writer_source),
        ]
        (pointer, source), (other_pointer, other_source) = sides if is_reader else sides[::-1]
        here = "/nowhere" if pointer is None or source is not None else pointer
        known = frozenset(own.named)
        return cls(own, found, here, known, root_of(other, other_source), other_pointer or "")

    def spot(self) -> Spot:
        """The own type of the finding; raises NoSuchPlace."""
        return required(type_at(self.own.root, use_of(self.pointer)))

    def other(self) -> Spot:
        """The other side's type; raises NoSuchPlace."""
        return required(type_at(self.other_root, use_of(self.other_pointer)))

    def definition(self) -> Named:
        """The own named type, where the own text defines it; raises NoSuchPlace."""
        type_ = self.spot().type
        if not isinstance(type_, Named) or type_.source is not None:
            raise NoSuchPlace(self.pointer)
        return type_

    def own_field(self) -> tuple[Record, Field]:
        """The own field of the finding; raises NoSuchPlace."""
        found = field_at(self.own.root, self.pointer)
        if found is None:
            raise NoSuchPlace(self.pointer)
        return found


Step = Callable[[Case, TextEdit], str]


def use_of(pointer: str) -> str:
    """Where the type of a finding is used, for one that points to a part of its definition."""
    for part in _PARTS:
        pointer = pointer.removesuffix(part)
    return pointer


def required(spot: Spot | None) -> Spot:
    """The spot; raises NoSuchPlace if there is none."""
    if spot is None:
        raise NoSuchPlace("type")
    return spot


def pretty(source: str) -> str:
    """JSON text with the spaces that people write."""
    return json_source(json.loads(source))
