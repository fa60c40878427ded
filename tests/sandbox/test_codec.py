"""What crosses the pipe: the same comes out, and nothing but what is listed."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pickle
import random
from typing import Any

import pytest

from registry.errors import SchemaTooCostly
from registry.formats.base import Difference, Edit, ParsedSchema, Reference, ResolvedReference
from registry.sandbox import WeighedCache, codec
from registry.sandbox.codec import Source, Unreadable, decode, encode
from tests.waiting import costs_little

DIFFERENCE = Difference(
    "RULE", "changed", "/a", None, "A.b", {"!": "tuple", "v": [1]}, [1.5, None], "said", 0.5, ("x",)
)
VALUES: list[Any] = [
    None, True, 0, -(2**70), 1.5, float("inf"), "", "é\u2028\ud800", [], (), {}, [1, [2]], (1, (2, [3])), {"a": (1,)},
    {1: "a", (2, 3): "b"}, {"!": 1}, b"\x00\xff", DIFFERENCE, (DIFFERENCE, DIFFERENCE, [DIFFERENCE]),
    Reference("n", "s", 1), Edit("t", "text"),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_comes_out_as_it_went_in(value: Any) -> None:
    found = decode(encode(value))
    assert found == value
    assert type(found) is type(value)


def test_what_is_shared_is_written_once() -> None:
    shared = Edit("title", "x" * 10_000)
    found = decode(encode([shared] * 50))
    assert len(encode([shared] * 50)) < 15_000
    assert all(item is found[0] for item in found)


def test_a_model_stays_at_home() -> None:
    found = decode(encode(ParsedSchema("AVRO", "text", "canonical", "f", model=object())))
    assert found == ParsedSchema("AVRO", "text", "canonical", "f")
    assert found.model is None


def test_a_subclass_crosses_as_what_it_extends() -> None:
    @dataclasses.dataclass(frozen=True)
    class More(Edit):
        extra: object = dataclasses.field(default_factory=object)

    assert type(decode(encode(More("t", "text")))) is Edit


def test_references_that_are_a_huge_tree_are_a_small_graph() -> None:
    node: tuple[ResolvedReference, ...] = ()
    for number in range(200):
        node = (
            ResolvedReference("a", f"s{number}", 1, "{}", node),
            ResolvedReference("b", f"s{number}", 1, "{}", node),
        )
    with costs_little():  # as a tree it has 2^200 nodes
        data = encode(Source("AVRO", "text", node))
        found = decode(data)
    assert len(data) < 100_000
    depth, inner = 0, found.references
    while inner:
        assert [reference.name for reference in inner] == ["a", "b"]
        depth, inner = depth + 1, inner[0].references
    assert depth == 200


HOSTILE = {
    "a pickle": pickle.dumps({"value": 1}),
    "nothing": b"",
    "no type of ours": b'{"!": "Popen", "v": {"args": "true"}}',
    "a type by its module": b'{"!": "os.system", "v": {}}',
    "a dunder": b'{"!": "__class__", "v": {}}',
    "a field that is missing": b'{"!": "Edit", "v": {"title": "x"}}',
    "no value": b'{"!": "Edit"}',
    "a key that can't be one": b'{"!": "dict", "v": [[[1], 2]]}',
    "a part that isn't there": b'{"!": "again", "v": 3}',
    "a reference to what comes": b'{"!": "source", "v": {"type": "a", "text": "b", "nodes": [["n","s",1,"t",[1]]], "roots": [0]}}',
    "too deep": b"[" * 100_000,
    "a number too long": b"[" + b"1" * 10_000 + b"]",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_other_bytes_are_refused(what: str) -> None:
    with pytest.raises(Unreadable):
        decode(HOSTILE[what])


def test_bytes_by_lot_are_refused_or_plain() -> None:
    lots = random.Random(1)
    whole = encode([DIFFERENCE, {1: (2,)}, Source("AVRO", "x")])
    known = {*codec.TYPES.values(), Source, dict, list, tuple, str, int, float, bool, bytes, type(None)}
    for _ in range(3_000):
        data = bytearray(whole)
        for _ in range(lots.randrange(1, 6)):
            data[lots.randrange(len(data))] = lots.randrange(256)
        with contextlib.suppress(Unreadable):
            assert type(decode(bytes(data))) in known


def test_only_what_is_listed_is_written() -> None:
    with pytest.raises(TypeError, match="can't cross"):
        encode([object()])
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(SchemaTooCostly, match="nested too deep"):
        encode(deep)


def test_every_listed_type_is_frozen() -> None:
    assert {"ParsedSchema", "Report", "LevelOverview", "Judgement", "Truth", "PolicyReport", "Assessment"} <= set(
        codec.TYPES
    )
    assert [kind for kind in codec.TYPES.values() if not kind.__dataclass_params__.frozen] == []


def test_a_cache_holds_so_much_and_what_was_used_last() -> None:
    made: list[str] = []

    def get(cache: WeighedCache[str], key: str) -> str:
        return cache.get(key, lambda: made.append(key) or key)  # type: ignore[func-returns-value]

    cache = WeighedCache[str](30, len)
    for key in ("aaa", "bbb", "aaa", *(f"c{number:02}" for number in range(9)), "aaa", "bbb", "x" * 4):
        assert get(cache, key) == key
    assert cache.weight == 30
    assert made.count("aaa") == 1
    assert made.count("bbb") == 2
    get(cache, "x" * 4)
    assert made.count("x" * 4) == 2  # heavier than a tenth: made each time
    cache.clear()
    assert cache.weight == 0
    assert json.dumps(made)
