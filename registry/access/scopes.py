"""What a token may at most: scopes as a table. What it may in fact is that, of what its person may."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

ALL = "all"
_READ = frozenset({"schema.read", "audit.read"})
_REGISTER = _READ | {"version.register", "client.declare", "deployment.tell"}

#: scope → the actions that it lets through; None: every action, those that come later too
SCOPES: dict[str, frozenset[str] | None] = {
    "read": _READ,
    "register": _REGISTER,
    "write": _REGISTER | {"version.delete", "version.standing", "subject.describe", "config.change"},
    "scan": _READ
    | {"cluster.manage", "source.manage", "source.scan", "state.check"}
    | {"finding.decide", "finding.mute", "sample.read"},
    "promote": _READ | {"promotion.request", "promotion.apply", "deployment.tell"},
    ALL: None,
}

#: what a person reads beside the choice
SCOPE_WORDS = {
    "read": "Read schemas, findings, requests and the audit.",
    "register": "Read, register versions, declare clients, tell of deployments: what a producer, a consumer or a build needs.",
    "write": "Register, declare clients, tell of deployments, deprecate, describe, delete softly, and change compatibility settings.",
    "scan": "Read, also masked samples, manage clusters and sources, start scans, decide on findings.",
    "promote": "Read, ask for promotions, apply approved ones, tell of deployments: what a pipeline needs.",
    ALL: "Everything that its person may.",
}


@dataclass(frozen=True)
class Limit:
    """What a token takes away: all but the actions of its scope, in its registry (empty: in all), for its subjects."""

    scope: str = ALL
    registry: str = ""
    subject_pattern: str = "*"
    expires_at: datetime | None = None

    def has(self, action: str) -> bool:
        """Whether the scope names the action; an unknown scope names none."""
        actions = SCOPES.get(self.scope, frozenset())
        return actions is None or action in actions

    @property
    def is_whole(self) -> bool:
        """Whether it takes nothing away."""
        return self.scope == ALL and not self.registry and self.subject_pattern == "*"

    @property
    def place(self) -> str:
        """Where it holds, in words."""
        subjects = "all subjects" if self.subject_pattern == "*" else f"subjects {self.subject_pattern}"
        return f"{subjects} of {f'registry {self.registry}' if self.registry else 'all registries'}"


def scopes_with(action: str) -> list[str]:
    """The scopes that let an action through, narrowest first."""
    return [name for name in SCOPES if Limit(scope=name).has(action)]
