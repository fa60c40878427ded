"""What a promotion would do: pure, so that what the approver reads is what runs.

A plan's hash covers the schemas, the steps, the config that comes along, what the target holds of each subject, and the
verdicts of the checks that come from the registry: any movement of these gives another hash, and an approval of the
earlier plan no longer counts. Sentences and times aren't part of it, nor are schema ids, which an unrelated registration
moves; evidence is where it fails.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final, Literal

from registry.formats.base import ParsedSchema, Reference
from registry.formats.report import Profile, Report
from registry.promotions.models import Environment
from registry.subjects.contracts import Contract
from registry.subjects.names import SubjectName
from registry.subjects.selectors.effective import NO_POLICY, OwnConfig

Kind = Literal["register", "repeat", "config", "adopt", "none"]
REGISTER: Final = "register"
REPEAT: Final = "repeat"
CONFIG: Final = "config"
ADOPT: Final = "adopt"
NONE: Final = "none"
#: the kinds of steps that change something; `adopt` records a release of what is there
WRITING: Final = frozenset({REGISTER, REPEAT, CONFIG, ADOPT})
#: those that add a version
ADDING: Final = frozenset({REGISTER, REPEAT})

Verdict = Literal["pass", "warn", "fail", "skipped", "stale"]
PASS: Final = "pass"  # noqa: S105  # a verdict
WARN: Final = "warn"
FAIL: Final = "fail"
SKIPPED: Final = "skipped"
STALE: Final = "stale"
#: verdicts that keep a request from being approved and applied
STOPPING: Final = frozenset({FAIL, STALE})

IdOutlook = Literal["same", "different", "given by IMPORT", "unknown"]
SAME_ID: Final = "same"
OTHER_ID: Final = "different"
GIVEN_ID: Final = "given by IMPORT"
UNKNOWN_ID: Final = "unknown"

#: codes of the checks whose verdicts are part of the hash as they are
FROM_REGISTRY: Final = frozenset(
    {
        "compatibility",
        "config",
        "mode",
        "policy",
        "references",
        "reserved-fields",
        "schema",
        "something-to-do",
        "standing",
    }
)
#: codes that never are: what people do about a request and the time don't change what it would do
BESIDE_THE_PLAN: Final = frozenset({"acknowledged", "freeze", "mirror", "notes", "referrers", "reviewers", "threads"})
#: open breaks where it comes from: approved by a comment alone, and never with others
SOURCE_DRIFT: Final = "source-drift"
#: that the source has a newer version than the one that is asked for
NEWER: Final = "newer-version"
#: codes of what is advised: a warning of them is read, and weighs nothing
ADVICE: Final = frozenset({"lint", "owners", "descriptions"})
#: all codes whose warnings weigh nothing
WEIGHTLESS: Final = ADVICE | {NEWER}
#: report items that a stored plan keeps of each subject
MAX_ITEMS_KEPT: Final = 50


@dataclass(frozen=True)
class ItemText:
    """A text that is proposed."""

    schema_type: str
    text: str
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True)
class WishedItem:
    """A version, of the source or (roll back, adopt) of the target; with version 0 a proposed text."""

    subject: SubjectName
    version: int = 0
    text: ItemText | None = None


@dataclass(frozen=True)
class Wish:
    """What somebody wants in the target; `kind` is one of `PromotionRequest.KINDS`, `request_id` is 0 before there is one.

    `answers` is the drift finding that it answers.
    """

    target: Environment
    items: tuple[WishedItem, ...]
    source: Environment | None = None
    kind: str = "promote"
    with_config: bool = False
    request_id: int = 0
    answers: int | None = None


@dataclass(frozen=True)
class Wanted:
    """A version to bring, or a text, with its references as they are written.

    `needs` has for each reference the (qualified subject, version) where it is wanted from, so that the plan gives it
    the number of the target; it is empty where the references mean the target already. `asked` is False for what comes
    along because others refer to it. `metadata` None means those of the previous version. `standing` is empty for a
    version in good standing.
    """

    subject: str
    version: int
    schema: ParsedSchema | None
    text: str
    schema_type: str
    references: tuple[Reference, ...] = ()
    needs: tuple[tuple[str, int], ...] = ()
    metadata: Contract | None = None
    rule_set: Contract | None = None
    source_id: int | None = None
    asked: bool = True
    standing: str = ""
    config: OwnConfig | None = None
    problem: str = ""

    @property
    def key(self) -> tuple[str, int]:
        """The subject and version by which others refer to it."""
        return self.subject, self.version


@dataclass(frozen=True)
class Held:
    """A live version at the target; `schema` is parsed where the level or a policy names the version."""

    version: int
    fingerprint: str
    schema: ParsedSchema | None = None
    identity: str = ""
    schema_id: int | None = None
    metadata: Contract | None = None
    rule_set: Contract | None = None
    standing: str = ""
    is_released: bool = False


@dataclass(frozen=True)
class TargetState:
    """What the target holds of a subject now; `history` has its live versions, ascending.

    `settings` are those that count there, `own` those that the subject sets itself (None: no config of its own).
    """

    level: str
    mode: str
    history: tuple[Held, ...] = ()
    next_version: int = 1
    profile: Profile = "confluent"
    policy: str = NO_POLICY
    settings: OwnConfig = field(default_factory=OwnConfig)
    own: OwnConfig | None = None

    def to_dict(self) -> dict[str, Any]:
        """What the hash covers of it, as JSON values."""
        return {
            "level": self.level,
            "mode": self.mode,
            "profile": self.profile,
            "policy": self.policy,
            "settings": settings_dict(self.settings),
            "versions": [[held.version, held.identity or held.fingerprint] for held in self.history],
            "next_version": self.next_version,
        }


@dataclass(frozen=True)
class Ids:
    """The schema ids of a context at the target: the next one, and what those that matter to the plan stand for."""

    next_id: int = 1
    of_identity: Mapping[str, int] = field(default_factory=dict)
    identity_of: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Target:
    """What the target holds: its subjects by qualified name, its contexts' ids, and subjects that a resource owns."""

    subjects: Mapping[str, TargetState]
    ids: Mapping[str, Ids] = field(default_factory=dict)
    owned: frozenset[str] = frozenset()
    is_mirror: bool = False


