"""The measurement of pages: it knows every page of the product, and says what a browser and the server took."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from playwright.sync_api import Browser

from benchmarks import dataset, page_addresses, page_data, pages
from benchmarks.bench import Command as Bench
from benchmarks.page_addresses import Page, all_pages, names_of_pages
from benchmarks.pages import Load
from benchmarks.site import running_site
from registry.access.models import User
from registry.errors import Conflict, WrongState
from tests.services_plugin import as_owner

pytestmark = [pytest.mark.slow, pytest.mark.requirement("CARD-4")]

SIZE = pages.Size(subjects=120, fields_max=60, fields_mean=12, requests=2, loads=1)


def test_every_page_has_an_entry_and_forms_have_none() -> None:
    names = {page.name for page in all_pages()}
    assert {"home", "compare", "report", "simulate", "promotion", "state_check"} <= names
    assert names & {"promotion_approve", "theme", "describe", "inbox_read"} == set()
    whats = [page.what for page in page_addresses.PAGES]
    assert len(set(whats)) == len(whats)


def test_a_page_without_an_entry_fails_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    rest = tuple(page for page in page_addresses.PAGES if page.name != "audit")
    monkeypatch.setattr(page_addresses, "PAGES", (*rest, Page("nowhere", "nowhere")))
    with pytest.raises(WrongState, match="audit has no entry; nowhere is no page"):
        all_pages()
    with pytest.raises(CommandError, match="audit has no entry"):
        call_command(Bench(), "pages")


def test_a_view_that_takes_any_method_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pattern:
        name = "loose"

        @staticmethod
        def callback(request: Any) -> str:
            return "anything"

    with pytest.raises(WrongState, match="loose takes any method"):
        page_addresses._is_opened(Pattern)  # type: ignore[arg-type]
    assert len(names_of_pages()) == len(set(names_of_pages()))


def test_most_fields_of_a_changed_schema_are_others() -> None:
    size = dataset.Size(subjects=10, fields_max=100, fields_mean=40)
    before, after = (json.loads(text)["fields"] for text in _changed(dataset.text_of(199, 1, size)))
    same = [field for field in after if field in before]
    assert 0 < len(same) < len(before) / 3
    assert {field["name"] for field in before} - {field["name"] for field in after}


def _changed(text: str) -> tuple[str, str]:
    return text, page_data.changed_text(text)


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (pages.Row("x", 0.1, 0.1, (Load(0.5, 0.0, 0.0, 90_000),), 7), ("x", "100 ms", "100 ms", "500 ms", "0.000", "none", "90 kB", "7")),
        (
            pages.Row("x", 0.1, 0.2, (Load(1.5, 0.2, 0.3, 900_000),), 7),
            ("x", "100 ms", "200 ms (missed)", "1,500 ms (missed)", "0.200 (missed)", "300 ms (missed)", "900 kB (missed)", "7"),
        ),
        (pages.Row("file", 0.1, 0.1, (), 3), ("file", "100 ms", "100 ms", "", "", "", "", "3")),
        (pages.Row("x", failed="/ui/ answered 500"), ("x", "failed: /ui/ answered 500")),
    ],
)  # fmt: skip
def test_what_is_missed_is_said(row: pages.Row, sentence: tuple[str, ...]) -> None:
    assert pages.cells(row) == sentence


def test_options_are_sizes() -> None:
    parser = ArgumentParser()
    pages.add_arguments(parser)
    assert pages.size_of(vars(parser.parse_args([]))) == pages.Size()
    assert pages.size_of(vars(parser.parse_args(["--loads=9", "--subjects=7"]))) == pages.Size(subjects=7, loads=9)


@pytest.mark.django_db
def test_an_empty_database_has_nothing_to_be_opened() -> None:
    with pytest.raises(Conflict, match="bench fill"), running_site("http://localhost"):
        pytest.fail("nothing is there")
    assert not User.objects.get(username="bench").is_active


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
def test_pages_are_measured_where_they_are_shown(browser: Browser, live_server: Any) -> None:
    with as_owner():
        dataset.fill(SIZE)
    with running_site(live_server.url) as site:
        unshown = Page("nothing", "finding", {"finding_id": "999999"})
        titles = {"home", "diff of {fields} fields, most changed", "promotion, plan file", "state variable"}
        chosen = [page for page in all_pages() if page.what in titles]
        rows = list(pages.measure_at(site, [*chosen, unshown], SIZE, browser))
        addresses = [page.address(site.there) for page in all_pages()]
    assert len(set(addresses)) == len(addresses)
    failed = [row for row in rows if row.failed]
    assert [(row.what, row.failed) for row in failed] == [
        ("nothing", "/ui/findings/999999 answered 404: what isn't shown can't be measured.")
    ]
    for row in rows[:-1]:
        assert 0 < row.p50 <= row.p95, row
        assert row.queries > 3, row
        assert len(row.loads) == (0 if "file" in row.what else 1), row
        for load in row.loads:
            assert load.bytes > 20_000 and load.paint > 0, row
    assert {row.what for row in rows} >= {"home", "state variable"}
    text = pages.section([row for row in rows if not row.failed], SIZE, "A note.")
    assert text.count("\n| ") == len(rows) and "A note." in text
    bench = User.objects.get(username="bench")
    assert not bench.is_active and not bench.has_usable_password()
