"""What every page has around its content, and the small parts that many pages share: links, fields, filters, paging."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from dashboard.components.badges import EnvironmentKind
from dashboard.components.translation import later

#: characters of an environment's name above the cells of its column
LONGEST_LABEL = 40
LONGEST_CHOICE = 120
# Control characters but tab and newline, format characters that reorder or hide text, line separators, private use.
HIDDEN = re.compile(
    "([\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\ue000-\uf8ff\U000e0000-\U000e007f])"
)


def readable(value: object) -> str:
    """A text of others for places without markup, such as an option: a replacement sign for each hidden character."""
    return HIDDEN.sub("\ufffd", str(value))


class Section(StrEnum):
    """The entry of the navigation that a page belongs to."""

    HOME = "home"
    SUBJECTS = "subjects"
    POLICY = "policy"
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
    """A registry as a place in the order of promotion; `url` is where choosing it leads (same page there)."""

    name: str
    kind: EnvironmentKind = EnvironmentKind.OTHER
    url: str = ""
    current: bool = False

    @property
    def short(self) -> str:
        """The name for a label of a cell."""
        return self.name if len(self.name) <= LONGEST_LABEL else f"{self.name[: LONGEST_LABEL - 1]}…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Crumb:
    """A step of the breadcrumb above the heading; `code` sets it in monospace (a subject's name)."""

    label: str
    url: str
    code: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SubPage:
    """One of the pages about the same thing, in a row below the heading."""

    label: str
    url: str
    current: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirror:
    """What is shown is a mirror: from where, of when (None: never read yet), and what is wrong with it since when.

    `refresh` has it read now; it leads back to the page that it was asked for on.
    """

    url: str
    synced_at: datetime | None
    stale: bool = False
    problem: str = ""
    failing_since: datetime | None = None
    under_way: bool = False
    refresh: Action | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Travel:
    """The page can be shown as it was then; `at` is then, None now, and `words` says it in UTC.

    `value` is what the form that asks for another moment holds, `hidden` what else it sends.
    """

    at: datetime | None = None
    moment: str = ""
    value: str = ""
    now_url: str = ""
    hidden: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The frame of one page.

    `title` is the heading (h1) and the window's title; `code` says it is a name in monospace. `environments` are in the
    order of promotion, at most one `current`; `parts` are the other pages about the same thing; `mirror` says how old a remote registry's copy is. The two counts are badges in the navigation (0 hides them). `now` is the
    moment that relative times are counted from. `travel` is there where the page can be shown as it was.
    """

    title: str
    now: datetime
    section: Section = Section.NONE
    code: bool = False
    crumbs: tuple[Crumb, ...] = ()
    parts: tuple[SubPage, ...] = ()
    environments: tuple[Environment, ...] = ()
    mirror: Mirror | None = None
    travel: Travel | None = None
    open_findings: int = 0
    waiting_requests: int = 0
    unread: int = 0

    @property
    def environment(self) -> Environment | None:
        """The environment that is looked at, if one is."""
        return next((item for item in self.environments if item.current), None)

    @property
    def registry(self) -> str:
        """The registry that the navigation's subjects are of: the one looked at, else the first, else ""."""
        environment = self.environment or next(iter(self.environments), None)
        return environment.name if environment else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A plain link."""

    label: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """Something a person may do here.

    Not relevant: leave it out (None). Not allowed: `allowed=False` with the `reason`, which is shown in words beside
    the disabled button. `method` is "get" (a link) or "post" (a form with only the CSRF token); `tone` is "primary",
    "plain" or "danger"; `icon` a name in the sprite.
    """

    label: str
    url: str
    method: str = "get"
    allowed: bool = True
    reason: str = ""
    tone: str = "plain"
    icon: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """A form whose button answers with a file of one subject, which has this name."""

    url: str
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A named error as people read it: what is wrong, where, and the cure; `detail` is the other side's own message."""

    what: str
    where: str = ""
    cure: str = ""
    detail: str = ""
    links: tuple[Link, ...] = ()
    since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One value of a filter or a select; `count` is how many rows it would leave, None where not counted.

    By its `id` it gets other words while it stands on a page.
    """

    value: str
    label: str
    selected: bool = False
    count: int | None = None
    id: str = ""

    @property
    def full_label(self) -> str:
        """What the choice is called where it is chosen, with its number."""
        label = str(self.label)
        short = label if len(label) <= LONGEST_CHOICE else f"{label[: LONGEST_CHOICE - 1]}…"
        return short if self.count is None else f"{short} ({self.count:,})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A filter drawn as a select; `name` is its query parameter, the first choice usually "any" with value ""."""

    name: str
    label: str
    choices: tuple[Choice, ...]

    @property
    def active(self) -> Choice | None:
        """The chosen value, unless it is the empty one."""
        return next((choice for choice in self.choices if choice.selected and choice.value), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveFilter:
    """A filter in force, drawn as a chip; `url` is the same page without it."""

    label: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchBox:
    """The search box and filters of a list. `url` is the list without any; `placeholder` is an example of a query.

    `fields` are filters that are written and not chosen; they are among `active` where they are in force. `rarer` are
    those in a fold, which is open where one of them is in force. `is_later`: the numbers come after the page, and move
    nothing.
    """

    url: str
    query: str = ""
    label: str = later("Search")
    placeholder: str = ""
    filters: tuple[Filter, ...] = ()
    rarer: tuple[Filter, ...] = ()
    fields: tuple[Field, ...] = ()
    active: tuple[ActiveFilter, ...] = ()
    is_later: bool = False

    @property
    def is_open(self) -> bool:
        """Whether a filter in the fold is in force."""
        return any(item.active for item in self.rarer)

    @property
    def narrowed(self) -> bool:
        """Whether the query or a filter leaves rows out."""
        return bool(self.query or self.active or any(item.active for item in (*self.filters, *self.rarer)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Paging:
    """Which rows of how many are shown (counted from 1); `total` None where it isn't counted; "" where no such page."""

    first: int
    last: int
    total: int | None = None
    previous_url: str = ""
    next_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A form's field as it stands: name, value, errors in words, choices of a select.

    `optional` is False for one that some buttons or values of the form require, as its help says.
    """

    name: str
    label: str
    value: str = ""
    help: str = ""
    errors: tuple[str, ...] = ()
    choices: tuple[Choice, ...] = ()
    required: bool = False
    optional: bool = True
    kind: str = "text"
    rows: int = 4
    placeholder: str = ""
    code: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A label and a value; `code` sets the value in monospace, `url` leads to more of it where a page links it."""

    label: str
    value: str
    code: bool = False
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedPage:
    """What stood at an address until it was removed: its name, who removed it, when, and the reason in the audit.

    `nearest` is what there is instead, `links` lead to others of its kind and to the audit.
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
    """A page with nothing but a message: errors by status, "not found", "not allowed".

    `home` is false for whoever would be refused there too; they can sign out instead.
    """

    frame: Frame
    status: int
    problem: Problem
    request_id: str = ""
    nearest: tuple[Link, ...] = field(default=())
    home: bool = True
