"""Below the main lists: the same in an API, as a line for a shell."""

from __future__ import annotations

import html
import re
import shlex
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client, RequestFactory
from django.utils import timezone

from dashboard.components.links import copy_as
from registry.access.models import ApiToken, User
from registry.access.roles import Actor
from registry.drift.models import Mute
from registry.notifications.models import Delivery, InboxEntry, Notice, Subscription, Webhook
from registry.promotions.models import Draft
from registry.search.services import index_stale
from registry.streams.models import StreamQuery
from registry.subjects.models import Client as DeclaredClient
from registry.subjects.models import Registry, Subject
from registry.subjects.services import register_version
from registry.subjects.versions.qualified_names import SubjectName
from tests.conftest import RawClient
from tests.dashboard.test_every_page import content  # noqa: F401 - fixtures

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-2")]

NASTY = "a/b%2F'\"$(id)<b>"
#: a query's, as its checkpoint told it
OPERATOR = {
    "number": 0, "description": "totals", "partitions": 1, "time_mode": "", "timers": None, "schema_files": 0,
    "why_fixed": "", "name": "totals", "encoding": "avro",
}  # fmt: skip
#: page → the address of the same in an API
PAGES = {
    "/ui/registries/dev/subjects": "/api/v1/registries/dev/subjects",
    "/ui/registries/dev/subjects?q=orders&attention=drift&format=AVRO&sort=name": (
        "/api/v1/registries/dev/subjects?text=orders&format=AVRO&attention=drift&sort=name"
    ),
    "/ui/registries/dev/subjects/orders-value/": "/api/v1/registries/dev/subjects/orders-value/timeline",
    "/ui/registries/dev/policy": "/api/v1/registries/dev/policy",
    "/ui/registries/dev/what-if?level=FULL": "/api/v1/registries/dev/what-if?level=FULL",
    "/ui/promotions?state=open&target=prod": "/api/v1/promotions?state=open&target=prod",
    "/ui/promotions?q=orders-value&before=999999": "/api/v1/promotions?subject=orders-value&after=999999",
    "/ui/findings?state=all&severity=break&q=orders": "/api/v1/findings?text=orders&state=&severity=break",
    "/ui/sources": "/api/v1/sources",
    "/ui/sources/{source}": "/api/v1/sources/{source}/scans",
    "/ui/environments": "/api/v1/board",
    "/ui/environments?q=orders&show=behind": "/api/v1/board?text=orders&show=behind",
    "/ui/registries/dev/subjects/orders-value/usage": "/api/v1/registries/dev/subjects/orders-value/usage",
    "/ui/registries/dev/unused-subjects": "/api/v1/registries/dev/unused-subjects",
    "/ui/search?q=orders": "/api/v1/search?q=orders",
    "/ui/inbox?show=unread": "/api/v1/notifications?unread=true",
    "/ui/registries": "/api/v1/registries",
    "/ui/webhooks": "/api/v1/webhooks",
    "/ui/webhooks/hook": "/api/v1/webhooks/hook/deliveries",
    "/ui/inbox/subscriptions": "/api/v1/notifications/subscriptions",
    "/ui/registries/dev/subjects/read-value/usage": "/api/v1/registries/dev/subjects/read-value/clients",
    "/ui/queries/{query}": "/api/v1/queries/{query}/variables",
    "/ui/tokens": "/api/v1/tokens",
    "/ui/mutes": "/api/v1/mutes",
    "/ui/people?q=read": "/api/v1/people?q=read",
    "/ui/proposals": "/api/v1/drafts",
    "/ui/audit?q=version": "/api/v1/audit?text=version",
    "/ui/audit?subject=orders-value&registry=dev&since=2020-01-01": (
        "/api/v1/audit?registry=dev&subject=orders-value&since=2020-01-01"
    ),
}


def unfolded(page: str) -> str:
    """The line for a shell, which is there without JavaScript; no link, since a session opens no API."""
    match = re.search(r'<details class="copy-as.*?</details>', page, flags=re.DOTALL)
    assert match is not None
    assert "<a " not in match[0]
    (line,) = re.findall(r'<code class="command">(.*?)</code>', match[0], flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]*>", "", line))


