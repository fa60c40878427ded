"""A notice as a message for people in a chat program: Slack's form, which Mattermost takes as well.

Names and sentences are other people's: whatever means something to the program (links, mentions, markup) is written so
that it stands there as text. Lengths are those that Slack refuses to go beyond.
"""

from __future__ import annotations

import json
from typing import Any, Final
from urllib.parse import quote

from django.conf import settings

from registry.notifications.events import EVENTS
from registry.notifications.models import Notice

#: characters of a block's text, and of the message that notifications show
MAX_BLOCK: Final = 3000
MAX_TEXT: Final = 3000
MAX_NAME: Final = 200
_ENTITIES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
#: behind a sign that would begin a mention or markup: nothing that shows
_JOINER: Final = "\u2060"
_SIGNS: Final = frozenset("@#*_~`")


def chat_body(notice: Notice) -> bytes:
    """The message: the same bytes at every attempt."""
    event = EVENTS[notice.event].title if notice.event in EVENTS else notice.event
    title, said = plain(event, MAX_NAME), plain(notice.text, MAX_TEXT - 2 * MAX_NAME)
    blocks: list[dict[str, Any]] = [_section(f"*{title}*\n{said}")]
    where = " · ".join(plain(part, MAX_NAME) for part in (notice.registry, notice.subject) if part)
    link = _link(notice.url)
    if where or link:
        parts = " · ".join(part for part in (where, link) if part)
        blocks.append({"type": "context", "elements": [{"type": "mrkdwn", "text": parts[:MAX_BLOCK]}]})
    return json.dumps({"text": f"{title}: {said}", "blocks": blocks}, separators=(",", ":")).encode()


def plain(text: str, longest: int) -> str:
    """A text that stands as it is: at most so many characters once it is escaped, never cut inside of an entity."""
    pieces: list[str] = []
    left = longest - 1
    for char in text:
        shown = char if char.isprintable() else " "
        piece = _ENTITIES.get(shown, f"{shown}{_JOINER}" if shown in _SIGNS else shown)
        left -= len(piece)
        if left < 0:
            return f"{''.join(pieces)}…"
        pieces.append(piece)
    return "".join(pieces)


def _section(text: str) -> dict[str, Any]:
    """A block of text, whose words aren't searched for links, names and channels."""
    return {"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": True}}


def _link(url: str) -> str:
    """A link to the page; none where nobody said under which address people reach this site."""
    if not url or not settings.SITE_URL:
        return ""
    whole = settings.SITE_URL + quote(url, safe="/:?=&%#,;@!$'()*+~.-_").replace("&", "&amp;")
    return f"<{whole}|Open>" if len(whole) <= MAX_BLOCK - 2 * MAX_NAME - 20 else ""
