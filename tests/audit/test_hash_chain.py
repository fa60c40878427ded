"""The chain of seals: what was committed is sealed once, in an order that holds, and any later change of it shows."""

from __future__ import annotations

import csv
import io
import json
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import ProgrammingError, connection, transaction
from django.test import Client

from registry.access.roles import Actor
from registry.audit import hash_chain
from registry.audit.context import record
from registry.audit.models import AuditEvent
from registry.audit.tasks import seal_events
from registry.subjects.services import set_config
from tests.services_plugin import as_owner

LEVELS = ("FULL", "NONE", "FORWARD", "BACKWARD")


@pytest.fixture
def some_changes(registries: None, system: Actor) -> None:
    for level in LEVELS:
        set_config(registry="dev", subject=None, level=level, by=system)


def test_everything_is_sealed_once_and_verifies(some_changes: None) -> None:
    assert hash_chain.verify().unsealed == AuditEvent.objects.count()
    seal_events()
    chain = hash_chain.verify()
    assert (chain.problem, chain.unsealed, chain.head.position) == ("", 0, AuditEvent.objects.count())
    seal_events()
    assert hash_chain.head() == chain.head


def test_later_events_are_the_unsealed_tail_and_continue_the_chain(some_changes: None, system: Actor) -> None:
    seal_events()
    before = hash_chain.head()
    set_config(registry="dev", subject=None, level="FULL_TRANSITIVE", by=system)
    chain = hash_chain.verify(before)
    assert (chain.problem, chain.unsealed) == ("", 1)
    assert chain.oldest_unsealed is not None
    seal_events()
    assert hash_chain.verify(before).head.position == before.position + 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (
            "UPDATE audit_auditevent SET actor = 'nobody' WHERE position = 3",
            "position 3 is not the event that was sealed",
        ),
        ("UPDATE audit_auditevent SET at = at + interval '1 microsecond' WHERE position = 2", "position 2 is not"),
        ("UPDATE audit_auditevent SET after = after || '{\"x\": 1}' WHERE position = 2", "position 2 is not"),
        ("DELETE FROM audit_auditevent WHERE position = 3", "Position 3 of the chain is missing"),
        (
            "UPDATE audit_auditevent SET position = position + 1000 WHERE position = 4",
            "Position 4 of the chain is missing",
        ),
        (
            "DELETE FROM audit_auditevent WHERE position > (SELECT max(position) - 2 FROM audit_auditevent)",
            "The last 2 are missing",
        ),
        ("DELETE FROM audit_auditevent WHERE position IS NOT NULL", "The chain ends at position 0"),
        ("TRUNCATE audit_auditevent", "The chain ends at position 0"),
        ("DELETE FROM audit_chainhead", "record of the chain's head was removed"),
        ("UPDATE audit_chainhead SET position = position - 1", "beyond the recorded head"),
        ("UPDATE audit_chainhead SET seal = repeat('0', 64)", "differs from the recorded one"),
    ],
)
def test_whatever_the_owner_changes_shows(some_changes: None, statement: str, said: str) -> None:
    seal_events()
    with as_owner(), connection.cursor() as cursor:
        cursor.execute(statement)
    assert said in hash_chain.verify().problem
    with pytest.raises(CommandError, match="Everything before"):
        call_command("verify_audit")


@pytest.mark.django_db(transaction=True)
def test_events_missing_at_the_end_stay_noticed_when_sealing_goes_on(some_changes: None, system: Actor) -> None:
    seal_events()
    end = hash_chain.head().position
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM audit_auditevent WHERE position > %s", [end - 2])
    assert hash_chain.truncation() == hash_chain.verify().problem != ""
    set_config(registry="dev", subject=None, level="FULL", by=system)
    seal_events()
    assert f"Position {end - 1} of the chain is missing" in hash_chain.verify().problem


