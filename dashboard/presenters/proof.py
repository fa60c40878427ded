"""What proves a finding, for people: a datum, its bytes, what the reader makes of it; and edits as texts compared."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext

from dashboard.presenters.looks import Evidence
from dashboard.presenters.text_diff import TextDiff

SHOWN_BYTES = 512
"""Bytes that a page draws; copying takes all of them."""
SHOWN_CHARACTERS = 6_000
"""Characters of a datum that a page draws."""
_ROW = 16


@dataclass(frozen=True, slots=True)
class HexRow:
    """A few bytes: where they begin (hexadecimal), the bytes in hexadecimal, and as ASCII with a dot for the rest."""

    offset: str
    hexadecimal: str
    ascii: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bytes:
    """Encoded data. `anchor` is unique on the page: the copy button takes the text of the element of that id."""

    anchor: str
    hexadecimal: str
    size: int
    rows: tuple[HexRow, ...]
    hidden: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """A witness: `datum` and `read` as JSON text; `read` None where the reader stops, which `error` then says.

    `direction` says who reads whose data, `path` of which inner type the datum is, if not of the whole schema. Where none was found, `found` is False and `reason` says why.
    """

    direction: str
    found: bool
    datum: str = ""
    encoded: Bytes | None = None
    error: str = ""
    read: str | None = None
    reason: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceNote:
    """What real data say of a finding (its rule and path), or of a whole report (neither)."""

    weight: Evidence
    sentence: str
    path: str = ""
    rule: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartingNote:
    """Where the established rules and the data part: a few words, the whole sentence, and the proof."""

    title: str
    sentence: str
    proof: Proof | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EditView:
    """An edit as text: what it does, the change, and the whole text after it; `anchor` is unique on the page.

    A text in one line is laid out for the change; `text` is as the edit leaves it, "" where it is too long to be shown
    beside others.
    """

    anchor: str
    title: str
    change: TextDiff
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameDecided:
    """What somebody decided of a suspected rename."""

    is_rename: bool
    who: str
    at: datetime
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameChoice:
    """Where it is decided, and why not by the reader ("" where they may)."""

    url: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameView:
    """A suspected rename: how sure, why, and (None where there is none) the edit that makes it a known one.

    `is_edit_tried` is False where none was looked for.
    """

    path: str
    sentence: str
    percent: int
    reasons: tuple[str, ...]
    edit: EditView | None = None
    is_edit_tried: bool = True
    from_path: str = ""
    decided: RenameDecided | None = None
    choice: RenameChoice | None = None


def bytes_view(encoded: str, anchor: str, *, width: int = _ROW) -> Bytes:
    """Hexadecimal text as rows of `width` bytes."""
    raw = bytes.fromhex(encoded)
    shown = raw[:SHOWN_BYTES]
    rows = tuple(
        HexRow(
            f"{start:04x}",
            shown[start : start + width].hex(" "),
            "".join(chr(byte) if 32 <= byte < 127 else "." for byte in shown[start : start + width]),
        )
        for start in range(0, len(shown), width)
    )
    return Bytes(anchor=anchor, hexadecimal=encoded, size=len(raw), rows=rows, hidden=len(raw) - len(shown))


def json_text(value: Any, *, indent: int | None = 2, limit: int = SHOWN_CHARACTERS) -> str:
    """A JSON value as text for people, cut at `limit` characters; half characters are written as escapes."""
    text = json.dumps(value, indent=indent, ensure_ascii=False, default=str)
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
        text = json.dumps(value, indent=indent, default=str)
    return (
        text
        if len(text) <= limit
        else gettext("%(text)s\n… %(number)s more characters")
        % {"text": text[:limit], "number": f"{len(text) - limit:,}"}
    )


def short_json(value: Any, limit: int = 200) -> str:
    """The same in one line."""
    text = json_text(value, indent=None, limit=10**9)
    return text if len(text) <= limit else f"{text[:limit]}…"
