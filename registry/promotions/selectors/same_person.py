"""Which accounts an administrator said to be one person's."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from registry.promotions.models import SamePerson


@dataclass(frozen=True)
class SamePersonInfo:
    """A statement about two accounts: why, by whom and when."""

    id: int
    one: str
    other: str
    reason: str
    stated_by: str
    stated_at: datetime


def same_person_statements() -> list[SamePersonInfo]:
    """All that is stated, the newest first; one query."""
    columns = ("id", "one__username", "other__username", "reason", "stated_by", "stated_at")
    return [SamePersonInfo(*row) for row in SamePerson.objects.order_by("-pk").values_list(*columns)]
