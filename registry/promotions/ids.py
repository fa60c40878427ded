"""Which schema id the target will give: pure. An expectation, since an unrelated registration may come first."""

from __future__ import annotations

from collections.abc import Mapping

from registry.promotions.plan import GIVEN_ID, OTHER_ID, SAME_ID, UNKNOWN_ID, IdOutlook, Ids
from registry.subjects.models import MODES_WITH_IDS

#: the mode that takes ids as they come


class IdBook:
    """The ids of the target's contexts while the steps of a plan take theirs, one after the other."""

    def __init__(self, contexts: Mapping[str, Ids], *, is_mirror: bool = False) -> None:
        self._is_mirror = is_mirror
        self._next = {name: ids.next_id for name, ids in contexts.items()}
        self._known = {name: dict(ids.of_identity) for name, ids in contexts.items()}
        self._stands_for = {name: dict(ids.identity_of) for name, ids in contexts.items()}

    def is_free_for(self, context: str, schema_id: int, identity: str) -> bool:
        """Whether the id stands for nothing there, or for this very definition."""
        return self._stands_for.get(context, {}).get(schema_id, identity) == identity

    def expect(self, context: str, identity: str, source_id: int | None, mode: str) -> tuple[int | None, IdOutlook]:
        """The id that a definition gets, and how it stands to the source's; a remote registry's next id isn't known."""
        known, taken = self._known.setdefault(context, {}), self._stands_for.setdefault(context, {})
        if mode in MODES_WITH_IDS:
            if source_id is None or not self.is_free_for(context, source_id, identity):
                return None, UNKNOWN_ID
            known[identity], taken[source_id] = source_id, identity
            self._next[context] = max(self._next.get(context, 1), source_id + 1)
            return source_id, GIVEN_ID
        if identity not in known:
            if self._is_mirror:
                return None, UNKNOWN_ID
            given = self._next.get(context, 1)
            known[identity], taken[given], self._next[context] = given, identity, given + 1
        return known[identity], compared(known[identity], source_id)


def compared(expected: int | None, source_id: int | None) -> IdOutlook:
    """How an id at the target stands to the source's."""
    if expected is None or source_id is None:
        return UNKNOWN_ID
    return SAME_ID if expected == source_id else OTHER_ID
