"""What people do with the product, told as they do it: real pages, a real server and database, a real browser.

What the console complained about fails a story, and so does whatever the Content-Security-Policy refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from registry.access.roles import Actor
from registry.promotions.apply import execution
from registry.promotions.models import FreezeWindow, PromotionRequest, Release
from registry.subjects.models import SchemaVersion, VersionStatus
from registry.subjects.services import set_config
from registry.subjects.versions.qualified_names import SubjectName
from tests.promotions.factories import BROKEN, ORDERS, V1, V2, change, register

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]

DEV, STAGING = (f"/ui/registries/{name}/subjects/orders-value/" for name in ("dev", "staging"))
SitsDown = Callable[..., Page]


@pytest.fixture
def steward(person: Callable[[str], Actor]) -> Actor:
    """Who has registered the first version of orders: in dev, and in staging without any request."""
    by = person("steward")
    register(V1, by)
    register(V1, by, registry="staging")
    return by


def ask(page: Page, version: int, why: str = "for the new checkout") -> str:
    """The one at this page asks for a version of orders in staging; gives the request's address."""
    page.goto("/ui/promotions/request")
    page.get_by_role("textbox", name="Subjects").fill(f"orders-value {version}")
    page.get_by_role("combobox", name="From").select_option("dev")
    page.get_by_role("combobox", name="To").select_option("staging")
    page.get_by_role("textbox", name="Reason").fill(why)
    page.get_by_role("button", name="Request review").click()
    expect(page.locator("h1")).to_contain_text("orders-value")
    return page.url


def approve(page: Page, address: str, comment: str = "Fine.") -> None:
    """The one at this page approves."""
    page.goto(address)
    page.locator("textarea[name=comment]").fill(comment)
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("Approved. It can be applied now.")).to_be_visible()


def apply(page: Page) -> None:
    """The one at this page applies what is approved."""
    page.get_by_role("button", name="Apply to staging").click()
    expect(page.locator(".verdict-title").first).to_have_text("Live in staging")


def versions_in(registry: str) -> list[int]:
    """The versions of orders there."""
    found = SchemaVersion.objects.filter(subject__context__registry__name=registry, subject__name="orders-value")
    return sorted(found.values_list("version", flat=True))


@pytest.mark.requirement("CARD-4", "ORA-1")
def test_a_breaking_change_is_turned_down_and_its_repaired_form_goes_live(steward: Actor, sits_down: SitsDown) -> None:
    set_config(registry="dev", subject=ORDERS, level="NONE", by=steward)
    register(BROKEN, steward)
    at_desk = sits_down("steward")
    first = ask(at_desk, 2)

    approver = sits_down("approver")
    approver.goto(first)
    expect(approver.locator("main")).to_contain_text("fails")
    approver.locator("#changes [data-change]").first.wait_for()
    expect(approver.locator("#changes")).to_contain_text("Breaking")
    approver.locator("textarea[name=comment]").fill("id can't become a string: who reads it?")
    approver.get_by_role("button", name="Reject").click()
    expect(approver.locator(".head-meta")).to_contain_text("Rejected")

    at_desk.reload()
    expect(at_desk.locator("main")).to_contain_text("id can't become a string")
    register(V2, steward)
    second = ask(at_desk, 3, "without touching id")
    approve(approver, second)
    apply(approver)
    assert versions_in("staging") == [1, 2]
    assert list(Release.objects.values_list("subject_name", flat=True)) == ["orders-value"]
    assert sorted(PromotionRequest.objects.values_list("state", flat=True)) == ["applied", "rejected"]


