"""Checkpoints found below a folder or an address, each of which can be added as a source."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.presenters.drift_parts import FieldGroup
from dashboard.presenters.frame import Action, Frame, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRow:
    """A checkpoint. `summary` says what its query keeps, `refused` why it can't be read: one of the two is empty.

    `source_url` is set where it is a source of the registry already; else `sent` is what its form sends.
    """

    path: str
    summary: str
    refused: str
    source_url: str = ""
    sent: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoverPage:
    """The form that searches, and what was found; `said` is empty where nothing was searched yet.

    `add` is the button of each row. `passed_over` names folders that couldn't be looked into, with the reason.
    """

    frame: Frame
    groups: tuple[FieldGroup, ...]
    submit: Action
    add: Action
    back_url: str
    said: str = ""
    rows: tuple[FoundRow, ...] = ()
    passed_over: tuple[str, ...] = ()
    problem: Problem | None = None
