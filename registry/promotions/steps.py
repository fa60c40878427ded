"""From what is wanted and what the target holds to the steps, in dependency order, with their checks: pure."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from registry.formats.base import ParsedSchema, Reference
from registry.formats.report import Report
from registry.promotions import checks as say
from registry.promotions.ids import IdBook, compared
from registry.promotions.plan import (
    ADOPT,
    CONFIG,
    NONE,
    REGISTER,
    REPEAT,
    Check,
    Held,
    Kind,
    Plan,
    Step,
    Target,
    TargetState,
    Wanted,
    settings_dict,
)
from registry.subjects.contracts import (
    Contract,
    merge_metadata,
    merge_rule_sets,
    version_in,
    with_version,
    without_version,
)
from registry.subjects.identity import identify
from registry.subjects.models import MODES_WITH_IDS
from registry.subjects.names import parse_subject

#: kind of a request → the kind of step that brings a wanted version
_BRINGS: Mapping[str, Kind] = {"promote": REGISTER, "propose": REGISTER, "roll back": REPEAT, "adopt": ADOPT}


def in_order(wanted: Iterable[Wanted]) -> list[Wanted]:
    """Each after all that it refers to, the versions of a subject ascending; the same for every order of the items."""
    items = {item.key: item for item in wanted}
    needs = {key: {need for need in item.needs if need in items} for key, item in items.items()}
    ascending = {key: found | _earlier(key, items) for key, found in needs.items()}
    ordered = _sorted(ascending)
    if ordered is None:  # imported numbers may run against the references; then the references decide alone
        ordered = _sorted(needs)
    if ordered is None:
        raise ValueError("references form a cycle, which a registry doesn't take")
    return [items[key] for key in ordered]


def _earlier(key: tuple[str, int], items: Mapping[tuple[str, int], Wanted]) -> set[tuple[str, int]]:
    return {other for other in items if other[0] == key[0] and other[1] < key[1]}


def _sorted(needs: Mapping[tuple[str, int], set[tuple[str, int]]]) -> list[tuple[str, int]] | None:
    """The keys, each after those that it needs, by name where that leaves a choice; None for a cycle."""
    left = {key: len(found) for key, found in needs.items()}
    users: dict[tuple[str, int], list[tuple[str, int]]] = {}
    for key, found in needs.items():
        for need in found:
            users.setdefault(need, []).append(key)
    ready = [key for key, count in left.items() if count == 0]
    heapq.heapify(ready)
    ordered = []
    while ready:
        key = heapq.heappop(ready)
        ordered.append(key)
        for user in users.get(key, ()):
            left[user] -= 1
            if left[user] == 0:
                heapq.heappush(ready, user)
    return ordered if len(ordered) == len(needs) else None


def plan_steps(kind: str, wanted: Iterable[Wanted], target: Target) -> Plan:
    """The plan that brings what is wanted to the target."""
    making = _Making(kind, target)
    for item in in_order(wanted):
        making.add(item)
    return making.plan()


@dataclass
class _Making:
    """A plan while it is made; `states` has what the steps so far leave of the subjects."""

    kind: str
    target: Target
    steps: list[Step] = field(default_factory=list)
    configs: list[Step] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    reports: dict[str, Report] = field(default_factory=dict)
    breaking: bool = False

    def __post_init__(self) -> None:
        self.states = dict(self.target.subjects)
        self.ids = IdBook(self.target.ids, is_mirror=self.target.is_mirror)
        self.numbers: dict[tuple[str, int], int] = {}

    def add(self, item: Wanted) -> None:
        """The steps of an item with their checks."""
        state = self.states[item.subject]
        step, identity = self._step(item, state)
        self.numbers[item.key] = step.target_version
        self.steps.append(step)
        can_bring_id = step.source_id is not None and self.ids.is_free_for(_context(item), step.source_id, identity)
        self.checks.append(say.mode(item.subject, state, step, can_bring_id=can_bring_id))
        self.checks += say.references(item, step, self.target)
        self.checks += say.standing(item, step)
        if step.adds:
            self._judge(item, state, step)
            self._hold(item, state, step, identity)
        if item.config is not None:
            self._configure(item, state)

    def plan(self) -> Plan:
        """What has come together."""
        steps = (*self.steps, *self.configs)
        self.checks += say.ids(self.steps)
        self.checks.append(say.something_to_do(steps))
        states = {name: state.to_dict() for name, state in self.target.subjects.items()}
        return Plan(steps, tuple(self.checks), self.reports, states, breaking=self.breaking, kind=self.kind)

    def _step(self, item: Wanted, state: TargetState) -> tuple[Step, str]:
        """The step, and the identity of the schema that it adds ("" for one that adds none)."""
        references = self._renumbered(item)
        bare = Step(
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
            asked=item.asked,
        )
        kind = _BRINGS[self.kind]
        there = _there(kind, item, state)
        if there is not None:
            adopts = kind == ADOPT and not there.is_released
            outlook = compared(there.schema_id, item.source_id)
            found = replace(bare, target_version=there.version, expected_id=there.schema_id, id_outlook=outlook)
            return replace(found, kind=ADOPT) if adopts else found, ""
        step = replace(bare, kind=kind, target_version=state.next_version)
        if item.schema is None:
            return step, ""
        identity = _identity(item, item.schema, step, state)
        expected, outlook = self.ids.expect(_context(item), identity, item.source_id, state.mode)
        return replace(step, expected_id=expected, id_outlook=outlook), identity

    def _renumbered(self, item: Wanted) -> tuple[Reference, ...]:
        if not item.needs:
            return item.references
        pairs = zip(item.references, item.needs, strict=True)
        return tuple(Reference(ref.name, ref.subject, self.numbers.get(need, ref.version)) for ref, need in pairs)

    def _judge(self, item: Wanted, state: TargetState, step: Step) -> None:
        """Whether what is there lets the version in; nothing can be said of a text that can't be read."""
        if item.schema is None:
            return
        metadata, _ = _contract(item, step, state)
        self.checks += say.well_formed(item, item.schema, state)
        judged = say.compatibility(item.subject, item.schema, state, metadata)
        self.checks.append(judged.check)
        self.breaking = self.breaking or judged.breaking
        if judged.report is not None:
            self.reports[item.subject] = judged.report
        self.checks += say.policy(item.subject, item.schema, state, metadata)
        self.checks += say.reserved_fields(item.subject, item.schema, state, metadata)
        if step.kind == REPEAT:
            self.checks.append(say.not_undone(item, state, step))

    def _hold(self, item: Wanted, state: TargetState, step: Step, identity: str) -> None:
        """What the target holds of the subject once the step is done."""
        metadata, rule_set = _contract(item, step, state)
        number = step.target_version
        new = Held(number, step.fingerprint, item.schema, identity, step.expected_id, metadata, rule_set)
        self.states[item.subject] = replace(state, history=(*state.history, new), next_version=number + 1)

    def _configure(self, item: Wanted, state: TargetState) -> None:
        wanted, there = settings_dict(item.config), settings_dict(state.own)
        changes = {name: value for name, value in wanted.items() if there.get(name) != value}
        self.checks.append(say.config(item.subject, state, changes))
        if changes:
            self.configs.append(
                Step(CONFIG, item.subject, source_version=item.version, config=changes, asked=item.asked)
            )


