"""A drift finding becomes a proposed version, requests and releases: told in a browser, and nothing is given by hand.

The messages are a real producer's, a worker has Spark read them, and each page leads to the next one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any, Final

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from playwright.sync_api import Page, expect

from tests.stories.test_stories import approve
from tests.whole.conftest import House

pytestmark = [pytest.mark.slow, pytest.mark.broker, pytest.mark.spark, pytest.mark.browser]

TOPIC: Final = "invoices"
SUBJECT: Final = f"{TOPIC}-value"
INVOICE: Final[dict[str, Any]] = {
    "title": "Invoice",
    "type": "object",
    "properties": {"id": {"type": "integer"}, "total": {"type": "number"}},
    "required": ["id"],
    "additionalProperties": False,
}
SCAN_MILLISECONDS: Final = 180_000
#: how a program writes with what is registered, and doesn't look at what it writes
LATEST: Final = {"auto.register.schemas": False, "use.latest.version": True, "validate": False}
INVALID: Final = re.compile("^The value violates its schema in 10 ")
UNDECLARED: Final = re.compile("^Field discount appears in 10 of 40 messages of invoices")


def write(house: House, messages: Iterable[dict[str, Any]], **conf: object) -> None:
    """A release of the producer writes messages to the topic, with the registry's own client."""
    (cluster,) = house.get("/api/v1/clusters")
    admin = AdminClient({"bootstrap.servers": cluster["bootstrap"]})
    if TOPIC not in admin.list_topics(timeout=60).topics:
        admin.create_topics([NewTopic(TOPIC, num_partitions=2)])[TOPIC].result(60)
    value_of = JSONSerializer(json.dumps(INVOICE), SchemaRegistryClient({"url": house.url}), conf=conf)
    producer, refused = Producer({"bootstrap.servers": cluster["bootstrap"], "linger.ms": 20}), []
    for message in messages:
        value = value_of(message, SerializationContext(TOPIC, MessageField.VALUE))
        producer.produce(TOPIC, value=value, on_delivery=lambda error, _: refused.append(error) if error else None)
    assert (producer.flush(60), refused) == (0, [])


def invoices(count: int, **more: object) -> list[dict[str, Any]]:
    return [{"id": number, "total": number + 0.5, **more} for number in range(count)]


def live_in(house: House, registry: str) -> Any:
    """The newest version there, as a client of the registry gets it."""
    return house.get(f"/registries/{registry}/subjects/{SUBJECT}/versions/latest")


def ask(page: Page, source: str, target: str, why: str) -> str:
    """The one at this page asks for what the form was opened with; gives the request's address."""
    expect(page.get_by_role("combobox", name="From", exact=True)).to_have_value(source)
    page.get_by_role("combobox", name="To", exact=True).select_option(target)
    page.get_by_role("textbox", name="Reason").fill(why)
    page.get_by_role("button", name="Request review").click()
    expect(page.locator("h1")).to_contain_text(SUBJECT)
    expect(page.locator(".head-meta")).to_contain_text("In review")
    return page.url


def release(approver: Page, address: str, target: str) -> None:
    """The approver approves a request and applies it."""
    approve(approver, address, "As the producer writes it.")
    approver.get_by_role("button", name=f"Apply to {target}").click()
    expect(approver.locator(".verdict-title").first).to_have_text(f"Live in {target}")


def open_waiting(page: Page) -> str:
    """The one at this page opens the request about the subject that waits on the home page; gives its address."""
    page.goto("/ui/")
    page.get_by_role("region", name="Needs your review").get_by_role("link", name=SUBJECT).click()
    expect(page.locator("#changes")).to_contain_text('The property "discount" (string) is added')
    return page.url


