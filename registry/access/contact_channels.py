"""Contact channels: where the people of a subject or of a group talk. A URL of a chat, an email address, or a `#name`."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, urlsplit

from registry.errors import InvalidInput

MAX_CHANNEL: Final = 300
_NAME: Final = re.compile(r"#[\w.-]{1,80}")
#: no user or password before the host, and nothing that a browser reads as another host
_URL: Final = re.compile(r"https?://[^\s/?#@\\<>\"']+(?:[/?#][^\s\\<>\"]*)?", re.IGNORECASE)
_MAIL: Final = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)*", re.ASCII)


def _is_url(text: str) -> bool:
    if not _URL.fullmatch(text):
        return False
    try:
        parts = urlsplit(text)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:  # half an IPv6 address, or no such port
        return False


def clean_channel(text: str) -> str:
    """Return the channel as stored, "" for none. Raises InvalidInput."""
    channel = text.strip()
    if len(channel) > MAX_CHANNEL:
        raise InvalidInput(
            f"The channel has {len(channel)} characters. At most {MAX_CHANNEL} are allowed.", field="channel"
        )
    is_known = _is_url(channel) or any(kind.fullmatch(channel) for kind in (_NAME, _MAIL))
    if not channel or (channel.isprintable() and is_known):
        return channel
    raise InvalidInput(
        "Give the URL of a chat (https://…), an email address, or a name such as #orders.", field="channel"
    )


def channel_url(channel: str) -> str:
    """Return the URL that opens a channel; "" for a name."""
    if _is_url(channel):
        return channel
    return f"mailto:{quote(channel, safe='@+')}" if _MAIL.fullmatch(channel) else ""
