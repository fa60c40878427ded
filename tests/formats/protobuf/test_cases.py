"""Each rule of the Protobuf engine by its cases: differences, breaks, hazards, what the data do, and witnesses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from registry.formats.base import ParsedSchema, ResolvedReference
from registry.formats.protobuf import PROTOBUF
from registry.formats.protobuf.rules import DESCRIPTIONS, DIFFERENCE_RULES, RULES

FOLDER = Path(__file__).parent / "cases"
DIRECTIONS = ("backward", "forward")


def load_cases() -> list[Any]:
    return [
        pytest.param(case, id=f"{path.stem}: {case['name']}")
        for path in sorted(FOLDER.glob("*.yaml"))
        for case in yaml.safe_load(path.read_text())
    ]


CASES = load_cases()


def parsed(case: dict[str, Any], side: str) -> ParsedSchema:
    version = 1 if side == "old" else 2
    files = case.get(f"{side}_files", {})
    references = [ResolvedReference(name, name, version, text) for name, text in files.items()]
    return PROTOBUF.parse(case[side], references, is_new=not case.get("imported", False))


def pair(old: ParsedSchema, new: ParsedSchema, direction: str) -> tuple[ParsedSchema, ParsedSchema]:
    """Reader and writer."""
    return (new, old) if direction == "backward" else (old, new)


def reports_all_differences(case, old, new) -> None:
    differences = PROTOBUF.diff(old, new)
    assert [[item.rule, item.path] for item in differences] == case.get("differences", [])


@pytest.mark.parametrize(
    ("reserved", "says"),
    [
        ('reserved 2; reserved "b";', ["; its number and name are reserved"]),
        ("reserved 2;", ["; its number is reserved", "name of the removed"]),
        ('reserved "b";', ["; its name is reserved", "number 2 of the removed"]),
        ("", ["is removed: int32 = 2", "number 2 of the removed", "name of the removed"]),
    ],
)
def test_a_removed_field_is_one_change_with_what_is_reserved_of_it(reserved: str, says: list[str]) -> None:
    old, new = (
        PROTOBUF.parse(f'syntax = "proto3"; message Order {{ int32 a = 1; {rest} }}', [])
        for rest in ("int32 b = 2;", reserved)
    )
    messages = [item.message for item in PROTOBUF.diff(old, new)]
    assert len(messages) == len(says)
    assert all(part in message for part, message in zip(says, messages, strict=True)), messages


def has_no_difference_to_itself(case, old, new) -> None:
    assert PROTOBUF.diff(old, old) == ()
    assert PROTOBUF.diff(new, new) == ()


def has_the_verdict_of_the_established_registry(case, old, new, direction) -> None:
    findings = PROTOBUF.incompatibilities(*pair(old, new, direction))
    assert [[item.rule, item.kind, item.location] for item in findings] == case.get(direction, [])
    assert all(item.kind in DESCRIPTIONS for item in findings)


def reports_all_hazards(case, old, new, direction) -> None:
    findings = PROTOBUF.judge(*pair(old, new, direction)).hazards
    assert [[item.rule, item.path] for item in findings] == case.get(f"{direction}_hazards", [])
    assert all(item.kind == "" and item.severity in ("value loss", "warning") for item in findings)


def says_what_the_data_do(case, old, new, direction) -> None:
    truth = PROTOBUF.truth(*pair(old, new, direction))
    assert truth.answer == case[f"{direction}_truth"]
    findings = [[item.severity, item.rule, item.path] for item in truth.findings]
    assert findings == case.get(f"{direction}_losses", [])
    for item in truth.findings:
        assert item.witness is not None
        assert item.witness.found
        assert bool(item.witness.error) == (item.severity == "break")


def warns_of_what_no_value_shows(case, old, new, direction) -> None:
    reader, writer = pair(old, new, direction)
    findings = PROTOBUF.truth(reader, writer).warnings
    assert all(item.severity == "warning" and item.witness is None for item in findings)
    hazards = [item for item in PROTOBUF.judge(reader, writer).hazards if item.severity == "warning"]
    assert [item for item in findings if not item.kind] == hazards
    rules = [[item.rule, item.path] for item in findings]
    assert rules == case.get(f"{direction}_warnings", rules)


def has_a_witness_for_every_break_or_says_why_not(case, old, new, direction) -> None:
    reader, writer = pair(old, new, direction)
    for item in PROTOBUF.incompatibilities(reader, writer):
        witness = PROTOBUF.witness(reader, writer, item)
        assert witness.found or witness.reason
        if not witness.found:
            assert RULES[item.rule].no_proof in witness.reason
            assert RULES[item.rule].no_proof


def test_every_rule_has_a_case() -> None:
    cases = [param.values[0] for param in CASES]
    assert {item[0] for case in cases for item in case.get("differences", [])} == set(DIFFERENCE_RULES)
    keys = [key for direction in DIRECTIONS for key in (direction, f"{direction}_hazards")]
    assert {item[0] for case in cases for key in keys for item in case.get(key, [])} == set(RULES)
    assert {rule.kind for rule in RULES.values() if rule.kind} == set(DESCRIPTIONS)


def fills_every_sentence(case, old, new) -> None:
    texts = [item.message for item in PROTOBUF.diff(old, new)]
    for direction in DIRECTIONS:
        judgement = PROTOBUF.judge(*pair(old, new, direction))
        for item in judgement.breaks + judgement.hazards:
            texts += [item.message, item.remedy_in_reader, item.remedy_in_writer, item.why]
    assert all(text and "{" not in text and "None" not in text for text in texts)


def points_into_the_text(case, old, new) -> None:
    for item in PROTOBUF.diff(old, new):
        for schema, pointer in ((old, item.pointer_old), (new, item.pointer_new)):
            if pointer and not pointer.endswith(("/reserved", "/default", "/syntax", "/options")):
                assert PROTOBUF.position(schema, pointer) is not None, pointer
    for direction in DIRECTIONS:
        reader, writer = pair(old, new, direction)
        judgement = PROTOBUF.judge(reader, writer)
        for item in judgement.breaks + judgement.hazards:
            for schema, pointer, source in (
                (reader, item.reader_pointer, item.reader_source),
                (writer, item.writer_pointer, item.writer_source),
            ):
                assert source is not None or PROTOBUF.position(schema, pointer or "") is not None, pointer


def repairs_what_it_says(case, old, new, direction) -> None:
    reader, writer = pair(old, new, direction)
    judgement = PROTOBUF.judge(reader, writer)
    for item in judgement.breaks + judgement.hazards:
        for mine, other, is_reader in ((reader, writer, True), (writer, reader, False)):
            edit = PROTOBUF.repair(mine, other, item, is_reader=is_reader)
            if edit is None:
                continue
            assert edit.title
            files = case.get("old_files" if mine is old else "new_files", {})
            edited = PROTOBUF.parse(edit.text, [ResolvedReference(n, n, 1, text) for n, text in files.items()])
            again = PROTOBUF.judge(edited, other) if is_reader else PROTOBUF.judge(other, edited)
            left = [(finding.rule, finding.path) for finding in again.breaks + again.hazards]
            assert (item.rule, item.path) not in left


#: what holds of each case: of the pair, and of each direction
OF_THE_PAIR = (
    reports_all_differences,
    has_no_difference_to_itself,
    fills_every_sentence,
    points_into_the_text,
)
OF_A_DIRECTION = (
    has_the_verdict_of_the_established_registry,
    reports_all_hazards,
    says_what_the_data_do,
    warns_of_what_no_value_shows,
    has_a_witness_for_every_break_or_says_why_not,
    repairs_what_it_says,
)


@pytest.mark.requirement("GOO-2")
@pytest.mark.parametrize("case", CASES)
def test_each_rule_holds(case: dict[str, Any]) -> None:
    old, new = parsed(case, "old"), parsed(case, "new")
    for check in OF_THE_PAIR:
        check(case, old, new)
    for direction in DIRECTIONS:
        for check in OF_A_DIRECTION:
            check(case, old, new, direction)
