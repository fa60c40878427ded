"""What flows where: every kind of node, what is known of each edge, who sees what, and parts of a large graph."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from registry.access.roles import Actor, Grant
from registry.drift.models import Source, Topic
from registry.errors import NotAllowed
from registry.lineage.graph import Lineage, LineageEdge, LineageNode, around, folded, lineage_of, narrowed
from registry.lineage.selectors import read_lineage
from registry.streams.models import StreamQuery
from registry.subjects.models import Registry
from tests.lineage.rows import make_flow

EVERYTHING = Actor("reader", "product", user_id=1, grants=(Grant("reader"),))
#: reads payments-value alone
NARROW = Actor("narrow", "product", user_id=1, grants=(Grant("reader", "dev", "payments-*"),))


@pytest.fixture
def flow(registries: None, system: Actor) -> dict[str, Any]:
    return make_flow(system)


def node(graph: Lineage, number: str) -> LineageNode:
    return next(item for item in graph.nodes if item.id == number)


def edges(graph: Lineage) -> dict[tuple[str, str], tuple[str, tuple[int, ...]]]:
    return {(edge.source, edge.target): (edge.evidence, edge.versions) for edge in graph.edges}


def test_every_kind_of_row_is_drawn_with_its_evidence(flow: dict[str, Any]) -> None:
    graph = read_lineage(EVERYTHING)
    shop, query, state = f"connector:{flow['shop']}", f"query:{flow['query']}", f"state:{flow['state']}"
    table, orders, subject = f"table:{flow['shop']}:shop.public.orders", "topic:dev:orders", "subject:dev:orders-value"
    assert edges(graph) == {
        (table, shop): ("connector", ()),
        (shop, orders): ("connector", ()),
        (orders, subject): ("messages", (2, 3)),
        ("topic:dev:payments", "subject:dev:payments-value"): ("name", ()),
        (subject, query): ("checkpoint", ()),
        ("topic:dev:clicks", query): ("checkpoint", ()),
        (query, state): ("state", ()),
        (subject, "consumer:dev:billing"): ("declared", (2,)),
        ("producer:dev:checkout", subject): ("declared", ()),
    }
    assert node(graph, subject).versions == (2, 3)
    assert node(graph, subject).owners == ("group:shop-team",)


def test_what_no_row_says_is_unknown_and_what_no_scan_read_is_not_scanned(flow: dict[str, Any]) -> None:
    graph = read_lineage(EVERYTHING)
    assert {item.id: item.unknowns for item in graph.nodes if item.unknowns} == {
        "topic:dev:logs": ("subject",),
        "topic:dev:clicks": ("subject",),
        f"query:{flow['query']}": ("sink",),
    }
    assert {item.id: item.health for item in graph.nodes if item.health} == {
        f"connector:{flow['shop']}": "ok",
        "topic:dev:orders": "ok",
        "topic:dev:payments": "not scanned",
        "topic:dev:logs": "ok",
        "topic:dev:clicks": "not scanned",
        "subject:dev:orders-value": "break",
        "subject:dev:payments-value": "not scanned",
        f"query:{flow['query']}": "ok",
    }
    assert not any("alone" in item.id for item in graph.nodes)


def test_a_query_without_inputs_says_that_its_sources_are_unknown(flow: dict[str, Any]) -> None:
    from registry.streams.models import QueryInput

    QueryInput.objects.all().delete()
    assert node(read_lineage(EVERYTHING), f"query:{flow['query']}").unknowns == ("sources", "sink")


def test_the_newest_description_of_a_query_names_its_sink(flow: dict[str, Any], system: Actor) -> None:
    query = StreamQuery.objects.get(pk=flow["query"])
    for sink in ("old", None, 'parquet[/data/\ud800"totals\n  \\'):
        description = {"schemadesk_spark": 1, "operators": [], "sink": sink, "columns": '\n  "sink": "false"'}
        query.descriptions.create(sent_by="tests", text=json.dumps(description, sort_keys=True, indent=2))
    graph = read_lineage(EVERYTHING)
    sink_node = node(graph, f"sink:{query.pk}")
    assert (sink_node.name, sink_node.unknowns) == ('parquet[/data/?"totals\n  \\', ())
    assert edges(graph)[f"query:{query.pk}", sink_node.id] == ("description", ())
    assert node(graph, f"query:{query.pk}").unknowns == ()
    query.descriptions.create(
        sent_by="tests", text=json.dumps({"sink": None, "operators": []}, sort_keys=True, indent=2)
    )
    assert node(read_lineage(EVERYTHING), f"query:{query.pk}").unknowns == ("sink",)
    assert not any(item.kind in ("query", "sink") for item in read_lineage(NARROW).nodes)


def test_a_topic_of_a_name_in_another_cluster_is_another_node(flow: dict[str, Any]) -> None:
    from registry.drift.models import Cluster

    other = Cluster.objects.create(name="other", bootstrap="127.0.0.1:2", created_by="tests")
    source = Source.objects.create(
        registry=Registry.objects.get(name="dev"), kind="kafka", name="other", cluster=other, created_by="tests"
    )
    Topic.objects.create(source=source, name="orders")
    assert node(read_lineage(EVERYTHING), f"topic:dev:orders@{other.pk}").health == "not scanned"


def test_a_reader_of_some_subjects_sees_their_part_alone(flow: dict[str, Any]) -> None:
    graph = read_lineage(NARROW)
    assert [item.id for item in graph.nodes] == ["topic:dev:payments", "subject:dev:payments-value"]
    assert graph.total == 2
    orders = replace(NARROW, grants=(Grant("reader", "dev", "orders-*"),))
    assert {item.id for item in read_lineage(orders).nodes} == {
        "topic:dev:orders",
        "subject:dev:orders-value",
        "consumer:dev:billing",
        "producer:dev:checkout",
    }
    with pytest.raises(NotAllowed):
        read_lineage(NARROW, registry="staging")
    with pytest.raises(NotAllowed):
        read_lineage(replace(NARROW, grants=()))


def test_a_registry_has_its_own_part(flow: dict[str, Any]) -> None:
    assert read_lineage(EVERYTHING, registry="staging").nodes == ()
    assert read_lineage(EVERYTHING, registry="dev").nodes == read_lineage(EVERYTHING).nodes


def test_the_number_of_queries_is_the_same_for_5000_nodes(flow: dict[str, Any]) -> None:
    with CaptureQueriesContext(connection) as few:
        read_lineage(EVERYTHING)
    source = Source.objects.get(kind="kafka")
    Topic.objects.bulk_create(
        Topic(source=source, name=f"t{number}", subjects={"value": ["orders-value"]}) for number in range(5_000)
    )
    with CaptureQueriesContext(connection) as many:
        graph = read_lineage(EVERYTHING)
    assert len(graph.nodes) > 5_000
    assert len(few) == len(many) == 12


def chain(*names: str) -> Lineage:
    kinds = {"t": "topic", "s": "subject", "q": "query", "c": "consumer"}
    nodes = [LineageNode(name, kinds[name[0]], name, "dev", health="ok") for name in names]
    return lineage_of(nodes, [LineageEdge(one, other, "name") for one, other in pairwise(names)])


def test_around_a_node_is_what_flows_into_it_and_out_of_it() -> None:
    graph = chain("t1", "s1", "q1", "c1")
    siblings = lineage_of(
        [*graph.nodes, LineageNode("s2", "subject", "s2", "dev")], [*graph.edges, LineageEdge("t1", "s2", "name")]
    )
    assert {item.id for item in around(siblings, {"s1"}).nodes} == {"t1", "s1", "q1", "c1"}
    assert {item.id for item in around(siblings, {"s1"}, 1).nodes} == {"t1", "s1", "q1"}
    assert {item.id for item in narrowed(siblings, text="S2").nodes} == {"t1", "s2"}
    assert narrowed(siblings, focus="missing").nodes == ()
    assert narrowed(siblings, owner="user:nobody").nodes == ()


def test_one_edge_has_the_best_evidence() -> None:
    now = timezone.now()
    both = [LineageEdge("t", "s", "name", None, (1,)), LineageEdge("t", "s", "messages", now, (2,))]
    assert lineage_of([], both).edges == (LineageEdge("t", "s", "messages", now, (1, 2)),)


def test_a_large_graph_folds_by_prefix_and_opens() -> None:
    nodes = [
        LineageNode(f"s:{area}{number}", "subject", f"{area}.{number}", "dev", health="risk" if not number else "ok")
        for area in ("shop", "stock")
        for number in range(200)
    ]
    topic = LineageNode("t", "topic", "t", "dev")
    graph = lineage_of([topic, *nodes], [LineageEdge("t", item.id, "name") for item in nodes])
    small = folded(graph)
    assert [(item.id, item.members, item.health) for item in small.nodes] == [
        ("t", 0, ""),
        ("group:subject:dev:shop", 200, "risk"),
        ("group:subject:dev:stock", 200, "risk"),
    ]
    assert (len(small.edges), small.total) == (2, 401)
    assert len(folded(graph, opened=["group:subject:dev:shop"]).nodes) == 202
    assert node(folded(graph, keep="s:stock7"), "s:stock7").name == "stock.7"


def test_many_groups_fold_again() -> None:
    names = [f"{area}.{number}" for area in range(400) for number in range(3)]
    graph = lineage_of([LineageNode(name, "subject", name, "dev") for name in names], [])
    assert [item.id for item in folded(graph).nodes] == ["group:subject:dev:"]
    opened = folded(graph, opened=["group:subject:dev:", "group:subject:dev:7"])
    assert len(opened.nodes) == 399 + 3


def test_the_api_gives_the_same_with_the_same_filters(
    flow: dict[str, Any], client: Client, token: Callable[[str], str]
) -> None:
    head = {"HTTP_AUTHORIZATION": f"Bearer {token('reader')}"}
    body = client.get("/api/v1/lineage", **head).json()
    assert {item["id"] for item in body["nodes"]} == {item.id for item in read_lineage(EVERYTHING).nodes}
    near = client.get("/api/v1/lineage?focus=subject:dev:orders-value&distance=1&registry=dev", **head).json()
    assert {item["kind"] for item in near["nodes"]} == {"producer", "topic", "subject", "query", "consumer"}
    assert near["total"] == body["total"]
    wrong = client.get("/api/v1/lineage?distance=9", **head)
    assert (wrong.status_code, "1, 2, 3" in json.dumps(wrong.json())) == (422, True)
    assert client.get("/api/v1/lineage").status_code == 401
