"""What the declared clients of a plan's subjects would meet: who reads what it writes, and whose data it reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from registry.errors import SchemaTooCostly
from registry.formats.base import ParsedSchema
from registry.promotions.holdings import named_in
from registry.promotions.plan import PASS, SKIPPED, WARN, Check
from registry.subjects import engines
from registry.subjects.models import Registry, SchemaVersion
from registry.subjects.names import SubjectName, parse_subject
from registry.subjects.selectors.clients import ClientInfo, clients_of_several
from registry.subjects.selectors.parsed import parse_stored

CODE: Final = "clients"
#: clients that are named in a sentence
NAMED: Final = 5
#: what a client does → the level whose report says what it meets, and how that is said
_SIDES: Final = (
    ("reads", "FORWARD_TRANSITIVE", "can't read what this version writes"),
    ("writes", "BACKWARD_TRANSITIVE", "writes what this version can't read"),
)


def checks_of_clients(registry: Registry, subjects: Sequence[str], schemas: Mapping[str, ParsedSchema]) -> list[Check]:
    """A check for each subject that has declared clients at the target; a constant number of queries.

    A client that wasn't heard of for long counts as one that isn't known to be there, and is told apart.
    """
    names = {parse_subject(subject): subject for subject in subjects if subject in schemas}
    clients = clients_of_several(registry, names.keys()) if names else {}
    history = _history(registry, clients)
    return [
        _check(names[name], schemas[names[name]], found, history.get(name, {}))
        for name, found in sorted(clients.items(), key=lambda pair: pair[0].qualified)
    ]


def _history(
    registry: Registry, clients: Mapping[SubjectName, Sequence[ClientInfo]]
) -> dict[SubjectName, dict[int, ParsedSchema]]:
    """The versions that clients have, by number."""
    if not clients:
        return {}
    wanted = {client.number for found in clients.values() for client in found if client.number is not None}
    rows = list(
        SchemaVersion.objects.filter(
            named_in(clients.keys(), "subject__"), subject__context__registry=registry, version__in=wanted
        ).select_related("schema", "subject__context")
    )
    found: dict[SubjectName, dict[int, ParsedSchema]] = {}
    for row, schema in zip(rows, parse_stored([row.schema for row in rows]), strict=True):
        found.setdefault(SubjectName(row.subject.context.name, row.subject.name), {})[row.version] = schema
    return found


def _check(
    subject: str, schema: ParsedSchema, clients: Sequence[ClientInfo], versions: Mapping[int, ParsedSchema]
) -> Check:
    name = f"clients of {subject}"
    there = [client for client in clients if not client.has_lapsed]
    lapsed = len(clients) - len(there)
    quiet = f" {_counted(lapsed)} not heard of for long." if lapsed else ""
    try:
        hurt = [said for side in _SIDES for said in _hurt(side, schema, there, versions)]
    except SchemaTooCostly as error:
        return Check(CODE, name, SKIPPED, error.message, subject=subject)
    if hurt:
        more = f"; and {len(hurt) - NAMED} more" if len(hurt) > NAMED else ""
        cure = "Talk to them before it is applied; bring them to a version that goes with it first."
        return Check(CODE, name, WARN, f"{'; '.join(hurt[:NAMED])}{more}.{quiet}", cure, subject=subject)
    if not there:
        return Check(CODE, name, SKIPPED, f"Of its clients none was heard of lately.{quiet}", subject=subject)
    listed = ", ".join(client.name for client in there[:NAMED])
    more = f" and {len(there) - NAMED} more" if len(there) > NAMED else ""
    return Check(CODE, name, PASS, f"It goes with what {listed}{more} declared.{quiet}", subject=subject)


def _hurt(
    side: tuple[str, str, str],
    schema: ParsedSchema,
    clients: Iterable[ClientInfo],
    versions: Mapping[int, ParsedSchema],
) -> list[str]:
    """What is said of each client that doesn't go on, on one side."""
    does, level, said = side
    concerned = [client for client in clients if getattr(client, does) and client.number in versions]
    numbers = sorted({client.number for client in concerned if client.number is not None})
    if not numbers:
        return []
    report = engines.check(schema, [(number, versions[number]) for number in numbers], level)
    first: dict[int, str] = {}
    for item in report.breaks:
        first.setdefault(item.against_version, f"{item.message} at {item.named_path or 'its root'}")
    return [
        f"{client.name} ({client.does} version {client.number}"
        f"{f', {client.contact}' if client.contact else ''}) {said}: {first[client.number]}"
        for client in concerned
        if client.number in first
    ]


def _counted(number: int) -> str:
    return "One client was" if number == 1 else f"{number} clients were"
