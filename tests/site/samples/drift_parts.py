"""Sample pages of drift's parts: topics, a connector, the checklist, clusters, mutes, decisions."""

from __future__ import annotations

from dataclasses import replace

from dashboard.components.badges import ScanState, Severity
from dashboard.components.widgets import (
    Action,
    Choice,
    Crumb,
    Fact,
    Field,
    Filter,
    Link,
    Paging,
    Problem,
    SearchBox,
    Section,
)
from dashboard.findings.presenters import Bulk
from dashboard.sources.presenters import (
    AdviceLine,
    AdviceState,
    Bar,
    BarTable,
    CapturedTable,
    ClusterForm,
    Command,
    ConfirmPage,
    ConnectorView,
    FieldGroup,
    HistoryRow,
    MutePage,
    MuteRow,
    TableState,
    Tally,
    TaskRow,
    TaskState,
    TopicRow,
    TopicSide,
    TopicTable,
)
from tests.site.samples import drift
from tests.site.samples.cast import DEV, HOSTILE, LONG, PROD, ago, frame
from tests.site.samples.comparison import AGAINST_LATEST
from tests.site.samples.environments import DRAFTS
from tests.site.samples.promotions import REQUESTS

SOURCES = Crumb(label="Sources", url="/ui/sources")
FINDINGS = Crumb(label="Findings", url="/ui/findings")
MANAGE = (
    Action(label="Edit scan settings", url="/ui/sources/1/edit", icon="pencil"),
    Action(label="Remove", url="/ui/sources/1/remove", icon="x", tone="danger"),
)
TOPICS = TopicTable(
    search=SearchBox(
        url="/ui/sources/1", label="Search topics",
        filters=(Filter(name="show", label="Which topics", choices=(Choice(value="", label="All topics", selected=True, count=230), Choice(value="problem", label="Unreadable", count=3))),),
    ),
    rows=(
        TopicRow(
            name="orders", partitions=3, keeps="7 days", messages=5120, read_to="0@1731 1@1702 2@1687", checked_at=ago(minutes=2),
            read_at=ago(minutes=2), open_findings=4, findings_url="/ui/findings?topic=orders", state=ScanState.DONE,
            sides=(
                TopicSide(side="key", strategies="TopicName", subjects=(Link(label="orders-key", url="/gallery/subject"),)),
                TopicSide(side="value", strategies="TopicName, TopicRecordName", subjects=(Link(label="orders-value", url="/gallery/subject"), Link(label="orders-shop.OrderPaid", url="/gallery/subject"))),
            ),
        ),
        TopicRow(
            name="orders.dlq", partitions=12, keeps="unknown", messages=0, read_to="", checked_at=ago(minutes=2), state=ScanState.FAILED,
            problem="Not authorized to read topic orders.dlq: give the user schemadesk the ACL Read on Topic orders.dlq, and Describe.",
        ),
        TopicRow(name="orders-compacted", partitions=40, keeps="compacted", messages=1_204_331, read_to="0@1731 1@1702 2@1687 3@1690 and 36 more partitions", read_at=ago(hours=3), checked_at=ago(minutes=2), state=ScanState.DONE),
        TopicRow(name=HOSTILE, partitions=1, keeps="forever", messages=0, read_to="", gone_at=ago(days=2)),
        TopicRow(name=LONG, partitions=1, keeps="1 day, 1 GiB per partition", messages=7, read_to="0@7", read_at=ago(days=2), checked_at=ago(days=2)),
    ),
    paging=Paging(first=1, last=5, total=230, next_url="/ui/sources/1?offset=50"),
    total=230,
    patterns="orders*, without *-changelog",
)  # fmt: skip
NOTES = (
    "The scan reached its limit of messages. The next scan continues from there.",
    f"2 topics couldn’t be read: orders.dlq, {HOSTILE}. The reasons are below.",
    "1,204 messages expired before a scan could read them: their content is unknown.",
)
SOURCE = replace(
    drift.SOURCE, topics=TOPICS, actions=MANAGE,
    progress=replace(drift.DONE, notes=NOTES),
    scans=tuple(replace(row, url=f"/gallery/source?scan={row.scan_id}", shown=row.scan_id == 41) for row in drift.SOURCE.scans),
)  # fmt: skip
SOURCE_OLDER = replace(SOURCE, older=True, newest_url="/gallery/source", progress=drift.FAILED)
SOURCE_NO_TOPIC = replace(
    drift.SOURCE_NEVER, topics=replace(TOPICS, rows=(), total=0, paging=Paging(first=0, last=0)),
    actions=tuple(replace(item, allowed=False, reason="You need the admin or steward role to add and edit scan sources.") for item in MANAGE),
)  # fmt: skip
SOURCE_NO_MATCH = replace(
    SOURCE, topics=replace(TOPICS, rows=(), paging=Paging(first=0, last=0), search=replace(TOPICS.search, query="zz"))
)