@pytest.mark.requirement("CARD-2", "CARD-3", "CARD-4")
def test_a_drift_finding_becomes_a_proposed_version_requests_and_a_release_in_prod(
    sign_in: Callable[..., Page], house: House
) -> None:
    steward, approver, reader = sign_in("steward"), sign_in("approver"), sign_in("reader")

    # what a producer registers goes to prod; then its next release writes a field that it doesn't declare
    write(house, invoices(30))
    for target in ("staging", "prod"):
        steward.goto(f"/ui/promotions/request?subject={SUBJECT}&version=1&source=dev")
        release(approver, ask(steward, "dev", target, "The first invoices."), target)
    write(house, invoices(10, discount="spring"), **LATEST)

    # the steward makes the topic a source, and a scan finds the field
    steward.goto("/ui/sources")
    steward.get_by_role("link", name="Add a source").first.click()
    steward.get_by_role("textbox", name="Name", exact=True).fill("what is billed")
    steward.get_by_role("textbox", name="Topics").fill(TOPIC)
    steward.get_by_role("combobox", name="Scan", exact=True).select_option(label="only on demand")
    steward.locator("summary", has_text="Bounds").click()
    steward.get_by_role("spinbutton", name="Clean scans to resolve a finding").fill("1")
    steward.get_by_role("button", name="Add and scan").click()
    steward.wait_for_url(re.compile(r"/ui/sources/[0-9]+$"))
    expect(steward.locator("#progress")).to_contain_text("is done", timeout=SCAN_MILLISECONDS)
    expect(steward.locator("#progress")).to_contain_text("40 new messages in 1 of 1 topic")
    source, main = steward.url, steward.locator("main")
    found = steward.get_by_role("region", name="Open findings")

    # consumers that validate can't read it: what declares the field cures that too
    found.get_by_role("link", name=INVALID).click()
    expect(main).to_contain_text("the value isn't valid by its schema, at additionalProperties")
    steward.goto(source)
    found.get_by_role("link", name=UNDECLARED).click()
    expect(steward.locator("h1")).to_have_text(re.compile(f"{SUBJECT} version 1 doesn't declare it"))
    for evidence in ("Where and when seen", "First offset", "Add the field to the schema in a new version"):
        expect(main).to_contain_text(evidence)
    finding = steward.url
    number = int(finding.rpartition("/")[2])

    # what was observed becomes a text that holds, and a request that is tied to the finding
    steward.get_by_role("link", name="Propose schema").click()
    expect(steward.get_by_role("combobox", name="Environment", exact=True)).to_have_value("dev")
    expect(steward.get_by_role("textbox", name="Subject", exact=True).first).to_have_value(SUBJECT)
    proposed = INVOICE | {"properties": INVOICE["properties"] | {"discount": {"type": "string"}}}
    assert json.loads(steward.locator("textarea[name=text]").input_value()) == proposed
    expect(steward.get_by_role("textbox", name="Reason")).to_have_value(re.compile(r"added discount \(in 25%\)"))
    steward.get_by_role("button", name="Check", exact=True).click()
    expect(steward.locator(".verdict-title")).to_contain_text("Can be registered in dev")
    expect(main).to_contain_text("Compatible with version 1 in the target under BACKWARD.")
    expect(main).to_contain_text("From the drift finding Field discount")
    steward.get_by_role("button", name="Submit for review").click()
    expect(steward.locator(".head-meta")).to_contain_text("In review")
    expect(steward.get_by_role("button", name="Approve")).to_be_disabled()
    expect(main).to_contain_text("ill be resolved by this request")
    assert live_in(house, "dev")["version"] == 1, "submitting registers nothing"

    # nobody but the approver can approve it: neither who asked, nor a reader, nor whoever hasn't signed in
    first = steward.url
    for who, words in ((reader, "You need the"), (sign_in(), "Sign in to work with promotions")):
        who.goto(first)
        token = who.locator("[name=csrfmiddlewaretoken]").first.get_attribute("value") or ""
        form = {"csrfmiddlewaretoken": token, "comment": "Fine."}
        refused = who.request.post(f"{first}/approve", form=form, headers={"referer": first})
        assert words in refused.text()
    expect(reader.get_by_role("button", name="Approve")).to_be_disabled()
    waits = house.get(f"/api/v1/promotions/{first.rpartition('/')[2]}")
    assert (waits["state"], waits["reviews"]) == ("in review", [])

    # the approver reads what it changes and where it came from, and it goes live in dev
    assert open_waiting(approver) == first
    approver.locator("main").get_by_role("link", name=UNDECLARED).click()
    assert approver.url == finding
    approver.get_by_role("region", name="Proposals").get_by_role("link", name=SUBJECT).click()
    assert approver.url == first
    release(approver, first, "dev")

    # from the finding each release leads on to the next environment, and each request leads back
    asked = [first]
    for place, on in (("dev", "staging"), ("staging", "prod")):
        steward.goto(finding)
        came = steward.get_by_role("region", name="Proposals")
        came.get_by_role("link", name=f"{SUBJECT} version 2 in {place}").click()
        steward.get_by_role("link", name="Promote…").click()
        asked.append(ask(steward, place, on, "Producers write the discount."))
        assert open_waiting(approver) == asked[-1]
        expect(approver.locator("main")).to_contain_text("From the drift finding Field discount")
        release(approver, asked[-1], on)

    # the finding tells all of it, in the browser and to programs, and the registry gives prod's readers the new schema
    reader.goto(finding)
    told = reader.get_by_role("region", name="Proposals")
    expect(told.get_by_text("Applied", exact=True)).to_have_count(3)
    for registry in ("dev", "staging", "prod"):
        expect(told.get_by_role("link", name=f"{SUBJECT} version 2 in {registry}")).to_be_visible()
        assert json.loads(live_in(house, registry)["schema"]) == proposed
    answers = house.get(f"/api/v1/findings/{number}")["answers"]["requests"]
    shown = [(each["target"], each["state"], each["release"]["version"]) for each in answers]
    assert shown == [("prod", "applied", 2), ("staging", "applied", 2), ("dev", "applied", 2)]
    assert [f"{house.url}/ui/promotions/{each['id']}" for each in answers] == asked[::-1]
    origins = {each["origin"]["finding"]["id"] for each in house.get(f"/api/v1/promotions?finding={number}")}
    assert origins == {number}

    # the producer writes the new version: the next scan finds nothing of it any more
    write(house, invoices(20, discount="summer"), **LATEST)
    steward.goto(finding)
    expect(steward.locator(".head-meta")).to_contain_text("Open")
    steward.get_by_role("button", name="Scan source again").click()
    expect(steward.locator("#progress")).to_contain_text("20 new messages", timeout=SCAN_MILLISECONDS)
    assert steward.url == source
    expect(found).to_have_count(0)
    steward.goto(finding)
    expect(steward.locator(".head-meta")).to_contain_text("Resolved")
    about = house.get(f"/api/v1/findings?subject={SUBJECT}&state=")
    assert {each["rule"]: each["state"] for each in about} == {
        "FIELD_UNDECLARED": "resolved",
        "SCHEMA_VIOLATED": "resolved",
    }
