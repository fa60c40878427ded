"""The doctor: says of each part what is there, what is wrong and the cure; what it couldn't ask isn't well."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from dashboard.management import diagnosis
from dashboard.management.diagnosis import Diagnosis, diagnose
from dashboard.runtime.layout import free_port
from registry.audit.hash_chain import seal_events
from registry.audit.models import AuditEvent, ChainHead
from registry.drift.models import Cluster
from registry.notifications.models import JobRun
from tests.services_plugin import as_owner

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-1")]


def of(part: str) -> list[Diagnosis]:
    return [item for item in diagnose() if item.part == part]


def one(part: str) -> Diagnosis:
    (item,) = of(part)
    return item


def test_each_part_of_an_installation_has_a_line(registries: None, settings: Any, tmp_path: Path) -> None:
    settings.SECRETS_DIR, settings.DATA_DIR = tmp_path, tmp_path
    parts = {item.part: item.state for item in diagnose()}
    assert parts["database"] == "ok"
    assert parts["valkey"] == "ok"
    assert parts["secrets"] == "ok"
    assert parts["audit"] == "ok"
    assert parts["mail"] == "not checked", "no server is set"
    assert parts["queue default"] == parts["queue scans"] == "fails", "no worker runs here"


def test_every_failure_has_a_cure(registries: None, settings: Any, tmp_path: Path) -> None:
    settings.SECRETS_DIR = tmp_path / "absent"
    settings.SPARK_REMOTE = f"sc://127.0.0.1:{free_port()}/;token=geheim"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", free_port()
    Cluster.objects.create(name="away", bootstrap=f"127.0.0.1:{free_port()}", created_by="tests")
    found = list(diagnose())
    failing = {item.part for item in found if item.state == "fails"}
    assert {"spark", "mail", "secrets", "cluster away", "scheduler", "queue default"} <= failing
    assert all(item.cure for item in found if item.state in ("fails", "warning"))
    assert "geheim" not in str(found)


def test_the_scheduler_is_well_while_tasks_run(registries: None) -> None:
    run = JobRun.objects.create(task="t", state="done", started_at=timezone.now() - timedelta(minutes=6))
    assert one("scheduler").state == "fails"
    JobRun.objects.filter(pk=run.pk).update(started_at=timezone.now())
    assert one("scheduler").state == "ok"


@pytest.mark.django_db(transaction=True)
def test_events_that_nobody_seals_and_a_cut_end_are_reported(registries: None) -> None:
    with as_owner():
        AuditEvent.objects.update(at=timezone.now() - timedelta(hours=1))
    assert "aren't sealed" in one("audit").sentence
    while seal_events():
        pass
    assert one("audit").state == "ok"
    with as_owner():
        AuditEvent.objects.order_by("-position").first().delete()  # type: ignore[union-attr]
    assert one("audit").state == "fails"


def test_notifications_come_from_the_server_itself(
    registries: None, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert of("notifications") == [], "nothing listens without the response cache"
    settings.HOT_PATH = True
    assert one("notifications").state == "ok"
    with monkeypatch.context() as patch:
        patch.setattr(diagnosis, "is_pooled", lambda _: True)
        assert (one("notifications").state, "DATABASE_DIRECT_URL" in one("notifications").cure) == ("warning", True)
    settings.DATABASE_DIRECT_URL = f"postgresql://nobody@127.0.0.1:{free_port()}/none"
    assert one("notifications").state == "fails"


def test_secrets_that_others_can_read_are_named(registries: None, settings: Any, tmp_path: Path) -> None:
    settings.SECRETS_DIR = tmp_path
    (tmp_path / "kafka").write_text("broker:9092 geheim")
    (tmp_path / "kafka").chmod(0o644)
    item = one("secrets")
    assert (item.state, "kafka" in item.sentence, "geheim" in item.sentence) == ("warning", True, False)
    (tmp_path / "kafka").chmod(0o600)
    assert one("secrets").state == "ok"


@contextmanager
def database_away(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def refuse(*_: Any, **__: Any) -> None:
        raise OperationalError("connection refused\nIs the server running?")

    with monkeypatch.context() as patch:
        patch.setattr(connection, "cursor", refuse)
        yield


def test_without_the_database_the_rest_is_not_checked_but_never_well(
    registries: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database_away(monkeypatch):
        found = {item.part: item for item in diagnose()}
    assert (found["database"].state, found["database"].sentence) == ("fails", "It doesn't answer: connection refused")
    assert {found[part].state for part in ("audit", "scheduler", "clusters", "remote registries")} == {"not checked"}
    assert found["valkey"].state == "ok"


def test_without_a_table_the_rest_is_still_checked(registries: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ChainHead._meta, "db_table", "not_yet_made")
    with transaction.atomic():
        found = {item.part: item for item in diagnose()}
        transaction.set_rollback(True)
    assert (found["audit"].state, "not_yet_made" in found["audit"].sentence) == ("not checked", True)
    assert found["valkey"].state == "ok"


def test_the_command_prints_lines_or_json_and_ends_with_1(registries: None) -> None:
    out = StringIO()
    with pytest.raises(SystemExit) as end:
        call_command("doctor", stdout=out)
    assert end.value.code == 1
    assert "→ Start `schemadesk worker --queue scans`." in out.getvalue()
    out = StringIO()
    with pytest.raises(SystemExit):
        call_command("doctor", json=True, stdout=out)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert {"part", "state", "sentence", "cure"} == set(lines[0])
