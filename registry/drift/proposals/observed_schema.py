"""Proposes a schema from observed messages: the declared one with the missing fields, or a new one.

The messages are those of a finding in the last weeks, or everything that scans saw of a subject. Observed data
guarantees nothing: every field is proposed as optional, with the kinds that were seen, and the notes give the number of
messages and the omissions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, cast

from django.db.models import Q
from django.utils import timezone

from registry.access.roles import Actor, may
from registry.drift.models import SIDES, FieldStatistic, Finding
from registry.drift.proposals import schema_builder
from registry.drift.proposals.schema_builder import Notes, tree_of
from registry.drift.scan.aggregation import FieldCounts, merged_field
from registry.drift.selectors import FindingInfo, get_finding
from registry.drift.selectors.findings import finding_info
from registry.errors import FindingNotFound, InvalidInput, NotFound
from registry.formats import format_of
from registry.observations import FieldProfile, Framing, Side
from registry.promotions.hook_points import readable_findings
from registry.subjects.selectors import get_version
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

__all__ = ["Declaration", "Proposal", "propose"]


_WRITERS: Final = {
    "AVRO": (schema_builder.new_avro_schema, schema_builder.add_to_avro),
    "JSON": (schema_builder.new_json_schema, schema_builder.add_to_json_schema),
}
MOST_NAMED: Final = 12


@dataclass(frozen=True)
class Declaration:
    """The schema that is declared, as its text."""

    schema_type: str
    text: str


@dataclass(frozen=True)
class Proposal:
    """A proposed text: the paths that it adds, and notes for the reviewer."""

    schema_type: str
    text: str
    added: tuple[str, ...]
    note: str


def propose(
    profiles: Iterable[FieldProfile], declared: Declaration | None, *, name: str, schema_type: str = "JSON"
) -> Proposal:
    """Return the declared schema with the seen fields that it lacks; without one, a schema of the seen fields.

    `name` is the name of a new schema, `schema_type` its format. Raises InvalidInput if nothing can be proposed.
    """
    fields = sorted(profiles, key=lambda field: field.path)
    root = tree_of(fields)
    kind = declared.schema_type if declared else schema_type
    writer = _WRITERS.get(kind)
    if writer is None:
        raise InvalidInput(f"No schema is proposed for {format_of(kind)}: {format_of(kind).why_not_proposed}.")
    new_schema, add_to = writer
    notes = Notes(max((field.messages for field in fields), default=0))
    if declared is None:
        document: Any = new_schema(root, name, notes)
    else:
        document = _read(declared.text)
        add_to(document, root, notes)
    if not notes.added:
        more = f" {notes.left_out_words()}" if notes.left_out else ""
        raise InvalidInput(f"The schema already declares every field in the data.{more}")
    return Proposal(kind, _written(document), tuple(notes.added), notes.words(MOST_NAMED))


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInput("The declared schema is not valid JSON, so fields can't be added to it.") from None


def _written(document: Any) -> str:
    try:
        return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    except (ValueError, RecursionError):
        raise InvalidInput(
            "The declared schema has a number that JSON can't represent, or is nested too deeply."
        ) from None


LATELY: Final = timedelta(days=28)
MOST_ROWS: Final = 20_000
#: rules about data that no schema describes completely
UNDECLARED: Final = "FIELD_UNDECLARED"
PLAIN_JSON: Final = ("UNFRAMED_DATA", "TOPIC_WITHOUT_SUBJECT")
_UNFRAMED: Final = (
    "These messages have no schema id. Before you register the schema, have the producers use a serializer that writes"
    " schema ids. Otherwise the subject only documents the topic, and its messages are reported as a break"
    " (UNFRAMED_DATA) unless you mute that rule for the subject."
)


def can_propose(finding: FindingInfo) -> bool:
    """Return whether a schema can be proposed from the finding's data."""
    if finding.rule == UNDECLARED:
        return "field_number" not in finding.evidence  # Protobuf gives neither the name nor the type
    looks = finding.evidence.get("looks_like")
    return finding.rule in PLAIN_JSON and isinstance(looks, Mapping) and "json_object" in looks


