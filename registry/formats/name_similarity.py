"""Similarity of two names, the basis of suspected renames in every format."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final

#: from this score on, two fields count as a suspected rename
SUSPICION: Final = 0.6
#: only names up to this length are cached
_SHORT: Final = 100
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def rename_score(
    old: str, new: str, by_name: float, clues: Sequence[tuple[float, str]]
) -> tuple[float, tuple[str, ...]]:
    """Score from 0 to 1 how likely a field was renamed, and give the reasons.

    `by_name` is the weight of the names' similarity. `clues` are the other shares with their reasons, the type's first.
    A score below SUSPICION may be too low, because most pairs of names need no comparison letter by letter.
    """
    shares, reasons = [share for share, _ in clues], [reason for _, reason in clues]
    likeness = name_likeness(old, new, least=(SUSPICION - 0.01 - sum(shares)) / by_name)  # 0.01: scores are rounded
    if likeness >= 0.5:
        reasons.insert(1, f"alike names ({round(likeness * 100)} %)")
    shares.insert(1, by_name * likeness)
    return round(min(sum(shares), 1.0), 2), tuple(reasons)


def name_likeness(old: str, new: str, *, least: float = 0.0) -> float:
    """Return the similarity of two names from 0 to 1, by words (camelCase and snake_case) and by letters.

    The result may be too low if it is less than `least`.
    """
    words_old, words_new = words_of(old), words_of(new)
    common = len(words_old & words_new)
    by_words = 0.9 * common / min(len(words_old), len(words_new)) if words_old and words_new else 0.0
    enough = max(by_words, least)
    # upper bound of the ratio: the shorter name's letters, twice, over the letters of both
    if 2 * min(len(old), len(new)) < enough * (len(old) + len(new)):
        return by_words
    letters = SequenceMatcher(None, old.lower(), new.lower())
    return by_words if letters.quick_ratio() < enough else max(letters.ratio(), by_words)


def words_of(name: str) -> frozenset[str]:
    """Return the words of a name in lower case."""
    return _kept_words(name) if len(name) <= _SHORT else _words(name)


def _words(name: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(name))


#: cached because each name is compared with several others
_kept_words = lru_cache(maxsize=4_000)(_words)
