"""The list of subjects and the page of one subject."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from dashboard.compatibility.presenters import SnippetLine
from dashboard.components.badges import ChangeKind, Severity, Verdict
from dashboard.components.tables import ListTable
from dashboard.components.widgets import Action, Choice, Environment, Export, Frame, Link, Paging, Problem, SearchBox
from dashboard.registries.policy_forms import WhatIfForm
from dashboard.subjects.bulk import BulkForm
from dashboard.subjects.descriptions import NotePart, TagChip
from dashboard.subjects.lifecycle import LeastPart, LifeMark, StandingPart
from dashboard.subjects.references import ReferenceLists
from registry.promotions.board.readiness import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectNumbers:
    """How many each filter's values leave: that this is to be told by `url`, or was counted, at a moment that is told.

    `count_url` is the page with them, for who has no htmx. `choices` of filters that stay on the page get the words that they
    have here: neither what is chosen there nor the focus is touched. Not `is_whole`: without what owners' patterns tell.
    """

    url: str = ""
    count_url: str = ""
    at: datetime | None = None
    is_there: bool = True
    is_whole: bool = True
    choices: tuple[Choice, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectList:
    """The list of subjects of one registry. `add_command` is a way to register a schema, shown when there is none yet.

    `links` lead to the same words in everything, and to lists that are made of what became of subjects. `unowned` says that
    not all without an owner come first, and leads to them; `unanswered` why what the box asks can't be answered.
    """

    frame: Frame
    registry: str
    search: SearchBox
    table: ListTable
    paging: Paging
    add_command: str = ""
    bulk: BulkForm | None = None
    links: tuple[Link, ...] = ()
    numbers: SubjectNumbers | None = None
    unowned: Link | None = None
    unanswered: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneHead:
    """A version over which the lanes run, and since when it is there.

    It is one of this registry, or of the environment `elsewhere`, whose content this one has not.
    """

    version: int
    since: datetime
    elsewhere: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneCell:
    """A version in an environment's lane: `there` is its number there, None where it isn't.

    It arrived by a request or was registered directly; `linked` says that it came from the lane above: a line joins the two.
    """

    version: int
    there: int | None = None
    current: bool = False
    direct: bool = False
    linked: bool = False
    url: str = ""
    schema_id: int | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One environment's row of the lane strip; the cells of every lane stand for the same versions, in order."""

    environment: Environment
    cells: tuple[LaneCell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneStrip:
    """The environments' lanes over the newest of `total` columns."""

    heads: tuple[LaneHead, ...]
    lanes: tuple[Lane, ...]
    total: int

    @property
    def is_cut(self) -> bool:
        """Whether older columns aren't drawn."""
        return self.total > len(self.heads)

    @property
    def has_strangers(self) -> bool:
        """Whether a content is there that this registry has not."""
        return any(head.elsewhere for head in self.heads)


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePlace:
    """An environment that has a version's content: as which version, under which schema id, since when."""

    environment: Environment
    version: int
    schema_id: int
    since: datetime
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectVersionRow:
    """A version in the subject's table, newest first.

    `verdict` is against the predecessor under the level in force, None for the first and where that level asks nothing;
    `verdict_note` says why there is none, or against which other version it is. `summary` is one line in words
    ("+2 fields, 1 widened"), `problem` what kept it from being told. `via` is the door ("REST API", "request 12").
    """

    version: int
    schema_id: int
    fingerprint: str
    url: str
    summary: str
    problem: str = ""
    verdict: Verdict | None = None
    verdict_note: str = ""
    compare_url: str = ""
    registered_at: datetime | None = None
    registered_by: str = ""
    via: str = ""
    live_in: tuple[LivePlace, ...] = ()
    selected: bool = False
    deleted: bool = False
    marks: tuple[LifeMark, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldMarkLink:
    """An open finding about a field: what it says in a few words, and in its own sentence; `path` where it stands apart."""

    word: str
    sentence: str
    severity: Severity
    url: str
    path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenField:
    """What scans counted of a field: `filled` is the share of the messages in which it had a value, "" where not seen.

    `present` is the share in which it was there at all, `nulls` the one in which it was there and null, both ""
    where it always had a value; `last_day` the last day of which messages with it were counted, None where it never was
    there.
    """

    filled: str = ""
    never: bool = False
    messages: int = 0
    present: str = ""
    nulls: str = ""
    last_day: date | None = None
    marks: tuple[FieldMarkLink, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class InData:
    """What scans of the last `days` say of a version: whether they read its data, and findings about other fields."""

    is_scanned: bool = False
    days: int = 0
    undeclared: tuple[FieldMarkLink, ...] = ()
    more_undeclared: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldRow:
    """A row of the structure tree; `depth` counts from 0, `default` is JSON text, None where there is none.

    `fact` is the field in business words, `seen` what data say of it, None where nothing is known. `inside` counts the
    fields in it that `toggle_url` shows and hides. `used_by` are declared clients that need it. `is_around`: it is there
    for what was found in it.
    """

    name: str
    path: str
    anchor: str
    type: str
    depth: int = 0
    required: bool = False
    default: str | None = None
    doc: str = ""
    aliases: tuple[str, ...] = ()
    since: int | None = None
    history_url: str = ""
    change: ChangeKind | None = None
    tags: tuple[TagChip, ...] = ()
    personal: bool = False
    fact: str = ""
    data: SeenField | None = None
    inside: int = 0
    is_open: bool = False
    toggle_url: str = ""
    used_by: tuple[str, ...] = ()
    used_by_more: int = 0
    is_around: bool = False

    @property
    def indents(self) -> range:
        """One step a level of depth, at most twelve drawn."""
        return range(min(self.depth, 12))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExamplePanel:
    """A message made from the schema; `refused` says why it doesn't pass, `problem` why there is none."""

    text: str = ""
    is_cut: bool = False
    note: str = ""
    refused: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """What stands around the rows of the structure: the filter, what is closed, who uses all of it, the example.

    `kept` is what the filter's form sends besides; `example_url` shows the example, and hides it again.
    """

    url: str
    version: int
    filter: str = ""
    kept_parameters: tuple[tuple[str, str], ...] = ()
    summary: str = ""
    clear_url: str = ""
    hidden: int = 0
    open_all_url: str = ""
    close_url: str = ""
    shows_users: bool = False
    users: tuple[str, ...] = ()
    usage_url: str = ""
    example_url: str = ""
    example: ExamplePanel | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceRow:
    """A reference out of the version: the name inside the schema, subject and version it means."""

    name: str
    subject: str
    version: int
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectSetting:
    """A setting in force: its value, where it comes from in words, and what it means in a full sentence.

    `change` leads to where it is changed, `reset` to where its own value is taken away, None where there is none; `why`
    says what stands against both. `inherited` is what would count then.
    """

    label: str
    value: str
    origin: str
    sentence: str
    own: bool = False
    inherited: str = ""
    change: Action | None = None
    reset: Action | None = None
    why: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedVersion:
    """The version below the table. `tab` is "structure", "source", "references" or "settings"; the urls choose each.

    `source` is the canonical text as it is shown, without `source_hidden` lines at its end; `fields` are those of one
    page, and `no_fields` says why a format has none. `problem` stands where the text can't be read, with the `snippet` around the place; the text itself is shown
    below it. `words_url` turns to business words and back.
    """

    version: int
    schema_id: int
    format: str
    tab: str
    tab_urls: tuple[tuple[str, str, str], ...]
    fields: tuple[FieldRow, ...] = ()
    no_fields: str = ""
    fields_paging: Paging | None = None
    tree: Tree | None = None
    in_data: InData | None = None
    words_url: str = ""
    in_business_words: bool = False
    source: str = ""
    source_hidden: int = 0
    raw_url: str = ""
    references: tuple[ReferenceRow, ...] = ()
    settings: tuple[SubjectSetting, ...] = ()
    what_if: WhatIfForm | None = None
    least: LeastPart | None = None
    reference_lists: ReferenceLists | None = None
    graph_url: str = ""
    fingerprint: str = ""
    problem: Problem | None = None
    snippet: tuple[SnippetLine, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLink:
    """A topic whose keys or values carry the subject, and `by` what it is known to be so; `url` "" where it isn't shown."""

    name: str
    side: str
    by: str
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLinks:
    """The topics that carry the subject; `more` of them aren't drawn."""

    topics: tuple[TopicLink, ...] = ()
    more: int = 0
    more_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectPage:
    """The page of one subject in one registry.

    `level_origin` says where the level is set, `level_asks` what it asks of a new version; `upgrade_order` is the headline
    that it implies ("Deploy consumers first"). Where all `versions` are soft-deleted `problem` says so; `restore` leads to
    where what is soft-deleted is taken back. `more` and `export` are what is done seldom, in a menu. `versions_paging`
    leads to those that aren't drawn.
    """

    frame: Frame
    registry: str
    subject: str
    format: str
    level: str
    level_origin: str
    level_asks: str
    upgrade_order: str
    versions: tuple[SubjectVersionRow, ...]
    compare_url: str
    actions: tuple[Action, ...] = ()
    more: tuple[Action, ...] = ()
    export: Export | None = None
    restore: Action | None = None
    context: str = ""
    mode: str = "READWRITE"
    state: LifeMark | None = None
    topics: TopicLinks = TopicLinks()
    lanes: LaneStrip | None = None
    versions_paging: Paging | None = None
    selected: SelectedVersion | None = None
    standing: StandingPart | None = None
    note: NotePart | None = None
    open_findings: int = 0
    findings_url: str = ""
    problem: Problem | None = None

    @property
    def qualified(self) -> str:
        """The subject's whole name."""
        return self.frame.title

    @property
    def state_marks(self) -> tuple[LifeMark, ...]:
        """The state as what draws marks takes it."""
        return (self.state,) if self.state else ()
