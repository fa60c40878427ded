"""The way from the commit to the worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings as configured

from dashboard.celery import app
from registry.access.roles import Actor
from registry.notifications import services, tasks
from registry.notifications.models import Delivery
from tests.notifications.conftest import tell
from tests.notifications.endpoint import Endpoint


@pytest.fixture
def at_once() -> Iterator[None]:
    """Tasks run where they are called."""
    app.conf.task_always_eager = True
    yield
    app.conf.task_always_eager = False


def test_the_sweep_delivers_what_is_due(hook: str, server: Endpoint, at_once: None) -> None:
    tell()
    tell()
    tasks.queue_due_deliveries()
    assert set(Delivery.objects.values_list("state", flat=True)) == {"delivered"}
    tasks.queue_due_deliveries()
    assert len(server.got) == 2


def test_a_commit_wakes_the_sweep_once_it_is_there_and_a_dead_broker_fails_nothing(
    hook: str,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    sent: list[str] = []

    def broken(name: str, *_args: Any, **_options: Any) -> None:
        sent.append(name)
        raise OSError("no broker")

    monkeypatch.setattr(services.current_app, "send_task", broken)
    with django_capture_on_commit_callbacks(execute=False) as callbacks:
        tell()
    assert sent == []  # nothing leaves before the commit
    assert len(callbacks) == 1
    callbacks[0]()
    assert sent == [services.SWEEP]
    assert "waits for beat" in caplog.text and "Traceback" not in caplog.text


def test_nothing_is_woken_where_no_webhook_is_notified(
    person: Callable[[str], Actor], django_capture_on_commit_callbacks: Any
) -> None:
    services.subscribe(event="*", by=person("reader"))
    with django_capture_on_commit_callbacks(execute=False) as callbacks:
        tell()
    assert callbacks == []


def test_the_names_that_the_schedule_and_the_services_use_are_tasks() -> None:
    app.loader.import_default_modules()
    named = {row["task"] for row in configured.CELERY_BEAT_SCHEDULE.values()} | {services.SWEEP}
    assert {name for name in named if "notifications" in name} <= set(app.tasks)


@pytest.mark.django_db(transaction=True)
def test_a_dead_broker_fails_no_change(hook: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_name: str, *_args: Any, **_options: Any) -> None:
        raise OSError("no broker")

    monkeypatch.setattr(services.current_app, "send_task", broken)
    assert tell() == 1
    assert Delivery.objects.get().state == "queued"
