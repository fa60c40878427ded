"""Each finding's own repairs: the safest first, each with what it does to old data and old readers."""

from __future__ import annotations

import json
from functools import partial

import pytest

from registry.formats import FORMATS, suggested_edits
from registry.formats.assessment import assess
from registry.formats.avro.repair import EFFECTS as AVRO_EFFECTS
from registry.formats.avro.repair import IN_READER, IN_WRITER
from registry.formats.json_schema import repair as json_repair
from registry.formats.protobuf import repair as protobuf_repair
from registry.formats.report import Profile
from registry.formats.suggested_edits import Patch, PatchStep

pytestmark = pytest.mark.requirement("GOO-2")

CUSTOMER = {
    "type": "record",
    "name": "Customer",
    "namespace": "shop",
    "fields": [{"name": "id", "type": "long"}, {"name": "email_address", "type": "string", "doc": "where we write to"}],
}
RENAMED = {
    **CUSTOMER,
    "fields": [CUSTOMER["fields"][0], {"name": "email", "type": "string", "doc": "where we write to"}],  # type: ignore[index]
}
ALIAS_EFFECT = "Old data is read under the new name. Old readers know no alias: upgrade them first."
PROTO = 'syntax = "proto3";\npackage shop;\nmessage Order {\n  string id = 1;\n  string note = 2;\n}\n'


def repairs(
    schema_type: str, old: str, new: str, level: str, profile: Profile = "confluent"
) -> tuple[suggested_edits.FindingRepairs, ...]:
    engine = FORMATS[schema_type]
    history = [(1, engine.parse(old, ()))]
    parse = partial(engine.parse, references=())
    return suggested_edits.repairs_of(engine, parse(new), history, level, parse=parse, profile=profile)


def avro(old: object, new: object, level: str) -> tuple[suggested_edits.FindingRepairs, ...]:
    return repairs("AVRO", json.dumps(old, indent=2), json.dumps(new, indent=2), level)


def test_a_rename_gets_its_alias_before_an_invented_default_and_asks() -> None:
    (finding,) = avro(CUSTOMER, RENAMED, "BACKWARD")
    alias, default = finding.edits
    assert alias.title == 'add the alias "email_address"' and not alias.is_invented
    assert alias.effect == ALIAS_EFFECT
    assert default.is_invented
    assert default.title == 'give "email" the default "": readers get "" instead of the data of "email_address"'
    assert finding.passes == (True, True)
    assert "email_address" in finding.question and "email" in finding.question


def test_an_added_field_gets_a_default_that_says_what_readers_of_old_data_see() -> None:
    added = {**CUSTOMER, "fields": [*CUSTOMER["fields"], {"name": "visits", "type": "int"}]}  # type: ignore[misc]
    (finding,) = avro(CUSTOMER, added, "BACKWARD")
    (default,) = finding.edits
    assert default.title == 'give "visits" the default 0: readers get 0 for all data written without it'
    assert (
        default.effect
        == "Readers get the default for old data, and can't tell it from a written value. Old readers aren't affected."
    )
    assert not finding.question


def test_a_removed_field_comes_back_for_old_readers() -> None:
    (finding,) = avro(CUSTOMER, {**CUSTOMER, "fields": CUSTOMER["fields"][:1]}, "FORWARD")
    (edit,) = finding.edits
    assert edit.title == 'restore the field "email_address"' and not edit.is_invented
    assert edit.effect.startswith("Old readers keep getting the field")


def test_an_alias_that_old_readers_do_not_know_is_no_repair_for_them() -> None:
    for finding in avro(CUSTOMER, RENAMED, "FULL"):
        titles = [edit.title for edit in finding.edits]
        assert ('add the alias "email_address"' in titles) == (finding.item.direction == "BACKWARD")
        assert not any(finding.passes), "one edit alone doesn't pass both directions"


def test_a_reused_number_is_reserved_and_the_loss_is_said() -> None:
    (finding,) = repairs("PROTOBUF", PROTO, PROTO.replace("string note = 2", "int32 quantity = 2"), "BACKWARD")
    (edit,) = finding.edits
    assert "reserved 2;" in edit.text and 'then no longer holds what "note" held' in edit.title
    assert edit.is_invented and edit.effect.startswith("Old data under the old number is skipped, never misread")


