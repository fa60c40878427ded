"""Likeness of names: what is cut short tells the same suspicions as comparing every letter."""

from __future__ import annotations

from difflib import SequenceMatcher

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.formats.name_similarity import SUSPICION, name_likeness, rename_score, words_of

NAMES = st.text(alphabet="abcAB01_", max_size=12) | st.sampled_from(
    ["customer_id", "customerId", "client_id", "id", "email", "e_mail", "mail_address", "a" * 150]
)
CLUES = st.lists(st.sampled_from([(0.2, "the same position"), (0.1, "the same default"), (0.25, "the same doc")]))


def _every_letter(old: str, new: str) -> float:
    """The likeness by its definition: nine tenths of the share of words, or the share of letters."""
    fewest = min(len(words_of(old)), len(words_of(new)))
    by_words = 0.9 * len(words_of(old) & words_of(new)) / fewest if fewest else 0.0
    return max(by_words, SequenceMatcher(None, old.lower(), new.lower()).ratio())


@pytest.mark.requirement("GOO-3")
@given(NAMES, NAMES)
def test_the_likeness_is_that_of_words_or_letters(old: str, new: str) -> None:
    assert name_likeness(old, new) == pytest.approx(_every_letter(old, new))


@pytest.mark.requirement("GOO-3")
@given(NAMES, NAMES, st.sampled_from([0.2, 0.25, 0.3]), CLUES)
def test_a_suspicion_is_the_same_however_little_was_compared(
    old: str, new: str, by_type: float, clues: list[tuple[float, str]]
) -> None:
    clues = [(by_type, "the same type"), *clues]
    score, reasons = rename_score(old, new, 0.45, clues)
    whole = round(min(sum([by_type, 0.45 * _every_letter(old, new), *(share for share, _ in clues[1:])]), 1.0), 2)
    if whole >= SUSPICION:
        assert score == whole
        alike = _every_letter(old, new)
        name_reason = (f"alike names ({round(alike * 100)} %)",) if alike >= 0.5 else ()
        first, *others = (reason for _, reason in clues)
        assert reasons == (first, *name_reason, *others)
    else:
        assert score <= whole
