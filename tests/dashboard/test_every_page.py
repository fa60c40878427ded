"""Every page over the real database: what it shows, who sees it, and how many queries it takes."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from html import escape, unescape
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry.error import SchemaRegistryError
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from dashboard.compatibility import forms as report_forms
from dashboard.subjects.page import field_url
from dashboard.tasks import run_demo
from registry.access.roles import Actor, system_actor
from registry.drift.models import Cluster, Finding, Scan, Source
from registry.errors import Unavailable
from registry.promotions.models import PromotionRequest
from registry.promotions.services import request_promotion
from registry.subjects.engine import schema_engine
from registry.subjects.models import Registry
from registry.subjects.services import register_version
from registry.subjects.versions.qualified_names import SubjectName
from tests.conftest import RawClient
from tests.markup import compact

ORDERS = SubjectName(".", "orders-value")
V1 = {
    "type": "record",
    "name": "Order",
    "doc": "An order.",
    "fields": [{"name": "id", "type": "long", "doc": "Its number."}],
}
V2 = {**V1, "fields": [*V1["fields"], {"name": "note", "type": ["null", "string"], "default": None}]}
BREAKING = {**V1, "fields": [{"name": "id", "type": "string"}]}
SUBJECT = "/ui/registries/dev/subjects/orders-value/"
QUERIES = json.loads((Path(__file__).parent / "query_counts.json").read_text())


@pytest.fixture
def content(person: Callable[[str], Actor]) -> dict[str, int]:
    """Two versions, a request, a source with a scan, a finding."""
    steward = person("steward")
    for schema in (V1, V2):
        register_version(registry="dev", subject=ORDERS, text=json.dumps(schema), by=steward)
    request = request_promotion(
        source="dev", target="prod", subject=ORDERS, version=2, by=steward, reason="first release"
    )
    source = Source.objects.create(
        registry=Registry.objects.get(name="dev"), kind="kafka", name="orders", every_seconds=60, created_by="steward",
        cluster=Cluster.objects.create(name="local", bootstrap="localhost:9092", created_by="steward"),
    )  # fmt: skip
    now = timezone.now()
    scan = Scan.objects.create(
        source=source, state="done", queued_by="steward", started_at=now - timedelta(seconds=2), finished_at=now,
        read={"nothing": False, "messages": 12, "bytes": 345, "seconds": 1.2, "bound_reached": None, "tombstones": 1,
              "partitions": [{"partition": 0, "start": 0, "end": 12, "high": 12, "messages": 12}],
              "ids": [{"side": "value", "schema_id": 1, "messages": 11}]},
    )  # fmt: skip
    finding = Finding.objects.create(
        source=source, fingerprint="f" * 64, rule="UNKNOWN_SCHEMA_ID", severity="break",
        sentence="3 messages of orders (value) carry schema id 900001, which dev doesn't know.",
        remedy="Find the producer.", location="orders:0@17 (value)", subject_name="orders-value",
        evidence={"topic": "orders", "side": "value", "schema_id": 900001, "messages": 3,
                  "partitions": [{"partition": 0, "messages": 3, "first_offset": 17, "last_offset": 19,
                                  "first_time": 1780000000000, "last_time": 1780000001000}]},
        first_seen=now, last_seen=now, first_scan=scan, last_scan=scan, count=3,
    )  # fmt: skip
    return {"request": request, "source": source.pk, "finding": finding.pk, "scan": scan.pk}


PAGES = {
    "home": ("/ui/", ["orders-value", "900001", "Needs your review"]),
    "subjects": ("/ui/registries/dev/subjects", ["orders-value", "BACKWARD"]),
    "subjects: counted": ("/ui/registries/dev/subjects?counts=1", ["orders-value", "Avro (1)", "Counted "]),
    "subject": (SUBJECT, ["Version 2", "Its number.", "1 added", "Promote"]),
    "source text": (f"{SUBJECT}?tab=source&version=1", ["&quot;An order.&quot;"]),
    "settings": (f"{SUBJECT}?tab=settings", ["READWRITE", "default"]),
    "compare": (f"{SUBJECT}compare?from=1&to=2", ["note", "Deploy in any order"]),
    "report form": (f"{SUBJECT}report", ["Proposed schema"]),
    "simulate": (f"{SUBJECT}simulate", ["What version 2 gets", "Filled from default"]),
    "simulate modify": (f"{SUBJECT}simulate?part=modify", ["Fields at risk", "Silently reset"]),
    "sources": ("/ui/sources", ["orders", "12 messages in 1 partition"]),
    "add source": ("/ui/sources/add", ["Bootstrap servers"]),
    "add checkpoint": ("/ui/sources/add?kind=state_store", ["Checkpoint folder"]),
    "source": ("/ui/sources/{source}", ["Scan now", "Positions", "900001"]),
    "progress": ("/ui/scans/{scan}/progress", ["12 messages"]),
    "findings": ("/ui/findings", ["900001", "orders:0@17"]),
    "finding": ("/ui/findings/{finding}", ["17", "19", "Find the producer.", "Acknowledge"]),
    "promotions": ("/ui/promotions", ["orders-value", "0 of 1"]),
    "ask": ("/ui/promotions/request?subject=orders-value&version=2", ["orders-value"]),
    "request": ("/ui/promotions/{request}", ["first release", "Approve", "version 1 of prod"]),
    "environments": ("/ui/environments", ["orders-value", "prod"]),
    "audit": ("/ui/audit", ["steward", "version added"]),
}


@pytest.mark.requirement("CARD-2", "CARD-4")
@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_what_is_there(
    look: Callable[[str], Client], content: dict[str, int], page: str, django_assert_max_num_queries
) -> None:
    address, sentences = PAGES[page]
    client = look("approver")
    with django_assert_max_num_queries(QUERIES[page]):
        response = client.get(address.format(**content))
    text = response.content.decode()
    assert response.status_code == 200
    assert "default-src 'none'" in response["Content-Security-Policy"]
    assert [word for word in sentences if word not in text] == []


def test_the_frame_of_every_page_takes_few_queries(
    look: Callable[[str], Client], content: dict[str, int], django_assert_num_queries
) -> None:
    client = look("approver")
    with django_assert_num_queries(QUERIES["frame"]):
        text = client.get("/ui/nowhere").content.decode()
    assert ">1<span class=" in compact(text), "the numbers in the navigation were counted"


def test_a_stranger_sees_nothing(look: Callable[[str], Client], content: dict[str, int]) -> None:
    stranger = look("stranger")
    for page, (template, _) in PAGES.items():
        address = template.format(**content)
        signed_out = RawClient().get(address)
        assert signed_out.status_code == 302, page
        assert signed_out["Location"].startswith("/ui/accounts/login/")
        response = stranger.get(address)
        if page not in ("add source", "add checkpoint", "ask"):  # forms, whose button is disabled with the reason
            assert response.status_code == 403, page
        assert "900001" not in response.content.decode(), page


def test_more_rows_take_no_more_queries(
    look: Callable[[str], Client],
    content: dict[str, int],
    person: Callable[[str], Actor],
    django_assert_max_num_queries,
) -> None:
    by = system_actor("tests")
    for number in range(30):
        register_version(registry="dev", subject=SubjectName(".", f"s{number}-value"), text=json.dumps(V1), by=by)
    client = look("approver")
    for number in range(4):  # on home: two of their own, and two that failed
        subject = SubjectName(".", f"s{number}-value")
        own = request_promotion(
            source="dev", target="prod", subject=subject, version=1, by=person("approver"), reason="tests"
        )
        PromotionRequest.objects.filter(pk=own, pk__gt=content["request"] + 2).update(state="failed")
    for page, sections in (("subjects", 0), ("environments", 0), ("home", 1)):  # home has one section more
        with django_assert_max_num_queries(QUERIES[page] + sections):
            assert client.get(PAGES[page][0]).status_code == 200


def test_a_proposed_schema_is_reported_under_all_levels(look: Callable[[str], Client], content: dict[str, int]) -> None:
    text = (
        look("reader").post(f"{SUBJECT}report", {"text": json.dumps(BREAKING), "schema_type": "AVRO"}).content.decode()
    )
    assert all(level in text for level in ("BACKWARD_TRANSITIVE", "FORWARD_TRANSITIVE", "FULL_TRANSITIVE", "NONE"))
    assert "Incompatible" in text
    assert "Order.id" in text


def test_a_schema_that_does_not_parse_is_shown_with_its_place(
    look: Callable[[str], Client], content: dict[str, int]
) -> None:
    response = look("reader").post(f"{SUBJECT}report", {"text": '{\n  "type": "recor"\n}', "schema_type": "AVRO"})
    assert response.status_code == 422
    assert "line 2" in response.content.decode()


@pytest.mark.parametrize(
    "address",
    [
        "/ui/nowhere",
        "/ui/registries/none/subjects",
        "/ui/registries/dev/subjects/none/",
        f"{SUBJECT}compare?from=1&to=9",
        "/ui/findings/999",
        "/ui/sources/999",
        "/ui/promotions/999",
    ],
)
def test_what_is_not_there_is_a_page_that_says_so(
    look: Callable[[str], Client], content: dict[str, int], address: str
) -> None:
    response = look("reader").get(address)
    assert response.status_code == 404
    assert "<h1" in response.content.decode()


@pytest.mark.requirement("CARD-2")
@pytest.mark.parametrize(
    ("address", "page"),
    [
        ("/ui", "/ui/"),
        ("/ui/findings/?state=open", "/ui/findings?state=open"),
        ("/ui/registries/dev/subjects/orders-value", "/ui/registries/dev/subjects/orders-value/"),
        ("/ui/registries/dev/subjects/a%2Fb", "/ui/registries/dev/subjects/a%2Fb/"),
    ],
)
def test_a_slash_too_many_or_too_few_leads_to_the_page(look: Callable[[str], Client], address: str, page: str) -> None:
    response = look("steward").get(address, RAW_URI=address)
    assert (response.status_code, response["Location"]) == (302, page)
    assert look("steward").post(address, RAW_URI=address).status_code == 404, "what changes something is not sent on"


def test_approve_and_apply_on_the_page(look: Callable[[str], Client], content: dict[str, int]) -> None:
    address = f"/ui/promotions/{content['request']}"
    approver = look("approver")

    def approve() -> str:
        page = approver.get(address)
        assert "Approve" in page.content.decode()
        sent = {"comment": "fine", "plan_hash": page.context["page"].info.plan_hash}
        return approver.post(f"{address}/approve", sent, follow=True).content.decode()

    assert "1 open break finding for orders-value in dev." in approve(), "it came after the request"
    approved = approve()
    assert "Approved. It can be applied now." in approved
    applied = approver.post(f"{address}/apply", follow=True).content.decode()
    assert "live in the target" in applied
    assert "orders-value" in approver.get("/ui/registries/prod/subjects").content.decode()


def test_the_requester_reads_why_the_button_is_off(look: Callable[[str], Client], content: dict[str, int]) -> None:
    text = look("steward").get(f"/ui/promotions/{content['request']}").content.decode()
    assert "You need the admin or approver role" in text
    response = look("steward").post(f"/ui/promotions/{content['request']}/approve", {}, follow=True)
    assert "to review promotions" in response.content.decode()


def test_acknowledge_needs_a_reason(look: Callable[[str], Client], content: dict[str, int]) -> None:
    steward = look("steward")
    address = f"/ui/findings/{content['finding']}/acknowledge"
    assert "This field is required." in steward.post(address, {"reason": ""}, follow=True).content.decode()
    assert "known since May" in steward.post(address, {"reason": "known since May"}, follow=True).content.decode()


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ({"kind": "kafka", "name": "a b", "bootstrap": "localhost:9092"}, "is not a topic"),
        ({"kind": "kafka", "name": "orders", "bootstrap": "nowhere"}, "host:port"),
        ({"kind": "kafka", "name": "orders", "bootstrap": "127.0.0.1:1"}, "loopback"),
        ({"kind": "state_store", "name": "/etc"}, "/etc"),
        (
            {"kind": "kafka", "name": "orders", "bootstrap": "localhost:9", "every_seconds": "soon"},
            "Enter a whole number",
        ),
    ],
)
def test_a_source_that_cannot_be_is_refused_with_the_reason(
    look: Callable[[str], Client], content: dict[str, int], form: dict[str, str], sentence: str
) -> None:
    response = look("steward").post("/ui/sources/add", {"registry": "dev", **form})
    assert response.status_code == 422
    assert sentence in response.content.decode()
    assert Source.objects.count() == 1


def test_hostile_text_is_shown_harmlessly(look: Callable[[str], Client], person: Callable[[str], Actor]) -> None:
    nasty = "<script>alert(1)</script>"
    schema = {**V1, "doc": nasty, "fields": [{"name": "id", "type": "long", "doc": nasty}]}
    register_version(registry="dev", subject=SubjectName(".", nasty), text=json.dumps(schema), by=person("steward"))
    client = look("reader")
    for address in (
        "/ui/registries/dev/subjects",
        "/ui/registries/dev/subjects/%3Cscript%3Ealert(1)%3C%2Fscript%3E/",
        "/ui/audit",
    ):
        response = client.get(address)
        assert response.status_code == 200
        assert nasty not in response.content.decode()


def test_the_theme_is_kept_and_leads_nowhere_else(look: Callable[[str], Client]) -> None:
    response = look("reader").post("/ui/theme", {"theme": "dark", "next": "https://evil.example/"})
    assert response["Location"] == "/ui/"
    assert response.cookies["theme"].value == "dark"


def test_the_demo_is_for_ones_own_machine_alone(look: Callable[[str], Client]) -> None:
    assert look("admin").post("/ui/demo").status_code == 403


def test_the_demo_is_not_offered_without_what_it_needs(look: Callable[[str], Client], settings: Any) -> None:
    settings.UNDER_UP, settings.KAFKA_BOOTSTRAP, settings.SPARK_REMOTE = True, "", ""
    client = look("reader")
    said = "The demo needs KAFKA_BOOTSTRAP. Start `up` without --without, or set KAFKA_BOOTSTRAP."
    page = client.get("/ui/")
    action = page.context["page"].demo
    assert (action.allowed, action.reason) == (False, said) and said in page.content.decode()
    assert client.post("/ui/demo").status_code == 503


def test_home_is_loaded_again_when_there_is_more_of_the_demo(
    look: Callable[[str], Client], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.UNDER_UP = True
    client, page_of_htmx = look("reader"), {"HX-Request": "true"}
    loading = [True]
    monkeypatch.setattr("dashboard.home.views._is_demo_loading", lambda: loading[0])
    html = client.get("/ui/").content.decode()
    watched = re.search(r'hx-get="(/ui/\?shown=\w+)"', html)
    assert watched is not None and "Producers are writing orders and customers." in html
    same = client.get(watched[1], headers=page_of_htmx)
    assert (same.status_code, same.content, "HX-Refresh" in same) == (204, b"", False)
    loading[0] = False
    assert client.get(watched[1], headers=page_of_htmx)["HX-Refresh"] == "true"
    assert "shown=" not in client.get("/ui/").content.decode()
    assert client.get(watched[1]).status_code == 200  # somebody's own click on it is a page as any


def test_a_failed_demo_can_be_loaded_again_beside_what_it_loaded(
    look: Callable[[str], Client], content: dict[str, int], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.UNDER_UP = True
    client = look("admin")
    assert "Load the demo" not in client.get("/ui/").content.decode()
    monkeypatch.setattr("dashboard.home.views.demo_failure", lambda: "Python worker failed to connect back.\n" * 20)
    page = compact(client.get("/ui/").content.decode())
    assert "Load the demo" in page
    assert page.index('<details class="more">') < page.index("Python worker failed"), "a long detail is folded"


def test_home_does_not_call_data_clean_that_was_not_scanned(
    look: Callable[[str], Client], content: dict[str, int]
) -> None:
    client, unknown = look("approver"), "No source that you can see has been scanned yet, so drift is unknown."
    Finding.objects.all().delete()
    text = client.get("/ui/").content.decode()
    assert "No open findings in the scanned sources." in text and unknown not in text
    Scan.objects.all().delete()
    text = client.get("/ui/").content.decode()
    assert unknown in text and "No open findings" not in text


@pytest.mark.parametrize("start", ["command", "button"])
def test_a_demo_that_fails_later_is_reported_until_it_loads(
    look: Callable[[str], Client], settings: Any, monkeypatch: pytest.MonkeyPatch, start: str
) -> None:
    settings.UNDER_UP, settings.KAFKA_BOOTSTRAP, settings.SPARK_REMOTE = True, "broker:9092", "sc://spark:15002"
    cache.clear()
    error = [Unavailable("The broker went away."), None]

    def write(registry_url: str, on_line: Callable[[str], None]) -> None:
        on_line("wrote orders")
        if failure := error.pop(0):
            raise failure

    monkeypatch.setattr("dashboard.demo.load._load", write)
    run = run_demo if start == "button" else partial(call_command, "demo")
    with pytest.raises((Unavailable, CommandError), match=r"The broker went away\."):
        run()
    page = look("admin").get("/ui/").content.decode()
    for words in ("The demo failed to load.", "The broker went away. Before that: wrote orders.", "manage.py demo"):
        assert words in page, words
    ready = look("admin").get("/readyz")
    assert (ready.status_code, ready.json()["demo"]) == (200, "degraded: failed to load (the home page says why)")
    run()
    assert "The demo failed to load." not in look("admin").get("/ui/").content.decode()
    assert "demo" not in look("admin").get("/readyz").json()


def test_a_demo_whose_schema_is_refused_says_so_in_a_sentence(
    content: dict[str, int], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: Any, **_named: Any) -> None:
        raise SchemaRegistryError(409, 409, 'It is incompatible with version 1 of "orders-value".\nMore.')

    settings.KAFKA_BOOTSTRAP, settings.SPARK_REMOTE = "broker:9092", "sc://spark:15002"
    monkeypatch.setattr("dashboard.demo.producers.produce", refuse)
    with pytest.raises(
        CommandError, match=r'version 1 of "orders-value"\. The rest of the demo was left out: sources, '
    ):
        call_command("demo")


@pytest.mark.parametrize("number", ["²", "٣", "9" * 40, "-1", "1e3"])
@pytest.mark.parametrize(
    "address",
    ["/ui/registries/dev/subjects?offset=", "/ui/environments?offset=", "/ui/findings?source=", "/ui/audit?before="],
)
def test_a_number_that_is_none_breaks_no_page(
    look: Callable[[str], Client], content: dict[str, int], address: str, number: str
) -> None:
    assert look("reader").get(address + number).status_code == (422 if "source=" in address else 200)


def test_the_list_of_subjects_leads_from_page_to_page(
    look: Callable[[str], Client], content: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.subjects.subject_list.PAGE_ROWS", 1)
    name = SubjectName(".", "second-value")
    register_version(registry="dev", subject=name, text=json.dumps(V1), by=system_actor("tests"))
    client, base = look("reader"), "/ui/registries/dev/subjects"
    first = compact(client.get(base).content.decode())
    later = re.search(r'rel="next" href="([^"]+)"', first)
    assert later and "?after=" in later[1] and 'rel="prev"' not in first
    second = compact(client.get(later[1].replace("&amp;", "&")).content.decode())
    back = re.search(r'rel="prev" href="([^"]+)"', second)
    assert back and "?before=" in back[1] and 'class="num">2–2' in second
    assert 'class="num">1–1' in compact(client.get(back[1].replace("&amp;", "&")).content.decode())
    # all that came after it is gone: the list begins again, and doesn't say that it is empty
    assert 'class="num">1–1' in compact(client.get(f"{base}?after=4.0.1~7").content.decode())
    refused = client.get(f"{base}?after=%3Cscript%3E")
    assert 400 <= refused.status_code < 500 and "Start without a cursor" in refused.content.decode()


@pytest.mark.parametrize("number", ["²", "٣", "9" * 40, "1e3"])
def test_a_version_that_is_none_is_named(look: Callable[[str], Client], content: dict[str, int], number: str) -> None:
    response = look("reader").get(f"{SUBJECT}compare?to={number}")
    assert response.status_code == 404
    assert "is not a valid version id" in response.content.decode()


def test_a_wide_schema_is_drawn_in_pages_and_its_text_in_part(
    look: Callable[[str], Client], content: dict[str, int]
) -> None:
    fields = [{"name": f"field_{number}", "type": "string"} for number in range(1, 251)]
    name = SubjectName(".", "wide-value")
    register_version(registry="dev", subject=name, text=json.dumps({**V1, "fields": fields}), by=system_actor("tests"))
    client, address = look("reader"), "/ui/registries/dev/subjects/wide-value/"
    first, second, beyond = (client.get(f"{address}?fields={at}").content.decode() for at in ("", "100", "9000"))
    assert 'id="field-100"' in first and 'id="field-101"' not in first
    assert "1–100" in first and "of 250" in first
    assert 'id="field-101"' in second and 'id="field-200"' in second and 'id="field-100"' not in second
    assert 'id="field-1"' in beyond
    for number, begin in ((101, 101), (100, 1)):
        led = client.get(field_url("dev", "wide-value", 1, number)).content.decode()
        assert f'id="field-{number}"' in led and f"{begin}–{begin + 99}" in led
    text = client.get(f"{address}?tab=source").content.decode()
    assert "field_200" in text and "field_250" not in text
    assert "Open the full text" in text


def test_what_two_versions_are_to_each_other_is_worked_out_once(
    look: Callable[[str], Client], content: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, checked = look("reader"), []
    schema_engine.forget()
    real = schema_engine.check
    monkeypatch.setattr(
        schema_engine, "check", lambda *arguments, **more: checked.append(arguments[2]) or real(*arguments, **more)
    )
    first, again = (client.get(SUBJECT).content.decode() for _ in range(2))
    assert "1 added" in first and "1 added" in again
    assert checked == ["BACKWARD"]


def test_a_long_text_to_check_has_what_fits_on_a_line(
    look: Callable[[str], Client], content: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, field = look("reader"), '{ "name": "id", "type": "long", "doc": "Its number." },'
    assert field not in unescape(client.get(f"{SUBJECT}report").content.decode())
    monkeypatch.setattr(report_forms, "LONG_TEXT", 50)
    assert field in unescape(client.get(f"{SUBJECT}report").content.decode())


def test_pages_are_packed_and_answers_of_the_apis_are_not(
    look: Callable[[str], Client], content: dict[str, int]
) -> None:
    client, takes = look("reader"), {"accept-encoding": "gzip"}
    page = client.get("/ui/registries/dev/subjects", headers=takes)
    assert page["Content-Encoding"] == "gzip"
    assert b"orders-value" in gzip.decompress(page.content)
    assert "Accept-Encoding" in page["Vary"]
    assert "Content-Encoding" not in client.get("/ui/registries/dev/subjects")
    assert "Content-Encoding" not in client.get("/api/v1/registries/dev/policy", headers=takes)


@pytest.mark.requirement("CARD-2")
def test_the_tour_opens_a_page_per_step_says_what_it_shows_and_ends(
    look: Callable[[str], Client], content: dict[str, int]
) -> None:
    client = look("approver")
    home = client.get("/ui/").content.decode()
    assert 'href="/ui/tour/1"' in home
    assert "Take the tour" in home
    opened = []
    url = "/ui/tour/1"
    while url:
        response = client.get(url, follow=True)
        opened.append(response.redirect_chain[-1][0])
        bar = response.context["page"].frame.tour
        assert response.status_code == 200
        assert escape(str(bar.step.sentence)) in response.content.decode()
        url = bar.next_url
    assert opened == [  # without a query that keeps state, the third step is passed over
        f"/ui/promotions/{content['request']}?tour=1",
        f"/ui/findings/{content['finding']}?tour=2",
        f"{SUBJECT}compare?from=1&to=2&tour=4",
        "/ui/map?tour=5",
    ]
    assert client.post("/ui/tour/end").status_code == 302
    home = client.get("/ui/").content.decode()
    assert "Take the tour" not in home
    assert 'href="/ui/tour/1"' in home, "a link at the foot begins it again"


@pytest.mark.requirement("CARD-2")
def test_the_tour_shows_nobody_what_they_may_not_read(look: Callable[[str], Client], content: dict[str, int]) -> None:
    assert look("stranger").get("/ui/tour/1").status_code == 403
    assert RawClient().get("/ui/tour/1").status_code == 302
    for wrong in ("0", "9", "-1", "x", "²", "1" * 400):
        assert look("reader").get("/ui/", {"tour": wrong}).context["page"].frame.tour is None
