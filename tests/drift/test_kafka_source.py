"""How a cluster is reached, which of its topics are chosen, and which offsets a scan reads."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from confluent_kafka.cimpl import NewTopic, TopicPartition

from registry.access.roles import Actor
from registry.audit.models import AuditEvent
from registry.drift import selectors, services
from registry.drift.models import Cluster, Source, Topic
from registry.drift.sources import kafka, kafka_cluster, kafka_connection, kafka_passes, kafka_survey
from registry.drift.sources.base import ScannedTopic, keep_topics, note_topics
from registry.drift.sources.kafka_cluster import topic_ids_of
from registry.drift.sources.kafka_offsets import Watermarks, plan_topic, read_json
from registry.drift.sources.kafka_passes import join_passes, marks_without_writer, ranges_read
from registry.errors import (
    AddressRefused,
    BrokerUnavailable,
    InvalidSecret,
    InvalidSource,
    NotAllowed,
    SchemadeskError,
    WrongState,
)
from registry.observations import (
    OffsetsExpired,
    PartitionRange,
    PartitionRead,
    ScanTotals,
    SchemaNotUsed,
    TopicLost,
    TopicTotals,
    WriterSchema,
)
from registry.subjects.models import Registry
from tests.drift.scans import framed
from tests.pipeline.topics import fill, make_topic
from tests.waiting import until

CASES = yaml.safe_load((Path(__file__).parent / "range_cases.yaml").read_text())


# ---- pure --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_ranges(case: dict[str, Any]) -> None:
    marks = {number: Watermarks(*values) for number, values in case["marks"].items()}
    plan = plan_topic(case["mode"], marks, case.get("positions", {}), tail=10)
    assert {part.partition: [part.start, part.end] for part in plan.ranges} == case["reads"]
    assert {gap.partition: [gap.start, gap.end] for gap in plan.expired} == case.get("expired", {})
    assert (plan.restarted, plan.again) == (case.get("restarted", False), case.get("again", False))
    assert all(part.low <= part.start < part.end == part.high for part in plan.ranges)


@pytest.mark.parametrize(
    ("include", "exclude", "chosen"),
    [
        ([], [], ["orders", "orders-dlq", "payments"]),
        (["orders*"], [], ["orders", "orders-dlq"]),
        (["*"], ["*-dlq"], ["orders", "payments"]),
        (["orders"], ["orders"], []),
        (["__consumer_offsets"], [], ["__consumer_offsets"]),
        (["_s*", "pay????s"], [], ["_schemas", "payments"]),
        (["*", "connect-configs"], [], ["connect-configs", "orders", "orders-dlq", "payments"]),
    ],
)
def test_patterns_choose_topics_and_leave_internal_ones_out(
    include: list[str], exclude: list[str], chosen: list[str]
) -> None:
    names = ["payments", "orders", "orders-dlq", "__consumer_offsets", "_schemas", "connect-configs"]
    assert kafka_cluster.chosen_topics(names, include, exclude) == chosen


@pytest.mark.parametrize(
    ("text", "servers"),
    [
        ("b1:9092", ["b1:9092"]),
        ("B1.Example.COM:9092, 10.0.0.1:1", ["b1.example.com:9092", "10.0.0.1:1"]),
        ("[::1]:9092", ["[::1]:9092"]),
        ("", None),
        ("b1", None),
        ("b1:0", None),
        ("b1:99999", None),
        ("b1:9092\nsasl.jaas.config=x", None),
        ("user@b1:9092", None),
        ("b1:9092,", None),
        (",".join(["b:1"] * 11), None),
    ],
)
def test_bootstrap_lists(text: str, servers: list[str] | None) -> None:
    if servers is None:
        with pytest.raises(InvalidSource):
            kafka_connection.parse_servers(text)
    else:
        assert [str(server) for server in kafka_connection.parse_servers(text)] == servers


TLS = {"security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-512", "username": "desk", "secret": "broker"}


@pytest.mark.parametrize(
    ("fields", "secret", "error"),
    [
        (TLS, "b1.example.com the-password", None),
        (TLS, "b1.example.com:9093,b2.example.com the-password", None),
        (TLS, "other.example.com the-password", InvalidSecret),
        (TLS, "b1.example.com:1 the-password", InvalidSecret),
        (TLS, None, InvalidSecret),
        (TLS | {"bootstrap": "b1.example.com:9093,b2.example.com:9093"}, "b1.example.com the-password", InvalidSecret),
        (TLS | {"security_protocol": "SASL_PLAINTEXT"}, "b1.example.com the-password", InvalidSecret),
        (TLS | {"security_protocol": "SASL_PLAINTEXT"}, "plaintext://b1.example.com the-password", None),
        (TLS | {"security_protocol": "SASL_PLAINTEXT", "bootstrap": "localhost:1"}, "localhost the-password", None),
        (TLS | {"username": ""}, "b1.example.com x", InvalidSource),
        (TLS | {"username": "a b"}, "b1.example.com x", InvalidSource),
        (TLS | {"sasl_mechanism": "GSSAPI"}, "b1.example.com x", InvalidSource),
        (TLS | {"secret": "../etc"}, "b1.example.com x", InvalidSecret),
        ({"security_protocol": "SSL"}, None, None),
        ({"security_protocol": "SSL", "username": "desk"}, None, InvalidSource),
        ({"security_protocol": "SSL", "secret": "broker"}, "b1.example.com no-pem", InvalidSecret),
        ({"security_protocol": "PLAINTEXT", "secret": "broker"}, "b1.example.com x", InvalidSource),
        ({"security_protocol": "SSL", "ca_pem": "nonsense"}, None, InvalidSource),
        ({"security_protocol": "SSL", "ca_pem": "-----BEGIN PRIVATE KEY-----\nAA=="}, None, InvalidSource),
        ({"ca_pem": "-----BEGIN CERTIFICATE-----"}, None, InvalidSource),
        ({"security_protocol": "FREE"}, None, InvalidSource),
    ],
)
def test_fields_of_a_cluster(
    tmp_path: Path, settings: Any, fields: dict[str, str], secret: str | None, error: type[SchemadeskError] | None
) -> None:
    settings.SECRETS_DIR = tmp_path
    if secret:
        (tmp_path / "broker").write_text(secret)
    cluster = Cluster(**({"name": "c", "bootstrap": "b1.example.com:9093"} | fields))
    if error is None:
        kafka_connection.check_fields(cluster)
        made = kafka_connection.client_settings(cluster)
        assert made.get("sasl.password") == ("the-password" if "secret" in fields else None)
        assert "the-password" not in repr(cluster)
    else:
        with pytest.raises(error) as raised:
            kafka_connection.check_fields(cluster)
        assert "the-password" not in str(raised.value)


@pytest.mark.parametrize(
    ("bootstrap", "own", "allow", "refused"),
    [
        ("127.0.0.1:9", "", (), True),
        ("localhost:9", "", (), True),
        ("169.254.169.254:9092", "", ("169.254.0.0/16",), True),
        ("[::ffff:127.0.0.1]:9", "", (), True),
        ("127.0.0.1:9", "127.0.0.1:9", (), False),
        ("127.0.0.1:10", "127.0.0.1:9", (), True),
        ("127.0.0.1:9", "", ("127.0.0.1:9",), False),
        ("10.0.0.1:9092", "", (), False),
    ],
)
def test_every_bootstrap_address_is_judged(
    settings: Any, bootstrap: str, own: str, allow: tuple[str, ...], refused: bool
) -> None:
    settings.KAFKA_BOOTSTRAP, settings.EGRESS_ALLOW, settings.EGRESS_REFUSE_PRIVATE = own, allow, False
    cluster = Cluster(name="c", bootstrap=bootstrap)
    if not refused:
        assert kafka_connection.kafka_connection(cluster).bootstrap == bootstrap
        return
    for channel in (
        kafka_connection.kafka_connection,
        kafka_connection.admin_of,
        kafka_connection.connect,
    ):
        with pytest.raises(AddressRefused):
            channel(cluster)  # type: ignore[operator]


def test_the_second_pass_takes_the_place_of_the_first_for_its_topics() -> None:
    def totals(name: str, bound: Any = None) -> TopicTotals:
        return TopicTotals(name, 5, 50, bound)

    def read(name: str) -> PartitionRead:
        return PartitionRead(name, 0, 0, 5, 0, 9, 5)

    all_of_it = ScanTotals(2, 10, 100, "messages", 1.0)
    first = [read("a"), framed("a", "1"), totals("a", "messages"), read("b"), framed("b", "2"), totals("b"), all_of_it]
    writers = (WriterSchema("id", "2", "AVRO", '"int"'),)
    assert marks_without_writer(first, writers) == {"a": {("id", "1")}}
    (again,) = ranges_read(first, ["a"])
    assert (again.topic, again.ranges) == ("a", (PartitionRange(0, 0, 5, 0, 9),))
    better = framed("a", "1", side="key")
    second = [read("a"), better, totals("a"), replace(all_of_it, topics=1, bound_reached=None)]
    observations = join_passes(first, second, {"a"}, 2.0)
    assert better in observations
    assert framed("a", "1") not in observations
    assert framed("b", "2") in observations
    assert totals("a", "messages") in observations, "that a bound was reached stays said"
    assert observations[-1] == replace(all_of_it, seconds=2.0)
    lost = [TopicLost("a", "deleted"), replace(all_of_it, topics=0)]
    assert framed("a", "1") in join_passes(first, lost, {"a"}, 2.0)


# ---- with a real broker ------------------------------------------------------------------------------------------


@pytest.fixture
def admin(kafka_bootstrap: str, settings: Any) -> AdminClient:
    settings.KAFKA_BOOTSTRAP = kafka_bootstrap
    return AdminClient({"bootstrap.servers": kafka_bootstrap})


@pytest.fixture
def cluster(admin: AdminClient, kafka_bootstrap: str, registries: None, system: Actor) -> Cluster:
    services.connect_cluster(name="real", bootstrap=kafka_bootstrap, by=system)
    return Cluster.objects.get(name="real")


def source_of(cluster: Cluster, *include: str, **values: Any) -> Source:
    base = {"registry": Registry.objects.get(name="dev"), "kind": "kafka", "name": "t", "created_by": "tests"}
    return Source.objects.create(**(base | {"cluster": cluster, "include": list(include)} | values))


def keep(source: Source, survey: kafka_survey.Survey) -> tuple[Any, ...]:
    """As if all of the survey had been read, one message an offset."""
    observations: list[Any] = []
    for name in survey.order:
        parts = [
            PartitionRead(name, part.partition, part.start, part.end, part.low, part.high, part.end - part.start)
            for part in survey.plans[name].ranges
        ]
        observations += [*parts, TopicTotals(name, sum(part.messages for part in parts), 1, None)]
    after = kafka_survey.topics_after(survey, observations)
    note_topics(source, survey.topics.values())
    keep_topics(source, after)
    return after


def numbered(count: int, partition: int = 0) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(partition, b"k", f"{number}".encode()) for number in range(count)]


@pytest.mark.slow
@pytest.mark.broker
@pytest.mark.requirement("CARD-3")
def test_a_cluster_is_connected_once(
    cluster: Cluster, kafka_bootstrap: str, system: Actor, person: Any, settings: Any
) -> None:
    with pytest.raises(WrongState):
        services.connect_cluster(name="real", bootstrap=kafka_bootstrap, by=system)
    assert services.cluster_at(bootstrap=f" {kafka_bootstrap}", by=system) == "real"
    with pytest.raises(NotAllowed):
        services.connect_cluster(name="other", bootstrap=kafka_bootstrap, by=person("reader"))
    with pytest.raises(BrokerUnavailable):
        settings.KAFKA_BOOTSTRAP = "127.0.0.1:1"
        services.update_cluster(name="real", bootstrap="127.0.0.1:1", by=system)
    settings.KAFKA_BOOTSTRAP = kafka_bootstrap
    services.update_cluster(name="real", rename="renamed", by=system)
    assert [info.name for info in selectors.list_clusters()] == ["renamed"]
    assert AuditEvent.objects.filter(table="drift_cluster").count() == 2


@pytest.mark.slow
@pytest.mark.broker
def test_a_broker_that_the_metadata_names_is_judged_too(cluster: Cluster, kafka_bootstrap: str, settings: Any) -> None:
    port = kafka_bootstrap.rpartition(":")[2]
    settings.KAFKA_BOOTSTRAP, settings.EGRESS_ALLOW = "", (f"localhost:{port}",)
    named = Cluster(name="c", bootstrap=f"localhost:{port}")
    kafka_connection.judge_servers(named)
    with pytest.raises(AddressRefused, match="loopback"):
        kafka_connection.connect(named)


@pytest.mark.slow
@pytest.mark.broker
def test_a_topic_from_its_first_scan_to_its_end(cluster: Cluster, kafka_bootstrap: str, admin: AdminClient) -> None:
    name = make_topic(kafka_bootstrap, [*numbered(5), *numbered(3, 1)])
    resource = ConfigResource(ResourceType.TOPIC, name)
    for entry in (("cleanup.policy", "compact,delete"), ("retention.ms", "86400000")):
        change = ConfigEntry(*entry, incremental_operation=AlterConfigOpType.SET)
        resource.add_incremental_config(change)
    next(iter(admin.incremental_alter_configs([resource]).values())).result(60)
    source = source_of(cluster, name)
    survey = kafka_survey.survey_cluster(source)
    scanned = survey.topics[name]
    assert (scanned.partitions, scanned.compacted, scanned.retention_ms, scanned.retention_bytes) == (
        2,
        True,
        86_400_000,
        -1,
    )
    assert survey.order == (name,)
    (after,) = keep(source, survey)
    assert (after.messages, after.fresh, after.clean, after.positions) == (8, 8, True, {0: 5, 1: 3})
    row = Topic.objects.get()
    assert (row.positions, row.compacted, row.messages) == ({"0": 5, "1": 3}, True, 8)

    assert kafka_survey.survey_cluster(source).order == (), "nothing new"
    fill(kafka_bootstrap, name, numbered(2, 1))
    survey = kafka_survey.survey_cluster(source)
    assert [(part.partition, part.start, part.end) for part in survey.plans[name].ranges] == [(1, 3, 5)]
    keep(source, survey)

    fill(kafka_bootstrap, name, numbered(4))
    next(iter(admin.delete_records([TopicPartition(name, 0, 8)]).values())).result(60)
    survey = kafka_survey.survey_cluster(source)
    assert [(gap.start, gap.end) for gap in survey.plans[name].expired] == [(5, 8)]
    keep(source, survey)

    admin.delete_topics([name])[name].result(60)
    until(lambda: name not in admin.list_topics(timeout=30).topics, pause=0.2)
    survey = kafka_survey.survey_cluster(source)
    assert (survey.topics[name].gone, survey.order) == (True, ())
    keep(source, survey)
    gone_at = Topic.objects.get().gone_at
    assert gone_at is not None
    keep(source, kafka_survey.survey_cluster(source))
    assert Topic.objects.get().gone_at == gone_at

    admin.create_topics([NewTopic(name, num_partitions=1)])[name].result(60)
    fill(kafka_bootstrap, name, numbered(2))
    survey = kafka_survey.survey_cluster(source)
    assert survey.plans[name].restarted
    assert [(part.start, part.end) for part in survey.plans[name].ranges] == [(0, 2)]
    keep(source, survey)
    row = Topic.objects.get()
    assert (row.positions, row.gone_at, row.messages) == ({"0": 2}, None, 2)

    # Deleted and made again between two scans, with more messages than were read: its offsets alone don't say so.
    admin.delete_topics([name])[name].result(60)
    until(lambda: name not in admin.list_topics(timeout=30).topics, pause=0.2)
    admin.create_topics([NewTopic(name, num_partitions=1)])[name].result(60)
    fill(kafka_bootstrap, name, numbered(9))
    until(lambda: topic_ids_of(admin, [name]), pause=0.2)
    survey = kafka_survey.survey_cluster(source)
    assert survey.plans[name].restarted
    (remade,) = survey.remade
    assert (remade.topic, remade.id_before != remade.id_now, remade.id_now) == (
        name,
        True,
        topic_ids_of(admin, [name])[name],
    )
    assert remade in kafka_survey.with_lost_offsets(source, survey, [])
    assert remade not in kafka_survey.with_lost_offsets(source, survey, [TopicLost(name, "its reading isn't allowed")])
    assert [(part.start, part.end) for part in survey.plans[name].ranges] == [(0, 9)]
    note_topics(source, survey.topics.values())
    assert kafka_survey.survey_cluster(source).plans[name].restarted, (
        "a scan that failed before its end has forgotten nothing"
    )
    keep(source, survey)
    row = Topic.objects.get()
    assert (row.positions, row.messages) == ({"0": 9}, 9)
    assert kafka_survey.survey_cluster(source).order == ()


@pytest.mark.parametrize(
    ("read", "unread"),
    [
        ({}, None),
        ({"partitions": []}, 0),
        ({"partitions": [{"topic": "a", "end": 4, "high": 9}, {"topic": "b", "end": 0, "high": 7}]}, 5),
        ({"partitions": [{"topic": "a", "end": 4}]}, None),
        ({"partitions": [], "left_out": {"partitions": 3}}, None),
        ({"partitions": [], "unreadable": [{"topic": "a", "reason": "away"}]}, None),
    ],
)
def test_how_much_of_a_topic_a_scan_left_unread(read: dict[str, Any], unread: int | None) -> None:
    assert kafka_survey.unread_of("a", read) == unread


@dataclass
class Listing:
    """A cluster that has these topics (None: it doesn't answer), and denies these."""

    topics: tuple[str, ...] | None
    denied: tuple[str, ...] = ()

    def list_topics(self, **_: object) -> Any:
        if self.topics is None:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        return SimpleNamespace(topics=dict.fromkeys(self.topics))

    def describe_topics(self, topics: Any, **_: object) -> Any:
        codes = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_AUTHORIZATION_FAILED)
        names = topics.topic_names
        futures = {name: Future[Any]() for name in names}
        for name in names:
            futures[name].set_exception(KafkaException(KafkaError(codes[name in self.denied])))
        return futures


