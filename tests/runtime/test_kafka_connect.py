"""The embedded Kafka Connect: who may ask it, what its connectors may read, what it keeps."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from dashboard.demo.shop import Connect, ConnectRefused, debezium
from tests.debezium.services import PUBLICATION, logical_database

pytestmark = [pytest.mark.broker, pytest.mark.connect, pytest.mark.slow]

PROBE = {"connector.class": "io.debezium.connector.postgresql.PostgresConnector", "topic.prefix": "x"}


def status_of(address: str, path: str, login: str = "", data: Mapping[str, str] | None = None) -> int:
    headers = {"Content-Type": "application/json"}
    if login:
        headers["Authorization"] = "Basic " + base64.b64encode(login.encode()).decode()
    body = json.dumps(data).encode() if data else None
    request = urllib.request.Request(address + path, body, headers, method="PUT" if data else "GET")
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_nobody_without_the_password_may_see_or_make_a_connector(connect_url: str) -> None:
    parts = urlsplit(connect_url)
    assert parts.hostname == "127.0.0.1"
    assert parts.password
    address = f"http://127.0.0.1:{parts.port}"
    for login in ("", "schemadesk:", "schemadesk:wrong", f"other:{unquote(parts.password)}"):
        assert status_of(address, "/connectors", login) == 401, login
        assert status_of(address, "/connectors/x/config", login, PROBE) == 401, login
    assert status_of(address, "/connectors", f"schemadesk:{unquote(parts.password)}") == 200


def test_it_has_debeziums_connector_and_a_converter_for_framed_avro(connect_url: str) -> None:
    plugins = Connect(connect_url)._ask("GET", "/connector-plugins?connectorsOnly=false")
    classes = {(plugin["class"], plugin.get("version")) for plugin in plugins}
    assert ("io.debezium.connector.postgresql.PostgresConnector", "3.7.0.Final") in classes
    assert "io.apicurio.registry.utils.converter.AvroConverter" in {name for name, _ in classes}
    connectors = {plugin["class"] for plugin in plugins if plugin["type"] in ("source", "sink")}
    assert connectors == {"io.debezium.connector.postgresql.PostgresConnector"}


def test_a_connector_can_read_no_file_outside_the_folder_of_secrets(
    connect_worker: tuple[str, Path], logical_postgres: str, tmp_path: Path
) -> None:
    url, secrets = connect_worker
    connect = Connect(url)
    with logical_database(logical_postgres) as database:
        for folder in (secrets, tmp_path, secrets.parent):
            (folder / "test-password").write_text(database.login.password)

        def log_in(folder: object) -> None:
            login = replace(database.login, password=f"${{directory:{folder}:test-password}}")
            connect.put("reader", debezium(login, prefix="reader", publication=PUBLICATION, more={}))

        try:
            # The connector logs in before it is taken, so it shows whether the password was read.
            for outside in (tmp_path, secrets.parent, f"{secrets}/..", f"{secrets}/../../connect"):
                with pytest.raises(ConnectRefused, match=r"(?i)password|null"):
                    log_in(outside)
            log_in(secrets)
            connect.wait_until_running("reader")
        finally:
            connect.delete("reader")
            for folder in (secrets, secrets.parent):
                (folder / "test-password").unlink()


def test_a_connector_that_is_not_there_and_a_worker_that_is_not_there(connect_url: str) -> None:
    connect = Connect(connect_url)
    assert connect.status("nobody").connector == "UNASSIGNED"
    assert not connect.status("nobody").running
    connect.delete("nobody")
    with pytest.raises(ConnectRefused, match="404") as caught:
        connect.restart_failed("nobody")
    assert caught.value.status == 404
    with pytest.raises(ConnectRefused, match="can't be reached"):
        Connect("http://127.0.0.1:1").names()
    with pytest.raises(ConnectRefused, match="400"):
        connect.put("bad", {"connector.class": "org.example.Nothing"})
