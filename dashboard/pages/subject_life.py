"""The life cycle of a subject's versions on its page, and what people decide of one."""

from __future__ import annotations

from typing import Final

from django.urls import reverse

from dashboard.links import subject_url
from dashboard.presenters.frame import Action, Choice, Field
from dashboard.presenters.subject_life import LifeMark, LifeState, StandingPart
from registry.access.roles import Actor, refusal
from registry.promotions.models import PromotionRequest
from registry.promotions.selectors import VersionLife
from registry.subjects.models import VersionStanding
from registry.subjects.names import SubjectName
from registry.subjects.selectors.standing import Standing

GOOD: Final = "good"
#: standing → its choice in the form
CHOICES: Final = {
    VersionStanding.DEPRECATED: "Deprecated: use another one, until the end at most",
    VersionStanding.RETIRED: "Retired: not for new data; reading goes on",
    VersionStanding.QUARANTINED: "In quarantine: came without a request, and isn’t trusted",
}
ADOPT_FIELD: Final = Field(
    name="reason", label="How it came here, and why it should stay", kind="textarea", rows=2, required=True
)


def marks_of(life: VersionLife) -> tuple[LifeMark, ...]:
    """The states of a version, as its row shows them; releases are shown by the environments that it lives in."""
    marks = [_ghost()] if life.is_ghost else []
    marks += [
        LifeMark(
            state=LifeState.of(each.state),
            word=f"{LifeState.of(each.state).look.word} for {each.target}",
            sentence=f"Request {each.id} to {each.kind} it in {each.target} is {each.state}.",
            url=reverse("ui:promotion", args=[each.id]),
        )
        for each in life.requests
    ]
    if life.standing is not None:
        marks.append(standing_mark(life.standing))
    return tuple(marks)


def _ghost() -> LifeMark:
    return LifeMark(
        state=LifeState.GHOST,
        word=LifeState.GHOST.look.word,
        sentence="It came here without a request. Have it adopted, or put it in quarantine.",
    )


def standing_mark(standing: Standing) -> LifeMark:
    """What was decided of a version."""
    state = LifeState.of(standing.standing)
    until = f" until {standing.ends_at:%Y-%m-%d}" if standing.ends_at else ""
    return LifeMark(state=state, word=f"{state.look.word}{until}", sentence=standing.message)


def standing_part(actor: Actor, registry: str, name: SubjectName, life: VersionLife) -> StandingPart:
    """What is known of the version that is looked at, and the forms that change it."""
    reason = refusal(actor, "version.standing", registry=registry, subject=name.qualified)
    standing = life.standing
    releases = tuple(
        LifeMark(
            state=LifeState.RELEASED,
            word=f"Released to {each.environment}",
            sentence=f"As version {each.version}, by {each.released_by} on {each.released_at:%Y-%m-%d %H:%M} UTC.",
            url=reverse("ui:promotion", args=[each.request]),
        )
        for each in life.releases
    )
    url = f"{subject_url(registry, name.qualified)}standing"
    return StandingPart(
        version=life.version,
        marks=(*releases, *marks_of(life)),
        says=_says(standing),
        fields=_fields(standing),
        submit=Action(label="Set", url=url, method="post", allowed=not reason, reason=reason),
        clear=Action(label="Back into good standing", url=url, method="post", allowed=not reason, reason=reason)
        if standing is not None
        else None,
        adopt=_adopt(actor, registry, name, life),
        adopt_field=ADOPT_FIELD,
    )


def _says(standing: Standing | None) -> tuple[str, ...]:
    if standing is None:
        return ()
    since = (
        f"{LifeState.of(standing.standing).look.word} since {standing.decided_at:%Y-%m-%d}, by {standing.decided_by}."
    )
    until = (f"To be used until {standing.ends_at:%Y-%m-%d} at most.",) if standing.ends_at else ()
    return (since, *until, standing.message)


def _fields(standing: Standing | None) -> tuple[Field, ...]:
    chosen = standing.standing if standing else VersionStanding.DEPRECATED
    choices = tuple(Choice(value=value, label=label, selected=value == chosen) for value, label in CHOICES.items())
    return (
        Field(name="standing", label="Standing", kind="select", choices=choices, required=True),
        Field(
            name="message",
            label="Why, and what to use instead",
            kind="textarea",
            rows=2,
            value=standing.message if standing else "",
            required=True,
            help="Readers get it in a header, people on pages.",
        ),
        Field(
            name="ends_at",
            label="To be used until",
            kind="date",
            value=f"{standing.ends_at:%Y-%m-%d}" if standing and standing.ends_at else "",
            help="For a deprecated version.",
        ),
    )


def _adopt(actor: Actor, registry: str, name: SubjectName, life: VersionLife) -> Action | None:
    asked = any(each.kind == PromotionRequest.ADOPT and each.target == registry for each in life.requests)
    if not life.is_ghost or asked or life.deleted_at is not None:
        return None
    reason = refusal(actor, "promotion.request", registry=registry, subject=name.qualified)
    url = f"{subject_url(registry, name.qualified)}adopt"
    return Action(label="Ask for its adoption", url=url, method="post", allowed=not reason, reason=reason)
