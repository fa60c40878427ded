"""From an empty form to an opened finding, in a real browser, with a real broker and a real Spark."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connections, transaction
from playwright.sync_api import Page, expect

from registry.access.roles import Actor
from registry.drift.models import Scan
from registry.drift.scan.runner import perform_scan
from registry.drift.sources import kafka_passes
from registry.drift.tasks import run_scan
from registry.subjects.services import register_version
from registry.subjects.versions.qualified_names import SubjectName
from tests.pipeline.topics import USER, fill, framed, make_topic, string
from tests.waiting import PATIENCE

pytestmark = [
    pytest.mark.browser,
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
]
UNKNOWN = 900_001
SPARK_SECONDS = 180


class Worker:
    """Takes scans from the pages as the worker does, in a thread each; holds each before Spark reads until told."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.threads: list[threading.Thread] = []

    def take(self, scan_id: int) -> None:
        """Begin once the request's transaction is done."""
        thread = threading.Thread(target=self._run, args=(scan_id,), daemon=True)
        self.threads.append(thread)
        transaction.on_commit(thread.start)

    def _run(self, scan_id: int) -> None:
        try:
            perform_scan(scan_id)
        finally:
            connections.close_all()


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    """In place of the one behind the queue, which works on another database."""
    made, channel = Worker(), kafka_passes.kafka_connection

    def held(cluster: Any) -> Any:
        assert made.go.wait(PATIENCE)
        return channel(cluster)

    monkeypatch.setattr(run_scan, "delay_on_commit", made.take)
    monkeypatch.setattr(kafka_passes, "kafka_connection", held)
    yield made
    made.go.set()
    for thread in made.threads:
        thread.join(SPARK_SECONDS)


@pytest.fixture
def topic(registries: None, settings: Any, kafka_bootstrap: str, spark_remote: str, system: Actor) -> str:
    """Users, one message with an id that nobody knows, and two with the id of another subject."""
    settings.KAFKA_BOOTSTRAP, settings.SPARK_REMOTE = kafka_bootstrap, spark_remote
    name = make_topic(kafka_bootstrap, [], partitions=1)
    other = USER.replace("User", "Other")
    own, foreign = (
        register_version(registry="dev", subject=SubjectName(".", subject), text=text, by=system).schema_id
        for subject, text in ((f"{name}-value", USER), ("elsewhere-value", other))
    )
    messages = [(0, None, framed(own, string(f"user {number}"))) for number in range(20)]
    messages += [(0, None, framed(UNKNOWN, b"?"))]
    messages += [(0, None, framed(foreign, string("ada@example.com")))] * 2
    fill(kafka_bootstrap, name, messages)
    return name


@pytest.mark.requirement("CARD-3")
def test_a_source_is_added_its_scan_watched_and_its_finding_opened(
    window: Callable[..., Page], worker: Worker, topic: str, kafka_bootstrap: str
) -> None:
    page = window("steward")
    page.goto("/ui/sources")
    page.get_by_role("link", name="Add a source").first.click()
    page.fill("input[name=name]", topic)
    page.fill("input[name=bootstrap]", kafka_bootstrap)
    page.fill("textarea[name=include]", topic)  # other tests fill topics of the same broker
    page.get_by_role("button", name="Add and scan").click()
    page.wait_for_url(re.compile(r"/ui/sources/[0-9]+$"))
    progress = page.locator("#progress")
    # The part asks for itself: the page is not loaded again until the scan is over.
    page.evaluate("document.body.dataset.first = 'yes'")
    expect(progress).to_contain_text("fetching topics and offsets from the cluster")
    expect(page.get_by_role("button", name="Cancel the scan")).to_be_visible()
    assert page.evaluate("document.body.dataset.first") == "yes"
    worker.go.set()
    expect(progress).to_contain_text("is done", timeout=SPARK_SECONDS * 1_000)
    expect(progress).to_contain_text("23 new messages in 1 of 1 topic")
    assert Scan.objects.get().state == "done"
    # With its end the whole page is another one, with what was found.
    expect(page.locator("main")).to_contain_text("belongs to elsewhere-value version 1")
    assert page.evaluate("document.body.dataset.first") is None
    source = page.url
    page.get_by_role("link", name=re.compile(str(UNKNOWN))).first.click()
    main = page.locator("main")
    expect(main).to_contain_text("Where and when seen")
    expect(main).to_contain_text("Messages over time")
    expect(main).to_contain_text(f"{topic}:0@20 (value)")
    expect(main).not_to_contain_text("Samples, masked")
    page.goto(source)
    page.get_by_role("link", name=re.compile("elsewhere-value version 1")).first.click()
    expect(main).to_contain_text("Samples, masked")
    expect(main).to_contain_text("aaa@aaaaaaa.aaa (15)")
    expect(main).not_to_contain_text("ada@example.com")
    seen_by_reader = window("reader")
    seen_by_reader.goto(page.url)
    expect(seen_by_reader.locator("main")).to_contain_text("to see samples of messages")
    expect(seen_by_reader.locator("main")).not_to_contain_text("aaa@aaaaaaa.aaa")
