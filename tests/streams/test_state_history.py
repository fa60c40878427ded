"""The history of a query's state in the database: kept once, in few queries, linked to subjects, and migrated."""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from registry.access.roles import Actor, system_actor
from registry.checkpoints import Checkpoint, read_checkpoint
from registry.drift.models import Cluster, Source, Topic
from registry.drift.scan_context.streaming_queries import inputs_of
from registry.drift.usage.retirement import retirement_of
from registry.promotions.models import Environment
from registry.promotions.plan.builder import make_plan
from registry.promotions.plan.types import PlanStep, PromotionSpec, SpecItem
from registry.streams import selectors
from registry.streams.models import VERDICTS, CarriedVersion, StateCheck, StateSchema, StateVariable, StreamQuery
from registry.streams.scan_result import ScannedInput, ScannedRows, scanned_query
from registry.streams.selectors import get_state_check
from registry.streams.state_history import keep_query
from registry.streams.subject_usage import state_checks
from registry.subjects.models import Registry, SchemaVersion
from registry.subjects.services import register_version, set_config
from registry.subjects.usage.evidence import evidence_of
from registry.subjects.versions.qualified_names import SubjectName
from tests.checkpoints.checkpoint_writer import family, struct_type, v3, write_checkpoint
from tests.services_plugin import as_owner

FIXTURES = Path(__file__).parents[1] / "checkpoints" / "fixtures"
TOTALS = FIXTURES / "customer_totals"
ORDERS = SubjectName(".", "orders-value")
READS = (ScannedInput("orders", "value", ".", "orders-value"),)
FIELDS = {"order_id": "string", "customer_id": "int", "amount_cents": "int", "status": "string"}


def record(**changed: Any) -> str:
    """The schema of an order; what is given as None is left out."""
    types = {name: kind for name, kind in {**FIELDS, **changed}.items() if kind is not None}
    fields = [{"name": name, "type": ["null", kind], "default": None} for name, kind in types.items()]
    return json.dumps({"type": "record", "name": "Order", "fields": fields})


@pytest.fixture
def source(registries: None) -> Source:
    registry = Registry.objects.get(name="dev")
    return Source.objects.create(registry=registry, kind="state_store", name=str(TOTALS), created_by="tests")


@pytest.fixture
def orders(registries: None, system: Actor) -> None:
    """Three versions, the first two as old as the application's two builds were."""
    for text in (record(), record(amount_cents="long", currency="string"), record(amount_cents="long", note="string")):
        register_version(registry="dev", subject=ORDERS, text=text, by=system)
    old = datetime(2020, 1, 1, tzinfo=UTC)
    SchemaVersion.objects.filter(subject__name="orders-value", version__lte=2).update(created_at=old)
    SchemaVersion.objects.filter(subject__name="orders-value", version=3).update(created_at=datetime.now(UTC))


def totals() -> Checkpoint:
    return read_checkpoint(str(TOTALS), [FIXTURES])


def keep(
    source: Source, checkpoint: Checkpoint | None = None, inputs: Sequence[ScannedInput] = READS, **more: Any
) -> int:
    scanned = scanned_query(checkpoint or totals(), inputs, **more)
    return keep_query(source_id=source.pk, registry=source.registry, scanned=scanned)


def counts() -> tuple[int, ...]:
    return tuple(model.objects.count() for model in (StreamQuery, StateVariable, StateSchema, CarriedVersion))


@pytest.mark.requirement("DBX-6")
def test_every_version_is_kept_once_with_its_start_and_avro_schema(source: Source) -> None:
    number = keep(source)
    first = counts()
    assert first == (1, 3, 5, 0)
    assert keep(source) == number
    assert counts() == first
    variables = {item.name: item for item in selectors.variables_with_schemas(number)}
    assert {name: [s.version for s in item.schemas] for name, item in variables.items()} == {
        "by_status": [1],
        "last_orders": [1, 2],
        "totals": [1, 2],
    }
    old, new = variables["totals"].schemas
    assert ((old.batch, old.start, old.schema_id), (new.batch, new.start, new.schema_id)) == ((0, 1, 0), (1, 2, 1))
    assert json.loads(new.avro_schema)["fields"][0] == {"name": "orders", "type": ["null", "long"], "default": None}
    assert json.loads(new.key_schema)["fields"][0]["name"] == "customer_id"
    assert json.loads(variables["by_status"].schemas[0].map_key_schema)["fields"][0]["name"] == "status"
    budget = variables["totals"].budget
    assert budget is not None
    assert (budget.used, budget.allowed, budget.left) == (2, 16, 14)
    (listed,) = selectors.list_queries()
    assert (listed.name, listed.encoding, listed.provider, listed.variables) == (
        "customer_totals",
        "avro",
        "RocksDB",
        3,
    )
    assert listed.worst is not None
    assert listed.worst.share == 2 / 16
    assert [(item.topic, item.subject) for item in listed.inputs] == [("orders", ORDERS)]


