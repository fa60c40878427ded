"""The registries that are known, the form that connects one elsewhere, and the test of a connection."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dashboard.presenters.drift_parts import FieldGroup
from dashboard.presenters.frame import Action, Environment, Frame, Problem
from dashboard.presenters.looks import Shown
from dashboard.texts import later


class RegistryState(Shown):
    """Where a registry stands; one of ours is up as long as the page is."""

    OURS = ("ours", "ok", "circle-check", later("Ours"))
    FRESH = ("fresh", "ok", "circle-check", later("In sync"))
    RUNNING = ("running", "info", "loader", later("Running"))
    QUEUED = ("queued", "info", "clock", later("Queued"))
    STALE = ("stale", "care", "triangle-alert", later("Out of date"))
    FAILING = ("failing", "breaks", "octagon-x", later("Failing"))
    NEVER = ("never", "unknown", "circle-dashed", later("Not read yet"))


class StepState(Shown):
    """How a step of a test ended, or what a server can."""

    OK = ("ok", "ok", "circle-check", later("Works"))
    FAILED = ("failed", "breaks", "octagon-x", later("Fails"))
    SKIPPED = ("skipped", "unknown", "circle-slash", later("Not tried"))
    HAS = ("has", "ok", "circle-check", later("Known there"))
    LACKS = ("lacks", "unknown", "ban", later("Not there"))
    UNKNOWN = ("unknown", "unknown", "circle-dashed", later("Not known"))


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryRow:
    """A registry. `url` is its subjects; `address` where it is mirrored from, "" for one of ours.

    `problem` is the other server's message or ours about it, `since` when it began.
    """

    environment: Environment
    url: str
    state: RegistryState
    subjects: int
    versions: int
    address: str = ""
    every: str = ""
    synced_at: datetime | None = None
    problem: str = ""
    since: datetime | None = None
    actions: tuple[Action, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistriesPage:
    """All registries that the reader may see."""

    frame: Frame
    rows: tuple[RegistryRow, ...]
    connect: Action


@dataclass(frozen=True, slots=True, kw_only=True)
class TestLine:
    """A step or a capability in words."""

    label: str
    state: StepState
    said: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionTest:
    """What a test found: its steps in order, then what the server can."""

    sentence: str
    ok: bool
    steps: tuple[TestLine, ...]
    capabilities: tuple[TestLine, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryForm:
    """The form that connects a registry or changes how it is reached; `secrets` are the places of secrets."""

    frame: Frame
    groups: tuple[FieldGroup, ...]
    submit: Action
    secrets: tuple[str, ...] = ()
    tested: ConnectionTest | None = None
    disconnect: Action | None = None
    problem: Problem | None = None
