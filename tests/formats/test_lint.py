"""Advice on a schema: each rule with a text that it is about, and one that follows it."""

from __future__ import annotations

import json

import pytest

from registry.formats import FORMATS
from registry.formats.lint import LINT_RULES, MAX_PLACES, LintFinding, in_style, looks_personal, style_of
from registry.sandbox.child import perform
from registry.sandbox.codec import Source, decode, encode


def avro(*fields: dict[str, object], **more: object) -> str:
    return json.dumps({"type": "record", "name": "Order", "namespace": "com.example", "fields": list(fields), **more})


def proto(body: str) -> str:
    return f'syntax = "proto3";\npackage shop;\n{body}'


def json_schema(**more: object) -> str:
    return json.dumps(
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Order", "type": "object", **more}
    )


def properties(**schemas: object) -> str:
    return json_schema(properties=schemas, additionalProperties=False)


ENUM = {"type": "enum", "name": "Kind", "symbols": ["A"]}
#: rule → format, a text that it is about, the path that is told, a text that follows it
CASES = {
    "NO_NAMESPACE": ("AVRO", avro(namespace=""), "Order", avro()),
    "NO_PACKAGE": ("PROTOBUF", 'syntax = "proto3"; message A {}', "", proto("message A {}")),
    "NO_SCHEMA_KEYWORD": ("JSON", "{}", "", json_schema()),
    "NO_TITLE": ("JSON", "{}", "", json_schema()),
    "NO_TYPE": ("JSON", properties(any={}), "Order.any", properties(any={"enum": [1]})),
    "OPENNESS_UNSAID": ("JSON", json_schema(properties={"a": {}}), "Order", properties(a={})),
    "OPTIONAL_WITHOUT_DEFAULT": (
        "AVRO",
        avro({"name": "note", "type": ["null", "string"]}),
        "Order.note",
        avro({"name": "note", "type": ["null", "string"], "default": None}),
    ),
    "DEFAULT_OF_LATER_BRANCH": (
        "AVRO",
        avro({"name": "note", "type": ["null", "string"], "default": ""}),
        "Order.note",
        avro({"name": "note", "type": ["string", "null"], "default": ""}),
    ),
    "FIELD_HAS_NO_DEFAULT": (
        "AVRO",
        avro({"name": "lines", "type": {"type": "array", "items": json.loads(avro({"name": "n", "type": "int"}, name="Line"))}, "default": []}),
        "Order.lines[].n",
        avro({"name": "n", "type": "int", "default": 0}),
    ),
    "ENUM_WITHOUT_DEFAULT": (
        "AVRO",
        avro({"name": "kind", "type": ENUM}),
        "Order.kind",
        avro({"name": "kind", "type": {**ENUM, "default": "A"}}),
    ),
    "TIME_WITHOUT_LOGICAL_TYPE": (
        "AVRO",
        avro({"name": "createdAt", "type": ["null", "long"]}),
        "Order.createdAt",
        avro({"name": "createdAt", "type": {"type": "long", "logicalType": "timestamp-millis"}}),
    ),
    "MONEY_AS_FLOAT": (
        "PROTOBUF",
        proto("message Order { double unit_price = 1; }"),
        "Order.unit_price",
        proto("message Order { int64 unit_price = 1; double price_factor = 2; }"),
    ),
    "ZERO_NOT_UNSPECIFIED": (
        "PROTOBUF",
        proto("enum Kind { NEW = 0; }"),
        "Kind.NEW",
        proto("enum Kind { KIND_UNSPECIFIED = 0; }"),
    ),
    "NUMBERS_NOT_RESERVED": (
        "PROTOBUF",
        proto("message Order { int32 a = 1; reserved 3; int32 b = 5; }"),
        "Order",
        proto("message Order { int32 a = 1; reserved 2 to 4; int32 b = 5; }"),
    ),
    "REQUIRED_FIELD": (
        "PROTOBUF",
        'syntax = "proto2"; package shop; message Order { required int32 a = 1; }',
        "Order.a",
        'syntax = "proto2"; package shop; message Order { optional int32 a = 1; }',
    ),
    "TYPE_NAME_STYLE": ("PROTOBUF", proto("message order_line {}"), "order_line", proto("message OrderLine {}")),
    "FIELD_NAME_STYLE": (
        "PROTOBUF",
        proto("message Order { int32 orderId = 1; }"),
        "Order.orderId",
        proto("message Order { int32 order_id = 1; }"),
    ),
    "NAMES_MIXED": (
        "JSON",
        properties(order_id={}, line_no={}, shipTo={}),
        "Order.shipTo",
        properties(order_id={}, shipTo={}, id={}),
    ),
    "FIELD_WITHOUT_DOC": (
        "PROTOBUF",
        proto("message Order { int32 id = 1; }"),
        "Order.id",
        proto("message Order {\n  // The key.\n  int32 id = 1;\n}"),
    ),
    "PERSONAL_WITHOUT_TAG": (
        "AVRO",
        avro({"name": "firstName", "type": "string"}),
        "Order.firstName",
        avro({"name": "firstName", "type": "string", "confluent:tags": ["PII"]}),
    ),
}  # fmt: skip