def address_in(line: str) -> str:
    """The path and query that the line asks for."""
    arguments = shlex.split(line)
    assert arguments[:3] == ["curl", "-H", "Authorization: Bearer $TOKEN"]
    (address,) = arguments[3:]
    assert address.startswith("http://testserver/")
    return address.removeprefix("http://testserver")


@pytest.mark.parametrize("page", PAGES)
def test_the_api_gives_the_same_list_to_the_line_of_the_page(
    look: Callable[[str], Client],
    content: dict[str, int],  # noqa: F811
    token: Callable[[str], str],
    person: Callable[[str], Actor],
    page: str,
) -> None:
    person("reader")
    _fill(content, person("steward"))
    who = {"/ui/people?q=read": "admin", "/ui/proposals": "steward"}.get(page, "reader")
    address = address_in(unfolded(look(who).get(page.format(**content)).content.decode()))
    assert address == PAGES[page].format(**content)
    response = RawClient(headers={"authorization": f"Bearer {token(who)}"}).get(address)
    assert response.status_code == 200


def _fill(content: dict[str, int], steward: Actor) -> None:  # noqa: F811
    """A row for each list that an empty one would stand in the place of."""
    reader, index = User.objects.get(username="reader"), Registry.objects.get(name="dev")
    index_stale()
    notice = Notice.objects.create(
        event="version.registered", registry="dev", subject="s", text="t", url="/ui/", data={}
    )
    InboxEntry.objects.create(user=reader, notice=notice)
    hook = Webhook.objects.create(
        owner=reader, name="hook", url="https://theirs.example/x", host="theirs.example", public_id="hook", events=[]
    )
    Delivery.objects.create(webhook=hook, notice=notice, next_attempt_at=timezone.now())
    Subscription.objects.create(user=reader)
    read = SubjectName(".", "read-value")
    register_version(registry="dev", subject=read, text='"int"', by=steward)
    DeclaredClient.objects.create(
        subject=Subject.objects.get(name="read-value"), name="billing", reads=True, writes=False, seen_at=timezone.now()
    )
    content["query"] = StreamQuery.objects.create(
        source_id=content["source"], registry=index, path="/data/totals", query_id="q", scanned_at=timezone.now(),
        allowed_value_schemas=16, allowed_schema_files=128, operators=[OPERATOR],
    ).pk  # fmt: skip
    ApiToken.objects.create(
        user=reader, name="ci", digest="0" * 64, expires_at=timezone.now() + timedelta(days=1), scope="read"
    )
    Mute.objects.create(registry=index, rule="UNKNOWN_SCHEMA_ID", reason="known", created_by="reader")
    Draft.objects.create(
        author=User.objects.get(username="steward"),
        registry=index,
        context_name=".",
        subject_name="x",
        schema_type="AVRO",
        text="{",
    )


def test_a_hostile_name_stays_one_word_of_the_shell(
    look: Callable[[str], Client],
    person: Callable[[str], Actor],
    token: Callable[[str], str],
) -> None:
    register_version(registry="dev", subject=SubjectName(".", NASTY), text='"int"', by=person("steward"))
    page = "/ui/registries/dev/subjects/a%2Fb%252F'%22%24(id)%3Cb%3E/"
    address = address_in(unfolded(look("reader").get(page).content.decode()))
    response = RawClient(headers={"authorization": f"Bearer {token('reader')}"}).get(address)
    assert response.status_code == 200


def test_no_secret_is_in_it() -> None:
    request = RequestFactory().get("/ui/audit?q=x", headers={"authorization": "Bearer abc", "cookie": "sessionid=abc"})
    copied = copy_as(request, "audit")
    assert "abc" not in copied.command


@pytest.mark.parametrize("whose", ["mine", "waiting"])
def test_whose_requests_are_listed_is_said_as_the_api_says_it(whose: str) -> None:
    request = RequestFactory().get("/ui/promotions", {"who": whose, "state": "open", "q": "orders-value"})
    address = f"/api/v1/promotions?subject=orders-value&state=open&{whose}=true"
    assert address_in(copy_as(request, "requests").command) == address


def test_a_filter_that_is_no_text_at_all_breaks_nothing() -> None:
    request = RequestFactory().get("/ui/audit", {"q": "\u202e\0'\n" + "x" * 5000})
    assert len(address_in(copy_as(request, "audit").command)) < 5000
