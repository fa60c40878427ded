"""What holds for all schemas, on random ones: round trips, and answers of the truth against random data."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from registry.formats.base import ParsedSchema
from registry.formats.protobuf import PROTOBUF
from registry.formats.protobuf.model import Message
from tests.formats.protobuf.random_schemas import loss, mutated, random_datum, random_tree, text_of

SEEDS = st.integers(min_value=0, max_value=2**32)
pytestmark = pytest.mark.slow
EXAMPLES = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)


def pair_of(seed: int) -> tuple[ParsedSchema, ParsedSchema]:
    rng = random.Random(seed)
    tree = random_tree(rng)
    return PROTOBUF.parse(text_of(tree)), PROTOBUF.parse(text_of(mutated(rng, tree)))


def root_of(path: str, schema: ParsedSchema) -> Message:
    """The message that a path begins with: nested ones have a name of several parts."""
    names = {message.local_name: message for message in schema.model.messages.values()}
    parts = path.split(".")
    return next(names[".".join(parts[:end])] for end in (2, 1) if ".".join(parts[:end]) in names)


@EXAMPLES
@given(SEEDS)
def test_the_canonical_text_says_the_same(seed: int) -> None:
    for schema in pair_of(seed):
        again = PROTOBUF.parse(schema.canonical)
        assert again.canonical == schema.canonical
        assert again.fingerprint == schema.fingerprint
        assert PROTOBUF.normalize(again) == PROTOBUF.normalize(schema)


@EXAMPLES
@given(SEEDS)
def test_the_normal_text_says_the_same_and_is_its_own_normal_text(seed: int) -> None:
    for schema in pair_of(seed):
        again = PROTOBUF.parse(PROTOBUF.normalize(schema))
        assert PROTOBUF.normalize(again) == PROTOBUF.normalize(schema)
        assert again.fingerprint == schema.fingerprint


@EXAMPLES
@given(SEEDS)
def test_order_and_layout_change_neither_fingerprint_nor_normal_text(seed: int) -> None:
    rng = random.Random(seed)
    tree = random_tree(rng)
    one = PROTOBUF.parse(text_of(tree))
    for message in tree["messages"]:
        rng.shuffle(message["fields"])
    other = PROTOBUF.parse("// a comment\n" + text_of(tree).replace("\n", "\n\n"))
    assert other.fingerprint == one.fingerprint
    assert PROTOBUF.normalize(other) == PROTOBUF.normalize(one)


@pytest.mark.requirement("GOO-2")
@EXAMPLES
@given(SEEDS)
def test_no_yes_has_a_counterexample_and_every_no_has_a_witness(seed: int) -> None:
    old, new = pair_of(seed)
    rng = random.Random(seed)
    for reader, writer in ((new, old), (old, new)):
        truth = PROTOBUF.truth(reader, writer)
        assert truth.answer in ("yes", "no")
        assert all(item.witness is not None and item.witness.found for item in truth.findings)
        if truth.answer == "no":
            continue
        for name in writer.model.main.messages:
            theirs = writer.model.pool.FindMessageTypeByName(writer.model.main.messages[name].full_name)
            ours = reader.model.pool.FindMessageTypeByName(reader.model.main.messages[name].full_name)
            for _ in range(15):
                datum = random_datum(rng, theirs)
                assert loss(datum, ours) == "", datum


def test_the_witnesses_break_for_a_second_reader() -> None:
    """Each witness of a "no" is read again without the engine, and the loss is seen there too."""
    count = 0
    for seed in range(120):
        old, new = pair_of(seed)
        for item in PROTOBUF.truth(new, old).findings:
            witness = item.witness
            assert witness is not None
            roots = {message.local_name: message for message in new.model.messages.values()}
            root = root_of(item.path, old)
            if root.local_name not in roots:
                assert witness.error
                continue
            theirs = old.model.pool.FindMessageTypeByName(root.full_name)
            ours = new.model.pool.FindMessageTypeByName(roots[root.local_name].full_name)
            datum = random_datum(random.Random(0), theirs)
            datum.Clear()
            datum.ParseFromString(bytes.fromhex(witness.encoded))
            assert loss(datum, ours) != "", (seed, item.message)
            count += 1
    assert count > 50


def test_at_least_99_percent_of_the_breaks_have_a_witness_or_say_why_not() -> None:
    total = proved = explained = 0
    for seed in range(150):
        old, new = pair_of(seed)
        for reader, writer in ((new, old), (old, new)):
            truth = PROTOBUF.truth(reader, writer)
            for item in PROTOBUF.incompatibilities(reader, writer):
                witness = PROTOBUF.witness(reader, writer, item)
                total += 1
                proved += witness.found
                explained += bool(not witness.found and witness.reason)
                # A reason is only given where the data of that place really survive.
                if not witness.found and truth.answer == "no":
                    assert all(finding.writer_pointer != item.writer_pointer for finding in truth.findings), item
    assert total > 60
    assert proved + explained == total


@EXAMPLES
@given(SEEDS)
def test_a_loss_that_the_established_check_lets_pass_is_a_hazard(seed: int) -> None:
    old, new = pair_of(seed)
    for reader, writer in ((new, old), (old, new)):
        judgement = PROTOBUF.judge(reader, writer)
        if PROTOBUF.truth(reader, writer).answer == "no":
            assert judgement.breaks or any(item.severity == "value loss" for item in judgement.hazards)


@EXAMPLES
@given(SEEDS)
def test_a_datum_resolves_as_the_truth_says(seed: int) -> None:
    old, new = pair_of(seed)
    datum = PROTOBUF.example(old)
    resolution = PROTOBUF.resolve(new, old, datum)
    if PROTOBUF.truth(new, old).answer == "yes":
        assert resolution.error == ""
        assert all(item.note != "the value changes" for item in resolution.fields)
    assert PROTOBUF.resolve(old, old, datum).value == resolution.datum


INSIDES = [
    (syntax, text)
    for syntax, texts in {
        "proto3": (
            "", "int32 a = 1;", "optional int32 a = 1;", "int64 a = 1;", "string a = 1;", "bytes a = 1;", "E a = 1;",
            "N a = 1;", "repeated int32 a = 1;", "repeated N a = 1;", "map<int32, int32> a = 1;",
            "map<int32, N> a = 1;", "oneof o { int32 a = 1; int32 b = 2; }", "int32 b = 1;", "int32 a = 2;",
        ),
        "proto2": ("optional int32 a = 1 [default = 5];", "required int32 a = 1;", "optional E a = 1 [default = B];"),
    }.items()
    for text in texts
]  # fmt: skip


@pytest.mark.parametrize("holder", ["map<int32, M> m = 1;", "repeated M m = 1;", "map<string, M> m = 1;"])
def test_no_witness_reads_what_was_written(holder: str) -> None:
    def schema(syntax: str, inside: str) -> ParsedSchema:
        label = "optional " if syntax == "proto2" else ""
        head = f'syntax = "{syntax}"; message A {{ {holder} }} message M {{ {inside} }}'
        return PROTOBUF.parse(f"{head} message N {{ {label}int32 x = 1; }} enum E {{ Z = 0; B = 1; }}")

    schemas = [schema(*inside) for inside in INSIDES]
    for reader in schemas:
        for writer in schemas:
            for finding in PROTOBUF.truth(reader, writer).findings:
                witness = finding.witness
                assert witness is not None
                assert witness.error or witness.read != witness.datum, (finding.rule, reader.text, writer.text)
