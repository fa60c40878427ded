"""A schema proposed from what messages held: the declared one with what it doesn't declare yet, or one of its own. Pure.

What was seen is no promise: every field is proposed as optional, of the kinds that were seen, and the notes say on how
many messages that rests and what was left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from registry.drift import proposing_avro, proposing_json
from registry.drift.proposing_tree import Notes, tree_of
from registry.errors import InvalidInput
from registry.observations import FieldProfile

__all__ = ["Declaration", "Proposal", "propose"]

_WRITERS: Final = {"AVRO": proposing_avro, "JSON": proposing_json}
MOST_NAMED: Final = 12


@dataclass(frozen=True)
class Declaration:
    """The schema that is declared, as its text."""

    schema_type: str
    text: str


@dataclass(frozen=True)
class Proposal:
    """A proposed text: the paths that it adds, and what a reviewer should know of it."""

    schema_type: str
    text: str
    added: tuple[str, ...]
    note: str


def propose(
    seen: Iterable[FieldProfile], declared: Declaration | None, *, name: str, schema_type: str = "JSON"
) -> Proposal:
    """The declared schema with the fields that were seen and aren't in it; without one, a schema of those fields.

    `name` is what a new schema is called, `schema_type` its format. Raises InvalidInput where nothing can be proposed.
    """
    fields = sorted(seen, key=lambda each: each.path)
    root = tree_of(fields)
    kind = declared.schema_type if declared else schema_type
    writer = _WRITERS.get(kind)
    if writer is None:
        raise InvalidInput(
            f"No text is proposed for {kind.capitalize()}: its fields have numbers, which are for a person to give."
        )
    notes = Notes(max((each.messages for each in fields), default=0))
    if declared is None:
        document: Any = writer.new_schema(root, name, notes)
    else:
        document = _read(declared.text)
        writer.add_to(document, root, notes)
    if not notes.added:
        more = f" {notes.left_out_words()}" if notes.left_out else ""
        raise InvalidInput(f"The data holds no field that the schema doesn't declare.{more}")
    return Proposal(kind, _written(document), tuple(notes.added), notes.words(MOST_NAMED))


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInput("The declared schema isn't a JSON text that fields could be added to.") from None


def _written(document: Any) -> str:
    try:
        return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    except (ValueError, RecursionError):
        raise InvalidInput("The declared schema holds a number that JSON can't write, or is nested too deep.") from None
