"""The values that the templates of the list and of a subject's page read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from dashboard.compatibility.presenters import SnippetLine
from dashboard.components.badges import Severity, Verdict
from dashboard.components.tables import ListTable
from dashboard.components.widgets import Action, Choice, Environment, Export, Frame, Link, Paging, Problem, SearchBox
from dashboard.registries.policy_forms import WhatIfForm
from dashboard.subjects.bulk import BulkForm
from dashboard.subjects.descriptions import NotePart, TagChip
from dashboard.subjects.lifecycle import MinimumPart, StatusPart, VersionMark
from dashboard.subjects.references import ReferenceLists
from registry.errors import SchemadeskError
from registry.formats.base import OutlineField
from registry.formats.personal_data import SchemaTags
from registry.promotions.board.readiness import Reason
from registry.subjects.versions.versions import VersionInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectNumbers:
    """The number of subjects for each filter value: either the `url` to load it from, or the counts and their time.

    `count_url` is the page with counts, for browsers without htmx. `choices` relabel filters that stay on the page, so
    that selection and focus are kept. Not `is_whole`: counts from owners' patterns are missing.
    """

    url: str = ""
    count_url: str = ""
    at: datetime | None = None
    is_there: bool = True
    is_whole: bool = True
    choices: tuple[Choice, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectList:
    """The list of subjects of a registry.

    `add_command` shows how to register the first schema. `links` lead to the same search over everything and to lists
    by status. `unowned` says that not all subjects without an owner come first, and links to all of them; `unanswered`
    says why the search can't be answered.
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
    """A column of the lanes: a version, and the time of its arrival.

    It is a version of this registry, or one of the environment `elsewhere` whose content this registry lacks.
    """

    version: int
    since: datetime
    elsewhere: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneCell:
    """A version in an environment's lane: `there` is its number there, None if absent.

    It arrived by a request, or was registered directly if `direct`. `linked`: it came from the lane above, and a line
    joins the two.
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
    """An environment's row of lanes; the cells of every lane are for the same versions, in order."""

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
        """Whether older columns are omitted."""
        return self.total > len(self.heads)

    @property
    def has_strangers(self) -> bool:
        """Whether a column has content that this registry lacks."""
        return any(head.elsewhere for head in self.heads)


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePlace:
    """An environment that has a version's content: with its version, schema id and time there."""

    environment: Environment
    version: int
    schema_id: int
    since: datetime
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectVersionRow:
    """A version in the subject's table.

    `verdict` is against the previous version under the level in force; None for the first version and if the level
    checks nothing. `verdict_note` says why it is None, or names the version compared with. `summary` is one line ("+2
    fields, 1 widened"), `problem` the error that prevented it. `via` is the channel ("REST API", "request 12").
    """

    info: VersionInfo
    url: str
    summary: str
    problem: str = ""
    verdict: Verdict | None = None
    verdict_note: str = ""
    compare_url: str = ""
    via: str = ""
    live_in: tuple[LivePlace, ...] = ()
    selected: bool = False
    marks: tuple[VersionMark, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldMarkLink:
    """An open finding about a field: in a few words and as a sentence; `path` if it is listed apart from its field."""

    word: str
    sentence: str
    severity: Severity
    url: str
    path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenField:
    """Counts of a field in scanned messages: `filled` is the share of messages with a value, "" if not scanned.

    `present` is the share with the field, `nulls` the share with null, both "" if it always had a value; `last_day` is
    the last day on which it was counted, None if never.
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
    """Recent scans of a version, over `days`: whether they read its data, and findings about undeclared fields."""

    is_scanned: bool = False
    days: int = 0
    undeclared: tuple[FieldMarkLink, ...] = ()
    more_undeclared: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldRow:
    """A row of the structure tree.

    `fact` is the field in business words; `seen` has its counts in data, None if unknown. `inside` counts the fields
    below it that `toggle_url` expands and collapses. `used_by` are declared clients that need it. `is_around`: it is
    shown only because the filter found a field below it. `term` is the business term that it means.
    """

    item: OutlineField
    anchor: str
    since: int | None = None
    history_url: str = ""
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
    term: str = ""

    @property
    def indents(self) -> range:
        """One step per level, at most twelve."""
        return range(min(self.item.depth, 12))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExamplePanel:
    """An example message for the schema; `refused` says why it is invalid, `problem` why none can be made."""

    text: str = ""
    is_cut: bool = False
    note: str = ""
    refused: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """The structure without its rows: the filter, hidden fields, users of all fields, the example.

    `kept` are further parameters of the filter's form; `example_url` shows and hides the example.
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


@dataclass(frozen=True)
class Structure:
    """The fields that the URL requests, their counts in data, and links to others.

    `error` is the error of reading the version, which then has no fields. `tags` are those of all fields, if read.
    """

    tags: SchemaTags | None = None
    fields: tuple[FieldRow, ...] = ()
    paging: Paging | None = None
    tree: Tree | None = None
    in_data: InData | None = None
    words_url: str = ""
    error: SchemadeskError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceRow:
    """A reference: its name in the schema, its subject and version; `url` is "" if the reader may not see these."""

    name: str
    subject: str
    version: int
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectSetting:
    """A setting in force: its value, its origin in words, and its meaning in a sentence.

    `change` links to where it is changed; `reset` removes the own value, None if there is none; `why` are the reasons
    against both. `inherited` is the value without the own one.
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
    """The version below the table. `tab` is "structure", "source", "references" or "settings"; `tab_urls` choose one.

    `source` is the displayed text without its last `source_hidden` lines; `fields` are those of one page; `no_fields`
    says why a format has none. If the text is invalid, `problem` says why and `snippet` shows the place; the text
    follows below. `words_url` switches business words on and off.
    """

    info: VersionInfo
    tab: str
    tab_urls: tuple[tuple[str, str, str], ...]
    structure: Structure = Structure()
    no_fields: str = ""
    in_business_words: bool = False
    source: str = ""
    source_hidden: int = 0
    raw_url: str = ""
    references: tuple[ReferenceRow, ...] = ()
    settings: tuple[SubjectSetting, ...] = ()
    what_if: WhatIfForm | None = None
    minimum: MinimumPart | None = None
    reference_lists: ReferenceLists | None = None
    graph_url: str = ""
    problem: Problem | None = None
    snippet: tuple[SnippetLine, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLink:
    """A topic whose keys or values carry the subject; `by` is the evidence for that; `url` is "" without a page."""

    name: str
    side: str
    by: str
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLinks:
    """The topics that carry the subject, without the `more` omitted ones."""

    topics: tuple[TopicLink, ...] = ()
    more: int = 0
    more_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectPage:
    """The page of a subject in a registry.

    `level_origin` says where the level is set, `level_asks` what it requires of a new version; `upgrade_order` is the
    deployment order that it implies ("Deploy consumers first"). `problem` says that all `versions` are soft-deleted;
    `restore` restores soft-deleted ones. `more` and `export` are rare actions, in a menu. `versions_paging` links to
    further versions.
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
    state: VersionMark | None = None
    topics: TopicLinks = TopicLinks()
    lanes: LaneStrip | None = None
    versions_paging: Paging | None = None
    selected: SelectedVersion | None = None
    status: StatusPart | None = None
    note: NotePart | None = None
    open_findings: int = 0
    findings_url: str = ""
    problem: Problem | None = None

    @property
    def qualified(self) -> str:
        """The subject's qualified name."""
        return self.frame.title

    @property
    def state_marks(self) -> tuple[VersionMark, ...]:
        """The state as a tuple of marks."""
        return (self.state,) if self.state else ()
