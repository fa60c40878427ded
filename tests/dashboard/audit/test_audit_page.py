"""The audit page: its filters, where its events lead, and the file that is saved."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from datetime import timedelta
from html import unescape
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from registry.access.roles import Actor, system_actor
from registry.audit.models import AuditEvent
from registry.subjects.services import delete_config, delete_version, register_version, set_config
from registry.subjects.versions.qualified_names import SubjectName
from tests.conftest import RawClient
from tests.dashboard.test_every_page import SUBJECT, content  # noqa: F401 - fixtures
from tests.markup import compact

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-2")]
QUERIES = json.loads((Path(__file__).parents[1] / "query_counts.json").read_text())
NASTY = "<script>alert(1)</script>"


def shown(page: str) -> list[str]:
    """What the rows say was changed, with the other changes of each action."""
    return re.findall(
        r'(?:<th scope="row"><span>|<li id="event-\d+">)(?:<a class="primary" href="[^"]*">|<span[^>]*>)([^<]*)<',
        compact(page),
    )


def links(page: str) -> dict[str, str]:
    """What was changed → where the row leads, of the newest of each."""
    found = re.findall(
        r'(?:<th scope="row"><span>|<li id="event-\d+">)<a class="primary" href="([^"]*)">([^<]*)<', compact(page)
    )
    return {unescape(what): unescape(url) for url, what in reversed(found)}


@pytest.mark.parametrize(
    ("query", "there", "not_there"),
    [
        ("actor=steward", "version added", "person added"),
        ("actor=nobody", "", "version added"),
        ("door=google", "", "version added"),
        ("table=subjects_schemaversion", "version added", "subject added"),
        ("registry=dev", "version added", "person added"),
        ("registry=prod", "promotion request added", "version added"),
        ("subject=orders-value&registry=dev", "promotion request added", "person added"),
        ("subject=orders", "", "version added"),
        ("since=2020-01-01", "version added", "nothing of the kind"),
        ("since=2999-01-01", "", "version added"),
        ("until=2020-01-01T12:00", "", "version added"),
        ("q=first+release&table=subjects_subject", "", "version added"),
    ],
)
def test_a_filter_leaves_what_it_names(
    look: Callable[[str], Client],
    content: dict[str, int],  # noqa: F811
    query: str,
    there: str,
    not_there: str,
) -> None:
    page = look("reader").get(f"/ui/audit?{query}").content.decode()
    rows = shown(page)
    assert not_there not in rows
    assert there in rows if there else not rows
    if not rows:
        assert "No matching entries" in page


@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        ("since=yesterday", 422, "not a date or time"),
        ("until=2026-02-31", 422, "not a date or time"),
        ("registry=nowhere", 404, "nowhere"),
        ("actor=%00&subject=%00&q=%00", 200, "Audit"),
        ("subject=" + "x" * 5000, 422, "x" * 20),
        ("subject=a%0Ab", 422, "a"),
        ("row_id=1;drop", 200, "No matching entries"),
        ("as=exe", 200, "Audit"),
    ],
)
def test_what_is_no_filter_is_named(
    look: Callable[[str], Client],
    content: dict[str, int],  # noqa: F811
    query: str,
    status: int,
    said: str,
) -> None:
    answer = look("reader").get(f"/ui/audit?{query}")
    assert (answer.status_code, said in answer.content.decode()) == (status, True)


def test_pages_keep_the_filters(
    look: Callable[[str], Client],
    content: dict[str, int],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dashboard.audit.views.AUDIT_ROWS", 1)
    client = look("reader")
    first = client.get("/ui/audit?table=subjects_schemaversion&registry=dev").content.decode()
    older = re.search(r'rel="next" href="([^"]+)"', compact(first))
    assert older and "table=subjects_schemaversion" in older[1] and "registry=dev" in older[1]
    second = client.get(unescape(older[1])).content.decode()
    assert shown(second) == ["version added"]
    assert re.search(r'id="event-(\d+)"', first)[1] != re.search(r'id="event-(\d+)"', second)[1]  # type: ignore[index]
    back = re.search(r'rel="prev" href="([^"]+)"', compact(second))
    assert back and "table=subjects_schemaversion" in back[1]


def test_events_lead_to_what_is_there(
    look: Callable[[str], Client],
    content: dict[str, int],  # noqa: F811
) -> None:
    by, gone = system_actor("tests"), SubjectName(".", "gone-value")
    set_config(registry="dev", subject=SubjectName(".", "orders-value"), level="FULL", by=by)
    set_config(registry="dev", subject=None, level="FULL", by=by)
    delete_config(registry="dev", subject=None, by=by)
    client = look("admin")
    found = links(client.get("/ui/audit").content.decode())
    assert found["version added"] == f"{SUBJECT}?version=2"
    assert found["promotion request added"] == f"/ui/promotions/{content['request']}"
    assert found["compatibility removed"] == "/ui/registries/dev/policy"
    assert found["finding added"] == f"/ui/findings/{content['finding']}"
    assert found["source added"] == f"/ui/sources/{content['source']}"
    for url in set(found.values()):
        assert client.get(url).status_code == 200, url
    register_version(registry="dev", subject=gone, text='"long"', by=by)
    for permanent in (False, True):
        delete_version(registry="dev", subject=gone, version=1, permanent=permanent, by=by)
    rows = AuditEvent.objects.filter(table="subjects_subject", after__name="gone-value").values_list(
        "row_id", flat=True
    )
    page = client.get(f"/ui/audit?table=subjects_subject&row_id={rows[0]}").content.decode()
    assert shown(page) and not links(page)


def test_a_hostile_subject_has_its_activity(look: Callable[[str], Client], person: Callable[[str], Actor]) -> None:
    name = "a/b%2F'\"$(id)" + NASTY
    register_version(registry="dev", subject=SubjectName(".", name), text='"int"', by=person("steward"))
    client = look("reader")
    listed = client.get("/ui/registries/dev/subjects").content.decode()
    (url,) = (unescape(each) for each in re.findall(r'class="primary mono" href="([^"]*)"', compact(listed)))
    activity = re.search(r'href="(/ui/audit\?[^"]*)"', client.get(url).content.decode())
    assert activity
    page = client.get(unescape(activity[1])).content.decode()
    assert NASTY not in page
    assert len(re.findall('<tr id="event-', page)) == 1, "one action is one row"
    assert shown(page) == ["version added", "subject added"]
    assert "1 more change of the same action" in compact(page)


def test_the_subjects_links_are_about_it_alone(
    look: Callable[[str], Client],
    content: dict[str, int],  # noqa: F811
) -> None:
    page = unescape(look("reader").get(SUBJECT).content.decode())
    for target in ("findings", "audit"):
        assert f'href="/ui/{target}?subject=orders-value&registry=dev"' in page
    assert "/ui/audit?q=" not in page and "/ui/findings?q=" not in page
    listed = unescape(look("reader").get("/ui/registries/dev/subjects").content.decode())
    assert 'href="/ui/findings?subject=orders-value&registry=dev"' in listed


def saved(client: Client, query: str) -> str:
    answer = client.get(f"/ui/audit/export?{query}")
    assert answer.status_code == 200
    assert "attachment" in answer["Content-Disposition"]
    return b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]


def test_what_is_saved_is_what_the_api_gives(
    look: Callable[[str], Client],
    content: dict[str, int],  # noqa: F811
    token: Callable[[str], str],
) -> None:
    client, query = look("reader"), "registry=dev&subject=orders-value"
    program = RawClient(headers={"authorization": f"Bearer {token('reader')}"})
    for form in ("csv", "jsonl"):
        answer = program.get(f"/api/v1/audit?{query}&as={form}")
        assert answer.status_code == 200
        assert saved(client, f"{query}&as={form}") == b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]
    rows = list(csv.DictReader(io.StringIO(saved(client, f"{query}&as=csv"))))
    events = [json.loads(line) for line in saved(client, query).splitlines()]
    assert [row["id"] for row in rows] == [str(event["id"]) for event in events] != []
    assert client.get("/ui/audit/export?as=exe").status_code == 422


def test_what_is_saved_takes_the_right(look: Callable[[str], Client], content: dict[str, int]) -> None:  # noqa: F811
    assert look("stranger").get("/ui/audit/export").status_code == 403
    assert RawClient().get("/ui/audit/export").status_code == 302


def test_more_events_take_no_more_queries(
    look: Callable[[str], Client],
    content: dict[str, int],  # noqa: F811
) -> None:
    client = look("approver")
    address = "/ui/audit?subject=orders-value&registry=dev"

    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            assert client.get(address).status_code == 200
        return len(seen)

    first = queries()
    for number in range(12):
        set_config(
            registry="dev",
            subject=SubjectName(".", "orders-value"),
            level=("FULL", "NONE")[number % 2],
            by=system_actor("tests"),
        )
    assert queries() <= first + 3  # of a kind that wasn't on it: registries, contexts and subjects of settings
    assert first <= QUERIES["audit: subject"]


def test_the_log_of_then_ends_then(look: Callable[[str], Client], content: dict[str, int], system: Actor) -> None:  # noqa: F811
    """Under `at` the page shows what was written by then, and so does the file that is saved from it."""
    moment = timezone.now()
    set_config(registry="dev", subject=SubjectName(".", "orders-value"), level="NONE", by=system)
    client, asked = look("reader"), {"table": "subjects_config", "at": moment.isoformat()}
    now, then = (client.get("/ui/audit", query) for query in ({"table": "subjects_config"}, asked))
    assert len(then.context["page"].rows) == len(now.context["page"].rows) - 1
    page = then.content.decode()
    assert "State on" in page and "State on" not in now.content.decode()
    for link in re.findall(r'href="(/ui/[^"]*)"', page):
        assert unescape(link).count("&at=") + unescape(link).count("?at=") <= 1, link
    (csv_url,) = [link.url for link in then.context["page"].exports if "as=csv" in link.url]
    assert len(list(csv.reader(io.StringIO(saved(client, csv_url.partition("?")[2]))))) == 1 + len(
        then.context["page"].rows
    )
    until = (moment - timedelta(days=1)).isoformat()
    assert not client.get("/ui/audit", {**asked, "until": until}).context["page"].rows
