"""Retirement of a subject's versions: collects what is stored, what clusters say now and what Spark's state holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from django.utils import timezone

from registry.access.extent import extent_of
from registry.access.roles import Actor
from registry.drift.cluster_facts import ask_clusters
from registry.drift.retirement import Groups, Retention, Retirement, can_retire, combined, judge_data, judge_topics
from registry.drift.usage import Coverage, SubjectUse, VersionUse, usage_of
from registry.subjects.evidence import Evidence, InUse, evidence_of
from registry.subjects.models import Registry
from registry.subjects.names import SubjectName

PROVIDER: Final = "topic scans"
_NOT_ASKED: Final = Groups((), "the clusters weren't asked")
#: for those who may not read the whole registry, whose clusters these are
_NOT_ALL_ASKED: Final = "not all clusters could be asked"
_IN_USE: Final[Mapping[str, InUse]] = {"no": "yes", "not_before": "yes", "unknown": "unknown", "yes": "no"}


@dataclass(frozen=True)
class SubjectRetirement:
    """The use of a subject, whether each version can be retired (by number), and the subject as a whole.

    `problems` says which clusters didn't answer; `asked_at` is when they were asked, None where they weren't.
    """

    use: SubjectUse
    versions: Mapping[int, Retirement]
    subject: Retirement
    evidence: Mapping[int, tuple[Evidence, ...]]
    problems: tuple[str, ...]
    asked_at: datetime | None

    def to_dict(self) -> dict[str, Any]:
        """As JSON values, times as they are."""
        return {
            "registry": self.use.registry,
            "subject": self.use.subject,
            "retirement": retirement_dict(self.subject),
            "versions": [
                {
                    **version_dict(version),
                    "retirement": retirement_dict(self.versions[version.version]),
                    "evidence": [item.to_dict() for item in self.evidence.get(version.version, ())],
                }
                for version in self.use.versions
            ],
            "coverage": [coverage_dict(item) for item in self.use.coverage],
            "problems": list(self.problems),
            "asked_at": self.asked_at,
        }


def retirement_of(registry: Registry, subject: SubjectName, *, by: Actor, ask: bool = True) -> SubjectRetirement:
    """Whether a subject's versions can be retired; with `ask` the clusters are asked too, some seconds at most each.

    Subjects that `by` may not read are counted, never named. Raises SubjectNotFound.
    """
    use = usage_of(registry, subject, by=by)
    stored = {topic.topic_id: Retention.stored(topic) for topic in use.coverage}
    now, asked_at = timezone.now(), None
    retention, groups = dict(stored), _NOT_ASKED
    problems: tuple[str, ...] = ()
    if ask:
        used = {topic.topic_id for version in use.versions for topic in version.topics}
        retention, groups, problems = ask_clusters(stored, used)
        asked_at = now
        if problems and not extent_of(by, "schema.read").has_all_of(registry.name):
            problems, groups = (_NOT_ALL_ASKED,), replace(groups, problem=_NOT_ALL_ASKED)
    numbers = [version.version for version in use.versions]
    evidence = evidence_of(registry, subject, numbers, kinds=("state", "clients"), by=by)

    def judged(version: VersionUse, *, whole: bool) -> Retirement:
        state = evidence[version.version]
        return can_retire(version, use.coverage, retention, groups, state, now, whole_subject=whole)

    versions = {version.version: judged(version, whole=False) for version in use.versions}
    together = [
        replace(reason, sentence=f"Version {version.version}: {reason.sentence}")
        for version in use.versions
        for reason in judged(_without_own(version, use.subject), whole=True).reasons
    ]
    return SubjectRetirement(use, versions, combined(together), evidence, problems, asked_at)


def _without_own(version: VersionUse, subject: str) -> VersionUse:
    """The version without those of its own subject that refer to it: they would go too."""
    others = tuple(name for name in version.referrers if name.rpartition(" version ")[0] != subject)
    return replace(version, referrers=others)


def data_evidence(registry: Registry, subject: SubjectName, versions: Sequence[int]) -> dict[int, list[Evidence]]:
    """What the scans know of versions, as the evidence that a delete asks for: from the database alone.

    It names no other subject: it is kept in plans and errors, whoever reads them.
    """
    use = usage_of(registry, subject, by=None)
    # Messages that were seen and whose retention isn't known are taken to be there still.
    stored = {topic.topic_id: Retention.stored(topic) for topic in use.coverage}
    lasting = {number: item if item.ms is not None else replace(item, ms=-1) for number, item in stored.items()}
    own = [topic for topic in use.coverage if topic.is_own and topic.gone_at is None]
    as_of = min((topic.checked_at for topic in own if topic.checked_at), default=None)  # what is told is no newer
    now, found = timezone.now(), {}
    for version in use.versions:
        if version.version not in versions:
            continue
        # What wasn't read doesn't count against what was seen.
        seen = version.messages and not version.is_shared
        judge = judge_topics if seen else judge_data
        judged = combined(list(judge(version, use.coverage, lasting, Groups(), now)))
        in_use = _IN_USE[judged.answer]
        found[version.version] = [Evidence("data", in_use, judged.reasons[0].sentence, judged.date, as_of)]
    return found


def retirement_dict(retirement: Retirement) -> dict[str, Any]:
    """As JSON values."""
    return {
        "answer": retirement.answer,
        "date": retirement.date,
        "sentence": retirement.sentence,
        "reasons": [vars(reason) for reason in retirement.reasons],
    }


def version_dict(version: VersionUse) -> dict[str, Any]:
    """As JSON values."""
    topics = [{**vars(topic), "partitions": [vars(part) for part in topic.partitions]} for topic in version.topics]
    return {**vars(version), "topics": topics}


def coverage_dict(coverage: Coverage) -> dict[str, Any]:
    """As JSON values, with the sentence."""
    return {**vars(coverage), "sentence": coverage.sentence}
