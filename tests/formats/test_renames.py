"""Likely renames: what readers get is told in words, the same on every surface, and agrees with what decoders do."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import pytest

from registry.formats.assessment import Assessment, assess
from registry.formats.avro import AVRO
from registry.formats.base import Difference
from registry.formats.ci_findings import RENAME_RULE, assessment_findings, assessment_junit, assessment_sarif
from registry.formats.json_schema import JSON_SCHEMA
from registry.formats.protobuf import PROTOBUF
from registry.formats.rendering import assessment_markdown, assessment_text
from registry.formats.schema_format import SchemaFormat
from registry.formats.suggested_edits import MAX_PAIRS_OF_RENAMES

P3 = 'syntax = "proto3"; '


def record(name: str, **more: Any) -> str:
    return json.dumps({"type": "record", "name": "User", "fields": [{"name": name, "type": "string", **more}]})


def person(name: str, **more: Any) -> str:
    return json.dumps({"type": "object", "properties": {name: {"type": "string"}}, **more})


def suspected(engine: SchemaFormat, old: str, new: str) -> Difference:
    [rename] = [item for item in engine.diff(engine.parse(old), engine.parse(new)) if item.score is not None]
    return rename


AVRO_EFFECT = (
    'Readers with the new schema get the default "" for "mail" in every message written with "email". '
    'They drop the value of "email".'
)


def test_avro_readers_with_a_default_of_their_own_get_it_in_place_of_the_value() -> None:
    old, new = record("email"), record("mail", default="")
    rename = suspected(AVRO, old, new)
    assert rename.effect == (
        f'{AVRO_EFFECT} Readers with the old schema stop at every message written with "mail": "email" has no default.'
    )
    assert rename.cure.startswith('Add the alias "email" to "mail": readers with the new schema then take the value')
    parsed = AVRO.parse(old), AVRO.parse(new)
    assert AVRO.resolve(parsed[1], parsed[0], {"email": "a@b"}).value == {"mail": ""}
    edit = AVRO.accept_rename(*parsed, rename)
    assert edit is not None
    assert AVRO.resolve(AVRO.parse(edit.text), parsed[0], {"email": "a@b"}).value == {"mail": "a@b"}


def test_avro_readers_without_a_default_stop() -> None:
    rename = suspected(AVRO, record("email", default="none"), record("mail"))
    assert rename.effect == (
        'Readers with the new schema stop at every message written with "email": "mail" has no default. '
        'Readers with the old schema get the default "none" for "email" in every message written with "mail". '
        'They drop the value of "mail".'
    )


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        ("string", 'get the default "" for "user_mail"'),
        ("int32", 'get the default 0 for "user_mail"'),
        ("repeated string", 'find "user_mail" empty'),
        ("map<string, int32>", 'find "user_mail" empty'),
        ("A", 'find "user_mail" unset'),
    ],
)
def test_protobuf_readers_lose_the_value_under_another_number(kind: str, outcome: str) -> None:
    old, new = (P3 + f"message A {{ {kind} {name} = {number}; }}" for name, number in (("mail", 1), ("user_mail", 2)))
    rename = suspected(PROTOBUF, old, new)
    assert rename.effect.startswith(
        f'Readers with the new schema {outcome} in every message written with "mail" (number 1). '
        'To them the value of "mail" is an unknown field.'
    )
    assert rename.effect.endswith(
        'Readers of the old JSON form refuse the unknown name "userMail", or drop its value. '
        'Readers of the new JSON form refuse the unknown name "mail", or drop its value.'
    )
    assert rename.cure == (
        'Give "user_mail" the number 1 of "mail": the binary form then keeps the value. '
        'Add json_name = "mail": the JSON form then keeps its name. '
        'If it is another field, reserve the number 1 and the name "mail".'
    )


def test_protobuf_keeps_the_value_with_the_number_and_loses_it_without() -> None:
    old = P3 + "message A { string email = 1; }"
    new = P3 + "message A { string mail = 2; }"
    first, second = PROTOBUF.parse(old), PROTOBUF.parse(new)
    assert PROTOBUF.resolve(second, first, {"email": "a@b"}).value != {"mail": "a@b"}
    edit = PROTOBUF.accept_rename(first, second, suspected(PROTOBUF, old, new))
    assert edit is not None
    assert PROTOBUF.resolve(PROTOBUF.parse(edit.text), first, {"email": "a@b"}).value == {"mail": "a@b"}


def test_protobuf_readers_that_require_the_new_field_refuse_the_message() -> None:
    old, new = (
        f'syntax = "proto2"; message A {{ required string {name} = {number}; }}'
        for name, number in (("email", 1), ("mail", 2))
    )
    assert suspected(PROTOBUF, old, new).effect.startswith(
        'Readers with the new schema refuse every message written with "email" (number 1): '
        'the required "mail" is missing.'
    )


def test_protobuf_says_what_a_new_name_under_the_same_number_breaks() -> None:
    old, new = (PROTOBUF.parse(P3 + f"message A {{ string {name} = 1; }}") for name in ("email", "mail"))
    [finding] = PROTOBUF.judge(new, old).hazards
    assert finding.rule == "FIELD_RENAMED"
    assert "Binary data uses the number and keeps the value." in finding.why
    assert "rejects the writer's name, or drops its value" in finding.why
    assert "Generated code, field masks and the text format use the name." in finding.why
    assert "json_name" in finding.remedy_in_reader


def test_protobuf_warns_of_no_loss_in_json_where_the_json_name_stays() -> None:
    old, new = (PROTOBUF.parse(P3 + f"message A {{ string {field}; }}") for field in JSON_KEPT)
    for reader, writer in ((new, old), (old, new)):
        [finding] = PROTOBUF.judge(reader, writer).hazards
        assert finding.rule == "FIELD_RENAMED_JSON_KEPT"
        assert "both keep the value" in finding.why
        assert "drops its value" not in finding.why
    rename = suspected(PROTOBUF, old.text, new.text.replace("= 1", "= 2"))
    assert "JSON form" not in rename.effect
    assert "json_name" not in rename.cure


JSON_KEPT = ("email = 1", 'mail = 1 [json_name = "email"]')


def test_avro_says_which_type_reads_too_few_values_of_the_old_name() -> None:
    old, new = record("email").replace('"string"', '["null", "string"]'), record("mail", default="")
    assert (
        'Also give "mail" a type that reads every value of "email": string can\'t read'
        in suspected(AVRO, old, new).cure
    )


@pytest.mark.parametrize(
    ("old", "new", "level", "passes"),
    [
        (record("email"), record("mail"), "BACKWARD", True),
        (record("email"), record("mail"), "FULL", False),
        (record("email").replace('"string"', '["null", "string"]'), record("mail", default=""), "BACKWARD", False),
    ],
)
def test_the_edit_of_a_rename_says_whether_the_level_passes_with_it(
    old: str, new: str, level: str, passes: bool
) -> None:
    assessment = assess(AVRO, AVRO.parse(new), [(1, AVRO.parse(old))], level, parse=AVRO.parse)
    [rename] = assessment.to_dict()["renames"]
    assert rename["edit"]["passes"] is passes
    after = assess(AVRO, AVRO.parse(rename["edit"]["text"]), [(1, AVRO.parse(old))], level, parse=AVRO.parse)
    assert after.is_compatible is passes
    sentence = "with this edit the check passes" if passes else "the check fails with this edit alone"
    assert sentence in assessment_text(assessment)
    assert sentence in assessment_markdown(assessment)


def test_only_the_first_renames_of_many_versions_are_measured() -> None:
    names = ("one", "two")
    old = AVRO.parse(json.dumps({**RECORD, "fields": [{"name": f"{name}_mail", "type": "string"} for name in names]}))
    new = AVRO.parse(json.dumps({**RECORD, "fields": [{"name": f"{name}_email", "type": "string"} for name in names]}))
    history = [(version, old) for version in range(1, MAX_PAIRS_OF_RENAMES + 1)]
    renames = assess(AVRO, new, history, "BACKWARD_TRANSITIVE", parse=AVRO.parse).renames
    assert [rename.passes for rename in renames] == [False, None]


RECORD = {"type": "record", "name": "User"}


@pytest.mark.parametrize(
    ("more", "effect"),
    [
        ({}, 'find no "mail" in data written with "email". They ignore the value of "email".'),
        ({"required": ["email", "mail"]}, 'refuse all data written with "email": they require "mail".'),
        ({"additionalProperties": False}, 'refuse all data written with "email": they take no other properties.'),
    ],
)
def test_json_schema_readers_find_no_value_or_refuse_it(more: dict[str, Any], effect: str) -> None:
    rename = suspected(JSON_SCHEMA, person("email", **more), person("mail", **more))
    assert rename.effect.startswith(f"Readers with the new schema {effect} Readers with the old schema ")
    assert rename.cure.startswith('Keep "email" as deprecated beside "mail"')


def assessed() -> Assessment:
    old, new = AVRO.parse(record("email")), AVRO.parse(record("mail", default=""))
    return assess(AVRO, new, [(1, old)], "BACKWARD", parse=AVRO.parse)


def test_every_report_says_what_readers_get_and_what_to_do() -> None:
    assessment = assessed()
    assert assessment.is_compatible
    [rename] = assessment.to_dict()["renames"]
    assert rename["effect"].startswith(AVRO_EFFECT)
    assert rename["cure"].startswith('Add the alias "email" to "mail"')
    [finding] = [item for item in assessment_findings(assessment) if item.rule == RENAME_RULE]
    assert finding.message.startswith(f'the field "email" may have been renamed to "mail". {AVRO_EFFECT}')
    assert (finding.level, finding.cure) == ("warning", 'add the alias "email"')
    sarif = json.loads(assessment_sarif(assessment))
    assert any(AVRO_EFFECT in item["message"]["text"] for item in sarif["runs"][0]["results"])
    [case] = [
        case
        for case in ElementTree.fromstring(assessment_junit(assessment)).iter("testcase")
        if case.get("name") == "renamed fields"
    ]
    output = case.findtext("system-out") or ""
    for text in (output, assessment_text(assessment), assessment_markdown(assessment)):
        assert AVRO_EFFECT in text
        assert 'Add the alias "email" to "mail"' in text
        assert 'add the alias "email"' in text


def test_a_field_with_an_alias_is_called_by_its_old_name_again_where_old_readers_need_it() -> None:
    old, new = AVRO.parse(record("email")), AVRO.parse(record("mail", aliases=["email"]))
    [finding] = AVRO.judge(old, new).breaks
    edit = AVRO.repair(new, old, finding, is_reader=False)
    assert edit is not None
    assert edit.title == 'call "mail" "email" again, with the alias "mail": readers of the other side know no alias'
    edited = AVRO.parse(edit.text)
    assert AVRO.judge(old, edited).is_compatible
    assert AVRO.resolve(edited, old, {"email": "a@b"}).value == {"email": "a@b"}
    assert AVRO.resolve(edited, new, {"mail": "a@b"}).value == {"email": "a@b"}


def test_a_field_that_merges_two_is_not_renamed_from_one_to_the_other() -> None:
    fields = [{"name": name, "type": "string"} for name in ("a", "b")]
    old = AVRO.parse(json.dumps({**RECORD, "fields": fields}))
    new = AVRO.parse(json.dumps({**RECORD, "fields": [{"name": "c", "type": "string", "aliases": ["a", "b"]}]}))
    for level, titles in (
        ("BACKWARD", ('remove the alias "b" from "c": readers then drop the values of "b"',)),
        ("FORWARD", ('call "c" "a" again, with the alias "c": readers of the other side know no alias', RESTORED)),
    ):
        patch = assess(AVRO, new, [(1, old)], level, parse=AVRO.parse).patch
        assert patch is not None
        assert (patch.titles, patch.passes) == (titles, True)


RESTORED = 'restore the field "b"'
