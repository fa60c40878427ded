"""Scans of a cluster of three brokers with TLS, sign-in and an authorizer, as an organisation runs one."""

from __future__ import annotations

import logging
import os
import re
import shlex
import signal
from argparse import ArgumentParser
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AclBinding
from confluent_kafka.cimpl import NewTopic
from django.test import Client

from registry.access.roles import Actor
from registry.audit.models import AuditEvent
from registry.drift import selectors, services
from registry.drift.models import Cluster, Finding, Scan, Source, Topic
from registry.drift.scan.runner import perform_scan
from registry.drift.sources import kafka_passes, kafka_survey
from registry.drift.sources.kafka_connection import kafka_connection
from registry.drift.usage.retirement import _ClusterReader
from registry.errors import BrokerUnavailable, InvalidSecret, InvalidSource
from registry.observations import Profile, ScanTotals, TopicRead, TopicScan
from registry.pipeline.run import run
from tests.amounts import long_run
from tests.drift.secured_kafka import PASSWORD, SECRET, SecuredKafka, rule, secured_kafka
from tests.drift.test_faults import add, bad, good, register, scan, states
from tests.pipeline.topics import USER, fill, framed, ranges, string, writers
from tests.test_docs import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.requirement("CARD-3"),
    pytest.mark.django_db(transaction=True),
]
GUIDE = ROOT / "docs/how-to/secured-clusters.md"
#: how a client signs in → the fields of its cluster, its secret's value
SIGN_INS = {
    "PLAIN": ({"sasl_mechanism": "PLAIN", "username": "APIKEY"}, SECRET),
    "SCRAM-SHA-256": ({"sasl_mechanism": "SCRAM-SHA-256", "username": "scan"}, PASSWORD),
    "SCRAM-SHA-512": ({"sasl_mechanism": "SCRAM-SHA-512", "username": "scan"}, PASSWORD),
    "mutual TLS": ({"security_protocol": "SSL"}, ""),
}
PRINCIPALS = {"PLAIN": "User:APIKEY", "mutual TLS": "User:CN=scan"}


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    with secured_kafka(tmp_path_factory.mktemp("secured"), 3) as running:
        yield running


@pytest.fixture
def secured(brokers: SecuredKafka, registries: None, settings: Any, tmp_path: Path, spark_remote: str) -> SecuredKafka:
    """The brokers, which this test may reach, and an empty folder of secrets."""
    settings.KAFKA_BOOTSTRAP, settings.SPARK_REMOTE = f"{brokers.sasl},{brokers.mutual}", spark_remote
    settings.SECRETS_DIR = tmp_path
    return brokers


def sign_in(secured: SecuredKafka, how: str, folder: Path, *, secret: str = "") -> dict[str, str]:
    """The fields of a cluster for that sign-in, with its secret in the folder."""
    fields, value = SIGN_INS[how]
    bootstrap = secured.mutual if how == "mutual TLS" else secured.sasl
    (folder / "broker").write_text(f"127.0.0.1 {secret or value or secured.authority.client('scan')}")
    return {
        "name": "secured", "bootstrap": bootstrap, "security_protocol": "SASL_SSL", "secret": "broker",
        "ca_pem": secured.authority.pem,
    } | fields  # fmt: skip


def documented(user: str, prefix: str, *, section: str) -> list[AclBinding]:
    """The rights that the commands in a section of the guide grant, for a user and topics of a prefix."""
    text = GUIDE.read_text().partition(f"## {section}")[2].partition("\n## ")[0]
    parser = ArgumentParser()
    for option in ("--bootstrap-server", "--command-config", "--allow-principal", "--topic", "--group"):
        parser.add_argument(option)
    parser.add_argument("--resource-pattern-type", default="literal")
    parser.add_argument("--operation", action="append")
    for option in ("--add", "--cluster"):
        parser.add_argument(option, action="store_true")
    rules = []
    for line in re.findall(r"^kafka-acls (.*)$", text.replace("\\\n", " "), re.MULTILINE):
        options = parser.parse_args(shlex.split(line))
        kind = "BROKER" if options.cluster else "TOPIC" if options.topic else "GROUP"
        name = "kafka-cluster" if options.cluster else prefix if options.topic else options.group
        is_prefix = options.resource_pattern_type == "prefixed"
        rules += [rule(user, operation, kind, name, prefixed=is_prefix) for operation in options.operation]
    assert rules
    return rules


