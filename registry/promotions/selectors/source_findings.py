"""Open break findings where a request comes from, for whoever may read them."""

from __future__ import annotations

from registry.access.roles import Actor
from registry.promotions.origins import OriginFinding, readable_findings
from registry.promotions.outlook import open_breaks
from registry.promotions.plan import SOURCE_DRIFT
from registry.promotions.selectors.request_infos import RequestInfo
from registry.subjects.selectors.places import get_registry


def source_findings(info: RequestInfo, by: Actor) -> list[OriginFinding]:
    """Those that are open now of the subjects that the request's checks name; no query where they name none."""
    subjects = [str(check["subject"]) for check in info.checks if check.get("code") == SOURCE_DRIFT]
    if not subjects or not info.source:
        return []
    numbers = [number for listed in open_breaks(get_registry(info.source), subjects).values() for number in listed]
    found = readable_findings(numbers, by)
    return [found[number] for number in numbers if number in found]
