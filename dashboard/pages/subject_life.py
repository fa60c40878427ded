"""The life cycle of a subject's versions on its page, and what people decide of one."""

from __future__ import annotations

from typing import Final

from django.urls import reverse
from django.utils.translation import gettext

from dashboard.links import subject_url
from dashboard.presenters.frame import Action, Choice, Field
from dashboard.presenters.subject_life import LifeMark, LifeState, StandingPart
from dashboard.texts import later
from registry.access.roles import Actor, refusal
from registry.promotions.models import PromotionRequest
from registry.promotions.selectors import VersionLife
from registry.subjects.models import VersionStanding
from registry.subjects.names import SubjectName
from registry.subjects.selectors.standing import Standing

GOOD: Final = "good"
#: standing → its choice in the form
CHOICES: Final = {
    VersionStanding.DEPRECATED: later("Deprecated: use another one, until the end at most"),
    VersionStanding.RETIRED: later("Retired: not for new data; reading goes on"),
    VersionStanding.QUARANTINED: later("In quarantine: came without a request, and isn’t trusted"),
}
ADOPT_FIELD: Final = Field(
    name="reason", label=later("How it came here, and why it should stay"), kind="textarea", rows=2, required=True
)
ROLL_BACK_FIELD: Final = Field(
    name="reason",
    label=later("What went wrong with the newer version"),
    kind="textarea",
    rows=2,
    required=True,
    help=later("It becomes a request: its text is registered again under the next number, and nothing is erased."),
)


def marks_of(life: VersionLife) -> tuple[LifeMark, ...]:
    """The states of a version, as its row shows them; releases are shown by the environments that it lives in."""
    marks = [_ghost()] if life.is_ghost else []
    marks += [
        LifeMark(
            state=LifeState.of(each.state),
            word=gettext("%(word)s for %(target)s")
            % {"word": LifeState.of(each.state).look.word, "target": each.target},
            sentence=gettext("Request %(id)s to %(kind)s it in %(target)s is %(state)s.")
            % {"id": each.id, "kind": each.kind, "target": each.target, "state": each.state},
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
        sentence=gettext("It came here without a request. Have it adopted, or put it in quarantine."),
    )


def standing_mark(standing: Standing) -> LifeMark:
    """What was decided of a version."""
    state = LifeState.of(standing.standing)
    word = str(state.look.word)
    if standing.ends_at:
        word = gettext("%(state)s until %(date)s") % {"state": word, "date": f"{standing.ends_at:%Y-%m-%d}"}
    return LifeMark(state=state, word=word, sentence=standing.message)


def standing_part(
    actor: Actor, registry: str, name: SubjectName, life: VersionLife, *, newest: int = 0
) -> StandingPart:
    """What is known of the version that is looked at, and the forms that change it.

    `newest` is the version that is current in an environment, 0 where the registry is none.
    """
    reason = refusal(actor, "version.standing", registry=registry, subject=name.qualified)
    standing = life.standing
    releases = tuple(
        LifeMark(
            state=LifeState.RELEASED,
            word=gettext("Released to %(environment)s") % {"environment": each.environment},
            sentence=gettext("As version %(version)s, by %(released_by)s on %(released_at)s UTC.")
            % {
                "version": each.version,
                "released_by": each.released_by,
                "released_at": f"{each.released_at:%Y-%m-%d %H:%M}",
            },
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
        submit=Action(label=gettext("Set"), url=url, method="post", allowed=not reason, reason=reason),
        clear=Action(
            label=gettext("Back into good standing"), url=url, method="post", allowed=not reason, reason=reason
        )
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
        (gettext("To be used until %(ends_at)s at most.") % {"ends_at": f"{standing.ends_at:%Y-%m-%d}"},)
        if standing.ends_at
        else ()
    )
    return (since, *until, standing.message)


def _fields(standing: Standing | None) -> tuple[Field, ...]:
    chosen = standing.standing if standing else VersionStanding.DEPRECATED
    choices = tuple(Choice(value=value, label=label, selected=value == chosen) for value, label in CHOICES.items())
    return (
        Field(name="standing", label=gettext("Standing"), kind="select", choices=choices, required=True),
        Field(
            name="message",
            label=gettext("Why, and what to use instead"),
            kind="textarea",
            rows=2,
            value=standing.message if standing else "",
            required=True,
            help=gettext("Readers get it in a header, people on pages."),
        ),
        Field(
            name="ends_at",
            label=gettext("To be used until"),
            kind="date",
            value=f"{standing.ends_at:%Y-%m-%d}" if standing and standing.ends_at else "",
            help=gettext("For a deprecated version."),
        ),
    )


def _adopt(actor: Actor, registry: str, name: SubjectName, life: VersionLife) -> Action | None:
    asked = any(each.kind == PromotionRequest.ADOPT and each.target == registry for each in life.requests)
    if not life.is_ghost or asked or life.deleted_at is not None:
        return None
    reason = refusal(actor, "promotion.request", registry=registry, subject=name.qualified)
    url = f"{subject_url(registry, name.qualified)}adopt"
    return Action(label=gettext("Ask for its adoption"), url=url, method="post", allowed=not reason, reason=reason)


def _roll_back(actor: Actor, registry: str, name: SubjectName, life: VersionLife, newest: int) -> Action | None:
    """Back to this version, where a newer one is current."""
    asked = any(each.kind == PromotionRequest.ROLL_BACK and each.target == registry for each in life.requests)
    if not newest or life.version >= newest or asked or life.deleted_at is not None:
        return None
    reason = refusal(actor, "promotion.request", registry=registry, subject=name.qualified)
    return Action(
        label=gettext("Ask to roll back to version %(version)s") % {"version": life.version},
        url=f"{subject_url(registry, name.qualified)}roll-back",
        method="post",
        allowed=not reason,
        reason=reason,
    )
