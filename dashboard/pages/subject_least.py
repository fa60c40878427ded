"""The least version of a subject that producers may still write, among the subject's settings."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext

from dashboard.presenters.frame import Action, Field
from dashboard.presenters.subject_life import LeastPart
from registry.access.roles import Actor, refusal
from registry.audit.past import moment
from registry.drift.selectors.least import least_version_of
from registry.drift.services.least import ACTION
from registry.subjects.models import Registry
from registry.subjects.names import SubjectName


def least_part(place: Registry, name: SubjectName, newest: int, actor: Actor) -> LeastPart | None:
    """What is set, and the form; None in the past, of which nothing is kept. `newest` is the newest live version."""
    if moment() is not None:
        return None
    info = least_version_of(place, name)
    reason = refusal(actor, ACTION, registry=place.name, subject=name.qualified)
    if not reason and newest < 2:
        reason = gettext("There is no older version that could be forbidden.")
    url = reverse("ui:least_version", args=[place.name, name.qualified])
    return LeastPart(
        version=info.version if info else None,
        is_over=info is not None and info.version > newest,
        reason=info.reason if info else "",
        set_by=info.set_by if info else "",
        set_at=info.set_at if info else None,
        fields=(
            Field(
                name="version",
                label=gettext("Least version"),
                required=True,
                kind="number",
                value=str(info.version) if info else "",
                help=gettext("From 2 to %(newest)s.") % {"newest": newest},
            ),
            Field(
                name="reason",
                label=gettext("Why older ones should no longer be written"),
                required=True,
                kind="textarea",
                rows=2,
                value=info.reason if info else "",
            ),
        ),
        submit=Action(
            label=gettext("Set the least version"), url=url, method="post", allowed=not reason, reason=reason
        ),
        clear=Action(label=gettext("Let any be written again"), url=url, method="post", icon="undo-2")
        if info and not refusal(actor, ACTION, registry=place.name, subject=name.qualified)
        else None,
    )
