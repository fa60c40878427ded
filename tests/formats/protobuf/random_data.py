"""Random data of a schema, and a comparison of what was written with what was read, by the runtime's descriptors alone.

Nothing here uses the engine's own model, covering data or comparison: it is the second opinion of the tests.
"""

from __future__ import annotations

import random
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

INTEGERS = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}

UNNAMED = (77, -77, 2**31 - 1, -(2**31))


def random_datum(rng: random.Random, descriptor: Descriptor, depth: int = 0) -> Message:
    """A message with about half of its fields set, required ones always."""
    datum = GetMessageClass(descriptor)()
    for field in descriptor.fields:
        if not field.is_required and (rng.random() < 0.5 or (depth > 3 and field.message_type is not None)):
            continue
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            _fill_map(rng, getattr(datum, field.name), field.message_type, depth)
        elif field.is_repeated:
            for _ in range(rng.randint(0, 3)):
                if field.message_type is not None:
                    getattr(datum, field.name).add().CopyFrom(random_datum(rng, field.message_type, depth + 1))
                else:
                    getattr(datum, field.name).append(random_value(rng, field))
        elif field.message_type is not None:
            getattr(datum, field.name).CopyFrom(random_datum(rng, field.message_type, depth + 1))
            getattr(datum, field.name).SetInParent()
        else:
            setattr(datum, field.name, random_value(rng, field))
    return datum


def _fill_map(rng: random.Random, target: Any, entry: Descriptor, depth: int) -> None:
    key, value = entry.fields_by_number[1], entry.fields_by_number[2]
    for _ in range(rng.randint(0, 2)):
        if value.message_type is not None:
            target[random_value(rng, key)].CopyFrom(random_datum(rng, value.message_type, depth + 1))
        else:
            target[random_value(rng, key)] = random_value(rng, value)


def random_value(rng: random.Random, field: FieldDescriptor) -> Any:
    if field.enum_type is not None:
        named = [value.number for value in field.enum_type.values]
        return rng.choice(named if field.enum_type.is_closed else [*named, *UNNAMED])
    if field.cpp_type in INTEGERS:
        low, high = INTEGERS[field.cpp_type]
        return rng.choice((low, high, max(low, -3), 0, 1, 2, 300, rng.randint(low, high)))
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return rng.random() < 0.5
    if field.cpp_type in (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE):
        return rng.choice((0.0, 1.5, -2.25, 1e10, float("inf")))
    if field.type == FieldDescriptor.TYPE_BYTES:
        return bytes(rng.choices((0, 8, 65, 200, 255), k=rng.randint(0, 4)))
    return rng.choice(("", "a", "é", "\x08\x01", "long enough to be no number"))


def loss(written: Message, reader: Descriptor) -> str:
    """What the reader loses of a datum, "" for nothing: by number, and by name where the reader has moved it."""
    try:
        read = GetMessageClass(reader).FromString(written.SerializeToString())
    except DecodeError as error:
        return f"error: {error}"
    if not read.IsInitialized():
        return f"missing: {read.FindInitializationErrors()}"
    return difference(written, read)


def difference(written: Message, read: Message) -> str:
    for theirs in written.DESCRIPTOR.fields:
        ours = read.DESCRIPTOR.fields_by_name.get(theirs.name) or read.DESCRIPTOR.fields_by_number.get(theirs.number)
        if ours is None or (theirs.has_presence and not written.HasField(theirs.name)):
            continue
        left, right = items(written, theirs), items(read, ours)
        if theirs.is_repeated and not ours.is_repeated and not left:
            continue
        if not theirs.is_repeated and ours.is_repeated and left in ([0], [""], [b""], [False]) and not right:
            continue
        if not ours.is_repeated and ours.message_type is not None and not read.HasField(ours.name):
            return f"{theirs.name}: not set"
        found = len(left) != len(right) or next(
            (d for a, b in zip(left, right, strict=True) if (d := one(theirs, ours, a, b))), ""
        )
        if found:
            return f"{theirs.name}: {left} became {right} {found}"
    return ""


def items(datum: Message, field: FieldDescriptor) -> list[Any]:
    value = getattr(datum, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return [(key, value[key]) for key in sorted(value, key=str)]
    return list(value) if field.is_repeated else [value]


def one(theirs: FieldDescriptor, ours: FieldDescriptor, left: Any, right: Any) -> str:
    if isinstance(left, tuple) != isinstance(right, tuple):
        return "a map and no map"
    if isinstance(left, tuple):
        keys = [field.message_type.fields_by_number[1] for field in (theirs, ours)]
        values = [field.message_type.fields_by_number[2] for field in (theirs, ours)]
        return one(*keys, left[0], right[0]) or one(*values, left[1], right[1])
    if isinstance(left, Message) or isinstance(right, Message):
        if not (isinstance(left, Message) and isinstance(right, Message)):
            return "a message and no message"
        return difference(left, right)
    if theirs.enum_type is not None and ours.enum_type is not None and left == right:
        known = [value.name for value in theirs.enum_type.values if value.number == left]
        numbers = [
            ours.enum_type.values_by_name[name].number for name in known if name in ours.enum_type.values_by_name
        ]
        return "" if not numbers or left in numbers else "another number of the same name"
    if ours.type == FieldDescriptor.TYPE_STRING and isinstance(right, bytes):
        return "no text"
    a, b = (value.encode() if isinstance(value, str) else value for value in (left, right))
    return "" if a == b and isinstance(a, bytes) == isinstance(b, bytes) else "another value"
