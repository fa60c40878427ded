"""The whole report: proofs, disagreements, renames, the patch; as JSON by its published schema, as text and Markdown."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema_rs
import pytest

from registry.errors import InvalidCompatibility, InvalidSchema
from registry.formats.assessment import Assessment, ClientAnswer, Dependant, assess
from registry.formats.avro import AVRO
from registry.formats.ci_findings import assessment_findings
from registry.formats.compatibility import LEVELS
from registry.formats.rendering import assessment_markdown, assessment_text
from registry.formats.report import Profile
from tests.formats.avro.random_schemas import random_pair

DOCUMENTED = jsonschema_rs.validator_for(
    json.loads((Path(__file__).parents[2] / "docs/reference/compatibility-report.schema.json").read_text())
)


def record(*fields: dict[str, object], name: str = "Order") -> str:
    return json.dumps({"type": "record", "name": name, "fields": list(fields)})


ID = {"name": "id", "type": "int"}
NOTE = {"name": "note", "type": "string"}


def assessed(new: str, *old: str, level: str = "BACKWARD", profile: Profile = "confluent") -> Assessment:
    history = [(number, AVRO.parse(text)) for number, text in enumerate(old, start=1)]
    return assess(AVRO, AVRO.parse(new), history, level, parse=AVRO.parse, profile=profile)


@pytest.mark.requirement("CARD-2", "GOO-2")
def test_every_break_has_its_proof_and_the_patch_passes() -> None:
    report = assessed(record({"name": "id", "type": "string"}, NOTE), record(ID))
    assert not report.is_compatible
    assert {item.rule for item in report.report.breaks} == {"TYPE_CHANGED", "FIELD_WITHOUT_DEFAULT"}
    for item in report.report.breaks:
        assert item.witness is not None
        assert item.witness.found, item
        assert item.witness.error
    assert report.patch is not None
    assert report.patch.passes
    assert len(report.patch.titles) == 2
    assert assessed(report.patch.text, record(ID)).is_compatible


def test_a_rename_is_suspected_and_the_edit_makes_it_known() -> None:
    old = record(ID, {"name": "customerName", "type": "string", "default": ""})
    new = record(ID, {"name": "customer_name", "type": "string", "default": ""})
    report = assessed(new, old)
    assert report.is_compatible
    [rename] = report.renames
    assert rename.score > 0.5
    assert rename.reasons
    assert rename.edit is not None
    assert json.loads(rename.edit.text)["fields"][1]["aliases"] == ["customerName"]
    assert not assessed(rename.edit.text, old).renames


def test_rules_and_data_part_where_values_change() -> None:
    def amount(scale: int) -> str:
        type_ = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": scale}
        return record({"name": "amount", "type": type_})

    by_rules, by_data = assessed(amount(4), amount(2)), assessed(amount(4), amount(2), profile="semantic")
    assert by_rules.is_compatible
    assert not by_data.is_compatible
    [backward] = [item for item in by_rules.disagreements if item.direction == "BACKWARD"]
    assert ".)" not in backward.sentence
    assert (backward.by_rules, backward.by_data) == ("yes", "no")
    assert backward.witness is not None
    assert backward.witness.found
    assert "established rules accept" in backward.sentence


def test_an_unknown_level_is_named() -> None:
    with pytest.raises(InvalidCompatibility, match="SIDEWAYS"):
        assessed(record(ID), record(ID), level="SIDEWAYS")


def test_the_first_version() -> None:
    report = assessed(record(ID))
    assert report.is_compatible
    assert report.patch is None
    assert (report.disagreements, report.renames, report.compared_with_data) == ((), (), 0)
    assert "nothing to check" in assessment_text(report)


def parsed_pairs(count: int) -> list[tuple[str, str]]:
    """Random pairs, without those that hold a schema that isn't one."""
    texts: list[tuple[str, str]] = []
    for seed in range(10 * count):
        pair = random_pair(seed)
        try:
            [AVRO.parse(text) for text in pair]
        except InvalidSchema:
            continue
        texts.append(pair)
    return texts[:count]


@pytest.mark.parametrize("level", LEVELS)
def test_the_json_is_as_documented(level: str) -> None:
    pairs = parsed_pairs(15)
    assert len(pairs) == 15
    for writer, reader in pairs:
        report = assessed(reader, writer, level=level)
        DOCUMENTED.validate(json.loads(json.dumps(report.to_dict())))
        assert report.to_dict()["upgrade_order"] == report.to_dict()["order"], "one order for one change"
        assert f"under {level}" in assessment_markdown(report).replace("\\_", "_")
        assert f"under {level}" in assessment_text(report)


def test_markdown_holds_strangers_words_as_words() -> None:
    text = record({"name": "id", "type": "string", "doc": "<script>"}, {"name": "b", "type": "string"})
    report = assessed(text, record(ID))
    hostile = Assessment(
        **{
            name: getattr(report, name)
            for name in Assessment.__dataclass_fields__
            if name not in ("dependants", "clients")
        },
        dependants=(Dependant("a`|<b>", 1, "no", "<img src=x> [x](y)"),),
        clients=(ClientAnswer("<img src=y>", "reads", None, "<b>", "unknown", "<img src=z>"),),
    )
    DOCUMENTED.validate(json.loads(json.dumps(hostile.to_dict())))
    assert "client: <img src=y> (reads, <b>)" in assessment_text(hostile)
    shown = assessment_markdown(hostile)
    assert "<img" not in shown.replace("\\<img", "")
    assert "`` a`|<b> ``" in shown


