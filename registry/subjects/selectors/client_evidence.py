"""What declared clients say of the use of a subject's versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Final

from registry.subjects.evidence import Evidence
from registry.subjects.models import Registry
from registry.subjects.names import SubjectName
from registry.subjects.selectors.clients import ClientInfo, clients_of

#: clients of a version that are told one by one
SHOWN: Final = 20
PROVIDER: Final = "declared clients"


def client_evidence(registry: Registry, subject: SubjectName, versions: Sequence[int]) -> Mapping[int, list[Evidence]]:
    """What clients say of each version, for `registry.subjects.evidence`; one query."""
    found: dict[int, list[Evidence]] = {number: [] for number in versions}
    for client in clients_of(registry, subject):
        if client.number in found:
            found[client.number].append(_evidence(client))
    return {number: [*items[:SHOWN], *_rest(items)] for number, items in found.items()}


def _rest(items: Sequence[Evidence]) -> list[Evidence]:
    """One line for those beyond the first; in use if one of them is."""
    rest = items[SHOWN:]
    if not rest:
        return []
    is_used = any(item.in_use == "yes" for item in rest)
    return [Evidence("clients", "yes" if is_used else "unknown", f"So do {len(rest)} other clients.")]


def _evidence(client: ClientInfo) -> Evidence:
    follows = ", which takes the newest version," if client.version is None else ""
    ask = f" Ask {client.contact}." if client.contact else ""
    if client.has_lapsed:
        said = (
            f"{client.name}{follows} {client.does} it, as was said on {client.seen_at.astimezone(UTC):%Y-%m-%d} last."
        )
        return Evidence("clients", "unknown", f"{said}{ask}", as_of=client.seen_at)
    return Evidence("clients", "yes", f"{client.name}{follows} {client.does} it.{ask}", as_of=client.seen_at)