@pytest.mark.requirement("DBX-6")
def test_a_new_version_follows_and_files_that_went_are_remembered(source: Source, tmp_path: Path) -> None:
    one = (0, v3(family("totals", struct_type(a="long"))))
    two = (3, v3(family("totals", struct_type(a="long", b="string"), 1)))
    first = read_checkpoint(str(write_checkpoint(tmp_path / "one", [one])), [tmp_path])
    both = read_checkpoint(str(write_checkpoint(tmp_path / "two", [one, two])), [tmp_path])
    last = read_checkpoint(str(write_checkpoint(tmp_path / "three", [two])), [tmp_path])
    number = keep(source, replace(first, path="/state/q"))
    assert keep(source, replace(both, path="/state/q")) == number
    assert keep(source, replace(last, path="/state/q")) == number
    (variable,) = selectors.variables_with_schemas(number)
    assert [(item.version, item.batch) for item in variable.schemas] == [(1, 0), (2, 3)]
    other = keep(source, replace(first, path="/state/q", query_id="another"))
    assert other != number
    assert counts()[:3] == (1, 1, 1)


def test_a_wide_checkpoint_takes_no_more_queries(source: Source, tmp_path: Path, orders: None) -> None:
    def asked(variables: int) -> int:
        files = [
            (
                batch,
                v3(
                    *(
                        family(f"v{n}", struct_type(a="long", **{f"f{batch}": "string"}), batch)
                        for n in range(variables)
                    )
                ),
            )
            for batch in range(3)
        ]
        path = write_checkpoint(tmp_path / f"c{variables}", files, [f"v{n}" for n in range(variables)])
        checkpoint = read_checkpoint(str(path), [tmp_path])
        keep(source, checkpoint)
        with CaptureQueriesContext(
            connection,
        ) as caught:
            keep(source, checkpoint)
        return len(caught)

    assert asked(40) == asked(1)


@pytest.mark.parametrize("name", ["a\0b", "x" * 3000, "\U0001f600" * 900, "\ud800", "<script>"])
def test_hostile_names_are_kept_or_replaced(source: Source, name: str) -> None:
    checkpoint = totals()
    operator = checkpoint.operators[0]
    variables = tuple(replace(item, name=name, label=name) for item in operator.variables[:1])
    hostile = replace(checkpoint, query_id=name, problems=(name,), operators=(replace(operator, variables=variables),))
    inputs = (ScannedInput(name, "value", ".", name),)
    number = keep(source, hostile, inputs)
    assert keep(source, hostile, inputs) == number
    assert counts()[:2] == (1, 1)


def test_rows_stay_known_until_they_are_read_again(source: Source) -> None:
    field = {"path": "value.status", "type": "string", "rows": 40, "nulls": 8, "minimum": "4 characters",
             "maximum": "9 characters", "bytes": 200}  # fmt: skip
    read = ScannedRows(batch=4, rows=40, keys=40, bytes=900, fields=(field,))
    number = keep(source, rows={(0, "totals"): read})
    keep(source, rows={(0, "totals"): ScannedRows(problem="no Spark")})
    keep(source)
    variables = {item.name: item for item in selectors.list_variables(number)}
    assert (variables["totals"].rows, variables["totals"].rows_batch, variables["totals"].rows_problem) == (
        40,
        4,
        "no Spark",
    )
    assert variables["totals"].fields[0].filled == 0.8
    assert variables["last_orders"].rows is None
    assert selectors.non_null_counts(str(TOTALS)) == {(0, "totals", ""): (40, 40), (0, "totals", "status"): (32, 40)}
    assert selectors.non_null_counts("/elsewhere") is None


