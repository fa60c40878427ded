"""The states that pages show, each with a badge: tone (colour), icon and word, so that colour is never the only
sign.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, Self

from django.utils.translation import gettext

from dashboard.components.translation import later
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
ACCESS: Final = {"reads": later("reads"), "writes": later("writes"), "reads and writes": later("reads and writes")}


@dataclass(frozen=True, slots=True)
class Look:
    """The appearance of a state: `tone` is a colour class, `icon` a name in the sprite, `word` the label."""

    tone: str
    icon: str
    word: str


class Shown(Enum):
    """Base of the states below: the value is the state's name in data, `look` its appearance."""

    look: Look

    def __new__(cls, value: str, tone: str, icon: str, word: str) -> Shown:
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


class Verdict(Shown):
    """The result of a check or a change; UNKNOWN means not checked and is never green."""

    OK = ("ok", "ok", "circle-check", later("Compatible"))
    CARE = ("care", "care", "triangle-alert", later("Needs care"))
    BREAKS = ("breaks", "breaks", "octagon-x", later("Incompatible"))
    UNKNOWN = ("unknown", "unknown", "circle-dashed", later("Not checked"))

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


class Check(Shown):
    """A check of a promotion request."""

    PASSED = ("pass", "ok", "circle-check", later("Passed"))
    WARNED = ("warn", "care", "triangle-alert", later("Warning"))
    FAILED = ("fail", "breaks", "octagon-x", later("Failed"))
    SKIPPED = ("skipped", "unknown", "circle-slash", later("Skipped"))
    STALE = ("stale", "care", "hourglass", later("Stale"))


class Severity(Shown):
    """The severity of a finding."""

    BREAK = ("break", "breaks", "octagon-x", later("Break"))
    RISK = ("risk", "care", "triangle-alert", later("Risk"))
    NOTICE = ("notice", "info", "info", later("Notice"))


class SubjectHealth(Shown):
    """The health of a subject: its worst problem."""

    DRIFT = ("drift", "breaks", "octagon-x", later("Drift"))
    REQUEST = ("request", "breaks", "git-pull-request-arrow", later("Request blocked"))
    UNCHECKED = ("unchecked", "care", "triangle-alert", later("Not checked"))
    UNOWNED = ("unowned", "care", "user", later("No owner"))
    GOOD = ("good", "ok", "circle-check", later("Good"))


class FindingState(Shown):
    """The state of a finding."""

    OPEN = ("open", "care", "circle-dot", later("Open"))
    ACKNOWLEDGED = ("acknowledged", "info", "eye", later("Acknowledged"))
    RESOLVED = ("resolved", "ok", "circle-check", later("Resolved"))


class ScanState(Shown):
    """The state of a scan; EMPTY is a successful scan that read nothing: it is "not scanned", never green."""

    NEVER = ("never", "unknown", "circle-dashed", later("Not scanned"))
    QUEUED = ("queued", "info", "clock", later("Queued"))
    RUNNING = ("running", "info", "loader", later("Running"))
    DONE = ("scanned", "ok", "circle-check", later("Scanned"))
    EMPTY = ("not scanned", "unknown", "circle-dashed", later("Not scanned"))
    FAILED = ("failed", "breaks", "octagon-x", later("Failed"))
    CANCELLED = ("cancelled", "care", "ban", later("Cancelled"))


class RequestState(Shown):
    """The state of a promotion request."""

    DRAFT = ("draft", "unknown", "pencil", later("Draft"))
    IN_REVIEW = ("in review", "info", "message-square", later("In review"))
    APPROVED = ("approved", "ok", "shield-check", later("Approved"))
    SCHEDULED = ("scheduled", "info", "clock", later("Scheduled"))
    APPLYING = ("applying", "info", "loader", later("Applying"))
    APPLIED = ("applied", "ok", "circle-check", later("Applied"))
    REJECTED = ("rejected", "breaks", "circle-x", later("Rejected"))
    WITHDRAWN = ("withdrawn", "unknown", "undo-2", later("Withdrawn"))
    FAILED = ("failed", "breaks", "octagon-x", later("Failed"))


class RequestKind(Shown):
    """The kind of a promotion request."""

    PROMOTE = ("promote", "info", "git-pull-request-arrow", later("Promotion"))
    PROPOSE = ("propose", "info", "pencil", later("Proposal"))
    ROLL_BACK = ("roll back", "info", "undo-2", later("Rollback"))
    ADOPT = ("adopt", "info", "circle-question-mark", later("Adoption"))


class Acknowledged(Shown):
    """Whether somebody has acknowledged a request for an affected client."""

    DONE = ("acknowledged", "ok", "circle-check", later("Acknowledged"))
    WAITING = ("waiting", "care", "clock", later("Not acknowledged yet"))
    VOID = ("void", "care", "undo-2", later("Acknowledged for an earlier plan"))


class StepState(Shown):
    """The state of a step of a plan that is or was applied."""

    WAITING = ("waiting", "unknown", "clock", later("Not started"))
    RUNNING = ("running", "info", "loader", later("Running"))
    DONE = ("done", "ok", "circle-check", later("Done"))
    FAILED = ("failed", "breaks", "octagon-x", later("Failed"))


class Outlook(Shown):
    """Whether a subject could be promoted to the next environment."""

    YES = ("yes", "ok", "circle-check", later("Can be promoted"))
    NEEDS_APPROVAL = ("needs approval", "info", "message-square", later("Needs approval"))
    NO = ("no", "breaks", "ban", later("Blocked"))
    UNKNOWN = ("unknown", "unknown", "circle-dashed", later("Not checked yet"))

    @property
    def ink(self) -> str:
        """The colour class of the chevron in front of the environment."""
        return f"ink-{self.look.tone}"


