"""Reading of schemas, errors with their places, and the texts that are stored and answered."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from registry.errors import InvalidSchema
from registry.formats.base import ParsedSchema, ResolvedReference
from registry.formats.protobuf import PROTOBUF
from registry.formats.protobuf.decoding import message_at

P3 = 'syntax = "proto3";\n'

EVERYTHING = """\
// What a shop sells.
syntax = "proto2";
package shop.v1;
import public "google/protobuf/timestamp.proto";
import "google/protobuf/descriptor.proto";
option java_package = "a.b\\"c";
option (note) = { x: 1 inside { y: "é\\n" } };
message Note {
  optional int32 x = 1;
  optional Inside inside = 2;
  message Inside { optional string y = 1; }
}
extend google.protobuf.FileOptions { optional Note note = 50001; }
extend google.protobuf.FieldOptions {
  repeated string tags = 50002;
  optional float weight = 50003;
  optional bytes raw = 50004;
  optional Color color = 50005;
}
extend google.protobuf.OneofOptions { optional bool checked = 50001; }
enum Color {
  option allow_alias = true;
  RED = 0;
  ROUGE = 0;
  BLUE = -5 [deprecated = true];
  reserved 10 to max;
  reserved "GREEN";
}
message Order {
  message Before { optional int32 a = 1; }
  required int64 id = 1 [deprecated = true, (tags) = "a", (tags) = "b", (weight) = 1.5, (raw) = "\\xff\\0", (color) = BLUE];
  map<string, Before> items = 2;
  message Between { enum In { A = 1; } }
  optional group Part = 3 { optional int32 g = 1; message InPart {} }
  oneof choice {
    option (checked) = true;
    string a = 4;
    group Other = 5 { optional string x = 1; }
  }
  optional string s = 6 [default = "x\\"y\\n", json_name = "SS"];
  optional bytes b = 7 [default = "\\xff'\\""];
  optional double d = 8 [default = -inf];
  optional Color c = 9 [default = BLUE];
  optional float f = 10 [default = 1.25];
  repeated int32 p = 11 [packed = true];
  optional google.protobuf.Timestamp at = 12;
  extensions 100 to 199, 300;
  extensions 500 to max [verification = UNVERIFIED];
  reserved 20, 30 to 40;
  reserved "foo", "bar";
  extend Order { optional int32 inner = 150; }
}
extend Order { optional string note_text = 100; optional group Extra = 101 { optional int32 q = 1; } }
message After {}
service Shop {
  option deprecated = true;
  rpc Get (Order) returns (stream After) { option deprecated = true; }
  rpc Put (stream After) returns (After);
}
"""
EDITION = """\
edition = "2023";
package x;
option features.field_presence = IMPLICIT;
message A {
  int32 a = 1 [features.field_presence = LEGACY_REQUIRED];
  B b = 2 [features.message_encoding = DELIMITED];
  message B {}
  repeated int32 c = 3;
  map<int32, string> m = 4 [features.utf8_validation = NONE];
  reserved foo, bar;
}
enum E { option features.enum_type = CLOSED; Q = 1; }
"""
TEXTS = {
    "proto2 with everything": EVERYTHING,
    "an edition": EDITION,
    "edition 2024": 'edition = "2024"; export message A { int32 a = 1; } local enum E { E_Q = 0; }',
    "proto3": P3 + "message A { optional int32 a = 1; repeated B b = 2; oneof x { string y = 3; } enum B { Z = 0; } }",
    "no syntax": "message A { optional int32 a = 1; }",
    "weak and public imports": P3 + 'import public "google/protobuf/any.proto"; import weak "google/type/date.proto"; message A {}',
    "a byte order mark": "\ufeff" + P3 + "message A {}",
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_the_canonical_text_is_the_same_schema(name: str) -> None:
    schema = PROTOBUF.parse(TEXTS[name])
    again = PROTOBUF.parse(schema.canonical)
    assert again.canonical == schema.canonical
    assert again.fingerprint == schema.fingerprint
    orders = [
        [part.name for part in parsed.model.statements.types if part.name in parsed.model.main.messages]
        for parsed in (schema, again)
    ]
    assert orders[0] == orders[1]


@pytest.mark.parametrize("name", TEXTS)
def test_the_normal_text_is_the_same_schema(name: str) -> None:
    schema = PROTOBUF.parse(TEXTS[name])
    normal = PROTOBUF.normalize(schema)
    again = PROTOBUF.parse(normal)
    assert PROTOBUF.normalize(again) == normal
    assert again.fingerprint == schema.fingerprint


@pytest.mark.parametrize("name", TEXTS)
def test_the_base64_of_the_descriptor_is_the_same_schema(name: str) -> None:
    schema = PROTOBUF.parse(TEXTS[name])
    proto = FileDescriptorProto()
    proto.CopyFrom(schema.model.proto)
    proto.name = "orders.proto"
    proto.ClearField("source_code_info")
    encoded = PROTOBUF.parse(base64.b64encode(proto.SerializeToString()).decode())
    again = PROTOBUF.parse(encoded.canonical)
    assert (again.canonical, again.fingerprint) == (encoded.canonical, encoded.fingerprint)
    has_custom_options = name == "proto2 with everything"  # which the established server leaves out of a descriptor
    assert (encoded.fingerprint == schema.fingerprint) != has_custom_options
    assert PROTOBUF.judge(encoded, schema).breaks == PROTOBUF.judge(schema, encoded).breaks == ()
    assert PROTOBUF.position(encoded, "/messages/A") is None


def test_the_normal_layout() -> None:
    text = """\
syntax = "proto3"; package shop; import "google/protobuf/timestamp.proto"; import "google/protobuf/any.proto";
option java_package = "x"; message B {} message A { int32 z = 3; oneof o { B y = 2; } reserved 9, 5 to 6;
map<string, B> m = 1 [deprecated = true, json_name = "em"]; message Inner {} }
enum E { X = 0; Z = 2; Y = 1; } service S { rpc Get (A) returns (stream B); }"""
    assert (
        PROTOBUF.normalize(PROTOBUF.parse(text))
        == """\
syntax = "proto3";
package shop;

import "google/protobuf/any.proto";
import "google/protobuf/timestamp.proto";

option java_package = "x";

message B {}
message A {
  reserved 5 to 6;
  reserved 9;

  map<string, .shop.B> m = 1 [
    deprecated = true,
    json_name = "em"
  ];
  int32 z = 3;

  oneof o {
    .shop.B y = 2;
  }

  message Inner {}
}
enum E {
  X = 0;
  Y = 1;
  Z = 2;
}

service S {
  rpc Get (.shop.A) returns (stream .shop.B);
}
"""
    )


@pytest.mark.parametrize(
    ("text", "line", "column", "says"),
    [
        (P3 + "message A {\n  int32 a = 1;\n  B b = 2;\n}", 4, 3, '"B" is not defined'),
        (P3 + "message A { int32 a = 1; int32 b = 1; }", 2, 36, "already been used"),
        (P3 + "message A {", 2, 12, "Reached end of input"),
        ("message A { int32 a = 1; }", 1, 13, 'Expected "required", "optional", or "repeated"'),
        (P3 + 'import "missing.proto";\nmessage A { missing.B b = 1; }', 2, 1, "File not found"),
        (P3 + "message A { int32 a\t= 0; }", 2, None, "positive"),
        (P3 + "message A { int32 a = 1 [default = 3]; }", 2, None, "default"),
    ],
)
def test_an_error_has_its_place(text: str, line: int, column: int | None, says: str) -> None:
    with pytest.raises(InvalidSchema) as caught:
        PROTOBUF.parse(text)
    assert says.lower() in caught.value.message.lower()
    assert caught.value.line == line
    assert column is None or caught.value.column == column


def test_all_errors_are_reported_and_no_more_than_twenty() -> None:
    with pytest.raises(InvalidSchema) as caught:
        PROTOBUF.parse(P3 + "message A {\n  X a = 1;\n  Y b = 2;\n}")
    assert '"X" is not defined' in caught.value.message
    assert 'line 4, column 3: "Y" is not defined' in caught.value.message
    with pytest.raises(InvalidSchema) as caught:
        PROTOBUF.parse(P3 + "message A {" + "".join(f"X{n} a{n} = {n};" for n in range(1, 101)) + "}")
    assert "and 80 more errors" in caught.value.message


def test_an_error_in_a_reference_names_it() -> None:
    reference = ResolvedReference("item.proto", "item", 1, P3 + "message Item { Missing m = 1; }")
    with pytest.raises(InvalidSchema) as caught:
        PROTOBUF.parse(P3 + 'import "item.proto"; message A { Item i = 1; }', [reference])
    assert 'in "item.proto", line 2: "Missing" is not defined' in caught.value.message


@pytest.mark.parametrize(
    ("pointer", "begins"),
    [
        ("/package", "package shop"),
        ("/imports/google~1protobuf~1timestamp.proto", "import public"),
        ("/messages/Order", "message Order"),
        ("/messages/Order/fields/1", "required int64"),
        ("/messages/Order/fields/6/default", '"x'),
        ("/messages/Order/fields/5", "group Other"),
        ("/messages/Order/oneofs/choice", "oneof choice"),
        ("/messages/Order/messages/Between/enums/In/values/1", "A = 1"),
        ("/enums/Color/values/-5", "BLUE = -5"),
        ("/services/Shop/methods/Put", "rpc Put"),
        ("/extensions/note_text", "optional string note_text"),
    ],
)
def test_positions(pointer: str, begins: str) -> None:
    line, column = PROTOBUF.position(PROTOBUF.parse(EVERYTHING), pointer) or (0, 0)
    assert EVERYTHING.splitlines()[line - 1][column - 1 :].startswith(begins)


def test_columns_count_characters() -> None:
    text = P3 + "message A {\n\tstring é = 1;\n}".replace("é", "e") + " /* é€😀 */ message B {}"
    assert PROTOBUF.position(PROTOBUF.parse(text), "/messages/A/fields/1") == (3, 2)
    assert PROTOBUF.position(PROTOBUF.parse(text), "/messages/B") == (4, 13)
    with pytest.raises(InvalidSchema) as caught:
        PROTOBUF.parse(P3 + "/* é */\tmessage A { X x = 1; }")
    assert caught.value.column == 21
    assert PROTOBUF.position(PROTOBUF.parse("message A { optional int32 a = 1; }"), "/messages/A/fields/1") == (1, 13)


def test_what_is_not_there_has_no_position() -> None:
    schema = PROTOBUF.parse(EVERYTHING)
    assert PROTOBUF.position(schema, "/messages/Order/fields/77") is None
    assert PROTOBUF.position(schema, "/nowhere") is None
    assert PROTOBUF.position(schema, "") == (1, 1)


@pytest.mark.parametrize(
    ("path", "type_"),
    [
        ("google/protobuf/timestamp.proto", "google.protobuf.Timestamp"),
        ("google/type/money.proto", "google.type.Money"),
        ("google/type/datetime.proto", "google.type.DateTime"),
        ("confluent/type/decimal.proto", "confluent.type.Decimal"),
        ("confluent/meta.proto", "confluent.Meta"),
    ],
)
def test_known_types_need_no_reference(path: str, type_: str) -> None:
    schema = PROTOBUF.parse(f'{P3}import "{path}"; message A {{ {type_} a = 1; }}')
    assert PROTOBUF.truth(schema, schema).answer == "yes"
    assert PROTOBUF.example(schema) is not None


def test_confluent_meta_is_an_option() -> None:
    text = P3 + 'import "confluent/meta.proto"; message A { int32 a = 1 [(confluent.field_meta).doc = "x"]; }'
    assert PROTOBUF.parse(text).model.main.messages["A"].fields[0].options == {
        "(.confluent.field_meta)": '{ doc: "x" }'
    }


def test_a_reference_to_a_known_type_changes_nothing() -> None:
    text = P3 + 'import "google/protobuf/timestamp.proto"; message A { google.protobuf.Timestamp t = 1; }'
    reference = ResolvedReference("google/protobuf/timestamp.proto", "ts", 1, P3 + "message Hostile {}")
    assert PROTOBUF.parse(text, [reference]).fingerprint == PROTOBUF.parse(text).fingerprint


ITEM = P3 + "package shop; message Item { int32 n = 1; }"
ORDER = P3 + 'import "shop/item.proto"; message Order { shop.Item item = 1; }'


def test_the_fingerprint_is_that_of_the_content() -> None:
    one = PROTOBUF.parse(ORDER, [ResolvedReference("shop/item.proto", "item", 1, ITEM)])
    elsewhere = PROTOBUF.parse(ORDER, [ResolvedReference("shop/item.proto", "other", 7, ITEM + "\n// x")])
    changed = PROTOBUF.parse(ORDER, [ResolvedReference("shop/item.proto", "item", 1, ITEM.replace("int32", "int64"))])
    assert one.fingerprint == elsewhere.fingerprint
    assert one.fingerprint != changed.fingerprint
    assert one.identity != elsewhere.identity


def test_an_encoded_schema_with_an_encoded_reference() -> None:
    option = P3 + (
        'package q; import "google/protobuf/descriptor.proto"; message B { int32 a = 1; } '
        "extend google.protobuf.FieldOptions { B hint = 50000; }"
    )
    text = P3 + 'import "a/b.proto"; message A { q.B b = 1; }'
    plain = PROTOBUF.parse(text, [ResolvedReference("a/b.proto", "b", 1, option)])
    protos = []
    for proto in plain.model.protos[-2:]:
        copy = FileDescriptorProto()
        copy.CopyFrom(proto)
        copy.ClearField("source_code_info")
        protos.append(base64.b64encode(copy.SerializeToString()).decode())
    encoded = PROTOBUF.parse(protos[1], [ResolvedReference("a/b.proto", "b", 1, protos[0])])
    assert encoded.fingerprint == plain.fingerprint
    assert '  .q.B b = 1 [json_name = "b"];' in encoded.canonical


def test_order_of_messages_and_defaults_count_order_of_fields_does_not() -> None:
    one = PROTOBUF.parse(P3 + "message A { int32 a = 1; int32 b = 2; } message B {}")
    assert one.fingerprint == PROTOBUF.parse(P3 + "message A { int32 b = 2; int32 a = 1; } message B {}").fingerprint
    assert one.fingerprint != PROTOBUF.parse(P3 + "message B {} message A { int32 a = 1; int32 b = 2; }").fingerprint
    two = [
        PROTOBUF.parse(f"enum E {{ {first} {second} }}")
        for first, second in (("A = 1;", "B = 0;"), ("B = 0;", "A = 1;"))
    ]
    assert two[0].fingerprint != two[1].fingerprint


CASES: Final[list[dict[str, Any]]] = yaml.safe_load(
    (Path(__file__).parent / "stored_texts.yaml").read_text(encoding="utf-8")
)
#: what isn't written as there, and why
APART: Final = {
    "a value of a map that nothing declares": "it doesn't look for values of maps outside of mode IMPORT",
}
PROTO3: Final = 'syntax = "proto3";\n'


def parsed(case: dict[str, Any], text: str | None = None, *, is_new: bool = True) -> ParsedSchema:
    references = [ResolvedReference(name, name, 1, body) for name, body in case.get("references", {}).items()]
    return PROTOBUF.parse(case["schema"] if text is None else text, references, is_new=is_new)


def named(case: dict[str, Any]) -> str:
    return str(case["name"])


@pytest.mark.parametrize("case", CASES, ids=named)
def test_the_stored_text_is_that_of_the_established_server(case: dict[str, Any]) -> None:
    schema = parsed(case, is_new=False)
    assert schema.canonical == case["stored"]
    assert PROTOBUF.without_extensions(schema) == case["bare"]


@pytest.mark.parametrize("case", [case for case in CASES if "normal" in case], ids=named)
def test_the_normal_text_is_that_of_the_established_server(case: dict[str, Any]) -> None:
    assert PROTOBUF.normalize(parsed(case, is_new=case["name"] not in APART)) == case["normal"]


@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_stored_text_is_read_as_what_was_sent_and_stays_as_it_is(case: dict[str, Any]) -> None:
    schema = parsed(case, is_new=False)
    again = parsed(case, case["stored"], is_new=False)
    assert again.canonical == case["stored"]
    assert again.fingerprint == schema.fingerprint


def test_the_text_that_earlier_releases_stored_is_known() -> None:
    text = PROTO3 + "package a;\nmessage M {\n  M m = 1;\n\n  oneof o { int32 n = 3; }\n  string s = 2; // x\n}\n"
    earlier = (
        PROTO3 + "package a;\nmessage M {\n  .a.M m = 1;\n  oneof o {\n    int32 n = 3;\n  }\n  string s = 2;\n}\n"
    )
    schema = PROTOBUF.parse(text)
    assert schema.earlier_canonical == earlier
    assert schema.is_stored_as(earlier)
    assert not schema.is_stored_as(text)
    assert PROTOBUF.parse(earlier).fingerprint == schema.fingerprint
    assert PROTOBUF.parse(PROTO3 + 'import "x.proto";\nmessage M {}').earlier_canonical is None


@pytest.mark.parametrize("case", [case for case in CASES if "refused" in case or case["name"] in APART], ids=named)
def test_a_type_that_nothing_declares_is_refused_where_it_is_new(case: dict[str, Any]) -> None:
    with pytest.raises(InvalidSchema, match="is not defined"):
        parsed(case)


def test_what_is_imported_without_its_types_is_not_said_to_be_safe() -> None:
    old = PROTOBUF.parse(PROTO3 + 'import "x.proto"; message A { x.Y y = 1; }', is_new=False)
    new = PROTOBUF.parse(PROTO3 + 'import "x.proto"; message A { x.Y y = 1; int32 n = 2; }', is_new=False)
    assert old.missing_types == ("x.Y",)
    truth = PROTOBUF.truth(new, old)
    assert truth.answer == "unknown"
    assert "nothing declares x.Y" in truth.how
    hazards = PROTOBUF.judge(new, old).hazards
    assert [item.rule for item in hazards] == ["TYPE_NOT_CHECKED"]
    assert 'nothing declares "x.Y"' in hazards[0].message


@pytest.mark.parametrize(
    "path",
    ["validate/validate.proto", "buf/validate/validate.proto", "google/api/annotations.proto", "gogoproto/gogo.proto"],
)
def test_an_import_that_only_defines_options_may_be_missing(path: str) -> None:
    plain = PROTOBUF.parse(PROTO3 + "message A { string s = 1; }")
    text = (
        PROTO3
        + f'import "{path}";\nmessage A {{\n  string s = 1 [(a.b).c = 3, (d) = {{ e: "f" }}, deprecated = true];\n}}\n'
    )
    schema = PROTOBUF.parse(text)
    assert schema.model.main.imports == {path: ""}
    assert PROTOBUF.truth(schema, plain).answer == PROTOBUF.truth(plain, schema).answer == "yes"
    assert {item.rule for item in PROTOBUF.diff(plain, schema)} == {"IMPORT_ADDED", "OPTION_ADDED", "DEPRECATED"}
    assert PROTOBUF.position(schema, "/messages/A/fields/1") == (4, 3)


def test_options_that_nothing_declares_count_in_the_content() -> None:
    texts = [PROTO3 + f"message A {{ string s = 1{option}; }}" for option in ("", " [(a).b = 1]", " [(a).b = 2]")]
    assert len({PROTOBUF.parse(text).fingerprint for text in texts}) == 3
    changed = PROTOBUF.diff(*(PROTOBUF.parse(text) for text in texts[1:]))
    assert [(item.rule, item.before, item.after) for item in changed] == [("OPTION_CHANGED", "1", "2")]


def test_a_descriptor_has_its_messages_where_the_text_has_them() -> None:
    text = PROTO3 + "message A { message N {} map<string, N> m = 1; message O {} }"
    sent = FileDescriptorProto()
    sent.CopyFrom(PROTOBUF.parse(text).model.proto)
    sent.ClearField("source_code_info")
    encoded = PROTOBUF.parse(base64.b64encode(sent.SerializeToString()).decode())
    for schema, names in ((encoded, ["N", "MEntry", "O"]), (PROTOBUF.parse(text), ["N", "O", "MEntry"])):
        proto = FileDescriptorProto.FromString(base64.b64decode(PROTOBUF.serialized(PROTOBUF.parse(schema.canonical))))
        assert [message.name for message in proto.message_type[0].nested_type] == names
        for index, name in enumerate(names):
            if name != "MEntry":
                assert message_at(schema.model, (0, index)).name == name


def test_a_reference_may_use_what_nothing_declares() -> None:
    reference = ResolvedReference(
        "b.proto", "b", 1, PROTO3 + 'import "v.proto"; package b; message B { string s = 1 [(v.rules).x = 1]; }'
    )
    schema = PROTOBUF.parse(PROTO3 + 'import "b.proto"; message A { b.B b = 1; }', [reference])
    assert "b.B" in schema.model.messages


@pytest.mark.parametrize(
    "text",
    [
        'syntax = "proto2";\nmessage M { optional bytes y = 1 [default = "a b"]; }\n',
        'syntax = "proto2";\nmessage M { optional bytes y = 1 [default = "\\377\\000"]; }\n',
        'syntax = "proto2";\nmessage M { optional string y = 1 [default = "\\303\\251\\001"]; }\n',
        PROTO3 + 'import weak "google/protobuf/any.proto";\nmessage M {}\n',
        PROTO3 + "enum E { A = 0; B = -1; }\n",
    ],
)
def test_what_the_established_server_would_lose_stays(text: str) -> None:
    schema = PROTOBUF.parse(text)
    for written in (schema.canonical, PROTOBUF.normalize(schema)):
        assert PROTOBUF.parse(written).fingerprint == schema.fingerprint
