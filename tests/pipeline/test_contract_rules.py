"""Conditions of data contracts: what they see of a message, what they count, what stops them, and in a real scan."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
from dataclasses import asdict
from typing import Any

import fastavro
import pytest

from registry.formats import format_of
from registry.observations import (
    Bounds,
    ContractRule,
    ContractRuleResult,
    FieldProfile,
    Profile,
    Sample,
    UndecodableMessages,
    WriterSchema,
)
from registry.pipeline import avro_schemas, run
from registry.pipeline.body_decoding import RULES_ENDED
from registry.pipeline.workers import contract_rules
from registry.pipeline.workers.bodies import AvroBodies, JsonSchemaBodies, ProtobufBodies
from registry.pipeline.workers.contract_rules import Conditions, fields_of
from tests.pipeline.test_topic_scan import only
from tests.pipeline.topics import framed, make_topic, scan_of

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "amount", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}},
        {
            "name": "lines",
            "type": {
                "type": "array",
                "items": {"type": "record", "name": "Line", "fields": [{"name": "sku", "type": "string"}]},
            },
        },
        {"name": "labels", "type": {"type": "map", "values": "string"}},
    ],
}
GOOD = {"id": "o-1", "amount": 5, "note": None, "state": "NEW", "lines": [{"sku": "A1"}], "labels": {"k": "v"}}


def encoded(value: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(ORDER), value)
    return buffer.getvalue()


def avro(value: dict[str, Any]) -> Any:
    return AvroBodies(json.dumps(avro_schemas.bare(json.dumps(ORDER)))).decode(encoded(value))


def rule(expression: str, kind: str = "CEL", **values: Any) -> dict[str, Any]:
    return asdict(ContractRule("r", kind, expression, "WRITEREAD", "ERROR", **values))


def counted(rule: dict[str, Any], *messages: Any, tags: Any = None, size: int = 100) -> dict[str, Any]:
    conditions = Conditions([rule], tags or {})
    for offset, message in enumerate(messages):
        conditions.check(message, (0, offset), size)
    (row,) = conditions.rows()
    return row


@pytest.mark.parametrize(
    ("expression", "broken"),
    [
        ("message.amount > 0 && message.id.startsWith('o-')", 0),
        ("message.amount > 10", 1),
        ("message.amount > 4.5", 0),
        ("message.note == null", 0),
        ("has(message.missing)", 1),
        ("message.lines.all(line, line.sku.matches('^[A-Z][0-9]$'))", 0),
        ("message.lines.exists(line, line.sku == 'B')", 1),
        ("message.labels['k'] == 'v' && message.state == 'NEW'", 0),
        ("message.amount > 100 ; message.id == 'never evaluated'", 0),
        ("message.amount > 1 ; message.id == 'x'", 1),
        (" ; message.id == 'x'", 1),
        ("message.id.charAt(0) == 'o' && message.id.upperAscii() == 'O-1'", 0),
    ],
)
def test_a_condition_reads_the_message_as_confluents_clients_do(expression: str, broken: int) -> None:
    row = counted(rule(expression), avro(GOOD))
    assert (row["messages"], row["broken"], row["not_checked"]) == (1, broken, {})


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("message.amount >", "the expression isn't valid: 1:17: Syntax error: mismatched input '<EOF>'"),
        ("message.id.isMail()", "the expression isn't valid: 1:18: undeclared reference to 'isMail'"),
        ("message.id.matches('(')", "the pattern of matches() isn't valid: missing ): ("),
        ("message.missing > 1", "the message lacks a field or key that the expression reads"),
        ("message[message.id] == 1", "the message lacks a field or key that the expression reads"),
        ("message.id + 1 == 2", "no operator or function takes these types: _+_(string, int64)"),
        ("message.amount / 0 == 1", "divide by zero"),
        ("message.amount", "its result isn't true or false"),
        ("message.id", "its result isn't true or false"),
        ("message.id.matches(message.id)", contract_rules.OPEN_PATTERN),
        ("message.id.matches('a' + message.id)", contract_rules.OPEN_PATTERN),
        (f"{'(' * 500}true{')' * 500}", contract_rules.TOO_DEEP),
    ],
)
def test_what_cannot_be_evaluated_is_counted_with_its_reason_and_without_content(expression: str, reason: str) -> None:
    row = counted(rule(expression), avro(GOOD), avro(GOOD))
    assert (row["messages"], row["broken"]) == (0, 0)
    ((text, messages),) = row["not_checked"].items()
    assert (text.startswith(reason), messages) == (True, 2), text
    assert "o-1" not in text


@pytest.mark.parametrize(
    ("function", "good", "bad"),
    [
        ("isEmail", ["ann@example.com"], ["", "ann", "ann@", "@example.com", "ann example@example.com"]),
        ("isHostname", ["localhost", "www.example.com"], ["", "-www.example.com", "www..com", "a_b"]),
        ("isIpv4", ["192.0.2.1"], ["", "192.0.2", "192.0.2.256", "::1"]),
        ("isIpv6", ["::1", "2001:db8::1"], ["", "192.0.2.1", "2001:db8:::1"]),
        ("isUri", ["https://example.com/a?b#c", "urn:isbn:1"], ["", "/a", "example"]),
        ("isUriRef", ["https://example.com", "/a?b", "a"], ["a b", "%"]),
        ("isUuid", ["123e4567-e89b-12d3-a456-426614174000"], ["", "123e4567", "g23e4567-e89b-12d3-a456-426614174000"]),
    ],
)
def test_confluents_own_functions_check_the_form_of_a_text(function: str, good: list[str], bad: list[str]) -> None:
    row = counted(rule(f"message.id.{function}()"), *[avro(GOOD | {"id": text}) for text in good + bad])
    assert (row["messages"], row["broken"], row["not_checked"]) == (len(good + bad), len(bad), {})
    row = counted(rule(f"message.amount.{function}()"), avro(GOOD))
    assert row["not_checked"] == {f"no operator or function takes these types: (int64).{function}()": 1}


def test_hostile_expressions_and_messages_end() -> None:
    long = avro(GOOD | {"id": "a" * 20_000, "lines": [{"sku": "x"}] * 2_000})
    assert counted(rule("message.id.matches('^(a+)+$')"), long)["broken"] == 0
    row = counted(rule("message.lines.all(a, message.lines.all(b, a.sku == b.sku))"), long)
    assert row["not_checked"] == {"the expression takes more than 10,000 iterations": 1}
    row = counted(rule("true"), long, size=contract_rules.LARGEST + 1)
    assert row["not_checked"] == {contract_rules.TOO_LARGE: 1}


DOUBLED = "[message.id]" + ".map(x, x + x)" * 28 + ".size() > 0"
GROWN = "message.id" + ".replace('o', 'oooooooooooooooo')" * 9 + ".size() > 0"
PATIENT = Bounds(deadline_seconds=1_200)  # Spark starts new processes
#: 2²⁵ comparisons of lists that share their items
SHARED = "[[1]" + ".map(x, [x, x])" * 25 + "].all(z, z == z)"


@pytest.mark.parametrize(
    ("expression", "seconds"),
    [
        pytest.param(DOUBLED, 5.0, id="a text that doubles"),
        pytest.param(GROWN, 5.0, id="a text that grows"),
        pytest.param(SHARED, 0.2, id="lists that take long to compare"),
    ],
)
def test_one_evaluation_cannot_exhaust_memory_or_time(expression: str, seconds: float) -> None:
    """If the operating system ends the process, the scan goes on without the rules."""
    program = (
        "import re, pathlib; from registry.pipeline.workers import contract_rules as c;"
        "from tests.pipeline.test_contract_rules import GOOD, avro, counted, rule;"
        f"c.EVALUATION_SECONDS, c.EVALUATION_BYTES = {seconds}, 64 << 20; good = avro(GOOD);"
        f"row = counted(rule({expression!r}), good); assert not row['messages'] and row['not_checked'], row;"
        "row = counted(rule('message.amount > 0'), good); assert row['messages'] == 1;"
        # not ru_maxrss: a new process inherits its parent's peak
        "peak = re.search(r'VmHWM:\\s+(\\d+) kB', pathlib.Path('/proc/self/status').read_text())[1];"
        "assert int(peak) < 1 << 20, peak"
    )
    ended = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=300)
    killed = {-signal.SIGVTALRM, -signal.SIGABRT, -signal.SIGSEGV, -signal.SIGKILL}
    assert ended.returncode in {0, *killed}, ended.stderr


def test_a_rule_that_takes_too_long_is_given_up_for_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contract_rules, "MOST_SECONDS", 0.0)
    row = counted(rule("message.amount > 10"), *[avro(GOOD)] * 3)
    assert (row["messages"], row["not_checked"]) == (1, {contract_rules.TOO_SLOW: 2})


def test_without_the_library_nothing_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cel_expr_python", None)
    assert counted(rule("true"), avro(GOOD))["not_checked"] == {contract_rules.NO_LIBRARY: 1}


def test_a_field_condition_sees_every_primitive_field_that_is_not_null() -> None:
    message = avro(GOOD)
    fields = {(field.path, field.full_name, field.type_name) for field in fields_of(message.value, message.shape)}
    assert fields == {
        ("id", "shop.Order.id", "STRING"),
        ("amount", "shop.Order.amount", "LONG"),
        ("lines[].sku", "shop.Line.sku", "STRING"),
        ("labels{}", "shop.Order.labels", "STRING"),
    }
    row = counted(rule("typeName == 'STRING' ; value.size() < 3", "CEL_FIELD"), message, message)
    assert (row["messages"], row["broken"], row["paths"], row["first"]) == (2, 2, {"id": 2}, [(0, 0), (0, 1)])
    assert counted(rule("name != 'sku' || message.sku == value", "CEL_FIELD"), message)["broken"] == 0


def test_a_field_condition_with_tags_sees_only_the_fields_with_one_of_them() -> None:
    tags = {"id": ("PII", "KEY"), "labels": ("PII",)}
    row = counted(rule("'PII' in tags && value == 'v'", "CEL_FIELD", tags=("PII", "OTHER")), avro(GOOD), tags=tags)
    assert (row["broken"], row["paths"]) == (1, {"id": 1})


def test_an_unset_protobuf_field_is_its_default() -> None:
    text = 'syntax = "proto3"; package shop; message Order { string id = 1; int64 amount = 2; Kind kind = 3; Buyer buyer = 4; }'
    text += " enum Kind { NONE = 0; GIFT = 1; } message Buyer { string mail = 1; }"
    engine = format_of("PROTOBUF")
    bodies = ProtobufBodies(engine.descriptor_set(engine.parse(text)))
    message = bodies.decode(b"\x00\x0a\x01a\x18\x01")
    for expression in ("message.amount == 0", "message.kind == 1", "!has(message.buyer)", "message.buyer.mail == ''"):
        assert counted(rule(expression), message) | {"name": ""} == {
            **{"name": "", "messages": 1, "broken": 0, "first": [], "paths": {}, "not_checked": {}}
        }, expression
    assert counted(rule("fullName == 'shop.Order.id' && value == 'a'", "CEL_FIELD"), message)["broken"] == 0


def test_json_is_read_by_its_schema() -> None:
    schema = {"type": "object", "properties": {"id": {"type": "string"}, "buyer": {"type": "object"}}}
    message = JsonSchemaBodies(json.dumps(schema)).decode(b'{"id": "o", "buyer": {"mail": "m"}, "n": 1}')
    assert counted(rule("message.buyer.mail == 'm' && message.n == 1"), message)["broken"] == 0
    names = {field.full_name for field in fields_of(message.value, message.shape)}
    assert names == {"$.id", "$.buyer.mail", "$.n"}
    huge = JsonSchemaBodies("{}").decode(b'{"n": 1' + b"0" * 30 + b"}")
    assert list(counted(rule("message.n > 1"), huge)["not_checked"].values()) == [1]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.broker
def test_a_scan_evaluates_the_rules_of_each_messages_own_schema_on_all_messages(
    kafka_bootstrap: str, spark_remote: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("registry.pipeline.profile.FEW", 0)  # else plain Avro of many messages is counted natively
    broken = {11, 30, 31, 50}
    orders = [GOOD | {"amount": -1 if number in broken else number + 1} for number in range(60)]
    bodies = [framed(1 + number % 2, encoded(order)) for number, order in enumerate(orders)]
    topic = make_topic(kafka_bootstrap, [(number % 2, None, body) for number, body in enumerate(bodies)])
    positive = ContractRule("positive", "CEL", "message.amount > 0", "WRITE", "ERROR")
    short = ContractRule("short", "CEL_FIELD", "value.size() < 3", "READ", "NONE", ("PII",))
    unknown = ContractRule("unknown", "CEL", "message.id.isMail()", "READ", "ERROR")
    ruled = WriterSchema("id", "2", "AVRO", json.dumps(ORDER), (positive, short, unknown), {"id": ("PII",)})
    spec = scan_of(
        *(kafka_bootstrap, topic),
        schemas={1: json.dumps(ORDER)},
        more=(ruled,),
        bounds=Bounds(first_slice=20),
        profile=Profile(samples=2),
    )
    observations = run(spec, remote=spark_remote)
    results = {result.rule.name: result for result in only(ContractRuleResult, observations)}
    assert {result.mark for result in results.values()} == {"2"}
    first = results["positive"]
    assert (first.messages, first.broken, first.first, first.paths) == (30, 2, ((1, 5), (1, 15)), {})
    second = results["short"]
    assert (second.messages, second.broken, second.paths, second.first[0]) == (30, 30, {"id": 30}, (1, 0))
    third = results["unknown"]
    ((reason, number),) = third.not_checked.items()
    assert (third.messages, number) == (0, 30)
    assert "undeclared reference to 'isMail'" in reason
    shown = {
        (sample.partition, sample.offset): sample.text for sample in only(Sample, observations) if sample.mark == "2"
    }
    assert '"amount": "-1e0"' in shown[1, 5], "the first message that breaks a rule is a sample, masked"


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.broker
def test_a_rule_that_ends_the_process_is_not_checked_and_its_messages_are_decoded(
    kafka_bootstrap: str, spark_remote: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rules that comparing shared lists would keep busy for minutes; the other topic's rules are checked."""
    monkeypatch.setattr(contract_rules, "EVALUATION_SECONDS", 0.2)
    bodies = [(0, None, framed(2, encoded(GOOD))) for _ in range(20)]
    topic = make_topic(kafka_bootstrap, bodies, partitions=1)
    fine = ContractRule("fine", "CEL", "message.amount > 0", "WRITE", "ERROR")
    deadly = ContractRule("deadly", "CEL", SHARED, "WRITE", "ERROR")
    ruled = WriterSchema("id", "2", "AVRO", json.dumps(ORDER), (fine, deadly))
    observations = run(scan_of(kafka_bootstrap, topic, more=(ruled,), bounds=PATIENT), remote=spark_remote)
    results = {result.rule.name: result for result in only(ContractRuleResult, observations)}
    assert {name: (result.messages, result.not_checked) for name, result in results.items()} == {
        "fine": (0, {RULES_ENDED: 20}),
        "deadly": (0, {RULES_ENDED: 20}),
    }
    assert only(UndecodableMessages, observations) == []
    assert {profile.messages for profile in only(FieldProfile, observations) if profile.path == "id"} == {20}
