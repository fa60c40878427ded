"""Debezium's real connector: on what it runs, and its events in each of the three ways to write them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dashboard.demo.apicurio_endpoint import apicurio_endpoint
from dashboard.demo.shop import CONVERTERS, Converter
from tests.debezium.events import write
from tests.debezium.scenarios import Run, Runtime, run_scenarios, scenarios_of
from tests.debezium.services import LogicalDatabase, ask, logical_database, schemadesk_server

#: a folder: the session's events are kept there (record.py sets it)
RECORD_IN = "RECORD_DEBEZIUM_EVENTS"


@pytest.fixture(scope="session")
def runtime(connect_url: str, kafka_bootstrap: str) -> Runtime:
    """What connectors run on, without a registry."""
    return Runtime(connect_url, kafka_bootstrap)


@pytest.fixture
def database(logical_postgres: str) -> Iterator[LogicalDatabase]:
    """A fresh database that a connector may read."""
    with logical_database(logical_postgres) as made:
        yield made


@pytest.fixture(scope="session")
def scenario_run(request: pytest.FixtureRequest, runtime: Runtime, logical_postgres: str) -> Callable[[Converter], Run]:
    """Runs all scenarios under a connector with this converter; once a session for each."""
    runs: dict[Converter, Run] = {}

    def run(converter: Converter) -> Run:
        if converter not in runs:
            folder = os.environ.get(RECORD_IN)
            # What is recorded shall say the same each time, and has a broker of its own.
            prefix = f"shop_{converter}" if folder else ""
            with logical_database(logical_postgres) as database:
                if converter == "avro":
                    runs[converter] = _run_avro(request, runtime, database, prefix)
                else:
                    runs[converter] = run_scenarios(runtime, database, converter, prefix=prefix)
            if folder:
                _record(Path(folder), converter, runs[converter])
        return runs[converter]

    return run


@pytest.fixture(scope="session", params=CONVERTERS)
def run(request: pytest.FixtureRequest, scenario_run: Callable[[Converter], Run]) -> Run:
    """The events of all scenarios, in each way to write them."""
    return scenario_run(request.param)


@pytest.fixture(scope="session")
def avro_run(scenario_run: Callable[[Converter], Run]) -> Run:
    """The events of all scenarios, as Avro."""
    return scenario_run("avro")


def _run_avro(request: pytest.FixtureRequest, runtime: Runtime, database: LogicalDatabase, prefix: str) -> Run:
    with schemadesk_server(request) as (url, token), apicurio_endpoint(url) as endpoint:
        ask(url, token, "PUT", "/config", {"compatibility": "NONE"})
        found = run_scenarios(replace(runtime, endpoint=endpoint, token=token), database, "avro", prefix=prefix)
        schemas = {}
        for subject in ask(url, token, "GET", f"/subjects?subjectPrefix={found.prefix}."):
            for version in ask(url, token, "GET", f"/subjects/{subject}/versions"):
                row = ask(url, token, "GET", f"/subjects/{subject}/versions/{version}")
                uses = schemas.setdefault(row["id"], {"schema": row["schema"], "versions": []})["versions"]
                uses.append({"subject": subject, "version": version})
    return replace(found, schemas=schemas)


def _record(folder: Path, converter: Converter, found: Run) -> None:
    """Keeps the events by scenario, and the schemas."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in scenarios_of(converter):
        write(folder / f"{name}.{converter}.jsonl", found.of(name))
    if found.schemas:
        text = json.dumps(found.schemas, indent=1, ensure_ascii=False, sort_keys=True)
        (folder / "schemas.avro.json").write_text(text + "\n", encoding="utf-8")