@pytest.mark.requirement("CARD-4")
def test_a_stranger_is_kept_out_of_everything(steward: Actor, sits_down: SitsDown) -> None:
    register(V1, steward, subject=SubjectName(".", "payroll-value"))
    stranger = sits_down("stranger")
    payroll = "/ui/registries/dev/subjects/payroll-value/"
    for address in (payroll, f"{payroll}report", f"{payroll}compare", "/ui/registries/dev/subjects", "/ui/", "/ui/audit",
                    "/ui/people", "/ui/environments", "/ui/environments/prod", "/ui/findings", "/ui/sources", "/ui/queries"):  # fmt: skip
        answer = stranger.request.get(address)
        assert answer.status == 403, address
        assert "Order" not in answer.text(), address
    for address in ("/ui/promotions/request?subject=payroll-value&version=1", "/ui/search?q=payroll"):
        assert "version 1" not in stranger.request.get(address).text(), address
    stranger.goto("/ui/promotions/request")
    expect(stranger.get_by_role("button", name="Request review")).to_be_disabled()
    token = stranger.locator("[name=csrfmiddlewaretoken]").first.get_attribute("value") or ""
    for address in (f"{payroll}adopt", f"{payroll}status", "/ui/people/change", "/ui/environments/prod/freezes"):
        form = {"csrfmiddlewaretoken": token, "version": "1", "status": "retired", "message": "x", "reason": "x"}
        answer = stranger.request.post(address, form=form, headers={"referer": stranger.url})
        assert answer.status == 403, address
    assert not PromotionRequest.objects.exists()
    assert not VersionStatus.objects.exists()


@pytest.mark.requirement("CARD-4", "ORA-1")
def test_a_version_is_deprecated_and_everybody_sees_it(steward: Actor, sits_down: SitsDown) -> None:
    register(V2, steward)
    at_desk = sits_down("steward")
    at_desk.goto(f"{DEV}?version=1")
    at_desk.locator("#status summary", has_text="Deprecate").click()
    at_desk.get_by_label("Status", exact=True).select_option("deprecated")
    at_desk.get_by_label("Reason, and what to use instead").fill("Version 2 has the note.")
    at_desk.get_by_label("End date").fill("2099-12-31")
    at_desk.get_by_role("button", name="Set status").click()
    expect(at_desk.locator("#status")).to_contain_text("Deprecated until 2099-12-31")

    reader = sits_down("reader")
    reader.goto(DEV)
    expect(reader.get_by_role("rowheader", name="Version 1")).to_contain_text("Deprecated")
    reader.get_by_role("link", name="Version 1", exact=True).first.click()
    expect(reader.locator("#status")).to_contain_text("Version 2 has the note.")
    expect(reader.locator("#status")).to_contain_text("You need the admin or steward role")
    expect(reader.get_by_role("button", name="Set")).to_have_count(0)


@pytest.mark.requirement("CARD-4", "ORA-1")
def test_an_unapproved_version_is_adopted(steward: Actor, sits_down: SitsDown) -> None:
    at_desk = sits_down("steward")
    at_desk.goto(STAGING)
    expect(at_desk.locator("#status")).to_contain_text("It was registered without a request")
    at_desk.get_by_label("How it was registered").fill("A producer registered it on its first start.")
    at_desk.get_by_role("button", name="Request adoption").click()
    expect(at_desk.locator("h1")).to_contain_text("Adopt orders-value")

    approver = sits_down("approver")
    approver.goto("/ui/promotions?who=waiting")
    approver.locator("#list").get_by_role("link", name="orders-value").first.click()
    expect(approver.locator("main")).to_contain_text("A producer registered it on its first start.")
    approve(approver, approver.url)
    approver.get_by_role("button", name="Apply to staging").click()
    expect(approver.locator(".head-meta")).to_contain_text("Applied")
    at_desk.goto(STAGING)
    expect(at_desk.locator("#status")).not_to_contain_text("It was registered without a request")
    assert versions_in("staging") == [1], "nothing is registered by an adoption"


