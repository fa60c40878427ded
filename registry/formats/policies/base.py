"""What the policies share: a rule as a table row, an item with what it demands, and the verdict that follows.

A policy judges beside the compatibility levels: it is a product's own rules for its own store, stricter in some
places and looser in others than what a format's data can bear.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

from registry.formats.base import Incompatibility, ParsedSchema, Severity

# What an item demands: nothing but attention, somebody with the right to force, or another schema.
Weight = Literal["advice", "force", "refusal"]
Verdict = Literal["accepted", "accepted only with force", "rejected"]
History = Sequence[tuple[int, ParsedSchema]]


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """One row: `sentence` and `remedy` are templates over the values of an item (`name`, `before`, `after`, …).

    `requirement` names the source document's rule, empty where the rule is the product's alone.
    """

    id: str
    sentence: str
    why: str
    remedy: str
    requirement: str = ""


@dataclass(frozen=True, slots=True)
class PolicyItem:
    """A finding of a policy against one version, or (`version` None) of the new schema alone.

    In the finding the new schema is the reader, the version the writer: `before` and `writer_pointer` are of the
    version, `after` and `reader_pointer` of the new schema. `score` (0 to 1) and `reasons` are given for suspicions.
    """

    version: int | None
    weight: Weight
    finding: Incompatibility
    score: float | None = None
    reasons: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The item as JSON values."""
        finding = self.finding
        return {
            "rule": finding.rule,
            "version": self.version,
            "weight": self.weight,
            "severity": finding.severity,
            "named_path": finding.path,
            "json_pointer_new": finding.reader_pointer,
            "json_pointer_old": finding.writer_pointer,
            "before": finding.before,
            "after": finding.after,
            "message": finding.message,
            "why": finding.why,
            "remedy": finding.remedy_in_reader,
            "score": self.score,
            "reasons": list(self.reasons),
        }


@dataclass(frozen=True, slots=True)
class PolicyReport:
    """The verdict of a policy with every item against every version, newest version first."""

    policy: str
    items: tuple[PolicyItem, ...]
    versions: tuple[int, ...]

    @property
    def verdict(self) -> Verdict:
        """Whether the schema is taken as it is, only by somebody who may force it, or not at all."""
        return verdict_of(item.weight for item in self.items)

    def is_accepted(self, *, force: bool = False) -> bool:
        """Whether the schema may be added; `force` overrides what can be overridden, never a refusal."""
        return self.verdict == "accepted" or (force and self.verdict == "accepted only with force")

    def messages(self) -> list[str]:
        """Each item as a line: rule, place, version and sentence."""
        return [
            f"{item.finding.rule} at {item.finding.path or 'the root'}"
            f"{'' if item.version is None else f' against version {item.version}'}: {item.finding.message}"
            for item in self.items
        ]

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {
            "policy": self.policy,
            "verdict": self.verdict,
            "versions": list(self.versions),
            "items": [item.to_dict() for item in self.items],
        }


class SchemaPolicy(Protocol):
    """A rule set for the versions of a subject. `check` is pure, and raises InvalidSchema for a hostile schema alone."""

    @property
    def name(self) -> str:
        """The name that a subject's configuration uses."""

    @property
    def title(self) -> str:
        """The policy in a few words, for people."""

    @property
    def rules(self) -> Mapping[str, PolicyRule]:
        """The rules by id, in the order of the documentation."""

    def check(self, new: ParsedSchema, history: History) -> PolicyReport:
        """All items of a new schema against all enabled versions, which are given in ascending order."""


def verdict_of(weights: Iterable[Weight]) -> Verdict:
    """The verdict that the heaviest of the weights makes."""
    return _VERDICTS[max((_ORDER.index(weight) for weight in weights), default=0)]


_ORDER: Final[tuple[Weight, ...]] = ("advice", "force", "refusal")
_VERDICTS: Final[tuple[Verdict, ...]] = ("accepted", "accepted only with force", "rejected")
__all__ = ["History", "PolicyItem", "PolicyReport", "PolicyRule", "SchemaPolicy", "Severity", "Verdict", "Weight"]
