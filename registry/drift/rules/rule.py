"""The type of a drift rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: `break`: data is lost or unreadable now; `risk`: it will be, or it may already be in silence; `notice`: to know
Severity = Literal["break", "risk", "notice"]


@dataclass(frozen=True)
class Rule:
    """A row of a rule table. `sentence` and `remedy` are templates, which the judge fills with names and numbers.

    `condition` says for the reference when the rule holds, where its sentence doesn't.
    """

    id: str
    severity: Severity
    sentence: str
    remedy: str
    condition: str = ""
