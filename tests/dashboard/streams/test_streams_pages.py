"""The pages of streaming queries and the API for programs, over the real database."""

from __future__ import annotations

import html
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from registry.checkpoints import read_checkpoint
from registry.drift.models import Source
from registry.streams.models import StateVariable
from registry.streams.scan_result import ScannedInput, ScannedRows, scanned_query
from registry.streams.state_history import keep_query
from registry.subjects.models import Registry
from tests.conftest import RawClient

FIXTURES = Path(__file__).parents[2] / "checkpoints" / "fixtures"
QUERIES = json.loads((Path(__file__).parents[1] / "query_counts.json").read_text())
NASTY = '<script>alert(1)</script>"'
FIELD = {"path": "value.status", "type": "string", "rows": 40, "nulls": 8, "minimum": "4 characters",
         "maximum": "9 characters", "bytes": 2000}  # fmt: skip
EXPIRY = {"without": 0, "earliest": 1_780_000_000_000, "latest": 1_780_000_600_000}


def keep(name: str, **more: Any) -> int:
    registry = Registry.objects.get(name="dev")
    source = Source.objects.create(registry=registry, kind="state_store", name=f"/c/{name}", created_by="tests")
    checkpoint = read_checkpoint(str(FIXTURES / name), [FIXTURES])
    rows = ScannedRows(batch=4, rows=40, keys=39, bytes=5000, fields=(FIELD,), expiry=EXPIRY)
    key = (0, checkpoint.operators[0].variables[-1].name)
    inputs = (ScannedInput("orders", "value", ".", "orders-value"), ScannedInput("bare"))
    scanned = scanned_query(replace(checkpoint, **more), inputs, {key: rows})
    return keep_query(source_id=source.pk, registry=registry, scanned=scanned)


@pytest.fixture
def page_numbers(registries: None) -> dict[str, Any]:
    """The demo's query, with its variables by name."""
    number = keep("customer_totals")
    return {"query": number, **dict(StateVariable.objects.values_list("name", "pk"))}


def seen(response: Any) -> str:
    """What a person reads of a page: without markup, white space folded."""
    text = re.sub(r"</?(?:b|bdi|code|svg|use)\b[^>]*>", "", response.content.decode())
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


PAGES = {
    "queries": ("/ui/queries", ["customer_totals", "2 of 16", "orders → orders-value", "bare", "3 variables, Avro"]),
    "query": (
        "/ui/queries/{query}",
        ["Operator 0: transformWithState (Python)", "2 of 128", "last_orders", "Can evolve", "Check a restart", "RocksDB"],
    ),
    "state variable": (
        "/ui/queries/{query}/variables/{totals}",
        ["Version 2", "start 2", "Loses data", "looks like a rename", "32 of 40", "4 characters to 9 characters",
         "unknown: Spark", "topLevelRecord"],
    ),
    "state variable compare": (
        "/ui/queries/{query}/variables/{totals}/compare",
        ["Compare version 1 and version 2", "What Spark does", "orders is widened from integer to long",
         "Avro schemas derived by Spark"],
    ),
}  # fmt: skip


@pytest.mark.requirement("DBX-5", "DBX-6", "CARD-4")
@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_what_is_there(
    look: Callable[[str], Client], page_numbers: dict[str, Any], page: str, django_assert_max_num_queries: Any
) -> None:
    address, phrases = PAGES[page]
    client = look("reader")
    with django_assert_max_num_queries(QUERIES[page]):
        response = client.get(address.format(**page_numbers))
    assert response.status_code == 200
    text = seen(response)
    assert [word for word in phrases if word not in text] == []
    assert 'href="/ui/queries" aria-current="page"' in response.content.decode()


@pytest.mark.parametrize("page", PAGES)
def test_a_stranger_sees_nothing(look: Callable[[str], Client], page_numbers: dict[str, Any], page: str) -> None:
    address = PAGES[page][0].format(**page_numbers)
    assert RawClient().get(address).status_code == 302
    response = look("stranger").get(address)
    assert response.status_code == 403
    assert "customer_totals" not in response.content.decode()


def test_more_queries_take_no_more_database_queries(
    look: Callable[[str], Client], page_numbers: dict[str, Any], django_assert_max_num_queries: Any
) -> None:
    for name in ("timers_and_ttl", "aggregation_hdfs", "join_v3", "dedup_rocksdb"):
        keep(name)
    client = look("reader")
    with django_assert_max_num_queries(QUERIES["queries"]):
        text = seen(client.get("/ui/queries"))
    assert [name for name in ("timers_and_ttl", "aggregation_hdfs", "join_v3") if name not in text] == []


