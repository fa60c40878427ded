"""What holds for any schema and any change, checked by a validator that shares no code with the engine."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.errors import InvalidSchema
from registry.formats.json_schema import JSON_SCHEMA, keyword_comparison
from registry.formats.json_schema.value_facts import MAX_UNFOLDED, unfolded
from tests.formats.json_schema.measure import measure, refuted
from tests.formats.json_schema.random_schemas import DRAFTS, random_pair

SEEDS = st.integers(min_value=0, max_value=2**48)


@pytest.mark.slow
@pytest.mark.parametrize("draft", [7, 4, 6, 2019, 2020])
def test_no_truth_is_refuted_and_nearly_every_break_has_a_witness(draft: int) -> None:
    measured = measure(120 if draft == 7 else 40, draft, 20_000)
    assert measured.wrong == []
    total = sum(measured.counts[f"truth {verdict}"] for verdict in ("yes", "no", "unknown"))
    assert total >= 80
    assert measured.counts["truth no"] > total * 0.2
    assert measured.counts["truth unknown"] <= max(3, total * 0.03)


@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_mixed_drafts_are_never_answered_wrongly(seed: int) -> None:
    old, new = random_pair(seed, 7)
    later = {**json.loads(new), "$schema": DRAFTS[2019]}
    first, second = JSON_SCHEMA.parse(old), JSON_SCHEMA.parse(json.dumps(later))
    for reader, writer in ((first, second), (second, first)):
        truth = JSON_SCHEMA.truth(reader, writer)
        with_drafts = [json.dumps({"$schema": DRAFTS[7], **json.loads(item.text)}) for item in (reader, writer)]
        assert refuted(truth, *with_drafts, seed) == ""


@settings(max_examples=150, deadline=None)
@given(SEEDS)
def test_texts_are_stable(seed: int) -> None:
    for text in random_pair(seed):
        parsed = JSON_SCHEMA.parse(text)
        again = JSON_SCHEMA.parse(parsed.canonical)
        assert again == parsed
        assert again.fingerprint == parsed.fingerprint
        assert JSON_SCHEMA.diff(parsed, again) == ()
        assert JSON_SCHEMA.judge(parsed, again).breaks == ()
        normalized = JSON_SCHEMA.normalize(parsed)
        assert JSON_SCHEMA.normalize(JSON_SCHEMA.parse(normalized)) == normalized
        assert json.loads(normalized) == json.loads(text)


@settings(max_examples=150, deadline=None)
@given(SEEDS)
def test_equal_texts_have_no_differences_and_others_have_some(seed: int) -> None:
    old, new = (JSON_SCHEMA.parse(text) for text in random_pair(seed))
    differences = JSON_SCHEMA.diff(old, new)
    assert bool(differences) == (old.canonical != new.canonical), (old.canonical, new.canonical)
    assert json.dumps([item.to_dict() for item in differences])


@settings(max_examples=150, deadline=None)
@given(SEEDS)
def test_every_schema_reads_its_own_data(seed: int) -> None:
    for text in random_pair(seed):
        parsed = JSON_SCHEMA.parse(text)
        assert JSON_SCHEMA.truth(parsed, JSON_SCHEMA.parse(parsed.canonical)).answer != "no"


@settings(max_examples=300, deadline=None)
@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
def test_any_text_parses_or_is_an_invalid_schema(text: str) -> None:
    try:
        JSON_SCHEMA.parse(text)
    except InvalidSchema as error:
        assert error.message


def test_what_is_shared_counts_as_often_as_it_is_reached() -> None:
    double = {"$defs": {"d0": {"type": "string"}, "d1": {"allOf": [{"$ref": "#/$defs/d0"}, {"$ref": "#/$defs/d0"}]}}}
    assert unfolded({"$ref": "#/$defs/d1", **double}) == 6
    assert unfolded({"$ref": "#/$defs/a", "$defs": {"a": {"not": {"$ref": "#/$defs/a"}}}}) == MAX_UNFOLDED + 1


def test_leaving_out_what_is_written_alike_changes_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most properties of most versions are the same, and are not looked into; a deep look says the same."""
    looked = 0
    for seed in range(200):
        texts = random_pair(seed)
        quick = [JSON_SCHEMA.parse(text) for text in texts]
        deep = [JSON_SCHEMA.parse(text) for text in texts]
        for reader, writer in ((0, 1), (1, 0), (0, 0)):
            judgement = JSON_SCHEMA.judge(quick[reader], quick[writer])
            with monkeypatch.context() as patch:
                patch.setattr(keyword_comparison, "_is_unchanged", lambda *_: False)
                assert judgement == JSON_SCHEMA.judge(deep[reader], deep[writer]), texts
            looked += 1
    assert looked == 600
