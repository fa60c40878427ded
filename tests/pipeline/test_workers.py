"""One message never ends a task: bodies made to do so, read as Spark's Python workers read them."""

from __future__ import annotations

import base64
import importlib
import json
import multiprocessing
import random
import subprocess
import sys
from collections.abc import Iterable
from multiprocessing.connection import Connection
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pyarrow  # type: ignore[import-untyped]
import pytest
from google.protobuf import descriptor_pb2
from pyspark import cloudpickle

from registry.observations import EXTENSION, UNKNOWN_KIND, UNLISTED, FieldProfile, RankedMessages
from registry.pipeline import workers
from registry.pipeline.profile_result import Owner, Profiles
from registry.pipeline.workers import message_reader
from registry.pipeline.workers.bodies import ProtobufBodies
from registry.pipeline.workers.fields import Tree, sample_text
from registry.pipeline.workers.message_reader import DecodingPlan, reading
from registry.pipeline.workers.schema_shapes import AvroShape, Malformed, Shape
from registry.pipeline.workers.value_ranks import MOST_ROWS, rank_of
from tests.pipeline.hostile import HOSTILE, Hostile, nested, writer_text

SECONDS = 120
FINE = b'{"fine": true}'


def told(bodies: Iterable[Hostile], *, reveal: bool = False) -> list[Any]:
    """The lines of a task that reads each body as key and as value, each at an offset of its own, and a fine one after all.

    The task has a process of its own, as Spark's has: its death is a failure of the test that asked.
    """
    here, there = multiprocessing.get_context("fork").Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=_task, args=(list(bodies), reveal, there))
    child.start()
    there.close()
    try:
        lines: list[Any] = here.recv() if here.poll(SECONDS) else ["it takes too long"]
    except EOFError:
        lines = []
    child.kill()
    child.join()
    assert lines, f"the process ended with {child.exitcode}"
    assert lines != ["it takes too long"]
    return lines


def _task(bodies: list[Hostile], reveal: bool, sender: Connection) -> None:
    rows: list[dict[str, Any]] = []
    writers: dict[tuple[str, bytes], tuple[str, str]] = {}
    for offset, body in enumerate(bodies):
        raw = offset.to_bytes(4, "big") if body.kind else None
        if raw is not None and body.kind:
            writers["id", raw] = (body.kind, writer_text(body))
        side = ("id" if raw is not None else "json_object", raw, body.body)
        rows.append(_row(offset, side, side))
    rows.append(_row(len(bodies), ("null", None, None), ("json_object", None, FINE)) | {"topic": "another"})
    batch = pyarrow.RecordBatch.from_pylist(rows, schema=_SCHEMA)
    plan = DecodingPlan(writers, fields=True, changes=True, samples=3, reveal=reveal)
    (lines,) = reading(plan)(iter([batch]))
    sender.send([json.loads(line) for line in lines.column(0).to_pylist()])


def _row(offset: int, key: tuple[Any, ...], value: tuple[Any, ...]) -> dict[str, Any]:
    plain = {"topic": "t", "partition": 0, "offset": offset, "time": 1, "size": 1, "newkey": False, "oldkey": False}
    names = [f"{side}_{part}" for side in ("key", "value") for part in ("class", "mark", "body", "large")]
    return plain | dict(zip(names, (*key, None, *value, None), strict=True))


_SCHEMA = pyarrow.schema(
    [
        ("topic", pyarrow.string()),
        ("partition", pyarrow.int32()),
        ("offset", pyarrow.int64()),
        ("time", pyarrow.int64()),
    ]
    + [("size", pyarrow.int32()), ("newkey", pyarrow.bool_()), ("oldkey", pyarrow.bool_())]
    + [
        (f"{side}_{part}", kind)
        for side in ("key", "value")
        for part, kind in (
            ("class", pyarrow.string()),
            ("mark", pyarrow.binary()),
            ("body", pyarrow.binary()),
            ("large", pyarrow.int32()),
        )
    ]
)


