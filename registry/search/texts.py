"""Texts as the index keeps them. Pure."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Mapping
from typing import Final

from registry.search.models import DOC, NAME, PARENT, TAGS, TYPE

#: characters that are kept of each kind
LONGEST: Final[Mapping[str, int]] = {NAME: 500, PARENT: 1_500, TYPE: 500, DOC: 2_000, TAGS: 2_000}


def kept(kind: str, value: str) -> str:
    """As much of a text as is kept, as it is kept."""
    return clean(value)[: LONGEST[kind]]


def clean(text: str) -> str:
    """The text as PostgreSQL can hold it: replacement signs for NUL and for half characters."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def fold(text: str) -> str:
    """The text as it is searched: without upper case, by the same rules as the words of a query."""
    return text.casefold()


def lines(words: Iterable[str]) -> str:
    """The words, one a line, with a line end before the first and after the last: so a whole one can be searched for."""
    held = [word.replace("\n", " ") for word in words]
    return "\n" + "".join(f"{word}\n" for word in held) if held else ""


def split_lines(text: str) -> tuple[str, ...]:
    """The words that `lines` has put together."""
    return tuple(filter(None, text.split("\n")))


def digest(value: str) -> uuid.UUID:
    """The key of a kept text."""
    return uuid.UUID(bytes=hashlib.sha256(value.encode()).digest()[:16])


def term_digest(kind: str, value: str) -> uuid.UUID:
    """The key of a text of a kind."""
    return digest(kept(kind, value))
