"""A scan of a real query's checkpoint: files and rows kept, twice the same, without Spark what the files say."""

from __future__ import annotations

import shutil
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from registry.access.roles import Actor
from registry.drift.models import Finding, Scan, Source
from registry.drift.scan.runner import perform_scan
from registry.observations import Observation, StateUnreadable
from registry.streams import selectors
from registry.streams.models import StateSchema, StreamQuery
from registry.streams.selectors import get_state_check
from registry.streams.services import check_document
from registry.subjects.models import Registry
from tests.checkpoints import make_fixtures

FIXTURES = Path(__file__).parents[1] / "checkpoints" / "fixtures"


def scan(path: Path) -> Scan:
    registry = Registry.objects.get(name="dev")
    source, _ = Source.objects.get_or_create(
        registry=registry, kind="state_store", name=str(path), defaults={"created_by": "tests"}
    )
    made = Scan.objects.create(source=source, queued_by="tests")
    assert perform_scan(made.pk) == "done"
    made.refresh_from_db()
    return made


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.requirement("CARD-3", "DBX-1", "DBX-6")
def test_rows_timers_and_history_of_a_real_query(
    spark_remote: str, tmp_path: Path, settings: Any, registries: None, system: Actor
) -> None:
    settings.SPARK_REMOTE, settings.CHECKPOINT_ROOTS = spark_remote, [tmp_path]
    path = make_fixtures.run(spark_remote, "timers_and_ttl", tmp_path)
    read = scan(path).read
    assert (read["rows"], read["rows_problem"], read["nothing"]) == (21, "", False)
    scan(path)
    (query,) = selectors.list_queries()
    assert query.operators[0]["timers"]["timers"] == 7
    variables = {variable.name: variable for variable in selectors.variables_with_schemas(query.id)}
    assert {name: (variable.rows, variable.keys, len(variable.schemas)) for name, variable in variables.items()} == {
        "counts": (7, 7, 1),
        "last_visit": (7, 7, 1),
        "pages": (7, 7, 1),
    }
    assert variables["last_visit"].expiry["without"] == 0
    assert selectors.non_null_counts(str(path)) is not None
    pages = {"name": "pages", "kind": "list", "value_schema": "page STRING"}
    less = {"name": "last_visit", "value_schema": "visits INT", "ttl": True}
    check = check_document(checkpoint=str(path), plan={"variables": [pages, less], "removed": ["counts"]}, by=system)
    assert "page is removed, and it is filled in 100 % (7 of 7 rows)" in get_state_check(check).text
    assert not Finding.objects.exclude(severity="notice").exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.requirement("DBX-6")
def test_without_spark_the_files_are_kept_and_the_rows_are_said_to_be_unread(settings: Any, registries: None) -> None:
    settings.SPARK_REMOTE, settings.CHECKPOINT_ROOTS = "", [FIXTURES]
    read = scan(FIXTURES / "customer_totals").read
    assert "No Spark Connect server is configured" in read["rows_problem"]
    assert (StreamQuery.objects.count(), StateSchema.objects.count()) == (1, 5)
    (totals,) = [
        variable for variable in selectors.list_variables(StreamQuery.objects.get().pk) if variable.name == "totals"
    ]
    assert (totals.rows, "not read" in totals.rows_problem) == (None, True)
    rules = set(Finding.objects.values_list("rule", flat=True))
    assert {"RENAME_SUSPECTED", "STATE_SCHEMA_EVOLVED"} <= rules


@pytest.mark.django_db(transaction=True)
@pytest.mark.requirement("CARD-3")
def test_what_rows_showed_stays_when_spark_can_open_the_folder_no_more(
    settings: Any, registries: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = FIXTURES / "customer_totals"
    settings.SPARK_REMOTE, settings.CHECKPOINT_ROOTS = "sc://127.0.0.1:1", [FIXTURES]
    answers: list[list[Observation]] = [[StateUnreadable(0, "totals", 4, "the batch is gone")], [], []]
    # The package has a function of its module's name.
    monkeypatch.setattr(import_module("registry.pipeline.run"), "run", lambda spec, **_: answers.pop(0))
    scan(path)
    finding = scan_found("totals")
    assert (finding.state, "rows_unread_since" in finding.evidence) == ("open", False)
    settings.CHECKPOINT_SPARK_ROOTS = ("/elsewhere",)
    today = timezone.now().date().isoformat()
    for _ in range(3):
        read = scan(path).read
        assert read["rows_problem"].startswith(
            f"rows not readable on this server since {today}: the Spark server doesn't open"
        )
    finding = scan_found("totals")
    assert (finding.state, finding.evidence["rows_unread_since"]) == ("open", read["rows_unread_since"])
    settings.CHECKPOINT_SPARK_ROOTS = ()
    assert (scan(path).read["rows_unread_since"], "rows_unread_since" in scan_found("totals").evidence) == ("", False)
    scan(path)
    assert (scan_found("totals").state, answers) == ("resolved", [])


def scan_found(variable: str) -> Finding:
    return Finding.objects.get(rule="STATE_UNREADABLE", evidence__variable=variable)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("content", [b"", b"\x00\x02v3\xff\xff\xff\xff", b"v9"])
def test_a_damaged_schema_file_is_a_finding_and_the_history_stays(
    settings: Any, registries: None, tmp_path: Path, content: bytes
) -> None:
    settings.SPARK_REMOTE, settings.CHECKPOINT_ROOTS = "", [tmp_path]
    path = Path(shutil.copytree(FIXTURES / "customer_totals", tmp_path / "query"))
    scan(path)
    schema_count = StateSchema.objects.count()
    file = next(entry for entry in sorted((path / "state/0/_stateSchema/default").iterdir()) if entry.name[0] == "1")
    file.write_bytes(content)
    scan(path)
    assert StateSchema.objects.count() == schema_count
    (finding,) = Finding.objects.filter(rule="STATE_FILES_DAMAGED")
    assert (finding.severity, file.name in finding.sentence) == ("break", True)
