"""Outline, example, resolution, renames, edits, and a text without references."""

from __future__ import annotations

import inspect

import pytest

from registry.errors import InvalidDatum
from registry.formats.base import Difference, ParsedSchema, ResolvedReference
from registry.formats.protobuf import PROTOBUF
from registry.formats.schema_format import SchemaFormat
from tests.waiting import costs_little

P3 = 'syntax = "proto3";\n'
ORDER = (
    P3
    + """\
package shop;
// An order of a customer.
message Order {
  int64 id = 1; // the key
  repeated Item items = 2;
  map<string, Item> by_name = 3;
  oneof payment {
    string card = 4;
    Item voucher = 5;
  }
  Color color = 6;
  Order before = 7;
  message Item {
    optional double price = 1;
  }
}
enum Color {
  RED = 0;
  BLUE = 1;
}
"""
)


def schema(text: str, **files: str) -> ParsedSchema:
    references = [ResolvedReference(f"{name}.proto", name, 1, file) for name, file in files.items()]
    return PROTOBUF.parse(text, references)


def test_the_format_has_every_method_of_the_protocol() -> None:
    names = [name for name, member in vars(SchemaFormat).items() if callable(member) and not name.startswith("_")]
    assert "accept_rename" in names
    for name in names:
        parameters = [item for item in inspect.signature(getattr(SchemaFormat, name)).parameters if item != "self"]
        assert list(inspect.signature(getattr(PROTOBUF, name)).parameters)[: len(parameters)] == parameters, name
    assert PROTOBUF.name == "PROTOBUF"


def test_outline() -> None:
    rows = PROTOBUF.outline(schema(ORDER))
    assert [(row.path, row.type, row.depth) for row in rows] == [
        ("Order.id", "int64 = 1", 0),
        ("Order.items", "repeated shop.Order.Item = 2", 0),
        ("Order.items[].price", "optional double = 1", 1),
        ("Order.by_name", "map<string, shop.Order.Item> = 3", 0),
        ("Order.by_name{}.price", "optional double = 1", 1),
        ("Order.card", "string = 4, in oneof payment", 0),
        ("Order.voucher", "shop.Order.Item = 5, in oneof payment", 0),
        ("Order.voucher.price", "optional double = 1", 1),
        ("Order.color", "shop.Color = 6 (RED, BLUE)", 0),
        ("Order.before", "shop.Order = 7", 0),
    ]
    assert rows[0].doc == "the key"


def test_example_is_a_datum_of_the_schema() -> None:
    parsed = schema(ORDER)
    example = PROTOBUF.example(parsed)
    assert example["items"] == [{"price": 1.5}]
    assert example["card"] == "card"
    assert PROTOBUF.resolve(parsed, parsed, example).value == example


def test_a_schema_without_data_has_no_example() -> None:
    with pytest.raises(InvalidDatum, match="no message"):
        PROTOBUF.example(schema(P3 + "enum E { A = 0; }"))
    with pytest.raises(InvalidDatum, match="requires itself"):
        PROTOBUF.example(schema('syntax = "proto2"; message A { required A a = 1; }'))


def test_resolution_says_what_became_of_each_field() -> None:
    new = ORDER.replace("int64 id = 1; // the key", "int32 id = 1;").replace("double price", "float price")
    new = new.replace("  Color color = 6;\n", "").replace("string card = 4;", "bytes card = 4;\n    int32 points = 9;")
    new = new.replace("Order before = 7;", "Order before = 7;\n  string note = 8;")
    datum = {"id": "5", "items": [{"price": 1.5}], "by_name": {"x": {"price": 2}}, "card": "x", "color": "BLUE"}
    resolution = PROTOBUF.resolve(schema(new), schema(ORDER), datum)
    assert resolution.error == ""
    assert {item.path: (item.outcome, item.written, item.read) for item in resolution.fields} == {
        "Order.id": ("converted", 5, 5),
        "Order.items": ("converted", [{"price": 1.5}], [{}]),
        "Order.items[0].price": ("converted", 1.5, 0.0),
        "Order.by_name": ("converted", {"x": {"price": 2.0}}, {"x": {}}),
        "Order.by_name{x}.price": ("converted", 2.0, 0.0),
        "Order.card": ("converted", "x", "eA=="),
        "Order.color": ("dropped", "BLUE", None),
        "Order.note": ("filled", None, ""),
    }


