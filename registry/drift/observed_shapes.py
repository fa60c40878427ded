"""The shapes that scans saw in a subject's data beside its schemas, to be held against what is declared."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Q

from registry.access.roles import Actor, may
from registry.drift.models import SIDES, Finding
from registry.drift.proposable import PLAIN_JSON, UNDECLARED, can_propose, propose_from, subject_of
from registry.drift.proposing import Proposal
from registry.drift.selectors import get_finding
from registry.drift.selectors.findings import finding_info
from registry.errors import FindingNotFound
from registry.promotions.origins import readable_findings
from registry.subjects.names import SubjectName

#: shapes of a subject that are offered
MOST: Final = 10


@dataclass(frozen=True)
class ObservedShape:
    """What the messages of a topic look like beside the schemas of a subject, by the finding that says so."""

    finding: int
    topic: str
    last_seen: datetime


def shapes_of(registry: str, subject: SubjectName, *, by: Actor) -> list[ObservedShape]:
    """The shapes seen in the subject's data that no version declares, the one seen last first; one query.

    Those of findings that aren't resolved and that `by` may read.
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
    found = [(row, finding_info(row)) for row in rows.order_by("-last_seen", "-pk")[:MOST]]
    return [
        ObservedShape(row.pk, info.topic, row.last_seen)
        for row, info in found
        if can_propose(info) and subject_of(info) == name
    ]


def observed_shape(number: int, registry: str, subject: SubjectName, *, by: Actor) -> Proposal:
    """The shape that a finding of the subject's data found. Raises FindingNotFound, InvalidInput.

    A finding of another subject, or that `by` may not read, is as one that isn't there.
    """
    if number in readable_findings([number], by):
        info = get_finding(number)
        if info.registry == registry and subject_of(info) == subject.qualified and can_propose(info):
            return propose_from(info)
    raise FindingNotFound(f"Nothing of the subject was seen under the finding {number}.", finding=number)


def _topics(name: str) -> list[str]:
    """The topics that the subject is called after."""
    return [name.removesuffix(f"-{side}") for side in SIDES if name.endswith(f"-{side}")]
