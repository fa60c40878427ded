"""What a new schema does to the declared clients of its subject: who reads what it writes, and whose data it reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Final

from registry.errors import InvalidReference, InvalidSchema, SchemaTooCostly
from registry.formats.assessment import ClientAnswer
from registry.formats.base import Answer, ParsedSchema
from registry.subjects import engines
from registry.subjects.models import Registry, SchemaVersion
from registry.subjects.names import SubjectName
from registry.subjects.selectors.clients import ClientInfo, clients_of
from registry.subjects.selectors.fitting import among
from registry.subjects.selectors.parsed import parser_of

#: clients that a report names; those that don't go on come first
MAX_CLIENTS: Final = 100
#: what a client does → the level whose report says what it meets, and how that is said
_SIDES: Final = (
    ("reads", "FORWARD_TRANSITIVE", "can't read what this version writes"),
    ("writes", "BACKWARD_TRANSITIVE", "writes what this version can't read"),
)
_WORST_FIRST: Final = ("no", "unknown", "yes")
Versions = Mapping[int, ParsedSchema]


@dataclass(frozen=True)
class Harm:
    """What a client meets on one side, in words."""

    client: ClientInfo
    said: str


def harm_to(clients: Iterable[ClientInfo], schema: ParsedSchema, versions: Versions) -> list[Harm]:
    """Of each client that doesn't go on with the schema what it meets; one whose version isn't there is left out.

    Raises SchemaTooCostly.
    """
    there = [client for client in clients if client.number in versions]
    return [harm for side in _SIDES for harm in _on(side, schema, there, versions)]


def _on(
    side: tuple[str, str, str], schema: ParsedSchema, clients: Sequence[ClientInfo], versions: Versions
) -> list[Harm]:
    does, level, said = side
    concerned = [client for client in clients if getattr(client, does)]
    numbers = sorted({client.number for client in concerned if client.number is not None})
    if not numbers:
        return []
    report = engines.check(schema, [(number, versions[number]) for number in numbers], level)
    first: dict[int, str] = {}
    for item in report.breaks:
        first.setdefault(item.against_version, f"{item.message} at {item.named_path or 'its root'}")
    return [
        Harm(client, f"{said}: {first[client.number]}")
        for client in concerned
        if client.number is not None and client.number in first
    ]


def versions_of_clients(
    registry: Registry, clients: Mapping[SubjectName, Sequence[ClientInfo]]
) -> dict[SubjectName, dict[int, ParsedSchema]]:
    """The versions that clients have, by number, the soft-deleted ones too; one query and one for what they refer to.

    One that can't be read is left out: no report and no plan fails because of what a client has.
    """
    if not clients:
        return {}
    wanted = {client.number for found in clients.values() for client in found if client.number is not None}
    rows = list(
        SchemaVersion.objects.filter(
            among(clients.keys(), "subject__"), subject__context__registry=registry, version__in=wanted
        ).select_related("schema", "subject__context")
    )
    found: dict[SubjectName, dict[int, ParsedSchema]] = {}
    parse = parser_of([row.schema for row in rows])
    for row in rows:
        try:
            schema = parse(row.schema)
        except (InvalidSchema, InvalidReference):
            continue
        found.setdefault(SubjectName(row.subject.context.name, row.subject.name), {})[row.version] = schema
    return found


def clients_against(registry: Registry, subject: SubjectName, schema: ParsedSchema) -> tuple[ClientAnswer, ...]:
    """Whether each declared client goes on with the schema, at most 100 of them, those that don't first.

    One query where there is no client, a constant number otherwise.
    """
    clients = clients_of(registry, subject)
    if not clients:
        return ()
    versions = versions_of_clients(registry, {subject: clients}).get(subject, {})
    try:
        harms = harm_to([client for client in clients if not client.has_lapsed], schema, versions)
    except SchemaTooCostly as error:
        return tuple(_answer(client, "unknown", error.message) for client in clients[:MAX_CLIENTS])
    met: dict[str, list[str]] = {}
    for harm in harms:
        met.setdefault(harm.client.name, []).append(harm.said)
    found = [_judged(client, met.get(client.name, []), versions) for client in clients]
    return tuple(sorted(found, key=lambda each: _WORST_FIRST.index(each.answer))[:MAX_CLIENTS])


def _judged(client: ClientInfo, met: Sequence[str], versions: Versions) -> ClientAnswer:
    if client.has_lapsed:
        said = (
            f"was heard of on {client.seen_at.astimezone(UTC):%Y-%m-%d} last: it isn't known whether it is still there"
        )
        return _answer(client, "unknown", said)
    if client.number not in versions:
        return _answer(client, "unknown", "has no version that could be compared")
    return _answer(client, "no", "; it ".join(met)) if met else _answer(client, "yes", "goes on with it")


def _answer(client: ClientInfo, answer: Answer, message: str) -> ClientAnswer:
    return ClientAnswer(client.name, client.does, client.number, client.contact, answer, message)
