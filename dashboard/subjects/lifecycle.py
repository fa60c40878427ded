"""The life cycle of a subject's versions: their states, their status forms, and the minimum version for producers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.badges import Shown
from dashboard.components.links import subject_url
from dashboard.components.translation import later
from dashboard.components.widgets import Action, Choice, Field
from registry.access.roles import Actor, refusal
from registry.audit.time_travel import moment
from registry.drift.services.minimum_version import ACTION, least_version_of
from registry.promotions.models import PromotionRequest
from registry.promotions.selectors import VersionTimeline
from registry.subjects.models import Registry, VersionStanding
from registry.subjects.versions.qualified_names import SubjectName
from registry.subjects.versions.versions import Standing


class LifeState(Shown):
    """What became of a version; the last two are said of a subject as a whole."""

    DRAFT = ("draft", "unknown", "pencil", later("Draft"))
    ASKED = ("in review", "info", "git-pull-request-arrow", later("In review"))
    APPROVED = ("approved", "info", "circle-check", later("Approved"))
    SCHEDULED = ("scheduled", "info", "clock", later("Scheduled"))
    APPLYING = ("applying", "info", "loader", later("Applying"))
    FAILED = ("failed", "breaks", "octagon-x", later("Partly failed"))
    RELEASED = ("released", "ok", "rocket", later("Released"))
    GHOST = ("ghost", "care", "circle-question-mark", later("Unapproved"))
    DEPRECATED = ("deprecated", "care", "hourglass", later("Deprecated"))
    RETIRED = ("retired", "unknown", "circle-slash", later("Retired"))
    QUARANTINED = ("quarantined", "breaks", "ban", later("Quarantined"))
    REGISTERED = ("registered", "ok", "circle-check", later("Registered"))
    DELETED = ("deleted", "unknown", "circle-x", later("Soft-deleted"))


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeMark:
    """A state of a version: `word` follows the state's own ("to prod"), `sentence` says the rest, `url` leads there."""

    state: LifeState
    word: str
    sentence: str
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingPart:
    """What may be decided of the version that is looked at.

    `says` is what stands, in full. `fields` are the form's; `clear` brings the version back into good standing, `adopt`
    asks for the review of a ghost, `roll_back` to make an earlier version current again: each None where there is
    nothing to clear, to adopt or to roll back.
    """

    version: int
    marks: tuple[LifeMark, ...]
    says: tuple[str, ...]
    fields: tuple[Field, ...]
    submit: Action
    clear: Action | None = None
    adopt: Action | None = None
    adopt_field: Field | None = None
    roll_back: Action | None = None
    roll_back_field: Field | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastPart:
    """The least version that producers may still write (None: any), and the form that sets it; `clear` takes it back.

    `is_over`: no such version lives any more, nor a later one, so that it holds for none.
    """

    version: int | None
    is_over: bool
    reason: str
    set_by: str
    set_at: datetime | None
    fields: tuple[Field, ...]
    submit: Action
    clear: Action | None = None


GOOD: Final = "good"
#: standing → its choice in the form
CHOICES: Final = {
    VersionStanding.DEPRECATED: later("Deprecated: use another version, before the end date at the latest"),
    VersionStanding.RETIRED: later("Retired: not for new data, still readable"),
    VersionStanding.QUARANTINED: later("Quarantined: registered without a request and not trusted"),
}
ADOPT_FIELD: Final = Field(
    name="reason", label=later("How it was registered, and why to keep it"), kind="textarea", rows=2, required=True
)
ROLL_BACK_FIELD: Final = Field(
    name="reason",
    label=later("What is wrong with the newer version"),
    kind="textarea",
    rows=2,
    required=True,
    help=later(
        "This creates a request. Once it is applied, this schema is registered again under the next version "
        "number. Nothing is deleted."
    ),
)


def marks_of(life: VersionTimeline) -> tuple[LifeMark, ...]:
    """The states of a version, as its row shows them; releases are shown by the environments that it lives in."""
    marks = [_ghost()] if life.is_ghost else []
    marks += [
        LifeMark(
            state=LifeState.of(request.state),
            word=gettext("%(word)s for %(target)s")
            % {"word": LifeState.of(request.state).look.word, "target": request.target},
            sentence=gettext("Request %(id)s to %(kind)s it in %(target)s is %(state)s.")
            % {"id": request.id, "kind": request.kind, "target": request.target, "state": request.state},
            url=reverse("ui:promotion", args=[request.id]),
        )
        for request in life.requests
    ]
    if life.standing is not None:
        marks.append(standing_mark(life.standing))
    return tuple(marks)


def _ghost() -> LifeMark:
    return LifeMark(
        state=LifeState.GHOST,
        word=LifeState.GHOST.look.word,
        sentence=gettext("It was registered without a request. Request its adoption, or quarantine it."),
    )


def standing_mark(standing: Standing) -> LifeMark:
    """What was decided of a version."""
    state = LifeState.of(standing.standing)
    word = str(state.look.word)
    if standing.ends_at:
        word = gettext("%(state)s until %(date)s") % {"state": word, "date": f"{standing.ends_at:%Y-%m-%d}"}
    return LifeMark(state=state, word=word, sentence=standing.message)


