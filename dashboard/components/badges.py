"""The states that pages show, each with one badge: tone (colour), icon and word, never colour alone."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, Self

from django.utils.translation import gettext

from dashboard.components.translation import later
from registry.formats import format_of

"""What people call the formats, by what the APIs call them."""


def missing_words(kind: str, method: str) -> str:
    """What is said in place of what the format doesn't do; empty where it does it."""
    format = format_of(kind)
    return "" if format.offers(method) else gettext("Not available for %(format)s.") % {"format": format}


def format_name(kind: str) -> str:
    """A format as people call it."""
    return str(format_of(kind))


#: what a client does, by the words that `registry` has for it
ACCESS: Final = {"reads": later("reads"), "writes": later("writes"), "reads and writes": later("reads and writes")}


@dataclass(frozen=True, slots=True)
class Look:
    """How a state is drawn: `tone` is a colour class, `icon` a name in the sprite, `word` what is said."""

    tone: str
    icon: str
    word: str


class Shown(Enum):
    """Base of the states below: the value is the state's name in data, `look` how it is drawn."""

    look: Look

    def __new__(cls, value: str, tone: str, icon: str, word: str) -> Shown:
        """A member with its look."""
        member = object.__new__(cls)
        member._value_ = value
        member.look = Look(tone, icon, word)
        return member

    @classmethod
    def of(cls, value: str) -> Self:
        """The state with that name in data. Raises ValueError for a name that no state has."""
        return cls(value)  # type: ignore[call-arg]  # a lookup by value; __new__ is only for the members

    @property
    def code(self) -> str:
        """The value as data names it, for class names and tests in templates."""
        return str(self.value)


class Verdict(Shown):
    """What a check or a change comes to; UNKNOWN is for what was not looked at and is never green."""

    OK = ("ok", "ok", "circle-check", later("Compatible"))
    CARE = ("care", "care", "triangle-alert", later("Needs care"))
    BREAKS = ("breaks", "breaks", "octagon-x", later("Incompatible"))
    UNKNOWN = ("unknown", "unknown", "circle-dashed", later("Not checked"))

    @property
    def direction_word(self) -> str:
        """The verdict said of one direction: does the reader cope with the data?"""
        labels = {"ok": gettext("works"), "care": gettext("with care"), "breaks": gettext("fails")}
        return labels.get(self.code, gettext("not checked"))

    @property
    def change_word(self) -> str:
        """The verdict said of one change."""
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
    """How much a finding matters."""

    BREAK = ("break", "breaks", "octagon-x", later("Break"))
    RISK = ("risk", "care", "triangle-alert", later("Risk"))
    NOTICE = ("notice", "info", "info", later("Notice"))


class SubjectHealth(Shown):
    """How a subject stands, by the worst that is wrong with it."""

    DRIFT = ("drift", "breaks", "octagon-x", later("Drift"))
    REQUEST = ("request", "breaks", "git-pull-request-arrow", later("Request blocked"))
    UNCHECKED = ("unchecked", "care", "triangle-alert", later("Not checked"))
    UNOWNED = ("unowned", "care", "user", later("No owner"))
    GOOD = ("good", "ok", "circle-check", later("Good"))


class FindingState(Shown):
    """Where a finding stands."""

    OPEN = ("open", "care", "circle-dot", later("Open"))
    ACKNOWLEDGED = ("acknowledged", "info", "eye", later("Acknowledged"))
    RESOLVED = ("resolved", "ok", "circle-check", later("Resolved"))


class ScanState(Shown):
    """Where a scan stands; EMPTY is a scan that ended well but read nothing: that is "not scanned", never green."""

    NEVER = ("never", "unknown", "circle-dashed", later("Not scanned"))
    QUEUED = ("queued", "info", "clock", later("Queued"))
    RUNNING = ("running", "info", "loader", later("Running"))
    DONE = ("scanned", "ok", "circle-check", later("Scanned"))
    EMPTY = ("not scanned", "unknown", "circle-dashed", later("Not scanned"))
    FAILED = ("failed", "breaks", "octagon-x", later("Failed"))
    CANCELLED = ("cancelled", "care", "ban", later("Cancelled"))


class RequestState(Shown):
    """Where a promotion request stands."""

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
    """What a promotion request asks for."""

    PROMOTE = ("promote", "info", "git-pull-request-arrow", later("Promotion"))
    PROPOSE = ("propose", "info", "pencil", later("Proposal"))
    ROLL_BACK = ("roll back", "info", "undo-2", later("Rollback"))
    ADOPT = ("adopt", "info", "circle-question-mark", later("Adoption"))


