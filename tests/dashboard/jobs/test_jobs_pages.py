"""The page of jobs: what waits and what failed, each with what the reader may do about it; a broken part blanks nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dashboard.jobs import views as jobs
from registry.access.models import User
from registry.access.roles import Actor
from registry.audit.hash_chain import seal_events
from registry.drift.models import Cluster, Scan, Source
from registry.notifications.models import Attempt, Delivery, Notice, Webhook
from registry.promotions.models import PromotionRequest
from registry.search.services import index_stale
from registry.subjects.models import Registry
from tests.conftest import RawClient
from tests.dashboard.test_every_page import content  # noqa: F401 - fixtures

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-2", "CARD-4")]
QUERIES = json.loads((Path(__file__).parents[1] / "query_counts.json").read_text())


def part(client: Client, key: str) -> str:
    """One panel of the page."""
    response = client.get("/ui/jobs")
    assert response.status_code == 200
    match = re.search(rf'<section class="panel" id="{key}".*?</section>', response.content.decode(), flags=re.DOTALL)
    assert match is not None
    return match[0]


def test_a_scan_has_its_duration_and_can_be_started_again(
    look: Callable[[str], Client],
    content: dict[str, int],  # noqa: F811
) -> None:
    steward = look("steward")
    shown = part(steward, "scans")
    assert "orders" in shown and "2.0 s" in shown and f'action="/ui/sources/{content["source"]}/scan"' in shown
    Scan.objects.filter(pk=content["scan"]).update(state="failed", error="The broker is gone <b>")
    failed = part(steward, "scans")
    assert "Failed" in failed and "The broker is gone &lt;b&gt;" in failed
    reader = part(look("reader"), "scans")
    assert "disabled" in reader and "You need the" in reader


def test_a_mirror_that_fails_says_why(look: Callable[[str], Client], content: dict[str, int]) -> None:  # noqa: F811
    Registry.objects.filter(name="staging").update(
        kind="remote",
        url="http://theirs.example",
        every_seconds=60,
        sync_error="HTTP 502",
        failing_since=timezone.now(),
    )
    shown = part(look("reader"), "mirrors")
    assert "staging" in shown and "HTTP 502" in shown and "Failed" in shown and "every 1 minute" in shown


def test_what_is_scheduled_or_stopped_half_way_leads_to_its_request(
    look: Callable[[str], Client],
    content: dict[str, int],  # noqa: F811
) -> None:
    client, rows = look("reader"), PromotionRequest.objects.filter(pk=content["request"])
    assert "No requests are scheduled" in part(client, "applies")
    rows.update(state="scheduled", apply_at=timezone.now() + timedelta(hours=1))
    assert "Waiting" in part(client, "applies")
    rows.update(state="failed", failure="registry.example answered 503")
    shown = part(client, "applies")
    assert "answered 503" in shown and f'href="/ui/promotions/{content["request"]}"' in shown


def delivery(owner: str, state: str) -> Delivery:
    hook = Webhook.objects.create(
        owner=User.objects.get(username=owner), name=f"of {owner}", url="https://theirs.example/x", host="theirs.example",
        events=["version.registered"], public_id=f"hook-{owner}",
    )  # fmt: skip
    notice = Notice.objects.create(
        event="version.registered", registry="dev", subject="s", text="t", url="/ui/", data={}
    )
    row = Delivery.objects.create(webhook=hook, notice=notice, state=state, next_attempt_at=timezone.now())
    Attempt.objects.create(delivery=row, status=500, error=f"HTTP 500 for {owner}", seconds=0.1)
    return row


def test_deliveries_are_those_of_ones_own_webhooks(
    look: Callable[[str], Client],
    content: dict[str, int],  # noqa: F811
    person: Callable[[str], Actor],
) -> None:
    person("reader")
    person("approver")
    failed, waiting = delivery("reader", "failed"), delivery("approver", "queued")
    reader, admin = part(look("reader"), "deliveries"), part(look("admin"), "deliveries")
    assert "HTTP 500 for reader" in reader and f"/deliveries/{failed.pk}/replay" in reader
    assert "of approver" not in reader
    assert "of approver" in admin and "of reader" in admin
    assert f"/deliveries/{waiting.pk}/replay" not in admin
    assert "No pending or failed deliveries" in part(look("steward"), "deliveries")


def test_the_index_and_the_seals_say_how_far_they_are(
    look: Callable[[str], Client],
    content: dict[str, int],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = look("reader")
    assert "out of date" in part(client, "index")
    index_stale()
    assert "Up to date." in part(client, "index")
    assert "sealed yet" in part(client, "sealing")
    monkeypatch.setattr(jobs, "SEALED_WITHIN", timedelta(0))
    assert "no worker is sealing" in part(client, "sealing")
    while seal_events():
        pass
    assert "sealed yet" not in part(client, "sealing")


@pytest.mark.parametrize("broken", ["list_sources", "list_mirrors", "list_requests", "deliveries_under_way", "backlog"])
def test_a_part_that_cannot_be_read_leaves_the_others(
    look: Callable[[str], Client],
    content: dict[str, int],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    broken: str,
) -> None:
    def fail(*args: object, **named: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 / 0")

    monkeypatch.setattr(jobs, broken, fail)
    text = look("reader").get("/ui/jobs").content.decode()
    assert text.count("This section can’t be loaded.") == 1
    assert text.count('<section class="panel"') == 8
    assert "Audit log seals" in text


def test_who_may_not_read_the_audit_sees_no_jobs(look: Callable[[str], Client]) -> None:
    assert look("stranger").get("/ui/jobs").status_code == 403
    assert RawClient().get("/ui/jobs").status_code == 302


def test_more_jobs_take_no_more_queries(
    look: Callable[[str], Client],
    content: dict[str, int],  # noqa: F811
) -> None:
    client = look("admin")

    def queries() -> int:
        with CaptureQueriesContext(connection) as executed:
            assert client.get("/ui/jobs").status_code == 200
        # savepoints are there only because a test is a transaction
        return sum("SAVEPOINT" not in query["sql"] for query in executed)

    first = queries()
    cluster = Cluster.objects.get()
    for number in range(60):
        Source.objects.create(
            registry=Registry.objects.get(name="dev"), kind="kafka", name=f"t{number}", every_seconds=60,
            created_by="steward", cluster=cluster,
        )  # fmt: skip
    assert queries() == first <= QUERIES["jobs"]
    assert "11 more are not shown." in part(client, "scans")