@pytest.mark.django_db(transaction=True)
def test_a_record_that_was_removed_is_not_made_again_in_silence(some_changes: None, system: Actor) -> None:
    seal_events()
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM audit_chainhead")
    set_config(registry="dev", subject=None, level="FULL", by=system)
    seal_events()
    assert "record of the chain's head was removed" in hash_chain.verify().problem


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_chainhead SET position = 1",
        "DELETE FROM audit_chainhead",
        "TRUNCATE audit_chainhead",
        "INSERT INTO audit_chainhead (id, position, seal, sealed_at) VALUES (1, 1, 'x', now())",
    ],
)
def test_the_applications_role_cannot_change_the_record(some_changes: None, statement: str) -> None:
    seal_events()
    with pytest.raises(ProgrammingError, match="permission denied"), transaction.atomic():
        connection.cursor().execute(statement)


@pytest.mark.django_db(transaction=True)
def test_anchors_of_a_file_show_a_chain_that_its_owner_recreated(some_changes: None, tmp_path: Path) -> None:
    anchors = tmp_path / "anchors.jsonl"
    for count, words in enumerate((["--seal"], [])):
        out = io.StringIO()
        call_command("verify_audit", *words, "--anchors", str(anchors), stdout=out)
        assert out.getvalue().startswith(f"Earlier heads compared: {count}."), "a file that isn't there shows"
    (first, second) = anchors.read_text().splitlines()
    assert json.loads(first)["head"] == json.loads(second)["head"] == str(hash_chain.head())
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("UPDATE audit_auditevent SET actor = 'nobody', position = NULL, seal = ''")
        cursor.execute("DELETE FROM audit_chainhead")
    seal_events()
    assert hash_chain.verify().problem == ""
    with pytest.raises(CommandError, match="differs from the noted one"):
        call_command("verify_audit", "--anchors", str(anchors))
    assert len(anchors.read_text().splitlines()) == 2


def test_a_file_that_holds_no_anchors_is_refused(some_changes: None, tmp_path: Path) -> None:
    (tmp_path / "anchors.jsonl").write_text("seals\n")
    with pytest.raises(CommandError, match="Line 1 of"):
        call_command("verify_audit", "--anchors", str(tmp_path / "anchors.jsonl"))
    (tmp_path / "anchors.jsonl").write_bytes(b"\xff")
    for path, words in {"anchors.jsonl": "can't be read", "": "can't be read", "away/file": "can't be written"}.items():
        with pytest.raises(CommandError, match=words):
            call_command("verify_audit", "--anchors", str(tmp_path / path))


@pytest.mark.django_db(transaction=True)
def test_a_chain_that_was_recreated_or_cut_is_not_the_noted_one(some_changes: None) -> None:
    seal_events()
    noted = hash_chain.head()
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("UPDATE audit_auditevent SET actor = 'nobody' WHERE position = 1")
        cursor.execute("UPDATE audit_auditevent SET position = NULL, seal = ''")
        cursor.execute("DELETE FROM audit_chainhead")
    seal_events()
    assert hash_chain.verify().problem == ""
    assert "differs from the noted one" in hash_chain.verify(noted).problem
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM audit_auditevent WHERE position > 2")
    assert "ends before" in hash_chain.verify(noted).problem


@pytest.mark.parametrize(
    "statement", ["UPDATE audit_auditevent SET position = 7, seal = 'x'", "UPDATE audit_auditevent SET position = NULL"]
)
def test_the_applications_role_cannot_seal_by_hand(some_changes: None, statement: str) -> None:
    with pytest.raises(ProgrammingError, match="permission denied"), transaction.atomic():
        connection.cursor().execute(statement)


