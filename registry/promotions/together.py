"""Which requests may be approved several at once: those whose plans leave their reviewer nothing to say. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from registry.promotions.plan import FAIL, PASS, SKIPPED, WEIGHTLESS

#: codes of checks that take no thought of an approver: ids differ as a rule, a freeze is asked when it is applied, and
#: advice weighs nothing
AS_USUAL: Final = frozenset({"ids", "freeze"}) | WEIGHTLESS
_NOTHING_TO_SAY: Final = frozenset({PASS, SKIPPED})


def why_alone(plan: Mapping[str, Any]) -> str:
    """Why a request with this stored plan is read and approved by itself, as a sentence; "" for one that is safe."""
    if plan.get("unreadable"):
        return "Its stored plan can't be read: run its checks again."
    if plan.get("breaking"):
        return "It breaks what is there, so that its approval takes a comment: read it by itself."
    if not plan["checks"]:
        return "No check was run of it: run its checks first."
    left = [check for check in plan["checks"] if _is_told(check)]
    worst = next((check for check in left if check["verdict"] == FAIL), left[0] if left else None)
    if worst is None:
        return ""
    said = "A check fails" if worst["verdict"] == FAIL else "A check warns"
    return f"{said}, so that it is read by itself: {worst['sentence']}"


def _is_told(check: Mapping[str, Any]) -> bool:
    return check["verdict"] not in _NOTHING_TO_SAY and check.get("code") not in AS_USUAL
