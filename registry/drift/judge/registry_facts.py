"""What a registry's own tables hold, and what levels and modes promise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from registry.drift.judge.model import RegisteredVersion

#: level → how many versions it asks in each direction (0: none, 1: the latest, 2: all), backward before forward
GUARANTEES: Final[Mapping[str, tuple[int, int]]] = {
    "NONE": (0, 0),
    "BACKWARD": (1, 0),
    "BACKWARD_TRANSITIVE": (2, 0),
    "FORWARD": (0, 1),
    "FORWARD_TRANSITIVE": (0, 2),
    "FULL": (1, 1),
    "FULL_TRANSITIVE": (2, 2),
}
#: mode → how much it lets in
OPENNESS: Final[Mapping[str, int]] = {
    "READONLY_OVERRIDE": 0,
    "READONLY": 0,
    "READWRITE": 1,
    "FORWARD": 2,
    "IMPORT": 2,
}


@dataclass(frozen=True)
class ScopedSetting:
    """A level or mode that counts for a scope; `context` None and an empty `subject` is the registry as a whole."""

    scope: str
    value: str
    subject: str = ""


@dataclass(frozen=True)
class Relaxation:
    """A level or mode that was set weaker, and what counts now in its place."""

    scope: str
    subject: str
    before: str
    after: str
    now: str
    by: str
    at: int


@dataclass(frozen=True)
class LiveVersions:
    """A subject whose versions stand in messages that are still there."""

    subject: str
    level: str
    versions: tuple[int, ...]


@dataclass(frozen=True)
class ConnectorSettings:
    """What a connector's configuration says of schemas, by the setting's name; None where the worker decides it."""

    connector: str
    settings: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class RegistryFacts:
    """What a registry's tables hold; times are milliseconds since 1970.

    `is_target`: versions come by promotions; `is_last`: it is production. `unreleased` came without one. `differing`
    are versions with the other environment's name whose schema there is another one and that no promotion explains.
    `registered` are lately registered versions with the time of their first message, None where none was seen.
    `may_register` are people with API tokens and the right to create versions. `scanned` says whether any topic was.
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
    """Whether a level promises less than another one in either direction; unknown levels promise nothing."""
    was, becomes = GUARANTEES.get(before, (0, 0)), GUARANTEES.get(after, (0, 0))
    return any(new < old for old, new in zip(was, becomes, strict=True))


def is_more_open(before: str, after: str) -> bool:
    """Whether a mode lets in more than another one."""
    return OPENNESS.get(after, 0) > OPENNESS.get(before, 0)
