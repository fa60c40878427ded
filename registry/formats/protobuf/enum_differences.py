"""The differences of one enum: its values by name and number, and what is said about them."""

from __future__ import annotations

from collections.abc import Iterator

from registry.formats.base import Difference
from registry.formats.protobuf.differences import (
    Spot,
    difference,
    doc_differences,
    option_differences,
    reserved_differences,
)
from registry.formats.protobuf.model import Enum


def enum_differences(old: Enum, new: Enum) -> Iterator[Difference]:
    """All differences of two enums of one name."""
    spot = Spot(new.local_name, old.pointer, new.pointer)
    yield from doc_differences(old.doc, new.doc, spot)
    if old.is_closed != new.is_closed:
        yield difference("ENUM_CLOSED" if new.is_closed else "ENUM_OPENED", spot, None, None)
    yield from option_differences(old.options, new.options, spot, new.name)
    yield from _values(old, new)
    yield from reserved_differences(old, new, spot)


def _values(old: Enum, new: Enum) -> Iterator[Difference]:
    gone = {number: name for name, number in old.numbers.items() if name not in new.numbers}
    for name, number in new.numbers.items():
        path, pointer = f"{new.local_name}.{name}", f"{new.pointer}/values/{number}"
        if name in old.numbers:
            was = old.numbers[name]
            spot = Spot(path, f"{old.pointer}/values/{was}", pointer)
            if was != number:
                yield difference("ENUM_VALUE_RENUMBERED", spot, was, number, name=name)
            yield from doc_differences(old.value_docs.get(name, ""), new.value_docs.get(name, ""), spot)
            before, after = old.value_options.get(name, {}), new.value_options.get(name, {})
            yield from option_differences(before, after, spot, name)
        elif number in gone:
            spot = Spot(path, f"{old.pointer}/values/{number}", pointer)
            yield difference("ENUM_VALUE_RENAMED", spot, gone.pop(number), name)
        else:
            yield difference("ENUM_VALUE_ADDED", Spot(path, None, pointer), None, number, name=name)
    for number, name in gone.items():
        spot = Spot(f"{old.local_name}.{name}", f"{old.pointer}/values/{number}", None)
        yield difference("ENUM_VALUE_REMOVED", spot, number, None, name=name)
