"""The texts that are stored and answered, byte for byte those of the established server, and what it takes."""

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

CASES: Final[list[dict[str, Any]]] = yaml.safe_load(
    (Path(__file__).parent / "stored_texts.yaml").read_text(encoding="utf-8")
)
#: what isn't written as there, and why
APART: Final = {
    "a value of a map that nothing declares": "it doesn't look for values of maps outside of mode IMPORT",
}
P3: Final = 'syntax = "proto3";\n'


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
    text = P3 + "package a;\nmessage M {\n  M m = 1;\n\n  oneof o { int32 n = 3; }\n  string s = 2; // x\n}\n"
    earlier = P3 + "package a;\nmessage M {\n  .a.M m = 1;\n  oneof o {\n    int32 n = 3;\n  }\n  string s = 2;\n}\n"
    schema = PROTOBUF.parse(text)
    assert schema.earlier_canonical == earlier
    assert schema.is_stored_as(earlier)
    assert not schema.is_stored_as(text)
    assert PROTOBUF.parse(earlier).fingerprint == schema.fingerprint
    assert PROTOBUF.parse(P3 + 'import "x.proto";\nmessage M {}').earlier_canonical is None


@pytest.mark.parametrize("case", [case for case in CASES if "refused" in case or case["name"] in APART], ids=named)
def test_a_type_that_nothing_declares_is_refused_where_it_is_new(case: dict[str, Any]) -> None:
    with pytest.raises(InvalidSchema, match="is not defined"):
        parsed(case)


def test_what_is_imported_without_its_types_is_not_said_to_be_safe() -> None:
    old = PROTOBUF.parse(P3 + 'import "x.proto"; message A { x.Y y = 1; }', is_new=False)
    new = PROTOBUF.parse(P3 + 'import "x.proto"; message A { x.Y y = 1; int32 n = 2; }', is_new=False)
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
    plain = PROTOBUF.parse(P3 + "message A { string s = 1; }")
    text = (
        P3
        + f'import "{path}";\nmessage A {{\n  string s = 1 [(a.b).c = 3, (d) = {{ e: "f" }}, deprecated = true];\n}}\n'
    )
    schema = PROTOBUF.parse(text)
    assert schema.model.main.imports == {path: ""}
    assert PROTOBUF.truth(schema, plain).answer == PROTOBUF.truth(plain, schema).answer == "yes"
    assert {item.rule for item in PROTOBUF.diff(plain, schema)} == {"IMPORT_ADDED", "OPTION_ADDED", "DEPRECATED"}
    assert PROTOBUF.position(schema, "/messages/A/fields/1") == (4, 3)


def test_options_that_nothing_declares_count_in_the_content() -> None:
    texts = [P3 + f"message A {{ string s = 1{option}; }}" for option in ("", " [(a).b = 1]", " [(a).b = 2]")]
    assert len({PROTOBUF.parse(text).fingerprint for text in texts}) == 3
    changed = PROTOBUF.diff(*(PROTOBUF.parse(text) for text in texts[1:]))
    assert [(item.rule, item.before, item.after) for item in changed] == [("OPTION_CHANGED", "1", "2")]


def test_a_descriptor_has_its_messages_where_the_text_has_them() -> None:
    text = P3 + "message A { message N {} map<string, N> m = 1; message O {} }"
    sent = FileDescriptorProto()
    sent.CopyFrom(PROTOBUF.parse(text).model.proto)
    sent.ClearField("source_code_info")
    encoded = PROTOBUF.parse(base64.b64encode(sent.SerializeToString()).decode())
    for schema, names in ((encoded, ["N", "MEntry", "O"]), (PROTOBUF.parse(text), ["N", "O", "MEntry"])):
        found = FileDescriptorProto.FromString(base64.b64decode(PROTOBUF.serialized(PROTOBUF.parse(schema.canonical))))
        assert [message.name for message in found.message_type[0].nested_type] == names
        for place, name in enumerate(names):
            if name != "MEntry":
                assert message_at(schema.model, (0, place)).name == name


def test_a_reference_may_use_what_nothing_declares() -> None:
    reference = ResolvedReference(
        "b.proto", "b", 1, P3 + 'import "v.proto"; package b; message B { string s = 1 [(v.rules).x = 1]; }'
    )
    schema = PROTOBUF.parse(P3 + 'import "b.proto"; message A { b.B b = 1; }', [reference])
    assert "b.B" in schema.model.messages


@pytest.mark.parametrize(
    "text",
    [
        'syntax = "proto2";\nmessage M { optional bytes y = 1 [default = "a b"]; }\n',
        'syntax = "proto2";\nmessage M { optional bytes y = 1 [default = "\\377\\000"]; }\n',
        'syntax = "proto2";\nmessage M { optional string y = 1 [default = "\\303\\251\\001"]; }\n',
        P3 + 'import weak "google/protobuf/any.proto";\nmessage M {}\n',
        P3 + "enum E { A = 0; B = -1; }\n",
    ],
)
def test_what_the_established_server_would_lose_stays(text: str) -> None:
    schema = PROTOBUF.parse(text)
    for written in (schema.canonical, PROTOBUF.normalize(schema)):
        assert PROTOBUF.parse(written).fingerprint == schema.fingerprint
