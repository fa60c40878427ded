"""The states that pages show, each with a badge: tone (colour), icon and word, so that colour is never the only
sign.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, Self

from django.utils.translation import gettext

from dashboard.components.translation import gettext_lazy as _
from registry.formats import format_of

"""What people call the formats, by what the APIs call them."""


def missing_words(kind: str, method: str) -> str:
    """Say that the format doesn't offer the method; empty if it does."""
    format = format_of(kind)
    return "" if format.offers(method) else gettext("Not available for %(format)s.") % {"format": format}


def format_name(kind: str) -> str:
    """Return the display name of a format."""
    return str(format_of(kind))


#: access of a client as named in `registry` → label
ACCESS: Final = {"reads": _("reads"), "writes": _("writes"), "reads and writes": _("reads and writes")}
#: channel of a change as named in `registry` → label
CHANNELS: Final = {
    "confluent": _("REST API"),
    "product": _("product API"),
    "ui": _("page"),
    "task": _("task"),
    "command": "command",
}


def channel_name(channel: str) -> str:
    """Return the label of the channel of a change."""
    return str(CHANNELS.get(channel, channel))


@dataclass(frozen=True, slots=True)
class Look:
    """The appearance of a state: `tone` is a colour class, `icon` a name in the sprite, `word` the label."""

    tone: str
    icon: str
    word: str


class BadgeState(Enum):
    """Base of the states below: the value is the state's name in data, `look` its appearance."""

    look: Look

    def __new__(cls, value: str, tone: str, icon: str, word: str) -> BadgeState:
        """Create a member with its look."""
        member = object.__new__(cls)
        member._value_ = value
        member.look = Look(tone, icon, word)
        return member

    @classmethod
    def of(cls, value: str) -> Self:
        """Return the state with that name in data. Raises ValueError for an unknown name."""
        return cls(value)  # type: ignore[call-arg]  # a lookup by value; __new__ is only for the members

    @property
    def code(self) -> str:
        """The state's name in data, for class names and tests in templates."""
        return str(self.value)


class Verdict(BadgeState):
    """The result of a check or a change; UNKNOWN means not checked and is never green."""

    OK = ("ok", "ok", "circle-check", _("Compatible"))
    CARE = ("care", "care", "triangle-alert", _("Needs care"))
    BREAKS = ("breaks", "breaks", "octagon-x", _("Incompatible"))
    UNKNOWN = ("unknown", "unknown", "circle-dashed", _("Not checked"))

    @property
    def direction_word(self) -> str:
        """The label for one direction: can the reader read the data?"""
        labels = {"ok": gettext("works"), "care": gettext("with care"), "breaks": gettext("fails")}
        return labels.get(self.code, gettext("not checked"))

    @property
    def change_word(self) -> str:
        """The label for one change."""
        return {"ok": gettext("Safe"), "care": gettext("Needs care"), "breaks": gettext("Breaking")}.get(
            self.code, gettext("Not checked")
        )


class Check(BadgeState):
    """A check of a promotion request."""

    PASSED = ("pass", "ok", "circle-check", _("Passed"))
    WARNED = ("warn", "care", "triangle-alert", _("Warning"))
    NOTED = ("note", "info", "info", _("Note"))
    FAILED = ("fail", "breaks", "octagon-x", _("Failed"))
    SKIPPED = ("skipped", "unknown", "circle-slash", _("Skipped"))
    STALE = ("stale", "care", "hourglass", _("Stale"))


class Severity(BadgeState):
    """The severity of a finding."""

    BREAK = ("break", "breaks", "octagon-x", _("Break"))
    RISK = ("risk", "care", "triangle-alert", _("Risk"))
    NOTICE = ("notice", "info", "info", _("Notice"))


class SubjectHealth(BadgeState):
    """The health of a subject: its worst problem."""

    DRIFT = ("drift", "breaks", "octagon-x", _("Drift"))
    REQUEST = ("request", "breaks", "git-pull-request-arrow", _("Request blocked"))
    UNCHECKED = ("unchecked", "care", "triangle-alert", _("Not checked"))
    UNOWNED = ("unowned", "care", "user", _("No owner"))
    GOOD = ("good", "ok", "circle-check", _("Good"))


class FindingState(BadgeState):
    """The state of a finding."""

    OPEN = ("open", "care", "circle-dot", _("Open"))
    ACKNOWLEDGED = ("acknowledged", "info", "eye", _("Acknowledged"))
    RESOLVED = ("resolved", "ok", "circle-check", _("Resolved"))


