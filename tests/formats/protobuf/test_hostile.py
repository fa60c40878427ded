"""Schemas and names made to hurt: each goes through the whole engine, or is refused, in a second or two of the processor.

Without the bounds they take minutes.
"""

from __future__ import annotations

import base64
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from registry.errors import InvalidInput, InvalidReference, InvalidSchema, SchemaTooCostly
from registry.formats.base import ResolvedReference
from registry.formats.protobuf import PROTOBUF
from tests.waiting import costs_little

P3 = 'syntax = "proto3";'
SECRET = "root:x:0:0"


def many(count: int, part: Callable[[int], str], inside: str = "message A {{ {} }}") -> str:
    return P3 + inside.format("".join(part(number) for number in range(1, count + 1)))


def numbered(number: int) -> int:
    """A field number outside of the range that the language keeps for itself."""
    return number if number < 19_000 else number + 1_000


SHAPES: dict[str, Callable[[], str]] = {
    "9,900 fields": lambda: many(9_900, lambda n: f"int32 f{n} = {n};"),
    "9,900 strings in a oneof": lambda: many(9_900, lambda n: f"string f{n} = {n};", "message A {{ oneof o {{ {} }} }}"),
    "9,900 values of an enum": lambda: many(9_900, lambda n: f"V{n} = {n - 1};", "enum E {{ {} }} message A {{ E e = 1; }}"),
    "5,000 messages that hold the next": lambda: many(5_000, lambda n: f"message M{n} {{ M{n % 5_000 + 1} m = 1; int32 a = 2; }}", "{}"),
    "a binary tree of messages": lambda: many(40, lambda n: f"message M{n} {{ M{n + 1} a = 1; M{n + 1} b = 2; }}", "{} message M41 {{ int32 x = 1; }}"),
    "a message that holds itself": lambda: P3 + "message A { A a = 1; repeated A b = 2; map<string, A> c = 3; int32 d = 4; }",
    "messages required in a ring": lambda: 'syntax = "proto2"; message A { required B b = 1; } message B { required A a = 1; }',
    "groups in groups": lambda: 'syntax = "proto2"; message A {' + "".join(f"optional group G{n} = 1 {{" for n in range(25)) + "}" * 26,
    "9,000 duplicate fields": lambda: many(9_000, lambda n: "int32 a = 1;"),
    "10,000 unknown types": lambda: many(10_000, lambda n: f"X{n} f{n} = {n};"),
    "100,000 fields": lambda: many(100_000, lambda n: f"int32 f{n} = {numbered(n)};"),
    "60,000 messages": lambda: many(60_000, lambda n: f"message M{n} {{}}", "{}"),
    "150,000 reserved numbers": lambda: many(150_000, lambda n: f"{n},", "message A {{ reserved {} 200000; }}"),
    "8,000 reserved numbers": lambda: many(7_900, lambda n: f"{n},", "message A {{ reserved {} 200000; }}"),
    "10,000 comments": lambda: P3 + "/* x */ // y\n" * 10_000 + "message A { int32 a = 1; }",
    "nested 40 deep": lambda: P3 + "message A {" * 40 + "}" * 40,
    "nested 100,000 deep": lambda: P3 + "message A {" * 100_000,
    "an option nested 10,000 deep": lambda: P3 + "message A { int32 a = 1 [(x) = " + "{ m " * 10_000 + "}" * 10_000 + "]; }",
    "a name of 500,000 letters": lambda: P3 + f"message {'A' * 500_000} {{ int32 a = 1; }}",
    "a package of 100,000 parts": lambda: P3 + f"package {'.'.join('a' * 100_000)}; message A {{}}",
    "2 MB of blanks": lambda: P3 + " " * 2_000_000 + "message A {}",
    "900 imports": lambda: P3 + "".join(f'import "x{n}.proto";' for n in range(900)) + "message A {}",
    "a NUL": lambda: P3 + "message A { int32 a\0 = 1; }",
    "half of a surrogate pair": lambda: P3 + '// \ud800\nmessage A { int32 a = 1; }',
    "no text": lambda: "  \n ",
    "another language": lambda: '{"type": "record", "name": "A", "fields": []}',
    "an open string": lambda: P3 + 'import "' + "x" * 100_000,
    "an open comment": lambda: P3 + "/*" * 100_000,
    "quotes and backslashes": lambda: P3 + '"\\' * 100_000,
    "base64 of something else": lambda: base64.b64encode(os.urandom(30_000)).decode(),
    "a lone word": lambda: "aaaa",
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_a_hostile_schema_ends_in_time(name: str) -> None:
    text = SHAPES[name]()
    with costs_little(what="parse"):
        try:
            schema = PROTOBUF.parse(text)
        except InvalidSchema as error:
            assert len(error.message) < 10_000
            assert tempfile.gettempdir() not in error.message
            return
        changed = PROTOBUF.parse(text.replace("int32 a", "string a").replace("int32 f77 =", "string f77 ="))
    for step in (PROTOBUF.judge, PROTOBUF.truth, PROTOBUF.diff):
        with costs_little(what=step):
            step(changed, schema)
    with costs_little(what="the rest"):
        PROTOBUF.outline(schema)
        PROTOBUF.normalize(schema)
        PROTOBUF.self_contained(schema)
        PROTOBUF.position(schema, "/messages/A/fields/1")


def test_a_large_schema_is_refused_before_it_is_compiled() -> None:
    with pytest.raises(SchemaTooCostly, match="statements"):
        PROTOBUF.parse(many(10_000, lambda n: f"int32 f{n} = {n};"))
    with pytest.raises(SchemaTooCostly, match="bytes"):
        PROTOBUF.parse(SHAPES["2 MB of blanks"]())


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../../../etc/passwd",
        "a/../../../../etc/passwd",
        "./x.proto",
        "//etc/passwd",
    ],
)
def test_no_import_reads_a_file_of_the_machine(path: str) -> None:
    with pytest.raises(InvalidSchema) as caught:
        PROTOBUF.parse(f'{P3} import "{path}"; message A {{}}')
    assert SECRET not in caught.value.message
    assert "schemadesk-" not in caught.value.message