@pytest.mark.parametrize(
    ("listing", "restarted", "after"),
    [
        (Listing(("orders",)), False, ({0: 4}, 4, True, "The messages read so far count")),
        (Listing(None), False, ({0: 4}, 4, True, "The messages read so far count")),
        (Listing(()), False, ({}, 0, False, "it was deleted while it was being read")),
        (Listing((), ("orders",)), False, ({}, 0, False, "can't describe topic orders. Grant it Describe and Read")),
        (Listing(("orders",)), True, ({}, 0, True, "no broker leads it")),
    ],
)
def test_a_topic_whose_broker_went_away_keeps_what_was_read_unless_it_is_gone(
    listing: Listing, restarted: bool, after: tuple[Any, ...]
) -> None:
    survey = kafka_survey.Survey({"orders": ScannedTopic("orders", restarted=restarted)}, {}, ("orders",))
    observations = [
        PartitionRead("orders", 0, 0, 4, 0, 9, 4),
        TopicLost("orders", "no broker leads it", may_pass=True),
        TopicTotals("orders", 4, 40, "broker"),
    ]
    settled = kafka_survey.settle_lost_topics(survey, listing, observations)  # type: ignore[arg-type]
    (topic,) = kafka_survey.topics_after(survey, settled)
    positions, messages, waits, problem = after
    assert (topic.positions, topic.messages, topic.waits, topic.clean) == (positions, messages, waits, False)
    assert problem in topic.problem
    read = read_json([topic], settled, seconds=1.0)
    assert read["nothing"] is (messages == 0)
    assert [row["topic"] for row in read["unreadable"]] == ["orders"]


