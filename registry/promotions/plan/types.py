"""The types of a plan. They are pure, so that what the approver reads is what runs.

A plan's hash covers the schemas, the steps, the promoted config, the target's state of each subject, and the verdicts
of the registry's own checks. If any of these changes, the hash changes, and an approval of the earlier plan no longer
counts. Sentences and times aren't part of it, nor are schema ids, which an unrelated registration changes; evidence is,
if it fails.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final, Literal

from registry.formats.base import ParsedSchema, Reference
from registry.formats.report import Profile, Report
from registry.promotions.models import Environment
from registry.subjects.policy.data_contracts import Contract
from registry.subjects.policy.effective_policy import NO_POLICY, OwnConfig
from registry.subjects.versions.qualified_names import SubjectName

Kind = Literal["register", "repeat", "config", "adopt", "none"]
REGISTER: Final = "register"
REPEAT: Final = "repeat"
CONFIG: Final = "config"
ADOPT: Final = "adopt"
NONE: Final = "none"
#: the kinds of steps that change something; `adopt` records a release of an existing version
WRITING: Final = frozenset({REGISTER, REPEAT, CONFIG, ADOPT})
#: the kinds that add a version
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
        "status",
    }
)
#: codes that never are: what people do about a request, and time, don't change what it would do
BESIDE_THE_PLAN: Final = frozenset({"acknowledged", "freeze", "mirror", "notes", "referrers", "reviewers", "threads"})
#: open breaks at the source: needs a comment to approve, and is never part of a bulk approval
SOURCE_DRIFT: Final = "source-drift"
#: the source has a newer version than the requested one
NEWER: Final = "newer-version"
#: codes of advice: a warning is shown and has no weight
ADVICE: Final = frozenset({"lint", "owners", "descriptions"})
#: all codes whose warnings have no weight
WEIGHTLESS: Final = ADVICE | {NEWER}
#: codes of checks that never make a request look worse: ids usually differ, and advice has no weight
USUAL: Final = WEIGHTLESS | {"ids"}


def warnings_of(checks: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the checks that warn of something unusual; the others that warn are notes."""
    return [check for check in checks if check["verdict"] == WARN and check.get("code") not in USUAL]


#: report items that a stored plan keeps for each subject
MAX_ITEMS_KEPT: Final = 50


@dataclass(frozen=True)
class ItemText:
    """A proposed schema text."""

    schema_type: str
    text: str
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True)
class SpecItem:
    """A version, of the source or (roll back, adopt) of the target; with version 0 a proposed text."""

    subject: SubjectName
    version: int = 0
    text: ItemText | None = None


@dataclass(frozen=True)
class PromotionSpec:
    """What to promote where; `kind` is one of `PromotionRequest.KINDS`, `request_id` is 0 if there is no request yet.

    `answers` is the number of the drift finding that it answers.
    """

    target: Environment
    items: tuple[SpecItem, ...]
    source: Environment | None = None
    kind: str = "promote"
    with_config: bool = False
    request_id: int = 0
    answers: int | None = None


@dataclass(frozen=True)
class IncomingVersion:
    """A version or text to bring to the target, with its references as written.

    `needs` has the (qualified subject, version) at the source for each reference, which the plan translates to the
    target's number; it is empty if the references are the target's already. `requested` is False for a version that is
    included because others refer to it. `metadata` None keeps the previous version's. `status` is the status, "" if
    active. `newest` is the subject's newest live version at the source that isn't quarantined; 0 for a text.
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
    requested: bool = True
    status: str = ""
    config: OwnConfig | None = None
    problem: str = ""
    newest: int = 0

    @property
    def key(self) -> tuple[str, int]:
        """The subject and version that others refer to."""
        return self.subject, self.version


@dataclass(frozen=True)
class TargetVersion:
    """A live version at the target; `schema` is parsed if the level or a policy compares with it."""

    version: int
    fingerprint: str
    schema: ParsedSchema | None = None
    identity: str = ""
    schema_id: int | None = None
    metadata: Contract | None = None
    rule_set: Contract | None = None
    status: str = ""
    is_released: bool = False


@dataclass(frozen=True)
class TargetState:
    """The current state of a subject in the target; `history` has its live versions, ascending.

    `settings` are the effective ones, `own` those that the subject sets itself (None: no config of its own).
    """

    level: str
    mode: str
    history: tuple[TargetVersion, ...] = ()
    next_version: int = 1
    profile: Profile = "confluent"
    policy: str = NO_POLICY
    settings: OwnConfig = field(default_factory=OwnConfig)
    own: OwnConfig | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the part that the hash covers, as JSON values."""
        return {
            "level": self.level,
            "mode": self.mode,
            "profile": self.profile,
            "policy": self.policy,
            "settings": settings_dict(self.settings),
            "versions": [[version.version, version.identity or version.fingerprint] for version in self.history],
            "next_version": self.next_version,
        }


