"""The frame around every page, and small shared parts: links, fields, filters, paging."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from dashboard.components.badges import EnvironmentKind
from dashboard.components.tour import TourBar
from dashboard.components.translation import gettext_lazy as _
from registry.access.permission_filters import WHOLE, Extent
from registry.subjects.policy.registries import MirrorState

#: maximum characters of an environment's name above a column
LONGEST_LABEL = 40
LONGEST_CHOICE = 120
# Control characters except tab and newline, format characters that reorder or hide text, line separators, private use.
HIDDEN = re.compile(
    "([\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\ue000-\uf8ff\U000e0000-\U000e007f])"
)


def readable(value: object) -> str:
    """Replace hidden characters of an untrusted text, for places without markup such as an option."""
    return HIDDEN.sub("\ufffd", str(value))


class Section(StrEnum):
    """The page's entry in the navigation."""

    HOME = "home"
    SUBJECTS = "subjects"
    POLICY = "policy"
    MAP = "map"
    SOURCES = "sources"
    QUERIES = "queries"
    FINDINGS = "findings"
    PROMOTIONS = "promotions"
    ENVIRONMENTS = "environments"
    AUDIT = "audit"
    SEARCH = "search"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A registry with its place in the promotion order; `url` shows the same page there."""

    name: str
    kind: EnvironmentKind = EnvironmentKind.OTHER
    url: str = ""
    current: bool = False

    @property
    def short(self) -> str:
        """The name, shortened for a cell's label."""
        return self.name if len(self.name) <= LONGEST_LABEL else f"{self.name[: LONGEST_LABEL - 1]}…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Crumb:
    """A step of the breadcrumb above the heading; `code` sets it in monospace (a subject's name)."""

    label: str
    url: str
    code: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SubPage:
    """A tab below the heading: one of the pages about the same object."""

    label: str
    url: str
    current: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Travel:
    """The time travel of a page: `at` is the moment shown, None for now; `moment` is its text in UTC.

    `value` is the initial value of the form that chooses another moment, `hidden` its other parameters.
    """

    at: datetime | None = None
    moment: str = ""
    value: str = ""
    now_url: str = ""
    hidden: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The frame of a page.

    `title` is the heading (h1) and the window's title; `code` says that it is a name in monospace. `environments` are
    in promotion order, at most one `current`; `parts` are the tabs; `mirror` says how old a remote registry's copy is,
    and `refresh` syncs it now. The two counts are badges in the navigation (0 hides them). Relative times count from `now`. `travel` is None if the
    page can't show the past. `readable` is what the reader may read. `tour` is the step that the page is opened for.
    """

    title: str
    now: datetime
    section: Section = Section.NONE
    code: bool = False
    crumbs: tuple[Crumb, ...] = ()
    parts: tuple[SubPage, ...] = ()
    environments: tuple[Environment, ...] = ()
    mirror: MirrorState | None = None
    refresh: Action | None = None
    travel: Travel | None = None
    open_findings: int = 0
    waiting_requests: int = 0
    unread: int = 0
    readable: Extent = WHOLE
    tour: TourBar | None = None

    @property
    def has_whole_registry(self) -> bool:
        """Whether the reader may read all of the navigation's registry, as its policy requires."""
        return self.readable.has_all_of(self.registry)

    @property
    def environment(self) -> Environment | None:
        """The current environment, if any."""
        return next((item for item in self.environments if item.current), None)

    @property
    def registry(self) -> str:
        """The registry of the navigation's links: the current one, else the first, else ""."""
        environment = self.environment or next(iter(self.environments), None)
        return environment.name if environment else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link."""

    label: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """An action of the reader.

    If it doesn't apply, use None instead. If it isn't allowed, the `reason` is shown beside the disabled button.
    `method` is "get" (a link) or "post" (a form with only the CSRF token); `tone` is "primary", "plain" or "danger";
    `icon` a name in the sprite.
    """

    label: str
    url: str
    method: str = "get"
    reason: str = ""
    tone: str = "plain"
    icon: str = ""

    @property
    def allowed(self) -> bool:
        """Whether the reader may do it."""
        return not self.reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """A form that downloads a subject as a file."""

    url: str
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """An error as shown to people: what is wrong, where, and the cure; `detail` is the remote side's message."""

    what: str
    where: str = ""
    cure: str = ""
    detail: str = ""
    links: tuple[Link, ...] = ()
    since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A value of a filter or a select; `count` is the number of matching rows, None if not counted.

    The `id` finds it on the page when its label is updated.
    """

    value: str
    label: str
    selected: bool = False
    count: int | None = None
    id: str = ""

    @property
    def full_label(self) -> str:
        """The label, shortened, with the count."""
        label = str(self.label)
        short = label if len(label) <= LONGEST_CHOICE else f"{label[: LONGEST_CHOICE - 1]}…"
        return short if self.count is None else f"{short} ({self.count:,})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A filter as a select; `name` is its query parameter, the first choice usually "any" with value ""."""

    name: str
    label: str
    choices: tuple[Choice, ...]

    @property
    def active(self) -> Choice | None:
        """The selected value, unless empty."""
        return next((choice for choice in self.choices if choice.selected and choice.value), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveFilter:
    """An active filter as a chip; `url` is the same page without it."""

    label: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchBox:
    """The search box and filters of a list. `url` is the list without any; `placeholder` is an example of a query.

    `fields` are text filters, included in `active` if set. `rarer` filters are collapsed unless one is active.
    `is_later`: the counts are loaded after the page without moving its content.
    """

    url: str
    query: str = ""
    label: str = _("Search")
    placeholder: str = ""
    filters: tuple[Filter, ...] = ()
    rarer: tuple[Filter, ...] = ()
    fields: tuple[Field, ...] = ()
    active: tuple[ActiveFilter, ...] = ()
    is_later: bool = False

    @property
    def is_open(self) -> bool:
        """Whether a collapsed filter is active."""
        return any(item.active for item in self.rarer)

    @property
    def narrowed(self) -> bool:
        """Whether the query or a filter is active."""
        return bool(self.query or self.active or any(item.active for item in (*self.filters, *self.rarer)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Paging:
    """The range of rows shown (from 1) and the total, None if not counted; the URL of a missing page is ""."""

    first: int
    last: int
    total: int | None = None
    previous_url: str = ""
    next_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A text filter of a list; `kind` is the type of its input."""

    name: str
    label: str
    value: str = ""
    kind: str = "text"
    placeholder: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A label and a value; `code` sets the value in monospace, `url` links to more, if given."""

    label: str
    value: str
    code: bool = False
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedPage:
    """The page of a removed object: its name, who removed it, when, and the reason in the audit.

    `nearest` are alternatives; `links` go to others of its kind and to the audit.
    """

    frame: Frame
    name: str
    who: str
    at: datetime
    why: str = ""
    facts: tuple[Fact, ...] = ()
    nearest: tuple[Link, ...] = ()
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePage:
    """A page with only a message, such as an error with its status.

    `home` is False if the reader would be refused there too; they can sign out instead.
    """

    frame: Frame
    status: int
    problem: Problem
    request_id: str = ""
    nearest: tuple[Link, ...] = field(default=())
    home: bool = True
