"""What discussions that aren't resolved mean for a request: said when it is planned, and again when it is shown. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from registry.promotions.plan import FAIL, WARN, Check

CODE: Final = "threads"


def threads_check(count: int, *, blocks: bool) -> list[Check]:
    """The check of so many open discussions, none where all are resolved; it fails where they stop the release."""
    if not count:
        return []
    said = "1 discussion is not resolved." if count == 1 else f"{count} discussions are not resolved."
    if not blocks:
        return [Check(CODE, "discussions", WARN, said, "Answer and resolve them.")]
    cure = "Resolve it, or have it resolved." if count == 1 else "Resolve each of them, or have them resolved."
    return [Check(CODE, "discussions", FAIL, said, cure)]


def with_threads(plan: Mapping[str, Any], count: int, *, blocks: bool) -> dict[str, Any]:
    """A stored plan whose check of discussions is that of now: they come and go without its being made again."""
    checks = [check for check in plan["checks"] if check.get("code") != CODE]
    return {**plan, "checks": [*checks, *(check.to_dict() for check in threads_check(count, blocks=blocks))]}
