"""The source kind without a broker: what it takes, which topics it reads, and which schema is the newest."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from registry.drift.models import SchemaUse
from registry.drift.sources.base import Given
from registry.drift.sources.debezium import DebeziumConnector, checked_connector, patterns_of
from registry.drift.sources.debezium_facts import newest_marks, newest_shapes
from registry.errors import AddressRefused, InvalidSource, SchemadeskError
from registry.observations import ChangeShape, FramedMessages, Span
from registry.subjects.models import Registry
from tests.access.fake_server import serving
from tests.drift.debezium.test_connector import STATUS
from tests.drift.debezium.worlds import CONFIG, world
from tests.drift.scans import make_source

WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "connect_url"),
    ({"connect_url": "http://127.0.0.1:1"}, "connector's name"),
    ({"connect_url": "http://127.0.0.1:1", "name": "shop", "color": "red"}, "no setting 'color'"),
    ({"connect_url": "http://127.0.0.1:1", "name": 7}, "name of a connector is text"),
    ({"connect_url": "http://127.0.0.1:1", "name": "shop", "database_port": "5432"}, "a whole number"),
    ({"connect_url": "http://127.0.0.1:1", "name": "shop", "database_port": True}, "a whole number"),
    ({"connect_url": "http://127.0.0.1:1", "name": "shop", "database_host": "h"}, "database_name and database_user"),
]


@pytest.mark.parametrize(("given", "says"), WRONG, ids=lambda value: str(value)[:40])
def test_fields_that_cannot_be(given: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidSource, match=says):
        checked_connector(given)


def test_a_connector_that_answers(settings: Any) -> None:
    answers = {"/connectors/shop/config": CONFIG, "/connectors/shop/status": STATUS}
    with serving(lambda call: answers.get(call.path)) as server:
        url = f"http://127.0.0.1:{server.port}"
        settings.EGRESS_ALLOW = ["127.0.0.1"]
        row = checked_connector({"connect_url": url, "name": "shop"})
        assert (row.pk, row.name, row.database_tls) == (None, "shop", True)
        settings.EGRESS_ALLOW = []
        with pytest.raises(AddressRefused):
            checked_connector({"connect_url": url, "name": "shop"})


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 2000])
def test_a_source_needs_a_name_and_a_cluster(name: str) -> None:
    registry = Registry(name="dev")
    with pytest.raises(InvalidSource, match="name"):
        DebeziumConnector().check(Given(registry, name))
    with pytest.raises(InvalidSource, match="cluster"):
        DebeziumConnector().check(Given(registry, "shop"))


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
    seen = [framed("2", 9, 2_000), framed("1", 4, 2_000), framed("3", 90, 1_500, partition=1)]
    assert newest_marks(source, ["t"], seen)["t", "value"] == ((2_000, 9), ("id", "2"))
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
    assert newest_marks(source, ["t"], seen)["t", "value"] == ((3_000, 10), ("id", "7"))
    assert newest_marks(source, ["t"], [*seen, framed("8", 11, 4_000)])["t", "value"][1] == ("id", "8")
    assert newest_marks(source, ["other"], []) == {}


def test_the_newest_shape_of_a_side() -> None:
    shapes = [
        ChangeShape("t", "value", "b", "new", span(5, 6, 2_000), 0),
        ChangeShape("t", "value", "a", "old", span(0, 4, 1_000), 0),
        ChangeShape("t", "key", "c", "key", span(0, 6, 2_000), 0),
    ]
    assert {where: text for where, (_, text) in newest_shapes(shapes).items()} == {
        ("t", "value"): "new",
        ("t", "key"): "key",
    }


def test_a_source_without_its_connector_says_so(registries: None) -> None:
    source = make_source(kind="debezium", name="shop")
    with pytest.raises(SchemadeskError, match="has no connector"):
        DebeziumConnector().scan(source, tag="scan-1", on_progress=lambda *_: None)
