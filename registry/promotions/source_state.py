"""What the environment that a promotion comes from says against it: open breaks there, and versions that are newer."""

from __future__ import annotations

from typing import Final

from registry.promotions.holdings import named_in
from registry.promotions.outlook import open_breaks
from registry.promotions.plan import NEWER, SOURCE_DRIFT, WARN, Check, Plan, Wish
from registry.subjects.models import Registry, SchemaVersion
from registry.subjects.names import SubjectName

_CURE: Final = "Resolve or acknowledge what is open there, or approve it with a comment that says why it may come."


def checks_of_source(wish: Wish, plan: Plan) -> list[Check]:
    """Of each subject that the plan writes, its open break findings at the source, and that it has a newer version there.

    They are counted and not told: whoever may read the request may not read the source. An approval binds to the first,
    so that a break which opens later voids it. Two queries; no checks for what comes from no environment.
    """
    if wish.source is None or wish.source.pk == wish.target.pk:
        return []
    place = wish.source.registry
    steps = {step.subject: step for step in plan.steps if step.writes and step.source_version}
    if not steps:
        return []
    breaks = open_breaks(place, list(steps))
    newest = _newest(place, [item.subject for item in wish.items])
    found = []
    for subject, step in steps.items():
        newer = newest.get(subject, 0)
        is_newer = newer > step.source_version
        if subject in breaks:
            count = len(breaks[subject])
            said = f"{count} break finding{'s are' if count > 1 else ' is'} open for {subject} in {place.name}."
            if is_newer:
                said += (
                    f" Version {newer} there is newer than version {step.source_version}, which this request brings."
                )
            found.append(
                Check(
                    SOURCE_DRIFT, f"drift of {subject} at the source", WARN, said, _CURE, subject=subject, binding=True
                )
            )
        if is_newer:
            said = f"{place.name} has version {newer} of {subject}; this request brings version {step.source_version}."
            cure = "Ask for the newest version, if that is the one that is meant."
            found.append(Check(NEWER, f"newest version of {subject}", WARN, said, cure, subject=subject))
    return found


def _newest(registry: Registry, names: list[SubjectName]) -> dict[str, int]:
    """The newest live version of each of these subjects."""
    rows = SchemaVersion.objects.filter(
        named_in(names, "subject__"), subject__context__registry=registry, deleted_at=None
    )
    found: dict[str, int] = {}
    for context, subject, version in rows.values_list("subject__context__name", "subject__name", "version"):
        name = SubjectName(context, subject).qualified
        found[name] = max(version, found.get(name, 0))
    return found
