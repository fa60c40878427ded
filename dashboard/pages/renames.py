"""Suspected renames with what was decided of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from django.urls import reverse

from dashboard.presenters.proof import RenameChoice, RenameDecided, RenameView
from registry.access.roles import Actor, refusal
from registry.promotions.selectors.renames import decided_renames
from registry.promotions.services.renaming import ACTION
from registry.subjects.names import SubjectName


def with_decisions(
    views: Sequence[RenameView], registries: Sequence[str], subject: SubjectName, *, by: Actor | None = None
) -> tuple[RenameView, ...]:
    """The views with the newest decision of each in the registries, and the form of one in the last of them.

    Without `by` nothing can be decided there. One query, none where nothing is suspected.
    """
    if not views:
        return ()
    decided = decided_renames(set(registries), subject)
    registry, found = registries[-1], []
    for view in views:
        info = decided.get((view.from_path, view.path))
        choice = None
        if by is not None:
            place = info.registry if info else registry
            choice = RenameChoice(
                url=reverse("ui:rename", args=[place, subject.qualified]),
                reason=refusal(by, ACTION, registry=place, subject=subject.qualified),
            )
        told = (
            RenameDecided(is_rename=info.is_rename, who=info.decided_by, at=info.decided_at, why=info.reason)
            if info
            else None
        )
        # What is no rename gets no alias.
        edit = None if info is not None and not info.is_rename else view.edit
        found.append(replace(view, decided=told, choice=choice, edit=edit))
    return tuple(found)
