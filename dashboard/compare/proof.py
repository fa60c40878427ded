"""Proofs of findings for display: a datum, its bytes, the reader's result; and suspected renames.

Edits are shown as a diff of two texts.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from django.utils.translation import gettext

from dashboard.components.diff import TextDiff, laid_out_diff, laid_out_if_json
from dashboard.components.translation import gettext_lazy as _
from registry.access.roles import Actor, refusal
from registry.formats.assessment import Disagreement
from registry.formats.base import Answer, Witness
from registry.formats.suggested_edits import SuspectedRename
from registry.promotions.requests.schema_changes import ACTION, RenameInfo, decided_renames
from registry.subjects.versions.qualified_names import SubjectName

SHOWN_BYTES = 512
"""Bytes that a page draws; copying takes all of them."""
SHOWN_CHARACTERS = 6_000
"""Characters of a datum that a page draws."""
_ROW = 16


@dataclass(frozen=True, slots=True)
class HexRow:
    """A few bytes: their hexadecimal offset, and the bytes in hexadecimal and as ASCII with dots for the rest."""

    offset: str
    hexadecimal: str
    ascii: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bytes:
    """Encoded data. `anchor` is unique on the page: the copy button copies the text of the element with that id."""

    anchor: str
    hexadecimal: str
    size: int
    rows: tuple[HexRow, ...]
    hidden: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """A witness: `datum` and `read` are JSON text; `read` is None if the reader fails with `error`.

    `direction` says who reads whose data, `path` is the datum's type if not the whole schema. If no witness was found,
    `is_found` is False and `reason` says why.
    """

    direction: str
    is_found: bool
    datum: str = ""
    encoded: Bytes | None = None
    error: str = ""
    read: str | None = None
    reason: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DisagreementNote:
    """A disagreement of rules and data: a title, a sentence, and the proof."""

    title: str
    sentence: str
    proof: Proof | None = None


#: rows of an edit's diff that are shown unfolded if it has more than `MAX_UNFOLDED`
FIRST_ROWS: Final = 12
MAX_UNFOLDED: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class EditView:
    """An edit: its title, the change, and the whole text after it; `anchor` is unique on the page.

    A text in one line is formatted for the diff; `text` is the unformatted result, "" if too long to show.
    """

    anchor: str
    title: str
    change: TextDiff
    text: str

    @property
    def parts(self) -> tuple[TextDiff, TextDiff | None]:
        """The diff's first rows and the rest, which is folded; None if the diff is short."""
        rows = self.change.unified
        if len(rows) <= MAX_UNFOLDED:
            return self.change, None
        whole = (n for n in range(FIRST_ROWS, len(rows)) if rows[n].kind not in ("added", "removed"))
        cut = next(whole, len(rows))
        return replace(self.change, unified=rows[:cut], hidden_rows=0), replace(self.change, unified=rows[cut:])


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameView:
    """A suspected rename, the edit that declares it, and the newest decision.

    It is decided in `registry`, "" if that is impossible; `refused` says why the reader can't decide it.
    """

    info: SuspectedRename
    edit: EditView | None = None
    decided: RenameInfo | None = None
    registry: str = ""
    subject: str = ""
    refused: str = ""

    @property
    def sentence(self) -> str:
        """The suspected rename in a sentence."""
        return f"{self.info.message[:1].upper()}{self.info.message[1:]}."

    @property
    def percent(self) -> int:
        """The likelihood in percent."""
        return round(self.info.score * 100)


def bytes_view(encoded: str, anchor: str, *, width: int = _ROW) -> Bytes:
    """Split hexadecimal text into rows of `width` bytes."""
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
    """Format a JSON value, cut at `limit` characters; lone surrogates are escaped."""
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
    """Format a JSON value in one line, cut at `limit` characters."""
    text = json_text(value, indent=None, limit=10**9)
    return text if len(text) <= limit else f"{text[:limit]}…"


#: suspected renames on a page unless all are requested
MAX_RENAMES: Final = 20
#: maximum length of a text that is repeated in full after each edit
MAX_WHOLE: Final = 20_000
DIRECTIONS: Final = {"BACKWARD": _("New reader, old data"), "FORWARD": _("Old reader, new data")}
_TITLES: Final[dict[tuple[Answer, Answer], str]] = {
    ("yes", "no"): _("The rules accept it, but data changes"),
    ("yes", "unknown"): _("The rules accept it, but the data doesn’t prove it"),
    ("yes", "differs"): _("The rules accept it, but decoders differ"),
    ("no", "differs"): _("The rules reject it, but decoders differ"),
    ("no", "yes"): _("The rules reject it, but no data breaks"),
    ("no", "unknown"): _("The rules reject it, but the data doesn’t prove it"),
}


def proof_of(witness: Witness | None, direction: str, anchor: str) -> Proof | None:
    """Convert a witness for display; None if none was searched for. `anchor` is unique on the page."""
    if witness is None:
        return None
    label = DIRECTIONS[direction]
    if not witness.found:
        return Proof(direction=label, is_found=False, reason=witness.reason)
    return Proof(
        direction=label,
        is_found=True,
        datum=json_text(witness.datum),
        encoded=bytes_view(witness.encoded, anchor),
        error=witness.error,
        read=None if witness.error else json_text(witness.read),
        reason=witness.reason,
        path=witness.path,
    )


def disagreement_note(disagreement: Disagreement, anchor: str) -> DisagreementNote:
    """Convert a disagreement of rules and data for display."""
    return DisagreementNote(
        title=f"{DIRECTIONS[disagreement.direction]}: {_TITLES[disagreement.by_rules, disagreement.by_data].lower()}"
        if (disagreement.by_rules, disagreement.by_data) in _TITLES
        else DIRECTIONS[disagreement.direction],
        sentence=disagreement.sentence,
        proof=proof_of(disagreement.witness, disagreement.direction, anchor),
    )


def edit_view(anchor: str, title: str, before: str, after: str, *, limit: int | None = None) -> EditView:
    """Return an edit: the diff of the two texts, and the whole result unless it is longer than `limit`."""
    change = laid_out_diff(before, after, str if "\n" in before.strip() else laid_out_if_json)
    return EditView(
        anchor=anchor, title=title, change=change, text=after if limit is None or len(after) <= limit else ""
    )


def rename_views(
    renames: Sequence[SuspectedRename],
    text: str,
    registries: Sequence[str],
    subject: SubjectName,
    *,
    by: Actor | None = None,
    limit: int | None = None,
) -> tuple[RenameView, ...]:
    """Return at most `limit` suspected renames, likeliest first; their edits change `text`, the new schema.

    Each has its newest decision in the registries, and the registry to decide it in: the last one, or none without
    `by`. One query, or none without suspected renames.
    """
    if not renames:
        return ()
    decided, views = decided_renames(set(registries), subject), []
    for number, item in enumerate(sorted(renames, key=lambda item: -item.score)[:limit], start=1):
        decision = decided.get((item.from_path, item.path))
        registry = decision.registry if decision else registries[-1]
        # A pair decided not to be a rename gets no alias.
        edit = item.edit if decision is None or decision.is_rename else None
        views.append(
            RenameView(
                info=item,
                edit=edit_view(f"rename-{number}", edit.title, text, edit.text, limit=MAX_WHOLE) if edit else None,
                decided=decision,
                registry=registry if by else "",
                subject=subject.qualified,
                refused=refusal(by, ACTION, registry=registry, subject=subject.qualified) if by else "",
            )
        )
    return tuple(views)
