"""The Avro engine against Java's own SchemaCompatibility, Schema.toString() and decoder, on random pairs and cases."""

from __future__ import annotations

import json
import shutil
from random import Random

import pytest
import yaml

from registry.errors import InvalidSchema
from registry.formats.avro import AVRO
from registry.formats.avro.datum import codec
from tests.amounts import how_many
from tests.formats.avro.random_schemas import DataMaker, Endless, random_pair
from tests.formats.java import java_comparison

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("java") is None, reason="no java on the PATH"),
]


def test_verdicts_and_canonical_texts_equal_javas(capsys: pytest.CaptureFixture[str]) -> None:
    code = java_comparison.main(1_500, 7_000_000)
    assert code == 0, capsys.readouterr().out


def test_java_decides_the_judgement_calls_as_the_table_says() -> None:
    assert java_comparison.judgements_that_differ() == []


def test_data_are_followed_through_javas_decoder_as_it_reads_them() -> None:
    questions = java_comparison.decoding_questions(1_500, 8_000_000)
    assert len(questions) > 1_000
    assert java_comparison.decodings_that_differ(questions) == []


def test_where_decoders_differ_java_reads_what_the_table_says() -> None:
    """Each case whose answer is `differs`: Java's decoder stops or changes a datum exactly if a finding says so."""
    rows = [row for row in yaml.safe_load(java_comparison.JUDGEMENTS.read_text()) if row["truth"] == "differs"]
    questions, about_java = [], []
    for row in rows:
        reader, writer = AVRO.parse(json.dumps(row["reader"])), AVRO.parse(json.dumps(row["writer"]))
        truth = AVRO.truth(reader, writer)
        decoders = {name for item in truth.findings for name in item.decoders}
        assert len(decoders) == 1, row["name"]
        about_java.append(decoders == {"Java"})
        witnesses = [item.witness for item in truth.findings if item.witness is not None]
        data = [witness.encoded for witness in witnesses if not witness.path]
        questions.append({"reader": reader.text, "writer": writer.text, "data": data})
    assert len(rows) >= 10
    assert java_comparison.decodings_that_differ([{**question, "data": []} for question in questions]) == []
    for row, question, is_java, answer in zip(
        rows, questions, about_java, java_comparison.ask_java(questions), strict=True
    ):
        fails = [item for item in answer["read"] if "error" in item]
        if is_java:
            changes = ("two fields swap", "namespace", "the default")
            assert fails or any(word in row["name"] for word in changes), (row["name"], answer)
        else:
            assert not fails, (row["name"], answer, question)


def test_a_semantic_yes_holds_for_random_data_in_javas_decoder() -> None:
    random = Random(20_260_801)
    questions = []
    for seed in range(9_000_000, 9_000_000 + how_many("pairs of Avro schemas that Java decodes")):
        try:
            first, second = (AVRO.parse(text) for text in random_pair(seed))
        except InvalidSchema:
            continue
        for reader, writer in ((second, first), (first, second)):
            if AVRO.truth(reader, writer).answer != "yes":
                continue
            try:
                data = [DataMaker(random).of(writer.model.root) for _ in range(5)]
            except Endless:
                continue
            encoded = [codec(writer.model).encode(datum).hex() for datum in data]
            questions.append({"reader": reader.text, "writer": writer.text, "data": encoded})
    assert len(questions) > 100
    for question, answer in zip(questions, java_comparison.ask_java(questions), strict=True):
        assert not [item for item in answer["read"] if "error" in item], (question, answer)
