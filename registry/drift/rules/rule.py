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
    `former` is the rule's first id if it was renamed: filters accept it, and fingerprints of findings are made of it.
    """

    id: str
    severity: Severity
    sentence: str
    remedy: str
    condition: str = ""
    group: str = ""
    former: str = ""

    @property
    def first_id(self) -> str:
        """The id that never changes."""
        return self.former or self.id