CONNECTOR = ConnectorView(
    name="shop-connector", state=TaskState.RUNNING, read_at=ago(minutes=2),
    tasks=(TaskRow(number=0, state=TaskState.FAILED, worker="connect-1:8083", trace="org.postgresql.util.PSQLException: ERROR: replication slot \"shop\" is active for PID 4711"),),
    facts=(
        Fact(label="Worker", value="connect-1:8083", code=True), Fact(label="Topic prefix", value="shop", code=True),
        Fact(label="Value converter", value="io.confluent.connect.avro.AvroConverter", code=True), Fact(label="Transforms", value="none"),
        Fact(label="Tombstones", value="written after deletes"), Fact(label="Database", value="shop, PostgreSQL 17.2, wal_level logical"),
    ),
    slot=(Fact(label="Slot", value="shop", code=True), Fact(label="In use", value="no"), Fact(label="Lag", value="1.2 GiB of write-ahead log"), Fact(label="Log", value="extended"), Fact(label="Remaining log", value="812 MiB")),
    slot_care="The slot has no reader: the database retains its log and its disk fills up until the slot is read.",
    not_understood=("transforms.route.regex: a look-behind",),
    tables=(
        CapturedTable(
            name="public.customers", topic="shop.public.customers", state=TableState.DRIFT, identity="default", published=True,
            identity_sentence="Replica identity DEFAULT: before is the primary key alone. Key: the primary key. Consumers see no old values of updates and deletes.",
            behind="the registered schema is behind", changes=("email added", "phone renamed → mobile"), operations=(("insert", 1204), ("update", 88), ("delete", 3), ("tombstone", 3)),
        ),
        CapturedTable(
            name="public.audit", topic="shop.public.audit", state=TableState.UNKNOWN, identity="nothing", published=False, known_sides="the table",
            identity_sentence="Replica identity NOTHING: before is empty. Key: none.", refused=("UPDATE", "DELETE"), row_filter="(id > 0)",
        ),
        CapturedTable(name=HOSTILE, topic="", state=TableState.SHARED, identity="full", published=True, identity_sentence="Replica identity FULL: before is the whole row.", left_out=("secret: column.exclude.list",)),
        CapturedTable(name="public.orders", topic="shop.public.orders", state=TableState.IN_STEP, identity="full", published=True, identity_sentence="Replica identity FULL: before is the whole row.", operations=(("snapshot", 12), ("truncate", 1), ("key change", 2))),
    ),
    tables_left_out=4,
)  # fmt: skip
SOURCE_DEBEZIUM = replace(
    SOURCE, kind=drift.DEBEZIUM, name="shop-connector", connector=CONNECTOR,
    frame=frame("shop-connector", Section.SOURCES, SOURCES, code=True),
)  # fmt: skip
ADVICE = (
    AdviceLine(sentence="The production registry is READONLY.", followed=AdviceState.NO, known_from="the registry's modes and its position in the environment order", findings=1),
    AdviceLine(sentence="Clients don't register schemas automatically (auto.register.schemas=false).", followed=AdviceState.NOT_KNOWN, known_from="versions that came through REST and were written at once"),
    AdviceLine(sentence="Compatibility NONE is not in use.", followed=AdviceState.YES, known_from="the registry's settings"),
    AdviceLine(sentence="Kafka clients have no right to create versions.", followed=AdviceState.DOES_NOT_APPLY, known_from="the roles of accounts with API tokens"),
)  # fmt: skip
SOURCE_REGISTRY = replace(
    drift.SOURCE, kind=drift.REGISTRY, name="prod", environment=PROD, advice=ADVICE, actions=MANAGE, findings=(),
    progress=replace(drift.DONE, summary="7 pieces of advice checked, 1 not followed in 0.1 s", read=()),
    frame=frame("prod", Section.SOURCES, SOURCES),
)  # fmt: skip