def test_a_schema_that_breaks_everywhere_gets_no_patch() -> None:
    old = record(*({"name": f"f{number}", "type": "int"} for number in range(21)))
    new = record(*({"name": f"f{number}", "type": "string"} for number in range(21)))
    report = assessed(new, old)
    assert len(report.report.breaks) == 21
    assert report.patch is None


@pytest.mark.requirement("ORA-6")
def test_where_decoders_differ_the_report_says_so_and_nothing_passes() -> None:
    old, new = (
        '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "int"}]}',
        '{"type": "record", "name": "R", "fields": [{"name": "b", "type": "int", "aliases": ["a"]}, '
        '{"name": "a", "type": "int", "aliases": ["b"]}]}',
    )
    assessment = assess(AVRO, AVRO.parse(new), [(1, AVRO.parse(old))], "BACKWARD", parse=AVRO.parse, profile="semantic")
    assert (assessment.report.is_compatible, assessment.report.verdict) == (False, "differs")
    assert {item.decoders for item in assessment.report.breaks} == {("Java",)}
    assert all(
        "only Java's decoder: fastavro reads the same data unchanged" in item.message
        for item in assessment.report.breaks
    )
    assert assessment.strip.matrix[0].is_backward is False
    plain = assessment.to_dict()
    assert (plain["verdict"], plain["items"][0]["decoders"]) == ("differs", ["Java"])
    assert "depends on the decoder, so not compatible" in assessment_markdown(assessment)
    by_rules = assess(AVRO, AVRO.parse(new), [(1, AVRO.parse(old))], "BACKWARD", parse=AVRO.parse)
    assert by_rules.report.verdict == "incompatible"
    assert [(item.by_rules, item.by_data) for item in by_rules.disagreements if item.direction == "BACKWARD"] == [
        ("no", "differs")
    ]
    for report in (plain, by_rules.to_dict()):
        assert DOCUMENTED.is_valid(report)


EMAIL, MAIL = {"name": "email", "type": "string"}, {"name": "mail", "type": "string"}


@pytest.mark.requirement("ORA-5")
def test_of_a_likely_rename_the_alias_comes_first_and_keeps_the_data() -> None:
    report = assessed(record(ID, MAIL, {"name": "zip", "type": "string"}), record(ID, EMAIL))
    assert report.patch is not None
    assert report.patch.titles == (
        'add the alias "email"',
        'give "zip" the default "": readers get "" for all data written without it',
    )
    assert report.patch.passes
    datum = AVRO.resolve(AVRO.parse(report.patch.text), AVRO.parse(record(ID, EMAIL)), {"id": 1, "email": "a@b"})
    assert datum.value == {"id": 1, "mail": "a@b", "zip": ""}
    assert [item.remedy.split(":")[0] for item in report.report.items if item.named_path == "Order.mail"] == [
        'add the alias "email" to "mail", which looks like the same field'
    ]
    suspicions = [item for item in assessment_findings(report) if item.rule == "FIELD_RENAME_SUSPECTED"]
    assert [(item.level, item.path, item.cure) for item in suspicions] == [
        ("warning", "Order.mail", 'add the alias "email"')
    ]


@pytest.mark.requirement("ORA-5")
def test_a_rename_that_passes_by_its_default_is_reported_all_the_same() -> None:
    report = assessed(record(ID, {**MAIL, "default": ""}), record(ID, EMAIL))
    assert report.is_compatible
    assert "FIELD_RENAME_SUSPECTED" in [item.rule for item in assessment_findings(report) if item.level == "warning"]


def test_where_old_readers_need_the_old_name_the_field_comes_back_and_nothing_is_doubled() -> None:
    report = assessed(record(ID, MAIL), record(ID, EMAIL), level="FULL")
    assert report.patch is not None
    assert report.patch.passes
    assert report.patch.titles[0] == 'restore the field "email"'
    judged = AVRO.judge(AVRO.parse(report.patch.text), AVRO.parse(record(ID, EMAIL)))
    assert (judged.breaks, judged.hazards) == ((), ())


def test_edits_that_invent_values_come_after_those_that_keep_data() -> None:
    old = record(NOTE, {"name": "state", "type": {"type": "enum", "name": "S", "symbols": ["NEW", "PAID"]}})
    new = record(
        {"name": "added", "type": "int"}, {"name": "state", "type": {"type": "enum", "name": "S", "symbols": ["NEW"]}}
    )
    report = assessed(new, old)
    assert report.patch is not None
    assert [title.split(":")[0] for title in report.patch.titles] == [
        "restore the symbols PAID",
        'give "added" the default 0',
    ]


@pytest.mark.parametrize("seed", range(40))
def test_a_patch_never_adds_problems_and_names_what_it_invents(seed: int) -> None:
    try:
        old, new = (AVRO.parse(text) for text in random_pair(seed + 500_000))
    except InvalidSchema:
        return
    report = assess(AVRO, new, [(1, old)], "FULL", parse=AVRO.parse)
    if report.patch is None:
        return
    after = assess(AVRO, AVRO.parse(report.patch.text), [(1, old)], "FULL", parse=AVRO.parse)
    assert len(after.report.breaks) < len(report.report.breaks)
    defaults = [title for title in report.patch.titles if " the default " in title and "read unknown" not in title]
    assert all("readers get" in title for title in defaults)
