"""Keys are derived as RFC 5869 says, and signatures are those of the Standard Webhooks specification."""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from registry.notifications.signing import hkdf_sha256, key_of, shown_secret, signature, versions_in_force

NOW = datetime(2026, 1, 2, tzinfo=UTC)
#: RFC 5869, appendix A, cases 1 to 3: secret, salt, info, length, result
VECTORS = (
    (
        "0b" * 22,
        "000102030405060708090a0b0c",
        "f0f1f2f3f4f5f6f7f8f9",
        42,
        "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
    ),
    (
        bytes(range(0x00, 0x50)).hex(),
        bytes(range(0x60, 0xB0)).hex(),
        bytes(range(0xB0, 0x100)).hex(),
        82,
        "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09"
        "da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87",
    ),
    (
        "0b" * 22,
        "",
        "",
        42,
        "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8",
    ),
)


@pytest.mark.parametrize(("secret", "salt", "info", "length", "result"), VECTORS)
def test_keys_are_derived_as_the_rfc_says(secret: str, salt: str, info: str, length: int, result: str) -> None:
    given = [bytes.fromhex(text) for text in (secret, salt, info)]
    assert hkdf_sha256(given[0], salt=given[1], info=given[2], length=length).hex() == result


def test_more_than_hkdf_gives_is_refused() -> None:
    with pytest.raises(ValueError, match="8160"):
        hkdf_sha256(b"x", salt=b"", info=b"", length=8161)


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
