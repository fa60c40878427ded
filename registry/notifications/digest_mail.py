"""A digest as a mail: text and HTML that say the same, and how to get no more of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.core.signing import BadSignature, Signer
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from registry.notifications.selectors import EntryInfo

SALT: Final = "schemadesk digest"
PATH: Final = "/ui/digest/stop/"
LONGEST: Final = 500


def stop_token(user_id: int) -> str:
    """What lets whoever has the mail end that person's digests, and nothing else."""
    return Signer(salt=SALT).sign(str(user_id))


def person_in(token: str) -> int | None:
    """The person whom a token is for, None for one that we didn't sign."""
    try:
        return int(Signer(salt=SALT).unsign(token))
    except (BadSignature, ValueError):
        return None


def mail_of(*, user_id: int, address: str, entries: Sequence[EntryInfo], more: int) -> EmailMultiAlternatives:
    """The mail; `more` unread notices are older and aren't in it."""
    count = len(entries)
    subject = f"{count} new {'notice' if count == 1 else 'notices'} in Schemadesk"
    stop = f"{settings.SITE_URL}{PATH}{quote(stop_token(user_id))}" if settings.SITE_URL else ""
    headers = {"Auto-Submitted": "auto-generated"}
    if stop:
        headers |= {"List-Unsubscribe": f"<{stop}>", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click"}
    mail = EmailMultiAlternatives(subject, _text(entries, more, stop), to=[address], headers=headers)
    mail.attach_alternative(_html(subject, entries, more, stop), "text/html")
    return mail


def _text(entries: Sequence[EntryInfo], more: int, stop: str) -> str:
    parts = [
        f"{_clean(entry.title)}: {_clean(entry.text)}\n{_place(entry)}{_link(entry)}".rstrip() for entry in entries
    ]
    parts += [_more(more)] if more else []
    parts.append(_why(stop) + (f"\n{stop}" if stop else ""))
    return "\n\n".join(parts) + "\n"


def _html(subject: str, entries: Sequence[EntryInfo], more: int, stop: str) -> SafeString:
    rows = format_html_join("", "<li><p><strong>{}</strong><br>{}<br>{}{}</p></li>", (_row(entry) for entry in entries))
    rest = format_html("<p>{}</p>", _more(more)) if more else SafeString("")
    end = (
        format_html('<p>{} <a href="{}">Send me no more</a></p>', _why(stop), stop)
        if stop
        else format_html("<p>{}</p>", _why(stop))
    )
    page = '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{}</title></head><body><ul>{}</ul>{}{}</body></html>'
    return format_html(page, subject, rows, rest, end)


def _row(entry: EntryInfo) -> tuple[str, str, str, SafeString]:
    link = _link(entry)
    shown = format_html('<br><a href="{}">Open</a>', link) if link else SafeString("")
    return _clean(entry.title), _clean(entry.text), _place(entry).strip(), shown


def _place(entry: EntryInfo) -> str:
    parts = [_clean(part) for part in (entry.registry, entry.subject) if part]
    return f"{' · '.join(parts)}\n" if parts else ""


def _link(entry: EntryInfo) -> str:
    return (
        f"{settings.SITE_URL}{quote(entry.url, safe='/:?=&%#,;@!$+*~.-_')}" if settings.SITE_URL and entry.url else ""
    )


def _more(more: int) -> str:
    return f"{more} older {'one is' if more == 1 else 'ones are'} not read yet."


def _why(stop: str) -> str:
    where = "" if stop else " Choose so under Inbox, Subscriptions."
    return f"You chose to get unread notices by mail.{where}"


def _clean(text: str) -> str:
    """Other people's words on one line, without characters that don't show or turn the line round, cut to a length."""
    shown = "".join(char if char.isprintable() else " " for char in text)
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"
