"""What the registry that a mirror follows says itself of a schema: its own answer, beside ours.

The text goes to that server, so it is asked only where a person or a program wants it. It answers soon, or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from registry.access.egress import EgressPolicy, parse_connection
from registry.access.outgoing import Limits, OutgoingClient
from registry.access.roles import Actor, require
from registry.errors import RemoteUnavailable, SchemadeskError
from registry.formats.base import Reference
from registry.subjects.models import Registry
from registry.subjects.names import SubjectName
from registry.subjects.remote_writes import MEDIA, SentSchema

LIMITS: Final = Limits(connect_seconds=3.0, read_seconds=5.0, total_seconds=8.0, max_bytes=1024 * 1024)
MAX_MESSAGES: Final = 20
MAX_MESSAGE: Final = 1000


@dataclass(frozen=True, slots=True)
class RemoteVerdict:
    """The answer of the server `where`; `is_compatible` is None where it gave none, and `reason` says why."""

    where: str
    is_compatible: bool | None
    messages: tuple[str, ...] = ()
    reason: str = ""

    def to_dict(self, ours: bool) -> dict[str, Any]:
        """The answer as JSON values, with whether it is the same as ours."""
        return {
            "where": self.where,
            "is_compatible": self.is_compatible,
            "agrees": None if self.is_compatible is None else self.is_compatible == ours,
            "messages": list(self.messages),
            "reason": self.reason,
        }


def ask_remote(
    place: Registry,
    subject: SubjectName,
    *,
    text: str,
    schema_type: str,
    by: Actor,
    references: Sequence[Reference] = (),
    policy: EgressPolicy | None = None,
) -> RemoteVerdict | None:
    """What the server behind a mirror says of a text, under its own level; None for a registry of ours.

    A server that can't be asked is an answer too. Raises NotAllowed.
    """
    require(by, "schema.read", registry=place.name, subject=subject.qualified)
    if place.kind != Registry.REMOTE:
        return None
    where = ""
    try:
        connection = parse_connection(place.url, user=place.user, secret=place.secret)
        where = connection.netloc
        with OutgoingClient(connection, policy=policy, limits=LIMITS) as client:
            value = _asked(client, subject, SentSchema(schema_type, text, tuple(references)).body())
    except SchemadeskError as error:
        return RemoteVerdict(where or place.name, None, reason=error.message)
    found = value.get("messages") if isinstance(value, dict) else None
    messages = [str(item)[:MAX_MESSAGE] for item in found] if isinstance(found, list) else []
    return RemoteVerdict(where, value["is_compatible"], tuple(messages[:MAX_MESSAGES]))


def _asked(client: OutgoingClient, subject: SubjectName, body: bytes) -> dict[str, Any]:
    """The JSON of the answer. A server of the first years knows the check against the newest version alone."""
    headers = {"Accept": f"{MEDIA}, application/json; q=0.9", "Content-Type": MEDIA}
    path = f"/compatibility/subjects/{quote(subject.qualified, safe='')}/versions"
    answer = client.call("POST", path, query={"verbose": "true"}, body=body, headers=headers)
    if answer.status in (404, 405):
        client.close()  # a POST isn't sent again over a connection that may be closed
        answer = client.call("POST", f"{path}/latest", query={"verbose": "true"}, body=body, headers=headers)
    where = client.connection.netloc
    if answer.status != 200:
        raise RemoteUnavailable(
            f"{where} answers with status {answer.status}{_said(answer.body)}", status=answer.status
        )
    value = answer.json(f"{where}: the answer")
    if not isinstance(value, dict) or not isinstance(value.get("is_compatible"), bool):
        raise RemoteUnavailable(f"{where} gives no verdict: its answer has no is_compatible.")
    return value


def _said(body: bytes) -> str:
    try:
        message = json.loads(body)["message"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return "."
    return f": {str(message)[:MAX_MESSAGE]}"
