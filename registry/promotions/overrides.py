"""An approval in spite of failing checks, as it is kept: the reason, and the codes of the checks that it passes over."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from registry.promotions.models import Review

#: stands between the two
IN_SPITE_OF: Final = "\nin spite of: "
#: codes of checks that stand in the way of applying, not of approving
AT_APPLYING: Final = frozenset({"acknowledged", "freeze", "threads"})


def override_text(reason: str, codes: Iterable[str]) -> str:
    """What a review keeps of an override."""
    return f"{reason}{IN_SPITE_OF}{', '.join(sorted(set(codes)))}"


def reason_of(review: Review) -> str:
    """The reason of an override; empty where nothing is passed over."""
    return review.override.rpartition(IN_SPITE_OF)[0]


def overridden(review: Review) -> frozenset[str]:
    """The codes of the checks that an approval passes over."""
    _, mark, codes = review.override.rpartition(IN_SPITE_OF)
    return frozenset(codes.split(", ")) if mark else frozenset()