@pytest.mark.requirement("CARD-4", "ORA-1")
def test_a_frozen_environment_refuses_and_then_takes_an_exception_or_a_later_window(
    steward: Actor, sits_down: SitsDown
) -> None:
    register(V2, steward)
    address = ask(sits_down("steward"), 2)
    approver = sits_down("approver")
    approve(approver, address)

    # the books are closed: nothing is applied, and the page says until when and why
    admin = sits_down("admin")
    now = timezone.now()
    admin.goto("/ui/environments/staging")
    admin.locator("summary", has_text="Add freeze window").click()
    form = admin.locator("form[action$='/freezes']")
    form.get_by_label("From (UTC)").fill(moment(now - timedelta(hours=1)))
    form.get_by_label("To (UTC)").fill(moment(now + timedelta(hours=2)))
    form.get_by_label("Reason").fill("The books are closed.")
    form.get_by_role("button").click()
    expect(admin.locator("main")).to_contain_text("The books are closed.")
    approver.get_by_role("button", name="Apply to staging").click()
    expect(approver.locator("main")).to_contain_text("The books are closed.")
    expect(approver.locator(".head-meta")).to_contain_text("Approved")
    assert versions_in("staging") == [1], "it was refused, and stays approved"

    # a later window: it is scheduled for when the freeze is over, and that time comes
    approver.get_by_label("Scheduled time").fill(moment(now + timedelta(hours=3)))
    approver.get_by_role("button", name="Schedule").click()
    expect(approver.locator(".head-meta")).to_contain_text("Scheduled")
    assert FreezeWindow.objects.update(starts_at=now - timedelta(hours=4), ends_at=now - timedelta(hours=1)) == 1
    assert PromotionRequest.objects.update(apply_at=now - timedelta(minutes=1)) == 1
    (number,) = execution.claim_due()
    execution.apply_due(request_id=number)
    approver.reload()
    expect(approver.locator(".verdict-title").first).to_have_text("Live in staging")
    assert versions_in("staging") == [1, 2]


def moment(at: datetime) -> str:
    """As a field of a date and a time is filled."""
    return at.strftime("%Y-%m-%dT%H:%M")


@pytest.mark.requirement("CARD-4", "ORA-1")
def test_a_release_is_rolled_back(steward: Actor, sits_down: SitsDown, token: Callable[[str], str]) -> None:
    register(V2, steward)
    address = ask(sits_down("steward"), 2)
    approver = sits_down("approver")
    approve(approver, address)
    apply(approver)
    asked = approver.request.post(
        "/api/v1/roll-backs",
        headers={"authorization": f"Bearer {token('steward')}"},
        data={"environment": "staging", "subject": "orders-value", "version": "1", "reason": "The checkout fails."},
    )
    assert asked.status == 201, asked.text()
    back = f"/ui/promotions/{asked.json()['id']}"
    approver.goto(back)
    expect(approver.locator("main")).to_contain_text("The checkout fails.")
    approve(approver, back, "Back to what worked.")
    approver.get_by_role("button", name="Apply to staging").click()
    expect(approver.locator(".head-meta")).to_contain_text("Applied")
    assert versions_in("staging") == [1, 2, 3], "what was there stays, and the first comes again on top"
    texts = SchemaVersion.objects.filter(subject__context__registry__name="staging").order_by("version")
    assert texts[0].schema.canonical == texts[2].schema.canonical != texts[1].schema.canonical


@pytest.mark.requirement("CARD-2", "CARD-4")
def test_without_javascript_it_is_read_reviewed_and_promoted(steward: Actor, sits_down: SitsDown) -> None:
    register(V2, steward)
    plain = {"java_script_enabled": False}
    at_desk = sits_down("steward", **plain)
    at_desk.goto("/ui/registries/dev/subjects?q=orders")
    at_desk.get_by_role("link", name="orders-value").click()
    at_desk.get_by_role("button", name="Compare").click()
    expect(at_desk.locator("[data-change]")).to_have_count(1)
    at_desk.get_by_role("link", name="Side by side").click()
    expect(at_desk.locator(".diff-split")).to_have_count(1)
    expect(at_desk.locator("footer")).to_contain_text("UTC")
    address = ask(at_desk, 2)
    approver = sits_down("approver", **plain)
    approve(approver, address)
    apply(approver)
    assert versions_in("staging") == [1, 2]