@dataclass(frozen=True)
class Ids:
    """The schema ids of a context at the target: the next one, and the definitions of those that the plan may use."""

    next_id: int = 1
    of_identity: Mapping[str, int] = field(default_factory=dict)
    identity_of: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Target:
    """The target: its subjects by qualified name, its contexts' ids, and the subjects that a resource owns."""

    subjects: Mapping[str, TargetState]
    ids: Mapping[str, Ids] = field(default_factory=dict)
    owned: frozenset[str] = frozenset()
    is_mirror: bool = False


@dataclass(frozen=True)
class PlanStep:
    """One change at the target, or the statement that none is needed (`none`).

    `register` adds a version, `repeat` adds an earlier text as a new version with its number in the metadata, `config`
    sets the subject's settings, `adopt` records a release of an existing version. The registration gets `metadata` and
    `rule_set` as they are: None keeps the previous version's, an empty object removes them.
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
        """Whether the step changes anything."""
        return self.kind in WRITING

    @property
    def adds(self) -> bool:
        """Whether the step adds a version."""
        return self.kind in ADDING

    def to_dict(self) -> dict[str, Any]:
        """Return the step as JSON values."""
        return asdict(self)

    def hashed(self) -> dict[str, Any]:
        """Return the part that the hash covers: all but the ids."""
        return {name: value for name, value in self.to_dict().items() if name not in _UNHASHED}


_UNHASHED: Final = frozenset({"source_id", "expected_id", "id_outlook"})


def step_from(stored: Mapping[str, Any]) -> PlanStep:
    """Return the step that `PlanStep.to_dict` wrote."""
    names = {item.name for item in fields(PlanStep)}
    values = {name: value for name, value in stored.items() if name in names}
    references = tuple(Reference(**reference) for reference in stored.get("references", ()))
    return PlanStep(**{**values, "references": references})


@dataclass(frozen=True)
class Check:
    """A condition of the plan; if it fails, the plan can't be approved unless the check may be overridden.

    `code` is stable, `name` and `sentence` are for people, `cure` says what would fix it. Somebody who may force
    versions can override compatibility; a reviewer with a reason can override any other check that is `overridable`.
    `as_of` is the time of its evidence (ISO 8601, UTC), "" if it was looked up for the plan. `binding`: an approval
    binds to its verdict, whatever that is. `concerned` are the affected ones of `asked` declared clients. `facts` are
    what a `binding` check binds to in addition to its verdict.
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
    facts: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the check as JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class Plan:
    """Steps in dependency order, the checks, and the compatibility reports by subject.

    `target` is the target's state of each subject when the plan was built. `breaking`: a step breaks the target's
    level, or BACKWARD if the level is NONE.
    """

    steps: tuple[PlanStep, ...]
    checks: tuple[Check, ...]
    reports: Mapping[str, Report] = field(default_factory=dict)
    target: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    breaking: bool = False
    kind: str = "promote"

    @property
    def failing(self) -> tuple[Check, ...]:
        """The checks that fail or are stale."""
        return tuple(item for item in self.checks if item.verdict in STOPPING)

    @property
    def can_run(self) -> bool:
        """Whether no check fails and there is something to do."""
        return not self.failing and self.has_work

    @property
    def has_work(self) -> bool:
        """Whether the plan changes anything."""
        return any(step.writes for step in self.steps)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON values, as the request stores it."""
        return {
            "kind": self.kind,
            "steps": [step.to_dict() for step in self.steps],
            "checks": [item.to_dict() for item in self.checks],
            "reports": {subject: _stored_report(report) for subject, report in self.reports.items()},
            "target": {subject: dict(state) for subject, state in self.target.items()},
            "breaking": self.breaking,
        }

    def hashed(self) -> dict[str, Any]:
        """Return what the hash covers."""
        return {
            "kind": self.kind,
            "steps": [step.hashed() for step in self.steps],
            "target": self.target,
            "checks": sorted(
                [item.code, item.subject, item.verdict, *(item.facts if item.binding else ())]
                for item in self.checks
                if _counts(item)
            ),
        }

    @property
    def hash(self) -> str:
        """SHA-256 of the plan."""
        return hashlib.sha256(json.dumps(self.hashed(), sort_keys=True).encode()).hexdigest()


def _counts(item: Check) -> bool:
    if item.code in BESIDE_THE_PLAN | WEIGHTLESS:
        return False
    return item.binding or item.code in FROM_REGISTRY or item.verdict in STOPPING


def _stored_report(report: Report) -> dict[str, Any]:
    stored = report.to_dict()
    return {**stored, "items": stored["items"][:MAX_ITEMS_KEPT], "found": len(report.items)}


def settings_dict(settings: OwnConfig | None) -> dict[str, Any]:
    """Return the settings that are set, as JSON values."""
    values = asdict(settings) if settings else {}
    return {name: value for name, value in values.items() if value is not None}


def steps_of(stored: Mapping[str, Any]) -> tuple[PlanStep, ...]:
    """Return the steps of a plan that `Plan.to_dict` wrote."""
    return tuple(step_from(step) for step in stored["steps"])