def test_a_scan_of_which_nothing_could_be_read_is_tried_again_as_a_whole(cluster: Cluster) -> None:
    source = source_of(cluster, "orders")
    away = ScannedTopic("orders", problem="Partition 0 of orders has no leader.", waits=True)
    with pytest.raises(BrokerUnavailable, match="Partition 0 of orders has no leader"):
        kafka.require_any(source, [away])
    idle, refused = ScannedTopic("idle"), ScannedTopic("orders", problem="grant it Read")
    kafka.require_any(source, [away, idle])
    kafka.require_any(source, [refused])
    assert kafka.waits_of([away, idle, refused]) == away.problem


def test_topics_that_could_not_be_read_again_with_their_schemas_are_left_for_the_next_scan() -> None:
    reads = [PartitionRead("a", 0, 0, 4, 0, 9, 4), PartitionRead("b", 0, 0, 4, 0, 9, 4)]
    assert kafka_passes.drop_topics(reads, {"a": "gone away"}) == [reads[1], TopicLost("a", "gone away", may_pass=True)]


@pytest.mark.slow
@pytest.mark.broker
def test_what_is_deleted_while_a_scan_reads_is_reported(cluster: Cluster, kafka_bootstrap: str) -> None:
    name, other = (make_topic(kafka_bootstrap, numbered(9), partitions=1) for _ in range(2))
    source = source_of(cluster, name, other)
    admin = AdminClient({"bootstrap.servers": kafka_bootstrap})
    next(iter(admin.delete_records([TopicPartition(name, 0, 2)]).values())).result(60)
    source.topics.create(name=name, positions={"0": 1})
    survey = kafka_survey.survey_cluster(source)
    next(iter(admin.delete_records([TopicPartition(name, 0, 6)]).values())).result(60)
    # In slices: 2 to 4 was read, of 4 to 8 the first two were deleted, 8 holds no message though it is there.
    reads = [PartitionRead(name, 0, 2, 9, 2, 9, 4, gaps=((4, 7), (8, 9))), PartitionRead(other, 0, 0, 9, 0, 9, 9)]
    observations = kafka_survey.with_lost_offsets(source, survey, reads)
    assert observations == [*reads, OffsetsExpired(name, 0, 1, 2), OffsetsExpired(name, 0, 4, 6)]

    admin.delete_topics([other])[other].result(60)
    until(lambda: other not in admin.list_topics(timeout=30).topics, pause=0.2)
    admin.create_topics([NewTopic(other, num_partitions=1)])[other].result(60)
    until(lambda: topic_ids_of(admin, [other]), pause=0.2)
    observations = kafka_survey.with_lost_offsets(source, survey, reads)
    assert reads[0] in observations
    assert reads[1] not in observations
    assert [item.topic for item in observations if isinstance(item, TopicLost)] == [other]