def advice(schema_type: str, text: str) -> tuple[LintFinding, ...]:
    engine = FORMATS[schema_type]
    return engine.lint(engine.parse(text))


def test_every_rule_has_a_case() -> None:
    assert set(CASES) == set(LINT_RULES)
    assert all(schema_type in LINT_RULES[rule].formats for rule, (schema_type, *_) in CASES.items())


@pytest.mark.requirement("CARD-2")
@pytest.mark.parametrize("rule", CASES)
def test_a_rule_is_reported_where_it_is_not_followed_alone(rule: str) -> None:
    schema_type, text, path, followed = CASES[rule]
    [finding] = [item for item in advice(schema_type, text) if item.rule == rule]
    assert finding.path == path
    assert finding.weight == LINT_RULES[rule].weight
    assert "{" not in finding.message + finding.cure.replace('{"', "")
    assert (finding.line is None) == (rule == "NO_PACKAGE")
    assert rule not in {item.rule for item in advice(schema_type, followed)}


def test_warnings_come_first_and_of_a_rule_so_many_places() -> None:
    text = avro(*({"name": f"f{n}", "type": ["null", "int"]} for n in range(MAX_PLACES + 30)))
    findings = advice("AVRO", text)
    weights = [item.weight for item in findings]
    assert weights == sorted(weights, reverse=True)
    of_rule = [item for item in findings if item.rule == "OPTIONAL_WITHOUT_DEFAULT"]
    assert len(of_rule) == MAX_PLACES
    assert [item.more for item in of_rule] == [0] * (MAX_PLACES - 1) + [30]


def test_a_child_gives_the_same() -> None:
    text = avro({"name": "firstName", "type": "string"})
    assert decode(encode(perform("lint", [Source("AVRO", text)], {}))) == advice("AVRO", text)


def test_what_is_inside_itself_and_what_is_referred_to_is_reported_once_or_not() -> None:
    node = avro({"name": "next", "type": ["null", "com.example.Order"]})
    assert [item.path for item in advice("AVRO", node) if item.rule == "OPTIONAL_WITHOUT_DEFAULT"] == ["Order.next"]
    nested = {"type": "array", "items": {"$ref": "#"}}
    assert advice("JSON", properties(nested=nested))


@pytest.mark.parametrize(
    ("name", "style", "snake"),
    [("order_id", "snake_case", "order_id"), ("orderID", "camelCase", "order_id"), ("OrderId", "PascalCase", "order_id"),
     ("ORDER_ID", "UPPER_CASE", "order_id"), ("id", "", "id"), ("a" * 10_000, "", "a" * 200), ("<b>", "", "b")],
)  # fmt: skip
def test_the_style_of_a_name(name: str, style: str, snake: str) -> None:
    assert style_of(name) == style
    assert in_style(name, "snake_case") == snake


@pytest.mark.parametrize(
    ("name", "personal"),
    [("customerEmail", True), ("e_mail", True), ("LAST_NAME", True), ("dateOfBirth", True), ("name", False),
     ("product_name", False), ("emailed", False), ("ip_address", True)],
)  # fmt: skip
def test_a_name_that_looks_personal(name: str, personal: bool) -> None:
    assert looks_personal(name) is personal