CLUSTER = ClusterForm(
    frame=frame("Connect a cluster", Section.SOURCES, SOURCES),
    groups=(
        FieldGroup(title="Where", fields=(
            Field(name="name", label="Name", required=True, help="The name shown here."),
            Field(name="bootstrap", label="Bootstrap servers", required=True, code=True, placeholder="broker-1:9093,broker-2:9093"),
            Field(name="security_protocol", label="Security protocol", kind="select", required=True, choices=(Choice(value="SASL_SSL", label="SASL_SSL: encryption and authentication"),)),
        )),
        FieldGroup(title="Sign-in", note="For SASL_SSL and SASL_PLAINTEXT.", fields=(
            Field(name="sasl_mechanism", label="SASL mechanism", kind="select", choices=(Choice(value="SCRAM-SHA-512", label="SCRAM-SHA-512"),)),
            Field(name="username", label="User", code=True),
            Field(name="secret", label="Secret name", code=True, help="The name alone, never the password."),
        )),
        FieldGroup(title="TLS", note="For SSL and SASL_SSL.", fields=(Field(name="ca_pem", label="Certificate authority", kind="textarea", rows=5, code=True, placeholder="-----BEGIN CERTIFICATE-----", help="PEM. Empty: the system’s certificate authorities."),)),
    ),
    submit=Action(label="Connect", url="/ui/clusters/add", method="post", tone="primary"),
    test=Action(label="Test connection", url="/ui/clusters/add", method="post"),
    secrets=("/run/secrets/schemadesk/NAME", "SCHEMADESK_SECRET_NAME"),
)  # fmt: skip
CLUSTER_ANSWERS = replace(
    CLUSTER,
    answered="Found 3 brokers and 214 topics. Nothing was saved.",
    warning="Its sources use the new settings from the next scan.",
)
CLUSTER_FAILS = replace(
    CLUSTER, secrets=("", "SCHEMADESK_SECRET_NAME"),
    problem=Problem(what=f"No Kafka broker answers at {HOSTILE}:9093 (Connection refused). Check the address and that the broker is "
        "running.", cure="Change the form below. Nothing was saved."),
)  # fmt: skip
CLUSTER_FORBIDDEN = replace(
    CLUSTER,
    submit=replace(
        CLUSTER.submit,
        allowed=False,
        reason="You need the admin or steward role to add and edit clusters.",
    ),
)

REMOVE = ConfirmPage(
    frame=frame("Remove orders", Section.SOURCES, SOURCES, Crumb(label="orders", url="/gallery/source", code=True)),
    sentence="orders will no longer be scanned. You can’t undo this.",
    losses=("its findings (4 open) and all decisions about them", "its scans", "the read positions of 12 topics and their data on version usage"),
    stays=("the data: nothing is written to topics, checkpoints or databases", "the audit log of decisions"),
    confirm=Action(label="Remove source", url="/ui/sources/1/remove", method="post", tone="danger"),
    back_url="/gallery/source",
)  # fmt: skip
REMOVE_REFUSED = replace(
    REMOVE, sentence=f"{HOSTILE} will no longer be scanned.", problem=Problem(what="A scan of orders is running. Cancel it, or wait until it ends."),
    confirm=replace(REMOVE.confirm, allowed=False, reason="You need the admin or steward role to add and edit scan sources."),
)  # fmt: skip

END = Action(label="Remove mute", url="/ui/mutes/1/end", method="post")
MUTES = MutePage(
    frame=frame("Mutes", Section.FINDINGS, FINDINGS),
    rows=(
        MuteRow(number=1, environment=DEV, patterns=(("Rule", "UNFRAMED_DATA"), ("Place", "load-test-*")), reason="The load test writes plain JSON.", by="steward", since=ago(days=2), until=None, end=END),
        MuteRow(number=2, environment=PROD, patterns=(("Subject", HOSTILE),), reason=HOSTILE, by=HOSTILE, since=ago(days=9), until=ago(days=-5), end=replace(END, allowed=False, reason="You need the admin, approver or steward role in prod to mute findings.")),
    ),
    fields=(
        Field(name="registry", label="Registry", kind="select", required=True, choices=(Choice(value="dev", label="dev"),)),
        Field(name="rule", label="Rule", code=True, placeholder="UNKNOWN_SCHEMA_ID"),
        Field(name="subject", label="Subject", code=True, placeholder="test-*"),
        Field(name="location", label="Place", code=True, value="orders:*"),
        Field(name="reason", label="Reason to mute them", kind="textarea", rows=2, required=True),
        Field(name="until", label="Until", kind="date", help="Empty: until the mute is removed."),
    ),
    submit=Action(label="Mute", url="/ui/mutes", method="post", tone="primary"),
    preview_url="/ui/mutes",
    preview="Matches 3 of 6 findings, and future ones.",
    covered=(Link(label="1 message carries schema id 9001, which no subject of this registry has.", url="/gallery/finding"), Link(label=HOSTILE, url="/gallery/finding")),
)  # fmt: skip
MUTES_EMPTY = replace(
    MUTES, rows=(), preview="", covered=(), problem=Problem(what="Say why these findings can be muted."),
    submit=replace(MUTES.submit, allowed=False, reason="You need the admin, approver or steward role to mute findings."),
)  # fmt: skip