@pytest.mark.slow
@pytest.mark.broker
def test_a_window_begins_at_a_time(cluster: Cluster, kafka_bootstrap: str) -> None:
    name = make_topic(kafka_bootstrap, numbered(3), partitions=1)
    time.sleep(2.1)
    fill(kafka_bootstrap, name, numbered(2))
    source = source_of(cluster, name, mode="window", window_seconds=1)
    survey = kafka_survey.survey_cluster(source)
    (part,) = survey.plans[name].ranges
    assert (part.start, part.end) == (3, 5)


@pytest.mark.slow
@pytest.mark.broker
def test_a_source_names_topics_that_are_there(cluster: Cluster, kafka_bootstrap: str, system: Actor) -> None:
    name = make_topic(kafka_bootstrap, [])
    add = {"registry": "dev", "kind": "kafka", "cluster": "real", "by": system}
    with pytest.raises(InvalidSource, match="no topic 'not-here'"):
        services.add_source(name="one", include=[name, "not-here"], **add)
    number = services.add_source(name="one", include=[name, "not-here-*"], every_seconds=60, **add)
    assert selectors.get_source(number).include == (name, "not-here-*")
    with pytest.raises(WrongState):
        services.add_source(name="one", include=[name], **add)


@pytest.fixture
def many(admin: AdminClient) -> Iterator[str]:
    """Two hundred topics of two partitions; gives their prefix."""
    prefix = f"idle-{uuid.uuid4().hex[:6]}"
    names = [f"{prefix}-{number}" for number in range(200)]
    for future in admin.create_topics([NewTopic(name, num_partitions=2) for name in names]).values():
        future.result(60)
    yield prefix
    for future in admin.delete_topics(names).values():
        future.result(60)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of all calls that clients make to a cluster for what it knows of topics, in their order."""
    names: list[str] = []

    def counted(name: str) -> Any:
        call = getattr(AdminClient, name)

        def count(self: AdminClient, *arguments: Any, **options: Any) -> Any:
            names.append(name)
            return call(self, *arguments, **options)

        return count

    for name in ("list_topics", "describe_topics", "describe_configs", "list_offsets"):
        monkeypatch.setattr(AdminClient, name, counted(name))
    return names


@pytest.mark.slow
@pytest.mark.broker
@pytest.mark.requirement("CARD-3")
def test_two_hundred_topics_are_asked_cheaply(
    cluster: Cluster, kafka_bootstrap: str, many: str, calls: list[str], django_assert_max_num_queries: Any
) -> None:
    """In as many calls and queries as one topic is; a call for each took minutes with a far cluster."""
    source = source_of(cluster, f"{many}-*")
    # A topic is told of, and its partitions have their leaders, only some time after it was made.
    until(
        lambda: [scanned.problem for scanned in kafka_survey.survey_cluster(source).topics.values()] == [""] * 200,
        pause=0.2,
    )
    fill(kafka_bootstrap, f"{many}-7", numbered(3))
    keep(source, kafka_survey.survey_cluster(source))
    for number in range(5):
        fill(kafka_bootstrap, f"{many}-{number}", numbered(3))
    calls.clear()
    with django_assert_max_num_queries(12):
        survey = kafka_survey.survey_cluster(source)
        keep(source, survey)
    assert calls == ["list_topics", "list_offsets", "list_offsets", "describe_configs", "describe_topics"]
    assert {scanned.problem for scanned in survey.topics.values()} == {""}
    assert set(survey.order) == {f"{many}-{number}" for number in range(5)}
    assert Topic.objects.filter(source=source).count() == 200


def test_a_schema_for_which_no_time_was_left_is_named_with_its_topics_alone() -> None:
    mark = ("id", "7")
    (late,) = kafka_passes._not_decoded({"a": {mark}, "b": {mark}}, {mark}, ["b"])
    assert late == SchemaNotUsed("id", "7", kafka_passes.NO_TIME, "b")
    never = SchemaNotUsed("id", "9", "it has a list")
    assert read_json([], [late, never], seconds=1.0)["schemas_not_used"] == [
        {"topic": "b", "framing": "id", "mark": "7", "reason": kafka_passes.NO_TIME},
        {"framing": "id", "mark": "9", "reason": "it has a list"},
    ]
