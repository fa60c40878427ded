"""The check of planned state before a restart: its form and its report."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from dashboard.presenters.drift_parts import FieldGroup
from dashboard.presenters.frame import Action, Fact, Field, Frame, Link, Problem
from dashboard.presenters.looks import Look
from dashboard.texts import later

#: the verdict of a whole check
VERDICT_LOOKS: Final = {
    "fine": Look("ok", "circle-check", later("Fine")),
    "loses data": Look("care", "triangle-alert", later("Loses data")),
    "fails later": Look("breaks", "octagon-x", later("Fails later")),
    "refused": Look("breaks", "octagon-x", later("Refused")),
    "not checked": Look("unknown", "circle-dashed", later("Not checked")),
}
#: the status of a variable
STATUS_LOOKS: Final = {
    "unchanged": Look("unknown", "check", later("Unchanged")),
    "added": Look("ok", "plus", later("Added")),
    "removed": Look("care", "minus", later("Removed")),
    "evolves": Look("ok", "circle-check", later("Evolves")),
    "accepted but loses data": Look("care", "triangle-alert", later("Loses data")),
    "accepted but fails later": Look("breaks", "octagon-x", later("Fails later")),
    "refused": Look("breaks", "octagon-x", later("Refused")),
    "not checked": Look("unknown", "circle-dashed", later("Not checked")),
}
#: the effect of one change
EFFECT_LOOKS: Final = {
    "note": Look("info", "info", later("Note")),
    "loses data": Look("care", "triangle-alert", later("Loses data")),
    "fails later": Look("breaks", "octagon-x", later("Fails later")),
    "refused": Look("breaks", "octagon-x", later("Refused")),
}
UNKNOWN: Final = Look("unknown", "circle-dashed", later("Not known"))


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChange:
    """One change of a variable: what it is, why, what to do, and what rows written before read as, by language."""

    look: Look
    path: str
    sentence: str
    why: str
    remedy: str
    rule: str
    error: str = ""
    document: str = ""
    reads: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StateVariable:
    """A state variable in the report; schemas are DDL, "" where there is none; `budget` is "" where it doesn't count.

    `hidden_changes` aren't drawn, none worse than those that are. `is_kept` says that a built-in operator keeps it: nothing can be planned for it.
    """

    anchor: str
    name: str
    kind: str
    look: Look
    sentence: str
    stored: str
    planned: str
    changes: tuple[StateChange, ...]
    budget: str = ""
    place: str = ""
    hidden_changes: int = 0
    is_kept: bool = False

    @property
    def is_changed(self) -> bool:
        """Whether stored and planned schemas are worth to be shown side by side."""
        return self.stored != self.planned


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A limit of Spark's: what it counts, how much is used before and after, and how full it then is (0 to 100)."""

    label: str
    before: int
    after: int
    allowed: int
    percent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StateReport:
    """The page of a report."""

    frame: Frame
    look: Look
    sentence: str
    error: str
    error_message: str
    checked_at: datetime
    checked_by: str
    facts: tuple[Fact, ...]
    why_fixed: str
    changes: tuple[StateChange, ...]
    variables: tuple[StateVariable, ...]
    budgets: tuple[Budget, ...]
    settings: tuple[tuple[str, str, str], ...]
    notes: tuple[str, ...]
    plan: str
    exports: tuple[Link, ...]
    again: Action


@dataclass(frozen=True, slots=True, kw_only=True)
class StateCheckForm:
    """The form: a known checkpoint or a path, the object store of one that is in none of the sources, and the plan."""

    frame: Frame
    known: Field | None
    path: Field
    plan: Field
    submit: Action
    store: tuple[FieldGroup, ...] = ()
    problem: Problem | None = None
    recent: tuple[Link, ...] = ()
