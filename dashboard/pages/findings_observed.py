"""What a finding's messages hold, compared with what is declared for them: as a comparison of two schemas."""

from __future__ import annotations

from dataclasses import replace

from dashboard.pages.against_latest import against_latest
from dashboard.presenters.comparison import Comparison
from registry.access.roles import Actor, may
from registry.drift.proposable import can_propose, propose_from, subject_of
from registry.drift.selectors import FindingInfo
from registry.errors import NotFound, SchemadeskError
from registry.subjects import selectors
from registry.subjects.names import parse_subject
from registry.subjects.selectors.places import get_registry


def observed(info: FindingInfo, actor: Actor, *, is_whole: bool = False) -> tuple[Comparison | None, str]:
    """The schema that the data have against the newest one, without the text; or why there is none, "" if it is moot."""
    subject = subject_of(info)
    if not subject or not can_propose(info) or not may(actor, "schema.read", registry=info.registry, subject=subject):
        return None, ""
    try:
        registry, name = get_registry(info.registry), parse_subject(subject)
        references = selectors.get_version(registry, name, "latest").schema.references
    except NotFound:
        return None, ""  # nothing is declared yet
    try:
        proposed = propose_from(info)
        found = against_latest(
            registry,
            name,
            by=actor,
            text=proposed.text,
            schema_type=proposed.schema_type,
            references=references,
            notes={},
            is_whole=is_whole,
        )
    except SchemadeskError as error:
        return None, error.message
    return replace(found, text=None) if found else None, proposed.note
