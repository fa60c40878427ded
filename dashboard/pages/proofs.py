"""Witnesses, partings, renames and edits of an engine as the pages show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dashboard.presenters.json_layout import laid_out
from dashboard.presenters.proof import EditView, PartingNote, Proof, RenameView, bytes_view, json_text
from dashboard.presenters.text_diff import laid_out_diff
from dashboard.texts import later
from registry.formats.assessment import Parting, Rename
from registry.formats.base import Answer, Witness

#: suspected renames that a page draws unless all are asked for
MAX_RENAMES: Final = 20
#: characters of a text that is shown whole after each of several edits
MAX_WHOLE: Final = 20_000
DIRECTIONS: Final = {"BACKWARD": later("New reader, old data"), "FORWARD": later("Old reader, new data")}
_PARTED: Final[dict[tuple[Answer, Answer], str]] = {
    ("yes", "no"): later("The rules accept it, the data change"),
    ("yes", "unknown"): later("The rules accept it, the data don’t prove it"),
    ("yes", "differs"): later("The rules accept it, and decoders differ"),
    ("no", "differs"): later("The rules refuse it, and decoders differ"),
    ("no", "yes"): later("The rules refuse it, no datum breaks"),
    ("no", "unknown"): later("The rules refuse it, the data don’t prove it"),
}


def proof_of(witness: Witness | None, direction: str, anchor: str) -> Proof | None:
    """A witness for people; None where none was looked for. `anchor` is unique on the page."""
    if witness is None:
        return None
    label = DIRECTIONS[direction]
    if not witness.found:
        return Proof(direction=label, found=False, reason=witness.reason)
    return Proof(
        direction=label,
        found=True,
        datum=json_text(witness.datum),
        encoded=bytes_view(witness.encoded, anchor),
        error=witness.error,
        read=None if witness.error else json_text(witness.read),
        reason=witness.reason,
        path=witness.path,
    )


def parting_note(parting: Parting, anchor: str) -> PartingNote:
    """Where rules and data part, for people."""
    return PartingNote(
        title=f"{DIRECTIONS[parting.direction]}: {_PARTED[parting.by_rules, parting.by_data].lower()}"
        if (parting.by_rules, parting.by_data) in _PARTED
        else DIRECTIONS[parting.direction],
        sentence=parting.sentence,
        proof=proof_of(parting.witness, parting.direction, anchor),
    )


def edit_view(anchor: str, title: str, before: str, after: str, *, limit: int | None = None) -> EditView:
    """An edit: the two texts compared, and the whole text after it unless it is longer than `limit`."""
    change = laid_out_diff(before, after, str if "\n" in before.strip() else _laid_out)
    return EditView(
        anchor=anchor, title=title, change=change, text=after if limit is None or len(after) <= limit else ""
    )


def _laid_out(text: str) -> str:
    """A JSON text of one line, a line an item; any other as it is."""
    try:
        return laid_out(text)
    except (ValueError, RecursionError):
        return text


def rename_views(renames: Sequence[Rename], text: str, limit: int | None = None) -> tuple[RenameView, ...]:
    """Suspected renames, the likeliest first and at most `limit`; `text` is the new schema's, which their edits change."""
    ordered = sorted(renames, key=lambda item: -item.score)[:limit]
    return tuple(
        RenameView(
            path=item.path,
            sentence=f"{item.message[:1].upper()}{item.message[1:]}.",
            percent=round(item.score * 100),
            reasons=item.reasons,
            edit=edit_view(f"rename-{number}", item.edit.title, text, item.edit.text, limit=MAX_WHOLE)
            if item.edit
            else None,
            is_edit_tried=item.is_edit_tried,
            from_path=item.from_path,
        )
        for number, item in enumerate(ordered, start=1)
    )
