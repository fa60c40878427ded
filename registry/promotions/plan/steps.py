"""The steps of a plan: from the requested items and the target's state, in dependency order, with their checks. Pure.

Schema ids are only expected, because an unrelated registration may come first.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from registry.formats.base import ParsedSchema, Reference
from registry.formats.report import Report
from registry.promotions.checks import registry_checks as say
from registry.promotions.plan.types import (
    ADOPT,
    CONFIG,
    GIVEN_ID,
    NONE,
    OTHER_ID,
    REGISTER,
    REPEAT,
    SAME_ID,
    UNKNOWN_ID,
    Check,
    IdOutlook,
    Ids,
    IncomingVersion,
    Kind,
    Plan,
    PlanStep,
    Target,
    TargetState,
    TargetVersion,
    settings_dict,
)
from registry.subjects.models import MODES_WITH_IDS
from registry.subjects.policy.data_contracts import (
    Contract,
    merge_metadata,
    merge_rule_sets,
    version_in,
    with_version,
    without_version,
)
from registry.subjects.versions.qualified_names import parse_subject
from registry.subjects.versions.schema_identity import identify


class IdBook:
    """The ids in the target's contexts, as the steps of a plan use them up one after another."""

    def __init__(self, contexts: Mapping[str, Ids], *, is_mirror: bool = False) -> None:
        self._is_mirror = is_mirror
        self._next = {name: ids.next_id for name, ids in contexts.items()}
        self._ids_by_identity = {name: dict(ids.of_identity) for name, ids in contexts.items()}
        self._stands_for = {name: dict(ids.identity_of) for name, ids in contexts.items()}

    def is_free_for(self, context: str, schema_id: int, identity: str) -> bool:
        """Return whether the id is unused there, or belongs to this definition."""
        return self._stands_for.get(context, {}).get(schema_id, identity) == identity

    def expect(self, context: str, identity: str, source_id: int | None, mode: str) -> tuple[int | None, IdOutlook]:
        """Return the id that a definition will get, and how it compares with the source's.

        The next id of a remote registry is unknown.
        """
        ids, taken = self._ids_by_identity.setdefault(context, {}), self._stands_for.setdefault(context, {})
        if mode in MODES_WITH_IDS:
            if source_id is None or not self.is_free_for(context, source_id, identity):
                return None, UNKNOWN_ID
            ids[identity], taken[source_id] = source_id, identity
            self._next[context] = max(self._next.get(context, 1), source_id + 1)
            return source_id, GIVEN_ID
        if identity not in ids:
            if self._is_mirror:
                return None, UNKNOWN_ID
            new_id = self._next.get(context, 1)
            ids[identity], taken[new_id], self._next[context] = new_id, identity, new_id + 1
        return ids[identity], compared(ids[identity], source_id)


def compared(expected: int | None, source_id: int | None) -> IdOutlook:
    """Compare an id at the target with the source's."""
    if expected is None or source_id is None:
        return UNKNOWN_ID
    return SAME_ID if expected == source_id else OTHER_ID


#: kind of a request → the kind of step for an incoming version
_BRINGS: Mapping[str, Kind] = {"promote": REGISTER, "propose": REGISTER, "roll back": REPEAT, "adopt": ADOPT}


def in_order(versions: Iterable[IncomingVersion]) -> list[IncomingVersion]:
    """Sort versions after everything they refer to, those of a subject ascending; the input order doesn't matter."""
    items = {item.key: item for item in versions}
    needs = {key: {need for need in item.needs if need in items} for key, item in items.items()}
    before = {key: {other} for other, key in pairwise(sorted(items)) if other[0] == key[0]}
    ascending = {key: required | before.get(key, set()) for key, required in needs.items()}
    ordered = _sorted(ascending)
    if ordered is None:  # imported numbers may contradict the references; then only the references count
        ordered = _sorted(needs)
    if ordered is None:
        raise ValueError("references form a cycle, which a registry rejects")
    return [items[key] for key in ordered]


