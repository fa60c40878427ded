"""What every kind of source gives the scan service."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from django.conf import settings

from registry.drift.judge import JudgedFinding
from registry.errors import SparkUnavailable
from registry.subjects.models import Registry

#: done, total, phase
OnProgress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class CheckedSource:
    """A source as it will be stored: its name and address in their final form."""

    name: str
    bootstrap: str = ""


@dataclass(frozen=True)
class Place:
    """The source to observe, and the registry that it is held against."""

    registry: Registry
    name: str
    bootstrap: str


@dataclass(frozen=True)
class ScanResult:
    """What a scan read and what was judged.

    `read` is what the page shows of it; its `nothing` is true where there was nothing to read. `complete`
    is False where a bound cut the scan short: then no finding may be resolved for not being seen.
    """

    findings: tuple[JudgedFinding, ...]
    read: dict[str, Any]
    complete: bool
    positions: dict[str, int] = field(default_factory=dict)


def spark_remote() -> str:
    """The address of the Spark Connect server. Raises SparkUnavailable where none is set."""
    if not settings.SPARK_REMOTE:
        raise SparkUnavailable("No Spark Connect server is set: start `up` with Spark, or set SPARK_REMOTE.")
    return str(settings.SPARK_REMOTE)


def session_of(tag: str) -> str:
    """The Spark session of a scan's claim, so that any process can interrupt it by the tag alone."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, tag))


class SourceKind(Protocol):
    """One kind of source."""

    def check(self, *, name: str, bootstrap: str) -> CheckedSource:
        """The source as it will be stored; raises InvalidSource, InvalidCheckpoint or BrokerUnavailable."""

    def scan(self, place: Place, *, tag: str, on_progress: OnProgress) -> ScanResult:
        """Observe and judge. Raises Unavailable errors, InvalidSource and InvalidCheckpoint with the reason."""
