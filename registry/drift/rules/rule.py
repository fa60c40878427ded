"""The type of a drift rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: `break`: data is lost or unreadable now; `risk`: it will be, or may already be unnoticed; `notice`: worth knowing
Severity = Literal["break", "risk", "notice"]


@dataclass(frozen=True)
class Rule:
    """A row of a rule table. `sentence` and `remedy` are templates that the judge fills.

    `condition` documents when the rule applies, if its sentence doesn't. `group` is a template like them: findings with
    the same text have one cause, so lists show them as one. Without it, the version after which they began groups them.
    """

    id: str
    severity: Severity
    sentence: str
    remedy: str
    condition: str = ""
    group: str = ""