def test_versions_are_chosen_and_swapped_in_the_address(
    look: Callable[[str], Client], page_numbers: dict[str, Any]
) -> None:
    client = look("reader")
    address = "/ui/queries/{query}/variables/{totals}".format(**page_numbers)
    assert "orders INT" in seen(client.get(f"{address}?version=1"))
    back = seen(client.get(f"{address}/compare?from=2&to=1&view=split"))
    assert "STATE_STORE_INVALID_VALUE_SCHEMA_EVOLUTION" in back
    assert "Fails at start" in back
    same = seen(client.get(f"{address}/compare?from=1&to=1"))
    assert "Safe" in same
    only = client.get("/ui/queries/{query}/variables/{by_status}/compare".format(**page_numbers))
    assert only.status_code == 200


@pytest.mark.parametrize(
    "address",
    [
        "/ui/queries/999999",
        "/ui/queries/99999999999999999999999",
        "/ui/queries/{query}/variables/999999",
        "/ui/queries/{query}/variables/{totals}?version=9",
        "/ui/queries/{query}/variables/{totals}?version=x",
        "/ui/queries/{query}/variables/{totals}/compare?from=0&to=2",
    ],
)
def test_what_is_not_there_is_said(look: Callable[[str], Client], page_numbers: dict[str, Any], address: str) -> None:
    assert look("reader").get(address.format(**page_numbers)).status_code == 404


def test_nothing_yet_and_nothing_read_have_words(look: Callable[[str], Client], registries: None) -> None:
    client = look("steward")
    assert "No queries yet" in seen(client.get("/ui/queries"))
    number = keep("aggregation_hdfs", problems=("the schema file 7 is missing",))
    page = seen(client.get(f"/ui/queries/{number}"))
    assert "This state can’t evolve" in page
    assert "the schema file 7 is missing" in page
    StateVariable.objects.update(rows=None, fields=[], rows_at=None)
    variable = StateVariable.objects.get()
    assert "Rows not read" in seen(client.get(f"/ui/queries/{number}/variables/{variable.pk}"))
    StateVariable.objects.update(rows_problem="no Spark here")
    assert "no Spark here" in seen(client.get(f"/ui/queries/{number}/variables/{variable.pk}"))
    bare = keep("dedup_rocksdb", operators=())
    assert "This query keeps no state" in seen(client.get(f"/ui/queries/{bare}"))
    starting = keep("join_v3", operators=(), last_committed_batch=None)
    page = seen(client.get(f"/ui/queries/{starting}"))
    assert "This query is starting No batch has been committed, so the state is not known." in page
    assert "keeps no state" not in page


def test_hostile_names_stay_text(look: Callable[[str], Client], registries: None) -> None:
    operator = read_checkpoint(str(FIXTURES / "customer_totals"), [FIXTURES]).operators[0]
    variable = replace(operator.variables[-1], name=NASTY, label=NASTY)
    hostile = replace(operator, description=NASTY, why_fixed=NASTY, variables=(variable,))
    number = keep("customer_totals", path=f"/c/{NASTY}", query_id=NASTY, operators=(hostile,), problems=(NASTY,))
    client = look("reader")
    base = f"/ui/queries/{number}/variables/{StateVariable.objects.get().pk}"
    for address in ("/ui/queries", f"/ui/queries/{number}", base, f"{base}/compare"):
        response = client.get(address)
        assert response.status_code == 200
        assert "<script>alert" not in response.content.decode()


@pytest.mark.requirement("DBX-6")
def test_programs_get_the_same(api: Callable[[str], Client], page_numbers: dict[str, Any]) -> None:
    client = api("reader")
    (listed,) = client.get("/api/v1/queries").json()
    assert (listed["name"], listed["encoding"], listed["worst"]["left"]) == ("customer_totals", "avro", 14)
    assert listed["inputs"][1] == {"topic": "orders", "side": "value", "subject": "orders-value"}
    document = client.get(f"/api/v1/queries/{listed['id']}/variables").json()
    variables = {item["name"]: item for item in document["variables"]}
    assert [item["version"] for item in variables["totals"]["schemas"]] == [1, 2]
    assert variables["totals"]["fields"][0]["nulls"] == 8
    assert json.loads(variables["totals"]["schemas"][1]["avro_schema"])["type"] == "record"
    assert client.get("/api/v1/queries?limit=0").status_code == 422
    assert client.get("/api/v1/queries/999999/variables").status_code == 404
    assert client.get(f"/api/v1/queries?after={listed['id']}").json() == []
    assert client.get("/api/v1/queries?after=999999").status_code == 422
    for address in ("/api/v1/queries", f"/api/v1/queries/{listed['id']}/variables"):
        assert RawClient().get(address).status_code == 401
        assert api("stranger").get(address).status_code == 403


