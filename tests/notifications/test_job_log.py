"""What tasks log is kept: the end of the last run, masked, by whoever runs it; and nothing of it makes a task fail."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from celery import shared_task, signals
from django.db import DatabaseError
from django.test import Client
from django.utils import timezone

from dashboard.jobs import runs
from registry.access.models import User
from registry.notifications import job_log
from registry.notifications.models import JobRun
from tests.conftest import signed_in
from tests.dashboard.jobs.test_jobs_pages import part
from tests.dashboard.test_every_page import content  # noqa: F401 - fixture

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-2", "CARD-4")]
log = logging.getLogger("registry.tests")


@pytest.fixture(autouse=True)
def worker() -> Iterator[None]:
    """This process listens as a worker does."""
    job_log.listen()
    job_log._noted.clear()
    yield
    root = logging.getLogger()
    root.handlers = [each for each in root.handlers if not isinstance(each, job_log.TailHandler)]
    logging.getLogger("registry").setLevel(logging.NOTSET)
    signals.task_prerun.disconnect(dispatch_uid="job_log_begin")
    signals.task_postrun.disconnect(dispatch_uid="job_log_end")


@shared_task(name="tests.notifications.job")
def job(number: str, lines: list[str], error: Exception | None) -> None:
    """Logs, and fails if it is to."""
    for line in lines:
        log.warning(line)
    if error:
        log.error("it went wrong", exc_info=error)
        raise error


def run(*lines: str, error: Exception | None = None) -> JobRun | None:
    """The task, as a worker runs it."""
    job.apply(["7", list(lines), error])
    return JobRun.objects.filter(task=job.name, key="7").first()


def test_the_last_run_has_its_lines_and_how_it_went() -> None:
    log.warning("outside of any task")
    first = run("one", "two <b>")
    assert first is not None and first.state == "done" and first.finished_at is not None
    assert [line.split(": ", 1)[1] for line in first.lines] == ["one", "two <b>"]
    second = run("three", error=RuntimeError("postgresql://u:hunter2@db/x"))
    assert second is not None and (second.pk, second.state) == (first.pk, "failed")
    assert second.error == "RuntimeError: see the worker's log."
    assert "hunter2" not in str(second.lines) and "(RuntimeError)" in str(second.lines)


def test_what_is_said_in_passing_is_kept_though_celery_wants_warnings_alone() -> None:
    root = logging.getLogger()
    before = root.level
    root.setLevel(logging.WARNING)
    try:
        assert log.isEnabledFor(logging.INFO)
    finally:
        root.setLevel(before)


def test_a_run_that_says_nothing_leaves_the_lines_and_is_noted_once() -> None:
    first = run("one")
    JobRun.objects.update(seconds=-1)
    quiet = run()
    assert first is not None and quiet is not None
    assert (quiet.lines, quiet.seconds) == (first.lines, -1)
    job_log._noted.clear()
    again = run()
    assert again is not None and again.lines == first.lines and again.seconds >= 0


def test_there_are_at_most_so_many_lines_of_a_length() -> None:
    found = run(*(f"{number} {'x' * 2000}\n\0" for number in range(250)))
    assert found is not None and (len(found.lines), found.left_out) == (200, 50)
    assert max(map(len, found.lines)) <= job_log.LONGEST_LINE and " 50 x" in found.lines[0]


@pytest.mark.parametrize(
    "said",
    [
        "password=hunter2!x", "Password: hunter2!x", "the secret is hunter2!x", "token=hunter2!x&a=b",
        "Authorization: Bearer hunter2!x", "Authorization: Basic aHVudGVyMiF4", "https://me:hunter2!x@host/path",
        '{"api_key": "hunter2!x"}', "sd_hunter2x", "key whsec_hunter2x", "sent basic aHVudGVyMiF4 there", "mail: s3cret-of-mail", "former: s3cret-fallback",
    ],
)  # fmt: skip
def test_what_could_be_a_secret_is_masked(said: str, settings: Any) -> None:
    settings.EMAIL_HOST_PASSWORD = "s3cret-of-mail"
    settings.SECRET_KEY_FALLBACKS = ["s3cret-fallback"]
    shown = job_log.masked(said)
    assert "hunter2" not in shown and "aHVudGVyMiF4" not in shown and "s3cret" not in shown
    assert job_log.MASK in shown


def test_what_is_no_secret_stays() -> None:
    said = "scan 17: 3 of 4 topics, orders-value at https://registry.example.com:8081/subjects"
    assert job_log.masked(said) == said


def test_no_task_fails_because_its_log_can_not_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise DatabaseError

    monkeypatch.setattr(job_log, "_keep", refuse)
    assert run("one") is None


def test_the_page_has_the_log_the_schedule_and_the_queues(
    look: Any,
    content: dict[str, int],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("redis.Redis.llen", lambda _client, name: {"default": 1234, "scans": 0}[name])
    steward: Client = look("steward")
    now = timezone.now()
    row = JobRun.objects.create(
        task=runs.SCAN, key=str(content["scan"]), state="failed", started_at=now, finished_at=now,
        lines=["14:00:00 INFO x: <i>read</i>"], left_out=3, error="RuntimeError: see the worker's log.",
    )  # fmt: skip
    JobRun.objects.create(
        task="registry.audit.tasks.seal_events", state="done", started_at=now, finished_at=now, seconds=2
    )
    assert f'href="/ui/jobs/runs/{row.pk}"' in part(steward, "scans")
    schedule = part(steward, "schedule")
    assert "Seal the audit" in schedule and "every 30 seconds" in schedule and "2.0 s" in schedule
    assert "1,234 tasks queued." in part(steward, "queues")
    page = steward.get(f"/ui/jobs/runs/{row.pk}").content.decode()
    assert "&lt;i&gt;read&lt;/i&gt;" in page and "3 earlier lines are not shown." in page and "RuntimeError" in page
    assert steward.get("/ui/jobs/runs/999999").status_code == 404
    User.objects.create(username="stranger9")
    other = signed_in("stranger9")
    assert other.get(f"/ui/jobs/runs/{row.pk}").status_code == 403


def test_queues_that_can_not_be_asked_say_so(
    look: Any,
    content: dict[str, int],  # noqa: F811
    settings: Any,
) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    assert "Can’t read the queues from Valkey: ConnectionError" in part(look("steward"), "queues")
