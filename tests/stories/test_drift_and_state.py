"""What data and state bring about, told as people live it: drift that becomes a release, a restart that isn't made.

Only what Spark would read of a broker is given; it is judged, kept and weighed by the product, and a checkpoint is one
that Spark wrote. The console and the Content-Security-Policy count as in the other stories.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from django.db import connections, transaction
from django.utils import timezone
from playwright.sync_api import Page, expect

from registry.access.roles import Actor
from registry.drift.judge.topic_observations import milliseconds
from registry.drift.models import Finding, Source
from registry.drift.scan.runner import perform_scan
from registry.drift.sources import kafka
from registry.drift.sources.base import ScannedTopic
from registry.drift.sources.kafka_offsets import TopicPlan
from registry.drift.sources.kafka_survey import Survey
from registry.drift.tasks import run_scan
from registry.observations import (
    FieldProfile,
    FramedMessages,
    Observation,
    PartitionRead,
    ScanTotals,
    Span,
    TopicTotals,
)
from registry.promotions.models import PromotionRequest, Release
from registry.streams.models import StateCheck
from registry.subjects.selectors import get_version
from registry.subjects.versions.lookup import get_registry
from tests.drift.scans import make_source
from tests.promotions.factories import ORDERS, register
from tests.stories.test_stories import SitsDown, approve, versions_in
from tests.stories.test_stories import apply as apply_in_staging
from tests.stories.test_stories import ask as ask_for_staging
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]

ROOT: Final = Path(__file__).parents[2]
CHECKPOINTS: Final = ROOT / "tests" / "checkpoints" / "fixtures"
TOTALS: Final = str(CHECKPOINTS / "customer_totals")
ORDER: Final[dict[str, Any]] = {
    "title": "Order",
    "type": "object",
    "properties": {"id": {"type": "integer"}, "total": {"type": "number"}},
    "required": ["id"],
    "additionalProperties": False,
}


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In place of the one behind the queue, which works on another database: takes each scan in a thread."""
    threads: list[threading.Thread] = []

    def run(scan_id: int) -> None:
        try:
            perform_scan(scan_id)
        finally:
            connections.close_all()

    def take(scan_id: int) -> None:
        threads.append(threading.Thread(target=run, args=(scan_id,), daemon=True))
        transaction.on_commit(threads[-1].start)

    monkeypatch.setattr(run_scan, "delay_on_commit", take)
    yield
    for thread in threads:
        thread.join(PATIENCE)


def scan(page: Page, button: str) -> None:
    """The one at this page has a source scanned, and sees its end; no earlier scan is told of here."""
    page.get_by_role("button", name=button).first.click()
    expect(page.locator("#progress")).to_contain_text("is done")


# ---- a drift finding becomes a proposed version, a request, a release ------------------------------------------------


class OrdersTopic:
    """The topic's one partition, as its cluster and Spark tell of it."""

    def __init__(self) -> None:
        self.end = 0
        self.written: list[Observation] = []

    def write(self, mark: str, messages: int, *, coupons: int) -> None:
        """Producers write messages under a schema id, so many of them with a coupon."""
        now = milliseconds(timezone.now())
        span = Span(messages, messages * 60, self.end, self.end + messages - 1, now - messages, now)
        kinds = {"": ("object", messages), "id": ("integer", messages), "total": ("number", messages)}
        start, self.end = self.end, self.end + messages
        self.written = [
            PartitionRead("orders", 0, start, self.end, 0, self.end, messages),
            FramedMessages("orders", "value", 0, "id", mark, span),
            *(
                FieldProfile("orders", "value", "id", mark, path, messages, seen, 0, {kind: seen}, *[None] * 3, {})
                for path, (kind, seen) in (kinds | {"coupon": ("string", coupons)}).items()
            ),
            TopicTotals("orders", messages, messages * 60, None),
            ScanTotals(1, messages, messages * 60, None, 0.1),
        ]

    def survey(self, source: Source) -> Survey:
        """What the cluster says."""
        rows = source.topics.all()
        positions = {row.name: {int(part): end for part, end in row.positions.items()} for row in rows}
        return Survey({"orders": ScannedTopic("orders", 1)}, {"orders": TopicPlan(())}, ("orders",), positions)

    def observe(self, *_given: object, **_more: object) -> Sequence[Observation]:
        """What Spark says."""
        return self.written


@pytest.fixture
def orders(monkeypatch: pytest.MonkeyPatch) -> OrdersTopic:
    """A topic that no broker has to hold."""
    made = OrdersTopic()
    monkeypatch.setattr(kafka, "survey_cluster", made.survey)
    monkeypatch.setattr(kafka, "observe", made.observe)
    return made


def id_of(version: int) -> str:
    """The schema id of a version of orders in dev, as messages carry it."""
    return str(get_version(get_registry("dev"), ORDERS, str(version)).schema.schema_id)


