"""Labels of requests: short words by which people group them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from registry.errors import InvalidInput

MAX_LABELS: Final = 10
MAX_LABEL: Final = 40


def clean_label(text: str) -> str:
    """A label as it is kept and looked for: in small letters, without space around it. Raises InvalidInput."""
    found = " ".join(text.split()).lower()
    if not found or len(found) > MAX_LABEL:
        raise InvalidInput(f"A label takes 1 to {MAX_LABEL} characters; this has {len(found)}.", field="labels")
    if not found.isprintable() or "," in found:
        raise InvalidInput("A label has a comma or a character that can't be shown; take it out.", field="labels")
    return found


def written_labels(text: str) -> list[str]:
    """The labels of a line that people write, with commas between them; what is empty is none."""
    return [label.strip() for label in text.split(",") if label.strip()]


def clean_labels(labels: Iterable[str]) -> list[str]:
    """Labels in order, each once. Raises InvalidInput, also for too many."""
    found = sorted({clean_label(label) for label in labels})
    if len(found) > MAX_LABELS:
        raise InvalidInput(f"These are {len(found)} labels; a request takes {MAX_LABELS}.", field="labels")
    return found
