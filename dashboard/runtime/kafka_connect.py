"""The embedded Kafka Connect with Debezium's PostgreSQL connector, on loopback and protected by a password.

One worker in distributed mode: it stores connectors and their offsets in topics, so that they survive a restart.
Whoever can create a connector can read this user's files, hence the password of its REST API. Connectors read secrets
as `${directory:FOLDER:NAME}` from the folder `connect/secrets`, so that none is in a connector's configuration, which
the worker stores in a topic.
"""

from __future__ import annotations

import base64
import os
import shutil
import urllib.error
import urllib.request
import zipfile
from pathlib import Path
from urllib.parse import quote

from dashboard.runtime import jars
from dashboard.runtime.java import find_java
from dashboard.runtime.kafka import LOGGING, properties_text
from dashboard.runtime.layout import LOOPBACK, Layout, write_private
from dashboard.runtime.process import Command

PORTS = ("connect",)
USER = "schemadesk"
MACHINE = ("-Xms96m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:MaxDirectMemorySize=64m")
WORKER = "org.apache.kafka.connect.cli.ConnectDistributed"
BASIC_AUTH = "org.apache.kafka.connect.rest.basic.auth.extension"
# Plugins by their jar set. Connect finds a plugin's classes by name in META-INF/services: Apicurio's has none.
PLUGINS: dict[str, dict[str, str]] = {
    "debezium": {},
    "apicurio": {
        "META-INF/services/org.apache.kafka.connect.storage.Converter": "io.apicurio.registry.utils.converter.AvroConverter"
    },
}
TOPICS = {kind: f"_schemadesk_connect_{kind}" for kind in ("config", "offset", "status")}
# A single worker waits for no others; offsets are committed often, because PostgreSQL retains its WAL since the last.
ALONE = {
    **{f"{kind}.storage.topic": topic for kind, topic in TOPICS.items()},
    **{f"{kind}.storage.replication.factor": "1" for kind in TOPICS},
    "offset.storage.partitions": "1",
    "status.storage.partitions": "1",
    "scheduled.rebalance.max.delay.ms": "0",
    "offset.flush.interval.ms": "2000",
}


def url(layout: Layout) -> str:
    """Return the URL of the REST API, with the user and password."""
    return f"http://{USER}:{quote(layout.secret('connect'), safe='')}@{LOOPBACK}:{layout.ports['connect']}"


def secrets_folder(layout: Layout) -> Path:
    """Return the folder of secrets that connectors can read, one per file: `${directory:FOLDER:NAME}`."""
    layout.folder("connect")
    return layout.folder("connect/secrets")


def prepare(layout: Layout) -> None:
    """Download the jars and create the plugin folders. Raises PartFailed, PartMissing, JarMismatch."""
    find_java()
    for name in ("connect", *PLUGINS):
        jars.provide(name, layout, "connect")
    folder = layout.folder("connect")
    # Created again, so that no jar of an older lock file remains.
    shutil.rmtree(folder / "plugins", ignore_errors=True)
    for name, services in PLUGINS.items():
        plugin = folder / "plugins" / name
        plugin.mkdir(parents=True)
        for jar in jars.jar_files(name):
            (plugin / jar.name).symlink_to(jar)
        if services:
            with zipfile.ZipFile(plugin / "services.jar", "w") as file:
                for entry, class_name in services.items():
                    file.writestr(entry, class_name + "\n")


def command(layout: Layout) -> Command:
    """Return the worker as a foreground process."""
    folder = layout.folder("connect")
    classes = os.pathsep.join(map(str, jars.jar_files("connect")))
    arguments = folder / "java.arguments"
    write_private(arguments, f'-cp "{classes}"\n')
    login = f"-Djava.security.auth.login.config={_write_login(layout, folder)}"
    argv = [find_java().program, f"@{arguments}", *MACHINE, *LOGGING, login, WORKER]
    return Command([*argv, str(_write_properties(layout, folder))], layout.plain_environment(), folder)


def _write_login(layout: Layout, folder: Path) -> Path:
    """Write the password, and the configuration by which Java's login modules find it."""
    passwords, login = folder / "passwords.properties", folder / "login.config"
    write_private(passwords, properties_text({USER: layout.secret("connect")}))
    module = f'{BASIC_AUTH}.PropertyFileLoginModule required file="{passwords}";'
    write_private(login, f"KafkaConnect {{\n    {module}\n}};\n")
    return login


def _write_properties(layout: Layout, folder: Path) -> Path:
    listener = f"http://{LOOPBACK}:{layout.ports['connect']}"
    json_converter = "org.apache.kafka.connect.json.JsonConverter"
    values = {
        "bootstrap.servers": layout.product["KAFKA_BOOTSTRAP"],
        "group.id": "schemadesk-connect",
        "key.converter": json_converter,
        "value.converter": json_converter,
        "listeners": listener,
        "rest.advertised.host.name": LOOPBACK,
        "rest.extension.classes": f"{BASIC_AUTH}.BasicAuthSecurityRestExtension",
        "plugin.path": str(folder / "plugins"),
        "plugin.discovery": "service_load",
        "config.providers": "directory",
        "config.providers.directory.class": "org.apache.kafka.common.config.provider.DirectoryConfigProvider",
        "config.providers.directory.param.allowed.paths": str(secrets_folder(layout)),
        **ALONE,
    }
    path = folder / "worker.properties"
    write_private(path, properties_text(values))
    return path


def probe(layout: Layout) -> str | None:
    """Return the URL without the password once the worker has read its topics and lists its connectors; None before."""
    address = f"http://{LOOPBACK}:{layout.ports['connect']}"
    login = base64.b64encode(f"{USER}:{layout.secret('connect')}".encode()).decode()
    request = urllib.request.Request(f"{address}/connectors", headers={"Authorization": f"Basic {login}"})  # noqa: S310
    try:
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=5).close()
    except urllib.error.HTTPError as error:
        error.close()
        return None
    except OSError:
        return None
    return address
