"""The policy of a registry: the tree, its forms, what stands against them, and a level tried on the past."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from playwright.sync_api import Page, expect

from registry.access.roles import Actor, system_actor
from registry.promotions.services import open_break_glass, request_promotion
from registry.subjects.models import Config, Mode
from registry.subjects.policy.effective_policy import effective_config, effective_mode
from registry.subjects.services import register_version, set_config, set_mode
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName
from tests.conftest import RawClient
from tests.markup import compact

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("GOO-3"), pytest.mark.requirement("GOO-6")]

POLICY, WHAT_IF = "/ui/registries/dev/policy", "/ui/registries/dev/what-if"
QUERIES = json.loads((Path(__file__).parents[1] / "query_counts.json").read_text())
NASTY = "<script>alert(1)</script>/%2F\u202e"


def record(*fields: str) -> str:
    return json.dumps({"type": "record", "name": "R", "fields": [{"name": name, "type": "long"} for name in fields]})


@pytest.fixture
def settings_of_all(registries: None, system: Actor) -> None:
    """A registry, a context and subjects with something of their own, and some that inherit."""
    for name in ("plain", "strict", "held"):
        register_version(registry="dev", subject=SubjectName(".", name), text=record("a"), by=system)
    register_version(registry="dev", subject=SubjectName(".team", "inner"), text=record("a"), by=system)
    set_config(registry="dev", subject=None, by=system, level="FORWARD")
    set_config(registry="dev", subject=SubjectName(".team", ""), by=system, level="NONE", normalize=True)
    set_config(
        registry="dev", subject=SubjectName(".", "strict"), by=system, level="FULL_TRANSITIVE", policy="oracle_nosql"
    )
    set_config(registry="dev", subject=SubjectName(".", "to-come"), by=system, alias="plain")
    set_mode(registry="dev", subject=SubjectName(".", "held"), by=system, mode="READONLY")


def text_of(response: Any) -> str:
    """What is read, in one line."""
    markup = re.sub(r"<(script|style)\b.*?</\1>", " ", response.content.decode(), flags=re.DOTALL)
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", markup)))


def rows_of(response: Any) -> dict[str, str]:
    """Place → what its row says."""
    rows = {}
    for row in re.findall(r"<tr>(.*?)</tr>", response.content.decode(), flags=re.DOTALL)[1:]:
        text = html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", row))).strip()
        rows[" ".join(text.split()[:2])] = text
    return rows


def test_places_that_set_something_are_rows_and_the_others_are_counted(
    settings_of_all: None, look: Callable[[str], Client]
) -> None:
    response = look("reader").get(POLICY)
    rows = rows_of(response)
    assert list(rows) == [
        "registry dev", "context .", "subject held", "subject strict", "subject to-come", "context .team",
    ]  # fmt: skip
    assert "FORWARD own setting Consumers with the latest version can read data of the new schema. Deploy producers first." in rows["registry dev"]  # fmt: skip
    assert "2 of 4 subjects inherit." in rows["registry dev"]
    assert "1 of 3 subjects inherit." in rows["context ."]
    assert "FORWARD inherited from the registry" in rows["subject held"]
    assert "READONLY own setting Versions can be registered only by a release." in rows["subject held"]
    assert "FULL_TRANSITIVE own setting" in rows["subject strict"]
    assert "Deploy in any order." in rows["subject strict"]
    assert "Additional rules oracle_nosql" in rows["subject strict"]
    assert "no version yet" in rows["subject to-come"]
    assert "Alias for plain" in rows["subject to-come"]
    assert "NONE own setting Nothing is checked: any schema is accepted. No safe order." in rows["context .team"]
    assert "texts that differ only in order are one schema" in rows["context .team"]
    assert "4 contexts and subjects have their own settings. All others inherit." in text_of(response)


def test_exceptions_are_paged_without_a_gap(
    registries: None, system: Actor, look: Callable[[str], Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        set_config(registry="dev", subject=SubjectName(".", f"s{number}"), by=system, level="FULL")
    set_config(registry="dev", subject=SubjectName(".z", "last"), by=system, level="FULL")
    monkeypatch.setattr("registry.subjects.policy.policy_tree.policy_tree.__kwdefaults__", {"cursor": "", "limit": 4})
    client = look("reader")
    first = client.get(POLICY)
    assert [name for name in rows_of(first) if name.startswith("subject")] == [f"subject s{n}" for n in range(4)]
    assert "Showing 4 of 6 exceptions." in text_of(first)
    (following,) = re.findall(r'rel="next" href="([^"]*)"', compact(first.content.decode()))
    second = client.get(html.unescape(following))
    assert list(rows_of(second))[1:] == ["subject s4", "context .z", "subject last"]
    assert 'rel="next"' not in second.content.decode()


def test_a_steward_changes_and_resets_settings_by_forms(settings_of_all: None, look: Callable[[str], Client]) -> None:
    client, dev = look("steward"), get_registry("dev")
    form = {"part": "config", "subject": "strict", "level": "FULL", "normalize": "true", "profile": "", "policy": ""}
    response = client.post(f"{POLICY}/change", {**form, "alias": "plain"})
    assert response["Location"] == f"{POLICY}?change=1&subject=strict#change"
    config = effective_config(dev, SubjectName(".", "strict"))
    assert (config.level, config.normalize, config.policy) == ("FULL", True, "none")
    shown = client.get(response["Location"])
    assert "the setting now applies to subject strict" in text_of(shown)
    assert '<option value="FULL" selected>' in compact(shown.content.decode())
    client.post(f"{POLICY}/reset", {"part": "config", "subject": "strict"})
    assert effective_config(dev, SubjectName(".", "strict")).origin == "registry"
    assert "does not have subject-level" in text_of(
        client.post(f"{POLICY}/reset", {"part": "config", "subject": "strict"}, follow=True)
    )
    client.post(f"{POLICY}/change", {"part": "config", "context": ".team", "level": "BACKWARD", "normalize": ""})
    assert effective_config(dev, SubjectName(".team", "inner")).level == "BACKWARD"
    client.post(f"{POLICY}/change", {"part": "config", "level": ""})
    assert not Config.objects.filter(registry=dev, context=None).exists()


def test_an_admin_changes_modes_and_a_steward_reads_why_they_cannot(
    settings_of_all: None, look: Callable[[str], Client]
) -> None:
    admin, dev = look("admin"), get_registry("dev")
    admin.post(f"{POLICY}/change", {"part": "mode", "subject": "plain", "mode": "READONLY"})
    assert effective_mode(dev, SubjectName(".", "plain")).mode == "READONLY"
    admin.post(f"{POLICY}/change", {"part": "mode", "subject": "plain", "mode": ""})
    assert effective_mode(dev, SubjectName(".", "plain")).mode == "READWRITE"
    admin.post(f"{POLICY}/reset", {"part": "mode", "subject": "held"})
    assert not Mode.objects.filter(registry=dev).exists()
    steward = look("steward")
    assert "to change modes" in text_of(steward.get(f"{POLICY}?change=1&subject=plain"))
    assert steward.post(f"{POLICY}/change", {"part": "mode", "subject": "plain", "mode": "READONLY"}).status_code == 403
    assert not Mode.objects.filter(registry=dev).exists()


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ({"level": "SIDEWARD"}, "Invalid compatibility level"),
        ({"normalize": "perhaps"}, "must be true or false"),
        ({"profile": "mine"}, "is not a valid "),
        ({"alias": "\x07"}, "control character"),
        ({"part": "mode", "mode": "ASLEEP"}, "Invalid mode"),
        ({"level": "FULL", "subject": "held"}, "read-only mode"),
    ],
)
def test_what_cannot_be_set_is_said_and_nothing_changes(
    settings_of_all: None, look: Callable[[str], Client], form: dict[str, str], sentence: str
) -> None:
    before = list(Config.objects.order_by("pk").values())
    response = look("admin").post(f"{POLICY}/change", {"part": "config", "subject": "plain", **form}, follow=True)
    assert sentence in text_of(response)
    assert list(Config.objects.order_by("pk").values()) == before


def test_the_page_says_why_not_with_the_reasons_of_the_api(
    registries: None,
    look: Callable[[str], Client],
    api: Callable[[str], Client],
    person: Callable[[str], Actor],
    system: Actor,
) -> None:
    set_config(registry="prod", subject=SubjectName(".", "s"), by=system, level="FULL", release=True)
    page = "/ui/registries/prod/policy?change=1&subject=s"
    for who, codes in (("reader", ["rights", "closed-environment"]), ("steward", ["closed-environment"])):
        tree = api(who).get("/api/v1/registries/prod/policy").json()
        (node,) = [item for item in tree["places"] if item["subject"] == "s"]
        reasons = node["reasons"]["config"]
        assert [reason["code"] for reason in reasons] == codes
        response = look(who).get(page)
        assert "Why?" in text_of(response)
        for reason in reasons:
            assert reason["sentence"] in text_of(response)
            assert reason["cure"] in text_of(response)
    assert (
        look("steward").post("/ui/registries/prod/policy/change", {"subject": "s", "level": "NONE"}).status_code == 302
    )
    assert Config.objects.get(registry__name="prod", subject_name="s").compatibility_level == "FULL"
    open_break_glass(environment="prod", by=person("admin"), reason="x")
    tree = api("admin").get("/api/v1/registries/prod/policy").json()
    assert tree["places"][-1]["reasons"] == {"config": [], "mode": []}
    assert "Why?" not in text_of(look("admin").get(page))


def test_modes_that_stop_settings_are_reasons_too(settings_of_all: None, api: Callable[[str], Client]) -> None:
    tree = api("steward").get("/api/v1/registries/dev/policy").json()
    node = next(item for item in tree["places"] if item["subject"] == "held")
    assert [reason["code"] for reason in node["reasons"]["config"]] == ["mode"]
    assert [reason["code"] for reason in node["reasons"]["mode"]] == ["rights"]
    assert (node["own"], node["own_mode"], node["effective"]["level"]) == ({}, "READONLY", "FORWARD")


@pytest.mark.parametrize("who", ["stranger"])
def test_a_stranger_sees_nothing(settings_of_all: None, look: Callable[[str], Client], who: str) -> None:
    for address in (POLICY, f"{POLICY}?change=1&subject=strict", f"{WHAT_IF}?level=FULL"):
        response = look(who).get(address)
        assert response.status_code == 403
        assert "oracle_nosql" not in response.content.decode()
        assert RawClient().get(address).status_code == 302


def test_hostile_names_are_shown_harmlessly_and_can_be_changed(
    registries: None, system: Actor, look: Callable[[str], Client]
) -> None:
    subject = SubjectName(".", NASTY)
    register_version(registry="dev", subject=subject, text=record("a"), by=system)
    register_version(registry="dev", subject=subject, text=record("a", "b"), by=system, force=True)
    set_config(registry="dev", subject=subject, by=system, level="NONE")
    client = look("steward")
    page = client.get(POLICY).content.decode()
    assert "<script>alert" not in page
    (address,) = [link for link in re.findall(r'href="([^"]*)"', page) if "change=1&amp;subject=" in link]
    form = client.get(html.unescape(address).split("#")[0]).content.decode()
    assert "<script>alert" not in form
    (value,) = set(re.findall(r'name="subject" value="([^"]*)"', compact(form)))
    client.post(f"{POLICY}/change", {"part": "config", "subject": html.unescape(value), "level": "FULL"})
    assert effective_config(get_registry("dev"), subject).level == "FULL"
    tried = client.get(WHAT_IF, {"level": "FULL", "subject": NASTY})
    assert tried.status_code == 200
    assert "<script>alert" not in tried.content.decode()
    assert "1 of 1 existing change would fail" in text_of(tried)
    assert client.get(POLICY, {"change": "1", "subject": "a\0b"}).status_code in (200, 422)
    assert client.get(POLICY, {"cursor": ":nowhere"}).status_code in (200, 422)


# -- what if ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def past(registries: None, system: Actor, person: Callable[[str], Actor]) -> int:
    """Two versions of orders that break each other forward, and a request to staging; gives its number."""
    orders = SubjectName(".", "orders-value")
    register_version(registry="staging", subject=orders, text=record("a", "b"), by=system)
    for fields in (("a", "b"), ("a",)):
        register_version(registry="dev", subject=orders, text=record(*fields), by=system)
    return request_promotion(
        source="dev", target="staging", subject=orders, version=2, by=person("steward"), reason="x"
    )


def test_a_level_is_tried_in_words_with_links_and_nothing_is_changed(past: int, look: Callable[[str], Client]) -> None:
    client = look("reader")
    response = client.get(f"{WHAT_IF}?level=FULL")
    text = text_of(response)
    assert "With FULL, 1 of 1 existing change would fail." in text
    assert "Checked 1 of 1 subject." in text
    assert "No open requests." in text
    assert "/subjects/orders-value/compare?from=1&amp;to=2" in response.content.decode()
    text = text_of(client.get("/ui/registries/staging/what-if?level=FULL"))
    assert "The verdict would change for 1 of 1 open request." in text
    assert f"Request {past}" in text
    assert "none of 1 existing change would fail" in text_of(client.get(f"{WHAT_IF}?level=backward"))
    assert Config.objects.count() == 0


def test_the_settings_tab_tries_it_on_demand_with_and_without_javascript(
    past: int, look: Callable[[str], Client]
) -> None:
    client = look("reader")
    tab = client.get("/ui/registries/dev/subjects/orders-value/?tab=settings").content.decode()
    assert f'action="{WHAT_IF}"' in tab
    assert 'name="subject" value="orders-value"' in compact(tab)
    query = {"level": "FORWARD", "subject": "orders-value"}
    part = client.get(WHAT_IF, query, headers={"HX-Request": "true", "HX-Target": "what-if"})
    assert "<html" not in part.content.decode()
    assert "With FORWARD, 1 of 1 existing change would fail." in text_of(part)
    assert "<html" in client.get(WHAT_IF, query).content.decode()


def test_what_cannot_be_tried_is_said(past: int, look: Callable[[str], Client]) -> None:
    client = look("reader")
    refused = client.get(f"{WHAT_IF}?level=SIDEWARD")
    assert refused.status_code == 422
    assert "is not a compatibility level" in text_of(refused)
    assert client.get(f"{WHAT_IF}?level=FULL&subject=absent").status_code == 404
    assert client.get(WHAT_IF).status_code == 200


def test_a_search_that_stopped_goes_on(
    registries: None, system: Actor, look: Callable[[str], Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("s1", "s2", "s3"):
        for fields in (("a", "b"), ("a",)):
            register_version(registry="dev", subject=SubjectName(".", name), text=record(*fields), by=system)
    monkeypatch.setattr(
        "registry.subjects.history.level_history.what_if.__kwdefaults__", {"cursor": "", "limit": 2, "seconds": 0}
    )
    client = look("reader")
    first = client.get(f"{WHAT_IF}?level=FULL")
    assert "Checked 1 of 3 subjects." in text_of(first)
    assert "The time limit for one answer was reached." in text_of(first)
    (following,) = re.findall(r'href="([^"]*cursor=[^"]*)"', first.content.decode())
    assert "s2" in text_of(client.get(html.unescape(following)))


def test_as_many_queries_with_many_places_as_with_few(registries: None, look: Callable[[str], Client]) -> None:
    by, client = system_actor("tests"), look("steward")

    def fill(numbers: range) -> None:
        for number in numbers:
            subject = SubjectName(f".c{number % 7}", f"s{number}")
            for fields in (("a", "b"), ("a",)):
                register_version(registry="dev", subject=subject, text=record(*fields), by=by)
            set_mode(registry="dev", subject=subject, by=by, mode="READONLY")
            if number % 2:
                set_config(registry="dev", subject=SubjectName(subject.context, ""), by=by, normalize=True)

    def counts() -> list[int]:
        numbers = []
        for address in (POLICY, f"{POLICY}?change=1&subject=s1", f"{WHAT_IF}?level=FULL"):
            client.get(address)
            with CaptureQueriesContext(connection) as queries:
                assert client.get(address).status_code == 200
            numbers.append(len(queries))
        return numbers

    fill(range(3))
    few = counts()
    fill(range(3, 30))
    assert counts() == few
    pages = ("policy", "policy change", "what if")
    assert [page for count, page in zip(few, pages, strict=True) if count > QUERIES[page]] == []


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_the_policy_is_changed_and_tried_by_keyboard(
    settings_of_all: None, window: Callable[..., Page], width: int
) -> None:
    page = window(viewport={"width": width, "height": 900})
    page.goto(POLICY)
    page.get_by_role("link", name="Change subject strict").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Change subject strict")).to_be_visible()
    page.get_by_label("Compatibility").select_option("NONE")
    page.get_by_role("button", name="Save settings").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("the setting now applies to subject strict")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    page.goto("/ui/registries/dev/subjects/plain/?tab=settings")
    page.get_by_label("Level").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#what-if")).to_contain_text("there are no changes to check")
    assert "tab=settings" in page.url, "the outcome came into the page"
