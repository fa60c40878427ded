"""Bodies of messages decoded: what is right, what is refused and where; hostile bytes do no harm."""

from __future__ import annotations

import json
import multiprocessing
from multiprocessing.connection import Connection
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.errors import InvalidDatum, InvalidSchema
from registry.formats import FORMATS
from registry.formats.avro import AVRO
from registry.formats.avro.datum import codec, plain
from registry.formats.avro.decoding import MAX_VALUES
from registry.formats.avro.decoding import decode_body as decode_avro_body
from registry.formats.base import MAX_BODY
from registry.formats.json_schema.data import json_value
from registry.formats.protobuf import PROTOBUF
from registry.formats.protobuf.decoding import split_indexes
from tests.formats.avro.random_schemas import DataMaker, Endless, random_pair
from tests.pipeline.hostile import HOSTILE, PROTO, Hostile
from tests.waiting import costs_little

SEEDS = st.integers(min_value=0, max_value=2**48)
TREE = AVRO.parse(
    json.dumps(
        {
            "type": "record",
            "name": "Tree",
            "fields": [
                {"name": "name", "type": ["null", "string"]},
                {"name": "sizes", "type": {"type": "map", "values": "double"}},
                {"name": "below", "type": {"type": "array", "items": "Tree"}},
            ],
        }
    )
)
SHOP = PROTOBUF.parse(
    'syntax = "proto3"; package shop; message A { int32 n = 1; }'
    " message B { message C { message D { string s = 1; } D d = 1; } repeated C c = 1; }"
)
THING = FORMATS["JSON"].parse('{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}')


@settings(max_examples=150, deadline=None)
@given(SEEDS)
def test_what_a_codec_encodes_is_decoded_and_so_do_other_decoders(seed: int) -> None:
    try:
        schema = AVRO.parse(random_pair(seed)[0])
        datum = DataMaker(Random(seed)).of(schema.model.root)
    except (InvalidSchema, Endless):
        return
    encoded = codec(schema.model).encode(datum)
    body = decode_avro_body(schema.model, encoded)
    assert codec(schema.model).encode(body) == encoded
    assert repr(plain(body)) == repr(plain(_by_fastavro(schema, encoded)))


def _by_fastavro(schema: object, encoded: bytes) -> object:
    return codec(schema.model).decode(encoded)  # type: ignore[attr-defined]


@settings(max_examples=400, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_decoded_or_refused(data: bytes) -> None:
    for engine, schema in ((AVRO, TREE), (PROTOBUF, SHOP), (FORMATS["JSON"], THING)):
        try:
            engine.decode_body(schema, data)
        except InvalidDatum as refusal:
            assert refusal.message
        try:
            engine.replay_of(schema, schema)(data, None)
        except InvalidDatum as refusal:
            assert refusal.message


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("", "Tree.name, byte 0: the body ends here"),
        ("04", "Tree.name, byte 1: there is no branch of union<null, string> with the index 2"),
        ("02046f", "Tree.name, byte 2: 2 bytes are declared, but 1 are left"),
        ("0202ff", "Tree.name, byte 1: the string isn't UTF-8"),
        ("0002026b", "Tree.sizes{}, byte 4: 8 bytes are declared, but 0 are left"),
        ("0000020000", "Tree.below[0].below, byte 5: the body ends here"),
        ("000002000002", "Tree.below[0].below[0].name, byte 6: the body ends here"),
        ("ffffffffffffffffffff01", "Tree.name, byte 0: the number has more than the 64 bits of a long"),
        ("00000000", "Tree, byte 3: the data ends here, but 1 bytes are left over"),
    ],
)
def test_errors_name_the_field_and_the_byte(body: str, says: str) -> None:
    with pytest.raises(InvalidDatum) as refusal:
        decode_avro_body(TREE.model, bytes.fromhex(body))
    assert says in refusal.value.message
    assert refusal.value.details["path"].startswith("Tree")