@pytest.mark.requirement("CARD-4")
def test_a_page_of_queries_begins_behind_the_one_that_was_seen_last(
    api: Callable[[str], Client], page_numbers: dict[str, Any]
) -> None:
    client = api("reader")
    for name in ("timers_and_ttl", "aggregation_hdfs", "join_v3", "dedup_rocksdb"):
        keep(name)
    listed = client.get("/api/v1/queries").json()
    assert {query["worst"] is None for query in listed} == {True, False}
    whole = [query["id"] for query in listed]
    for index, number in enumerate(whole):
        page = client.get(f"/api/v1/queries?after={number}&limit=2").json()
        assert [query["id"] for query in page] == whole[index + 1 : index + 3]


@pytest.mark.requirement("DBX-1", "CARD-4")
def test_programs_look_for_checkpoints_below_a_folder(
    api: Callable[[str], Client], registries: None, settings: Any, tmp_path: Path
) -> None:
    settings.CHECKPOINT_ROOTS = [str(tmp_path)]
    good, broken = (tmp_path / "queries" / name for name in ("totals", "broken"))
    shutil.copytree(FIXTURES / "customer_totals", good)
    shutil.copytree(FIXTURES / "customer_totals", broken)
    (broken / "metadata").write_text("{")
    source = Source.objects.create(
        registry=Registry.objects.get(name="dev"), kind="state_store", name=str(good), created_by="tests"
    )

    def ask(client: Client, **body: str) -> Any:
        return client.post("/api/v1/checkpoints/discoveries", json.dumps(body), content_type="application/json")

    document = ask(api("steward"), registry="dev", path=str(tmp_path)).json()
    by_path = {item["path"]: item for item in document["found"]}
    assert set(by_path) == {str(good), str(broken)}
    assert (by_path[str(good)]["source"], by_path[str(good)]["refused"]) == (source.pk, None)
    (operator,) = by_path[str(good)]["checkpoint"]["operators"]
    assert "totals" in operator["variables"] and by_path[str(good)]["checkpoint"]["last_committed_batch"] >= 0
    assert by_path[str(broken)]["source"] is by_path[str(broken)]["checkpoint"] is None
    assert "metadata" in by_path[str(broken)]["refused"]
    assert (document["ended_early"], document["passed_over"]) == (None, [])
    assert ask(api("reader"), registry="dev", path=str(tmp_path)).status_code == 403
    for path, says in (("/etc", "outside the allowed folders"), (str(tmp_path / "nothing"), "doesn't exist")):
        refused = ask(api("steward"), registry="dev", path=path)
        assert refused.status_code == 422 and says in refused.json()["message"]
    assert ask(api("steward"), path=str(tmp_path)).status_code == 422
    assert Source.objects.count() == 1, "nothing is kept of a search"


@pytest.mark.requirement("DBX-4")
def test_the_preflight_says_how_much_a_removed_field_holds(
    api: Callable[[str], Client], page_numbers: dict[str, Any], settings: Any
) -> None:
    settings.CHECKPOINT_ROOTS = [FIXTURES]
    plan = {"variables": [{"name": "totals", "value_schema": "orders BIGINT, amount_cents BIGINT, currency STRING"}]}
    body = json.dumps({"checkpoint": str(FIXTURES / "customer_totals"), "plan": plan})
    document = api("steward").post("/api/v1/state-checks", body, content_type="application/json").json()
    (totals,) = [item for item in document["report"]["variables"] if item["name"] == "totals"]
    (removed,) = [item for item in totals["changes"] if item["rule"] == "FILLED_FIELD_REMOVED"]
    assert "80 % (32 of 40 rows)" in removed["message"]
    assert document["verdict"] == "loses data"
    assert not [note for note in document["report"]["notes"] if "weren't read" in note]