@pytest.mark.requirement("CARD-4")
def test_two_approvers_at_once(steward: Actor, sits_down: SitsDown) -> None:
    change("staging", reviews_needed=2)
    register(V2, steward)
    address = ask(sits_down("steward"), 2)
    one, other = sits_down("approver"), sits_down("approver2")
    for page in (one, other):
        page.goto(address)
    one.locator("textarea[name=comment]").fill("Fine.")
    one.get_by_role("button", name="Approve").click()
    expect(one.locator("#decision")).to_contain_text("1 of 2")
    other.locator("textarea[name=comment]").fill("Fine too.")
    other.get_by_role("button", name="Approve").click()
    expect(other.get_by_text("Approved. It can be applied now.")).to_be_visible()

    # both apply: one of them does it, the other is told that it is done
    one.reload()
    apply(other)
    one.get_by_role("button", name="Apply to staging").click()
    expect(one.locator("main")).to_contain_text("applied")
    assert versions_in("staging") == [1, 2]
    assert Release.objects.count() == 1


@pytest.mark.requirement("CARD-4")
def test_an_approval_on_a_phone(steward: Actor, sits_down: SitsDown) -> None:
    register(V2, steward)
    address = ask(sits_down("steward"), 2)
    phone: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    approver = sits_down("approver", **phone, color_scheme="dark")
    approver.goto("/ui/")
    approver.get_by_role("link", name="orders-value").first.tap()
    expect(approver).to_have_url(address)
    approver.get_by_role("link", name="Decision").tap()
    button = approver.get_by_role("button", name="Approve")
    button.scroll_into_view_if_needed()
    box = button.bounding_box()
    assert box is not None and box["height"] >= 24 and box["x"] >= 0 and box["x"] + box["width"] <= 390
    approver.locator("textarea[name=comment]").fill("From the train.")
    button.tap()
    expect(approver.get_by_text("Approved. It can be applied now.")).to_be_visible()


@pytest.mark.requirement("CARD-4")
def test_a_newcomer_is_let_in_and_given_a_role(steward: Actor, sits_down: SitsDown) -> None:
    admin = sits_down("admin")
    admin.goto("/ui/people")
    admin.locator("summary", has_text="Add a person").first.click()
    admin.get_by_label("Username").fill("newcomer")
    admin.get_by_role("button", name="Add person").click()
    password = admin.locator("#password").inner_text()

    newcomer = sits_down("")
    newcomer.goto("/ui/accounts/login/")
    newcomer.fill("input[name=login]", "newcomer")
    newcomer.fill("input[name=password]", password)
    newcomer.click("main form button")
    newcomer.wait_for_url("**/ui/")
    assert newcomer.request.get(DEV).status in (403, 404)

    admin.locator("summary", has_text="Grant a role to a person").click()
    form = admin.locator("details[open] form").last
    form.get_by_label("Person").select_option("newcomer")
    form.get_by_label("Role").select_option("reader")
    form.get_by_role("button", name="Grant role").click()
    expect(admin.get_by_role("row", name=re.compile("^newcomer"))).to_contain_text("reader")
    newcomer.goto(DEV)
    expect(newcomer.locator("h1")).to_contain_text("orders-value")


@pytest.mark.requirement("CARD-4")
def test_times_are_the_viewers_with_utc_at_hand(steward: Actor, sits_down: SitsDown) -> None:
    reader = sits_down("reader", timezone_id="Asia/Tokyo")
    reader.goto(DEV)
    expect(reader.locator("footer")).to_contain_text("Asia/Tokyo and UTC")
    made = reader.locator("footer time")
    expect(made).to_contain_text("JST")
    instant, utc = made.get_attribute("datetime") or "", made.get_attribute("title") or ""
    assert instant.replace("T", " ").replace("Z", " UTC") == utc
    there = reader.evaluate("iso => new Date(iso).toLocaleString('sv-SE', {timeZone: 'Asia/Tokyo'})", instant)
    assert there in made.inner_text()
    assert "JST · " in (reader.locator("main time[title]").first.get_attribute("title") or "")

    plain = sits_down("approver", timezone_id="Asia/Tokyo", java_script_enabled=False)
    plain.goto(DEV)
    expect(plain.locator("footer time")).to_contain_text("UTC")