class ScanState(BadgeState):
    """The state of a scan; EMPTY is a successful scan that read nothing: it is "not scanned", never green."""

    NEVER = ("never", "unknown", "circle-dashed", _("Not scanned"))
    QUEUED = ("queued", "info", "clock", _("Queued"))
    RUNNING = ("running", "info", "loader", _("Running"))
    DONE = ("scanned", "ok", "circle-check", _("Scanned"))
    EMPTY = ("not scanned", "unknown", "circle-dashed", _("Not scanned"))
    FAILED = ("failed", "breaks", "octagon-x", _("Failed"))
    CANCELLED = ("cancelled", "care", "ban", _("Cancelled"))


class RequestState(BadgeState):
    """The state of a promotion request."""

    DRAFT = ("draft", "unknown", "pencil", _("Draft"))
    IN_REVIEW = ("in review", "info", "message-square", _("In review"))
    APPROVED = ("approved", "ok", "shield-check", _("Approved"))
    SCHEDULED = ("scheduled", "info", "clock", _("Scheduled"))
    APPLYING = ("applying", "info", "loader", _("Applying"))
    APPLIED = ("applied", "ok", "circle-check", _("Applied"))
    REJECTED = ("rejected", "breaks", "circle-x", _("Rejected"))
    WITHDRAWN = ("withdrawn", "unknown", "undo-2", _("Withdrawn"))
    FAILED = ("failed", "breaks", "octagon-x", _("Failed"))


class RequestKind(BadgeState):
    """The kind of a promotion request."""

    PROMOTE = ("promote", "info", "git-pull-request-arrow", _("Promotion"))
    PROPOSE = ("propose", "info", "pencil", _("Proposal"))
    ROLL_BACK = ("roll back", "info", "undo-2", _("Rollback"))
    ADOPT = ("adopt", "info", "circle-question-mark", _("Adoption"))


class Acknowledged(BadgeState):
    """Whether somebody has acknowledged a request for an affected client."""

    DONE = ("acknowledged", "ok", "circle-check", _("Acknowledged"))
    WAITING = ("waiting", "care", "clock", _("Not acknowledged yet"))
    VOID = ("void", "care", "undo-2", _("Acknowledged for an earlier plan"))


class StepState(BadgeState):
    """The state of a step of a plan that is or was applied."""

    WAITING = ("waiting", "unknown", "clock", _("Not started"))
    RUNNING = ("running", "info", "loader", _("Running"))
    DONE = ("done", "ok", "circle-check", _("Done"))
    FAILED = ("failed", "breaks", "octagon-x", _("Failed"))


class Outlook(BadgeState):
    """Whether a subject could be promoted to the next environment."""

    YES = ("yes", "ok", "circle-check", _("Can be promoted"))
    NEEDS_APPROVAL = ("needs approval", "info", "message-square", _("Needs approval"))
    NO = ("no", "breaks", "ban", _("Blocked"))
    UNKNOWN = ("unknown", "unknown", "circle-dashed", _("Not checked yet"))

    @property
    def ink(self) -> str:
        """The colour class of the chevron in front of the environment."""
        return f"ink-{self.look.tone}"


class ReviewState(BadgeState):
    """The verdict of a reviewer."""

    APPROVED = ("approve", "ok", "check", _("Approved"))
    CHANGES = ("changes", "care", "pencil", _("Changes requested"))
    REJECTED = ("reject", "breaks", "x", _("Rejected"))
    DISMISSED = ("dismissed", "unknown", "undo-2", _("Dismissed"))
    WAITING = ("waiting", "unknown", "clock", _("Waiting"))


class BreakGlassState(BadgeState):
    """Whether break-glass is open, and whether a second person confirmed it."""

    OPEN = ("open", "breaks", "triangle-alert", _("Open now"))
    WAITING = ("waiting", "care", "hourglass", _("Waiting for confirmation"))
    CONFIRMED = ("confirmed", "ok", "shield-check", _("Confirmed"))
    RED = ("red", "breaks", "octagon-x", _("Not confirmed in time"))


class EnvironmentChangeState(BadgeState):
    """The decision of a second person on a change that loosens an environment."""

    OPEN = ("open", "care", "hourglass", _("Waiting for approval"))
    OUTDATED = ("outdated", "unknown", "clock", _("Out of date"))
    APPROVED = ("approved", "care", "check", _("Approved"))
    REJECTED = ("rejected", "unknown", "x", _("Rejected"))
    WITHDRAWN = ("withdrawn", "unknown", "x", _("Withdrawn"))