def test_topics_are_linked_to_the_subjects_that_their_messages_have(source: Source, orders: None) -> None:
    assert inputs_of(source, ["orders", "other"]) == (*READS, ScannedInput("other"))
    cluster = Cluster.objects.create(name="local", bootstrap="localhost:9092", created_by="tests")
    topics = Source.objects.create(
        registry=source.registry, kind="kafka", name="all", cluster=cluster, created_by="tests"
    )
    Topic.objects.create(source=topics, name="orders", subjects={"value": ["shop.Order"], "key": []})
    assert inputs_of(source, ["orders"]) == (ScannedInput("orders", "value", ".", "shop.Order"),)


@pytest.mark.requirement("DBX-6", "CARD-3")
def test_a_version_that_state_carries_is_in_use(source: Source, orders: None, django_assert_num_queries: Any) -> None:
    keep(source)
    assert {(row.version, row.schema.variable.name, row.schema.version) for row in CarriedVersion.objects.all()} == {
        (1, "last_orders", 1),
        (2, "last_orders", 2),
    }
    registry = source.registry
    with django_assert_num_queries(1):
        evidence = evidence_of(registry, ORDERS, [1, 2, 3], kinds=("state",))
    assert {number: [item.in_use for item in items] for number, items in evidence.items()} == {
        1: ["unknown"],
        2: ["yes"],
        3: [],
    }
    assert "last_orders" in evidence[2][0].sentence
    assert "order_id, amount_cents" in evidence[2][0].sentence
    answers = retirement_of(registry, ORDERS, by=system_actor("tests"), ask=False).versions
    assert answers[2].answer == "no"
    assert "customer_totals" in answers[2].reasons[0].sentence


@pytest.mark.parametrize(
    ("changed", "verdict", "phrase"),
    [
        ({"note": "string"}, "pass", "All can be restarted"),
        ({"amount_cents": "double"}, "warn", "widened from long to double, which is exact only up to 2^53"),
        ({"amount_cents": "string"}, "warn", "Spark refuses the restart (STATE_STORE_INVALID_VALUE_SCHEMA_EVOLUTION)"),
        ({"amount_cents": None, "cents": "long"}, "warn", "removing amount_cents and adding cents looks like a rename"),
        (
            {"amount_cents": None, "price": "string"},
            "warn",
            "can change to the new version but loses data: amount_cents is removed while",
        ),
    ],
)
@pytest.mark.requirement("DBX-4")
def test_a_promotion_says_whether_the_targets_state_can_follow(
    registries: None, system: Actor, changed: dict[str, Any], verdict: str, phrase: str
) -> None:
    for name in ("dev", "prod"):
        register_version(registry=name, subject=ORDERS, text=record(amount_cents="long"), by=system, release=True)
    prod = Registry.objects.get(name="prod")
    source = Source.objects.create(registry=prod, kind="state_store", name=str(TOTALS), created_by="tests")
    keep(source)
    dev = Registry.objects.get(name="dev")
    set_config(registry="dev", subject=None, level="NONE", by=system)
    register_version(registry="dev", subject=ORDERS, text=record(**{"amount_cents": "long", **changed}), by=system)
    environments = [Environment.objects.get(registry=item) for item in (dev, prod)]
    spec = PromotionSpec(environments[1], (SpecItem(ORDERS, 2),), environments[0])
    plan = make_plan(spec)
    (check,) = [item for item in plan.checks if item.name.startswith("Spark state")]
    assert check.verdict == verdict
    assert phrase in check.sentence
    assert make_plan(spec).hash == plan.hash


