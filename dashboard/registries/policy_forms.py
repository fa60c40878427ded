"""Scopes in addresses, the forms that change a policy or simulate a level, and what their pages show."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from dashboard.components.badges import Verdict
from dashboard.components.widgets import Action, Choice, Fact, Field, Frame, Link
from registry.formats.compatibility import LEVELS
from registry.subjects.versions.qualified_names import SubjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyNot:
    """A reason why something can't be done: `code` as the API has it, what would change it, and where that is done."""

    code: str
    sentence: str
    cure: str = ""
    fix: Link | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRow:
    """A place of the tree. `depth` is 0 for the registry, 1 for a context, 2 for a subject.

    `sentence` is the level in full with its consequence; `origin` says where it comes from. `own` are the other settings
    that the place has itself. `mode_sentence` is empty where the mode is the usual one.
    """

    kind: str
    name: str
    depth: int
    level: str
    level_is_own: bool
    origin: str
    sentence: str
    mode: str
    mode_is_own: bool
    mode_origin: str
    mode_sentence: str
    own: tuple[Fact, ...]
    change_url: str
    what_if_url: str
    url: str = ""
    inheriting: str = ""
    absent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeForm:
    """One of the two forms of a place: fields, what sends them, what takes all of it back, and why not."""

    title: str
    part: str
    fields: tuple[Field, ...]
    submit: Action
    why: tuple[WhyNot, ...]
    reset: Action | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePart:
    """The place that is being changed: what counts there now, and its forms."""

    row: PolicyRow
    context: str
    subject: str
    forms: tuple[ChangeForm, ...]
    close_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfForm:
    """Which level is tried, where; `fixed` is a subject whose page has the form, so that it isn't asked for."""

    url: str
    levels: tuple[Choice, ...]
    context: str = ""
    subject: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyPage:
    """The policy of a registry. `exceptions` says how many places set something of their own."""

    frame: Frame
    registry: str
    root: PolicyRow
    rows: tuple[PolicyRow, ...]
    exceptions: str
    what_if: WhatIfForm
    find_url: str
    change: ChangePart | None = None
    first_url: str = ""
    next_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingRow:
    """A version that would have been refused; `known` says that the level in force refuses it too."""

    version: int
    sentence: str
    compare_url: str
    compare_label: str
    is_known: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRow:
    """What the level says of one subject; `notes` tell what wasn't looked at, and why."""

    name: str
    url: str
    level: str
    sentence: str
    failing: tuple[FailingRow, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestChange:
    """An open request that would be judged otherwise."""

    label: str
    url: str
    sentence: str
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfOutcome:
    """What came of it: `sentence` in short, `progress` how far it got; `next_url` goes on from there."""

    verdict: Verdict
    sentence: str
    consequence: str
    progress: str
    rows: tuple[TrialRow, ...]
    requests_sentence: str = ""
    requests: tuple[RequestChange, ...] = ()
    stopped: str = ""
    next_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfPage:
    """A level tried on a place; `outcome` is None before one was chosen, `error` says what can't be tried."""

    frame: Frame
    registry: str
    scope: str
    form: WhatIfForm
    outcome: WhatIfOutcome | None = None
    error: str = ""


def scoped_url(page: str, registry: str, scope: SubjectName | None, **query: str) -> str:
    """The address of a page about a registry, a context or a subject."""
    parameters = {**query, **scope_query(scope)}
    return reverse(page, args=[registry]) + (f"?{urlencode(parameters)}" if parameters else "")


def scope_query(scope: SubjectName | None) -> dict[str, str]:
    """A place as the query has it."""
    if scope is None:
        return {}
    return {"subject": scope.qualified} if scope.subject else {"context": scope.context}


def what_if_form(registry: str, scope: SubjectName | None, chosen: str = "") -> WhatIfForm:
    """The form that tries a level at a place."""
    names = scope_query(scope)
    return WhatIfForm(
        url=reverse("ui:what_if", args=[registry]),
        levels=tuple(Choice(value=name, label=name, selected=name == (chosen or "FULL")) for name in LEVELS),
        context=names.get("context", ""),
        subject=names.get("subject", ""),
    )
