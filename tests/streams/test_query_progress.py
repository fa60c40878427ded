"""Reports of running queries: who may send them, what they add up to, that twice is once, and that little is kept."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from registry.access.roles import Actor, Grant, TokenLimit
from registry.access.services import issue_token
from registry.drift.models import Source
from registry.errors import NotAllowed
from registry.streams import query_progress
from registry.streams.models import ProgressPoint, QueryRun, StreamQuery
from registry.streams.progress_history import SILENT, progress_of
from registry.streams.query_progress import MAX_EVENTS, report_progress
from registry.subjects.models import Registry
from tests.conftest import RawClient

pytestmark = pytest.mark.requirement("DBX-7")
QUERY, RUN, NEXT = (str(uuid.UUID(int=number)) for number in (1, 2, 3))
URL = "/api/v1/query-progress"
DAY = 24 * 3600 * 1000
OPERATOR = {"name": "stateStoreSave", "rows": 5, "bytes": 100, "partitions": 4}


def event(kind: str = "batch", run: str = RUN, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "query": QUERY, "run": run, "age_ms": 0, **more}


def batch(number: int, rows: int = 10, **more: Any) -> dict[str, Any]:
    return event(batch=number, rows=rows, duration_ms=200, operators=[OPERATOR], **more)


@pytest.fixture
def query(registries: None) -> StreamQuery:
    registry = Registry.objects.get(name="dev")
    source = Source.objects.create(registry=registry, kind="state_store", name="/c/totals", created_by="tests")
    return StreamQuery.objects.create(
        source=source, registry=registry, path="/c/totals", query_id=QUERY, encoding="avro", allowed_value_schemas=16,
        allowed_schema_files=128, scanned_at=timezone.now(),
    )  # fmt: skip


@pytest.fixture
def send(query: StreamQuery, api: Callable[[str], Client]) -> Callable[..., Any]:
    client = api("reader")

    def post(*events: dict[str, Any]) -> Any:
        return client.post(URL, json.dumps({"events": events}), content_type="application/json")

    return post


def totals(seconds: int) -> list[tuple[int, int]]:
    return list(ProgressPoint.objects.filter(seconds=seconds).values_list("batches", "rows"))


def test_a_report_that_arrives_twice_counts_once(send: Callable[..., Any]) -> None:
    # Older batches than the newest of the run are counted already, also when they arrive after it.
    report = [event("started", name="totals"), batch(0), batch(1, rows=5, dropped=2)]
    answers = [send(*report).json() for _ in range(2)] + [send(batch(0, rows=70)).json()]
    assert answers == [{"accepted": number, "unknown": []} for number in (3, 3, 1)]
    assert [totals(60), totals(3600)] == [[(2, 15)], [(2, 15)]]
    run = QueryRun.objects.get()
    assert (run.name, run.last_batch, run.dropped, run.is_restart) == ("totals", 1, 2, False)


def test_the_highest_of_a_minute_is_kept(query: StreamQuery, send: Callable[..., Any]) -> None:
    watermark = (timezone.now() - timedelta(minutes=3)).isoformat()
    higher = {**OPERATOR, "rows": 9, "bytes": 50}
    assert send(batch(0, watermark="1970-01-01T00:00:00.000Z")).status_code == 200
    (point,) = progress_of(query.pk, "hour").points
    assert (point.watermark_delay_ms, point.lag) == (None, None)
    send(batch(1, watermark=watermark, lag=7), {**batch(2, lag=3), "operators": [higher]})
    (point,) = progress_of(query.pk, "hour").points
    assert 180_000 <= (point.watermark_delay_ms or 0) < 200_000
    assert (point.batches, point.lag, point.operators[0].rows, point.operators[0].bytes) == (3, 7, 9, 100)
    send({**batch(3), "operators": [{**OPERATOR, "name": "dedupe", "rows": 1}]})
    assert [operator.name for operator in progress_of(query.pk, "hour").points[0].operators] == ["dedupe"]


def test_times_are_the_servers_and_old_ones_are_hours_alone(query: StreamQuery, send: Callable[..., Any]) -> None:
    send(event("started", age_ms=2 * DAY), batch(0, age_ms=2 * DAY), batch(1, age_ms=2**62))
    assert not totals(60)
    assert len(totals(3600)) == 1, "what is older than all that is kept is left out"
    run = QueryRun.objects.get()
    assert abs(timezone.now() - run.seen_at - timedelta(days=2)) < timedelta(minutes=1)


def test_runs_restart_fail_and_fall_silent(query: StreamQuery, send: Callable[..., Any]) -> None:
    assert progress_of(query.pk, "day").status == "none"
    send(event("started"), batch(0))
    assert progress_of(query.pk, "day").status == "running"
    send(event("ended", error="STREAM_FAILED"))
    failed = progress_of(query.pk, "day")
    assert (failed.status, failed.runs[0].error) == ("failed", "STREAM_FAILED")
    send(event("running", NEXT), event("ended", error="LATER"))
    again = progress_of(query.pk, "day")
    assert (again.status, [(run.is_restart, run.error) for run in again.runs]) == (
        "running", [(True, ""), (False, "STREAM_FAILED")],
    )  # fmt: skip
    QueryRun.objects.update(seen_at=timezone.now() - 2 * SILENT)
    assert progress_of(query.pk, "day").status == "silent"
    send(event("ended", NEXT))
    assert progress_of(query.pk, "day").status == "ended"


def test_what_is_kept_is_bounded(query: StreamQuery, send: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for seconds, days in ((60, 2), (3600, 91), (3600, 89)):
        at = timezone.now() - timedelta(days=days)
        ProgressPoint.objects.create(query=query, seconds=seconds, at=at)
    monkeypatch.setattr(query_progress, "MAX_RUNS", 3)
    runs = [str(uuid.UUID(int=number)) for number in range(10, 20)]
    send(*(event("started", run, age_ms=1_000 * (20 - number)) for number, run in enumerate(runs)))
    assert sorted(str(run) for run in QueryRun.objects.values_list("run_id", flat=True)) == runs[-3:]
    assert totals(60) == []
    assert len(totals(3600)) == 1
    assert send(*(event() for _ in range(MAX_EVENTS + 1))).status_code == 422


WRONG: list[tuple[dict[str, Any], int]] = [
    ({"kind": "else"}, 422),
    ({"query": "x"}, 422),
    ({"age_ms": -1}, 422),
    ({"age_ms": "nan"}, 422),
    ({"rows": 2**63}, 422),
    ({"watermark": "2026-01-01T00:00:00"}, 422),
    ({"name": "x" * 201}, 422),
    ({"name": "a\0b"}, 422),
    ({"operators": [OPERATOR] * 51}, 422),
    ({"operators": [{**OPERATOR, "key": 1}]}, 400),
    ({"padding": "x" * 2_200_000}, 413),
]


@pytest.mark.parametrize(("values", "status"), WRONG, ids=[str(values)[:40] for values, _ in WRONG])
def test_a_report_is_checked_before_anything_is_stored(
    send: Callable[..., Any], values: dict[str, Any], status: int
) -> None:
    assert send(batch(0), {**batch(1), **values}).status_code == status
    assert not QueryRun.objects.exists()


def test_who_may_report_for_one_registry_changes_no_other(query: StreamQuery, system: Actor) -> None:
    events = [{**batch(0), "dropped": 0, "watermark": None, "lag": None}]
    elsewhere = Actor("job", "product", user_id=1, grants=(Grant("reader", "prod"),))
    assert report_progress(events=events, by=elsewhere) == [QUERY], "as if no scan had found it"
    part = Actor("job", "product", user_id=1, grants=(Grant("reader", "dev", "orders-*"),))
    assert report_progress(events=events, by=part) == [QUERY]
    for scope in ("read", "register", "scan"):
        with pytest.raises(NotAllowed, match="scope report"):
            report_progress(
                events=events, by=Actor("j", "product", user_id=1, grants=(Grant("admin"),), limit=TokenLimit(scope))
            )
    assert not QueryRun.objects.exists()


def test_a_jobs_token_reports_and_does_nothing_else(
    query: StreamQuery, person: Callable[[str], Actor], system: Actor
) -> None:
    person("steward")
    secret = issue_token(username="steward", name="job", scope="report", registry="dev", by=system)
    client = RawClient(headers={"authorization": f"Bearer {secret}"})
    body = json.dumps({"events": [batch(0)]})
    assert client.post(URL, body, content_type="application/json").json() == {"accepted": 1, "unknown": []}
    for path in ("/subjects", "/api/v1/queries", f"/api/v1/queries/{query.pk}/progress"):
        assert client.get(path).status_code == 403, path
    assert RawClient().post(URL, body, content_type="application/json").status_code == 401


def test_the_api_and_the_page_show_it(
    query: StreamQuery, send: Callable[..., Any], api: Callable[[str], Client], look: Callable[[str], Client]
) -> None:
    page, address = look("reader"), f"/ui/queries/{query.pk}"
    text = page.get(address).content.decode()
    assert "No data yet" in text
    assert "schemadesk_spark.Listener(" in text
    send(batch(0, rows=600, age_ms=120_000), event("ended", error="<b>&"), batch(0, run=NEXT, lag=4))
    body = api("reader").get(f"/api/v1/queries/{query.pk}/progress?range=hour").json()
    assert (body["status"], [run["is_restart"] for run in body["runs"]]) == ("running", [True, False])
    assert sum(point["rows"] for point in body["points"]) == 610
    assert api("reader").get(f"/api/v1/queries/{query.pk}/progress?range=year").status_code == 422
    for within in ("hour", "day", "quarter"):
        text = page.get(f"{address}?range={within}").content.decode()
        for words in (
            "Rows a second",
            "State rows",
            "Messages to be read",
            "operator 0: stateStoreSave",
            "1 restart in",
        ):
            assert words in text, (within, words)
        assert "restarted" in text
        assert "failed: &lt;b&gt;&amp;" in text
    table = page.get(f"{address}?range=hour&as=csv&chart=rows").content.decode().splitlines()
    assert table[0] == "time,rows,marks"
    assert [line.split(",")[1] for line in table[1:] if line.split(",")[1] != "0"] == ["10", "1"], "600 in a minute"
    QueryRun.objects.update(seen_at=timezone.now() - 2 * SILENT)
    assert "The listener last reported" in page.get(address).content.decode()
