"""Sample pages of clusters, sources and scans."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from dashboard.components.forms import ConfirmPage, fill_choices
from dashboard.components.widgets import Choice, Crumb, Fact, Filter, Paging, SearchBox, Section
from dashboard.sources.cluster_forms import ClusterForm, ClusterTestForm
from dashboard.sources.forms import DiscoverForm, RemoveSourceForm, SourceEditForm, SourceForm
from dashboard.sources.inventory import TopicRow, TopicTable, advice_of, connector_of
from dashboard.sources.labels import source_badge, source_badges
from dashboard.sources.page import ScanRow, SourceGroup, SourceList, SourcePage, SourceRow
from dashboard.sources.views import ClusterPage, DiscoverPage, FoundRow, SourceFormPage
from registry.checkpoints import Discovery, Found
from registry.drift.selectors import ClusterInfo, ScanInfo, SourceInfo, TopicInfo
from registry.drift.sources import SOURCES
from tests.site.samples import drift
from tests.site.samples.cast import DEV, HOSTILE, LONG, NOW, PROD, ago, frame

TOP = Crumb(label="Sources", url="/ui/sources")
READER = "You need the admin or steward role to add and edit scan sources."
READ: dict[str, Any] = {
    "nothing": False, "messages": 5120, "bytes": 34_500, "seconds": 4.1, "topics_asked": 12, "topics_read": 3, "tombstones": 2,
    "partitions": [{"topic": "orders", "partition": n, "start": 0, "end": end, "messages": end} for n, end in enumerate((1731, 1702, 1687))],
    "ids": [
        {"topic": "orders", "side": "value", "framing": "id", "schema_id": 9, "messages": 3913},
        {"topic": HOSTILE, "side": "value", "framing": "id", "schema_id": 9001, "messages": 1},
    ],
}  # fmt: skip
PARTLY = READ | {
    "bound_reached": "messages",
    "unreadable": [{"topic": "orders.dlq", "reason": "no ACL"}, {"topic": HOSTILE, "reason": HOSTILE}],
    "expired": [{"topic": "orders", "partition": 0, "start": 0, "end": 1204}],
}
RESULT: dict[str, Any] = {
    "nothing": False,
    "seconds": 1.2,
    "variables": [{"variable": "totals", "operator": 0}],
    "rows": 1204,
}


def scan(number: int = 41, state: str = "done", **more: Any) -> ScanInfo:
    """A sample scan."""
    base = ScanInfo(
        id=number, source_id=1, state=state, queued_at=ago(minutes=3), queued_by="schedule", started_at=ago(minutes=2, seconds=12),
        finished_at=ago(minutes=2), phase="", progress_done=0, progress_total=0, read=READ if state == "done" else None, error="", detector=7,
    )  # fmt: skip
    return replace(base, **more)


def source(name: str, kind: str = "kafka", *, number: int = 1, **more: Any) -> SourceInfo:
    """A sample source; one of topics reads the cluster `local`."""
    topics = kind in ("kafka", "debezium")
    base = SourceInfo(
        id=number, registry="dev", context="", kind=kind, name=name, cluster="local" if topics else "",
        bootstrap="127.0.0.1:9092" if topics else "", include=(), exclude=(), mode="since_last", tail_messages=10_000,
        window_seconds=86_400, max_messages=1_000_000, max_bytes=2**31, max_seconds=300, keep_samples=True, clean_scans=2,
        every_seconds=300, next_scan_at=NOW + timedelta(minutes=3), topics=12 if topics else 0, open_findings=0, last_scan=scan(),
    )  # fmt: skip
    return replace(base, **more)


FAILED = scan(
    39,
    "failed",
    error="The Kafka cluster at broker-2:9092 doesn’t answer within 8 s.",
    started_at=ago(hours=3, seconds=8),
    finished_at=ago(hours=3),
)
RUNNING = scan(
    42,
    "running",
    phase="Reading 3 partitions",
    progress_done=2,
    progress_total=5,
    started_at=ago(seconds=7),
    finished_at=None,
    queued_by="steward",
)
QUEUED = scan(43, "queued", started_at=None, finished_at=None, queued_at=ago(seconds=1))
EMPTY = scan(40, read={"nothing": True})  # fmt: skip
ORDERS = source("orders", include=("orders*",), exclude=("*-changelog",), context=".shop", open_findings=4)
CHECKPOINT = source(
    "/var/lib/schemadesk/demo/checkpoints/order-totals",
    "state_store",
    number=2,
    open_findings=1,
    last_scan=scan(read=RESULT),
)
LOCAL = ClusterInfo(
    id=1, name="local", bootstrap="127.0.0.1:9092", security_protocol="PLAINTEXT", sasl_mechanism="", username="", secret="", ca_pem="",
    created_at=ago(days=9), created_by="steward", sources=2,
)  # fmt: skip
PAYMENTS = replace(
    LOCAL, id=2, name="payments", bootstrap="broker-1.payments.example.com:9093,broker-2.payments.example.com:9093",
    security_protocol="SASL_SSL", sasl_mechanism="SCRAM-SHA-512", username="schemadesk", ca_pem="-----BEGIN CERTIFICATE-----", sources=0,
)  # fmt: skip


def row(info: SourceInfo, *, refused: str = "") -> SourceRow:
    """A sample row."""
    return SourceRow(info=info, environment=PROD if info.registry == "prod" else DEV, refused=refused)


SOURCE_LIST = SourceList(
    frame=frame("Sources", Section.SOURCES),
    groups=(
        SourceGroup(title="local", cluster=LOCAL, rows=(
            row(ORDERS),
            row(source("shop-connector", "debezium", include=("shop.public.*",), topics=4, last_scan=RUNNING), refused="Scan 42 is running."),
            row(source("returns", include=("returns",), mode="tail", every_seconds=None, next_scan_at=None, last_scan=EMPTY)),
        )),
        SourceGroup(title="payments", cluster=PAYMENTS, rows=(row(source("payments.v2", registry="prod", topics=214, last_scan=FAILED)),)),
        SourceGroup(title=HOSTILE, cluster=replace(LOCAL, name=HOSTILE, bootstrap=f"{LONG}:9092"), rows=()),
        SourceGroup(title="State of Spark queries", rows=(
            row(CHECKPOINT),
            row(source(f"/data/{HOSTILE}", "state_store", registry="prod", every_seconds=None, next_scan_at=None, last_scan=None)),
        )),
        SourceGroup(title="Registries", rows=(row(source("prod", "registry", registry="prod", last_scan=scan(read={"advice": [], "seconds": 0.1}))),)),
    ),
    manage_refused="",
    connect_refused="",
    coverage=f"214 of 230 topics scanned in the last 24 h; 3 unreadable: orders.dlq, {HOSTILE}, payments.audit; 1 can’t be read: payments.v2.",
)  # fmt: skip
SOURCE_LIST_EMPTY = replace(SOURCE_LIST, groups=(), coverage="", frame=frame("Sources", Section.SOURCES, busy=False))
SOURCES_READER = replace(
    SOURCE_LIST, manage_refused=READER, connect_refused=READER, narrow="Only sources in registries that you can read are shown.",
    groups=tuple(replace(group, rows=tuple(replace(each, refused=READER) for each in group.rows)) for group in SOURCE_LIST.groups),
)  # fmt: skip


def new_form(kind: str, data: dict[str, str] | None = None) -> SourceForm:
    """The form of a new source, with what can be chosen."""
    form = SourceForm(data, kind=SOURCES[kind])
    fill_choices([form], registry=["dev", "prod"], cluster=["local", HOSTILE])
    return form


SOURCE_ADD = SourceFormPage(
    frame=frame("Add a source", Section.SOURCES, TOP), form=new_form("kafka"), back_url="/ui/sources", kind=source_badge("kafka"), kinds=source_badges()
)  # fmt: skip
_OUTSIDE = new_form("state_store", {"kind": "state_store", "name": HOSTILE, "registry": "dev", "endpoint": HOSTILE})
_OUTSIDE.add_error("name", f"{HOSTILE} is outside the allowed folders.")
SOURCE_ADD_STATE = replace(SOURCE_ADD, form=_OUTSIDE, kind=source_badge("state_store"), discovers=True)
SOURCE_ADD_READER = replace(SOURCE_ADD, refused=READER)
SOURCE_EDIT = SourceFormPage(
    frame=frame(f"Edit {HOSTILE}", Section.SOURCES, TOP),
    form=SourceEditForm(source=replace(ORDERS, context=HOSTILE, every_seconds=17)), refused=READER, back_url="/gallery/source", kind=source_badge("kafka"),
    lede="Patterns apply from the next scan. Excluded topics keep their findings and read positions.",
)  # fmt: skip

REMOVE = ConfirmPage(
    frame=frame("Remove orders", Section.SOURCES, TOP, Crumb(label="orders", url="/gallery/source", code=True)), form=RemoveSourceForm(),
    sentence="orders will no longer be scanned. You can’t undo this.", back_url="/gallery/source",
    losses=("its findings (4 open) and all decisions about them", "its scans", "the read positions of 12 topics and their data on version usage"),
    stays=("the data: nothing is written to topics, checkpoints or databases", "the audit log of decisions"),
)  # fmt: skip
_RUNS = RemoveSourceForm({})
_RUNS.add_error(None, "A scan of orders is running. Cancel it, or wait until it ends.")
REMOVE_REFUSED = replace(REMOVE, sentence=f"{HOSTILE} will no longer be scanned.", form=_RUNS, refused=READER)

CLUSTER = ClusterPage(
    frame=frame("Connect a cluster", Section.SOURCES, TOP), form=ClusterForm(), back_url="/ui/sources", label="Connect"
)
SENT = {
    "name": HOSTILE,
    "bootstrap": f"{HOSTILE}:9093",
    "security_protocol": "SASL_SSL",
    "secret": HOSTILE,
    "ca_pem": "-----BEGIN CERTIFICATE-----",
}
CLUSTER_ANSWERS = replace(
    CLUSTER, form=ClusterTestForm(SENT), is_read=True, answered="Found 3 brokers and 214 topics. Nothing was saved."
)
_AWAY = ClusterTestForm(SENT)
_AWAY.add_error(None, f"No Kafka broker answers at {HOSTILE}:9093 (Connection refused). Check the address.")
CLUSTER_FAILS = replace(CLUSTER, form=_AWAY)
CLUSTER_FORBIDDEN = replace(CLUSTER, refused="You need the admin or steward role to add and edit clusters.")


def topic(name: str, **more: Any) -> TopicRow:
    """A sample topic."""
    base = TopicInfo(
        name=name, partitions=3, compacted=False, retention_ms=7 * 86_400_000, retention_bytes=None, positions={}, strategies={}, subjects={},
        messages=0, problem="", discovered_at=ago(days=9), checked_at=ago(minutes=2), read_at=None, gone_at=None, open_findings=0,
    )  # fmt: skip
    return TopicRow(info=replace(base, **more), registry="dev")


TOPICS = TopicTable(
    search=SearchBox(
        url="/ui/sources/1", label="Search topics",
        filters=(Filter(name="show", label="Which topics", choices=(Choice(value="", label="All topics", selected=True, count=230), Choice(value="problem", label="Unreadable", count=3))),),
    ),
    rows=(
        topic(
            "orders", messages=5120, positions={0: 1731, 1: 1702, 2: 1687}, read_at=ago(minutes=2), open_findings=4,
            strategies={"key": ("topic_name",), "value": ("topic_name", "topic_record_name")},
            subjects={"key": ("orders-key",), "value": ("orders-value", "orders-shop.OrderPaid")},
        ),
        topic("orders.dlq", partitions=12, retention_ms=None, problem="Not authorized to read topic orders.dlq: give the user schemadesk the ACL Read on Topic orders.dlq, and Describe."),
        topic("orders-compacted", partitions=40, compacted=True, messages=1_204_331, positions={n: 1700 + n for n in range(40)}, read_at=ago(hours=3)),
        topic(HOSTILE, partitions=1, retention_ms=-1, gone_at=ago(days=2), subjects={"value": (HOSTILE,)}),
        topic(LONG, partitions=1, retention_bytes=2**30, messages=7, positions={0: 7}, read_at=ago(days=2)),
    ),
    paging=Paging(first=1, last=5, total=230, next_url="/ui/sources/1?offset=50"),
    total=230,
    patterns="orders*, without *-changelog",
)  # fmt: skip


def progress(info: ScanInfo, kind: str = "kafka", *, refused: str = "") -> ScanRow:
    """A sample scan as the page of its source shows it."""
    return ScanRow(info=info, kind=kind, is_shown=True, refused=refused)


DONE = scan(read=PARTLY)
SCANS = (progress(DONE), ScanRow(info=EMPTY, kind="kafka"), ScanRow(info=FAILED, kind="kafka"))
SOURCE = SourcePage(
    frame=frame("orders", Section.SOURCES, TOP, code=True), info=ORDERS, environment=DEV,
    facts=(Fact(label="Cluster", value="127.0.0.1:9092", code=True), Fact(label="Schedule", value="every 5 minutes")),
    scan_refused="", manage_refused="", progress=progress(DONE), scans=SCANS, findings=drift.FINDINGS[:3], topics=TOPICS,
)  # fmt: skip
SOURCE_OLDER = replace(SOURCE, progress=progress(FAILED))
SOURCE_READER = replace(SOURCE, scan_refused=READER)
SOURCE_RUNNING = replace(
    SOURCE, info=replace(ORDERS, last_scan=RUNNING), progress=progress(RUNNING), scan_refused="Scan 42 is running."
)
SOURCE_QUEUED = replace(
    SOURCE, info=replace(ORDERS, last_scan=QUEUED), progress=progress(QUEUED, refused=READER), scans=(), findings=(), scan_refused="Scan 43 is queued."
)  # fmt: skip
SOURCE_NEVER = replace(
    SOURCE, info=replace(ORDERS, last_scan=None, next_scan_at=None), progress=None, scans=(), findings=(), topics=None
)
SOURCE_NO_TOPIC = replace(
    SOURCE_NEVER, topics=replace(TOPICS, rows=(), total=0, paging=Paging(first=0, last=0)), manage_refused=READER
)
SOURCE_NO_MATCH = replace(
    SOURCE, topics=replace(TOPICS, rows=(), paging=Paging(first=0, last=0), search=replace(TOPICS.search, query="zz"))
)
SOURCE_EMPTY = replace(SOURCE, info=replace(ORDERS, last_scan=EMPTY), progress=progress(EMPTY), findings=())
SOURCE_FAILED = replace(SOURCE, info=replace(ORDERS, last_scan=FAILED), progress=progress(FAILED), findings=())

CONNECTOR: dict[str, Any] = READ | {
    "connector": {
        "name": "shop-connector", "state": "RUNNING", "worker": "connect-1:8083", "prefix": "shop", "tombstones": True,
        "converters": {"value": "io.confluent.connect.avro.AvroConverter"}, "not_understood": ("transforms.route.regex: a look-behind",),
        "tasks": ({"number": 0, "state": "FAILED", "worker": "connect-1:8083", "reason": f'PSQLException: replication slot "shop" is active for PID 4711 {HOSTILE}'},),
    },
    "database": {"name": "shop", "version": "17.2", "wal_level": "logical"},
    "slot": {"name": "shop", "active": False, "lag_bytes": 1_288_490_189, "wal_status": "extended", "safe_bytes": 851_443_712},
    "tables": (
        {
            "table": "public.customers", "topic": "shop.public.customers", "state": "drift", "published": True, "behind": ("registered",),
            "identity_sentence": "Replica identity DEFAULT: before is the primary key alone. Consumers see no old values of updates and deletes.",
            "changes": ({"column": "email", "change": "added"}, {"column": "phone", "change": "renamed", "becomes": "mobile"}),
            "events": {"c": 1204, "u": 88, "d": 3}, "tombstones": 3,
            "next_row": {"value": {"outcome": "refused", "reason": f"Field email has no default. {HOSTILE}"}, "key": {"outcome": "unchanged", "reason": ""}},
        },
        {
            "table": "public.audit", "topic": "shop.public.audit", "state": "unknown", "published": False, "known": ("table",),
            "identity_sentence": "Replica identity NOTHING: before is empty. Key: none.", "refused": ("UPDATE", "DELETE"), "row_filter": "(id > 0)",
        },
        {"table": HOSTILE, "topic": "", "state": "shared", "published": True, "left_out": ({"column": "secret", "why": "column.exclude.list"},)},
        {"table": "public.orders", "topic": "shop.public.orders", "state": "in_step", "published": True, "events": {"r": 12, "t": 1}, "key_changes": 2},
    ),
    "tables_left_out": 4,
}  # fmt: skip
SOURCE_DEBEZIUM = replace(
    SOURCE, info=replace(ORDERS, kind="debezium", name="shop-connector"), connector=connector_of(scan(read=CONNECTOR)),
    frame=frame("shop-connector", Section.SOURCES, TOP, code=True),
)  # fmt: skip
ADVICE = scan(read={"seconds": 0.1, "advice": [
    {"sentence": "Compatibility NONE is not in use.", "followed": "yes", "known_from": "the registry's settings"},
    {"sentence": f"The production registry is READONLY. {HOSTILE}", "followed": "no", "known_from": "the registry's modes and its position in the environment order", "findings": 1},
    {"sentence": "Clients don't register schemas automatically (auto.register.schemas=false).", "followed": "not known", "known_from": "versions that came through REST and were written at once"},
    {"sentence": "Kafka clients have no right to create versions.", "followed": "does not apply", "known_from": "the roles of accounts with API tokens"},
]})  # fmt: skip
SOURCE_REGISTRY = replace(
    SOURCE, info=source("prod", "registry", registry="prod", last_scan=ADVICE), environment=PROD, advice=advice_of(ADVICE), findings=(), topics=None,
    progress=progress(ADVICE, "registry"), frame=frame("prod", Section.SOURCES, TOP),
)  # fmt: skip


def search_form(**sent: str) -> DiscoverForm:
    """The form that searches."""
    form = DiscoverForm({"registry": "dev", "every_seconds": "", **sent} if sent else None)
    fill_choices([form], registry=["dev", "prod"])
    return form


DISCOVER = DiscoverPage(
    frame=frame("Find checkpoints", Section.SOURCES, TOP), form=search_form(), back_url="/ui/sources/add"
)
FOUND = (
    FoundRow(info=Found("/checkpoints/order_totals", None, None)),
    FoundRow(info=Found(HOSTILE, None, HOSTILE)),
    FoundRow(info=Found(LONG, None, None), source=1),
)
DISCOVERED = replace(
    DISCOVER, form=search_form(path="/checkpoints", endpoint=HOSTILE), rows=FOUND,
    discovery=Discovery(found=tuple(each.info for each in FOUND), folders=9, ended_early=None, passed_over=(f"/checkpoints/{HOSTILE}: not allowed to look into it",)),
)  # fmt: skip
DISCOVERED_NOTHING = replace(
    DISCOVER,
    form=search_form(path="/none"),
    discovery=Discovery(found=(), folders=1, ended_early="10,000 folders", passed_over=()),
)
_SHUT = search_form(path=HOSTILE)
_SHUT.add_error(None, f"The object store at {HOSTILE} doesn’t answer.")
DISCOVER_REFUSED = replace(DISCOVER, form=_SHUT, refused=READER)