def told_of(rows: list[dict[str, Any]], plan: DecodingPlan) -> list[Any]:
    """The lines of a task that reads these rows, in this process."""
    (lines,) = reading(plan)(iter([pyarrow.RecordBatch.from_pylist(rows, schema=_SCHEMA)]))
    return [json.loads(line) for line in lines.column(0).to_pylist()]


def test_beyond_the_limit_of_places_bodies_are_counted_without_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_reader, "MOST_GROUPS", 2)
    side, none = ("json_object", None, b"{no"), ("null", None, None)
    rows = [_row(offset, none, side) | {"partition": offset // 2} for offset in range(8)]
    bad = [what for name, _, what in told_of(rows, DecodingPlan({})) if name == "undecodable"]
    assert [what["span"][0] for what in bad] == [2, 2, 2, 2], "every message counts"
    assert [len(what["offsets"]) for what in bad] == [2, 2, 0, 0]
    assert [sum(what["reasons"].values()) for what in bad] == [2, 2, 0, 0]


def problems(lines: Iterable[Any]) -> dict[tuple[str, int], str]:
    """Side and offset → the problem."""
    return {
        (key[1], offset): key[5] for name, key, what in lines if name == "undecodable" for offset, _ in what["offsets"]
    }


#: which take seconds
COSTLY = ("1,200,000 empty messages", "2,000,000 items", "numbers of no known field")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in COSTLY else []) for name in HOSTILE]
)
def test_a_hostile_body_is_reported_as_what_it_is(name: str) -> None:
    case = HOSTILE[name]
    for reveal in (False, True):
        lines = told([case], reveal=reveal)
        expected = {("key", 0): case.problem, ("value", 0): case.problem} if case.problem else {}
        assert problems(lines) == expected
        assert any(line[0] == "field" and line[2]["path"] == "fine" for line in lines), "what comes after is read"


NO_UTF8 = "a string in the body isn't UTF-8, which some clients replace and others refuse"


@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"\x0a\x01\xff", NO_UTF8),
        (b"\x12\x01\xff", NO_UTF8),
        (b"\x1a\x06\x0a\x01\xff\x12\x01a", NO_UTF8),
        (b"\x1a\x06\x0a\x01a\x12\x01\xff", NO_UTF8),
        (b"\x22\x01\xff", ""),
        (b"\x0a\x09x", "the body can't be read as M"),
        (nested(100, 5), ""),
        (nested(101, 5), "it is nested deeper than 100 levels, which Protobuf's decoders reject"),
    ],
    ids=["text", "list", "key of a map", "value of a map", "bytes", "cut off", "nested", "nested too deep"],
)
def test_each_fault_of_a_protobuf_body_has_its_own_reason(syntax: str, body: bytes, reason: str) -> None:
    file = descriptor_pb2.FileDescriptorProto(name="m.proto", syntax=syntax)
    message = file.message_type.add(name="M")
    message.field.add(name="text", number=1, type=9, label=1)
    message.field.add(name="list", number=2, type=9, label=3)
    entry = message.nested_type.add(name="TagsEntry")
    entry.options.map_entry = True
    for number, name in enumerate(("key", "value"), start=1):
        entry.field.add(name=name, number=number, type=9, label=1)
    message.field.add(name="tags", number=3, type=11, label=3, type_name=".M.TagsEntry")
    message.field.add(name="raw", number=4, type=12, label=1)
    message.field.add(name="below", number=5, type=11, label=1, type_name=".M")
    files = descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()
    bodies = ProtobufBodies(base64.b64encode(files).decode())
    try:
        bodies.decode(b"\x00" + body)
        message = ""
    except Malformed as error:
        message = str(error)
    assert message == reason


