"""The Avro engine against Java's own SchemaCompatibility and Schema.toString(), on random pairs."""

from __future__ import annotations

import pytest

from tests.formats.java import compare
from tests.toolchains import JAVA, require_tools


@pytest.mark.slow
def test_verdicts_and_canonical_texts_equal_javas(capsys: pytest.CaptureFixture[str]) -> None:
    require_tools("the comparison with Java's Avro", JAVA)
    code = compare.main(1_500, 7_000_000)
    assert code == 0, capsys.readouterr().out


@pytest.mark.slow
def test_java_decides_the_judgement_calls_as_the_table_says() -> None:
    require_tools("the comparison with Java's Avro", JAVA)
    assert compare.judgements_that_differ() == []
