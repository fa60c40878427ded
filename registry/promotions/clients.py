"""What the declared clients of a plan's subjects would meet: who reads what it writes, and whose data it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from registry.errors import SchemaTooCostly
from registry.formats.base import ParsedSchema
from registry.promotions.plan import PASS, SKIPPED, WARN, Check
from registry.subjects.models import Registry
from registry.subjects.names import parse_subject
from registry.subjects.selectors.client_harm import Harm, harm_to, versions_of_clients
from registry.subjects.selectors.clients import ClientInfo, clients_of_several

CODE: Final = "clients"
#: clients that are named in a sentence
NAMED: Final = 5


def checks_of_clients(registry: Registry, subjects: Sequence[str], schemas: Mapping[str, ParsedSchema]) -> list[Check]:
    """A check for each subject that has declared clients at the target; a constant number of queries.

    A client that wasn't heard of for long counts as one that isn't known to be there, and is told apart.
    """
    names = {parse_subject(subject): subject for subject in subjects if subject in schemas}
    clients = clients_of_several(registry, names.keys()) if names else {}
    history = versions_of_clients(registry, clients)
    return [
        _check(names[name], schemas[names[name]], found, history.get(name, {}))
        for name, found in sorted(clients.items(), key=lambda pair: pair[0].qualified)
    ]


def _check(
    subject: str, schema: ParsedSchema, clients: Sequence[ClientInfo], versions: Mapping[int, ParsedSchema]
) -> Check:
    name = f"clients of {subject}"
    there = [client for client in clients if not client.has_lapsed]
    lapsed = len(clients) - len(there)
    quiet = f" {_counted(lapsed)} not heard of for long." if lapsed else ""
    try:
        hurt = harm_to(there, schema, versions)
    except SchemaTooCostly as error:
        return Check(CODE, name, SKIPPED, error.message, subject=subject)
    if hurt:
        more = f"; and {len(hurt) - NAMED} more" if len(hurt) > NAMED else ""
        concerned = tuple(dict.fromkeys(harm.client.name for harm in hurt))
        listed = "; ".join(map(_told, hurt[:NAMED]))
        cure = "Talk to them before it is applied; bring them to a version that goes with it first."
        said = f"{listed}{more}.{quiet}"
        return Check(CODE, name, WARN, said, cure, subject=subject, concerned=concerned, asked=len(there))
    if not there:
        return Check(CODE, name, SKIPPED, f"Of its clients none was heard of lately.{quiet}", subject=subject)
    listed = ", ".join(client.name for client in there[:NAMED])
    more = f" and {len(there) - NAMED} more" if len(there) > NAMED else ""
    return Check(
        CODE, name, PASS, f"It goes with what {listed}{more} declared.{quiet}", subject=subject, asked=len(there)
    )


def _told(harm: Harm) -> str:
    client = harm.client
    contact = f", {client.contact}" if client.contact else ""
    return f"{client.name} ({client.does} version {client.number}{contact}) {harm.said}"


def _counted(number: int) -> str:
    return "One client was" if number == 1 else f"{number} clients were"
