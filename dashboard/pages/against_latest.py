"""A text that isn't registered, compared with the newest version of its subject: for editors, reports and findings."""

from __future__ import annotations

from collections.abc import Sequence

from dashboard.pages.change_cards import MAX_CARDS, Notes, present_comparison
from dashboard.pages.data_evidence import comparison_notes
from dashboard.presenters.comparison import Comparison
from registry.access.roles import Actor, require
from registry.errors import NotFound
from registry.formats.base import Reference
from registry.subjects import selectors
from registry.subjects.names import SubjectName
from registry.subjects.selectors.places import Registry


def against_latest(
    registry: Registry,
    subject: SubjectName,
    *,
    by: Actor,
    text: str,
    schema_type: str,
    references: Sequence[Reference] = (),
    level: str = "",
    notes: Notes | None = None,
    limit: int | None = None,
    is_whole: bool = False,
) -> Comparison | None:
    """What the text changes of the newest live version, under a level or ("") the one in force; None without a version.

    A text that can't be parsed is a comparison with a problem. `notes` are what data say, None where that isn't known
    yet; at most `limit` cards are made, None for as many as on other pages; all
    if `is_whole`. Raises NotAllowed.
    """
    require(by, "schema.read", registry=registry.name, subject=subject.qualified)
    try:
        newest = selectors.list_versions(registry, subject)[-1]
    except NotFound:
        return None
    found = selectors.compare_text(selectors.Side(registry, subject, newest), text, schema_type, references)
    return present_comparison(
        found,
        registry.name,
        registry.name,
        level=level or selectors.effective_config(registry, subject).level,
        notes=comparison_notes(registry, subject, found, by=by) if notes is None else notes,
        by=by,
        limit=None if is_whole else limit or MAX_CARDS,
    )
