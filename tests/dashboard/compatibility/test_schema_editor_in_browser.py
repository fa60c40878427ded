"""The schema editor in a real browser: it writes into its form's textarea, by mouse, by keyboard and without a script."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Locator, Page, expect

from registry.access.roles import Actor
from registry.subjects.services import register_version
from registry.subjects.versions.qualified_names import SubjectName
from tests.site.test_axe import RUN, TAGS

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]

PERSON = {"type": "record", "name": "Person", "fields": [{"name": "name", "type": "string"}]}
REPORT = "/ui/registries/dev/subjects/person-value/report"
PICTURES = os.environ.get("EDITOR_PICTURES", "")


@pytest.fixture
def signed_in(window: Callable[..., Page], person: Callable[[str], Actor]) -> Callable[..., Page]:
    """Windows in a registry where a person has a version."""
    by = person("steward")
    register_version(registry="dev", subject=SubjectName(".", "person-value"), text=json.dumps(PERSON), by=by)
    return window


def code(page: Page) -> Locator:
    return page.locator("[data-schema-editor] .cm-content")


def picture(page: Page, name: str) -> None:
    if PICTURES:
        page.screenshot(path=str(Path(PICTURES) / f"{name}.png"), full_page=True)


@pytest.mark.requirement("CARD-4")
@pytest.mark.parametrize("look", ["light", "dark", "forced"])
def test_the_editor_writes_into_the_textarea_of_its_form(signed_in: Callable[..., Page], look: str) -> None:
    page = signed_in(
        color_scheme="light" if look == "light" else "dark", **({"forced_colors": "active"} if look == "forced" else {})
    )
    page.goto(REPORT)
    expect(code(page)).to_have_attribute("aria-label", "Schema")
    expect(page.locator("[data-typing]")).to_have_css("border-top-width", "1px")
    expect(code(page).locator("span").first).to_be_visible()
    text = page.locator("[name=text]")
    page.locator("label", has_text="Schema").first.click()
    expect(code(page)).to_be_focused()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.insert_text('{"type": "enum", "name": "E", "symbols": ["A"]}')
    expect(text).to_have_value('{"type": "enum", "name": "E", "symbols": ["A"]}')
    page.keyboard.press("n")  # a letter, not the key that goes to the next change
    expect(text).to_have_value('{"type": "enum", "name": "E", "symbols": ["A"]}n')
    page.keyboard.press("ControlOrMeta+z")
    picture(page, f"report-{look}")
    page.evaluate(AXE_SCRIPT)
    assert page.evaluate(RUN, [TAGS, None]) == []
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.locator(".verdict")).to_be_visible()


def test_a_key_indents_and_tab_leaves(signed_in: Callable[..., Page]) -> None:
    page = signed_in()
    page.goto(REPORT)
    code(page).press("ControlOrMeta+Home")
    before = page.locator("[name=text]").input_value()
    page.keyboard.press("ControlOrMeta+]")
    assert page.locator("[name=text]").input_value() == f"  {before}"
    page.keyboard.press("Tab")
    expect(page.locator("summary", has_text="References to other subjects")).to_be_focused()
    expect(page.locator("[data-schema-editor] .help").first).to_contain_text("Ctrl+] indents")


def test_what_other_scripts_write_is_in_the_editor_and_on_paper(signed_in: Callable[..., Page]) -> None:
    page = signed_in()
    page.goto("/ui/proposals/new?registry=dev&subject=person-value")
    long = json.dumps({**PERSON, "doc": "x", "aliases": [f"A{number}" for number in range(300)]}, indent=2)
    page.fill("textarea[name=text]", long)
    expect(code(page)).to_contain_text('"aliases"')
    page.get_by_label("Format").select_option("PROTOBUF")
    page.fill("textarea[name=text]", 'syntax = "proto3";\nmessage A { int32 id = 1; }')
    expect(code(page).locator("span", has_text="message")).to_be_visible()
    page.fill("textarea[name=text]", long)
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(code(page)).to_contain_text('"A299"')


def test_without_javascript_the_textarea_stays(signed_in: Callable[..., Page]) -> None:
    page = signed_in(java_script_enabled=False)
    page.goto(REPORT)
    expect(page.get_by_role("textbox", name="Schema")).to_be_visible()
    expect(code(page)).to_have_count(0)


@pytest.mark.requirement("GOO-2")
def test_a_rename_is_underlined_while_it_is_written_and_mended_in_two_clicks(signed_in: Callable[..., Page]) -> None:
    page = signed_in()
    page.goto(REPORT)
    box = page.locator("[data-schema-editor]")
    expect(box.locator("[data-part=state]")).to_have_text("Compatible under BACKWARD: no problems.")
    code(page).locator("span", has_text='"name"').nth(1).scroll_into_view_if_needed()
    code(page).press("ControlOrMeta+a")
    renamed = {**PERSON, "fields": [{"name": "full_name", "type": "string"}]}
    page.keyboard.insert_text(json.dumps(renamed, indent=2))
    expect(box.locator("[data-part=state]")).to_have_text("Incompatible under BACKWARD: 1 problem.")
    expect(box.locator(".cm-lintRange-error")).to_be_visible()
    expect(box.locator(".levels li")).to_have_count(7)
    picture(page, "problems")
    page.evaluate(AXE_SCRIPT)
    assert page.evaluate(RUN, [TAGS, None]) == []
    repairs = box.locator("[data-part=list] .editor-repair")
    expect(repairs.nth(1)).to_contain_text('Add the alias "name". Old data is read under the new name.')
    expect(repairs.nth(2)).to_contain_text('readers get "" instead of the data of "name"')
    box.locator(".cm-lintRange-error").hover()
    expect(box.locator(".cm-tooltip .cm-diagnosticAction").first).to_contain_text('Add the alias "name"')
    repairs.nth(1).click()
    expect(box.locator("[data-part=state]")).to_have_text("Compatible under BACKWARD: no problems.")
    expect(box.locator(".cm-lintRange-error")).to_have_count(0)
    assert json.loads(page.locator("[name=text]").input_value())["fields"][0]["aliases"] == ["name"]
    page.route("**/ui/problems", lambda route: route.fulfill(body="signed out"))
    page.keyboard.press("ControlOrMeta+z")
    expect(box.locator("[data-part=state]")).to_contain_text("Not checked: you are signed out")
    expect(box.locator(".levels li")).to_have_count(0)


def test_types_and_names_are_completed(signed_in: Callable[..., Page]) -> None:
    page = signed_in()
    page.goto(REPORT)
    text, options = page.locator("[name=text]"), page.locator("[data-schema-editor] [role=option]")
    page.locator("summary", has_text="References to other subjects").click()
    page.get_by_label("Name", exact=True).first.fill("com.example.Address")
    for schema_type, start, typed, expected in (
        ("AVRO", '{"type": "record", "name": "Person", "fields": [{"name": "a", "type": ', '"st', "string"),
        ("AVRO", '{"type": "record", "name": "Person", "fields": [{"name": "a", "type": ["null", ', '"Per', "Person"),
        ("AVRO", '{"type": "long", "logicalType": ', '"timestamp-mil', "timestamp-millis"),
        ("AVRO", '{"type": "record", "name": "P", "fields": [{"name": "a", "type": ', '"com.', "com.example.Address"),
        ("JSON", "{", '"addi', "additionalProperties"),
        ("JSON", '{"$defs": {"A": {"$defs": {"C": {}}}, "B": {}}, "$ref": ', '"#/$defs/B', "#/$defs/B"),
        ("JSON", '{"definitions": {"a/b": {"type": "object"}}, "$ref": ', '"#/', "#/definitions/a~1b"),
        ("PROTOBUF", "message Order {} message Cart { ", "Ord", "Order"),
    ):
        page.get_by_label("Format").select_option(schema_type)
        text.fill(start)
        code(page).press("ControlOrMeta+End")
        page.keyboard.type(typed)
        expect(options.first).to_have_text(expected)
        page.wait_for_timeout(100)  # a list that has just opened takes no key yet
        page.keyboard.press("Enter")
        expect(options).to_have_count(0)
        assert expected in text.input_value().removeprefix(start)
