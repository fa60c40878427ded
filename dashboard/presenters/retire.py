"""Retiring a version or a subject in three steps, what was read back after it, and subjects that nothing needs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dashboard.presenters.frame import Action, Environment, Export, Field, Frame, Link, Paging, Problem
from dashboard.presenters.usage import EvidenceLine, RetireVerdict


@dataclass(frozen=True, slots=True, kw_only=True)
class RetireStep:
    """A step of the three; one without an address isn't reached yet."""

    label: str
    url: str = ""
    current: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RetirePlace:
    """An environment or registry that has what is to be retired."""

    environment: Environment
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RetireEvidence:
    """What is known of the use: the verdict, the three kinds of evidence, who refers to it, and where it lives."""

    verdict: RetireVerdict
    lines: tuple[EvidenceLine, ...]
    messages: int
    last_time: datetime | None
    referrers: tuple[str, ...]
    hidden_referrers: int
    places: tuple[RetirePlace, ...]
    coverage: tuple[str, ...]
    usage_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RetireChoice:
    """What can be done, what it brings about in a sentence, and the way on."""

    label: str
    icon: str
    consequence: str
    action: Action


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmForm:
    """The last step: what happens, and what has to be typed for it."""

    sentence: str
    fields: tuple[Field, ...]
    confirm: Action


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadBack:
    """What the registry says afterwards; `restore` offers to take it back."""

    headline: str
    good: bool
    lines: tuple[str, ...]
    at: datetime
    restore: Action | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetirePage:
    """One step of the wizard: of its parts those that the step shows; `export` takes a copy of what will be deleted."""

    frame: Frame
    subject: str
    what: str
    steps: tuple[RetireStep, ...]
    back_url: str
    scopes: tuple[Link, ...] = ()
    evidence: RetireEvidence | None = None
    next_url: str = ""
    choices: tuple[RetireChoice, ...] = ()
    form: ConfirmForm | None = None
    read_back: ReadBack | None = None
    problem: Problem | None = None
    export: Export | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanRow:
    """A subject that nothing is known to need."""

    subject: str
    url: str
    versions: int
    newest: int
    since: datetime
    retire: Action


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphansPage:
    """The subjects of a registry that nothing is known to need, and what that rests on."""

    frame: Frame
    sentence: str
    known: bool
    rows: tuple[OrphanRow, ...]
    paging: Paging
    sources_url: str
    deprecate_url: str = ""