def open_waiting(page: Page) -> str:
    """The one at this page opens the request about orders that waits on the home page; gives its address."""
    page.goto("/ui/")
    page.get_by_role("region", name="Needs your review").get_by_role("link", name="orders-value").click()
    expect(page.locator("h1")).to_contain_text("orders-value")
    page.locator("#changes [data-change]").first.wait_for()
    return page.url


@pytest.mark.requirement("CARD-3", "CARD-4")
def test_a_drift_finding_becomes_a_proposed_version_a_request_and_a_release(
    person: Callable[[str], Actor], sits_down: SitsDown, worker: None, orders: OrdersTopic
) -> None:
    by = person("steward")
    for registry in ("dev", "staging"):
        register(ORDER, by, registry=registry, schema_type="JSON")
    source = make_source()
    approver, at_desk = sits_down("approver"), sits_down("steward")

    # a scan sees what nobody declared, and the finding leads to a text that declares it
    orders.write(id_of(1), 40, coupons=10)
    at_desk.goto(f"/ui/sources/{source.pk}")
    scan(at_desk, "Scan now")
    at_desk.goto("/ui/findings")
    at_desk.get_by_role("link", name="Field coupon appears in 10 of 40 messages").click()
    expect(at_desk.locator("h1")).to_contain_text("Field coupon appears in")
    expect(at_desk.locator(".head-meta")).to_contain_text("Open")
    finding = at_desk.url
    at_desk.get_by_role("link", name="Propose schema").click()
    text = at_desk.locator("textarea[name=text]")
    expect(at_desk.get_by_role("combobox", name="Environment", exact=True)).to_have_value("dev")
    expect(at_desk.get_by_role("combobox", name="Format")).to_have_value("JSON")
    expect(at_desk.get_by_role("textbox", name="Subject", exact=True).first).to_have_value("orders-value")
    why = at_desk.get_by_role("textbox", name="Reason")
    expect(why).to_have_value(re.compile(r"added coupon \(in 25%\), all optional"))
    reason = why.input_value()
    proposed = json.loads(text.input_value())
    assert proposed == ORDER | {"properties": ORDER["properties"] | {"coupon": {"type": "string"}}}

    # the steward adds a default, reads what the plan says, keeps it over lunch, and submits it
    proposed["properties"]["coupon"]["default"] = ""
    text.fill(json.dumps(proposed, indent=2))
    at_desk.get_by_role("button", name="Check", exact=True).click()
    expect(at_desk.locator(".verdict-title")).to_contain_text("Can be registered in dev")
    expect(at_desk.locator("main")).to_contain_text("Compatible with version 1 in the target under BACKWARD.")
    at_desk.get_by_role("button", name="Save as draft").click()
    expect(at_desk.locator("body")).to_contain_text("Draft saved")
    at_desk.goto("/ui/proposals")
    at_desk.get_by_role("link", name="orders-value").click()
    assert json.loads(text.input_value()) == proposed
    expect(why).to_have_value(reason)
    expect(at_desk.locator("main")).to_contain_text("From the drift finding Field coupon appears in 10 of 40 messages")
    at_desk.goto(finding)
    answers = at_desk.get_by_role("region", name="Proposals")
    answers.get_by_role("link", name="orders-value your draft").click()
    expect(why).to_have_value(reason)
    at_desk.get_by_role("button", name="Submit for review").click()
    expect(at_desk.locator(".head-meta")).to_contain_text("In review")
    assert versions_in("dev") == [1], "submitting creates a request, not a version"

    # the approver finds it on the home page, reads what it changes and what it rests on, and applies it
    first = open_waiting(approver)
    assert first == at_desk.url
    expect(approver.locator("#changes")).to_contain_text('The property "coupon" (string) is added')
    main = approver.locator("main")

    # the request leads to the finding, and the finding to the request
    main.get_by_role("link", name="Field coupon appears in 10 of 40 messages").click()
    assert approver.url == finding
    proposed_from_it = approver.get_by_role("region", name="Proposals")
    expect(proposed_from_it).to_contain_text("In review")
    proposed_from_it.get_by_role("link", name="orders-value a proposed text").click()
    expect(approver.locator(".head-meta")).to_contain_text("In review")
    assert approver.url == first
    for said in (
        "added coupon (in 25%)",
        "Will be resolved by this request: Field coupon appears in 10 of 40 messages of orders",
    ):
        expect(main).to_contain_text(said)
    expect(approver.locator("#impact")).to_contain_text("Messages use version 1. The new schema can read them.")
    approve(approver, first, "The producer has written it for a while.")
    approver.get_by_role("button", name="Apply to dev").click()
    expect(approver.locator(".verdict-title").first).to_have_text("Live in dev")
    assert versions_in("dev") == [1, 2]
    approver.goto(finding)
    expect(proposed_from_it).to_contain_text("Applied")
    proposed_from_it.get_by_role("link", name="orders-value version 2 in dev").click()
    expect(approver.locator("main")).to_contain_text("coupon")

    # from dev it goes on to staging
    ask_for_staging(at_desk, 2, "declares coupon")
    second = open_waiting(approver)
    approve(approver, second)
    apply_in_staging(approver)
    assert versions_in("staging") == [1, 2]
    released = Release.objects.order_by("pk").values_list("environment__registry__name", "version_number")
    assert list(released) == [("dev", 2), ("staging", 2)]
    assert set(PromotionRequest.objects.values_list("state", flat=True)) == {"applied"}

    # producers write the new version: so many clean scans later the finding is over
    for clean in ("1 of 2", ""):
        orders.write(id_of(2), 40, coupons=12)
        at_desk.goto(finding)
        scan(at_desk, "Scan source again")
        at_desk.goto(finding)
        expect(at_desk.locator(".head-meta")).to_contain_text("Open" if clean else "Resolved")
        expect(at_desk.locator("main")).to_contain_text(f"Clean scans {clean}" if clean else "state: resolved")
    at_desk.goto("/ui/")
    expect(at_desk.locator("main")).to_contain_text("No open findings in the scanned sources.")
    assert list(Finding.objects.values_list("rule", "state")) == [("FIELD_UNDECLARED", "resolved")]