def shop(secured: SecuredKafka, name: str, by: Actor, *, partitions: int = 3) -> tuple[str, int]:
    """A topic with a replica on each broker, and the id of its schema."""
    secured.admin.create_topics([NewTopic(name, num_partitions=partitions, replication_factor=3)])[name].result(60)
    return name, register(name, by)


@pytest.mark.parametrize("how", [how if how == "mutual TLS" else pytest.param(how, marks=long_run) for how in SIGN_INS])
def test_each_way_to_sign_in_reads_a_topic(
    secured: SecuredKafka, how: str, system: Actor, tmp_path: Path, spark_remote: str, tmp_path_factory: Any
) -> None:
    """From the client of this process, and from Spark's."""
    topic, schema_id = shop(secured, f"sign-in-{how.replace(' ', '-')}", system, partitions=1)
    fill(secured.plain, topic, good(schema_id))
    secured.allow(rule(PRINCIPALS.get(how, "User:scan"), "Read", "TOPIC", topic))
    services.connect_cluster(**sign_in(secured, how, tmp_path), by=system)
    row = Cluster.objects.get()
    connection = kafka_connection(row)
    read = TopicRead(topic, ranges(secured.plain, topic))
    observations = run(TopicScan(connection, (read,), writers({schema_id: USER}), Profile()), remote=spark_remote)
    assert [item.messages for item in observations if isinstance(item, ScanTotals)] == [5]
    for hidden in (SECRET, PASSWORD, "PRIVATE KEY"):
        assert hidden not in repr((connection, row, observations))
    for log in tmp_path_factory.getbasetemp().glob("spark*/logs/spark.log"):
        assert "SparkConnectExecutionManager" not in log.read_text(), "it may log whole queries"


def test_a_scan_needs_the_documented_rights_and_no_others(
    secured: SecuredKafka, system: Actor, tmp_path: Path, look: Any, api: Any, caplog: Any
) -> None:
    topic, schema_id = shop(secured, "shop-orders", system)
    fill(secured.plain, topic, [*good(schema_id), *bad(), (0, b"k", None)])
    services.connect_cluster(**sign_in(secured, "SCRAM-SHA-512", tmp_path), by=system)
    rights = documented("User:scan", "shop-", section="Which rights does a scan need?")
    assert {right.operation.name for right in rights} == {"READ", "DESCRIBE_CONFIGS"}, "none of them writes"

    with pytest.raises(InvalidSource, match=f"can't describe topic {topic}. Grant it Describe and Read"):
        add(system, topic, cluster="secured")
    describe = rule("User:scan", "Describe", "TOPIC", topic)
    source = add(system, "shop-*", cluster="secured")
    page, client = look("reader"), api("reader")

    def told(row: Scan) -> tuple[str, str, str]:
        """The page, the API and the log of the scan."""
        body = page.get(f"/ui/sources/{source}?scan={row.pk}").content.decode()
        return body, str(client.get(f"/api/v1/scans/{row.pk}").json()), caplog.text

    row = scan(source, system)
    assert selectors.get_scan(row.pk).verdict == "not scanned"
    assert all("its user may not Describe" in text for text in told(row)[:2])

    secured.allow(*rights)
    row = scan(source, system)
    assert (row.state, row.error, selectors.get_scan(row.pk).verdict) == ("done", "", "scanned")
    assert row.read is not None
    assert (row.read["messages"], row.read["unreadable"], row.read["settings_unknown"]) == (7, [], [])
    assert set(states(source)) == {"UNKNOWN_SCHEMA_ID", "TOMBSTONES_NOT_COMPACTED"}
    assert Topic.objects.get().retention_ms == 604_800_000

    for right in rights:
        Finding.objects.all().delete()
        positions = Topic.objects.get().positions
        secured.withdraw(right)
        fill(secured.plain, topic, [*bad(), (0, b"k", None)])
        caplog.clear()
        row = scan(source, system)
        assert row.read is not None
        if right.operation.name == "READ":  # which also stands for Describe
            assert selectors.get_scan(row.pk).verdict == "not scanned"
            assert all(
                f"describe topic {topic}. Grant it Describe and Read" in text.replace("&#x27;", "'")
                for text in told(row)
            )
            assert Topic.objects.get().gone_at is None
            assert states(source) == {}
            secured.allow(describe)
            caplog.clear()
            row = scan(source, system)
            assert selectors.get_scan(row.pk).verdict == "not scanned"
            assert all("grant it Read" in text for text in told(row))
            assert (states(source), Topic.objects.get().positions) == ({}, positions), "the next scan reads them"
            secured.withdraw(describe)
        else:
            assert row.read["messages"] > 0
            assert all("Grant it DescribeConfigs" in text for text in told(row)[:2])
            assert set(states(source)) == {"UNKNOWN_SCHEMA_ID"}, "whether the topic is compacted isn't known"
        secured.allow(right)


