"""The advice for production registries as a checklist: what is followed, what isn't, and what can't be known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from registry.drift.judge.model import JudgedFinding
from registry.drift.judge.registry_facts import RegistryFacts

Followed = Literal["yes", "no", "not known", "does not apply"]


@dataclass(frozen=True)
class Advice:
    """A line of the checklist: the rules that say it isn't followed, and where the knowledge comes from."""

    id: str
    sentence: str
    rules: tuple[str, ...]
    known_from: str
    needs: Literal["", "is_last", "scanned", "connectors"] = ""


ADVICE: Final = (
    Advice("no_level_none", "Compatibility NONE is not in use.", ("LEVEL_NONE",), "the registry's settings"),
    Advice(
        "production_read_only",
        "The production registry is READONLY.",
        ("PRODUCTION_WRITABLE",),
        "the registry's modes, and its place among the environments",
        "is_last",
    ),
    Advice(
        "clients_may_not_register",
        "Kafka clients hold no right to create versions.",
        ("CLIENTS_MAY_REGISTER",),
        "the roles of accounts with API tokens; which of them are programs isn't known",
        "is_last",
    ),
    Advice(
        "clients_do_not_auto_register",
        "Clients don't register schemas by themselves (auto.register.schemas=false).",
        ("AUTO_REGISTRATION",),
        "versions that came through REST and were written at once; a client's own settings can't be seen from here",
        "scanned",
    ),
    Advice(
        "connectors_do_not_auto_register",
        "Connect workers don't register schemas (key. and value.converter.auto.register.schemas=false).",
        ("CONNECTOR_AUTO_REGISTERS",),
        "the configurations of the connectors that are sources here; a worker's own defaults can't be seen",
        "connectors",
    ),
    Advice(
        "use_latest_version",
        "Clients that don't register take the latest version (use.latest.version=true), as an option.",
        ("CONNECTOR_NOT_ON_LATEST",),
        "the configurations of the connectors that are sources here; a client's own settings can't be seen",
        "connectors",
    ),
    Advice(
        "transitive_levels",
        "Subjects with several versions live in data have a transitive level.",
        ("LEVEL_NOT_TRANSITIVE",),
        "the schema ids that scans saw in messages that are still there",
        "scanned",
    ),
)


def checklist(facts: RegistryFacts, found: Iterable[JudgedFinding]) -> list[dict[str, Any]]:
    """Every line with whether it is followed: what wasn't looked at isn't followed, it is not known."""
    broken: dict[str, int] = {}
    for finding in found:
        broken[finding.rule] = broken.get(finding.rule, 0) + 1
    return [
        {
            "advice": line.id,
            "sentence": line.sentence,
            "followed": _followed(line, facts, broken),
            "findings": sum(broken.get(rule, 0) for rule in line.rules),
            "known_from": line.known_from,
        }
        for line in ADVICE
    ]


def _followed(line: Advice, facts: RegistryFacts, broken: Mapping[str, int]) -> Followed:
    if any(broken.get(rule) for rule in line.rules):
        return "no"
    if line.needs == "is_last" and not facts.is_last:
        return "does not apply"
    if line.needs == "scanned" and not facts.scanned:
        return "not known"
    if line.needs == "connectors" and (facts.connectors_unknown or not _told(facts)):
        return "not known"
    return "yes"


def _told(facts: RegistryFacts) -> bool:
    """Whether any connector's configuration says anything of it."""
    return any(value is not None for connector in facts.connectors for value in connector.settings.values())