def _sorted(needs: Mapping[tuple[str, int], set[tuple[str, int]]]) -> list[tuple[str, int]] | None:
    """Return the keys, each after those it needs, by name if several are possible; None for a cycle."""
    sorter = TopologicalSorter(needs)
    try:
        sorter.prepare()
    except CycleError:
        return None
    ordered: list[tuple[str, int]] = []
    ready: list[tuple[str, int]] = []
    while sorter.is_active():
        for key in sorter.get_ready():
            heapq.heappush(ready, key)
        ordered.append(heapq.heappop(ready))
        sorter.done(ordered[-1])
    return ordered


def plan_steps(kind: str, versions: Iterable[IncomingVersion], target: Target) -> Plan:
    """Return the plan that brings the versions to the target."""
    making = _PlanBuilder(kind, target)
    for item in in_order(versions):
        making.add(item)
    return making.plan()


@dataclass
class _PlanBuilder:
    """Builds a plan; `states` has the subjects as the steps so far leave them."""

    kind: str
    target: Target
    steps: list[PlanStep] = field(default_factory=list)
    configs: list[PlanStep] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    reports: dict[str, Report] = field(default_factory=dict)
    breaking: bool = False

    def __post_init__(self) -> None:
        self.states = dict(self.target.subjects)
        self.ids = IdBook(self.target.ids, is_mirror=self.target.is_mirror)
        self.numbers: dict[tuple[str, int], int] = {}

    def add(self, item: IncomingVersion) -> None:
        """Add the steps of an item, with their checks."""
        state = self.states[item.subject]
        step, identity = self._step(item, state)
        self.numbers[item.key] = step.target_version
        self.steps.append(step)
        can_bring_id = step.source_id is not None and self.ids.is_free_for(_context(item), step.source_id, identity)
        self.checks.append(say.mode(item.subject, state, step, can_bring_id=can_bring_id))
        self.checks += say.references(item, step, self.target)
        self.checks += say.status(item, step)
        if step.adds:
            self._judge(item, state, step)
            self._hold(item, state, step, identity)
        if item.config is not None:
            self._configure(item, state)

    def plan(self) -> Plan:
        """Return the finished plan."""
        steps = (*self.steps, *self.configs)
        self.checks += say.ids(self.steps)
        newest = {name: state.history[-1].version for name, state in self.target.subjects.items() if state.history}
        self.checks.append(say.something_to_do(steps, newest))
        states = {name: state.to_dict() for name, state in self.target.subjects.items()}
        return Plan(steps, tuple(self.checks), self.reports, states, breaking=self.breaking, kind=self.kind)

    def _step(self, item: IncomingVersion, state: TargetState) -> tuple[PlanStep, str]:
        """Return the step, and the identity of the schema that it adds ("" for one that adds none)."""
        references = self._renumbered(item)
        bare = PlanStep(
            NONE,
            item.subject,
            source_version=item.version,
            schema_type=item.schema_type,
            fingerprint=item.schema.fingerprint if item.schema else "",
            text=item.text,
            references=references,
            metadata=item.metadata,
            rule_set=item.rule_set,
            source_id=item.source_id,
            asked=item.requested,
        )
        kind = _BRINGS[self.kind]
        there = _existing(kind, item, state)
        if there is not None:
            adopts = kind == ADOPT and not there.is_released
            outlook = compared(there.schema_id, item.source_id)
            unchanged = replace(bare, target_version=there.version, expected_id=there.schema_id, id_outlook=outlook)
            return replace(unchanged, kind=ADOPT) if adopts else unchanged, ""
        step = replace(bare, kind=kind, target_version=state.next_version)
        if item.schema is None:
            return step, ""
        identity = _identity(item, item.schema, step, state)
        expected, outlook = self.ids.expect(_context(item), identity, item.source_id, state.mode)
        return replace(step, expected_id=expected, id_outlook=outlook), identity

    def _renumbered(self, item: IncomingVersion) -> tuple[Reference, ...]:
        if not item.needs:
            return item.references
        pairs = zip(item.references, item.needs, strict=True)
        return tuple(Reference(ref.name, ref.subject, self.numbers.get(need, ref.version)) for ref, need in pairs)

    def _judge(self, item: IncomingVersion, state: TargetState, step: PlanStep) -> None:
        """Add the checks of the version against the target's state; none for a text that can't be parsed."""
        if item.schema is None:
            return
        metadata, _ = _contract(item, step, state)
        judged = say.compatibility(item.subject, item.schema, state, metadata)
        checks = [*say.well_formed(item, item.schema, state), judged.check]
        self.breaking = self.breaking or judged.breaking
        if judged.report is not None:
            self.reports[item.subject] = judged.report
        checks += say.policy(item.subject, item.schema, state, metadata)
        checks += say.reserved_fields(item.subject, item.schema, state, metadata)
        # a rollback repeats a text unchanged, so changing the text isn't a cure
        self.checks += [replace(check, cure="") for check in checks] if step.kind == REPEAT else checks
        if step.kind == REPEAT:
            self.checks.append(say.not_undone(item, state, step))

    def _hold(self, item: IncomingVersion, state: TargetState, step: PlanStep, identity: str) -> None:
        """Record the state of the subject after the step."""
        metadata, rule_set = _contract(item, step, state)
        number = step.target_version
        new = TargetVersion(number, step.fingerprint, item.schema, identity, step.expected_id, metadata, rule_set)
        self.states[item.subject] = replace(state, history=(*state.history, new), next_version=number + 1)

    def _configure(self, item: IncomingVersion, state: TargetState) -> None:
        settings, there = settings_dict(item.config), settings_dict(state.own)
        changes = {name: value for name, value in settings.items() if there.get(name) != value}
        self.checks.append(say.config(item.subject, state, changes))
        if changes:
            self.configs.append(
                PlanStep(CONFIG, item.subject, source_version=item.version, config=changes, asked=item.requested)
            )


