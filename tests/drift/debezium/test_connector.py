"""A connector as a source without a broker: its configuration, its topics, and its judgement case by case."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboard.demo.shop import CONVERTERS, Login, conversion, debezium
from dashboard.findings.evidence import evidence_tables
from dashboard.findings.evidence_tables import SHOWN_ROWS
from registry.access.roles import Actor
from registry.drift.debezium.connector import ConnectorConfig, read_config, read_status
from registry.drift.debezium.judge import judge_debezium, summary_of
from registry.drift.debezium.rules import RULES
from registry.drift.findings.suspicions import began_at
from registry.drift.models import Connector, SchemaUse
from registry.drift.scan.aggregation import without_hours
from registry.drift.scan_context.connector import newest_marks, newest_shapes, topic_facts
from registry.drift.sources.base import SourceDraft
from registry.drift.sources.debezium import DebeziumConnector, look, patterns_of, read_connector
from registry.errors import (
    AddressRefused,
    InvalidInput,
    InvalidSecret,
    InvalidSource,
    RemoteUnavailable,
    SchemadeskError,
)
from registry.observations import ConnectSchema, FramedMessages, Span
from registry.promotions.models import Environment
from registry.subjects.models import Registry
from registry.subjects.services import register_version, set_mode
from registry.subjects.versions.qualified_names import SubjectName
from tests.access.fake_server import Call, Told, serving
from tests.drift.debezium.worlds import CONFIG, avro_text, world
from tests.drift.scans import make_source

STATUS = {
    "name": "shop",
    "connector": {"state": "RUNNING", "worker_id": "a:1"},
    "tasks": [{"id": 0, "state": "FAILED", "worker_id": "a:1", "trace": "java.lang.X"}],
}


def config(**more: str) -> ConnectorConfig:
    return read_config({**CONFIG, **{name.replace("__", "."): value for name, value in more.items()}})


def test_defaults_are_the_connectors_own() -> None:
    parsed = read_config({"connector.class": CONFIG["connector.class"], "topic.prefix": "p"})
    assert (parsed.decimals, parsed.times, parsed.binaries) == ("precise", "adaptive", "bytes")
    assert (parsed.skipped, parsed.tombstones, parsed.plugin) == (frozenset("t"), True, "decoderbufs")
    assert (parsed.schema_names, parsed.field_names) == ("none", "none")
    assert (parsed.key_converter, parsed.value_converter) == ("worker", "worker")
    assert parsed.not_understood == ()


@pytest.mark.parametrize("converter", CONVERTERS)
def test_our_own_connectors_are_understood(converter: Any) -> None:
    login = Login(1, "user", "the-password", "db")
    properties = debezium(login, prefix="p", publication="everything", more=conversion(converter))
    parsed = read_config(properties)
    assert parsed.not_understood == ()
    assert parsed.value_converter == {"json": "json", "json_schema": "json_with_schema", "avro": "avro"}[converter]
    assert "the-password" not in repr(parsed)


def test_what_is_not_understood_is_said_and_the_default_taken() -> None:
    parsed = config(
        decimal__handling__mode="exact",
        topic__naming__strategy="com.example.Mine",
        converters="isbn",
        transforms="a,b,c",
        transforms__a__type="com.example.Mine",
        transforms__b__type="org.apache.kafka.connect.transforms.RegexRouter",
        transforms__b__regex="(a)\\1",
        transforms__c__type="org.apache.kafka.connect.transforms.RegexRouter",
        transforms__c__predicate="isHeartbeat",
    )
    assert parsed.decimals == "precise"
    assert [text.partition(":")[0].partition("=")[0] for text in parsed.not_understood] == [
        "transforms.a (com.example.Mine)",
        "transforms.b",
        "transforms.c",
        "decimal.handling.mode",
        "topic.naming.strategy",
        "converters",
    ]
    assert parsed.topic_after("shop.public.a") is None


def test_transforms_in_their_order() -> None:
    parsed = config(
        transforms="unwrap, route",
        transforms__unwrap__type="io.debezium.transforms.ExtractNewRecordState",
        transforms__unwrap__add__fields="op,source.ts_ms:at",
        transforms__route__type="org.apache.kafka.connect.transforms.RegexRouter",
        transforms__route__regex=r"shop\.(.*)",
        transforms__route__replacement="eu.$1",
    )
    assert parsed.unwrapped
    assert parsed.transforms[0].added_fields == ("__op", "__at")
    assert parsed.topic_after("shop.public.a") == "eu.public.a"
    assert parsed.topic_after("other") == "other"


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"connector.class": "io.debezium.connector.mysql.MySqlConnector", "topic.prefix": "p"},
        {"connector.class": CONFIG["connector.class"]},
        {"connector.class": 7, "topic.prefix": None},
        {str(number): "x" for number in range(3000)},
    ],
)
def test_what_cannot_be_read_is_refused(document: dict[str, Any]) -> None:
    with pytest.raises(InvalidSource):
        read_config(document)


@pytest.mark.parametrize("document", [{}, {"connector": 1, "tasks": {}}, {"tasks": [1, {"state": None, "id": "x"}]}])
def test_a_strange_status_is_read_as_far_as_it_goes(document: dict[str, Any]) -> None:
    assert read_status(document).failed_tasks == ()


def test_a_trace_is_kept_without_what_looks_like_a_secret() -> None:
    trace = "X: jdbc:postgresql://me:hunter2@db/x?user=me&password=hunter2\n database.password = hunter2, ssl.key: k"
    (task,) = read_status({"tasks": [{"id": 0, "state": "FAILED", "trace": trace * 1_000}]}).tasks
    assert "hunter2" not in task.trace[:200]
    assert "user=me&password=…" in task.trace
    assert len(task.trace) < 5_000


@pytest.fixture
def allowed(settings: Any) -> None:
    settings.EGRESS_ALLOW = ["127.0.0.1"]


def test_read_over_http(allowed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(call: Call) -> Any:
        return {"/connectors/my shop/config": CONFIG, "/connectors/my shop/status": STATUS}.get(call.path)

    with serving(answer) as server:
        monkeypatch.setenv("SCHEMADESK_SECRET_CONNECT", f"http://127.0.0.1:{server.port} pw")
        url = f"http://127.0.0.1:{server.port}"
        parsed, status = read_connector(url=url, name="my shop", user="u", secret="connect")
        assert (parsed.prefix, status.state) == ("shop", "RUNNING")
        assert [(task.number, task.trace) for task in status.failed_tasks] == [(0, "java.lang.X")]
        assert {call.headers["authorization"] for call in server.calls} == {"Basic dTpwdw=="}
        with pytest.raises(InvalidSource, match="has no connector 'other'"):
            read_connector(url=url, name="other")
        with pytest.raises(InvalidSecret):
            read_connector(url=url, name="my shop", secret="missing")


@pytest.mark.parametrize(
    ("response", "says"),
    [
        (Told(401), "Give a user and a secret"),
        (Told(500), "answered 500"),
        (Told(200, b"[]"), "not a JSON object"),
        (Told(200, b"{" * 100_000), "is not valid JSON"),
        (Told(302, b"", {"Location": "http://169.254.169.254/"}), "redirect"),
        (Told(200, b" " * (3 * 1024 * 1024)), "more than"),
    ],
)
def test_a_server_that_answers_otherwise(allowed: None, response: Told, says: str) -> None:
    with serving(lambda _: response) as server, pytest.raises(RemoteUnavailable, match=says):
        read_connector(url=f"http://127.0.0.1:{server.port}", name="shop")


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://169.254.169.254/latest", "file:///etc/passwd", "x"])
def test_an_address_that_is_not_allowed(settings: Any, url: str) -> None:
    settings.EGRESS_ALLOW = []
    with pytest.raises((AddressRefused, InvalidInput)):
        read_connector(url=url, name="shop")


WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "connect_url"),
    ({"connect_url": "http://127.0.0.1:1"}, "name of a connector must not be empty"),
    ({"connect_url": "http://127.0.0.1:1", "name": "shop", "color": "red"}, "no setting 'color'"),
    ({"connect_url": "http://127.0.0.1:1", "name": 7}, "name of a connector must be text"),
    ({"connect_url": "http://127.0.0.1:1", "name": "shop", "database_port": "5432"}, "a whole number"),
    ({"connect_url": "http://127.0.0.1:1", "name": "shop", "database_port": True}, "a whole number"),
    ({"connect_url": "http://127.0.0.1:1", "name": "shop", "database_host": "h"}, "database_name and database_user"),
]


@pytest.mark.parametrize(("document", "says"), WRONG, ids=lambda value: str(value)[:40])
def test_fields_that_cannot_be(document: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidSource, match=says):
        DebeziumConnector().checked_config(document)


def test_a_connector_that_answers(settings: Any) -> None:
    answers = {"/connectors/shop/config": CONFIG, "/connectors/shop/status": STATUS}
    with serving(lambda call: answers.get(call.path)) as server:
        url = f"http://127.0.0.1:{server.port}"
        settings.EGRESS_ALLOW = ["127.0.0.1"]
        config = DebeziumConnector().checked_config({"connect_url": url, "name": "shop"})
        assert (config["name"], config["database_tls"]) == ("shop", True)
        look(Connector(**config))
        settings.EGRESS_ALLOW = []
        with pytest.raises(AddressRefused):
            look(Connector(**config))


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 2000])
def test_a_source_needs_a_name_and_a_cluster(name: str) -> None:
    registry = Registry(name="dev")
    with pytest.raises(InvalidSource, match="name"):
        DebeziumConnector().check(SourceDraft(registry, name))
    with pytest.raises(InvalidSource, match="cluster"):
        DebeziumConnector().check(SourceDraft(registry, "shop"))


def test_topics_are_those_of_the_prefix_and_those_that_a_transform_routes_elsewhere() -> None:
    tables = {"public.a": {"columns": {"id": "int not null"}, "key": ["id"]}}
    assert patterns_of(world({"catalog": {"tables": tables}})) == ["shop.*"]
    route = {
        "transforms": "r",
        "transforms.r.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.r.regex": r"shop\.public\.(.*)",
        "transforms.r.replacement": "$1",
    }
    assert patterns_of(world({"config": route, "catalog": {"tables": tables}})) == ["a", "shop.*"]


def span(first: int, last: int, time: int) -> Span:
    return Span(last - first + 1, 10, first, last, time - 1, time)


def framed(mark: str, last: int, time: int, partition: int = 0) -> FramedMessages:
    return FramedMessages("t", "value", partition, "id", mark, span(0, last, time))


def test_the_newest_mark_is_that_of_the_last_message_over_all_scans(registries: None) -> None:
    source = make_source(kind="debezium", name="shop")
    assert newest_marks(source, ["t"], []) == {}
    observations = [framed("2", 9, 2_000), framed("1", 4, 2_000), framed("3", 90, 1_500, partition=1)]
    assert newest_marks(source, ["t"], observations)["t", "value"] == ((2_000, 9), ("id", "2"))
    topic = source.topics.create(name="t")
    SchemaUse.objects.create(
        topic=topic,
        side="value",
        framing="id",
        mark="7",
        partition=0,
        messages=1,
        bytes=1,
        first_offset=10,
        last_offset=10,
        first_time=datetime.fromtimestamp(3, UTC),
        last_time=datetime.fromtimestamp(3, UTC),
    )
    assert newest_marks(source, ["t"], [])["t", "value"] == ((3_000, 10), ("id", "7"))
    assert newest_marks(source, ["t"], observations)["t", "value"] == ((3_000, 10), ("id", "7"))
    assert newest_marks(source, ["t"], [*observations, framed("8", 11, 4_000)])["t", "value"][1] == ("id", "8")
    assert newest_marks(source, ["other"], []) == {}


def test_the_newest_shape_of_a_side() -> None:
    shapes = [
        ConnectSchema("t", "value", "b", "new", span(5, 6, 2_000), 0),
        ConnectSchema("t", "value", "a", "old", span(0, 4, 1_000), 0),
        ConnectSchema("t", "key", "c", "key", span(0, 6, 2_000), 0),
    ]
    assert {where: text for where, (_, text) in newest_shapes(shapes, {}).items()} == {
        ("t", "value"): "new",
        ("t", "key"): "key",
    }


def test_a_closed_environment_and_a_mode_reject_the_next_version(registries: None, system: Actor) -> None:
    prod = Environment.objects.filter(registry__name="prod")
    prod.update(is_closed=False)
    set_mode(registry="prod", subject=None, mode="READWRITE", by=system)
    name = SubjectName(".", "shop.public.t-value")
    schema = avro_text({"id": "int32"}, envelope=True)
    register_version(registry="prod", subject=name, text=schema, by=system)
    source = make_source(kind="debezium", name="shop", registry=Registry.objects.get(name="prod"))
    table = {"columns": {"id": "int not null", "name": "text"}, "key": ["id"]}
    converter = {"value.converter": "io.apicurio.registry.utils.converter.AvroConverter"}
    case = world({"config": converter, "catalog": {"tables": {"public.t": table}}})

    def foretold() -> tuple[str, str]:
        (row,) = summary_of(replace(case, topics=topic_facts(source, case, {}, ())))["tables"]
        return row["next_row"]["value"]["outcome"], row["next_row"]["value"]["reason"]

    assert foretold() == ("registered", "")
    set_mode(registry="prod", subject=name, mode="READONLY", by=system)
    assert foretold() == ("refused", "The mode rejects new schemas.")
    prod.update(is_closed=True)
    assert foretold() == ("refused", "The registry changes only by releases.")


def test_the_first_version_of_a_table_is_not_promised_where_none_can_be_registered(
    registries: None, system: Actor
) -> None:
    prod = Environment.objects.filter(registry__name="prod")
    source = make_source(kind="debezium", name="shop", registry=Registry.objects.get(name="prod"))
    table = {"columns": {"id": "int not null"}, "key": ["id"]}
    converter = {"value.converter": "io.apicurio.registry.utils.converter.AvroConverter"}
    case = world({"config": converter, "catalog": {"tables": {"public.t": table}}})

    def foretold() -> tuple[str, str]:
        (row,) = summary_of(replace(case, topics=topic_facts(source, case, {}, ())))["tables"]
        return row["next_row"]["value"]["outcome"], row["next_row"]["value"]["reason"]

    assert foretold() == ("not_checked", "the subject is new. The registry changes only by releases.")
    prod.update(is_closed=False)
    set_mode(registry="prod", subject=None, mode="READONLY", by=system)
    assert foretold() == ("not_checked", "the subject is new. The mode rejects new schemas.")
    set_mode(registry="prod", subject=None, mode="READWRITE", by=system)
    assert foretold() == ("registered", "")
    set_mode(registry="prod", subject=None, mode="IMPORT", by=system)
    assert foretold() == ("not_checked", "the subject is new. Its mode is IMPORT.")


def test_a_source_without_its_connector_says_so(registries: None) -> None:
    source = make_source(kind="debezium", name="shop")
    with pytest.raises(SchemadeskError, match="has no connector"):
        DebeziumConnector().scan(source, tag="scan-1", on_progress=lambda *_: None)


FOLDER = Path(__file__).parent / "judging_cases"
CASES: list[dict[str, Any]] = [
    case for path in sorted(FOLDER.glob("*.yaml")) for case in yaml.safe_load(path.read_text("utf-8"))
]


def places_are_read(rule: str, evidence: dict[str, Any]) -> None:
    """What names partitions names them as all readers of evidence take them: keeping, the page, and what is suspected."""
    partitions = evidence.get("partitions", [])
    assert len(without_hours(partitions)) == len(partitions)
    shown = [row for table in evidence_tables(rule, evidence) for row in table.rows]
    assert len(shown) >= len(partitions[:SHOWN_ROWS])
    now = datetime.now(UTC)
    assert began_at(now, evidence) <= now


@pytest.mark.requirement("DEB-2", "DEB-3", "DEB-4", "DEB-5", "DEB-6", "DEB-7")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case(case: dict[str, Any]) -> None:
    case_world = world(case)
    findings = judge_debezium(case_world)
    assert [finding.rule for finding in findings] == [expected["rule"] for expected in case["findings"]]
    for finding, expected in zip(findings, case["findings"], strict=True):
        assert finding.severity == expected.get("severity", RULES[finding.rule].severity)
        assert finding.location == expected.get("location", finding.location)
        for part in expected.get("says", []):
            assert part in finding.sentence
        for part in expected.get("cure", []):
            assert part in finding.remedy
        assert {name: finding.evidence[name] for name in expected.get("evidence", {})} == expected.get("evidence", {})
        assert not {"{", "}", "None"} & set(finding.sentence.split()), finding.sentence
        assert "{" not in finding.sentence + finding.remedy
        json.dumps(finding.evidence, allow_nan=False)
        places_are_read(finding.rule, finding.evidence)
    assert len({finding.fingerprint for finding in findings}) == len(findings)
    shown = summary_of(case_world)
    json.dumps(shown, allow_nan=False)
    for name, expected in case.get("shows", {}).items():
        (row,) = [row_ for row_ in shown["tables"] if row_["table"] == name]
        assert {key: row[key] for key in expected} == expected


def test_every_rule_has_a_case_with_it_and_none_is_in_a_clean_one() -> None:
    # A connector that was removed leaves nothing to judge: tested with a real one.
    assert {expected["rule"] for case in CASES for expected in case["findings"]} == set(RULES) - {"CONNECTOR_REMOVED"}
    assert sum(not case["findings"] for case in CASES) >= 8