def test_many_topics_that_may_no_longer_be_described_do_not_count_as_deleted(
    secured: SecuredKafka, system: Actor, tmp_path: Path
) -> None:
    names = [f"many-{number}" for number in range(30)]
    for future in secured.admin.create_topics([NewTopic(name, num_partitions=1) for name in names]).values():
        future.result(60)
    services.connect_cluster(**sign_in(secured, "SCRAM-SHA-512", tmp_path), by=system)
    source = Source.objects.get(pk=add(system, "many-*", cluster="secured"))
    read = rule("User:scan", "Read", "TOPIC", "many-", prefixed=True)
    secured.allow(read)
    surveyed = kafka_survey.survey_cluster(source).topics
    assert sorted(surveyed) == sorted(names)
    source.topics.bulk_create(Topic(source=source, name=name, partitions=1) for name in names)
    secured.withdraw(read)
    surveyed = kafka_survey.survey_cluster(source).topics
    assert [name for name, topic in surveyed.items() if topic.gone] == []
    assert all("Grant it Describe and Read" in topic.problem for topic in surveyed.values())


def test_retirement_says_which_rights_to_consumer_groups_are_missing(
    secured: SecuredKafka, system: Actor, tmp_path: Path
) -> None:
    """A list of groups without the right to see all looks like one of a cluster without groups."""
    topic, _ = shop(secured, "retire-orders", system)
    services.connect_cluster(**sign_in(secured, "SCRAM-SHA-512", tmp_path), by=system)
    secured.allow(rule("User:scan", "Read", "TOPIC", topic))
    row = Cluster.objects.get()
    stored = Topic(pk=1, name=topic, partitions=3)
    reader = _ClusterReader(row)
    assert reader.groups([stored]) == []
    assert reader.problems == ["its user can't list all consumer groups; grant it Describe on the cluster"]
    secured.allow(*documented("User:scan", topic, section="What else does retirement need?"))
    reader = _ClusterReader(row)
    reader.groups([stored])
    assert reader.problems == []


@pytest.mark.parametrize(
    "how", ["SCRAM-SHA-512", *(pytest.param(how, marks=long_run) for how in ("PLAIN", "mutual TLS"))]
)
def test_a_refused_sign_in_is_said_everywhere_without_its_secret(
    secured: SecuredKafka, how: str, system: Actor, tmp_path: Path, look: Any, api: Any, caplog: Any, monkeypatch: Any
) -> None:
    caplog.set_level(logging.DEBUG)
    topic, schema_id = shop(secured, f"refused-{how.replace(' ', '-')}", system, partitions=1)
    fill(secured.plain, topic, good(schema_id))
    secured.allow(rule(PRINCIPALS.get(how, "User:scan"), "Read", "TOPIC", topic))
    fields = sign_in(secured, how, tmp_path)
    services.connect_cluster(**fields, by=system)
    source = add(system, topic, cluster="secured")
    wrong = "hunter2-is-wrong"
    if how == "mutual TLS":
        wrong = type(secured.authority)().client("scan")  # of an authority that the broker doesn't trust
    sign_in(secured, how, tmp_path, secret=wrong)

    with pytest.raises(BrokerUnavailable) as raised:
        services.connect_cluster(**(fields | {"name": "again"}), by=system)
    body = fields | {"name": "again"}
    response = api("admin").post("/api/v1/clusters", body, content_type="application/json")
    assert response.status_code == 503
    number = services.queue_scan(source_id=source, by=system)
    assert perform_scan(number) == "failed", "waiting wouldn't mend it"
    row = Scan.objects.get(pk=number)
    reason = "over TLS" if how == "mutual TLS" else f"refused the sign-in of user {fields['username']} by {how}"
    admin: Client = look("admin")
    pages = [
        admin.get(url).content.decode() for url in (f"/ui/sources/{source}", "/ui/sources", "/ui/findings", "/ui/jobs")
    ]
    replies = [
        api("admin").get(f"/api/v1/{path}").content.decode() for path in (f"scans/{number}", "sources", "clusters")
    ]
    for text in (row.error, raised.value.message, response.content.decode(), pages[0], replies[0], caplog.text):
        assert reason in text
    audit = [str((event.before, event.after)) for event in AuditEvent.objects.all()]
    hidden = wrong if how != "mutual TLS" else wrong.splitlines()[1]
    for text in (
        row.error,
        repr(raised.value.details),
        response.content.decode(),
        caplog.text,
        *pages,
        *replies,
        *audit,
    ):
        assert hidden not in text