# ---- a state preflight stops a deploy --------------------------------------------------------------------------------


def preflight(plan: Path) -> tuple[int, str]:
    """What a pipeline runs before it starts the query: the exit code, and what was printed."""
    command = [sys.executable, "manage.py", "check_state", TOTALS, str(plan)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE)
    return done.returncode, done.stdout


def edit_plan(page: Page, old: str, new: str) -> str:
    """The one at this page changes a column of the planned state, and has it checked; gives the whole plan."""
    field = page.get_by_role("textbox", name="Planned state")
    expect(field).to_have_value(re.compile(re.escape(old)))
    plan = field.input_value().replace(old, new)
    field.fill(plan)
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.locator("h1")).to_contain_text("State check")
    return plan


@pytest.mark.requirement("DBX-4", "CARD-3")
def test_a_state_preflight_stops_a_deploy_and_lets_its_repaired_plan_pass(
    sits_down: SitsDown, worker: None, settings: Any, tmp_path: Path
) -> None:
    settings.CHECKPOINT_ROOTS, settings.SPARK_REMOTE = [CHECKPOINTS], ""
    at_desk, plan = sits_down("steward"), tmp_path / "plan.json"

    # the query is known: its checkpoint is a source, and the plan of its next version begins with what is stored
    at_desk.goto("/ui/queries")
    at_desk.get_by_role("link", name="Add a checkpoint").first.click()
    at_desk.get_by_label("Checkpoint folder or address").fill(TOTALS)
    scan(at_desk, "Add and scan")
    at_desk.goto("/ui/queries")
    at_desk.get_by_role("link", name="customer_totals").first.click()
    expect(at_desk.locator("h1")).to_contain_text("customer_totals")
    at_desk.get_by_role("link", name="Check a restart").first.click()
    expect(at_desk.get_by_role("combobox", name="Known checkpoint")).to_have_value(TOTALS)
    at_desk.get_by_role("button", name="Use the stored state").click()

    # the deploy is stopped, and what it prints is what the steward reads, with the cure
    kept, text = "amount_cents BIGINT, status STRING", "amount_cents STRING, status STRING"
    plan.write_text(edit_plan(at_desk, kept, text))
    code, printed = preflight(plan)
    assert code == 1
    cure = "add a field with the new type under a new name, and fill it from amount_cents"
    for said in ("Fails at start: Spark refuses to start the query.", "STATE_STORE_INVALID_VALUE_SCHEMA_EVOLUTION",
                 "totals (value): refused", "amount_cents changes from long to string", cure):  # fmt: skip
        assert said in printed
    expect(at_desk.locator(".verdict-title")).to_have_text("Fails at start")
    expect(at_desk.get_by_role("row").filter(has_text="totals")).to_contain_text("Fails at start")
    change = at_desk.locator("[data-change]").filter(has_text="amount_cents changes from long to string")
    expect(change).to_contain_text(f"Instead: {cure}")
    expect(at_desk.get_by_role("status").filter(has_text="STATE_STORE_INVALID_VALUE_SCHEMA_EVOLUTION")).to_be_visible()
    report = at_desk.request.get(f"{at_desk.url}/export?format=text").text()
    assert report.splitlines()[:6] == printed.splitlines()[:6]

    # the cure is taken in the browser, and the pipeline's next run passes
    at_desk.get_by_role("link", name="Edit plan and check again").click()
    plan.write_text(edit_plan(at_desk, f"{text}, currency STRING", f"{kept}, currency STRING, amount_text STRING"))
    expect(at_desk.locator(".verdict-title")).to_have_text("Safe")
    expect(at_desk.get_by_role("row").filter(has_text="totals")).to_contain_text("Evolves")
    code, printed = preflight(plan)
    assert (code, "amount_text is added (string)" in printed) == (0, True)
    assert list(StateCheck.objects.order_by("pk").values_list("verdict", flat=True)) == ["fails at start", "safe"]
