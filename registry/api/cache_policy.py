"""Whether an answer may be given again to the same request, without asking Django, as long as nothing has changed.

What stands before Django puts a `Replay` into the request's environment; a view whose answers follow from the request
and from the database alone allows it. Nothing is allowed by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

ENVIRON: Final = "schemadesk.replay"


@dataclass
class Replay:
    """What is known of one answer; `until` is the time from which on it isn't right any more, changed or not.

    `is_pure` says that nothing was written on the way to it.
    """

    is_allowed: bool = False
    until: datetime | None = None
    is_pure: bool = False


def allow_replay(environ: dict[str, Any], *, until: datetime | None = None) -> None:
    """Let the answer to this request be given again, until then at most (None: for as long as nothing changes)."""
    replay = environ.get(ENVIRON)
    if isinstance(replay, Replay):
        replay.is_allowed = True
        replay.until = until
