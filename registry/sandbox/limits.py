"""What one child may use, and how many there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a pool and of each of its children.

    `seconds` is the wall clock of one job, and how long a caller waits for a free child; a job uses at most `seconds`
    of processor time too, rounded up. `memory` is in bytes, of a child's private data. `answer` is in bytes, as JSON.
    A child does `jobs` jobs, then another takes its place. At most `waiting` callers wait at a time; one waits up to
    `start` seconds where no child is at work, as then the first one is only starting.
    """

    children: int = 2
    seconds: float = 2.0
    memory: int = 512 * MIB
    answer: int = 4 * MIB
    jobs: int = 200
    waiting: int = 4
    start: float = 10.0