def test_resolution_ends_with_the_readers_own_error() -> None:
    writer = schema(P3 + "message A { bytes a = 1; }")
    resolution = PROTOBUF.resolve(schema(P3 + "message A { string a = 1; }"), writer, {"a": "/w=="})
    assert "UTF-8" in resolution.error
    assert resolution.value is None
    required = schema('syntax = "proto2"; message A { required int32 b = 2; }')
    assert PROTOBUF.resolve(required, writer, {}).error == "missing required fields: b"
    assert "no message" in PROTOBUF.resolve(schema(P3 + "message B {}"), writer, {}).error


@pytest.mark.parametrize("datum", [{"nope": 1}, {"id": "x"}, {"id": 2**70}, [], "x", None, {"items": 3}])
def test_what_is_no_datum_is_refused(datum: object) -> None:
    parsed = schema(ORDER)
    with pytest.raises(InvalidDatum):
        PROTOBUF.resolve(parsed, parsed, datum)


def suspected(old: ParsedSchema, new: ParsedSchema) -> Difference:
    return next(item for item in PROTOBUF.diff(old, new) if item.rule == "FIELD_RENAME_SUSPECTED")


def test_a_suspected_rename_gets_its_number_back() -> None:
    old = schema(P3 + "message A {\n  int64 unit_price = 3;\n}\n")
    new = schema(P3 + "message A {\n  // in cents\n  int64 price = 4;\n}\n")
    rename = suspected(old, new)
    assert (rename.before, rename.after) == ("unit_price", "price")
    assert rename.score is not None
    assert rename.score >= 0.6
    assert rename.reasons
    edit = PROTOBUF.accept_rename(old, new, rename)
    assert edit is not None
    assert edit.title == 'give "price" the number 3, which "unit_price" had, and keep its JSON name "unitPrice"'
    assert edit.text == P3 + 'message A {\n  // in cents\n  int64 price = 3 [json_name = "unitPrice"];\n}\n'
    assert [item.rule for item in PROTOBUF.diff(old, PROTOBUF.parse(edit.text))] == ["FIELD_RENAMED", "DOC_ADDED"]


def test_a_field_with_options_keeps_them_beside_its_json_name() -> None:
    old = schema(P3 + "message A { int64 unit_price = 3; }")
    new = schema(P3 + "message A { int64 price = 4 [deprecated = true]; }")
    edit = PROTOBUF.accept_rename(old, new, suspected(old, new))
    assert edit is not None
    assert '= 3 [json_name = "unitPrice", deprecated = true];' in edit.text


def test_an_edit_of_a_rename_names_the_values_that_change_all_the_same() -> None:
    old = schema(P3 + "message A { int64 unit_price = 3; }")
    new = schema(P3 + 'message A { int32 price = 4 [json_name = "cost"]; }')
    edit = PROTOBUF.accept_rename(old, new, suspected(old, new))
    assert edit is not None
    assert edit.title == (
        'give "price" the number 3, which "unit_price" had: JSON readers still lose the values of "unitPrice"; '
        'values of int64 in "price" change when they are read as int32'
    )


def test_where_the_number_is_reserved_no_rename_is_offered() -> None:
    old = schema(P3 + "message A {\n  int64 unit_price = 3;\n}\n")
    new = schema(P3 + "message A {\n  reserved 3;\n  int64 price = 4;\n}\n")
    assert PROTOBUF.accept_rename(old, new, suspected(old, new)) is None


@pytest.mark.parametrize("is_reader", [True, False])
def test_another_field_under_a_number_gets_a_number_of_its_own(is_reader: bool) -> None:
    old, new = schema(P3 + "message A { string email = 1; }"), schema(P3 + "message A { int32 age = 1; }")
    reader, writer = (new, old) if is_reader else (old, new)
    [finding] = PROTOBUF.judge(reader, writer).breaks
    edit = PROTOBUF.repair(new, old, finding, is_reader=is_reader)
    assert edit is not None
    assert edit.title == 'give "age" the new number 2 and reserve 1: "age" then no longer holds what "email" held'
    assert PROTOBUF.resolve(PROTOBUF.parse(edit.text), old, {"email": "a@b"}).value != {"age": "a@b"}


def test_other_differences_are_no_rename() -> None:
    old, new = schema(P3 + "message A { int32 a = 1; }"), schema(P3 + "message A { int64 a = 1; }")
    assert PROTOBUF.accept_rename(old, new, PROTOBUF.diff(old, new)[0]) is None


def test_a_repair_keeps_comments_and_layout() -> None:
    old = schema(P3 + "message A {\n  int32 a = 1; // the first\n}\n")
    new = schema(P3 + "message A {\n\tstring  a = 1; // the first, é\n}\n")
    finding = PROTOBUF.incompatibilities(new, old)[0]
    edit = PROTOBUF.repair(new, old, finding, is_reader=True)
    assert edit is not None
    assert edit.title == 'give "a" the type int32'
    assert edit.text == P3 + "message A {\n\tint32 a = 1; // the first, é\n}\n"


