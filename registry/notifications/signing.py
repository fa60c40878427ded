"""Signatures in the form of the Standard Webhooks specification, with keys that are derived and never stored.

Key: HKDF-SHA256 (RFC 5869) of the deployment's secret key, with the webhook's public id and the number of the key.
Signature: HMAC-SHA256 over `ID.TIMESTAMP.BODY`, in base64 after `v1,`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings

KEY_BYTES: Final = 32
SALT: Final = b"schemadesk webhook signing"
PREFIX: Final = "whsec_"
#: how long messages are signed with the former key too, so that receivers can change over
OVERLAP: Final = timedelta(hours=24)


def hkdf_sha256(secret: bytes, *, salt: bytes, info: bytes, length: int) -> bytes:
    """Keying material of up to 8160 bytes. Source: RFC 5869, 2.2 and 2.3. Raises ValueError for more."""
    if not 0 < length <= 255 * 32:
        raise ValueError("HKDF-SHA256 gives 1 to 8160 bytes")
    extracted = hmac.digest(salt or bytes(32), secret, hashlib.sha256)
    material, block, number = b"", b"", 0
    while len(material) < length:
        number += 1
        block = hmac.digest(extracted, block + info + bytes([number]), hashlib.sha256)
        material += block
    return material[:length]


def key_of(public_id: str, key_version: int) -> bytes:
    """The 32 bytes that a webhook's messages are signed with."""
    info = f"{public_id}\0{key_version}".encode()
    return hkdf_sha256(settings.SECRET_KEY.encode(), salt=SALT, info=info, length=KEY_BYTES)


def shown_secret(public_id: str, key_version: int) -> str:
    """The key as its owner is shown it, once: `whsec_` and base64."""
    return PREFIX + base64.b64encode(key_of(public_id, key_version)).decode()


def versions_in_force(key_version: int, rotated_at: datetime | None, now: datetime) -> tuple[int, ...]:
    """The numbers of the keys to sign with: the present one, and the former one for a day after a rotation."""
    if key_version > 1 and rotated_at is not None and now - rotated_at < OVERLAP:
        return key_version, key_version - 1
    return (key_version,)


def signature(*, keys: Collection[bytes], message_id: str, timestamp: int, body: bytes) -> str:
    """The header `webhook-signature`: one signature a key, separated by spaces; `timestamp` in Unix seconds."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    return " ".join("v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode("ascii") for key in keys)