@pytest.mark.requirement("DBX-4")
@pytest.mark.parametrize(
    ("operator", "schema_type", "phrase"),
    [
        ("stateStoreSave", "AVRO", "is not checked: only transformWithState state is checked"),
        ("", "AVRO", "is not checked: only transformWithState state is checked"),
        ("transformWithStateExec", "JSON", "is not checked: Spark's types of the new version are not known"),
    ],
)
def test_state_that_is_not_checked_never_passes(
    registries: None, system: Actor, operator: str, schema_type: str, phrase: str
) -> None:
    register_version(registry="prod", subject=ORDERS, text=record(amount_cents="long"), by=system, release=True)
    prod = Registry.objects.get(name="prod")
    source = Source.objects.create(registry=prod, kind="state_store", name=str(TOTALS), created_by="tests")
    checkpoint = totals()
    keep(source, replace(checkpoint, operators=(replace(checkpoint.operators[0], name=operator),)))
    text = record(amount_cents="long") if schema_type == "AVRO" else "{}"
    step = PlanStep("register", ORDERS.qualified, schema_type=schema_type, text=text)
    (check,) = state_checks(prod, [step])
    assert check.verdict == "warn"
    assert phrase in check.sentence
    assert "can follow" not in check.sentence


ROOT = Path(__file__).parents[2]
DOCUMENTED = jsonschema_rs.validator_for(json.loads((ROOT / "docs/reference/state-check.schema.json").read_text()))
OLD: dict[str, Any] = {
    "checkpoint": "/c", "query_id": "q", "last_batch": 3, "language": "python", "verdict": "no evolution possible",
    "sentence": "No evolution is possible here: this operator's state keeps its schema.", "starts": True, "error": "",
    "error_message": "", "files": None, "changes": [], "settings": [], "notes": [],
    "operator": {"number": 2, "name": "dedupe", "description": "dropDuplicates", "encoding": "unsaferow", "why_fixed": "x"},
    "variables": [
        {"name": "the state", "kind": "operator", "ttl": False, "status": "unchanged", "sentence": "Nothing changes.",
         "error": "", "stored": "a INT", "planned": None, "user_key": None, "place": "", "budget": None, "changes": []},
    ],
    "texts": {"text": "no evolution possible: No evolution is possible here: this operator's state keeps its schema."},
}  # fmt: skip


@pytest.mark.django_db(transaction=True)
def test_reports_of_other_operators_become_not_checked() -> None:
    module = importlib.import_module("registry.streams.migrations.0002_not_checked")
    fine = StateCheck.objects.create(
        checkpoint="/f", query_id="q", verdict="safe", plan="{}", report={"verdict": "safe"}
    )
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("ALTER TABLE streams_statecheck DROP CONSTRAINT known_state_verdict")
        row = StateCheck.objects.create(checkpoint="/c", query_id="q", verdict=OLD["verdict"], plan="{}", report=OLD)
        cursor.execute(module.RENAME)
        cursor.execute(module.COMPLETE)
        known = ", ".join(f"'{verdict}'" for verdict in VERDICTS)
        cursor.execute(
            f"ALTER TABLE streams_statecheck ADD CONSTRAINT known_state_verdict CHECK (verdict IN ({known}))"
        )
    info = get_state_check(row.pk)
    DOCUMENTED.validate(info.report)
    assert (info.verdict, info.report["verdict"], info.report["starts"]) == ("not checked", "not checked", None)
    assert info.report["not_checked"] == ["operator 2 (dropDuplicates)"]
    assert [item["status"] for item in info.report["variables"]] == ["not checked"]
    assert info.text == "not checked"
    fine.refresh_from_db()
    assert fine.report == {"verdict": "safe", "not_checked": []}


@pytest.mark.django_db(transaction=True)
def test_reports_get_the_verdicts_that_pages_show() -> None:
    module = importlib.import_module("registry.streams.migrations.0006_safe_and_fails_at_start")
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("ALTER TABLE streams_statecheck DROP CONSTRAINT known_state_verdict")
        for verdict in ("fine", "refused", "not checked"):
            StateCheck.objects.create(
                checkpoint="/c", query_id="q", verdict=verdict, plan="{}", report={"verdict": verdict}
            )
        cursor.execute(module.RENAME, module.NAMES)
        known = ", ".join(f"'{verdict}'" for verdict in module.VERDICTS)
        cursor.execute(
            f"ALTER TABLE streams_statecheck ADD CONSTRAINT known_state_verdict CHECK (verdict IN ({known}))"
        )
    rows = list(StateCheck.objects.order_by("pk").values_list("verdict", "report__verdict"))
    assert rows == [("safe", "safe"), ("fails at start", "fails at start"), ("not checked", "not checked")]
