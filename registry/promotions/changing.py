"""Why somebody couldn't change a config or a mode now, said before they try: what the services ask, asked ahead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.conf import settings

from registry.access.roles import Actor, refusal
from registry.promotions.can_promote import Reason
from registry.promotions.gatekeeping import closed_refusal, is_kept
from registry.subjects import gate
from registry.subjects.models import Registry
from registry.subjects.names import SubjectName

CONFIG: Final = "config.change"
MODE: Final = "mode.change"


@dataclass(frozen=True)
class Changing:
    """What is known of a person and a registry: enough to say it of any number of places without further queries."""

    registry: Registry
    by: Actor
    is_closed: bool
    passes: bool

    def reasons(self, action: str, scope: SubjectName | None, mode: str) -> tuple[Reason, ...]:
        """What stands against it at a scope whose effective mode is given; empty where the service would do it.

        The codes are `rights`, `closed-environment`, `mode` and `mode-mutability`.
        """
        subject = scope.qualified if scope else ""
        found = []
        lacking = refusal(self.by, action, registry=self.registry.name, subject=subject)
        if lacking:
            found.append(Reason("rights", lacking, "Ask somebody who has the right, or for the right itself."))
        if action == MODE and not settings.MODE_MUTABILITY:
            said = "This server doesn’t let modes be changed."
            found.append(Reason("mode-mutability", said, "Its operator sets MODE_MUTABILITY."))
        if self.is_closed:
            said = closed_refusal(action, self.registry, subject)
            found.append(Reason("closed-environment", said, "Ask for a promotion that brings the config along."))
        # a release, which a closed environment asks for, passes READONLY
        if action == CONFIG and gate.stops(mode, passes=self.passes or self.is_closed):
            said = f"The mode here is {mode}, in which settings stay as they are."
            found.append(Reason("mode", said, self._mode_cure()))
        return tuple(found)

    def _mode_cure(self) -> str:
        if self.registry.kind == Registry.REMOTE:
            return "Change it in the registry that is mirrored."
        return "Set the mode to READWRITE first."


def changing(registry: Registry, by: Actor) -> Changing:
    """What stands against changes of a registry's settings by somebody; at most two queries."""
    is_closed, passes = is_kept(registry, by)
    return Changing(registry, by, is_closed, passes)