def _there(kind: Kind, item: Wanted, state: TargetState) -> Held | None:
    """The live version of the target that makes the step unnecessary, or that an adoption is of."""
    if kind == ADOPT:
        return next((held for held in state.history if held.version == item.version), None)
    if kind == REPEAT:
        return next((held for held in state.history[-1:] if held.version == item.version), None)
    if item.schema is None:
        return None
    wanted = item.schema.fingerprint
    return next(
        (held for held in reversed(state.history) if held.fingerprint == wanted and _same(item, held, state)), None
    )


def _same(item: Wanted, held: Held, state: TargetState) -> bool:
    """Whether the version carries the contract that the wanted one would get; a text that says none takes any."""
    if item.metadata is None and item.rule_set is None:
        return True
    metadata, rule_set = _merged(item, state)
    return (without_version(metadata), rule_set or {}) == (without_version(held.metadata), held.rule_set or {})


def _contract(item: Wanted, step: Step, state: TargetState) -> tuple[Contract | None, Contract | None]:
    """The metadata and rule set that are stored with the new version, as a registration at the target makes them."""
    metadata, rule_set = _merged(item, state)
    if state.mode not in MODES_WITH_IDS and (step.kind == REPEAT or version_in(metadata) is not None):
        metadata = with_version(metadata, step.target_version)
    return metadata, rule_set


def _merged(item: Wanted, state: TargetState) -> tuple[Contract | None, Contract | None]:
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


def _identity(item: Wanted, schema: ParsedSchema, step: Step, state: TargetState) -> str:
    metadata, rule_set = _contract(item, step, state)
    return identify(item.schema_type, schema.canonical, step.references, metadata, rule_set).digest


def _context(item: Wanted) -> str:
    return parse_subject(item.subject).context