@pytest.mark.parametrize("profile", ["confluent", "semantic"])
def test_numbers_that_two_fields_swapped_are_given_back(profile: Profile) -> None:
    old = PROTO.replace("string id", "int64 id")
    swapped = old.replace("id = 1", "id = 2").replace("note = 2", "note = 1")
    findings = repairs("PROTOBUF", old, swapped, "FULL", profile=profile)
    assert {finding.item.severity for finding in findings} == {"break", "value loss"} or profile == "semantic"
    for finding in findings:
        (edit,) = finding.edits
        assert edit.text == old and not edit.is_invented and all(finding.passes)
        assert edit.title in (
            'give "id" the number 1, "note" the number 2 again',
            'give "note" the number 2, "id" the number 1 again',
        )
        assert edit.effect.startswith("Old data is read under the number that it was written with")


def test_fields_that_left_a_oneof_go_back_for_old_readers() -> None:
    old = PROTO.replace("string note = 2;", "oneof text { string note = 2; string link = 3; }")
    new = PROTO.replace("string note = 2;", "string note = 2; string link = 3;")
    finding, *_ = repairs("PROTOBUF", old, new, "FORWARD")
    assert finding.edits[0].title == 'put note, link into the oneof "text"'
    assert finding.edits[0].effect.startswith("New data has at most one of these fields")


@pytest.mark.parametrize("required", [["id", "email"], ["id"]])
def test_a_renamed_property_keeps_its_old_name_beside_it(required: list[str]) -> None:
    old = {"type": "object", "properties": {"email_address": {"type": "string"}, "id": {"type": "integer"}}}
    new = {**old, "properties": {"email": {"type": "string"}, "id": {"type": "integer"}}, "required": required}
    finding = repairs("JSON", json.dumps({**old, "required": ["id", "email_address"]}), json.dumps(new), "BACKWARD")[0]
    assert finding.question
    first = finding.edits[0]
    assert first.title.startswith('keep "email_address" as deprecated beside "email"') and finding.passes[0]
    assert first.effect.startswith('Old data keeps its values under "email_address".')
    assert json.loads(first.text)["properties"].keys() == {"email", "id", "email_address"}


def test_a_property_that_closed_readers_refuse_can_not_be_written() -> None:
    old = {"type": "object", "properties": {"id": {"type": "string"}}, "additionalProperties": False}
    new = {**old, "properties": {**old["properties"], "sku": {"type": "string"}}}  # type: ignore[dict-item]
    (finding,) = repairs("JSON", json.dumps(old), json.dumps(new), "FORWARD")
    assert finding.edits[0].title == 'remove the property "sku"'
    assert finding.edits[0].effect == "Old readers accept all new data, which can't have these properties."


def test_a_required_property_becomes_optional() -> None:
    old = {"type": "object", "properties": {"id": {"type": "string"}}, "additionalProperties": False}
    new = {**old, "properties": {**old["properties"], "sku": {"type": "string"}}, "required": ["sku"]}  # type: ignore[dict-item]
    findings = repairs("JSON", json.dumps(old), json.dumps(new), "BACKWARD")
    edits = [edit for finding in findings for edit in finding.edits]
    assert edits[0].title.startswith('make "sku"')
    assert edits[0].effect == "Old data without the property stays valid, and code must handle its absence."


def test_every_step_says_what_it_does() -> None:
    steps = {step for table in (IN_READER, IN_WRITER) for row in table.values() for step in row}
    assert steps <= AVRO_EFFECTS.keys()
    tables = (
        json_repair.IN_READER,
        json_repair.IN_WRITER,
        json_repair.REFUSED_BY_READER,
        json_repair.REFUSED_OF_WRITER,
    )
    assert {step for table in tables for row in table.values() for step in row} <= json_repair.EFFECTS.keys()
    assert set(protobuf_repair._EDITS.values()) <= protobuf_repair._EFFECTS.keys()


def test_a_patch_has_the_effect_of_each_edit() -> None:
    engine = FORMATS["AVRO"]
    parse = partial(engine.parse, references=())
    report = assess(engine, parse(json.dumps(RENAMED)), [(1, parse(json.dumps(CUSTOMER)))], "BACKWARD", parse=parse)
    assert report.patch is not None
    assert report.patch.steps == (PatchStep('add the alias "email_address"', ALIAS_EFFECT),)


def test_edits_of_a_patch_with_the_same_effect_are_one_step() -> None:
    titles = ("restore the type long", 'add the alias "a"', "restore the type long", 'add the alias "b"', "drop it")
    patch = Patch(titles, "", "", True, ("unchanged", "renamed", "unchanged", "renamed"))
    assert patch.steps == (
        PatchStep("restore the type long", "unchanged", 2),
        PatchStep('add the alias "a"', "renamed", 1, (('add the alias "b"', 1),)),
        PatchStep("drop it"),
    )
