"""From what both environments hold now to a plan."""

from __future__ import annotations

from dataclasses import replace

from registry.errors import InvalidInput
from registry.promotions.models import Environment
from registry.promotions.outlook import checks_from_outside
from registry.promotions.plan import Plan, TargetState, Wanted, plan_promotion
from registry.subjects.names import SubjectName, parse_subject
from registry.subjects.selectors import faithful_text, state_of_subject, stored_version
from registry.subjects.selectors.places import Registry

MAX_VERSIONS = 200


def make_plan(source: Environment, target: Environment, subject: SubjectName, version: int) -> Plan:
    """The plan for a version and all that it refers to. Raises SubjectNotFound, VersionNotFound, InvalidInput."""
    wanted = _with_references(source.registry, subject, version)
    names = {item.subject: parse_subject(item.subject) for item in wanted}
    plan = plan_promotion(wanted, {name: _target_state(target.registry, parsed) for name, parsed in names.items()})
    return replace(plan, checks=(*plan.checks, *checks_from_outside(target.registry, plan)))


def _with_references(registry: Registry, subject: SubjectName, version: int) -> list[Wanted]:
    """The version and what it refers to, each after all that it refers to itself."""
    found: dict[tuple[str, int], Wanted] = {}

    def visit(name: SubjectName, number: int) -> None:
        if (name.qualified, number) in found:
            return
        if len(found) >= MAX_VERSIONS:
            raise InvalidInput(f"The version refers to more than {MAX_VERSIONS} others; promote those first.")
        info, schema = stored_version(registry, name, number)
        qualified = tuple(
            type(ref)(ref.name, parse_subject(ref.subject, context=name.context).qualified, ref.version)
            for ref in info.schema.references
        )
        for ref in qualified:
            visit(parse_subject(ref.subject), ref.version)
        text = faithful_text(registry, info)
        found[name.qualified, number] = Wanted(name.qualified, number, schema, text, qualified)

    visit(subject, version)
    return list(found.values())


def _target_state(registry: Registry, subject: SubjectName) -> TargetState:
    state = state_of_subject(registry, subject)
    return TargetState(
        state.level, state.mode, state.history, state.next_version, profile=state.profile, policy=state.policy
    )