def test_a_repair_brings_back_a_type_that_is_gone() -> None:
    old = schema(P3 + "package a;\nmessage A {\n  M m = 1;\n}\nmessage M {\n  int32 x = 1;\n}\n")
    new = schema(P3 + "package a;\nmessage A {\n  string m = 1;\n}\n")
    finding = next(item for item in PROTOBUF.incompatibilities(new, old) if item.rule == "FIELD_KIND_CHANGED")
    edit = PROTOBUF.repair(new, old, finding, is_reader=True)
    assert edit is not None
    assert PROTOBUF.judge(PROTOBUF.parse(edit.text), old).is_compatible


MONEY = 'syntax = "proto2"; package money; message Money { required int64 units = 1; repeated int32 parts = 2; optional Unit unit = 3 [default = UNKNOWN]; extensions 100 to 200; } enum Unit { UNKNOWN = 1; } extend Money { optional string ext = 100; }'
USES = P3 + 'package shop; import "money.proto"; message Order { money.Money price = 1; int32 n = 2; optional Mine m = 3; } message Money { string x = 1; } enum Mine { UNKNOWN = 0; }'  # fmt: skip


def test_a_self_contained_text_needs_no_reference_and_reads_the_same_data() -> None:
    parsed = schema(USES, money=MONEY)
    text = PROTOBUF.self_contained(parsed)
    alone = PROTOBUF.parse(text)
    assert list(alone.model.main.messages)[:2] == ["Order", "Money"]
    assert PROTOBUF.truth(alone, parsed).answer == "yes"
    # In the other direction only the inlined message is one that the schema itself doesn't have as a root.
    assert {item.rule for item in PROTOBUF.truth(parsed, alone).findings} == {"MESSAGE_REMOVED"}
    datum = {"price": {"units": "5", "parts": [1, 2], "[money.ext]": "x"}, "n": 3, "m": "UNKNOWN"}
    there = PROTOBUF.resolve(alone, parsed, datum)
    assert there.error == ""
    assert all(item.outcome == "kept" for item in there.fields if item.written is not None)


def test_what_is_too_deep_to_try_is_unknown() -> None:
    text = P3 + "".join(f"message M{n} {{ M{n + 1} m = 1; }} " for n in range(120)) + "message M120 { int32 x = 1; }"
    parsed, changed = schema(text), schema(text + " ")
    # Each of the messages is also the root of records of its own, so that all are reached.
    assert PROTOBUF.truth(changed, parsed).answer in ("yes", "unknown")
    one = 'syntax = "proto3"; import "m.proto"; message Top { M0 m = 1; }'
    deep = schema(one, m=text), schema(one, m=text.replace("int32 x", "string x"))
    truth = PROTOBUF.truth(*deep)
    assert truth.answer == "unknown"
    assert "levels down" in truth.how


def test_a_text_without_references_is_its_own() -> None:
    parsed = schema(P3 + 'import "google/protobuf/any.proto"; message A { google.protobuf.Any a = 1; }')
    assert PROTOBUF.self_contained(parsed) == parsed.text


def test_a_finding_in_an_imported_file_names_the_file() -> None:
    old = schema(USES, money=MONEY)
    new = schema(USES, money=MONEY.replace("int64 units", "string units"))
    findings = [item for item in PROTOBUF.incompatibilities(new, old) if item.rule == "FIELD_SCALAR_KIND_CHANGED"]
    assert [(item.path, item.reader_source, item.writer_source) for item in findings] == [
        ("Money.units", "money.proto", "money.proto")
    ]
    assert PROTOBUF.repair(new, old, findings[0], is_reader=True) is None


def edits_of(new: str, old: str, rule: str, *, is_reader: bool = True) -> list[str]:
    reader, writer = PROTOBUF.parse(new), PROTOBUF.parse(old)
    judged = PROTOBUF.judge(reader, writer)
    findings = [item for item in (*judged.breaks, *judged.hazards) if item.rule == rule]
    sides = (reader, writer) if is_reader else (writer, reader)
    edits = [PROTOBUF.repair(*sides, item, is_reader=is_reader) for item in findings]
    return [edit.text for edit in edits if edit is not None]


CONTACT = (
    P3
    + """\
message Customer {
  // Where they live.
  string city = 1;
  // Called in the morning.
  optional string phone = 2 [json_name = "tel"]; // E.164
  string mail = 3;
}
"""
)


