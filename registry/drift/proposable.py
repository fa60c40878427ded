"""A schema proposed from what a finding's messages held in the last weeks, and what is registered for them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final, cast

from django.utils import timezone

from registry.drift.merging import FieldCounts, merged_field
from registry.drift.models import FieldStatistic
from registry.drift.proposing import Declaration, Proposal, propose
from registry.drift.selectors import FindingInfo
from registry.errors import InvalidInput, NotFound
from registry.observations import FieldProfile, Framing, Side
from registry.subjects.names import parse_subject
from registry.subjects.selectors import get_version
from registry.subjects.selectors.places import get_registry

LATELY: Final = timedelta(days=28)
MOST_ROWS: Final = 20_000
#: rules about data that no schema describes, or not all of it
UNDECLARED: Final = "FIELD_UNDECLARED"
PLAIN_JSON: Final = ("UNFRAMED_DATA", "TOPIC_WITHOUT_SUBJECT")


def can_propose(finding: FindingInfo) -> bool:
    """Whether the finding is about a shape that a schema can be proposed from."""
    if finding.rule == UNDECLARED:
        return True
    looks = finding.evidence.get("looks_like")
    return finding.rule in PLAIN_JSON and isinstance(looks, Mapping) and "json_object" in looks


def subject_of(finding: FindingInfo) -> str:
    """The subject that the schema is for: the finding's, or the topic's own."""
    side = "key" if finding.evidence.get("side") == "key" else "value"
    return finding.subject or (f"{finding.topic}-{side}" if finding.topic else "")


def propose_from(finding: FindingInfo) -> Proposal:
    """The text that declares what was seen: the latest version with more fields, or a JSON Schema of its own.

    Raises InvalidInput where nothing can be proposed, with the reason.
    """
    if not can_propose(finding):
        raise InvalidInput(f"No schema is proposed from {finding.rule}: it isn't about fields that a schema lacks.")
    seen = seen_fields(finding)
    if not seen:
        raise InvalidInput("No fields of these messages are known any more; scan the source again.")
    return propose(seen, _declared(finding), name=subject_of(finding))


def seen_fields(finding: FindingInfo) -> list[FieldProfile]:
    """What the finding's messages held in the last weeks, by path; one query."""
    framing, mark = "", ""
    if finding.rule == UNDECLARED:
        framing, mark = str(finding.evidence.get("framing", "")), str(finding.evidence.get("mark", ""))
    side: Side = "key" if finding.evidence.get("side") == "key" else "value"
    rows = FieldStatistic.objects.filter(
        topic__source=finding.source_id,
        topic__name=finding.topic,
        side=side,
        framing=framing,
        mark=mark,
        day__gte=(timezone.now() - LATELY).date(),
    )
    found: dict[str, FieldCounts] = {}
    values = rows.order_by("-day", "path").values_list("path", "messages", "present", "nulls", "kinds")[:MOST_ROWS]
    for path, messages, present, nulls, kinds in values:
        counts = FieldCounts(messages, present, nulls, kinds, {}, None, "", "")
        found[path] = merged_field(found.get(path), counts, again=False)
    known = cast("Framing | None", framing or None)
    return [
        FieldProfile(
            *(finding.topic, side, known, mark, path, each.messages, each.present, each.nulls),
            kinds=each.kinds,
            distinct=None,
            minimum=None,
            maximum=None,
            values={},
        )
        for path, each in sorted(found.items())
    ]


def _declared(finding: FindingInfo) -> Declaration | None:
    """The latest version of the subject, None where it has none."""
    if not finding.subject:
        return None
    try:
        info = get_version(get_registry(finding.registry), parse_subject(finding.subject), "latest")
    except NotFound:
        return None
    return Declaration(info.schema.schema_type, info.schema.text)
