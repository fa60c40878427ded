"""What holds for any schema and any change: verdicts against real encoding and decoding, canonical texts, errors."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.errors import InvalidSchema
from registry.formats.avro import AVRO
from registry.formats.avro.datum import Codec, codec, datum_from_json, skips_resolution
from registry.formats.avro.sample_data import Coverage, TooMuchData
from registry.formats.base import Judgement, ParsedSchema
from registry.formats.compatibility import LEVELS, check, check_all_levels
from tests.amounts import how_many
from tests.formats.avro.random_schemas import DataMaker, Endless, is_same, random_pair

SEEDS = st.integers(min_value=0, max_value=2**48)
# What decoders do differently from the established check is told as a hazard of its own.
PARTS_FROM_DECODERS = {
    "UNION_BRANCH_AMBIGUOUS",
    "FIELD_ALIASED_TWICE",
    "FIELD_ALIAS_ACROSS_NAMESPACES",
    "BYTES_READ_AS_STRING",
    "UNION_BRANCH_ORDER",
}


def parsed_pair(seed: int) -> tuple[ParsedSchema, ParsedSchema] | None:
    try:
        first, second = (AVRO.parse(text) for text in random_pair(seed))
    except InvalidSchema:
        return None
    return first, second


@settings(max_examples=400, deadline=None)
@given(SEEDS)
def test_compatible_data_decode_and_incompatible_data_have_a_witness(seed: int) -> None:
    pair = parsed_pair(seed)
    if pair is None:
        return
    for reader, writer in (pair, pair[::-1]):
        judgement = AVRO.judge(reader, writer)
        witness = AVRO.witness(reader, writer)
        if judgement.is_compatible:
            hazards = {item.rule for item in judgement.hazards}
            is_told = hazards & PARTS_FROM_DECODERS or AVRO.truth(reader, writer).answer == "differs"
            assert not witness.found or is_told, (reader.text, writer.text)
        else:
            assert witness.found or witness.reason


@settings(max_examples=150, deadline=None)
@given(SEEDS)
def test_a_witness_is_of_the_whole_schema_or_says_of_which_type(seed: int) -> None:
    pair = parsed_pair(seed)
    for reader, writer in (pair, pair[::-1]) if pair is not None else ():
        for found in (*AVRO.truth(reader, writer).findings, *AVRO.judge(reader, writer).breaks):
            witness = found.witness or AVRO.witness(reader, writer, found)
            if not witness.found or witness.path:
                continue
            datum = datum_from_json(writer.model.root, witness.datum, "")
            assert codec(writer.model).encode(datum).hex() == witness.encoded, (reader.text, writer.text, found)


def test_of_two_breaks_each_is_shown_and_the_part_says_what_it_is_of() -> None:
    fields = [{"name": "id", "type": "long"}, {"name": "at", "type": "string"}]
    writer = AVRO.parse(json.dumps({"type": "record", "name": "R", "fields": fields}))
    changed = [{**field, "type": "boolean"} for field in fields]
    reader = AVRO.parse(json.dumps({"type": "record", "name": "R", "fields": changed}))
    witnesses = {item.path: item.witness for item in AVRO.truth(reader, writer).findings}
    assert {path: witness.path for path, witness in witnesses.items() if witness is not None} == {
        "R.id": "",
        "R.at": "R.at",
    }


@dataclass
class Tally:
    """What was seen on many random pairs."""

    counts: Counter[str] = field(default_factory=Counter)
    without_witness: Counter[str] = field(default_factory=Counter)
    counterexamples: list[tuple[str, str, str]] = field(default_factory=list)
    untold: list[tuple[str, str, str]] = field(default_factory=list)

    def look_at(self, reader: ParsedSchema, writer: ParsedSchema, random: Random) -> None:
        """Judges a pair both ways and holds random data against the answers."""
        judgement, truth = AVRO.judge(reader, writer), AVRO.truth(reader, writer)
        self.counts[f"truth {truth.answer}"] += 1
        self.counts["compatible" if judgement.is_compatible else "incompatible"] += 1
        if not judgement.is_compatible:
            self._look_for_witness(reader, writer, judgement)
        hazards = {item.rule for item in judgement.hazards}
        is_read = judgement.is_compatible and truth.answer != "differs" and not hazards & PARTS_FROM_DECODERS
        is_kept = truth.answer == "yes"
        if is_read or is_kept:
            self._look_for_counterexamples(reader, writer, random, must_keep=is_kept)
        # What one decoder alone does is said of that one; the rules tell what happens under both.
        if is_read and truth.answer == "no" and not {it.rule for it in truth.findings if not it.decoders} <= hazards:
            self.untold.append((reader.text, writer.text, truth.findings[0].rule))

    def _look_for_witness(self, reader: ParsedSchema, writer: ParsedSchema, judgement: Judgement) -> None:
        witnesses = [AVRO.witness(reader, writer, item) for item in judgement.breaks]
        if any(witness.found and witness.error for witness in witnesses):
            self.counts["incompatible with a witness"] += 1
            return
        rules = {item.rule for item in judgement.breaks}
        rules |= {cause.rule for item in judgement.breaks for cause in item.causes}
        if "ALIAS_AMBIGUOUS" in rules:
            reason = "ambiguous alias, which Java refuses before any datum"
        elif any("no finite value" in witness.reason for witness in witnesses):
            reason = "no finite value"
        else:
            reason = "none found"
            self.counts["incompatible without a witness"] += 1
        assert all(witness.reason for witness in witnesses)
        self.without_witness[reason] += 1

    def _look_for_counterexamples(
        self, reader: ParsedSchema, writer: ParsedSchema, random: Random, *, must_keep: bool
    ) -> None:
        write, read = codec(writer.model), codec(reader.model)
        for _ in range(5):
            try:
                datum = DataMaker(random).of(writer.model.root)
            except Endless:
                continue
            encoded = write.encode(datum)
            self.counts["random data"] += 1
            try:
                got = write.decode(encoded, None if skips_resolution(reader.model, writer.model) else read)
            except Exception as error:  # noqa: BLE001 - whatever stops the decoder is a counterexample
                self.counterexamples.append((reader.text, writer.text, f"{datum}: {error}"))
                return
            if must_keep and not is_same(reader.model.root, writer.model.root, datum, got):
                self.counterexamples.append((reader.text, writer.text, f"{datum} is read as {got}"))
                return


def tally(first: int, pairs: int) -> Tally:
    result = Tally()
    seed = first
    while result.counts["pairs"] < pairs:
        pair = parsed_pair(seed)
        seed += 1
        if pair is None:
            continue
        random = Random(seed)
        for reader, writer in (pair, pair[::-1]):
            result.counts["pairs"] += 1
            result.look_at(reader, writer, random)
    return result


@pytest.mark.parametrize(
    ("first", "pairs"),
    [(0, 2_000), pytest.param(1_000_000, how_many("pairs of random Avro schemas"), marks=pytest.mark.slow)],
    ids=["quick", "many"],
)
def test_no_yes_has_a_counterexample_and_nearly_every_no_a_witness(
    first: int, pairs: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """`SCHEMADESK_LONG=1` looks at 20,000 (see amounts.py)."""
    seen = tally(first, pairs)
    with capsys.disabled():
        print(f"\n{dict(seen.counts)}, without a witness: {dict(seen.without_witness)}")
    assert seen.counterexamples == []
    assert seen.untold == []
    found, missing = seen.counts["incompatible with a witness"], seen.counts["incompatible without a witness"]
    assert found > 0.3 * pairs
    assert missing <= 0.01 * found


@settings(max_examples=300, deadline=None)
@given(SEEDS)
def test_texts_are_stable(seed: int) -> None:
    pair = parsed_pair(seed)
    for schema in pair or ():
        again = AVRO.parse(schema.canonical)
        assert again == schema
        assert again.fingerprint == schema.fingerprint
        assert AVRO.diff(schema, again) == ()
        normalized = AVRO.normalize(schema)
        assert AVRO.normalize(AVRO.parse(normalized)) == normalized
        assert json.loads(normalized) is not None


@settings(max_examples=300, deadline=None)
@given(SEEDS)
def test_equal_schemas_have_no_differences_and_others_have_some(seed: int) -> None:
    pair = parsed_pair(seed)
    if pair is None:
        return
    old, new = pair
    differences = AVRO.diff(old, new)
    assert bool(differences) == (old.canonical != new.canonical), (old.canonical, new.canonical)
    assert json.dumps([item.to_dict() for item in differences])


@settings(max_examples=200, deadline=None)
@given(SEEDS)
def test_the_writers_own_data_go_there_and_back(seed: int) -> None:
    pair = parsed_pair(seed)
    for schema in pair or ():
        codec = Codec(schema.model)
        try:
            for datum in Coverage(schema.model.root).data():
                codec.decode(codec.encode(datum))
        except TooMuchData:
            continue


@settings(max_examples=150, deadline=None)
@given(SEEDS)
def test_levels_follow_from_the_directions(seed: int) -> None:
    pair = parsed_pair(seed)
    if pair is None:
        return
    old, new = pair
    verdicts = {level: check(AVRO, new, [(1, old)], level).is_compatible for level in LEVELS}
    assert verdicts["BACKWARD"] == AVRO.judge(new, old).is_compatible
    assert verdicts["FORWARD"] == AVRO.judge(old, new).is_compatible
    assert verdicts["FULL"] == (verdicts["BACKWARD"] and verdicts["FORWARD"])
    for level in ("BACKWARD", "FORWARD", "FULL"):
        assert verdicts[level] == verdicts[f"{level}_TRANSITIVE"]
    assert {
        level: report.is_compatible for level, report in check_all_levels(AVRO, new, [(1, old)]).reports.items()
    } == verdicts


@settings(max_examples=400, deadline=None)
@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
def test_any_text_parses_or_is_an_invalid_schema(text: str) -> None:
    try:
        AVRO.parse(text)
    except InvalidSchema as error:
        assert error.message


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3)
    | st.sampled_from(["record", "enum", "fixed", "array", "map", "error", "int", "string", "null", "R", "n.R", "float"]),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(
        st.sampled_from(["type", "name", "namespace", "fields", "items", "values", "symbols", "size", "default", "doc", "aliases", "order", "logicalType", "precision", "scale", "x"]),
        inner,
        max_size=6,
    ),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=800, deadline=None)
@given(JSON_VALUES)
def test_any_json_parses_or_is_an_invalid_schema(value: object) -> None:
    try:
        parsed = AVRO.parse(json.dumps(value))
    except InvalidSchema as error:
        assert error.message
        return
    assert AVRO.parse(parsed.canonical) == parsed
    assert AVRO.judge(parsed, parsed) is not None


@settings(max_examples=200, deadline=None)
@given(SEEDS, st.data())
def test_a_cut_or_changed_text_parses_or_is_an_invalid_schema(seed: int, data: st.DataObject) -> None:
    text = random_pair(seed)[0]
    begin = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(begin, min(len(text), begin + 10)))
    changed = text[:begin] + data.draw(st.text(alphabet='{}[]",:\\/*a1', max_size=4)) + text[end:]
    try:
        AVRO.parse(changed)
    except InvalidSchema as error:
        assert error.message


@pytest.mark.parametrize("seed", range(20))
def test_the_generator_gives_the_same_for_a_seed(seed: int) -> None:
    assert random_pair(seed) == random_pair(seed)