def test_a_field_leaves_a_oneof_as_it_is_on_the_other_side() -> None:
    inside = CONTACT.replace("  // Called", "  oneof contact {\n    // Called").replace("  optional", "    ")
    inside = inside.replace("      string phone", "    string phone").replace(
        "  string mail = 3;", "    string mail = 3;\n  }"
    )
    (text,) = edits_of(inside, CONTACT, "MULTIPLE_FIELDS_MOVED_TO_ONEOF")
    assert '  // Called in the morning.\n  optional string phone = 2 [json_name = "tel"]; // E.164\n' in text
    assert "oneof" not in text
    edited = PROTOBUF.parse(text)
    assert PROTOBUF.diff(PROTOBUF.parse(CONTACT), edited) == ()


def test_what_proto2_required_is_required_again() -> None:
    old = "message A { required int32 a = 1; optional bytes b = 2 [default = 'x']; }"
    new = "message A { oneof o { int32 a = 1; bytes b = 2 [default = 'x']; } }"
    (text,) = edits_of(new, old, "MULTIPLE_FIELDS_MOVED_TO_ONEOF")
    assert PROTOBUF.parse(text).fingerprint == PROTOBUF.parse(old).fingerprint


def test_a_repaired_type_keeps_the_label() -> None:
    new, old = P3 + "message A { optional int32 a = 1; }", P3 + "message A { int64 a = 1; }"
    (text,) = edits_of(new, old, "VALUE_NARROWED")
    assert "optional int64 a = 1;" in text


def test_a_removed_field_takes_its_comments_along() -> None:
    new = P3 + "message A {\n  oneof o {\n    // of a\n    int32 a = 1;\n    // of b\n    int32 b = 2;\n  }\n}\n"
    old = P3 + "message A { oneof o { int32 b = 2; } }"
    (text,) = edits_of(old, new, "ONEOF_FIELD_REMOVED", is_reader=False)
    assert "// of b\n    int32 b = 2;" in text
    assert "// of a" not in text


@pytest.mark.slow
def test_positions_of_one_long_line_cost_little() -> None:
    schema = PROTOBUF.parse(
        P3 + "message A { " + " ".join(f"int32 f{n} = {n};" for n in range(1, 4_001)) + " /* é */ }"
    )
    with costs_little(5.0, what="4,000 positions"):
        positions = [PROTOBUF.position(schema, f"/messages/A/fields/{n}") for n in range(1, 4_001)]
    assert positions[0] == (2, 13)
    assert len(set(positions)) == 4_000
    other = PROTOBUF.parse(schema.text.replace("int32", "int64"))
    with costs_little(10.0, what="the truth of 4,000 fields"):
        assert PROTOBUF.truth(schema, other).findings


def titles_of(new: str, old: str, rule: str, *, is_reader: bool) -> list[str]:
    reader, writer = (PROTOBUF.parse(text) for text in ((new, old) if is_reader else (old, new)))
    judged = PROTOBUF.judge(reader, writer)
    mine, other = (reader, writer) if is_reader else (writer, reader)
    edits = [
        PROTOBUF.repair(mine, other, item, is_reader=is_reader)
        for item in (*judged.breaks, *judged.hazards)
        if item.rule == rule
    ]
    return [edit.title for edit in edits if edit is not None]


def test_a_new_number_says_what_the_field_no_longer_holds() -> None:
    old, new = (P3 + f"message A {{ {field} = 1; }}" for field in ("int32 count", "int64 counted"))
    assert titles_of(new, old, "NUMBER_REUSED", is_reader=True) == [
        'give "counted" the new number 2 and reserve 1: "counted" then no longer holds what "count" held'
    ]


def test_a_member_that_got_another_number_gets_it_back_instead_of_going() -> None:
    old = P3 + "message A { int32 id = 1; oneof o { int64 price = 2; string note = 3; } }"
    new = P3 + "message A { int32 id = 1; oneof o { int64 price = 4; string note = 3; } }"
    assert titles_of(new, old, "ONEOF_FIELD_REMOVED", is_reader=False) == ['give "price" the number 2 again']


def test_where_a_oneof_was_submitted_is_no_change() -> None:
    text = 'syntax = "proto3"; message A { int64 a = 1; oneof o { string b = 2; int32 c = 3; } string d = 4; MORE }'
    stored = PROTOBUF.parse(PROTOBUF.parse(text.replace("MORE", "")).canonical)
    changes = PROTOBUF.diff(stored, PROTOBUF.parse(text.replace("MORE", "int32 e = 5;")))
    assert [change.rule for change in changes] == ["FIELD_ADDED"]
    moved = PROTOBUF.parse(text.replace("int64 a = 1;", "").replace("MORE", "int64 a = 1;"))
    assert [change.rule for change in PROTOBUF.diff(stored, moved)] == ["FIELDS_REORDERED"]
