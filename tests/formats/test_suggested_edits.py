"""Suggested edits of random pairs: applied, judged again, and tried on a datum that could be read before."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from registry.errors import InvalidDatum, InvalidSchema
from registry.formats.assessment import assess
from registry.formats.avro import AVRO
from registry.formats.base import Edit, ParsedSchema, Resolution
from registry.formats.protobuf import PROTOBUF
from registry.formats.schema_format import SchemaFormat
from registry.formats.suggested_edits import MAX_CHARACTERS_EDITED, repairs_of
from tests.formats.avro.random_schemas import random_pair
from tests.formats.protobuf.test_properties import pair_of


def avro_pair(seed: int) -> tuple[ParsedSchema, ParsedSchema]:
    old, new = random_pair(seed)
    return AVRO.parse(old), AVRO.parse(new)


def edits(engine: SchemaFormat, old: ParsedSchema, new: ParsedSchema) -> Iterator[tuple[Edit, bool, int]]:
    """Each edit with the side that it is of, and the breaks before it."""
    for is_reader in (True, False):
        judged = engine.judge(new, old) if is_reader else engine.judge(old, new)
        for finding in (*judged.breaks, *judged.hazards):
            edit = engine.repair(new, old, finding, is_reader=is_reader)
            if edit is not None:
                yield edit, is_reader, len(judged.breaks)


def outcomes(resolution: Resolution) -> dict[str, str]:
    return {item.path: item.outcome for item in resolution.fields}


@pytest.mark.parametrize(
    ("engine", "pairs", "first"), [(AVRO, avro_pair, 0), (AVRO, avro_pair, 110), (PROTOBUF, pair_of, 150)]
)
def test_no_edit_adds_a_break_or_loses_what_was_read(engine: SchemaFormat, pairs: object, first: int) -> None:
    assert callable(pairs)
    tried = 0
    for seed in range(first, first + 40):
        try:
            old, new = pairs(seed)
        except InvalidSchema:
            continue
        for edit, is_reader, breaks in edits(engine, old, new):
            tried += 1
            edited = engine.parse(edit.text)
            after = engine.judge(edited, old) if is_reader else engine.judge(old, edited)
            assert len(after.breaks) <= breaks, (seed, edit.title)
            try:
                datum = engine.example(old)
                before, now = engine.resolve(new, old, datum), engine.resolve(edited, old, datum)
            except InvalidDatum:
                continue
            if before.error or now.error or "no longer holds" in edit.title:
                continue
            outcomes_now = outcomes(now)
            lost = [
                path
                for path, outcome in outcomes(before).items()
                if outcome in ("kept", "converted") and outcomes_now.get(path) in ("filled", "dropped")
            ]
            assert not lost, (seed, edit.title, lost)
    assert tried > 20


def wide_avro(added: int) -> str:
    old = [{"name": f"f{number}", "type": "int"} for number in range(700)]
    new = [{"name": f"g{number}", "type": "string"} for number in range(added)]
    return json.dumps({"type": "record", "name": "Wide", "fields": old + new})


def wide_protobuf(changed: int) -> str:
    kinds = ["string" if number < changed else "int32" for number in range(1_400)]
    fields = " ".join(f"{kind} f{number} = {number + 1};" for number, kind in enumerate(kinds))
    return f'syntax = "proto3"; message Wide {{ {fields} }}'


@pytest.mark.parametrize(("engine", "wide"), [(AVRO, wide_avro), (PROTOBUF, wide_protobuf)])
def test_edits_of_a_large_schema_read_it_only_a_few_times(engine: SchemaFormat, wide: Callable[[int], str]) -> None:
    """15 edits of 1,200 Protobuf fields took five seconds, more than a child has, so there was no report at all."""
    read: list[int] = []

    def parse(text: str) -> ParsedSchema:
        read.append(len(text))
        return engine.parse(text)

    old, few, many = (engine.parse(wide(count)) for count in (0, 2, 15))
    for work in (
        lambda new: assess(engine, new, [(1, old)], "FULL", parse=parse).patch,
        lambda new: repairs_of(engine, new, [(1, old)], "FULL", parse=parse, profile="confluent"),
    ):
        read.clear()
        assert work(few), "a few edits of a large schema are still suggested"
        work(many)
        assert sum(read) <= 2.2 * MAX_CHARACTERS_EDITED
