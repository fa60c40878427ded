"""Whether a rollout may go on, as far as drift has a say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from registry.access.extent import Extent, extent_of
from registry.access.roles import Actor
from registry.drift.life_cycle import SEVERITY_RANK
from registry.drift.models import SEVERITIES, Scan
from registry.drift.selectors.findings import READ, WORST_FIRST, FindingInfo, finding_infos, open_findings
from registry.drift.selectors.sources import SourceInfo, list_sources, scan_info
from registry.errors import InvalidInput
from registry.subjects.selectors.places import get_registry

#: what a source is called for whoever may not read it
OUT_OF_SIGHT: Final = "a source of the registry"


@dataclass(frozen=True)
class Gate:
    """Whether a rollout may go on: no open finding of that severity or a worse one, and every source really looked at.

    `unscanned` are the sources in scope that were never scanned to an end, or whose last scan failed or read nothing.
    """

    passed: bool
    fail_on: str
    findings: tuple[FindingInfo, ...]
    unscanned: tuple[str, ...]


def hold_rollout(
    *,
    fail_on: str,
    registry: str = "",
    subject: str = "",
    source_id: int | None = None,
    limit: int = 200,
    by: Actor | None = None,
) -> Gate:
    """Whether drift in a scope is worse than a rollout may ignore; acknowledged and muted findings are decided.

    What wasn't looked at is no proof: with a source in scope that wasn't scanned the gate holds too, whether `by` may
    read that source or not. Raises InvalidInput for a severity that doesn't exist, RegistryNotFound.
    """
    if fail_on not in SEVERITY_RANK:
        raise InvalidInput(f"fail_on is one of {', '.join(SEVERITIES)}, not {fail_on[:40]!r}.")
    if registry:
        get_registry(registry)
    sources = [source for source in list_sources(registry=registry) if source_id is None or source.id == source_id]
    worse = SEVERITIES[: SEVERITY_RANK[fail_on] + 1]
    rows = open_findings().filter(severity__in=worse, source__in=[source.id for source in sources])
    if subject:
        rows = rows.filter(subject_name=subject)
    found = rows.select_related("source__registry", "topic").order_by(WORST_FIRST, "-last_seen", "-id")[:limit]
    findings = tuple(finding_infos(found, by))
    unscanned = _unscanned(sources, extent_of(by, READ) if by else None)
    return Gate(not findings and not unscanned, fail_on, findings, unscanned)


def _unscanned(sources: list[SourceInfo], extent: Extent | None) -> tuple[str, ...]:
    """The sources whose newest finished scan proves nothing, with why; those out of sight without a name; one query."""
    over = Scan.objects.filter(source__in=[source.id for source in sources], state__in=("done", "failed"))
    newest = {row.source_id: scan_info(row) for row in over.order_by("source", "-id").distinct("source")}
    names = {
        source.id: source.name if extent is None or extent.has_all_of(source.registry) else OUT_OF_SIGHT
        for source in sources
    }
    said = (
        f"{names[source.id]} ({f'last scan: {scan.verdict}' if scan else 'never scanned'})"
        for source in sources
        if (scan := newest.get(source.id)) is None or scan.verdict != "scanned"
    )
    return tuple(dict.fromkeys(said))
