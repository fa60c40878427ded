"""A registry's own tables, the guarantees of levels and modes, and the production advice as a checklist.

The checklist says which advice is followed, not followed, or unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from registry.drift.judge.model import JudgedFinding, RegisteredVersion

#: level → the versions it checks (0: none, 1: the latest, 2: all) as (backward, forward)
GUARANTEES: Final[Mapping[str, tuple[int, int]]] = {
    "NONE": (0, 0),
    "BACKWARD": (1, 0),
    "BACKWARD_TRANSITIVE": (2, 0),
    "FORWARD": (0, 1),
    "FORWARD_TRANSITIVE": (0, 2),
    "FULL": (1, 1),
    "FULL_TRANSITIVE": (2, 2),
}
#: mode → how much it allows
OPENNESS: Final[Mapping[str, int]] = {"READONLY_OVERRIDE": 0, "READONLY": 0, "READWRITE": 1, "FORWARD": 2, "IMPORT": 2}


@dataclass(frozen=True)
class ScopedSetting:
    """A level or mode in effect for a scope; an empty `subject` is a context or the whole registry."""

    scope: str
    value: str
    subject: str = ""


@dataclass(frozen=True)
class Relaxation:
    """A level or mode that was relaxed, and the one in effect now."""

    scope: str
    subject: str
    before: str
    after: str
    now: str
    by: str
    at: int


@dataclass(frozen=True)
class LiveVersions:
    """A subject with versions in messages that still exist."""

    subject: str
    level: str
    versions: tuple[int, ...]


@dataclass(frozen=True)
class ConnectorSettings:
    """A connector's schema settings by name; None if the worker decides."""

    connector: str
    settings: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class RegistryFacts:
    """The content of a registry's tables; times are milliseconds since 1970.

    `is_target`: it gets versions by promotions; `is_last`: it is production. `unreleased` versions came without a
    promotion. `differing` are versions with the name of another environment that has a different schema for them, not
    explained by a promotion. `registered` are recently registered versions with the time of their first message, None
    if none was seen. `may_register` are accounts with API tokens and the right to create versions. `scanned`: at least
    one topic was scanned.
    """

    registry: str
    is_target: bool = False
    is_last: bool = False
    unreleased: tuple[RegisteredVersion, ...] = ()
    differing: tuple[tuple[RegisteredVersion, str], ...] = ()
    registered: tuple[tuple[RegisteredVersion, int | None], ...] = ()
    relaxed_levels: tuple[Relaxation, ...] = ()
    relaxed_modes: tuple[Relaxation, ...] = ()
    levels: tuple[ScopedSetting, ...] = ()
    modes: tuple[ScopedSetting, ...] = ()
    may_register: tuple[str, ...] = ()
    live: tuple[LiveVersions, ...] = ()
    connectors: tuple[ConnectorSettings, ...] = ()
    connectors_unknown: tuple[str, ...] = ()
    scanned: bool = False


def is_weaker(before: str, after: str) -> bool:
    """Return whether a level guarantees less than another in either direction; unknown levels guarantee nothing."""
    was, becomes = GUARANTEES.get(before, (0, 0)), GUARANTEES.get(after, (0, 0))
    return any(new < old for old, new in zip(was, becomes, strict=True))


def is_more_open(before: str, after: str) -> bool:
    """Return whether a mode allows more than another."""
    return OPENNESS.get(after, 0) > OPENNESS.get(before, 0)


Followed = Literal["yes", "no", "not known", "does not apply"]


@dataclass(frozen=True)
class Advice:
    """A line of the checklist: the rules that show it isn't followed, and the source of the knowledge."""

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
        "the registry's modes and its position in the environment order",
        "is_last",
    ),
    Advice(
        "clients_may_not_register",
        "Kafka clients have no right to create versions.",
        ("CLIENTS_MAY_REGISTER",),
        "the roles of accounts with API tokens; which of them are programs is not known",
        "is_last",
    ),
    Advice(
        "clients_do_not_auto_register",
        "Clients don't register schemas automatically (auto.register.schemas=false).",
        ("AUTO_REGISTRATION",),
        "versions registered through REST and written immediately; a client's own settings are not visible",
        "scanned",
    ),
    Advice(
        "connectors_do_not_auto_register",
        "Connect workers don't register schemas (key. and value.converter.auto.register.schemas=false).",
        ("CONNECTOR_AUTO_REGISTERS",),
        "the configurations of connectors added as sources; a worker's own defaults are not visible",
        "connectors",
    ),
    Advice(
        "use_latest_version",
        "Optional: clients that don't register schemas use the latest version (use.latest.version=true).",
        ("CONNECTOR_NOT_ON_LATEST",),
        "the configurations of connectors added as sources; a client's own settings are not visible",
        "connectors",
    ),
    Advice(
        "transitive_levels",
        "Subjects with several versions live in data have a transitive compatibility level.",
        ("LEVEL_NOT_TRANSITIVE",),
        "the schema ids that scans found in messages that still exist",
        "scanned",
    ),
)


def checklist(facts: RegistryFacts, findings: Iterable[JudgedFinding]) -> list[dict[str, Any]]:
    """Return every line of advice and whether it is followed; an unchecked line is unknown."""
    broken: dict[str, int] = {}
    for finding in findings:
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
    """Return whether any connector's configuration has schema settings."""
    return any(value is not None for connector in facts.connectors for value in connector.settings.values())