def enums(syntax: str) -> ProtobufBodies:
    """A schema whose enums are open in proto3 and closed in proto2."""
    file = descriptor_pb2.FileDescriptorProto(name="m.proto", syntax=syntax)
    file.enum_type.add(name="State").value.add(name="NEW", number=0)
    message = file.message_type.add(name="M")
    entry = message.nested_type.add(name="StatesEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=9, label=1)
    entry.field.add(name="value", number=2, type=14, label=1, type_name=".State")
    message.field.add(name="state", number=1, type=14, label=1, type_name=".State")
    message.field.add(name="list", number=2, type=14, label=3, type_name=".State")
    message.field.add(name="states", number=3, type=11, label=3, type_name=".M.StatesEntry")
    message.field.add(name="inner", number=4, type=11, label=1, type_name=".M")
    message.field.add(name="text", number=5, type=9, label=1)
    if syntax == "proto2":
        message.extension_range.add(start=100, end=200)
    return ProtobufBodies(base64.b64encode(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()).decode())


PLACES = [
    {"id": 1, "customer": {"name": "Ada"}, "items": [{"sku": 1}]},
    {"id": "x", "customer": {"name": "Ada", "age": 1}, "items": [{}, {"sku": "a"}]},
    {"customer": None, "paid": True},
    {"id": "y", "customer": {}, "paid": True},
    {"paid": None},
]


@pytest.mark.parametrize(
    ("path", "first_of_kind", "absent"),
    [
        ("id", {"integer": (3, 0), "string": (3, 1)}, [3, 2]),
        ("customer", {"object": (3, 0), "null": (3, 2)}, [3, 4]),
        ("customer.name", {"string": (3, 0)}, [3, 3]),
        ("customer.age", {"integer": (3, 1)}, [3, 0]),
        ("items[].sku", {"integer": (3, 0), "string": (3, 1)}, [3, 1]),
        ("paid", {"boolean": (3, 2), "null": (3, 4)}, [3, 0]),
    ],
)
def test_a_message_of_each_kind_and_one_without_the_field_are_known(
    path: str, first_of_kind: dict[str, tuple[int, int]], absent: list[int]
) -> None:
    tree = Tree(Shape(), reveal=False)
    for offset, value in enumerate(PLACES):
        tree.add(value, (3, offset))
    (row,) = [row for row in tree.rows() if row["path"] == path]
    assert (row["first_of_kind"], row["absent"]) == (first_of_kind, absent)


def test_of_several_tasks_the_first_message_is_kept() -> None:
    profiles = Profiles()
    owner: Owner = ("orders", "value", None, "")
    for partition in (3, 1):
        tree = Tree(Shape(), reveal=False)
        for offset, value in enumerate(PLACES):
            tree.add(value, (partition, offset))
        for row in tree.rows():
            profiles.add_field(owner, row["path"], json.loads(json.dumps(row)), natively=False)
    (profile,) = [item for item in profiles.observations({}) if getattr(item, "path", "") == "id"]
    assert isinstance(profile, FieldProfile)
    assert (profile.first_of_kind, profile.absent) == ({"integer": (1, 0), "string": (1, 1)}, (1, 2))


def test_a_field_s_messages_are_those_of_the_message_types_that_have_it() -> None:
    profiles = Profiles()
    owner: Owner = ("orders", "value", "id", "7")
    for message_type, value, number in (("0", {"id": 1}, 5), ("0", {"id": 1, "b": 2}, 1), ("1", {"id": 1}, 3)):
        tree = Tree(Shape(), reveal=False)
        for offset in range(number):
            tree.add(value, (0, offset))
        for row in tree.rows():
            profiles.add_field(owner, row["path"], row, natively=False, message_type=message_type)
    found = {item.path: item for item in profiles.observations({}) if isinstance(item, FieldProfile)}
    assert {path: (item.messages, item.possible) for path, item in found.items()} == {"id": (9, 9), "b": (9, 6)}


def test_a_message_that_a_finding_may_name_is_a_sample_beside_the_first_ones() -> None:
    bodies = [
        b'{"a": 1}',
        b'{"a": 2}',
        b'{"a": 3}',
        b'{"a": 4, "b": 5}',
        b'{"a": 6, "b": 7}',
        b'{"a": "x", "b": 8}',
        b'{"b": 9}',
    ]
    none = ("null", None, None)
    rows = [_row(offset, none, ("json_object", None, body)) for offset, body in enumerate(bodies)]
    (samples,) = [what for name, _, what in told_of(rows, DecodingPlan({}, samples=1)) if name == "samples"]
    assert [sample[1] for sample in samples] == [0, 3, 5, 6]


@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
@pytest.mark.parametrize(
    ("body", "path", "values"),
    [
        (b"\x08\x05", "state", {"(unknown number)": 1}),
        (b"\x10\x00\x10\x07", "list[]", {"NEW": 1, "(unknown number)": 1}),
        (b"\x12\x02\x00\x09", "list[]", {"NEW": 1, "(unknown number)": 1}),
        (b"\x1a\x05\x0a\x01k\x10\x05", "states{}", {"(unknown number)": 1}),
        (b"\x22\x02\x08\x05", "inner.state", {"(unknown number)": 1}),
        (b"\x58\x01", "#11", {"varint": 1}),
        (b"\x59" + bytes(8), "#11", {"64-bit": 1}),
        (b"\x5a\x01a", "#11", {"length-delimited": 1}),
        (b"\x5b\x5c", "#11", {"group": 1}),
        (b"\x5d" + bytes(4), "#11", {"32-bit": 1}),
        (b"\x22\x02\x58\x01", "inner.#11", {"varint": 1}),
        (b"\x28\x01", "text#5", {"varint": 1}),
        (b"\x22\x02\x28\x01", "inner.text#5", {"varint": 1}),
    ],
)
def test_what_a_protobuf_schema_does_not_declare_is_counted(
    syntax: str, body: bytes, path: str, values: dict[str, int]
) -> None:
    decoded = enums(syntax).decode(b"\x00" + body)
    tree = Tree(decoded.shape, reveal=False)
    tree.add(enums(syntax).decode(b"\x00").value, (0, 6))
    tree.add(decoded.value, (0, 7))
    (row,) = [row for row in tree.rows() if row["path"] == path]
    assert (row["values"], row["undeclared"]) == (values, [0, 7])
    assert set(values) <= {*UNLISTED, "NEW"} or row["kinds"] == {UNKNOWN_KIND: 1}
    assert row.get("declared", "") == ("string (length-delimited)" if "text" in path else "")


@pytest.mark.parametrize(
    ("number", "declared"),
    [
        (1, "enum State (varint)"),
        (2, "repeated enum State (varint or length-delimited)"),
        (3, "map (length-delimited)"),
        (4, "message M (length-delimited)"),
        (5, "string (length-delimited)"),
    ],
)
def test_a_field_with_another_encoding_has_its_declared_type(number: int, declared: str) -> None:
    body = bytes([number << 3 | 1]) + bytes(8)  # 64 bits, which none of them is
    decoded = enums("proto3").decode(b"\x00" + body)
    tree = Tree(decoded.shape, reveal=False)
    tree.add(decoded.value, (0, 7))
    (row,) = [row for row in tree.rows() if row["path"].endswith(f"#{number}")]
    assert (row["values"], row["declared"]) == ({"64-bit": 1}, declared)


def test_what_does_not_fit_into_a_profile_is_counted_by_message() -> None:
    wide = {f"f{outer}": {f"g{inner}": 1 for inner in range(90)} for outer in range(6)}
    deep: Any = 1
    for _ in range(30):
        deep = {"d": deep}
    bodies = [{"a": 1}, {"d": deep}, wide, wide]
    rows = [
        _row(offset, ("null", None, None), ("json_object", None, json.dumps(body).encode()))
        for offset, body in enumerate(bodies)
    ]
    left_out = {key[4]: what for name, key, what in told_of(rows, DecodingPlan({})) if name == "left_out"}
    assert left_out == {"depth": 1, "fields": 2}


def test_a_value_that_an_enum_does_not_list_is_counted_after_however_many_others() -> None:
    tree = Tree(AvroShape({"type": "enum", "name": "E", "symbols": []}, {}), reveal=False)
    for value in [*(f"S{number}" for number in range(101)), "(not declared)"]:
        tree.add(value, (0, 7))
    (row,) = tree.rows()
    assert (len(row["values"]), row["values"]["(not declared)"]) == (101, 1)
    assert tree.left_out == {"symbols": 1}


def test_an_extension_is_no_undeclared_field() -> None:
    decoded = enums("proto2").decode(b"\x00\xa0\x06\x01")
    assert decoded.value == {"#100": EXTENSION}
    assert json.loads(sample_text(decoded.value, reveal=False)) == decoded.value


def test_numbers_that_are_whole_are_counted_as_such_however_they_are_written() -> None:
    bodies = [HOSTILE[f"{number} as a whole number"] for number in ("7.0", "1e3", "1e400", "7.5")]
    lines = told(bodies)
    kinds = {
        (key[1], int(key[3], 16)): row["kinds"] for name, key, row in (line for line in lines if line[0] == "field")
        if row["path"] == "qty"
    }  # fmt: skip
    expected = {0: "integer", 1: "integer", 2: "integer", 3: "number"}
    assert kinds == {(side, number): {kind: 1} for side in ("key", "value") for number, kind in expected.items()}


@pytest.mark.parametrize("seed", range(4))
def test_no_changed_body_ends_a_task(seed: int) -> None:
    """Bytes taken out, put in, repeated and turned over in bodies of all formats."""
    chance = random.Random(seed)
    bodies = []
    for case in HOSTILE.values():
        for _ in range(6):
            data = bytearray(case.body[:3_000])
            for _ in range(chance.randrange(1, 6)):
                at = chance.randrange(len(data) + 1)
                match chance.randrange(4):
                    case 0:
                        data[at : at + chance.randrange(1, 9)] = b""
                    case 1:
                        data[at:at] = chance.randbytes(chance.randrange(1, 9))
                    case 2:
                        data[at:at] = data[at : at + 9] * chance.randrange(1, 50)
                    case 3 if at < len(data):
                        data[at] ^= 1 << chance.randrange(8)
            bodies.append(Hostile(case.kind, case.schema, bytes(data), None))
    lines = told(bodies)
    assert any(line[0] == "field" and line[2]["path"] == "fine" for line in lines)


def test_the_ranked_messages_are_the_same_however_tasks_share_them() -> None:
    values = [{"id": f"A-{n}", "cents": n * 37, "list": [n], "gone": None, "ok": True} for n in range(6_000)]

    def ranked(tasks: int) -> RankedMessages:
        profiles = Profiles()
        for task in range(tasks):
            tree = Tree(Shape(), False)
            for offset in range(task, len(values), tasks):
                tree.add(values[offset], (0, offset))
            table = tree.ranked.table()
            assert table is not None
            profiles.add_ranks(("t", "value", "id", "7"), table["paths"], table["rows"])
        (found,) = (item for item in profiles.observations({}) if isinstance(item, RankedMessages))
        return found

    whole = ranked(1)
    assert (whole.paths, len(whole.rows), ranked(7)) == (("cents", "id"), MOST_ROWS, whole)
    assert max(abs(6 * n - offset) for n, (_, offset, _) in enumerate(whole.rows)) < len(values) / 10, "evenly"


@pytest.mark.parametrize(
    ("value", "rank"),
    [
        (0, 0), (1, 4_000), (1.0, 4_000), (-1, -4_000), (9_999, 4_039), (0.5, 3_996), (10**400, 8_000), (True, None),
        (None, None), (float("nan"), None), (float("inf"), None), ("", 0), ("DE-12", 50_404), (b"abc", 30_000), ([1], None),
    ],
)  # fmt: skip
def test_a_rank_is_a_size_and_no_value(value: Any, rank: int | None) -> None:
    assert rank_of(value) == rank


def test_workers_need_no_package_of_the_product(tmp_path: Path) -> None:
    """A cluster's Python has none: what is sent there has to come by value, which a decorated function may not."""
    importlib.import_module("registry.pipeline.body_decoding")  # makes cloudpickle send the workers by value
    modules = [importlib.import_module(f"{workers.__name__}.{found.name}") for found in iter_modules(workers.__path__)]
    sent = [item for module in modules for item in vars(module).values() if callable(item)]
    assert len(sent) > 50
    file = tmp_path / "sent"
    file.write_bytes(cloudpickle.dumps(sent))
    load = "import pickle, sys; print(len(pickle.load(open(sys.argv[1], 'rb'))), 'registry' in sys.modules)"
    command = [sys.executable, "-c", load, str(file)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout.split(), done.stderr) == ([str(len(sent)), "False"], "")
