"""What an environment asks of evidence from data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: a year
MAX_HOURS: Final = 8760
_DAY: Final = 24


@dataclass(frozen=True)
class EvidenceRule:
    """What an environment asks of evidence: `hours` old at most (0: of any age), and whether there has to be any."""

    environment: str
    hours: int = 0
    required: bool = False

    @property
    def binds(self) -> bool:
        """Whether anything is asked."""
        return bool(self.hours or self.required)

    @property
    def longest(self) -> str:
        """The age, in words."""
        number, unit = (self.hours // _DAY, "day") if self.hours % _DAY == 0 else (self.hours, "hour")
        return f"{number} {unit}{'s' if number != 1 else ''}"