@dataclass(frozen=True)
class Step:
    """One thing that is done at the target, or the statement that it isn't needed (`none`).

    `register` adds a version, `repeat` adds an earlier text as a new version with its number in the metadata, `config`
    sets the subject's settings, `adopt` records a release of the version that is there. `metadata` and `rule_set` are
    handed to the registration as they are: None means the previous version's, an empty object none.
    """

    kind: Kind
    subject: str
    source_version: int = 0
    target_version: int = 0
    schema_type: str = ""
    fingerprint: str = ""
    text: str = ""
    references: tuple[Reference, ...] = ()
    metadata: Contract | None = None
    rule_set: Contract | None = None
    config: dict[str, Any] | None = None
    source_id: int | None = None
    expected_id: int | None = None
    id_outlook: IdOutlook = "unknown"
    asked: bool = True

    @property
    def writes(self) -> bool:
        """Whether anything is done."""
        return self.kind in WRITING

    @property
    def adds(self) -> bool:
        """Whether a version is added."""
        return self.kind in ADDING

    def to_dict(self) -> dict[str, Any]:
        """The step as JSON values."""
        return asdict(self)

    def hashed(self) -> dict[str, Any]:
        """What the hash covers of it: all but the ids."""
        return {name: value for name, value in self.to_dict().items() if name not in _UNHASHED}


_UNHASHED: Final = frozenset({"source_id", "expected_id", "id_outlook"})


def step_from(stored: Mapping[str, Any]) -> Step:
    """The step that `Step.to_dict` wrote."""
    known = {item.name for item in fields(Step)}
    values = {name: value for name, value in stored.items() if name in known}
    references = tuple(Reference(**reference) for reference in stored.get("references", ()))
    return Step(**{**values, "references": references})


@dataclass(frozen=True)
class Check:
    """A condition of the plan; one that fails keeps it from being approved, unless it may be overridden.

    `code` is stable, `name` and `sentence` are for people, `cure` says what would change it. Compatibility is overridden
    by somebody who may force versions, everything else that is `overridable` by a reviewer with a reason. `as_of` is
    when what it rests on was seen (ISO 8601, UTC), "" for what was looked up for the plan. `binding`: an approval binds to
    its verdict whatever that is. `concerned` are the declared clients that don't go on, of `asked` that there are.
    """

    code: str
    name: str
    verdict: Verdict
    sentence: str
    cure: str = ""
    overridable: bool = False
    subject: str = ""
    as_of: str = ""
    binding: bool = False
    concerned: tuple[str, ...] = ()
    asked: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The check as JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class Plan:
    """Steps in dependency order, the checks, and the reports of compatibility by subject.

    `target` is what the target held of each subject when the plan was made. `breaking`: a step breaks the level of its
    target, or BACKWARD where the level is NONE.
    """

    steps: tuple[Step, ...]
    checks: tuple[Check, ...]
    reports: Mapping[str, Report] = field(default_factory=dict)
    target: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    breaking: bool = False
    kind: str = "promote"

    @property
    def failing(self) -> tuple[Check, ...]:
        """The checks that fail, and those that rest on what is too old."""
        return tuple(item for item in self.checks if item.verdict in STOPPING)

    @property
    def can_run(self) -> bool:
        """Whether no check fails and there is anything to do."""
        return not self.failing and self.has_work

    @property
    def has_work(self) -> bool:
        """Whether anything would be done."""
        return any(step.writes for step in self.steps)

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON values, to be kept with the request."""
        return {
            "kind": self.kind,
            "steps": [step.to_dict() for step in self.steps],
            "checks": [item.to_dict() for item in self.checks],
            "reports": {subject: _kept(report) for subject, report in self.reports.items()},
            "target": {subject: dict(state) for subject, state in self.target.items()},
            "breaking": self.breaking,
        }

    def hashed(self) -> dict[str, Any]:
        """What the hash covers."""
        return {
            "kind": self.kind,
            "steps": [step.hashed() for step in self.steps],
            "target": self.target,
            "checks": sorted([item.code, item.subject, item.verdict] for item in self.checks if _counts(item)),
        }

    @property
    def hash(self) -> str:
        """SHA-256 of the plan."""
        return hashlib.sha256(json.dumps(self.hashed(), sort_keys=True).encode()).hexdigest()


def _counts(item: Check) -> bool:
    if item.code in BESIDE_THE_PLAN | WEIGHTLESS:
        return False
    return item.binding or item.code in FROM_REGISTRY or item.verdict in STOPPING


def _kept(report: Report) -> dict[str, Any]:
    stored = report.to_dict()
    return {**stored, "items": stored["items"][:MAX_ITEMS_KEPT], "found": len(report.items)}


def settings_dict(settings: OwnConfig | None) -> dict[str, Any]:
    """The settings that say anything, as JSON values."""
    found = asdict(settings) if settings else {}
    return {name: value for name, value in found.items() if value is not None}


def steps_of(stored: Mapping[str, Any]) -> tuple[Step, ...]:
    """The steps of a plan that `Plan.to_dict` wrote."""
    return tuple(step_from(step) for step in stored["steps"])
