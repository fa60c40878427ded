"""Messages for chat programs: in their form, within their lengths, and nothing in a name means anything there."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from registry.access.roles import Actor
from registry.errors import InvalidInput, WrongState
from registry.notifications.chat import chat_body, plain
from registry.notifications.delivering import deliver
from registry.notifications.models import Attempt, Delivery, Notice
from registry.notifications.selectors import get_webhook
from registry.notifications.webhooks import create_webhook, replay, rotate_key, send_test, update_webhook
from tests.notifications.conftest import tell
from tests.notifications.endpoint import Endpoint

HOSTILE = "<!channel> <https://evil.example|click> & @all *bold* `code` \u202eevil\nnext"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a & b", "a &amp; b"),
        ("<!here>", "&lt;!here&gt;"),
        ("@all", "@\u2060all"),
        ("*b* _i_ ~s~ `c`", "*\u2060b*\u2060 _\u2060i_\u2060 ~\u2060s~\u2060 `\u2060c`\u2060"),
        ("a\nb\u202ec", "a b c"),
        ("orders-value", "orders-value"),
    ],
)
def test_what_means_something_there_is_written_as_text(text: str, shown: str) -> None:
    assert plain(text, 100) == shown


@pytest.mark.parametrize("longest", range(1, 14))
def test_a_text_is_cut_within_its_length_and_inside_of_no_entity(longest: int) -> None:
    shown = plain("<&>" * 5, longest)
    assert len(shown) <= longest
    assert shown.endswith("…")
    assert not shown.replace("&lt;", "").replace("&amp;", "").replace("&gt;", "").rstrip("…")


def body(settings: Any, **fields: Any) -> dict[str, Any]:
    settings.SITE_URL = "https://desk.example"
    return dict(json.loads(chat_body(Notice(event="finding.opened", **fields))))


def test_the_form_is_slacks(settings: Any) -> None:
    found = body(settings, registry="prod", subject="orders-value", text="Drift", url="/ui/findings/7?a=b&c=d")
    assert found["text"] == "Finding opened: Drift"
    section, context = found["blocks"]
    assert section["text"] == {"type": "mrkdwn", "text": "*Finding opened*\nDrift", "verbatim": True}
    assert context["elements"][0]["text"].endswith("<https://desk.example/ui/findings/7?a=b&amp;c=d|Open>")


def test_nothing_hostile_gets_through_and_nothing_is_too_long(settings: Any) -> None:
    found = body(settings, registry=HOSTILE, subject=HOSTILE * 200, text=HOSTILE * 200, url="/ui/x|y<z>")
    texts = [found["text"], found["blocks"][0]["text"]["text"], found["blocks"][1]["elements"][0]["text"]]
    assert max(map(len, texts)) <= 3000
    said = "".join(texts).replace("<https://desk.example/ui/x%7Cy%3Cz%3E|Open>", "")
    assert "<" not in said and ">" not in said and "@all" not in said and "\u202e" not in said


def test_without_the_sites_address_there_is_no_link(settings: Any) -> None:
    settings.SITE_URL = ""
    assert b"Open" not in chat_body(Notice(event="version.registered", text="x", url="/ui/"))


@pytest.fixture
def chat(person: Callable[[str], Actor], server: Endpoint) -> tuple[str, str]:
    made = create_webhook(name="chat", url=server.url, kind="slack", by=person("steward"))
    return made.webhook, made.secret


@pytest.mark.django_db
@pytest.mark.requirement("CARD-4")
def test_it_is_delivered_logged_and_sent_again(
    chat: tuple[str, str], server: Endpoint, person: Callable[[str], Actor]
) -> None:
    steward = person("steward")
    assert chat[1] == "" and get_webhook(steward, chat[0]).kind == "slack"
    tell(text="Version 2 of <orders>")
    number = Delivery.objects.get().pk
    server.status, server.answer = 400, b"invalid_blocks"
    assert deliver(number) == "queued"
    assert Attempt.objects.get().excerpt == "invalid_blocks"
    server.status = 200
    Delivery.objects.update(state="failed")
    replay(webhook=chat[0], delivery_id=number, by=steward)
    assert deliver(number) == "delivered"
    first, second = server.got
    assert first.body == second.body and b"Version 2 of &lt;orders&gt;" in first.body
    assert "webhook-signature" not in first.headers and first.headers["content-type"] == "application/json"
    send_test(webhook=chat[0], by=steward)


@pytest.mark.django_db
def test_it_has_no_key_and_no_other_kind(chat: tuple[str, str], person: Callable[[str], Actor]) -> None:
    steward = person("steward")
    with pytest.raises(WrongState):
        rotate_key(webhook=chat[0], by=steward)
    with pytest.raises(InvalidInput):
        update_webhook(webhook=chat[0], changes={"kind": "fax"}, by=steward)
    update_webhook(webhook=chat[0], changes={"kind": "signed"}, by=steward)
    assert rotate_key(webhook=chat[0], by=steward).secret.startswith("whsec_")
