"""API tokens as their page shows them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dashboard.presenters.frame import Action, Field, Frame, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRow:
    """A token; `state` is `live`, `expired` or `revoked`; `where` is its place in words."""

    name: str
    who: str
    scope: str
    where: str
    state: str
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None
    used_from: str
    revoke: Action | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPage:
    """The list and the form; `made` is a token that was just made, shown this one time."""

    frame: Frame
    rows: tuple[TokenRow, ...]
    fields: tuple[Field, ...]
    submit: Action
    everybody: bool
    other_url: str
    made: str = ""
    made_until: datetime | None = None
    problem: Problem | None = None
