"""The Avro engine against Java's own SchemaCompatibility and Schema.toString(), on random pairs."""

from __future__ import annotations

import shutil

import pytest

from tests.formats.java import compare


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("java") is None, reason="no java on the PATH")
def test_verdicts_and_canonical_texts_equal_javas(capsys: pytest.CaptureFixture[str]) -> None:
    code = compare.main(1_500, 7_000_000)
    assert code == 0, capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("java") is None, reason="no java on the PATH")
def test_java_decides_the_judgement_calls_as_the_table_says() -> None:
    assert compare.judgements_that_differ() == []
