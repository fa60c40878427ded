"""Members of oneofs and numbers of open enums on random schemas, held against every datum that the runtime reads.

The schemas are small enough to try everything: each pair of fields set together, written in both orders, with each of
a few values. What the runtime loses, the engine must tell, and nothing else.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import permutations, product
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message_factory import GetMessageClass

from registry.formats.base import ParsedSchema
from registry.formats.protobuf import PROTOBUF
from tests.amounts import how_many
from tests.formats.protobuf.random_schemas import UNNAMED, loss

pytestmark = pytest.mark.slow
TYPES = ("int32", "string", "E", "N", "bool")
HEADS = {"proto2": 'syntax = "proto2";', "proto3": 'syntax = "proto3";', "2023": 'edition = "2023";'}
VALUES = {
    FieldDescriptor.CPPTYPE_INT32: (5, 0),
    FieldDescriptor.CPPTYPE_STRING: ("x", ""),
    FieldDescriptor.CPPTYPE_BOOL: (True, False),
}


def one_side(rng: random.Random, types: dict[int, str], syntax: str, names: dict[str, int]) -> str:
    """A schema with the fields in random oneofs (or none), declared in random order; the record holds the message."""
    label = "optional " if syntax == "proto2" else ""
    by_oneof: dict[str, list[str]] = {}
    for number in rng.sample(sorted(types), len(types)):
        by_oneof.setdefault(rng.choice(("o", "p", "q", "")), []).append(f"{types[number]} f{number} = {number};")
    parts = []
    for oneof, members in by_oneof.items():
        plain = (f"{rng.choice((label, 'optional ' if syntax == 'proto3' else label))}{text}" for text in members)
        parts.append(f"oneof {oneof} {{ {' '.join(members)} }}" if oneof else " ".join(plain))
    rng.shuffle(parts)
    values = " ".join(f"{name} = {number};" for name, number in names.items())
    holder = rng.choice(("repeated M m = 1;", "map<string, M> m = 1;", f"{label}M m = 1;"))
    return (
        f"{HEADS[syntax]} message M {{ {' '.join(parts)} }} message R {{ {holder} }} "
        f"message N {{ {label}int32 x = 1; }} enum E {{ {values} }}"
    )


def random_pair(rng: random.Random) -> tuple[ParsedSchema, ParsedSchema]:
    """Reader and writer: the same fields, most of them of the same type."""
    numbers = rng.sample(range(1, 40), rng.randint(2, 5))
    types = {number: rng.choice(TYPES) for number in numbers}
    others = {n: rng.choice(TYPES) if rng.random() < 0.1 else types[n] for n in numbers if rng.random() < 0.9}
    names = {"A": 0, **({"B": 1} if rng.random() < 0.8 else {})}
    more = {**names, **({"C": 2} if rng.random() < 0.3 else {})}
    texts = [
        one_side(rng, fields, syntax, values)
        for fields, values in ((others or types, more), (types, names))
        for syntax in [rng.choice(sorted(HEADS))]
    ]
    return PROTOBUF.parse(texts[0]), PROTOBUF.parse(texts[1])


def values_of(field: FieldDescriptor) -> tuple[Any, ...]:
    if field.enum_type is not None:
        named = tuple(value.number for value in field.enum_type.values)
        return named if field.enum_type.is_closed else (*named, *UNNAMED)
    if field.message_type is not None:
        return tuple(GetMessageClass(field.message_type)(**values) for values in ({}, {"x": 3}))
    return VALUES[field.cpp_type]


def alone(descriptor: Descriptor, field: FieldDescriptor, value: Any) -> bytes:
    datum = GetMessageClass(descriptor)()
    if field.message_type is not None:
        getattr(datum, field.name).CopyFrom(value)
        getattr(datum, field.name).SetInParent()
    else:
        setattr(datum, field.name, value)
    return datum.SerializeToString()


class AsWritten:
    """Bytes in an order of their own for a datum, as `loss` writes it."""

    def __init__(self, descriptor: Descriptor, data: bytes) -> None:
        self._datum = GetMessageClass(descriptor).FromString(data)
        self._data = data

    def SerializeToString(self) -> bytes:  # noqa: N802 - as the runtime calls it
        return self._data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._datum, name)


def all_data(descriptor: Descriptor) -> Iterator[Any]:
    """Every field alone, and every two fields that may be set together, in both orders."""
    yield AsWritten(descriptor, b"")
    for field in descriptor.fields:
        for value in values_of(field):
            yield AsWritten(descriptor, alone(descriptor, field, value))
    for one, other in permutations(descriptor.fields, 2):
        if one.containing_oneof is None or one.containing_oneof != other.containing_oneof:
            for left, right in product(values_of(one), values_of(other)):
                yield AsWritten(descriptor, alone(descriptor, one, left) + alone(descriptor, other, right))


def message_of(schema: ParsedSchema, name: str = "M") -> Descriptor:
    return schema.model.pool.FindMessageTypeByName(name)


def losses(reader: ParsedSchema, writer: ParsedSchema) -> Iterator[str]:
    theirs, ours = message_of(writer), message_of(reader)
    return (lost for datum in all_data(theirs) if (lost := loss(datum, ours)))


@pytest.mark.requirement("GOO-2")
def test_the_engine_tells_what_the_runtime_loses_and_nothing_else() -> None:
    counts: dict[str, int] = {}
    for seed in range(how_many("pairs of Protobuf schemas with oneofs")):
        reader, writer = random_pair(random.Random(seed))
        truth = PROTOBUF.truth(reader, writer)
        # What holds the message may change its label: that is of R and not of M.
        findings = [item for item in truth.findings if item.path.startswith("M.")]
        lost = next(losses(reader, writer), "")
        assert bool(findings) == bool(lost), (seed, lost, [item.message for item in findings], reader.text, writer.text)
        for item in truth.findings:
            counts[item.rule] = counts.get(item.rule, 0) + 1
        counts[truth.answer] = counts.get(truth.answer, 0) + 1
    rules = {"MULTIPLE_FIELDS_MOVED_TO_ONEOF", "FIELD_MOVED_TO_EXISTING_ONEOF", "ENUM_CLOSED"}
    assert min(counts.get(name, 0) for name in (*rules, "yes", "no")) > 5, counts


def test_every_witness_is_a_datum_of_the_writer_that_the_runtime_loses() -> None:
    for seed in range(how_many("pairs of Protobuf schemas with oneofs")):
        reader, writer = random_pair(random.Random(seed))
        for item in PROTOBUF.truth(reader, writer).findings:
            assert item.witness is not None
            root = item.path.partition(".")[0].rstrip("[]{}")
            datum = AsWritten(message_of(writer, root), bytes.fromhex(item.witness.encoded))
            assert loss(datum, message_of(reader, root)), (seed, item.message, item.witness)