class Acknowledged(Shown):
    """Whether somebody has acknowledged a request for a client that it hurts."""

    DONE = ("acknowledged", "ok", "circle-check", later("Acknowledged"))
    WAITING = ("waiting", "care", "clock", later("Not acknowledged yet"))
    VOID = ("void", "care", "undo-2", later("Acknowledged for an earlier plan"))


class StepState(Shown):
    """Where a step of a plan stands that is being applied, or was."""

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
        """The colour class of the chevron that leads here."""
        return f"ink-{self.look.tone}"


class ReviewState(Shown):
    """What a reviewer said."""

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
    """What a second person decided on a change that loosens an environment."""

    OPEN = ("open", "care", "hourglass", later("Waiting for approval"))
    OUTDATED = ("outdated", "unknown", "clock", later("Out of date"))
    APPROVED = ("approved", "care", "check", later("Approved"))
    REJECTED = ("rejected", "unknown", "x", later("Rejected"))
    WITHDRAWN = ("withdrawn", "unknown", "x", later("Withdrawn"))


class ChangeKind(Shown):
    """What happened to a path between two versions."""

    ADDED = ("added", "plain", "plus", later("Added"))
    REMOVED = ("removed", "plain", "minus", later("Removed"))
    CHANGED = ("changed", "plain", "pencil", later("Changed"))
    RENAMED = ("renamed", "plain", "arrow-left-right", later("Renamed"))
    MOVED = ("moved", "plain", "arrow-left-right", later("Moved"))


class Weight(Shown):
    """What a policy's finding demands."""

    ADVICE = ("advice", "info", "info", later("Advice"))
    FORCE = ("force", "care", "triangle-alert", later("Only with force"))
    REFUSAL = ("refusal", "breaks", "octagon-x", later("Refused"))


class LintWeight(Shown):
    """How much a piece of advice matters; none of it decides anything."""

    WARNING = ("warning", "care", "triangle-alert", later("Worth changing"))
    INFO = ("info", "info", "info", later("Worth a look"))


class EvidenceKind(Shown):
    """What data say of a finding, or of a whole report."""

    ON_PAPER = ("on_paper", "info", "file-text", later("In theory only"))
    CONFIRMED = ("confirmed", "breaks", "octagon-x", later("Confirmed"))
    CONTRADICTED = ("contradicted", "breaks", "triangle-alert", later("Fine in theory, not in data"))
    PARTLY = ("partly", "care", "triangle-alert", later("Partly confirmed"))
    UNPROVED = ("unproved", "plain", "circle-question-mark", later("Not shown by data"))


class AnswerState(Shown):
    """Whether a client or a subject goes on with a new schema."""

    YES = ("yes", "ok", "circle-check", later("Compatible"))
    NO = ("no", "breaks", "octagon-x", later("Incompatible"))
    DIFFERS = ("differs", "breaks", "octagon-x", later("Incompatible"))
    UNKNOWN = ("unknown", "unknown", "circle-dashed", later("Not checked"))


class Fate(Shown):
    """What became of a field's value when another version read it; RESET is a change that nobody made."""

    KEPT = ("kept", "plain", "check", later("Kept"))
    FILLED = ("filled", "info", "plus", later("Filled from default"))
    DROPPED = ("dropped", "care", "minus", later("Dropped"))
    CONVERTED = ("converted", "info", "arrow-left-right", later("Converted"))
    RESET = ("reset", "breaks", "undo-2", later("Silently reset"))


class EnvironmentKind(Shown):
    """What an environment is for; PRODUCTION tints the frame."""

    DEVELOPMENT = ("development", "env-dev", "circle-dot", later("development"))
    STAGING = ("staging", "env-staging", "circle-dot", later("staging"))
    PRODUCTION = ("production", "env-prod", "lock", later("production"))
    OTHER = ("other", "env-other", "circle-dot", later("other"))


@dataclass(frozen=True, slots=True)
class SourceBadge:
    """What a source reads: the name of its kind, and how that is drawn."""

    code: str
    look: Look


class JobState(Shown):
    """Where a job in the background stands."""

    WAITING = ("waiting", "info", "clock", later("Waiting"))
    RUNNING = ("running", "info", "loader", later("Running"))
    WELL = ("well", "ok", "circle-check", later("Done"))
    FAILED = ("failed", "breaks", "octagon-x", later("Failed"))
    NEVER = ("never", "unknown", "circle-dashed", later("Not run yet"))


class Health(Shown):
    """Whether a part of the house answers."""

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
    """What one piece of evidence says of the use."""

    YES = ("yes", "care", "circle-dot", later("In use"))
    NO = ("no", "ok", "circle-check", later("Not in use"))
    UNKNOWN = ("unknown", "unknown", "circle-dashed", later("Unknown"))