def standing_part(
    actor: Actor, registry: str, name: SubjectName, life: VersionTimeline, *, newest: int = 0
) -> StandingPart:
    """What is known of the version that is looked at, and the forms that change it.

    `newest` is the version that is current in an environment, 0 where the registry is none.
    """
    reason = refusal(actor, "version.standing", registry=registry, subject=name.qualified)
    standing = life.standing
    releases = tuple(
        LifeMark(
            state=LifeState.RELEASED,
            word=gettext("Released to %(environment)s") % {"environment": release.environment},
            sentence=gettext("As version %(version)s, by %(released_by)s on %(released_at)s UTC.")
            % {
                "version": release.version,
                "released_by": release.released_by,
                "released_at": f"{release.released_at:%Y-%m-%d %H:%M}",
            },
            url=reverse("ui:promotion", args=[release.request]),
        )
        for release in life.releases
    )
    url = f"{subject_url(registry, name.qualified)}standing"
    return StandingPart(
        version=life.version,
        marks=(*releases, *marks_of(life)),
        says=_says(standing),
        fields=_fields(standing),
        submit=Action(label=gettext("Set status"), url=url, method="post", allowed=not reason, reason=reason),
        clear=Action(label=gettext("Reactivate"), url=url, method="post", allowed=not reason, reason=reason)
        if standing is not None
        else None,
        adopt=_adopt(actor, registry, name, life),
        adopt_field=ADOPT_FIELD,
        roll_back=_roll_back(actor, registry, name, life, newest),
        roll_back_field=ROLL_BACK_FIELD,
    )


def _says(standing: Standing | None) -> tuple[str, ...]:
    if standing is None:
        return ()
    since = gettext("%(word)s since %(decided_at)s, by %(decided_by)s.") % {
        "word": LifeState.of(standing.standing).look.word,
        "decided_at": f"{standing.decided_at:%Y-%m-%d}",
        "decided_by": standing.decided_by,
    }
    until = (
        (gettext("Use it until %(ends_at)s at the latest.") % {"ends_at": f"{standing.ends_at:%Y-%m-%d}"},)
        if standing.ends_at
        else ()
    )
    return (since, *until, standing.message)


def _fields(standing: Standing | None) -> tuple[Field, ...]:
    chosen = standing.standing if standing else VersionStanding.DEPRECATED
    choices = tuple(Choice(value=value, label=label, selected=value == chosen) for value, label in CHOICES.items())
    return (
        Field(name="standing", label=gettext("Status"), kind="select", choices=choices, required=True),
        Field(
            name="message",
            label=gettext("Reason, and what to use instead"),
            kind="textarea",
            rows=2,
            value=standing.message if standing else "",
            required=True,
            help=gettext("Shown to readers in a header, and to people on pages."),
        ),
        Field(
            name="ends_at",
            label=gettext("End date"),
            kind="date",
            value=f"{standing.ends_at:%Y-%m-%d}" if standing and standing.ends_at else "",
            help=gettext("Only for deprecated versions."),
        ),
    )


def _adopt(actor: Actor, registry: str, name: SubjectName, life: VersionTimeline) -> Action | None:
    is_asked = any(request.kind == PromotionRequest.ADOPT and request.target == registry for request in life.requests)
    if not life.is_ghost or is_asked or life.deleted_at is not None:
        return None
    reason = refusal(actor, "promotion.request", registry=registry, subject=name.qualified)
    url = f"{subject_url(registry, name.qualified)}adopt"
    return Action(label=gettext("Request adoption"), url=url, method="post", allowed=not reason, reason=reason)


def _roll_back(actor: Actor, registry: str, name: SubjectName, life: VersionTimeline, newest: int) -> Action | None:
    """Back to this version, where a newer one is current."""
    is_asked = any(
        request.kind == PromotionRequest.ROLL_BACK and request.target == registry for request in life.requests
    )
    if not newest or life.version >= newest or is_asked or life.deleted_at is not None:
        return None
    reason = refusal(actor, "promotion.request", registry=registry, subject=name.qualified)
    return Action(
        label=gettext("Request rollback to version %(version)s") % {"version": life.version},
        url=f"{subject_url(registry, name.qualified)}roll-back",
        method="post",
        allowed=not reason,
        reason=reason,
    )


def least_part(registry: Registry, name: SubjectName, newest: int, actor: Actor) -> LeastPart | None:
    """What is set, and the form; None in the past, of which nothing is kept. `newest` is the newest live version."""
    if moment() is not None:
        return None
    info = least_version_of(registry, name)
    reason = refusal(actor, ACTION, registry=registry.name, subject=name.qualified)
    if not reason and newest < 2:
        reason = gettext("There is no older version to exclude.")
    url = reverse("ui:least_version", args=[registry.name, name.qualified])
    return LeastPart(
        version=info.version if info else None,
        is_over=info is not None and info.version > newest,
        reason=info.reason if info else "",
        set_by=info.set_by if info else "",
        set_at=info.set_at if info else None,
        fields=(
            Field(
                name="version",
                label=gettext("Minimum version"),
                required=True,
                kind="number",
                value=str(info.version) if info else "",
                help=gettext("From 2 to %(newest)s.") % {"newest": newest},
            ),
            Field(
                name="reason",
                label=gettext("Why producers should no longer write older versions"),
                required=True,
                kind="textarea",
                rows=2,
                value=info.reason if info else "",
            ),
        ),
        submit=Action(label=gettext("Set minimum version"), url=url, method="post", allowed=not reason, reason=reason),
        clear=Action(label=gettext("Remove minimum version"), url=url, method="post", icon="undo-2")
        if info and not refusal(actor, ACTION, registry=registry.name, subject=name.qualified)
        else None,
    )