def test_spark_that_may_not_sign_in_ends_the_scan_with_the_reason(
    secured: SecuredKafka, system: Actor, tmp_path: Path, monkeypatch: Any, caplog: Any
) -> None:
    """As when the password is changed while a scan runs."""
    topic, schema_id = shop(secured, "changed-password", system, partitions=1)
    fill(secured.plain, topic, good(schema_id))
    secured.allow(rule("User:scan", "Read", "TOPIC", topic))
    services.connect_cluster(**sign_in(secured, "SCRAM-SHA-512", tmp_path), by=system)
    source = add(system, topic, cluster="secured")
    opened = kafka_passes.kafka_connection

    def with_wrong_password(cluster: Any) -> Any:
        sign_in(secured, "SCRAM-SHA-512", tmp_path, secret="hunter2-is-wrong")
        return opened(cluster)

    monkeypatch.setattr(kafka_passes, "kafka_connection", with_wrong_password)
    caplog.set_level(logging.DEBUG)
    number = services.queue_scan(source_id=source, by=system)
    assert perform_scan(number) == "failed"
    error = Scan.objects.get(pk=number).error
    assert "Spark couldn't sign in to the Kafka cluster" in error
    assert "hunter2" not in error + caplog.text


def test_a_client_certificate_that_is_no_pair_is_refused(secured: SecuredKafka, system: Actor, tmp_path: Path) -> None:
    one, other = secured.authority.client("scan"), secured.authority.client("scan")
    key = one.partition("-----BEGIN CERTIFICATE")[0]
    for value in ("no-pem", key, other.replace(other.partition("-----BEGIN CERTIFICATE")[0], key)):
        fields = sign_in(secured, "mutual TLS", tmp_path, secret=value)
        with pytest.raises(InvalidSecret, match="must be a private key") as raised:
            services.connect_cluster(**fields, by=system)
        assert value.splitlines()[-2:][0] not in raised.value.message


@long_run
def test_a_broker_that_dies_in_the_middle_of_a_scan_ends_nothing(
    secured: SecuredKafka, system: Actor, tmp_path: Path, monkeypatch: Any
) -> None:
    """Each partition has a replica elsewhere: the scan reads on from the new leaders. Last, since the broker stays dead."""
    topic, schema_id = shop(secured, "dies-orders", system, partitions=6)
    number = 30_000
    fill(secured.plain, topic, [(0, b"k", framed(900_001, b"?"))])
    fill(secured.plain, topic, ((n % 6, None, framed(schema_id, string(f"user {n}"))) for n in range(number)))
    secured.allow(*documented("User:scan", "dies-", section="Which rights does a scan need?"))
    services.connect_cluster(**sign_in(secured, "SCRAM-SHA-512", tmp_path), by=system)
    source = add(system, topic, cluster="secured")
    module = import_module("registry.pipeline.run")  # the package has a function of that name
    read, slices = module._read_slice, []

    def reading(*args: Any) -> Any:
        slices.append(args)
        if len(slices) == 2:
            leader = secured.admin.list_topics(topic, timeout=30).topics[topic].partitions[0].leader
            os.killpg(secured.brokers[leader].pid, signal.SIGKILL)
        return read(*args)

    monkeypatch.setattr(module, "_read_slice", reading)
    row = scan(source, system)
    while rest := Scan.objects.filter(source_id=source, state="queued").first():
        Scan.objects.filter(pk=rest.pk).update(retry_at=None)
        assert perform_scan(rest.pk) in ("done", "waiting")
    assert len(slices) > 2
    assert (row.state, row.error) == ("done", "")
    assert Topic.objects.get().messages == number + 1
    assert states(source) == {"UNKNOWN_SCHEMA_ID": "open"}
    assert sum(Topic.objects.get().positions.values()) == number + 1