BULK = Bulk(url="/ui/findings/decide", allowed=True, reason="", back="/ui/findings")
FINDING_LIST = replace(
    drift.FINDING_LIST,
    rows=tuple(replace(row, number=number, subject="orders-value", subject_url="/gallery/subject", assignee="steward" if number == 2 else "", hint="Began with version 3, registered 4 minutes before." if number == 1 else "", muted=number == 5) for number, row in enumerate(drift.FINDINGS, start=1)),
    by_severity=tuple(Tally(look=look, count=count, url=f"/ui/findings?severity={look.code}", current=count == 2) for look, count in zip(Severity, (2, 2, 0), strict=True)),
    by_kind=(Tally(look=drift.KAFKA, count=3, url="/ui/findings?kind=kafka"), Tally(look=drift.STATE, count=1, url="/ui/findings?kind=state_store")),
    muted=7, muted_url="/ui/findings?muted=only", mutes_url="/ui/mutes", bulk=BULK,
)  # fmt: skip
FINDING_LIST_READER = replace(
    FINDING_LIST,
    bulk=replace(BULK, allowed=False, reason="You need the admin, approver or steward role to decide on findings."),
)

ASSIGN = Action(label="Assign", url="/ui/findings/1/assign", method="post")
PLACES = replace(
    drift.FINDING.evidence[0],
    rows=(
        ("orders", "0", "402", "1642", "41", "2026-11-19 14:02:11 UTC"),
        ("orders", "1", "880", "880", "1", "2026-11-21 14:02:11 UTC"),
    ),
    spans=((0, 62), (97, 3)),
    spans_label="When",
)
FINDING = replace(
    drift.FINDING,
    evidence=(PLACES,),
    bars=(
        BarTable(title="Messages by timestamp", label="Hour (UTC)", note="Based on scanned messages.", bars=(Bar(label="2026-11-21 08:00", count=0, percent=0, marks=("08:57 billing 4.2.0", f"08:58 {HOSTILE}")), Bar(label="2026-11-21 09:00", count=31, percent=100), Bar(label="2026-11-21 10:00", count=10, percent=32, marks=("10:40 billing 4.1.9",)))),
        BarTable(title="Types seen", label="Type", bars=(Bar(label="string", count=4959, percent=100), Bar(label="long", count=41, percent=1), Bar(label=HOSTILE, count=2, percent=1))),
    ),
    cause="Most likely version 3 of orders-value: it was registered 4 minutes before the first of these messages.",
    commands=(Command(label="Partition 0, from offset 402", text="kcat -C -b 127.0.0.1:9092 -t orders -p 0 -o 402 -c 100 -e -f '%p@%o %T %k %s\\n'", anchor="command-0"),),
    until=Field(name="until", label="Until", kind="date", help="The finding reopens after that day (UTC). Empty: acknowledged as long as it is seen."),
    assign=ASSIGN, assignee=Field(name="to", label="Assigned to", value="steward", help="Account name. Empty: nobody."),
    observed=replace(AGAINST_LATEST, text=None, extras=()), observed_note="coupon (in 25%): seen in 10 of 40 messages.",
    drafts=DRAFTS.drafts, requests=(*REQUESTS[2:3], *REQUESTS[5:7]),
    released=(Link(label="orders-value version 3 in dev", url="/gallery/subject"), Link(label=f"{LONG} version 12 in prod", url="/gallery/subject")),
    mute=Action(label="Mute similar findings", url="/ui/mutes"), scan=replace(drift.SCAN, label="Scan source again"),
    history=(
        HistoryRow(at=ago(hours=1), who="steward", what=("state: acknowledged", "reason: known since May"), why="acknowledge finding 1"),
        HistoryRow(at=ago(days=2), who=HOSTILE, what=("found",), why="scan 41"),
    ),
    reopened=1, clean_scans="0 of 2",
)  # fmt: skip
FINDING_ACKNOWLEDGED = replace(
    FINDING, acknowledge=None, acknowledged_by="steward", acknowledged_reason="The old producer is switched off on Friday.", acknowledged_until=ago(days=-5),
    reopen=Action(label="Reopen finding", url="/ui/findings/1/reopen", method="post"),
    assign=replace(ASSIGN, allowed=False, reason="You need the admin, approver or steward role to decide on findings."),
)  # fmt: skip