@pytest.mark.parametrize("path", ["@/etc/passwd", "~/x", "etc/passwd"])
def test_an_import_of_nothing_is_left_out(path: str) -> None:
    schema = PROTOBUF.parse(f'{P3} import "{path}"; message A {{}}')
    assert len(schema.model.protos) == 1
    assert f'import "{path}";' in schema.canonical


@pytest.mark.parametrize(
    "name",
    ["/etc/x.proto", "../x.proto", "a/../../x.proto", "a//b.proto", "./a.proto", "a\\b.proto", "a\0.proto", "a\nb.proto",
     "", "__schema__.proto", "__all__.proto", "x" * 2_000, "a/" * 600 + "b", 'a".proto', "a/.", "\ud800.proto"],
)  # fmt: skip
def test_a_reference_name_that_is_no_import_path_is_refused(name: str) -> None:
    with pytest.raises(InvalidReference, match="import path"):
        PROTOBUF.parse(f"{P3} message A {{}}", [ResolvedReference(name, "s", 1, f"{P3} message B {{}}")])
    inner = ResolvedReference("b.proto", "s", 1, f"{P3} message B {{}}", (ResolvedReference(name, "t", 1, P3),))
    with pytest.raises(InvalidReference, match="import path"):
        PROTOBUF.parse(f'{P3} import "b.proto"; message A {{}}', [inner])


def test_a_name_that_looks_like_an_argument_file_is_a_name(tmp_path: Path) -> None:
    text = f'{P3} import "@x.proto"; message A {{ B b = 1; }}'
    schema = PROTOBUF.parse(text, [ResolvedReference("@x.proto", "s", 1, f"{P3} message B {{}}")])
    assert "B" in schema.model.messages
    assert PROTOBUF.parse(
        f'{P3} import "--x.proto"; message A {{ B b = 1; }}',
        [ResolvedReference("--x.proto", "s", 1, f"{P3} message B {{}}")],
    )


