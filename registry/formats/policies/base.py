"""What policies share: rules as table rows, items with their weight, and the resulting verdict.

A policy judges independently of the compatibility levels. It has a product's rules for its own store, which are
stricter in some places and laxer in others than the format requires.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

from registry.formats.base import Incompatibility, ParsedSchema, Severity

# What an item requires: only attention, a person with the permission to force versions, or another schema.
Weight = Literal["advice", "force", "refusal"]
Verdict = Literal["accepted", "accepted only with force", "rejected"]
History = Sequence[tuple[int, ParsedSchema]]


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """A policy rule; `sentence` and `remedy` are templates over the values of an item (`name`, `before`, `after`, …).

    `requirement` names the rule in the source document; it is empty if only the product has the rule.
    """

    id: str
    sentence: str
    why: str
    remedy: str
    requirement: str = ""


@dataclass(frozen=True, slots=True)
class PolicyItem:
    """A finding of a policy against one version, or against the new schema alone (`version` None).

    In the finding, the new schema is the reader and the version the writer: `before` and `writer_pointer` are of the
    version, `after` and `reader_pointer` of the new schema. `score` (0 to 1) and `reasons` are set for suspicions.
    """

    version: int | None
    weight: Weight
    finding: Incompatibility
    score: float | None = None
    reasons: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the item as JSON values."""
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
    """The verdict of a policy, with every item against every version, newest version first."""

    policy: str
    items: tuple[PolicyItem, ...]
    versions: tuple[int, ...]

    @property
    def verdict(self) -> Verdict:
        """Whether the schema is accepted, accepted only with force, or rejected."""
        return verdict_of(item.weight for item in self.items)

    def is_accepted(self, *, force: bool = False) -> bool:
        """Return whether the schema may be added; `force` overrides anything but a refusal."""
        return self.verdict == "accepted" or (force and self.verdict == "accepted only with force")

    def messages(self) -> list[str]:
        """Return each item as a line: rule, place, version and sentence."""
        return [
            f"{item.finding.rule} at {item.finding.path or 'the root'}"
            f"{'' if item.version is None else f' against version {item.version}'}: {item.finding.message}"
            for item in self.items
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "policy": self.policy,
            "verdict": self.verdict,
            "versions": list(self.versions),
            "items": [item.to_dict() for item in self.items],
        }


class SchemaPolicy(Protocol):
    """A product's rules for a subject's versions. `check` is pure and raises InvalidSchema only for hostile schemas."""

    @property
    def name(self) -> str:
        """The name in a subject's configuration."""

    @property
    def title(self) -> str:
        """The title for people."""

    @property
    def rules(self) -> Mapping[str, PolicyRule]:
        """The rules by id, in the order of the documentation."""

    def check(self, new: ParsedSchema, history: History) -> PolicyReport:
        """Return all items of a new schema against all enabled versions, which are in ascending order."""


def verdict_of(weights: Iterable[Weight]) -> Verdict:
    """Return the verdict for the highest weight."""
    return _VERDICTS[max((_ORDER.index(weight) for weight in weights), default=0)]


_ORDER: Final[tuple[Weight, ...]] = ("advice", "force", "refusal")
_VERDICTS: Final[tuple[Verdict, ...]] = ("accepted", "accepted only with force", "rejected")
__all__ = ["History", "PolicyItem", "PolicyReport", "PolicyRule", "SchemaPolicy", "Severity", "Verdict", "Weight"]