class ReviewState(Shown):
    """The verdict of a reviewer."""

    APPROVED = ("approve", "ok", "check", later("Approved"))
    CHANGES = ("changes", "care", "pencil", later("Changes requested"))
    REJECTED = ("reject", "breaks", "x", later("Rejected"))
    DISMISSED = ("dismissed", "unknown", "undo-2", later("Dismissed"))
    WAITING = ("waiting", "unknown", "clock", later("Waiting"))


class BreakGlassState(Shown):
    """Whether break-glass is open, and whether a second person confirmed it."""

    OPEN = ("open", "breaks", "triangle-alert", later("Open now"))
    WAITING = ("waiting", "care", "hourglass", later("Waiting for confirmation"))
    CONFIRMED = ("confirmed", "ok", "shield-check", later("Confirmed"))
    RED = ("red", "breaks", "octagon-x", later("Not confirmed in time"))


class EnvironmentChangeState(Shown):
    """The decision of a second person on a change that loosens an environment."""

    OPEN = ("open", "care", "hourglass", later("Waiting for approval"))
    OUTDATED = ("outdated", "unknown", "clock", later("Out of date"))
    APPROVED = ("approved", "care", "check", later("Approved"))
    REJECTED = ("rejected", "unknown", "x", later("Rejected"))
    WITHDRAWN = ("withdrawn", "unknown", "x", later("Withdrawn"))


class ChangeKind(Shown):
    """The kind of a change to a path between two versions."""

    ADDED = ("added", "plain", "plus", later("Added"))
    REMOVED = ("removed", "plain", "minus", later("Removed"))
    CHANGED = ("changed", "plain", "pencil", later("Changed"))
    RENAMED = ("renamed", "plain", "arrow-left-right", later("Renamed"))
    MOVED = ("moved", "plain", "arrow-left-right", later("Moved"))


class Weight(Shown):
    """The severity of a policy's finding."""

    ADVICE = ("advice", "info", "info", later("Advice"))
    FORCE = ("force", "care", "triangle-alert", later("Only with force"))
    REFUSAL = ("refusal", "breaks", "octagon-x", later("Refused"))


class LintWeight(Shown):
    """The severity of a lint finding; none affects the verdict."""

    WARNING = ("warning", "care", "triangle-alert", later("Worth changing"))
    INFO = ("info", "info", "info", later("Worth a look"))


class EvidenceKind(Shown):
    """Whether data confirm a finding, or a whole report."""

    ON_PAPER = ("on_paper", "info", "file-text", later("In theory only"))
    CONFIRMED = ("confirmed", "breaks", "octagon-x", later("Confirmed"))
    CONTRADICTED = ("contradicted", "breaks", "triangle-alert", later("Fine in theory, not in data"))
    PARTLY = ("partly", "care", "triangle-alert", later("Partly confirmed"))
    UNPROVED = ("unproved", "plain", "circle-question-mark", later("Not shown by data"))


class AnswerState(Shown):
    """Whether a client or a subject still works with a new schema."""

    YES = ("yes", "ok", "circle-check", later("Compatible"))
    NO = ("no", "breaks", "octagon-x", later("Incompatible"))
    DIFFERS = ("differs", "breaks", "octagon-x", later("Incompatible"))
    UNKNOWN = ("unknown", "unknown", "circle-dashed", later("Not checked"))


class Fate(Shown):
    """The outcome for a field's value when another version read it; RESET is a change that nobody made."""

    KEPT = ("kept", "plain", "check", later("Kept"))
    FILLED = ("filled", "info", "plus", later("Filled from default"))
    DROPPED = ("dropped", "care", "minus", later("Dropped"))
    CONVERTED = ("converted", "info", "arrow-left-right", later("Converted"))
    RESET = ("reset", "breaks", "undo-2", later("Silently reset"))


class EnvironmentKind(Shown):
    """The purpose of an environment; PRODUCTION tints the frame."""

    DEVELOPMENT = ("development", "env-dev", "circle-dot", later("development"))
    STAGING = ("staging", "env-staging", "circle-dot", later("staging"))
    PRODUCTION = ("production", "env-prod", "lock", later("production"))
    OTHER = ("other", "env-other", "circle-dot", later("other"))


@dataclass(frozen=True, slots=True)
class SourceBadge:
    """The kind of a source: its name and its look."""

    code: str
    look: Look


class JobState(Shown):
    """The state of a background job."""

    WAITING = ("waiting", "info", "clock", later("Waiting"))
    RUNNING = ("running", "info", "loader", later("Running"))
    WELL = ("well", "ok", "circle-check", later("Done"))
    FAILED = ("failed", "breaks", "octagon-x", later("Failed"))
    NEVER = ("never", "unknown", "circle-dashed", later("Not run yet"))


class Health(Shown):
    """Whether a service answers."""

    UP = ("up", "ok", "circle-check", later("Up"))
    DEGRADED = ("degraded", "care", "triangle-alert", later("Degraded"))
    DOWN = ("down", "breaks", "octagon-x", later("Down"))
    OFF = ("off", "unknown", "circle-dashed", later("Not started"))


class Retire(Shown):
    """Whether a version can be retired; UNKNOWN is never green."""

    NO = ("no", "care", "ban", later("Can’t be retired"))
    UNKNOWN = ("unknown", "unknown", "circle-dashed", later("Unknown"))
    NOT_BEFORE = ("not_before", "info", "clock", later("Not yet"))
    YES = ("yes", "ok", "circle-check", later("Can be retired"))


class InUse(Shown):
    """Whether a piece of evidence shows that the version is in use."""

    YES = ("yes", "care", "circle-dot", later("In use"))
    NO = ("no", "ok", "circle-check", later("Not in use"))
    UNKNOWN = ("unknown", "unknown", "circle-dashed", later("Unknown"))