def test_a_file_can_not_be_a_folder_too() -> None:
    references = [ResolvedReference(name, "s", 1, P3) for name in ("a", "a/b.proto")]
    with pytest.raises(InvalidReference, match="is already a file"):
        PROTOBUF.parse(f"{P3} message A {{}}", references)


def test_imports_in_a_circle_are_an_error() -> None:
    a = ResolvedReference("a.proto", "a", 1, f'{P3} import "b.proto"; message A {{}}')
    b = ResolvedReference("b.proto", "b", 1, f'{P3} import "a.proto"; message B {{}}')
    with pytest.raises(InvalidSchema, match="recursively imports itself"):
        PROTOBUF.parse(f'{P3} import "a.proto"; message C {{}}', [a, b])
    with pytest.raises(InvalidSchema, match="recursively imports itself"):
        PROTOBUF.parse(f'{P3} import "__schema__.proto"; message C {{}}')


def test_encoded_references_in_a_circle_are_an_error() -> None:
    references = []
    for name, other in (("a.proto", "b.proto"), ("b.proto", "a.proto")):
        proto = FileDescriptorProto(name=name, syntax="proto3", dependency=[other])
        proto.message_type.add(name=name[0].upper())
        references.append(ResolvedReference(name, name, 1, base64.b64encode(proto.SerializeToString()).decode()))
    with costs_little():
        with pytest.raises(InvalidInput):
            PROTOBUF.parse(f'{P3} import "a.proto"; message C {{}}', references)


def test_a_shared_graph_of_references_is_read_once() -> None:
    """Thirty files, each of which refers twice to the one before: a walk over paths would never end."""
    last = ResolvedReference("r0.proto", "r0", 1, f"{P3} message R0 {{}}")
    for number in range(1, 30):
        text = f'{P3} import "r{number - 1}.proto"; message R{number} {{ R{number - 1} a = 1; R{number - 1} b = 2; }}'
        last = ResolvedReference(f"r{number}.proto", f"r{number}", 1, text, (last, last))
    with costs_little():
        text = f'{P3} import "r29.proto"; message Top {{ R29 a = 1; R29 b = 2; }}'
        schema = PROTOBUF.parse(text, [last])
        other = PROTOBUF.parse(text + "// x", [last])
        assert schema.fingerprint == other.fingerprint
        assert PROTOBUF.judge(schema, other).is_compatible
        assert PROTOBUF.truth(schema, other).answer == "yes"
        PROTOBUF.parse(PROTOBUF.self_contained(schema))


def test_names_in_an_encoded_descriptor_can_not_become_text() -> None:
    proto = FileDescriptorProto(name="x.proto", syntax="proto3")
    proto.message_type.add(name="A {} message B {} //")
    with pytest.raises(InvalidSchema, match="can't be written"):
        PROTOBUF.parse(base64.b64encode(proto.SerializeToString()).decode())


def test_an_encoded_descriptor_nested_too_deep_is_refused() -> None:
    proto = FileDescriptorProto(name="x.proto", syntax="proto3")
    message = proto.message_type.add(name="A")
    for _ in range(60):
        message = message.nested_type.add(name="A")
    with pytest.raises(InvalidSchema):
        PROTOBUF.parse(base64.b64encode(proto.SerializeToString()).decode())


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    PROTOBUF.parse(f"{P3} message A {{}}")
    with pytest.raises(InvalidSchema):
        PROTOBUF.parse(f"{P3} message A {{")
    assert list(tmp_path.iterdir()) == []


def test_the_compiler_is_quiet(capfd: pytest.CaptureFixture[str]) -> None:
    """Its warnings would fill the log of the server with what callers send."""
    PROTOBUF.parse("message A { optional int32 a = 1; }")
    PROTOBUF.parse(f'{P3} import "google/protobuf/any.proto"; message A {{}}')
    with pytest.raises(InvalidSchema):
        PROTOBUF.parse("message A { B b = 1; }")
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")
