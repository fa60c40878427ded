"""The subject of a registration under its locks, with what counts for it; and what the call asks for."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import QuerySet

from registry.access.roles import Actor
from registry.audit.services import record
from registry.errors import OperationNotPermitted
from registry.subjects import gate
from registry.subjects.models import Context, Registry, SchemaVersion, Subject
from registry.subjects.names import SubjectName
from registry.subjects.selectors.effective import EffectiveConfig, OwnConfig
from registry.subjects.selectors.situation import Situation, situation_of
from registry.subjects.selectors.submission import Submission, versions_of
from registry.subjects.selectors.versions import MAX_VERSION
from registry.subjects.services.locks import hold_subject, lock_context, lock_policy, lock_subject

LATEST = -1


@dataclass(frozen=True)
class Asked:
    """What a call asks for beside the schema: the id and version that it brings, and who may do what."""

    schema_id: int | None
    version: int
    normalize: bool | None
    release: bool
    force: str
    is_tagged: bool = False
    propagate_tags: bool = False

    @property
    def may_be_there(self) -> bool:
        """Whether a version that is there can answer; one with changed tags is new in any case."""
        return self.version <= 0 and not self.is_tagged and not self.propagate_tags

    def canonical(self, submission: Submission, config: EffectiveConfig) -> str:
        """The text that would be stored under that config."""
        return submission.canonical(normalize=config.normalize if self.normalize is None else self.normalize)


def adds_to_contracts(scope: OwnConfig) -> bool:
    """Whether the settings add to the metadata or rule sets that are sent."""
    return any((scope.default_metadata, scope.override_metadata, scope.default_rule_set, scope.override_rule_set))


@dataclass(frozen=True)
class Held:
    """The subject under its locks; `passes` is what the gate said, None while it isn't asked.

    The situation was looked at for a submission whose text to store was `canonical`.
    """

    registry: Registry
    subject: SubjectName
    context: Context
    row: Subject
    situation: Situation
    canonical: str
    passes: bool | None

    @property
    def config(self) -> EffectiveConfig:
        """The config that counts."""
        return self.situation.config

    @property
    def scope(self) -> OwnConfig:
        """All settings that count."""
        return self.situation.scope

    @property
    def mode(self) -> str:
        """The mode that counts."""
        return self.situation.mode

    def versions(self, *, latest: bool = False) -> QuerySet[SchemaVersion]:
        """The live versions, newest first, or the newest alone."""
        rows = versions_of(self.registry, self.subject)
        return rows.filter(pk__in=rows[:1].values("pk")) if latest else rows

    def following(self) -> int:
        """The number of the next version, which counts the soft-deleted ones too. Raises OperationNotPermitted."""
        if self.situation.highest >= MAX_VERSION:
            raise OperationNotPermitted("The subject has version 2^31-1, so there is no next one.")
        return self.situation.highest + 1


def hold(
    registry: Registry,
    subject: SubjectName,
    submission: Submission | None,
    canonical: str,
    asked: Asked,
    *,
    by: Actor,
    why: str,
) -> Held:
    """The subject, made where it is new: then the gate is asked first. One that is there may have the schema already.

    `canonical` is the text to store, as it seemed without a lock.
    """
    row, passes = hold_subject(registry, subject, by=by, why=why), None
    if row is None:
        record(by=by, why=why)
        lock_policy(registry)
        passes = ask(registry, subject, asked, by)
        row = lock_subject(lock_context(registry, subject.context), subject.subject)
    situation = situation_of(registry, subject, row, submission, canonical)
    return Held(registry, subject, row.context, row, situation, canonical, passes)


def ask(registry: Registry, subject: SubjectName, asked: Asked, by: Actor) -> bool:
    """What the gate says. Raises ReleaseRequired."""
    return gate.ask("version.register", registry, subject.qualified, by, release=asked.release)
