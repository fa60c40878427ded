"""The messages of a finding by offset, for pages, programs and files."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from typing import Final

from django.db.models import F, Q, Sum

from registry.access.roles import Actor
from registry.drift.evidence import fields_of_rule
from registry.drift.models import FindingRange
from registry.drift.selectors.findings import FindingInfo, get_finding
from registry.errors import InvalidInput
from registry.frozen_rows import row_info

MEDIA: Final = {"csv": "text/csv; charset=utf-8", "json": "application/json"}
_PLACE: Final = re.compile(r"([0-9]{1,10})@([0-9]{1,18})", re.ASCII)


@dataclass(frozen=True)
class OffsetRange:
    """All offsets of a partition from the first to the last."""

    partition: int
    first_offset: int
    last_offset: int

    @property
    def messages(self) -> int:
        """The number of messages."""
        return self.last_offset - self.first_offset + 1


@dataclass(frozen=True)
class FindingOffsets:
    """Ranges of a finding's messages, by partition and offset; together they have `listed` of its `messages`.

    If not `collected`, scans only count these messages: that none is listed doesn't mean that there are none. `next` is
    the place after which more ranges follow; empty at the end.
    """

    finding: int
    topic: str
    messages: int
    listed: int
    ranges: tuple[OffsetRange, ...]
    next: str = ""
    collected: bool = True


def finding_offsets(finding_id: int, *, by: Actor | None, after: str = "", limit: int | None = None) -> FindingOffsets:
    """Return the ranges of a finding. Raises as `get_finding` and `offsets_of`: evidence has some of these offsets too."""
    return offsets_of(get_finding(finding_id, by=by), after, limit)


def offsets_of(finding: FindingInfo, after: str = "", limit: int | None = None) -> FindingOffsets:
    """Return the ranges of a readable finding after a place such as `0@17`, all without `limit`. Raises InvalidInput."""
    stored = FindingRange.objects.filter(finding=finding.id)
    listed = stored.aggregate(listed=Sum(F("last_offset") - F("first_offset") + 1))["listed"] or 0
    rows = stored.order_by("partition", "first_offset")
    if after:
        place = _PLACE.fullmatch(after)
        if place is None:
            raise InvalidInput(f"A place is partition@offset, such as 0@17, not {after[:40]!r}.", field="after")
        partition, offset = int(place[1]), int(place[2])
        rows = rows.filter(Q(partition__gt=partition) | Q(partition=partition, first_offset__gt=offset))
    ranges = [row_info(OffsetRange, row) for row in rows[: limit + 1 if limit else None]] if listed else []
    shown = ranges if limit is None else ranges[:limit]
    next_ = f"{shown[-1].partition}@{shown[-1].first_offset}" if len(ranges) > len(shown) else ""
    collected = bool(listed) or "messages" not in fields_of_rule(finding.rule)
    return FindingOffsets(finding.id, finding.topic, finding.count, listed, tuple(shown), next_, collected)


def offsets_file(finding_id: int, form: str, *, by: Actor | None) -> str:
    """Return all ranges of a finding as CSV or JSON. Raises as `finding_offsets`, and InvalidInput if none are known."""
    if form not in MEDIA:
        raise InvalidInput(f"Offsets can be exported as {' or '.join(MEDIA)}, not as {form[:20]!r}.", field="as")
    offsets = finding_offsets(finding_id, by=by)
    if not offsets.collected:
        raise InvalidInput("Scans only count the messages of this finding, so there are no offsets to export.")
    if form == "json":
        return json.dumps(asdict(offsets))
    rows = (f"{item.partition},{item.first_offset},{item.last_offset},{item.messages}" for item in offsets.ranges)
    return "\r\n".join(["partition,first_offset,last_offset,messages", *rows, ""])