@pytest.mark.django_db(transaction=True)
def test_two_that_seal_at_once_make_one_chain(some_changes: None) -> None:
    def seal() -> None:
        try:
            while hash_chain.seal_events(1):
                pass
        finally:
            connection.close()

    threads = [threading.Thread(target=seal) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    chain = hash_chain.verify()
    assert (chain.problem, chain.unsealed) == ("", 0)


@pytest.mark.django_db(transaction=True)
def test_what_commits_late_is_sealed_late(some_changes: None, system: Actor) -> None:
    """A transaction that began before others, and commits after they were sealed, isn't lost to the chain."""
    begun, go_on = threading.Event(), threading.Event()

    def slow() -> None:
        try:
            with transaction.atomic():
                record(by=system, why="slow")
                with connection.cursor() as cursor:
                    cursor.execute("UPDATE subjects_registry SET location = 'slow' WHERE name = 'dev'")
                begun.set()
                go_on.wait(60)
        finally:
            connection.close()

    thread = threading.Thread(target=slow)
    thread.start()
    assert begun.wait(60)
    set_config(registry="staging", subject=None, level="NONE", by=system)
    seal_events()
    early = hash_chain.head()
    go_on.set()
    thread.join()
    assert hash_chain.verify(early).unsealed == 1
    seal_events()
    chain = hash_chain.verify(early)
    assert (chain.problem, chain.unsealed, chain.head.position) == ("", 0, early.position + 1)
    slow_event = AuditEvent.objects.get(position=chain.head.position)
    assert slow_event.why == "slow"
    assert AuditEvent.objects.filter(position=early.position, id__gt=slow_event.pk).exists()


def test_the_command_prints_a_head_that_it_takes_again(some_changes: None) -> None:
    out = io.StringIO()
    call_command("verify_audit", "--seal", stdout=out)
    head = out.getvalue().strip().rpartition(" ")[2]
    call_command("verify_audit", "--expect", head, stdout=out)
    with pytest.raises(CommandError, match="differs from the noted one"):
        call_command("verify_audit", "--expect", f"{head.partition(':')[0]}:{'0' * 64}", stdout=out)


class TestExport:
    @pytest.fixture
    def headers(self, token: Callable[[str], str]) -> dict[str, str]:
        return {"authorization": f"Bearer {token('reader')}"}

    def test_json_lines_are_whole_and_oldest_first(
        self, client: Client, some_changes: None, headers: dict[str, str]
    ) -> None:
        answer = client.get("/api/v1/audit?table=subjects_config", headers=headers)
        rows = [json.loads(line) for line in answer.getvalue().decode().splitlines()]
        assert [row["after"]["compatibility_level"] for row in rows] == list(LEVELS)
        assert rows[0]["actor"] == "tests"

    def test_csv_cells_are_no_formulas(self, client: Client, registries: None, headers: dict[str, str]) -> None:
        with transaction.atomic():
            record(by=Actor(name="=1+1", channel="ui", origin="10.0.0.9"), why="@x")
            connection.cursor().execute("UPDATE subjects_registry SET location = 'x' WHERE name = 'dev'")
        answer = client.get("/api/v1/audit", {"as": "csv", "actor": "=1+1"}, headers=headers)
        (row,) = csv.DictReader(io.StringIO(answer.getvalue().decode()))
        assert (row["actor"], row["why"], row["origin"]) == ("'=1+1", "'@x", "10.0.0.9")

    def test_times_bound_it(self, client: Client, some_changes: None, headers: dict[str, str]) -> None:
        last = AuditEvent.objects.filter(table="subjects_config").latest("at").at
        query = {"table": "subjects_config", "since": last.isoformat(), "until": (last + timedelta(days=1)).isoformat()}
        answer = client.get("/api/v1/audit", query, headers=headers)
        assert len(answer.getvalue().decode().splitlines()) == 1

    @pytest.mark.parametrize(
        ("query", "named"), [("as=xml", "'xml'"), ("since=yesterday", "since"), ("colour=red", "'colour'")]
    )
    def test_a_filter_that_is_none_is_named(
        self, client: Client, registries: None, headers: dict[str, str], query: str, named: str
    ) -> None:
        answer = client.get(f"/api/v1/audit?{query}", headers=headers)
        assert answer.status_code == 422
        assert named in answer.json()["message"]

    def test_a_stranger_gets_nothing(self, client: Client, some_changes: None) -> None:
        assert client.get("/api/v1/audit").status_code == 401
