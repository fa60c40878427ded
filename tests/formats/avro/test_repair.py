"""Edits that remove findings: one for every rule, tried on every case, and texts that stay as people wrote them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import pytest

from registry.formats.avro import AVRO
from registry.formats.avro.repair import IN_READER, IN_WRITER
from registry.formats.avro.rules import RULES
from registry.formats.base import Incompatibility, ParsedSchema
from registry.formats.json_edit import NoSuchPlace, TextEdit
from tests.formats.avro.test_cases import CASES

# What no edit of one schema can be given for: the writer can't name an alias, and what a decoder alone refuses.
WITHOUT_EDIT_IN_READER = {"NOT_DECODED", "SCHEMA_REFUSED", "DEFAULT_FILLED_DIFFERENTLY"}
WITHOUT_EDIT_IN_WRITER = {
    "UNION_BRANCH_AMBIGUOUS",
    "UNION_BRANCH_ORDER",
    "NOT_DECODED",
    "ALIAS_AMBIGUOUS",
    "FIELD_ALIASED_TWICE",
    "SCHEMA_REFUSED",
}


def found_in_cases() -> Iterator[tuple[str, ParsedSchema, ParsedSchema, Incompatibility]]:
    for param in CASES:
        case = param.values[0]
        old, new = AVRO.parse(json.dumps(case["old"], indent=2)), AVRO.parse(json.dumps(case["new"], indent=2))
        for reader, writer in ((new, old), (old, new)):
            judgement = AVRO.judge(reader, writer)
            for item in judgement.breaks + judgement.hazards:
                yield case["name"], reader, writer, item


FOUND = list(found_in_cases())


@pytest.mark.parametrize(("name", "reader", "writer", "found"), FOUND, ids=[f"{i[0]}: {i[3].rule}" for i in FOUND])
def test_an_edit_removes_its_finding_and_breaks_nothing_else(name, reader, writer, found) -> None:
    for is_reader in (True, False):
        schema, other = (reader, writer) if is_reader else (writer, reader)
        edit = AVRO.repair(schema, other, found, is_reader=is_reader)
        if edit is None:
            continue
        assert edit.title
        changed = AVRO.parse(edit.text)
        assert changed.canonical != schema.canonical
        after = AVRO.judge(changed, writer) if is_reader else AVRO.judge(reader, changed)
        before = AVRO.judge(reader, writer)
        assert len(after.breaks) <= len(before.breaks)
        side = "before" if is_reader else "after"
        told = [(item.rule, item.path, getattr(item, side)) for item in after.breaks + after.hazards]
        assert (found.rule, found.path, getattr(found, side)) not in told


def test_every_rule_has_an_edit_on_the_side_that_can_mend_it() -> None:
    made: Counter[tuple[str, bool]] = Counter()
    for _, reader, writer, found in FOUND:
        for is_reader in (True, False):
            schema, other = (reader, writer) if is_reader else (writer, reader)
            if AVRO.repair(schema, other, found, is_reader=is_reader) is not None:
                made[found.rule, is_reader] += 1
    assert {rule for rule, is_reader in made if is_reader} == set(RULES) - WITHOUT_EDIT_IN_READER
    assert {rule for rule, is_reader in made if not is_reader} == set(RULES) - WITHOUT_EDIT_IN_WRITER
    assert set(IN_READER) | set(IN_WRITER) <= set(RULES)


COMMENTED = """{
  // who ordered
  "type": "record", "name": "Order", /* the root */
  "fields": [
    {"name": "id", "type": "long"},   // never reused
    {
      "name": "state",
      "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}
    },
    {"name": "note", "type": "string"} // free text
  ]
}
"""
OLD = """{"type": "record", "name": "Order", "fields": [
  {"name": "id", "type": "string"},
  {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID", "SENT"]}}
]}"""


def edited(rule: str, *, is_reader: bool = True) -> tuple[str, str]:
    reader, writer = AVRO.parse(COMMENTED), AVRO.parse(OLD)
    found = next(item for item in AVRO.incompatibilities(reader, writer) if item.rule == rule)
    schema, other = (reader, writer) if is_reader else (writer, reader)
    edit = AVRO.repair(schema, other, found, is_reader=is_reader)
    assert edit is not None
    return edit.title, edit.text


def test_formatting_and_comments_around_an_edit_survive() -> None:
    title, text = edited("FIELD_WITHOUT_DEFAULT")
    assert title == 'give "note" the default "": readers get "" for all data written without it'
    assert text == COMMENTED.replace('"type": "string"} // free', '"type": "string", "default": ""} // free')
    title, text = edited("ENUM_SYMBOL_MISSING")
    assert title == "restore the symbols SENT"
    assert text == COMMENTED.replace('"NEW", "PAID"]', '"NEW", "PAID", "SENT"]')
    title, text = edited("TYPE_CHANGED")
    assert title == "restore the type string"
    assert text == COMMENTED.replace('"type": "long"', '"type": "string"')


def test_the_writers_side_gets_the_field_back_on_a_line_of_its_own() -> None:
    title, text = edited("FIELD_WITHOUT_DEFAULT", is_reader=False)
    assert title == 'restore the field "note"'
    lines = text.splitlines()
    assert lines[3] == '  {"name": "note", "type": "string"}'
    assert lines[2].endswith("},")


def test_every_edit_that_invents_a_value_says_what_readers_get_and_no_other_does() -> None:
    invented: Counter[str] = Counter()
    for _, reader, writer, found in FOUND:
        edit = AVRO.repair(reader, writer, found, is_reader=True)
        if edit is not None and edit.is_invented:
            invented[found.rule] += 1
            assert any(word in edit.title for word in ("readers get", "read unknown symbols as")), edit.title
        elif edit is not None:
            assert "default" not in edit.title.replace("and its default", "").replace("without a default", "")
        if edit is not None and AVRO.repair(writer, reader, found, is_reader=False) is not None:
            own = AVRO.repair(writer, reader, found, is_reader=False)
            assert own is None or not own.is_invented
    assert invented.keys() >= {"FIELD_WITHOUT_DEFAULT"}


@pytest.mark.requirement("ORA-5")
def test_a_default_in_place_of_renamed_data_names_them() -> None:
    old = AVRO.parse('{"type": "record", "name": "R", "fields": [{"name": "email", "type": "string"}]}')
    new = AVRO.parse('{"type": "record", "name": "R", "fields": [{"name": "mail", "type": "string"}]}')
    (found,) = AVRO.incompatibilities(new, old)
    assert found.remedy_in_reader.startswith('add the alias "email" to "mail"')
    edit = AVRO.repair(new, old, found, is_reader=True)
    assert edit is not None
    assert edit.title == 'give "mail" the default "": readers get "" instead of the data of "email"'


@pytest.mark.requirement("ORA-5")
def test_a_suspected_rename_is_accepted_with_an_alias() -> None:
    old = AVRO.parse('{"type": "record", "name": "R", "fields": [{"name": "user_name", "type": "string"}]}')
    new = AVRO.parse(
        '{\n"type": "record", "name": "R", "fields": [\n  {"name": "userName", "type": "string"} // new\n]}'
    )
    suspected = next(item for item in AVRO.diff(old, new) if item.rule == "FIELD_RENAME_SUSPECTED")
    edit = AVRO.accept_rename(old, new, suspected)
    assert edit is not None
    assert edit.title == 'add the alias "user_name"'
    assert '{"name": "userName", "type": "string", "aliases": ["user_name"]} // new' in edit.text
    changed = AVRO.parse(edit.text)
    assert [item.rule for item in AVRO.diff(old, changed)] == ["FIELD_RENAMED", "ALIAS_ADDED"]
    assert AVRO.incompatibilities(changed, old) == ()


def test_a_renamed_type_gets_an_alias_and_reads_the_old_data() -> None:
    old = AVRO.parse('{"type": "record", "name": "Old", "namespace": "a.b", "fields": []}')
    new = AVRO.parse('{"type": "record", "name": "New", "namespace": "a.b", "fields": []}')
    renamed = next(item for item in AVRO.diff(old, new) if item.rule == "TYPE_RENAMED")
    edit = AVRO.accept_rename(old, new, renamed)
    assert edit is not None
    assert AVRO.incompatibilities(AVRO.parse(edit.text), old) == ()


def test_what_is_no_rename_is_not_accepted_as_one() -> None:
    old = AVRO.parse('{"type": "record", "name": "R", "fields": []}')
    new = AVRO.parse('{"type": "record", "name": "R", "doc": "d", "fields": []}')
    assert AVRO.accept_rename(old, new, AVRO.diff(old, new)[0]) is None


@pytest.mark.parametrize(
    ("text", "change", "expected"),
    [
        ("[]", lambda edit: edit.insert_item("", 0, "1"), "[1]"),
        ("[1, 2]", lambda edit: edit.insert_item("", 1, "9"), "[1, 9, 2]"),
        ("[\n  1,\n  2 // two\n]", lambda edit: edit.insert_item("", 2, "3"), "[\n  1,\n  2,\n  3 // two\n]"),
        ("{}", lambda edit: edit.set_member("", "a", "1"), '{"a": 1}'),
        ('{"a": [1]}', lambda edit: edit.set_member("", "a", "2"), '{"a": 2}'),
        ('{"a/b": {"~": 1}}', lambda edit: edit.replace("/a~1b/~0", "2"), '{"a/b": {"~": 2}}'),
        ("[1, 2, 3]", lambda edit: edit.remove("", 1), "[1, 3]"),
        ("[1, 2, 3]", lambda edit: edit.remove("", 2), "[1, 2]"),
        ("[1]", lambda edit: edit.remove("", 0), "[]"),
        ('{"a": 1, "b": 2}', lambda edit: edit.remove_member("", "a"), '{"b": 2}'),
        ('{"a": "}//"} // }', lambda edit: edit.set_member("", "b", "1"), '{"a": "}//", "b": 1} // }'),
    ],
)
def test_text_edits(text, change, expected) -> None:
    edit = TextEdit(text)
    change(edit)
    assert edit.text == expected


def test_a_pointer_that_leads_nowhere_is_refused() -> None:
    edit = TextEdit('{"a": [1]}')
    for change in (
        lambda: edit.replace("/b", "1"),
        lambda: edit.insert_item("", 0, "1"),
        lambda: edit.remove("/a", 1),
        lambda: edit.remove_member("", "b"),
    ):
        with pytest.raises(NoSuchPlace):
            change()
    assert edit.text == '{"a": [1]}'


def test_a_finding_in_a_referenced_schema_is_not_edited_here() -> None:
    from tests.formats.avro.test_parser import CUSTOMER, address

    narrower = '{"type": "record", "name": "Address", "namespace": "com.example.common", "fields": []}'
    old = AVRO.parse(CUSTOMER, [address(text=narrower)])
    new = AVRO.parse(CUSTOMER, [address()])
    for found in AVRO.incompatibilities(new, old):
        assert found.reader_source is not None
        assert AVRO.repair(new, old, found, is_reader=True) is None


def test_null_comes_after_the_branch_of_a_default_and_first_without_one() -> None:
    writer = AVRO.parse(json.dumps(_note(["null", "string"], default=None)))
    for reader, types in ((_note("string", default=""), ["string", "null"]), (_note("string"), ["null", "string"])):
        schema = AVRO.parse(json.dumps(reader))
        (found,) = AVRO.incompatibilities(schema, writer)
        edit = AVRO.repair(schema, writer, found, is_reader=True)
        assert edit is not None
        assert json.loads(edit.text)["fields"][0]["type"] == types


def _note(kind: object, **more: object) -> dict[str, object]:
    return {"type": "record", "name": "R", "fields": [{"name": "note", "type": kind, **more}]}
