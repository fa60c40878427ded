"""How far the index of the search is behind what is registered."""

from __future__ import annotations

from registry.search.models import StaleSubject

MOST = 10_000


def backlog() -> int:
    """Entries that are to be made anew; counted to ten thousand. One query."""
    return StaleSubject.objects.order_by()[:MOST].count()
