"""The embedded broker: Apache Kafka in KRaft mode, broker and controller in one process, on loopback."""

from __future__ import annotations

import base64
import os
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path

from dashboard.runtime import jars
from dashboard.runtime.java import find_java
from dashboard.runtime.layout import LOOPBACK, Layout, answers, write_private
from dashboard.runtime.process import Command, run

PORTS = ("kafka", "kafka-controller")
# The C1 compiler is enough for a local broker, and saves a third of the CPU time of its start.
MACHINE = ("-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
LOGGING = (
    "-Dorg.slf4j.simpleLogger.logFile=System.out",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS",
)
# Internal topics aren't replicated on a single broker, and few partitions start faster.
ALONE = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}


def bootstrap(layout: Layout) -> str:
    """Return the bootstrap address."""
    return f"{LOOPBACK}:{layout.ports['kafka']}"


def prepare(layout: Layout) -> None:
    """Download the jars and format the storage, if either is missing. Raises PartFailed, PartMissing, JarMismatch."""
    jars.provide("kafka", layout, "kafka")
    storage = layout.data / "kafka"
    if storage.exists():
        return
    fresh = layout.data / "kafka.new"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(mode=0o700)
    arguments = ["format", "--cluster-id", _cluster_id(), "--config", str(_write_properties(layout, fresh))]
    run(_java(layout, "kafka.tools.StorageTool", *arguments), layout.log("kafka"), layout.watchdog)
    # The storage doesn't contain its path, so the rename makes it appear only when complete.
    fresh.rename(storage)


def _cluster_id() -> str:
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode().replace("-", "A", 1)


def command(layout: Layout) -> Command:
    """Return the broker as a foreground process."""
    properties = _write_properties(layout, layout.data / "kafka")
    return _java(layout, "kafka.Kafka", str(properties))


def _java(layout: Layout, main_class: str, *options: str) -> Command:
    classes = os.pathsep.join(map(str, jars.jar_files("kafka")))
    # A class path of 46 jars would hide everything else in `ps`; a JVM also reads arguments from a file.
    arguments = layout.data / "kafka.arguments"
    write_private(arguments, f'-cp "{classes}"\n')
    argv = [find_java().program, f"@{arguments}", *MACHINE, *LOGGING, main_class, *options]
    return Command(argv, layout.plain_environment(), layout.data)


def _write_properties(layout: Layout, storage: Path) -> Path:
    broker, controller = (f"{LOOPBACK}:{layout.ports[name]}" for name in PORTS)
    values = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{broker},CONTROLLER://{controller}",
        "advertised.listeners": f"PLAINTEXT://{broker}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": str(storage),
        **ALONE,
    }
    path = layout.data / "kafka.properties"
    write_private(path, properties_text(values))
    return path


def properties_text(values: Mapping[str, str]) -> str:
    """Return a Java properties file with these values."""
    return "".join(f"{name}={_escaped(value)}\n" for name, value in values.items())


def _escaped(value: str) -> str:
    """Escape a value for a Java properties file, which is read as Latin-1."""
    text = value.replace("\\", "\\\\")
    return "".join(sign if sign.isascii() else f"\\u{ord(sign):04x}" for sign in text)


def probe(layout: Layout) -> str | None:
    """Return the bootstrap address once the broker returns its metadata; None before."""
    if not answers(layout.ports["kafka"]):
        return None
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    client = AdminClient({"bootstrap.servers": bootstrap(layout), "log_level": 0, "socket.timeout.ms": 2000})
    try:
        return bootstrap(layout) if client.list_topics(timeout=2).brokers else None
    except KafkaException:
        return None
