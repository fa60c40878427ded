"""The pages and the API: what they show, to whom, with how many queries, and what they refuse."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from registry.access.roles import Actor
from registry.notifications import services
from registry.notifications.models import Delivery, InboxEntry, Subscription, Webhook
from registry.notifications.webhook_delivery import deliver
from registry.notifications.webhooks import shown_secret
from tests.conftest import RawClient
from tests.markup import compact
from tests.notifications.conftest import tell
from tests.notifications.endpoint import Endpoint

#: page → the most queries that it takes, whatever it lists
PAGES = {
    "/ui/inbox": 14,
    "/ui/inbox?show=unread": 14,
    "/ui/inbox/subscriptions": 13,
    "/ui/webhooks": 13,
    "/ui/webhooks/add": 12,
    "/ui/webhooks/{hook}": 16,
    "/ui/webhooks/{hook}/edit": 13,
    "/ui/webhooks/{hook}/remove": 13,
}


@pytest.fixture
def content(hook: str, person: Callable[[str], Actor]) -> str:
    """The steward subscribes to all; one message was delivered."""
    services.subscribe(event="*", subject_pattern="<b>*", by=person("steward"))
    services.subscribe(event="*", by=person("steward"))
    tell(subject="<script>alert(1)</script>", text="<script>alert(1)</script>")
    deliver(Delivery.objects.get().pk)
    return hook


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_what_is_there_in_a_constant_number_of_queries(
    content: str, look: Callable[[str], Client], page: str, django_assert_max_num_queries: Any
) -> None:
    client, address = look("steward"), page.format(hook=content)
    for _ in range(2):
        with django_assert_max_num_queries(PAGES[page]):
            answer = client.get(address)
        text = answer.content.decode()
        assert answer.status_code == 200
        assert "<script>alert" not in text
        assert "whsec_" not in text
        for _ in range(40):
            tell()


@pytest.mark.parametrize("page", PAGES)
def test_who_is_not_signed_in_is_led_to_the_sign_in(content: str, page: str) -> None:
    answer = RawClient().get(page.format(hook=content))
    assert answer.status_code == 302
    assert answer["Location"].startswith("/ui/accounts/login/")


@pytest.mark.parametrize("name", ["reader", "approver", "stranger", "steward2"])
def test_a_webhook_of_somebody_else_is_not_there(
    content: str, look: Callable[[str], Client], api: Callable[[str], Client], name: str
) -> None:
    pages, program = look(name), api(name)
    for page in ("", "/edit", "/remove"):
        assert pages.get(f"/ui/webhooks/{content}{page}").status_code == 404
    assert "127.0.0.1" not in pages.get("/ui/webhooks").content.decode()
    delivery = Delivery.objects.get().pk
    for act in ("rotate", "test", "switch", "remove", "edit", f"deliveries/{delivery}/replay"):
        assert pages.post(f"/ui/webhooks/{content}/{act}", {"name": "x", "url": "http://x/"}).status_code == 404
    assert program.get("/api/v1/webhooks").json() == []
    for method, path in (
        ("get", ""), ("delete", ""), ("patch", ""), ("post", "/rotate"), ("post", "/test"), ("get", "/deliveries"),
        ("post", f"/deliveries/{delivery}/replay"),
    ):  # fmt: skip
        answer = getattr(program, method)(f"/api/v1/webhooks/{content}{path}", content_type="application/json", data={})
        missing = getattr(program, method)(f"/api/v1/webhooks/wh_0{path}", content_type="application/json", data={})
        assert (answer.status_code, missing.status_code) == (404, 404)
        assert answer.json()["message"] == missing.json()["message"]


@pytest.mark.parametrize(
    ("name", "status"), [("reader", 403), ("approver", 403), ("stranger", 403), ("steward", 201), ("admin", 201)]
)
def test_who_may_make_webhooks(api: Callable[[str], Client], server: Endpoint, name: str, status: int) -> None:
    answer = api(name).post("/api/v1/webhooks", {"name": "ci", "url": server.url}, content_type="application/json")
    assert answer.status_code == status
    assert Webhook.objects.count() == (status == 201)


@pytest.mark.parametrize("channel", ["/api/v1/notifications", "/api/v1/webhooks", "/api/v1/notifications/subscriptions",
                                  "/api/v1/notifications/events"])  # fmt: skip
def test_without_a_token_there_is_nothing(registries: None, channel: str) -> None:
    assert RawClient().get(channel).status_code == 401


#: addresses that are refused when they are entered
WANTED = {"kind": "signed", "registry_pattern": "*", "subject_pattern": "*"}
REFUSED = (
    "", "ftp://example.com/", "http://localhost:1/", "http://127.0.0.1/", "http://[::1]/", "http://169.254.169.254/",
    "http://0x7f000001/", "http://user:pw@example.com/", "http://127.0.0.1:80/?x=1", "javascript:alert(1)",
    "http://example.com/../x", "http://2130706433/", "http://[::ffff:127.0.0.1]/", "http://a\nb/", "http://" + "a" * 3000,
)  # fmt: skip


@pytest.mark.parametrize("url", REFUSED, ids=range(len(REFUSED)))
def test_an_address_that_cannot_be_sent_to_is_refused_when_it_is_entered(
    api: Callable[[str], Client], look: Callable[[str], Client], server: Endpoint, url: str
) -> None:
    answer = api("steward").post("/api/v1/webhooks", {"name": "ci", "url": url}, content_type="application/json")
    assert answer.status_code == 422
    page = look("steward").post("/ui/webhooks/add", {"name": "ci", "url": url, **WANTED})
    assert page.status_code == 422
    assert "Nothing was saved" in page.content.decode()
    assert Webhook.objects.count() == 0


def test_the_api_from_end_to_end(api: Callable[[str], Client], server: Endpoint) -> None:
    steward = api("steward")

    def post(path: str, **body: Any) -> Any:
        return steward.post(f"/api/v1/{path}", body, content_type="application/json")

    wish = post("notifications/subscriptions", event="version.registered", subject_pattern="orders-*").json()
    made = post("webhooks", name="ci", url=server.url, events=["version.registered"]).json()
    assert made["secret"] == shown_secret(made["webhook"], 1)
    assert post("webhooks", name="ci", url=server.url).status_code == 409
    assert post("webhooks", name="x", url=server.url, events=["no.such"]).status_code == 422
    tell()
    got = steward.get("/api/v1/notifications").json()
    assert (got["unread"], got["items"][0]["subject"]) == (1, "orders-value")
    assert post("notifications/read").status_code == 422
    assert post("notifications/read", ids=[got["items"][0]["id"], 2**63 - 1]).json() == {"marked": 1}
    assert steward.get("/api/v1/notifications?unread=true").json() == {"unread": 0, "items": []}
    base = f"webhooks/{made['webhook']}"
    deliver(Delivery.objects.get().pk)
    (sent,) = steward.get(f"/api/v1/{base}/deliveries").json()
    assert (sent["state"], sent["tries"][0]["status"]) == ("delivered", 200)
    assert post(f"{base}/deliveries/{sent['id']}/replay").status_code == 202
    assert post(f"{base}/deliveries/{sent['id']}/replay").status_code == 409
    assert post(f"{base}/deliveries/{2**40}/replay").status_code == 404
    assert post(f"{base}/test").status_code == 202
    assert post(f"{base}/rotate").json()["secret"] == shown_secret(made["webhook"], 2)
    changed = steward.patch(f"/api/v1/{base}", {"active": False}, content_type="application/json")
    assert (changed.json()["active"], "secret" in changed.json()) == (False, False)
    assert steward.patch(f"/api/v1/{base}", {"owner": 1}, content_type="application/json").status_code == 400
    assert post(f"{base}/test").status_code == 409
    assert steward.delete(f"/api/v1/{base}").status_code == 204
    assert steward.delete(f"/api/v1/notifications/subscriptions/{wish['id']}").status_code == 204
    assert steward.delete(f"/api/v1/notifications/subscriptions/{wish['id']}").status_code == 404


def test_the_pages_from_end_to_end(look: Callable[[str], Client], server: Endpoint) -> None:
    client = look("steward")
    made = client.post("/ui/webhooks/add", {"name": "ci", "url": server.url, **WANTED})
    hook = Webhook.objects.get().public_id
    assert shown_secret(hook, 1) in re.sub(r"&#x2F;|&#43;|&#x3D;", "?", made.content.decode()).replace("&#x2B;", "+")
    assert made["Cache-Control"] == "no-store"
    assert "whsec_" not in client.get(f"/ui/webhooks/{hook}").content.decode()
    assert shown_secret(hook, 2) in client.post(f"/ui/webhooks/{hook}/rotate").content.decode()
    for act, said in (
        ("switch", "Webhook turned off."),
        ("test", "turned off"),
        ("switch", "Webhook turned on"),
        ("test", "Test message queued"),
    ):
        page = client.post(f"/ui/webhooks/{hook}/{act}", follow=True)
        assert said in page.content.decode()
    deliver(Delivery.objects.get().pk)
    page = client.post(f"/ui/webhooks/{hook}/deliveries/{Delivery.objects.get().pk}/replay", follow=True)
    assert "same webhook-id" in page.content.decode()
    saved = client.post(
        f"/ui/webhooks/{hook}/edit",
        {"name": "new", "url": server.url, **WANTED, "events": ["scan.failed"]},
        follow=True,
    )
    assert "Scan failed" in saved.content.decode()
    client.post("/ui/inbox/subscriptions", {"event": "*", "registry_pattern": "dev", "subject_pattern": "*"})
    assert client.post("/ui/inbox/subscriptions", {"event": "no.such"}).status_code == 422
    tell()
    tell()
    first, second = InboxEntry.objects.order_by("id")
    assert "2<span" in client.get("/ui/inbox").content.decode()
    back = client.post("/ui/inbox/read", {"entry": first.pk, "next": "https://evil.example/"})
    assert back["Location"] == "/ui/inbox"
    client.post("/ui/inbox/read", {"up_to": second.pk})
    assert "No unread notices" in client.get("/ui/inbox?show=unread").content.decode()
    assert client.post("/ui/inbox/read", {"entry": "x"}).status_code in (400, 422)
    client.post(f"/ui/inbox/subscriptions/{Subscription.objects.get().pk}/remove")
    assert Subscription.objects.count() == 0
    client.post(f"/ui/webhooks/{hook}/remove")
    assert Webhook.objects.count() == 0


def test_a_long_inbox_has_pages(look: Callable[[str], Client], person: Callable[[str], Actor]) -> None:
    services.subscribe(event="*", by=person("reader"))
    for number in range(60):
        tell(text=f"notice {number}.")
    client = look("reader")
    first = compact(client.get("/ui/inbox").content.decode())
    assert "notice 59." in first
    assert "notice 9." not in first
    older = re.search(r'rel="next" href="([^"]+)"', first)
    assert older is not None
    assert "notice 9." in client.get(older[1].replace("&amp;", "&")).content.decode()
