"""The pages of compatibility in a real browser over the real database, with and without JavaScript."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

import pytest
from playwright.sync_api import Page, expect

from registry.access.roles import Actor
from registry.subjects.services import register_version
from registry.subjects.versions.qualified_names import SubjectName

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]

PERSON_1 = {"type": "record", "name": "Person", "fields": [{"name": "name", "type": "string"}]}
PERSON_2 = {**PERSON_1, "fields": [*PERSON_1["fields"], {"name": "age", "type": "int", "default": -1}]}
PROPOSED = {**PERSON_2, "fields": [*PERSON_2["fields"], {"name": "city", "type": "string"}]}
PEOPLE = "/ui/registries/dev/subjects/person-value/"


@pytest.fixture
def signed_in(window: Callable[..., Page], person: Callable[[str], Actor]) -> Callable[..., Page]:
    """Windows of a reader, where a person has two versions."""
    by = person("steward")
    for schema in (PERSON_1, PERSON_2):
        register_version(registry="dev", subject=SubjectName(".", "person-value"), text=json.dumps(schema), by=by)
    return partial(window, "reader")


@pytest.mark.requirement("CARD-2", "GOO-2")
def test_a_report_is_read_and_its_repair_taken_without_javascript(signed_in: Callable[..., Page]) -> None:
    page = signed_in(java_script_enabled=False)
    page.goto(f"{PEOPLE}report")
    page.get_by_role("textbox", name="Schema").fill(json.dumps(PROPOSED, indent=2))
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.locator(".levels li")).to_have_count(7)
    expect(page.locator("main")).to_contain_text("Would pass BACKWARD")
    page.locator("details.proof summary").first.click()
    expect(page.locator(".datum-error").first).to_be_visible()
    page.get_by_role("button", name="Use this text and check").first.click()
    expect(page.locator(".verdict")).to_contain_text("Compatible under BACKWARD")
    assert '"default"' in page.locator("[name=text]").input_value()


@pytest.mark.requirement("ORA-8")
def test_from_the_subject_to_the_age_that_ends_at_its_default(signed_in: Callable[..., Page]) -> None:
    page = signed_in()
    page.goto(PEOPLE)
    page.locator(".head-actions summary").click()
    page.get_by_role("link", name="Simulate with data").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Simulate with data")
    page.get_by_role("link", name="Read, modify, write back").click()
    page.get_by_label("Record of version 2").fill('{"name": "Ada", "age": 36}')
    page.get_by_label("Field to change").select_option("/name")
    page.get_by_label("New value").fill("Grace")
    page.get_by_role("button", name="Run the steps").click()
    expect(page.locator(".rounds > li")).to_have_count(3)
    expect(page.locator(".rounds > li").nth(2)).to_contain_text("Silently reset")
    expect(page.locator(".rounds > li").nth(2).locator(".datum")).to_contain_text('"age": -1')


@pytest.mark.requirement("ORA-6")
def test_a_wrong_datum_is_said_at_the_field_and_can_be_mended(signed_in: Callable[..., Page]) -> None:
    page = signed_in(viewport={"width": 390, "height": 800})
    page.goto(f"{PEOPLE}simulate?writer=2&reader=1")
    field = page.get_by_label("Record of version 2")
    field.fill('{"name": "Ada", "age": "old"}')
    page.get_by_role("button", name="Decode").click()
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#ReadForm_datum_error")).to_contain_text("Person.age")
    field.fill('{"name": "Ada", "age": 36}')
    page.get_by_role("button", name="Decode").click()
    expect(page.locator("#result")).to_contain_text("Dropped")
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_the_text_turns_side_by_side_in_place(signed_in: Callable[..., Page]) -> None:
    page = signed_in()
    page.goto(f"{PEOPLE}compare?from=1&to=2")
    page.keyboard.press("u")
    expect(page.locator(".diff-split")).to_have_count(1)
    assert "view=split" in page.url
    expect(page.locator("h1")).to_have_count(1)
