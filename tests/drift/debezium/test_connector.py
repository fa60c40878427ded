"""A connector's configuration and status, as Kafka Connect's REST API tells them."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard.demo.connectors import CONVERTERS, Login, conversion, debezium
from registry.drift.debezium.connect import read_connector
from registry.drift.debezium.connector import ConnectorConfig, read_config, read_status
from registry.errors import AddressRefused, InvalidInput, InvalidSecret, InvalidSource, RemoteUnavailable
from tests.access.fake_server import Call, Told, serving
from tests.drift.debezium.worlds import CONFIG

STATUS = {
    "name": "shop",
    "connector": {"state": "RUNNING", "worker_id": "a:1"},
    "tasks": [{"id": 0, "state": "FAILED", "worker_id": "a:1", "trace": "java.lang.X"}],
}


def config(**more: str) -> ConnectorConfig:
    return read_config({**CONFIG, **{name.replace("__", "."): value for name, value in more.items()}})


def test_defaults_are_the_connectors_own() -> None:
    found = read_config({"connector.class": CONFIG["connector.class"], "topic.prefix": "p"})
    assert (found.decimals, found.times, found.binaries) == ("precise", "adaptive", "bytes")
    assert (found.skipped, found.tombstones, found.plugin) == (frozenset("t"), True, "decoderbufs")
    assert (found.schema_names, found.field_names) == ("none", "none")
    assert (found.key_converter, found.value_converter) == ("worker", "worker")
    assert found.not_understood == ()


@pytest.mark.parametrize("converter", CONVERTERS)
def test_our_own_connectors_are_understood(converter: Any) -> None:
    login = Login(1, "user", "the-password", "db")
    given = debezium(login, prefix="p", publication="everything", more=conversion(converter))
    found = read_config(given)
    assert found.not_understood == ()
    assert found.value_converter == {"json": "json", "json_schema": "json_with_schema", "avro": "avro"}[converter]
    assert "the-password" not in repr(found)


def test_what_is_not_understood_is_said_and_the_default_taken() -> None:
    found = config(
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
    assert found.decimals == "precise"
    assert [text.partition(":")[0].partition("=")[0] for text in found.not_understood] == [
        "transforms.a (com.example.Mine)",
        "transforms.b",
        "transforms.c",
        "decimal.handling.mode",
        "topic.naming.strategy",
        "converters",
    ]
    assert found.topic_after("shop.public.a") is None


def test_transforms_in_their_order() -> None:
    found = config(
        transforms="unwrap, route",
        transforms__unwrap__type="io.debezium.transforms.ExtractNewRecordState",
        transforms__unwrap__add__fields="op,source.ts_ms:at",
        transforms__route__type="org.apache.kafka.connect.transforms.RegexRouter",
        transforms__route__regex=r"shop\.(.*)",
        transforms__route__replacement="eu.$1",
    )
    assert found.unwrapped
    assert found.transforms[0].added_fields == ("__op", "__at")
    assert found.topic_after("shop.public.a") == "eu.public.a"
    assert found.topic_after("other") == "other"


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"connector.class": "io.debezium.connector.mysql.MySqlConnector", "topic.prefix": "p"},
        {"connector.class": CONFIG["connector.class"]},
        {"connector.class": 7, "topic.prefix": None},
        {str(number): "x" for number in range(3000)},
    ],
)
def test_what_cannot_be_read_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidSource):
        read_config(given)


@pytest.mark.parametrize("given", [{}, {"connector": 1, "tasks": {}}, {"tasks": [1, {"state": None, "id": "x"}]}])
def test_a_strange_status_is_read_as_far_as_it_goes(given: dict[str, Any]) -> None:
    assert read_status(given).failed_tasks == ()


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
        found, status = read_connector(url=url, name="my shop", user="u", secret="connect")
        assert (found.prefix, status.state) == ("shop", "RUNNING")
        assert [(task.number, task.trace) for task in status.failed_tasks] == [(0, "java.lang.X")]
        assert {call.headers["authorization"] for call in server.calls} == {"Basic dTpwdw=="}
        with pytest.raises(InvalidSource, match="has no connector 'other'"):
            read_connector(url=url, name="other")
        with pytest.raises(InvalidSecret):
            read_connector(url=url, name="my shop", secret="missing")


@pytest.mark.parametrize(
    ("told", "says"),
    [
        (Told(401), "give a user and a secret"),
        (Told(500), "answers 500"),
        (Told(200, b"[]"), "no JSON object"),
        (Told(200, b"{" * 100_000), "is no JSON"),
        (Told(302, b"", {"Location": "http://169.254.169.254/"}), "redirect"),
        (Told(200, b" " * (3 * 1024 * 1024)), "more than"),
    ],
)
def test_a_server_that_answers_otherwise(allowed: None, told: Told, says: str) -> None:
    with serving(lambda _: told) as server, pytest.raises(RemoteUnavailable, match=says):
        read_connector(url=f"http://127.0.0.1:{server.port}", name="shop")


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://169.254.169.254/latest", "file:///etc/passwd", "x"])
def test_an_address_that_is_not_allowed(settings: Any, url: str) -> None:
    settings.EGRESS_ALLOW = []
    with pytest.raises((AddressRefused, InvalidInput)):
        read_connector(url=url, name="shop")
