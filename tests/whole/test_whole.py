"""What a person sees who types `manage.py up --demo` and opens the address."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.whole.conftest import House

pytestmark = [pytest.mark.slow, pytest.mark.broker, pytest.mark.spark, pytest.mark.browser]
SUBJECT = "/ui/registries/dev/subjects/orders-value/"

#: address and a text that must stand on the page
PAGES = {
    "home": ("/ui/", "Open problems"),
    "subjects": ("/ui/registries/dev/subjects", "customers-value"),
    "subject": (SUBJECT, "order_id"),
    "source text": (f"{SUBJECT}?tab=source", "order_id"),
    "compare": (f"{SUBJECT}compare?from=1&to=2", "Order.amount_cents"),
    "side by side": (f"{SUBJECT}compare?from=1&to=2&view=split", "amount_cents"),
    "report": (f"{SUBJECT}report", "A check registers nothing"),
    "compare as submitted": (f"{SUBJECT}compare?from=1&to=2&text=submitted&unchanged=1", "unchanged field"),
    "simulate": (f"{SUBJECT}simulate?writer=1&reader=2", "Encoded bytes"),
    "read-modify-write": (f"{SUBJECT}simulate?part=modify", "The three steps"),
    "sources": ("/ui/sources", "customer_totals"),
    "add source": ("/ui/sources/add", "Bootstrap servers"),
    "findings": ("/ui/findings", "900001"),
    "promotions": ("/ui/promotions", "orders-value"),
    "ask": ("/ui/promotions/request", "Request review"),
    "request": ("/ui/promotions/1", "First release of orders."),
    "environments": ("/ui/environments", "customers-value"),
    "audit": ("/ui/audit?q=register+a+version", "register a version"),
}


@pytest.mark.requirement("CARD-2", "CARD-4")
@pytest.mark.parametrize("name", PAGES)
def test_each_page_in_a_browser(sign_in: Callable[..., Page], name: str) -> None:
    address, words = PAGES[name]
    page = sign_in("steward" if name in ("add source", "ask") else "reader")
    page.goto(address)
    expect(page.locator("h1")).to_have_count(1)
    expect(page.locator("main")).to_contain_text(words)
    fits = page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert fits, "the page scrolls sideways"


@pytest.mark.parametrize(
    "name", ["home", "subjects", "subject", "compare", "report", "simulate", "read-modify-write", "findings", "request"]
)
def test_a_phone_does_not_scroll_sideways(sign_in: Callable[..., Page], name: str) -> None:
    page = sign_in("", viewport={"width": 390, "height": 800}, color_scheme="dark")
    page.goto(PAGES[name][0])
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


@pytest.mark.requirement("CARD-3", "DBX-1", "DBX-3", "DBX-6")
def test_drift_of_the_topic_and_of_the_state_is_found_with_its_evidence(house: House) -> None:
    findings = {finding["rule"]: finding for finding in house.get("/api/v1/findings")}
    assert {
        "UNKNOWN_SCHEMA_ID",
        "UNFRAMED_DATA",
        "ID_OF_OTHER_SUBJECT",
        "UNDECODABLE",
        "STATE_SCHEMA_EVOLVED",
        "RENAME_SUSPECTED",
    } <= set(findings)
    unknown = findings["UNKNOWN_SCHEMA_ID"]["evidence"]
    assert (unknown["topic"], unknown["side"], unknown["schema_id"], unknown["messages"]) == (
        "orders",
        "value",
        900001,
        1,
    )
    (place,) = unknown["partitions"]
    assert place["first_offset"] == place["last_offset"] > 0
    renamed = findings["RENAME_SUSPECTED"]["evidence"]
    assert renamed["operator"] == 0
    assert (renamed["variable"], renamed["field"], renamed["added"]) == ("totals", "last_status", "status")
    assert renamed["batch"] >= 1
    assert 0 < renamed["filled_before"] == renamed["rows_before"] <= 40


@pytest.mark.requirement("CARD-3")
def test_a_finding_shows_where(sign_in: Callable[..., Page]) -> None:
    page = sign_in("reader")
    page.goto("/ui/findings")
    page.get_by_role("link", name=re.compile("900001")).first.click()
    expect(page.locator("main")).to_contain_text("First offset")
    expect(page.locator("main")).to_contain_text("Find the producer")


def test_scan_now_shows_progress_and_what_was_read(sign_in: Callable[..., Page]) -> None:
    page = sign_in("steward")
    page.goto("/ui/sources")
    page.get_by_role("link", name="orders and customers", exact=True).first.click()
    page.get_by_role("button", name="Scan now").click()
    expect(page.locator("#progress")).to_contain_text(re.compile("is done"), timeout=90_000)
    expect(page.locator("#progress")).to_contain_text(
        re.compile("new messages? in")
    )  # none since the last one, at times


def test_a_proposed_schema_is_reported_under_seven_levels(sign_in: Callable[..., Page]) -> None:
    page = sign_in("reader")
    page.goto(f"{SUBJECT}report")
    page.fill("textarea[name=text]", '{"type": "record", "name": "Order", "fields": [{"name": "x", "type": "int"}]}')
    page.get_by_role("button", name="Check").click()
    expect(page.locator(".levels li")).to_have_count(7)
    expect(page.locator("main")).to_contain_text("Order.x")


@pytest.mark.requirement("CARD-4")
def test_one_asks_another_approves_and_prod_has_it(sign_in: Callable[..., Page], house: House) -> None:
    steward = sign_in("steward")
    steward.goto("/ui/promotions/request?subject=customers-value&version=1&source=dev&target=prod")
    steward.get_by_role("button", name="Request review").click()
    expect(steward.locator("main")).to_contain_text("is waiting for review")
    expect(steward.get_by_role("button", name="Approve")).to_be_disabled()
    approver = sign_in("approver")
    approver.goto(steward.url)
    approver.get_by_role("button", name="Approve").click()
    expect(approver.locator("main")).to_contain_text("It can be applied now")
    approver.get_by_role("button", name="Apply to prod").click()
    expect(approver.locator("main")).to_contain_text("live in the target")
    assert "customers-value" in house.get("/registries/prod/subjects")
    approver.goto("/ui/audit?q=approver")
    expect(approver.locator("main")).to_contain_text("release added")


def test_what_is_broken_is_said_on_the_page(sign_in: Callable[..., Page]) -> None:
    page = sign_in("steward")
    for kind, fields, words in (
        ("kafka", {"name": "nothing-here", "bootstrap": "127.0.0.1:1"}, "loopback"),
        ("state_store", {"name": "/etc"}, "/etc"),
    ):
        answer = page.request.get(f"/ui/sources/add?kind={kind}")
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', answer.text())
        assert token
        form = {"kind": kind, "registry": "dev", "csrfmiddlewaretoken": token[1], **fields}
        refused = page.request.post("/ui/sources/add", form=form)
        assert refused.status in (422, 503)
        assert words in refused.text()


def test_a_client_of_the_established_registry_reads_and_writes(house: House) -> None:
    from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
    from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
    from confluent_kafka.schema_registry.error import SchemaRegistryError
    from confluent_kafka.serialization import MessageField, SerializationContext

    client = SchemaRegistryClient({"url": house.url})
    text = '{"type": "record", "name": "Ping", "fields": [{"name": "n", "type": "int"}]}'
    context = SerializationContext("pings", MessageField.VALUE)
    data = AvroSerializer(client, text)({"n": 7}, context)
    assert data is not None and data[0] == 0
    assert AvroDeserializer(client)(data, context) == {"n": 7}
    assert client.get_latest_version("pings-value").version == 1
    with pytest.raises(SchemaRegistryError) as refused:
        client.register_schema("pings-value", Schema(text.replace('"int"', '"string"'), "AVRO"))
    assert refused.value.error_code == 409
    assert client.test_compatibility("pings-value", Schema(text.replace('"int"', '"long"'), "AVRO"))


def test_no_password_stays_in_a_log(house: House) -> None:
    logs = "".join(path.read_text(errors="replace") for path in (house.data / "logs").iterdir() if path.is_file())
    assert [name for name, password in house.passwords.items() if password in logs] == []
    assert len(house.passwords) == 4
