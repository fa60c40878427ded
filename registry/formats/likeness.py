"""How alike two names are: what a suspected rename is measured by, in every format."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import Final

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def name_likeness(old: str, new: str) -> float:
    """How alike two names are, from 0 to 1: by their words (camelCase and snake_case) and by their letters."""
    words_old, words_new = words_of(old), words_of(new)
    common = len(words_old & words_new)
    by_words = common / min(len(words_old), len(words_new)) if words_old and words_new else 0.0
    letters = SequenceMatcher(None, old.lower(), new.lower())
    if letters.real_quick_ratio() <= 0.9 * by_words:  # more letters can't be alike than that
        return 0.9 * by_words
    return max(letters.ratio(), 0.9 * by_words)


def words_of(name: str) -> frozenset[str]:
    """The words that a name is made of, in small letters."""
    return frozenset(word.lower() for word in _WORD.findall(name))