def _existing(kind: Kind, item: IncomingVersion, state: TargetState) -> TargetVersion | None:
    """Return the target's live version that makes the step unnecessary, or that is adopted."""
    if kind == ADOPT:
        return next((version for version in state.history if version.version == item.version), None)
    if kind == REPEAT:
        return next((version for version in state.history[-1:] if version.version == item.version), None)
    if item.schema is None:
        return None
    fingerprint = item.schema.fingerprint
    return next(
        (
            version
            for version in reversed(state.history)
            if version.fingerprint == fingerprint and _same(item, version, state)
        ),
        None,
    )


def _same(item: IncomingVersion, version: TargetVersion, state: TargetState) -> bool:
    """Return whether the version has the contract that the incoming one would get; without a contract, any does."""
    if item.metadata is None and item.rule_set is None:
        return True
    metadata, rule_set = _merged(item, state)
    return (without_version(metadata), rule_set or {}) == (without_version(version.metadata), version.rule_set or {})


def _contract(item: IncomingVersion, step: PlanStep, state: TargetState) -> tuple[Contract | None, Contract | None]:
    """Return the metadata and rule set stored with the new version, as a registration at the target makes them."""
    metadata, rule_set = _merged(item, state)
    if state.mode not in MODES_WITH_IDS and (step.kind == REPEAT or version_in(metadata) is not None):
        metadata = with_version(metadata, step.target_version)
    return metadata, rule_set


def _merged(item: IncomingVersion, state: TargetState) -> tuple[Contract | None, Contract | None]:
    if state.mode in MODES_WITH_IDS:
        return item.metadata, item.rule_set
    previous = state.history[-1] if state.history else None
    metadata = previous.metadata if item.metadata is None and previous else item.metadata
    rule_set = previous.rule_set if item.rule_set is None and previous else item.rule_set
    settings = state.settings
    return (
        merge_metadata(settings.default_metadata, metadata, settings.override_metadata),
        merge_rule_sets(settings.default_rule_set, rule_set, settings.override_rule_set),
    )


def _identity(item: IncomingVersion, schema: ParsedSchema, step: PlanStep, state: TargetState) -> str:
    metadata, rule_set = _contract(item, step, state)
    return identify(item.schema_type, schema.canonical, step.references, metadata, rule_set).digest


def _context(item: IncomingVersion) -> str:
    return parse_subject(item.subject).context
