"""Messages to webhooks: signatures as the specifications say, and the form of chat programs, in which no name means anything."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from registry.access.roles import Actor
from registry.errors import InvalidInput, WrongState
from registry.notifications.models import Attempt, Delivery, Notice
from registry.notifications.selectors import get_webhook
from registry.notifications.webhook_delivery import chat_body, deliver, plain
from registry.notifications.webhooks import (
    create_webhook,
    key_of,
    replay,
    rotate_key,
    send_test,
    shown_secret,
    signature,
    update_webhook,
    versions_in_force,
)
from tests.notifications.conftest import tell
from tests.notifications.endpoint import Endpoint

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def test_keys_stay_those_that_receivers_have(settings: Any) -> None:
    """Another derivation would break every webhook at once; the bytes are those of RFC 5869 with HMAC-SHA256."""
    settings.SECRET_KEY = "a secret key of the deployment, for this test alone"
    key = key_of("0123456789abcdef", 2)
    assert key.hex() == "4f7f03d93f4febf485433e94fbf9de4086811cc16f5b2e7e8df0e9781b2b82cf"


def test_the_signature_is_that_of_the_specification() -> None:
    """The example of the specification's own test suites: the same key, id, time and body."""
    key = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    made = signature(
        keys=[key], message_id="msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp=1614265330, body=b'{"test": 2432232314}'
    )
    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_keys_differ_by_webhook_by_number_and_by_deployment(settings: Any) -> None:
    settings.SECRET_KEY = "a"
    keys = {key_of("wh_1", 1), key_of("wh_1", 2), key_of("wh_2", 1), key_of("wh_11", 1)}
    settings.SECRET_KEY = "b"
    keys.add(key_of("wh_1", 1))
    assert len(keys) == 5
    assert base64.b64decode(shown_secret("wh_1", 1).removeprefix("whsec_")) == key_of("wh_1", 1)


def test_the_former_key_signs_for_a_day() -> None:
    assert versions_in_force(1, None, NOW) == (1,)
    assert versions_in_force(2, NOW - timedelta(hours=23), NOW) == (2, 1)
    assert versions_in_force(2, NOW - timedelta(hours=25), NOW) == (2,)


def test_the_snippet_of_the_docs_verifies_and_refuses(settings: Any) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "notifications.md").read_text()
    code = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert code is not None
    names: dict[str, Any] = {}
    exec(code[1], names)
    body, now = b'{"type":"webhook.test"}', 1_800_000_000
    header = signature(keys=[key_of("wh_1", 2), key_of("wh_1", 1)], message_id="msg_1", timestamp=now, body=body)
    sent = {"webhook-id": "msg_1", "webhook-timestamp": str(now), "webhook-signature": header}
    for number in (1, 2):
        assert names["is_genuine"](shown_secret("wh_1", number), sent, body, now=now + 299)
    refused = [
        (shown_secret("wh_1", 3), sent, body, now),
        (shown_secret("wh_1", 1), sent, body + b" ", now),
        (shown_secret("wh_1", 1), {**sent, "webhook-id": "msg_2"}, body, now),
        (shown_secret("wh_1", 1), {**sent, "webhook-timestamp": str(now + 1)}, body, now),
        (shown_secret("wh_1", 1), {**sent, "webhook-timestamp": "soon"}, body, now),
        (shown_secret("wh_1", 1), {**sent, "webhook-signature": "v1,"}, body, now),
        (shown_secret("wh_1", 1), {}, body, now),
        (shown_secret("wh_1", 1), sent, body, now + 301),
    ]
    assert [names["is_genuine"](secret, headers, text, now=at) for secret, headers, text, at in refused] == [False] * 8


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