def test_depth_and_number_of_values_are_bounded() -> None:
    deep = bytes.fromhex("000002") * 5_000
    nulls = AVRO.parse('{"type": "array", "items": "null"}')
    many = bytes.fromhex("80b518") + b"\x00"  # 200 000 nulls
    with costs_little():
        with pytest.raises(InvalidDatum, match="nested more than"):
            decode_avro_body(TREE.model, deep)
        with pytest.raises(InvalidDatum, match="a block declares 200,000 items"):
            decode_avro_body(nulls.model, many)
        blocks = b"\x02" * (MAX_VALUES + 10) + b"\x00"  # one null a block, each block of one byte
        with pytest.raises(InvalidDatum, match=r"values are read|declares more than"):
            decode_avro_body(nulls.model, blocks)
        with pytest.raises(InvalidDatum, match="at most"):
            AVRO.decode_body(nulls, bytes(MAX_BODY + 1))


def test_negative_counts_of_blocks_have_their_size_behind_them() -> None:
    numbers = AVRO.parse('{"type": "array", "items": "int"}')
    assert decode_avro_body(numbers.model, bytes.fromhex("0304020400")) == [1, 2]


@pytest.mark.parametrize(
    ("body", "indexes", "rest"),
    [("00", (0,), ""), ("0202", (1,), ""), ("040200ff", (1, 0), "ff"), ("0602000a01", (1, 0, 5), "01")],
)
def test_message_indexes(body: str, indexes: tuple[int, ...], rest: str) -> None:
    assert split_indexes(bytes.fromhex(body)) == (indexes, bytes.fromhex(rest))


@pytest.mark.parametrize("body", ["", "02", "01", "ff7f", "808080808080", "0480"])
def test_message_indexes_that_are_none(body: str) -> None:
    with pytest.raises(InvalidDatum, match="byte"):
        split_indexes(bytes.fromhex(body))


def test_a_nested_message_is_found_by_its_indexes() -> None:
    body = PROTOBUF.decode_body(SHOP, bytes.fromhex("06020000") + b"\x0a\x02hi")
    assert (body.type_name, body.value, body.indexes) == ("shop.B.C.D", {"s": "hi"}, (1, 0, 0))
    inside = PROTOBUF.decode_body(SHOP, b"\x08\x05", (0,))
    assert (inside.type_name, inside.value) == ("shop.A", {"n": 5})
    with pytest.raises(InvalidDatum, match=r"message index 3 of \[1, 3\] is out of range: shop.B has 1 messages there"):
        PROTOBUF.decode_body(SHOP, bytes.fromhex("040206"))


SECONDS = 60
#: JSON without a schema is read by the same function as JSON with one
ANY = "{}"


@pytest.mark.requirement("DEB-5")
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_body_ends_no_process(name: str) -> None:
    here, there = multiprocessing.get_context("fork").Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=_decode, args=(HOSTILE[name], there))
    child.start()
    there.close()
    try:
        outcome = here.recv() if here.poll(SECONDS) else "it takes too long"
    except EOFError:
        outcome = "the process ended"
    child.kill()
    child.join()
    assert outcome in ("read", "refused"), outcome


def _decode(case: Hostile, sender: Connection) -> None:
    kind = case.kind or "JSON"
    engine = FORMATS[kind]
    schema = engine.parse(PROTO if kind == "PROTOBUF" else case.schema or ANY)
    outcomes = []
    for read in (
        lambda: engine.decode_body(schema, case.body),
        lambda: engine.replay_of(schema, schema)(case.body, None),
        lambda: json_value(case.body),
    ):
        try:
            read()
            outcomes.append("read")
        except InvalidDatum as error:
            outcomes.append("refused" if error.message else "without a word")
        except Exception as error:  # noqa: BLE001  told to the test, which fails
            outcomes.append(repr(error)[:300])
    sender.send(next((outcome for outcome in outcomes if outcome not in ("read", "refused")), outcomes[0]))
