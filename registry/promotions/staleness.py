"""Whether a stored plan is still what would run: told cheaply, for a page; only a new plan tells it for sure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from registry.promotions.holdings import states_of
from registry.promotions.models import PromotionRequest
from registry.promotions.plan import CONFIG, Step, settings_dict, steps_of
from registry.subjects.names import parse_subject

#: part of a stored state → how people call it
_WORDS = {"level": "level", "mode": "mode", "profile": "profile", "policy": "policy"}
_OLD_PLAN = "The plan was made by an earlier release of this product; run the checks again."


def stale(request: PromotionRequest) -> str:
    """What has moved since the request's plan was made, as a sentence; "" if nothing. At most six queries.

    The request's environments should be joined already. A closed request's plan is history, so it isn't stale.
    """
    if request.state in PromotionRequest.CLOSED_STATES:
        return ""
    if "target" not in request.plan:
        return _OLD_PLAN
    names = {parse_subject(name) for name in request.plan["target"]}
    now = states_of(request.target.registry, names)
    moved = what_moved(request.plan["target"], {name: state.to_dict() for name, state in now.items()})
    if moved:
        return f"{moved} in {request.target.registry.name}."
    return _moved_at_source(request)


def what_moved(before: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]]) -> str:
    """The first difference between what a target held and what it holds, as the begin of a sentence; "" if none."""
    return next(_movements(before, now), "")


def _movements(before: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for subject in sorted(before.keys() | now.keys()):
        if subject not in before or subject not in now:
            yield f"The plan concerns {subject} {'now' if subject in now else 'no more'}"
            continue
        old, new = before[subject], now[subject]
        for part, word in _WORDS.items():
            if old[part] != new[part]:
                yield f"The {word} of {subject} was {old[part]} and is {new[part]}"
        yield from _moved_versions(subject, dict(old["versions"]), dict(new["versions"]))
        if old["settings"] != new["settings"]:
            changed = {name for name in old["settings"].keys() | new["settings"].keys()
                       if old["settings"].get(name) != new["settings"].get(name)}  # fmt: skip
            yield f"The settings of {subject} have changed ({', '.join(sorted(changed))})"
        if old["next_version"] != new["next_version"]:
            yield f"The next version of {subject} was {old['next_version']} and is {new['next_version']}"


def _moved_versions(subject: str, old: Mapping[int, str], new: Mapping[int, str]) -> Iterator[str]:
    for number in sorted(new.keys() - old.keys()):
        yield f"Version {number} of {subject} has come"
    for number in sorted(old.keys() - new.keys()):
        yield f"Version {number} of {subject} has gone"
    for number in sorted(old.keys() & new.keys()):
        if old[number] != new[number]:
            yield f"Version {number} of {subject} is another schema now"


def _moved_at_source(request: PromotionRequest) -> str:
    """What has moved where the versions come from: one that went, was decided against, or has other settings."""
    place = request.source or request.target
    wanted = [step for step in steps_of(request.plan) if step.source_version]
    if not wanted or request.kind == PromotionRequest.PROPOSE:
        return ""
    states = states_of(place.registry, {parse_subject(step.subject) for step in wanted})
    for step in wanted:
        state = states[step.subject]
        if step.kind == CONFIG:
            moved = _moved_config(step, settings_dict(state.own))
        else:
            held = next((held for held in state.history if held.version == step.source_version), None)
            moved = _moved_version(step, held.fingerprint if held else "", held.standing if held else "")
        if moved:
            return f"{moved} in {place.registry.name}."
    return ""


def _moved_config(step: Step, own: Mapping[str, Any]) -> str:
    changed = [name for name, value in (step.config or {}).items() if own.get(name) != value]
    return f"The settings of {step.subject} have changed ({', '.join(changed)})" if changed else ""


def _moved_version(step: Step, fingerprint: str, standing: str) -> str:
    version = f"Version {step.source_version} of {step.subject}"
    if not fingerprint:
        return f"{version} has gone" if step.asked else ""
    if fingerprint != step.fingerprint:
        return f"{version} is another schema now"
    return f"{version} is {standing} now" if standing and step.adds else ""
