"""The life cycle of versions on a subject's page: one enum of states, one mark that draws them, the form of a standing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dashboard.presenters.frame import Action, Field
from dashboard.presenters.looks import Shown
from dashboard.texts import later


class LifeState(Shown):
    """What became of a version; the last two are said of a subject as a whole."""

    DRAFT = ("draft", "unknown", "pencil", later("Draft"))
    ASKED = ("in review", "info", "git-pull-request-arrow", later("In review"))
    APPROVED = ("approved", "info", "circle-check", later("Approved"))
    SCHEDULED = ("scheduled", "info", "clock", later("Scheduled"))
    APPLYING = ("applying", "info", "loader", later("Being applied"))
    FAILED = ("failed", "breaks", "octagon-x", later("Failed half-way"))
    RELEASED = ("released", "ok", "rocket", later("Released"))
    GHOST = ("ghost", "care", "circle-question-mark", later("Ghost"))
    DEPRECATED = ("deprecated", "care", "hourglass", later("Deprecated"))
    RETIRED = ("retired", "unknown", "circle-slash", later("Retired"))
    QUARANTINED = ("quarantined", "breaks", "ban", later("In quarantine"))
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
