"""Use and retirement as their pages show them, and what a pasted message is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from dashboard.components.badges import Shown
from dashboard.components.translation import later
from dashboard.components.widgets import Action, Environment, Export, Field, Frame, Link, Paging, Problem

#: topics of a version, and those that all rests on, that are seen without unfolding the others
TOPICS: Final = 6
COVERED: Final = 12


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


@dataclass(frozen=True, slots=True, kw_only=True)
class RetireReason:
    """One reason, with what it alone would answer."""

    outcome: Retire
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RetireVerdict:
    """The answer in words with its reasons, the weightiest first; `date` is the earliest day where one is known."""

    outcome: Retire
    sentence: str
    date: datetime | None = None
    reasons: tuple[RetireReason, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionUseRow:
    """Messages of one partition; offsets are inclusive."""

    partition: int
    messages: int
    first_offset: int
    last_offset: int
    first_time: datetime
    last_time: datetime
    undecodable: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicUseRow:
    """Messages of a topic's side that name the version. `share` in words, `percent` for its bar, of the topic's messages.

    `foreign` says that the topic isn't one of the subject's.
    """

    topic: str
    side: str
    cluster: str
    source: str
    mark: str
    messages: int
    share: str
    percent: int
    first_time: datetime
    last_time: datetime
    foreign: bool = False
    partitions: tuple[PartitionUseRow, ...] = ()
    hidden: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceLine:
    """What one provider knows: of state or of clients. `until`: needed till then; `as_of`: when that was seen."""

    in_use: InUse
    sentence: str
    until: datetime | None = None
    as_of: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionUsage:
    """A version: its verdict, and the three kinds of evidence, kept apart; of its topics `topics_hidden` aren't drawn."""

    version: int
    schema_id: int
    url: str
    verdict: RetireVerdict
    data: tuple[TopicUseRow, ...]
    state: tuple[EvidenceLine, ...]
    clients: tuple[EvidenceLine, ...]
    messages: int = 0
    deleted: bool = False
    latest: bool = False
    shared_with: tuple[str, ...] = ()
    shared_hidden: int = 0
    referrers: tuple[str, ...] = ()
    referrers_hidden: int = 0
    first_time: datetime | None = None
    last_time: datetime | None = None
    open: bool = False
    topics_hidden: int = 0

    @property
    def data_shown(self) -> tuple[TopicUseRow, ...]:
        """Those that are seen at once."""
        return self.data[:TOPICS]

    @property
    def data_folded(self) -> tuple[TopicUseRow, ...]:
        """Those that are unfolded."""
        return self.data[TOPICS:]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageRow:
    """A topic that the answer rests on, and how far it was read, in words; `known` is whether that is everything."""

    topic: str
    cluster: str
    source: str
    sentence: str
    keeps: str
    is_known: bool
    checked_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRow:
    """A declared client: what it does in words, the version that it has, and whether it wasn't heard of for long."""

    name: str
    does: str
    version: str
    version_url: str
    fields: tuple[str, ...]
    contact: str
    seen_at: datetime
    declared_by: str
    lapsed: bool
    withdraw: Action


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """The declared clients of a subject, with the form for another one; `hidden` are beyond those that are shown."""

    rows: tuple[ClientRow, ...]
    fields: tuple[Field, ...]
    declare: Action
    api: str
    hidden: int = 0
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsagePage:
    """The use of a subject's versions, newest first.

    `asked_at` is when the clusters were asked, None where what the scans kept is all; `ask_url` asks them.
    """

    frame: Frame
    subject: str
    subject_url: str
    decode_url: str
    versions: tuple[VersionUsage, ...]
    whole: RetireVerdict
    coverage: tuple[CoverageRow, ...]
    declared: Clients
    ask_url: str = ""
    retire_url: str = ""
    orphans_url: str = ""
    asked_at: datetime | None = None
    data_as_of: datetime | None = None
    problems: tuple[Problem, ...] = ()

    @property
    def coverage_shown(self) -> tuple[CoverageRow, ...]:
        """Those that are seen at once."""
        return self.coverage[:COVERED]

    @property
    def coverage_folded(self) -> tuple[CoverageRow, ...]:
        """Those that are unfolded."""
        return self.coverage[COVERED:]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeantVersion:
    """A version that has the message's schema."""

    label: str
    url: str
    usage_url: str
    deleted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """A decoded message: `framing` in words, `value` as indented JSON; `error` says where decoding stopped."""

    framing: str
    mark: str
    encoding: str
    size: int
    body_size: int
    schema_id: int | None = None
    guid: str = ""
    context: str = ""
    format: str = ""
    type_name: str = ""
    indexes: str = ""
    versions: tuple[MeantVersion, ...] = ()
    value: str = ""
    cut: bool = False
    problems: tuple[str, ...] = ()
    error: str = ""
    elsewhere: tuple[str, ...] = ()
    has_value: bool = False
    masked: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodePage:
    """The form, and what the message is once one was pasted."""

    frame: Frame
    fields: tuple[Field, ...]
    more: tuple[Field, ...]
    submit: Action
    result: Decoded | None = None
    problem: Problem | None = None
    related: tuple[Link, ...] = ()


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
    environments: tuple[RetirePlace, ...]
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
    is_known: bool
    rows: tuple[OrphanRow, ...]
    paging: Paging
    sources_url: str
    deprecate_url: str = ""