class ChangeKind(BadgeState):
    """The kind of a change to a path between two versions."""

    ADDED = ("added", "plain", "plus", _("Added"))
    REMOVED = ("removed", "plain", "minus", _("Removed"))
    CHANGED = ("changed", "plain", "pencil", _("Changed"))
    RENAMED = ("renamed", "plain", "arrow-left-right", _("Renamed"))
    MOVED = ("moved", "plain", "arrow-left-right", _("Moved"))


class Weight(BadgeState):
    """The severity of a policy's finding."""

    ADVICE = ("advice", "info", "info", _("Advice"))
    FORCE = ("force", "care", "triangle-alert", _("Only with force"))
    REFUSAL = ("refusal", "breaks", "octagon-x", _("Refused"))


class LintWeight(BadgeState):
    """The severity of a lint finding; none affects the verdict."""

    WARNING = ("warning", "care", "triangle-alert", _("Worth changing"))
    INFO = ("info", "info", "info", _("Worth a look"))


class EvidenceKind(BadgeState):
    """Whether data confirm a finding, or a whole report."""

    ON_PAPER = ("on_paper", "info", "file-text", _("In theory only"))
    CONFIRMED = ("confirmed", "breaks", "octagon-x", _("Confirmed"))
    CONTRADICTED = ("contradicted", "breaks", "triangle-alert", _("Fine in theory, not in data"))
    PARTLY = ("partly", "care", "triangle-alert", _("Partly confirmed"))
    UNPROVED = ("unproved", "plain", "circle-question-mark", _("Not shown by data"))


class AnswerState(BadgeState):
    """Whether a client or a subject still works with a new schema."""

    YES = ("yes", "ok", "circle-check", _("Compatible"))
    NO = ("no", "breaks", "octagon-x", _("Incompatible"))
    DIFFERS = ("differs", "breaks", "octagon-x", _("Incompatible"))
    UNKNOWN = ("unknown", "unknown", "circle-dashed", _("Not checked"))


class VersionOutcome(BadgeState):
    """The outcome for a field's value when another version read it; RESET is a change that nobody made."""

    KEPT = ("kept", "plain", "check", _("Kept"))
    FILLED = ("filled", "info", "plus", _("Filled from default"))
    DROPPED = ("dropped", "care", "minus", _("Dropped"))
    CONVERTED = ("converted", "info", "arrow-left-right", _("Converted"))
    RESET = ("reset", "breaks", "undo-2", _("Silently reset"))


class EnvironmentKind(BadgeState):
    """The purpose of an environment; PRODUCTION tints the frame."""

    DEVELOPMENT = ("development", "env-dev", "circle-dot", _("development"))
    STAGING = ("staging", "env-staging", "circle-dot", _("staging"))
    PRODUCTION = ("production", "env-prod", "lock", _("production"))
    OTHER = ("other", "env-other", "circle-dot", _("other"))


@dataclass(frozen=True, slots=True)
class SourceBadge:
    """The kind of a source: its name and its look."""

    code: str
    look: Look


class JobState(BadgeState):
    """The state of a background job."""

    WAITING = ("waiting", "info", "clock", _("Waiting"))
    RUNNING = ("running", "info", "loader", _("Running"))
    WELL = ("well", "ok", "circle-check", _("Done"))
    FAILED = ("failed", "breaks", "octagon-x", _("Failed"))
    NEVER = ("never", "unknown", "circle-dashed", _("Not run yet"))


class Health(BadgeState):
    """Whether a service answers."""

    UP = ("up", "ok", "circle-check", _("Up"))
    DEGRADED = ("degraded", "care", "triangle-alert", _("Degraded"))
    DOWN = ("down", "breaks", "octagon-x", _("Down"))
    OFF = ("off", "unknown", "circle-dashed", _("Not started"))


class Retire(BadgeState):
    """Whether a version can be retired; UNKNOWN is never green."""

    NO = ("no", "care", "ban", _("Can’t be retired"))
    UNKNOWN = ("unknown", "unknown", "circle-dashed", _("Unknown"))
    NOT_BEFORE = ("not_before", "info", "clock", _("Not yet"))
    YES = ("yes", "ok", "circle-check", _("Can be retired"))


class InUse(BadgeState):
    """Whether a piece of evidence shows that the version is in use."""

    YES = ("yes", "care", "circle-dot", _("In use"))
    NO = ("no", "ok", "circle-check", _("Not in use"))
    UNKNOWN = ("unknown", "unknown", "circle-dashed", _("Unknown"))
