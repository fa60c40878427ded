"""The states that pages show, each with its one look: tone (colour), icon and word, never colour alone."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Self


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

    OK = ("ok", "ok", "circle-check", "Compatible")
    CARE = ("care", "care", "triangle-alert", "Needs care")
    BREAKS = ("breaks", "breaks", "octagon-x", "Incompatible")
    UNKNOWN = ("unknown", "unknown", "circle-dashed", "Not checked")

    @property
    def direction_word(self) -> str:
        """The verdict said of one direction: does the reader cope with the data?"""
        return {"ok": "works", "care": "with care", "breaks": "fails"}.get(self.code, "not checked")

    @property
    def change_word(self) -> str:
        """The verdict said of one change."""
        return {"ok": "Safe", "care": "Needs care", "breaks": "Breaking"}.get(self.code, "Not checked")


class Check(Shown):
    """A check of a promotion request."""

    PASSED = ("pass", "ok", "circle-check", "Passed")
    WARNED = ("warn", "care", "triangle-alert", "Warning")
    FAILED = ("fail", "breaks", "octagon-x", "Failed")
    SKIPPED = ("skipped", "unknown", "circle-slash", "Skipped")
    STALE = ("stale", "care", "hourglass", "Stale")


class Severity(Shown):
    """How much a finding matters."""

    BREAK = ("break", "breaks", "octagon-x", "Break")
    RISK = ("risk", "care", "triangle-alert", "Risk")
    NOTICE = ("notice", "info", "info", "Notice")


class FindingState(Shown):
    """Where a finding stands."""

    OPEN = ("open", "care", "circle-dot", "Open")
    ACKNOWLEDGED = ("acknowledged", "info", "eye", "Acknowledged")
    RESOLVED = ("resolved", "ok", "circle-check", "Resolved")


class ScanState(Shown):
    """Where a scan stands; EMPTY is a scan that ended well but read nothing: that is "not scanned", never green."""

    NEVER = ("never", "unknown", "circle-dashed", "Not scanned")
    QUEUED = ("queued", "info", "clock", "Queued")
    RUNNING = ("running", "info", "loader", "Running")
    DONE = ("scanned", "ok", "circle-check", "Scanned")
    EMPTY = ("not scanned", "unknown", "circle-dashed", "Not scanned")
    FAILED = ("failed", "breaks", "octagon-x", "Failed")
    CANCELLED = ("cancelled", "care", "ban", "Cancelled")


class RequestState(Shown):
    """Where a promotion request stands."""

    DRAFT = ("draft", "unknown", "pencil", "Draft")
    IN_REVIEW = ("in review", "info", "message-square", "In review")
    APPROVED = ("approved", "ok", "shield-check", "Approved")
    SCHEDULED = ("scheduled", "info", "clock", "Scheduled")
    APPLYING = ("applying", "info", "loader", "Applying")
    APPLIED = ("applied", "ok", "circle-check", "Applied")
    REJECTED = ("rejected", "breaks", "circle-x", "Rejected")
    WITHDRAWN = ("withdrawn", "unknown", "undo-2", "Withdrawn")
    FAILED = ("failed", "breaks", "octagon-x", "Failed")


class StepState(Shown):
    """Where a step of a plan stands that is being applied, or was."""

    WAITING = ("waiting", "unknown", "clock", "Not begun")
    RUNNING = ("running", "info", "loader", "Running")
    DONE = ("done", "ok", "circle-check", "Done")
    FAILED = ("failed", "breaks", "octagon-x", "Failed")


class Outlook(Shown):
    """Whether a subject could be promoted to the next environment."""

    YES = ("yes", "ok", "circle-check", "Can be promoted")
    NEEDS_APPROVAL = ("needs approval", "info", "message-square", "Needs approval")
    NO = ("no", "breaks", "ban", "Blocked")
    UNKNOWN = ("unknown", "unknown", "circle-dashed", "Not known yet")

    @property
    def ink(self) -> str:
        """The colour class of the chevron that leads here."""
        return f"ink-{self.look.tone}"


class ReviewState(Shown):
    """What a reviewer said."""

    APPROVED = ("approve", "ok", "check", "Approved")
    CHANGES = ("changes", "care", "pencil", "Changes requested")
    REJECTED = ("reject", "breaks", "x", "Rejected")
    DISMISSED = ("dismissed", "unknown", "undo-2", "Dismissed")
    WAITING = ("waiting", "unknown", "clock", "Waiting")


class ChangeKind(Shown):
    """What happened to a path between two versions."""

    ADDED = ("added", "plain", "plus", "Added")
    REMOVED = ("removed", "plain", "minus", "Removed")
    CHANGED = ("changed", "plain", "pencil", "Changed")
    RENAMED = ("renamed", "plain", "arrow-left-right", "Renamed")
    MOVED = ("moved", "plain", "arrow-left-right", "Moved")


class Weight(Shown):
    """What a policy's finding demands."""

    ADVICE = ("advice", "info", "info", "Advice")
    FORCE = ("force", "care", "triangle-alert", "Only with force")
    REFUSAL = ("refusal", "breaks", "octagon-x", "Refused")


class Evidence(Shown):
    """What data say of a finding, or of a whole report."""

    ON_PAPER = ("on_paper", "info", "file-text", "On paper only")
    CONFIRMED = ("confirmed", "breaks", "octagon-x", "Confirmed")
    CONTRADICTED = ("contradicted", "breaks", "triangle-alert", "Fine on paper, not in data")
    PARTLY = ("partly", "care", "triangle-alert", "For a part")
    UNPROVED = ("unproved", "plain", "circle-question-mark", "Not shown by data")


class Fate(Shown):
    """What became of a field's value when another version read it; RESET is a change that nobody made."""

    KEPT = ("kept", "plain", "check", "Kept")
    FILLED = ("filled", "info", "plus", "Filled from default")
    DROPPED = ("dropped", "care", "minus", "Dropped")
    CONVERTED = ("converted", "info", "arrow-left-right", "Converted")
    RESET = ("reset", "breaks", "undo-2", "Silently reset")


class EnvironmentKind(Shown):
    """What an environment is for; PRODUCTION tints the frame."""

    DEVELOPMENT = ("development", "env-dev", "circle-dot", "development")
    STAGING = ("staging", "env-staging", "circle-dot", "staging")
    PRODUCTION = ("production", "env-prod", "lock", "production")
    OTHER = ("other", "env-other", "circle-dot", "other")


class SourceKind(Shown):
    """What a source reads."""

    KAFKA_TOPIC = ("kafka", "plain", "rows-3", "Kafka topics")
    STATE_STORE = ("state_store", "plain", "layers", "Spark state store")
    DEBEZIUM = ("debezium", "plain", "rows-3", "Debezium connector")
    REGISTRY = ("registry", "plain", "layers", "Registry settings")


class Health(Shown):
    """Whether a part of the house answers."""

    UP = ("up", "ok", "circle-check", "Up")
    DEGRADED = ("degraded", "care", "triangle-alert", "Degraded")
    DOWN = ("down", "breaks", "octagon-x", "Down")
    OFF = ("off", "unknown", "circle-dashed", "Not started")
