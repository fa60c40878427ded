"""Sample pages: the map of what flows where."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from dashboard.components.widgets import ActiveFilter, Choice, Environment, Field, Filter, Link, SearchBox, Section
from dashboard.lineage.nodes import MapFlow, MapNode, MapRow
from dashboard.lineage.page import MapFields, MapPage
from registry.lineage.graph import LineageEdge, LineageNode
from tests.site.samples.cast import ARABIC, DEV, HOSTILE, LONG, PROD, ago, frame
from tests.site.samples.fields import IMPACT

PLACES = {"dev": DEV, "prod": PROD}


def node(kind: str, name: str, *versions: int, health: str = "", **more: object) -> MapNode:
    """A node in dev; its id is its kind and the beginning of its name."""
    members, unknowns = more.get("members", 0), more.get("unknowns", ())
    place: Environment = PLACES[str(more.get("place", "dev"))]
    info = LineageNode(
        f"{kind}:{name[:40]}", kind, name, place.name, "1", health=health, versions=versions, unknowns=unknowns,  # type: ignore[arg-type]
        seen_at=None if health == "not scanned" else ago(hours=2), members=members,  # type: ignore[arg-type]
    )  # fmt: skip
    return MapNode(info, place, "/gallery/map", "" if members else "/gallery/map", versions)


def rows(nodes: dict[str, MapNode], flows: str) -> tuple[MapRow, ...]:
    """Rows of nodes with flows, each as `from>to:evidence`."""
    edges = []
    for flow in flows.split():
        ends, _, evidence = flow.partition(":")
        source, target = ends.split(">")
        versions = (3,) if evidence == "messages" else ()
        seen_at = None if evidence == "name" else ago(hours=2)
        edges.append(
            (source, target, LineageEdge(nodes[source].info.id, nodes[target].info.id, evidence, seen_at, versions))
        )
    return tuple(
        MapRow(
            shown,
            tuple(MapFlow(edge, nodes[source]) for source, target, edge in edges if target == key),
            tuple(MapFlow(edge, nodes[target]) for source, target, edge in edges if source == key),
        )
        for key, shown in nodes.items()
    )


NODES = {
    "t1": node("table", "shop.public.orders"),
    "t2": node("table", "shop.public.customers"),
    "c": node("connector", "shop-connector", health="ok"),
    "p": node("producer", "checkout-service"),
    "o": node("topic", "shop.public.orders", health="ok"),
    "u": node("topic", "shop.public.customers", health="risk"),
    "k": node("topic", "clickstream-of-all-web-shops-in-europe", health="not scanned", unknowns=("subject",)),
    "h": node("topic", HOSTILE, health="not scanned"),
    "so": node("subject", "shop.public.orders-value", 3, health="break"),
    "sk": node("subject", "shop.public.orders-key", 1, health="ok"),
    "su": node("subject", "shop.public.customers-value", 2, 4, health="risk"),
    "sh": node("subject", ARABIC, health="not scanned", place="prod"),
    "q": node("query", "order-totals", health="ok"),
    "x": node("sink", "parquet[/data/order-totals]"),
    "b": node("consumer", "billing", 3),
    "l": node("consumer", LONG),
    "v": node("state", "totals"),
    "w": node("state", "last_order_of_each_customer"),
}
FLOWS = (
    "t1>c:connector t2>c:connector c>o:connector c>u:connector p>so:declared o>so:messages o>sk:messages u>su:messages "
    "h>sh:name so>q:checkpoint su>q:checkpoint k>q:checkpoint so>b:declared su>b:declared su>l:declared q>v:state q>w:state q>x:description"
)
SEARCH = SearchBox(
    url="/gallery/map",
    label="Search the map",
    placeholder="orders",
    filters=(
        Filter(name="registry", label="Environment", choices=(Choice(value="", label="All environments"), Choice(value="dev", label="dev"))),
        Filter(name="owner", label="Owner", choices=(Choice(value="", label="Any owner"), Choice(value="user:ada", label="ada"))),
        Filter(name="distance", label="Distance", choices=(Choice(value="", label="Any distance"), Choice(value="1", label="1 step"))),
    ),
    fields=(Field(name="focus", label="Around", placeholder="subject:dev:orders-value"),),
)  # fmt: skip
MAP = MapPage(frame=frame("Map", Section.MAP, current=None), search=SEARCH, rows=rows(NODES, FLOWS), total=len(NODES))
NARROWED = replace(
    SEARCH, query="nothing", active=(ActiveFilter(label="around: subject:dev:orders", url="/gallery/map"),)
)
FIELD_LINKS = tuple(
    Link(label=path, url="/gallery/map-field") for path in ("Order.id", "Order.email", f"Order.{LONG}", HOSTILE)
)
MAP_FIELD = replace(
    MAP,
    fields=MapFields(
        subject="orders-value",
        links=FIELD_LINKS,
        all_url="/gallery/subject",
        whole_url="/gallery/map",
        chosen="Order.email",
        more=40,
    ),
    impact=IMPACT,
)
MAP_FIELDS = replace(MAP, fields=replace(MAP_FIELD.fields, chosen=HOSTILE))
MAP_EMPTY = replace(MAP, rows=(), total=0)
MAP_NO_MATCH = replace(MAP, search=NARROWED, rows=())
GROUPS = {
    f"{kind}{area}": node(kind, area, members=40 + number, health="risk" if number == 2 else "ok")
    for kind in ("topic", "subject")
    for number, area in enumerate(("shop", "stock", "returns", "web", "payments", "search", "mail", "crm"))
}
GROUP_FLOWS = " ".join(f"topic{area}>subject{area}:messages" for area in ("shop", "stock", "returns", "web", "payments", "search", "mail", "crm"))  # fmt: skip
BRANCHES = {f"s{number}": node("consumer", f"reader-{number}", number) for number in range(1, 7)}
MAP_FOLDED = replace(
    MAP,
    rows=rows(
        GROUPS | BRANCHES,
        " ".join(chain([GROUP_FLOWS], (f"subjectshop>{name}:declared" for name in BRANCHES))),
    ),
    total=732,
    left_out=12,
)
