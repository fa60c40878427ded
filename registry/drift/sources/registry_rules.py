"""The registry itself: its versions, settings and accounts, held against promotions and the advice for production.

Nothing is read outside of the database but the configurations of connectors that are sources too.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from registry.drift.connector_settings import connector_settings
from registry.drift.judge import in_order
from registry.drift.judge.advice import checklist
from registry.drift.judge.registries import judge_registry
from registry.drift.judge.registry_facts import RegistryFacts
from registry.drift.known_registry import facts_of
from registry.drift.models import Source
from registry.drift.patience import patiently
from registry.drift.sources.base import Given, OnProgress, ScanResult
from registry.errors import InvalidSource


class RegistryRules:
    """A registry's own tables."""

    def check(self, given: Given) -> str:
        """The name under which the source is stored: the registry's. Raises InvalidSource for a cluster or patterns."""
        if given.cluster is not None or given.include or given.exclude:
            raise InvalidSource(
                "A source of the kind registry has no cluster and no patterns: it reads its own tables."
            )
        return given.name.strip() or given.registry.name

    def scan(self, source: Source, *, tag: str, on_progress: OnProgress) -> ScanResult:
        """Read the tables and judge them."""
        started = time.monotonic()
        on_progress(0, 2, "reading the registry's tables")
        facts = patiently(lambda: facts_of(source.registry))
        on_progress(1, 2, "reading the configurations of connectors")
        connectors, unknown = patiently(lambda: connector_settings(source.registry))
        facts = replace(facts, connectors=connectors, connectors_unknown=unknown)
        found = in_order(judge_registry(facts))
        return ScanResult(findings=tuple(found), read=_read(facts, found, time.monotonic() - started), complete=True)


def _read(facts: RegistryFacts, found: Any, seconds: float) -> dict[str, Any]:
    """What the page shows: the advice with whether it is followed, and what was looked at."""
    return {
        "nothing": False,
        "seconds": round(seconds, 2),
        "advice": checklist(facts, found),
        "looked_at": {
            "settings": len(facts.levels) + len(facts.modes),
            "versions_registered_lately": len(facts.registered),
            "subjects_in_data": len(facts.live),
            "connectors": len(facts.connectors),
            "connectors_not_read": list(facts.connectors_unknown),
        },
    }
