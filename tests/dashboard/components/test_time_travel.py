"""Pages as they were at a moment: what they show, what they leave out, and how one comes back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qs, parse_qsl, quote, urlencode, urlsplit

import pytest
from django.conf import settings
from django.template import Context, Template
from django.test import Client, override_settings
from django.urls import get_resolver, resolve
from django.utils import timezone
from django.utils.html import escape

from dashboard.components.time_travel import with_moment
from registry.access.roles import Actor
from registry.audit.time_travel import as_of, moment_of
from registry.errors import InvalidInput
from registry.promotions import services as promotions
from registry.subjects.services import change_tags, delete_subject, delete_version, register_version, set_config
from registry.subjects.versions.qualified_names import SubjectName
from tests.promotions.factories import approve_shown

Look = Callable[[str], Client]
pytestmark = pytest.mark.requirement("CARD-4")
ORDERS = SubjectName(".", "orders/value")
GONE = SubjectName(".", "gone-value")
HERE = "/ui/registries/dev/subjects/orders%2Fvalue/"


def text(*fields: str) -> str:
    record_fields = [{"name": name, "type": "long", "default": 0} for name in fields]
    return json.dumps({"type": "record", "name": "Order", "fields": record_fields})


@pytest.fixture
def then(registries: None, system: Actor) -> str:
    """A moment after which everything changed."""
    for name in (ORDERS, GONE):
        register_version(registry="dev", subject=name, text=text("alpha"), by=system)
    change_tags(registry="dev", subjects=[ORDERS], add=["early"], by=system)
    set_config(registry="dev", subject=ORDERS, level="FULL", by=system)
    moment = timezone.now()
    register_version(registry="dev", subject=ORDERS, text=text("alpha", "beta"), by=system)
    change_tags(registry="dev", subjects=[ORDERS], add=["late"], remove=["early"], by=system)
    set_config(registry="dev", subject=ORDERS, level="NONE", by=system)
    delete_version(registry="dev", subject=ORDERS, version=1, by=system)
    delete_version(registry="dev", subject=ORDERS, version=1, permanent=True, force="tests", by=system)
    delete_subject(registry="dev", subject=GONE, by=system)
    delete_subject(registry="dev", subject=GONE, permanent=True, force="tests", by=system)
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


def page(client: Client, address: str, status: int = 200, **query: str) -> str:
    response = client.get(address, query)
    assert response.status_code == status, response.content.decode()[:3000]
    return response.content.decode()


#: page → query, what it showed then, what it shows now alone
PAGES = {
    "/ui/registries/dev/subjects": ({}, ("orders/value", "gone-value", ">early<"), (">late<",)),
    HERE: ({}, ("Version 1", ">FULL<", ">early<", "alpha"), ("Version 2", ">late<", "beta")),
    f"{HERE}?version=1&tab=source": ({}, ("alpha",), ("beta",)),
    f"{HERE}references": ({}, ("orders",), ()),
    "/ui/registries/dev/policy": ({}, ("FULL",), ()),
    "/ui/environments": ({}, ("orders/value", "gone-value"), ("version 2",)),
}


@pytest.mark.parametrize("address", PAGES)
def test_a_page_is_as_it_was(look: Look, then: str, address: str) -> None:
    query, shown, hidden = PAGES[address]
    path, _, parameters = address.partition("?")
    parsed = dict(pair.split("=") for pair in parameters.split("&")) if parameters else query
    was = page(look("admin"), path, at=then, **parsed)
    main = was.split("<main", 1)[1].split("</main>", 1)[0].replace("<wbr>", "")
    assert "State on" in main
    for sentence in shown:
        assert sentence in main, sentence
    for sentence in hidden:
        assert sentence not in main, sentence
    assert "State on" not in page(look("admin"), path if "?" not in address else "/ui/environments")


def test_versions_of_then_are_compared(look: Look, system: Actor, registries: None) -> None:
    for fields in (("alpha",), ("alpha", "beta")):
        register_version(registry="dev", subject=ORDERS, text=text(*fields), by=system)
    moment = f"{timezone.now():%Y-%m-%dT%H:%M:%S.%fZ}"
    register_version(registry="dev", subject=ORDERS, text=text("alpha", "beta", "gamma"), by=system)
    was = page(look("reader"), f"{HERE}compare", at=moment)
    assert "Compare version 1 and version 2" in was
    assert "gamma" not in was
    assert "Compare version 2 and version 3" in page(look("reader"), f"{HERE}compare")


@pytest.mark.parametrize("address", PAGES)
def test_nothing_can_be_done_in_the_past(look: Look, then: str, address: str) -> None:
    path, _, parameters = address.partition("?")
    parsed = dict(pair.split("=") for pair in parameters.split("&")) if parameters else {}
    main = page(look("admin"), path, at=then, **parsed).split("<main", 1)[1].split("</main>", 1)[0]
    forms = re.findall(r'<form[^>]*method="post".*?</form>', main, re.DOTALL)
    assert not [form for form in forms if re.search(r"<button(?![^>]*\bdisabled)", form)]
    if path == HERE and not parameters:
        assert "You are viewing a past state. Go back to now." in main


#: pages that can be shown as they were, by the names of their addresses
WITH_A_PAST = {
    "audit", "environment", "environments", "unapproved_versions", "field", "policy", "promotion", "promotions", "subjects",
    "subject", "compare", "references", "report", "subject_switch",
}  # fmt: skip
MORE_PAGES = (
    f"{HERE}report?version=2",
    "/ui/audit",
    "/ui/audit?registry=dev&subject=orders/value",
    "/ui/registries/dev/policy?find=orders",
    "/ui/environments?q=orders",
    "/ui/registries/dev/subjects?q=orders&sort=name",
)


def named(resolver: Any) -> Iterator[tuple[str, Any]]:
    """All addresses, with the views that they lead to."""
    for pattern in resolver.url_patterns:
        if hasattr(pattern, "url_patterns"):
            yield from named(pattern)
        else:
            yield pattern.name, pattern.callback


def test_the_pages_with_a_past() -> None:
    assert {name for name, view in named(get_resolver()) if getattr(view, "travels", False)} == WITH_A_PAST


class Addresses(HTMLParser):
    """What a page leads to."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.sent: list[str] = []
        self.asked: list[tuple[str, list[str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            if given.get("method") == "post":
                self.sent.append(given.get("action", ""))
            else:
                self.asked.append((given.get("action", ""), []))
        elif tag == "input" and given.get("name") == "at" and given.get("type") == "hidden":
            self.asked[-1][1].append(given["value"])
        elif tag != "link":
            self.links += [given[name] for name in ("href", "hx-get") if name in given and tag != "use"]


@pytest.fixture
def pages(promotion: DecidedRequest) -> list[str]:
    first = (address.replace("version=1", "version=2") for address in PAGES)  # the first version is gone by then
    return [*first, *MORE_PAGES, *(address.format(number=promotion.number) for address in DECIDED)]


def test_links_carry_the_moment_on(look: Look, promotion: DecidedRequest, pages: list[str]) -> None:
    client, seen, wrong = look("admin"), set(), []
    for address in pages:
        path, _, query = address.partition("?")
        parser, back_to_now = Addresses(), f"?{urlencode(parse_qsl(query))}"
        parser.feed(page(client, path, at=promotion.then, **dict(parse_qsl(query))))
        for link in parser.links:
            target = urlsplit(link)
            if link == back_to_now or link.startswith(("#", "/api/")) or target.netloc:
                continue
            name = resolve(target.path or path).url_name
            seen.add(name)
            if len(parse_qs(target.query).get("at", [])) != (name in WITH_A_PAST):
                wrong.append(f"{address} leads to {link}")
        for action, moments in parser.asked:  # without an address it is the form that asks for another moment
            if len(moments) != (action != "" and resolve(urlsplit(action).path).url_name in WITH_A_PAST):
                wrong.append(f"{address} asks {action}")
        carried = [action for action in parser.sent if "at" in parse_qs(urlsplit(action).query)]
        # the report checks a text against what was there then, and writes nothing
        wrong += [f"{address} sends {action}" for action in carried if not action.startswith(f"{HERE}report?")]
    assert wrong == []
    assert seen & WITH_A_PAST >= WITH_A_PAST - {"field", "unapproved_versions", "subject_switch"}, seen
    assert seen - WITH_A_PAST


def test_every_link_of_a_template_goes_through_the_filter() -> None:
    """Also in sentences that are translated whole, where the variables before them do."""
    wrong = []
    for path in (settings.BASE_DIR / "templates").rglob("*.html"):
        text = path.read_text()
        for block in re.findall(r"\{% blocktranslate\b.*?\{% endblocktranslate %\}", text, re.DOTALL):
            wrong += [
                f"{path.name}: {name}"
                for name in re.findall(r'(?:href|hx-get)="\{\{ (\w+) \}\}', block)
                if not re.search(rf"\b{name}=\S+\|link\b", text) and f" as {name} %}}" not in text
            ]
        plain = re.sub(r"\{% blocktranslate\b.*?\{% endblocktranslate %\}", "", text, flags=re.DOTALL)
        wrong += [
            f"{path.name}: {link}"
            for link in re.findall(r'(?:href|hx-get)="(\{(?:\{|% url)[^"]*)"', plain)
            if "|link }}" not in link and link not in UNCARRIED and not _is_made_by_a_tag(link, plain)
        ]
    assert wrong == []


def _is_made_by_a_tag(link: str, template: str) -> bool:
    """Whether it is a variable that the tags for links have filled."""
    name = re.fullmatch(r"\{\{ (\w+) \}\}", link)
    return name is not None and re.search(rf"\{{% (?:subject_url|link) [^%]* as {name[1]} %\}}", template) is not None


#: back to now, to other sites, and forms, whose fields are sent with the address
UNCARRIED = {
    "{{ travel.now_url }}",
    "{{ channel.url }}",
    "{{ search.url }}",
    "{{ what_if_url }}",
    "{{ tree.url }}",
    "{{ page.again_url }}",
}

LINKS = {
    "/ui/environments": "/ui/environments?at=X",
    "/ui/registries/dev/policy?change=1#change": "/ui/registries/dev/policy?change=1&amp;at=X#change",
    "/ui/registries/dev/subjects/a%2Fb/?version=1": "/ui/registries/dev/subjects/a%2Fb/?version=1&amp;at=X",
    "/ui/registries/dev/subjects/a/usage": "/ui/registries/dev/subjects/a/usage",
    "/ui/environments/prod": "/ui/environments/prod?at=X",
    "/ui/environments/prod/change": "/ui/environments/prod/change",
    "/ui/promotions/7#checks": "/ui/promotions/7?at=X#checks",
    "/ui/promotions/request": "/ui/promotions/request",
    "/ui/promotions/7/evidence.json": "/ui/promotions/7/evidence.json",
    "/ui/fields?registry=dev": "/ui/fields?registry=dev&amp;at=X",
    "/ui/environments?at=2020-01-01": "/ui/environments?at=2020-01-01",
    "?after=7": "?after=7&amp;at=X",
    "#checks": "#checks",
    "": "",
    "https://example.com/ui/environments": "https://example.com/ui/environments",
}


@pytest.mark.parametrize("before", LINKS)
def test_what_is_carried(before: str, registries: None) -> None:
    template = Template("{% load desk %}{{ url|link }}")
    with as_of(datetime(2020, 5, 6, tzinfo=UTC)):
        shown = template.render(Context({"url": before}))
    assert shown.replace("2020-05-06T00%3A00%3A00Z", "X") == LINKS[before]
    assert template.render(Context({"url": before})) == escape(before)


def test_other_addresses_are_remembered_apart(registries: None) -> None:
    """A path that one list of addresses doesn't know may be a page of another."""
    path = "/ui/environments/nowhere-else"
    with as_of(datetime(2020, 5, 6, tzinfo=UTC)):
        with override_settings(ROOT_URLCONF=()):
            assert with_moment(path) == path
        assert with_moment(path) != path


MOMENTS = {
    "2026-10-01T12:00Z": datetime(2026, 10, 1, 12, tzinfo=UTC),
    "2026-10-01T12:00": datetime(2026, 10, 1, 12, tzinfo=UTC),
    "2026-10-01 12:00:05": datetime(2026, 10, 1, 12, 0, 5, tzinfo=UTC),
    "2026-10-01T12:00+02:00": datetime(2026, 10, 1, 10, tzinfo=UTC),
    "2026-10-01T12:00 02:00": datetime(2026, 10, 1, 10, tzinfo=UTC),
    "2026-10-01": datetime(2026, 10, 1, tzinfo=UTC),
}


@pytest.mark.parametrize("moment_text", MOMENTS)
def test_moments(moment_text: str) -> None:
    assert moment_of(moment_text) == MOMENTS[moment_text]


@pytest.mark.parametrize(
    "moment_text", ["yesterday", "2026-13-01", "0", "<b>", "\u202e2026", "0001-01-01T00:00+14:00", "9" * 900]
)
def test_what_is_no_moment_is_said(look: Look, registries: None, moment_text: str) -> None:
    with pytest.raises(InvalidInput):
        moment_of(moment_text)
    assert "is not a valid time" in page(look("reader"), "/ui/environments", status=422, at=moment_text)


def test_the_future_is_refused(look: Look, registries: None) -> None:
    at = f"{timezone.now() + timedelta(days=1):%Y-%m-%dT%H:%MZ}"
    assert "in the future" in page(look("reader"), "/ui/environments", status=422, at=at)


def test_a_page_without_a_past_says_so(look: Look, then: str) -> None:
    for address in (f"{HERE}usage", "/ui/findings", "/ui/", "/ui/proposals", "/ui/promotions/1/evidence.json"):
        assert "has no history" in page(look("admin"), address, status=422, at=then)


def test_a_text_is_checked_against_what_was_then(look: Look, then: str) -> None:
    client, address = look("admin"), f"{HERE}report"
    was = main_of(page(client, address, at=then, version="1"))
    assert f'action="{address}?at={quote(then)}"' in was
    assert "It is identical to" in was
    for query, level in ((f"?at={quote(then)}", "FULL"), ("", "NONE")):
        response = client.post(f"{address}{query}", {"text": text("alpha", "gamma"), "schema_type": "AVRO"})
        assert response.status_code == 200
        assert f"<code>{level}</code>" in main_of(response.content.decode())
    second_response = client.post(
        f"{address}?at={quote(then)}", {"text": text("alpha"), "schema_type": "AVRO", "do": "keep"}
    )
    assert "You are viewing a past state" in second_response.content.decode()


@dataclass(frozen=True)
class DecidedRequest:
    """A request, and a moment at which it was in review."""

    number: int
    then: str


@pytest.fixture
def promotion(then: str, person: Callable[[str], Actor]) -> DecidedRequest:
    """A request in review with a discussion; since then it was approved and applied, and its environment changed."""
    steward, approver, admin = person("steward"), person("approver"), person("admin")
    number = promotions.request_promotion(
        source="dev", target="staging", subject=ORDERS, version=2, by=steward, reason="the early reason"
    )
    promotions.open_thread(request_id=number, text="why so early", by=approver)
    moment = f"{timezone.now().astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
    approve_shown(request_id=number, by=approver, comment="good and late")
    promotions.apply(request_id=number, by=admin)
    register_version(registry="staging", subject=GONE, text=text("alpha"), by=admin)
    promotions.change_environment(environment="staging", is_closed=True, by=admin)
    return DecidedRequest(number, moment)


#: page → what it showed then, what it shows now alone
DECIDED = {
    "/ui/promotions": (("orders/value", "<span>In review</span>"), ("<span>Applied</span>",)),
    "/ui/promotions/{number}": (("the early reason", "why so early", "<span>In review</span>"), ("good and late",)),
    "/ui/environments/staging": (("Open", "staging"), ("only be changed by releasing an approved request",)),
    "/ui/fields?registry=dev&subject=orders/value&path=Order.beta": (("At that time", "Version 2"), ("In data",)),
    "/ui/unapproved-versions": ((), ("gone-value",)),
}


@pytest.mark.parametrize("address", DECIDED)
def test_what_was_decided_since_is_not_there(look: Look, promotion: DecidedRequest, address: str) -> None:
    shown, hidden = DECIDED[address]
    path, _, parameters = address.format(number=promotion.number).partition("?")
    query = dict(pair.split("=") for pair in parameters.split("&")) if parameters else {}
    main = main_of(page(look("admin"), path, at=promotion.then, **query))
    assert "State on" in main
    for sentence in shown:
        assert sentence in main, sentence
    for sentence in hidden:
        assert sentence not in main, sentence
    now = main_of(page(look("admin"), path, **query))
    for sentence in hidden:
        assert sentence in now, sentence
    for form in re.findall(r'<form[^>]*method="post".*?</form>', main, re.DOTALL):
        assert not re.search(r"<button(?![^>]*\bdisabled)", form), form


def main_of(text: str) -> str:
    return text.split("<main", 1)[1].split("</main>", 1)[0].replace("<wbr>", "")


def test_a_request_by_the_api_as_of_a_moment(api: Look, promotion: DecidedRequest) -> None:
    client = api("admin")
    was = client.get(f"/api/v1/promotions/{promotion.number}", {"at": promotion.then}).json()
    assert (was["state"], was["reviews"], len(was["threads"])) == ("in review", [], 1)
    assert client.get(f"/api/v1/promotions/{promotion.number}").json()["state"] == "applied"
    assert [row["state"] for row in client.get("/api/v1/promotions", {"at": promotion.then}).json()] == ["in review"]
    for path, parameters in (
        ("environments", {}),
        ("unapproved-versions", {}),
        ("owners", {"registry": "dev", "subject": "orders/value"}),
    ):
        assert client.get(f"/api/v1/{path}", {"at": promotion.then, **parameters}).status_code == 200, path
    closed = client.get("/api/v1/environments/staging", {"at": promotion.then}).json()["is_closed"]
    assert (closed, client.get("/api/v1/environments/staging").json()["is_closed"]) == (False, True)


def test_what_was_not_there_yet_is_not_found(look: Look, then: str) -> None:
    assert "State on 2001-01-01 00:00 UTC" in page(look("reader"), HERE, status=404, at="2001-01-01")


def test_the_past_is_read_by_todays_rights(look: Look, then: str) -> None:
    response = look("stranger").get(HERE, {"at": then})
    assert response.status_code == 403


def test_costs_no_query_for_each_row(
    look: Look, then: str, system: Actor, django_assert_max_num_queries: object
) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    client = look("reader")
    counts = []
    for names in (2, 12):
        for number in range(names):
            name = SubjectName(".", f"s{number}")
            register_version(registry="dev", subject=name, text=text(f"f{number}"), by=system)
        at = f"{timezone.now():%Y-%m-%dT%H:%M:%S.%fZ}"
        page(client, "/ui/registries/dev/subjects", at=at)
        with CaptureQueriesContext(connection) as queries:
            page(client, "/ui/registries/dev/subjects", at=at)
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 45


#: address below a registry → what it said then, and what it says now alone
READS = {
    "subjects": ("gone-value", '"latest_version":2'),
    "subjects/orders%2Fvalue/timeline": ('"version":1', '"version":2'),
    "subjects/orders%2Fvalue/notes": ("early", "late"),
    "policy": ("FULL", "NONE"),
}


@pytest.mark.parametrize("path", READS)
def test_the_api_answers_as_of_a_moment(api: Look, then: str, path: str) -> None:
    client, address = api("reader"), f"/api/v1/registries/dev/{path}"
    was, now = client.get(address, {"at": then}).content.decode(), client.get(address).content.decode()
    shown, hidden = READS[path]
    assert shown in was
    assert hidden not in was
    assert shown not in now


def test_what_has_no_past_is_refused_by_the_api(api: Look, then: str) -> None:
    for path in ("findings", "sources", "registries/dev/subjects/orders%2Fvalue/usage"):
        response = api("reader").get(f"/api/v1/{path}", {"at": then})
        assert (response.status_code, "This has no history" in response.content.decode()) == (422, True), path


def test_the_audit_leads_to_what_was_then(look: Look, then: str) -> None:
    log = page(look("reader"), "/ui/audit", table="subjects_config")
    links = re.findall(r'href="([^"]*at=[^"]*)"', log)
    assert len(links) == 2
    client = look("reader")
    main = page(
        client, links[0].replace("&amp;", "&").partition("?")[0], at=links[0].rpartition("at=")[2].replace("%3A", ":")
    )
    assert "State on" in main
    assert not re.findall(r"[?;&]at=", page(client, "/ui/audit", table="access_user"))