def subject_of(finding: FindingInfo) -> str:
    """Return the subject for the schema: the finding's, or the topic's own."""
    side = "key" if finding.evidence.get("side") == "key" else "value"
    return finding.subject or (f"{finding.topic}-{side}" if finding.topic else "")


def propose_from(finding: FindingInfo) -> Proposal:
    """Return a text that declares what was seen: the latest version with more fields, or a new JSON Schema.

    Raises InvalidInput with the reason if nothing can be proposed.
    """
    if not can_propose(finding):
        raise InvalidInput(f"No schema is proposed for {finding.rule}: the rule isn't about undeclared fields.")
    fields = seen_fields(finding)
    if not fields:
        raise InvalidInput("The fields of these messages are no longer stored. Scan the source again.")
    proposed = propose(fields, _declared(finding), name=subject_of(finding))
    return replace(proposed, note=f"{proposed.note} {_UNFRAMED}") if finding.rule in PLAIN_JSON else proposed


def seen_fields(finding: FindingInfo) -> list[FieldProfile]:
    """Return the fields of the finding's messages in the last weeks, by path; one query."""
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
    counts_by_path: dict[str, FieldCounts] = {}
    values = rows.order_by("-day", "path").values_list("path", "messages", "present", "nulls", "kinds")[:MOST_ROWS]
    for path, messages, present, nulls, kinds in values:
        counts = FieldCounts(messages, present, nulls, kinds, {}, None, "", "")
        counts_by_path[path] = merged_field(counts_by_path.get(path), counts, again=False)
    known_framing = cast("Framing | None", framing or None)
    return [
        FieldProfile(
            *(finding.topic, side, known_framing, mark, path, total.messages, total.present, total.nulls),
            kinds=total.kinds,
            distinct=None,
            minimum=None,
            maximum=None,
            values={},
        )
        for path, total in sorted(counts_by_path.items())
    ]


def _declared(finding: FindingInfo) -> Declaration | None:
    """Return the latest version of the subject; None if it has none."""
    if not finding.subject:
        return None
    try:
        info = get_version(get_registry(finding.registry), parse_subject(finding.subject), "latest")
    except NotFound:
        return None
    return Declaration(info.schema.schema_type, info.schema.text)


#: observed shapes that are offered per subject
MOST: Final = 10


@dataclass(frozen=True)
class ObservedShape:
    """The shape of a topic's messages that a finding reports besides a subject's schemas."""

    finding: int
    topic: str
    last_seen: datetime


def shapes_of(registry: str, subject: SubjectName, *, by: Actor) -> list[ObservedShape]:
    """Return the shapes in the subject's data that no version declares, last seen first; one query.

    Only of unresolved findings that `by` may read.
    """
    if not may(by, "schema.read", registry=registry):
        return []
    name = subject.qualified
    rows = (
        Finding.objects.filter(source__registry__name=registry, rule__in=(UNDECLARED, *PLAIN_JSON), muted=False)
        .filter(Q(subject_name=name) | Q(subject_name="", topic__name__in=_topics(name)))
        .exclude(state="resolved")
        .select_related("source__registry", "topic")
    )
    listed = [(row, finding_info(row)) for row in rows.order_by("-last_seen", "-pk")[:MOST]]
    return [
        ObservedShape(row.pk, info.topic, row.last_seen)
        for row, info in listed
        if can_propose(info) and subject_of(info) == name
    ]


def observed_shape(number: int, registry: str, subject: SubjectName, *, by: Actor) -> Proposal:
    """Return the proposal for a finding in the subject's data. Raises FindingNotFound, InvalidInput.

    A finding of another subject, or one that `by` may not read, counts as not found.
    """
    if number in readable_findings([number], by):
        info = get_finding(number)
        if info.registry == registry and subject_of(info) == subject.qualified and can_propose(info):
            return propose_from(info)
    raise FindingNotFound(f"Finding {number} has no data for this subject.", finding=number)


def _topics(name: str) -> list[str]:
    """Return the topics with which the subject's name begins."""
    return [name.removesuffix(f"-{side}") for side in SIDES if name.endswith(f"-{side}")]
