"""How many old rows hold what a planned removal or rename would lose, as the last scan of the rows found it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from registry.access.roles import Actor
from registry.checkpoints import read_checkpoint
from registry.drift.models import Source
from registry.streams.models import StateVariable
from registry.streams.scan_result import ScannedRows, scanned_query
from registry.streams.selectors import StateCheckInfo, get_state_check, non_null_counts
from registry.streams.services import check_document
from registry.streams.state_history import keep_query
from registry.subjects.models import Registry
from tests.checkpoints.checkpoint_writer import family, struct_type, v3, write_checkpoint

FIXTURES = Path(__file__).parents[1] / "checkpoints" / "fixtures"
TOTALS = FIXTURES / "customer_totals"
STORED = "orders BIGINT, amount_cents BIGINT, status STRING, currency STRING"
ROWS = 1_240_332
pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-3", "DBX-2")]


def field(path: str, nulls: int) -> dict[str, Any]:
    return {"path": path, "rows": ROWS, "nulls": nulls, "type": "", "minimum": None, "maximum": None, "bytes": None}


@pytest.fixture
def checked(person: Callable[[str], Actor], settings: Any, tmp_path: Path) -> Callable[..., StateCheckInfo]:
    """Checks a plan of `totals` after a scan whose rows have `currency` in four of five and `amount_cents` in none."""
    link = tmp_path / "link"
    link.symlink_to(TOTALS)
    settings.CHECKPOINT_ROOTS = [FIXTURES, tmp_path]
    steward = person("steward")
    registry = Registry.objects.get(name="dev")
    source = Source.objects.create(registry=registry, kind="state_store", name=str(TOTALS), created_by="tests")
    fields = (
        field("value.currency", round(ROWS * 0.19)),
        field("value.amount_cents", ROWS),
        field("map_key.status", 0),
    )
    rows = {(0, "totals"): ScannedRows(batch=4, rows=ROWS, keys=ROWS, fields=fields)}
    keep_query(
        source_id=source.pk,
        registry=registry,
        scanned=scanned_query(read_checkpoint(str(TOTALS), [FIXTURES]), (), rows),
    )

    def make(value: str, path: Path = TOTALS) -> StateCheckInfo:
        plan = {"variables": [{"name": "totals", "value_schema": value}], "removed": ["last_orders", "by_status"]}
        return get_state_check(check_document(checkpoint=str(path), plan=json.dumps(plan), by=steward))

    return make


def messages(info: StateCheckInfo) -> list[tuple[str, str]]:
    (totals,) = [item for item in info.report["variables"] if item["name"] == "totals"]
    return [(item["rule"], item["message"]) for item in totals["changes"]]


def test_a_removed_field_says_in_how_many_rows_it_is_filled(checked: Callable[..., StateCheckInfo]) -> None:
    info = checked(STORED.replace(", currency STRING", ""))
    assert info.verdict == "loses data"
    share = "currency is removed, and it is filled in 81 % (1,004,669 of 1,240,332 rows)"
    assert messages(info) == [("FILLED_FIELD_REMOVED", share)]
    assert share in info.text
    assert share in info.markdown
    assert not any("Rows not read" in note for note in info.report["notes"])


def test_a_rename_says_so_too_beside_its_suspicion(checked: Callable[..., StateCheckInfo]) -> None:
    by_rule = dict(messages(checked(STORED.replace("currency STRING", "currency_code STRING"))))
    assert "looks like a rename" in by_rule["RENAME_SUSPECTED"]
    assert "81 % (1,004,669 of 1,240,332 rows)" in by_rule["FILLED_FIELD_REMOVED"]


def test_a_field_that_is_empty_everywhere_is_no_loss(checked: Callable[..., StateCheckInfo]) -> None:
    info = checked(STORED.replace(", amount_cents BIGINT", ""))
    assert (info.verdict, messages(info)[0][0]) == ("safe", "FIELD_REMOVED")
    assert not any("Rows not read" in note for note in info.report["notes"])


@pytest.mark.parametrize("form", ["{link}", "file:{path}", "{path}/", "file://{link}"])
def test_the_rows_are_found_however_the_path_is_written(
    checked: Callable[..., StateCheckInfo], tmp_path: Path, form: str
) -> None:
    path = form.format(link=tmp_path / "link", path=TOTALS)
    assert checked(STORED.replace(", currency STRING", ""), path).verdict == "loses data"


def test_rows_that_no_scan_could_read_are_said_with_the_reason(
    checked: Callable[..., StateCheckInfo], settings: Any
) -> None:
    StateVariable.objects.update(rows=None)
    without = STORED.replace(", currency STRING", "")
    info = checked(without)
    assert info.verdict == "not checked"
    assert any(note.startswith("Rows not read: it is not known ") for note in info.report["notes"])
    settings.CHECKPOINT_SPARK_ROOTS = ("/elsewhere",)
    (note,) = [note for note in checked(without).report["notes"] if "Rows not read" in note]
    assert (
        "(rows not readable on this server: the Spark server doesn't open this folder; schemas and history are readable)"
        in note
    )


def test_variables_of_one_name_in_two_operators_are_distinguished(
    person: Callable[[str], Actor], settings: Any, tmp_path: Path
) -> None:
    settings.CHECKPOINT_ROOTS = [tmp_path]
    steward = person("steward")
    path = write_checkpoint(tmp_path / "two", [(0, v3(family("totals", struct_type(orders="long", status="string"))))])
    shutil.copytree(path / "state/0", path / "state/1")
    metadata = path / "state/1/_metadata/v2/0"
    metadata.write_text(metadata.read_text().replace('"operatorId": 0', '"operatorId": 1'))
    registry = Registry.objects.get(name="dev")
    source = Source.objects.create(registry=registry, kind="state_store", name=str(path), created_by="tests")
    rows = {
        (operator, "totals"): ScannedRows(batch=0, rows=ROWS, keys=ROWS, fields=(field("value.status", nulls),))
        for operator, nulls in ((0, 332), (1, ROWS))
    }
    scanned = scanned_query(read_checkpoint(str(path), [tmp_path]), (), rows)
    keep_query(source_id=source.pk, registry=registry, scanned=scanned)
    assert non_null_counts(str(path)) == {
        (0, "totals", ""): (ROWS, ROWS),
        (0, "totals", "status"): (1_240_000, ROWS),
        (1, "totals", ""): (ROWS, ROWS),
        (1, "totals", "status"): (0, ROWS),
    }

    def answer(operator: int) -> tuple[str, str]:
        plan = {"operator": operator, "variables": [{"name": "totals", "value_schema": "orders BIGINT"}]}
        check = get_state_check(check_document(checkpoint=str(path), plan=json.dumps(plan), by=steward))
        (variable,) = check.report["variables"]
        return check.verdict, variable["status"]

    assert answer(0) == ("loses data", "accepted but loses data")
    assert answer(1) == ("not checked", "evolves")  # what the plan says is fine, and it says nothing of operator 0
