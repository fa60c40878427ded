"""Writes to another registry by Confluent's REST API, through the egress policy, and asks for its verdicts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from registry.access.egress import Connection, EgressPolicy, parse_connection
from registry.access.http_client import HttpLimits, OutgoingClient, ServerResponse
from registry.access.roles import Actor, require
from registry.errors import RemoteUnavailable, SchemadeskError
from registry.formats import DEFAULT_FORMAT
from registry.formats.base import Reference
from registry.subjects.import_export.snapshot import VersionRecord
from registry.subjects.models import Registry
from registry.subjects.policy.data_contracts import Contract
from registry.subjects.remote.remote_client import SETTINGS, read_settings, read_version
from registry.subjects.versions.qualified_names import SubjectName

#: shorter than for reading a whole registry, because a lease is renewed between two calls
LIMITS: Final = HttpLimits(connect_seconds=5.0, read_seconds=15.0, total_seconds=30.0, max_bytes=16 * 1024 * 1024)
MEDIA: Final = "application/vnd.schemaregistry.v1+json"
MAX_REFUSAL: Final = 500
LATEST: Final = "latest"
#: setting → property of a PUT; the level has another name than in the response of a GET
PUT_PROPERTIES: Final[Mapping[str, str]] = {
    setting: "compatibility" if name == "compatibilityLevel" else name for name, setting in SETTINGS.items()
}


@dataclass(frozen=True)
class SentSchema:
    """A schema to send; its text is stored unchanged."""

    schema_type: str
    text: str
    references: tuple[Reference, ...] = ()
    metadata: Contract | None = field(default=None, repr=False)
    rule_set: Contract | None = field(default=None, repr=False)

    def body(self, **more: Any) -> bytes:
        """Return the request's body without defaults, because the earliest servers reject unknown properties."""
        properties: dict[str, Any] = {"schema": self.text}
        if self.schema_type != DEFAULT_FORMAT:
            properties["schemaType"] = self.schema_type
        if self.references:
            properties["references"] = [
                {"name": item.name, "subject": item.subject, "version": item.version} for item in self.references
            ]
        contracts = {"metadata": self.metadata, "ruleSet": self.rule_set}
        properties |= {name: contract for name, contract in contracts.items() if contract is not None}
        return json.dumps({**properties, **more}).encode()


class RemoteWriter:
    """A registry at a URL, for one worker at a time."""

    def __init__(
        self, connection: Connection, *, policy: EgressPolicy | None = None, limits: HttpLimits = LIMITS
    ) -> None:
        self.client = OutgoingClient(connection, policy=policy, limits=limits)

    def __enter__(self) -> RemoteWriter:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.client.close()

    def find(self, subject: SubjectName, schema: SentSchema) -> int | None:
        """Return the subject's live version with this schema, None if none has it. Raises RemoteUnavailable."""
        value = self._value("POST", _path("subjects", subject), body=schema.body())
        return None if value is None else _number(value, "version", self._where("a look-up"))

    def register(
        self, subject: SubjectName, schema: SentSchema, *, schema_id: int | None = None, version: int = 0
    ) -> int:
        """Register the schema, with a required id or number if given, and return its id. Raises RemoteUnavailable."""
        more: dict[str, Any] = {} if schema_id is None else {"id": schema_id}
        if version:
            more["version"] = version
        path = f"{_path('subjects', subject)}/versions"
        value = self._value("POST", path, body=schema.body(**more))
        if value is None:
            raise RemoteUnavailable(f"{self._where('a registration')} is that there is no such address.", status=404)
        return _number(value, "id", self._where("a registration"))

    def version(self, subject: SubjectName, number: int | str) -> VersionRecord | None:
        """Return a live version as stored there, None if it doesn't exist. Raises RemoteUnavailable."""
        value = self._value("GET", f"{_path('subjects', subject)}/versions/{number}")
        if value is None:
            return None
        try:
            return read_version(value)
        except SchemadeskError as error:
            raise RemoteUnavailable(f"{self._where('a version')} can't be used: {error.message}") from error

    def own_config(self, subject: SubjectName) -> dict[str, Any]:
        """Return the subject's own settings, by our names; empty if there are none."""
        value = self._value("GET", _path("config", subject))
        if value is None:
            return {}
        try:
            return read_settings(value)[0]
        except SchemadeskError as error:
            raise RemoteUnavailable(f"{self._where('a config')} can't be used: {error.message}") from error

    def put_config(self, subject: SubjectName, settings: Mapping[str, Any]) -> None:
        """Write the subject's own settings, by our names. Raises RemoteUnavailable, KeyError."""
        body = json.dumps({PUT_PROPERTIES[name]: value for name, value in settings.items()}).encode()
        self._value("PUT", _path("config", subject), body=body)

    def _value(self, method: str, path: str, *, body: bytes | None = None) -> Any:
        """Return the response's JSON, None for 404; the error for any other status includes the server's message."""
        if method != "GET":
            self.client.close()  # a kept-alive connection that the server closes would leave a write in doubt
        headers = {"Accept": f"{MEDIA}, application/json; q=0.9", **({"Content-Type": MEDIA} if body else {})}
        response = self.client.call(method, path, body=body, headers=headers)
        if response.status == 404:
            return None
        if response.status != 200:
            message = _error_message(response)
            raise RemoteUnavailable(
                f"{self.client.connection.netloc} rejects {method} {path} with status {response.status}"
                + (f": {message}" if message else "; it gives no details."),
                status=response.status,
            )
        return response.json(f"{self.client.connection.netloc}: the answer to {path}")

    def _where(self, what: str) -> str:
        return f"{self.client.connection.netloc}: the answer to {what}"


def settings_for_remote(settings: Mapping[str, Any]) -> tuple[dict[str, Any], Sequence[str]]:
    """Return the settings that the API supports, and the names of the others, which aren't sent."""
    sent = {name: value for name, value in settings.items() if name in PUT_PROPERTIES}
    return sent, sorted(settings.keys() - sent.keys())


def _path(call: str, subject: SubjectName) -> str:
    return f"/{call}/{quote(subject.qualified, safe='')}"


def _number(value: Any, name: str, where: str) -> int:
    number = value.get(name) if isinstance(value, dict) else None
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= 2**31 - 1:
        raise RemoteUnavailable(f"{where} has no usable {name}: {str(number)[:40]!r}.")
    return number


def _error_message(response: ServerResponse) -> str:
    """Return the server's error message, shortened and printable."""
    try:
        value = json.loads(response.body)
    except (ValueError, RecursionError):
        value = None
    text = value.get("message") if isinstance(value, dict) else None
    message = text if isinstance(text, str) else response.body[:MAX_REFUSAL].decode("utf-8", "replace")
    return "".join(char if char.isprintable() else " " for char in message[:MAX_REFUSAL]).strip()


VERDICT_LIMITS: Final = HttpLimits(connect_seconds=3.0, read_seconds=5.0, total_seconds=8.0, max_bytes=1024 * 1024)
MAX_MESSAGES: Final = 20
MAX_MESSAGE: Final = 1000


@dataclass(frozen=True, slots=True)
class RemoteVerdict:
    """The answer of the server `where`; `is_compatible` is None if there was none, and `reason` says why."""

    where: str
    is_compatible: bool | None
    messages: tuple[str, ...] = ()
    reason: str = ""

    def to_dict(self, ours: bool) -> dict[str, Any]:
        """Return the answer as JSON values, with whether it agrees with ours."""
        return {
            "where": self.where,
            "is_compatible": self.is_compatible,
            "agrees": None if self.is_compatible is None else self.is_compatible == ours,
            "messages": list(self.messages),
            "reason": self.reason,
        }


def ask_remote(
    registry: Registry,
    subject: SubjectName,
    *,
    text: str,
    schema_type: str,
    by: Actor,
    references: Sequence[Reference] = (),
    policy: EgressPolicy | None = None,
) -> RemoteVerdict | None:
    """Ask the server behind a mirror for its verdict on a text, under its own level; None for a local registry.

    An unreachable server is an answer too. Raises NotAllowed.
    """
    require(by, "schema.read", registry=registry.name, subject=subject.qualified)
    if registry.kind != Registry.REMOTE:
        return None
    where = ""
    try:
        connection = parse_connection(registry.url, user=registry.user, secret=registry.secret)
        where = connection.netloc
        with OutgoingClient(connection, policy=policy, limits=VERDICT_LIMITS) as client:
            value = _verdict(client, subject, SentSchema(schema_type, text, tuple(references)).body())
    except SchemadeskError as error:
        return RemoteVerdict(where or registry.name, None, reason=error.message)
    listed = value.get("messages") if isinstance(value, dict) else None
    messages = [str(item)[:MAX_MESSAGE] for item in listed] if isinstance(listed, list) else []
    return RemoteVerdict(where, value["is_compatible"], tuple(messages[:MAX_MESSAGES]))


def _verdict(client: OutgoingClient, subject: SubjectName, body: bytes) -> dict[str, Any]:
    """Return the response's JSON. The earliest servers support only the check against the newest version."""
    headers = {"Accept": f"{MEDIA}, application/json; q=0.9", "Content-Type": MEDIA}
    path = f"/compatibility/subjects/{quote(subject.qualified, safe='')}/versions"
    response = client.call("POST", path, query={"verbose": "true"}, body=body, headers=headers)
    if response.status in (404, 405):
        client.close()  # a POST isn't repeated on a connection that may be closed
        response = client.call("POST", f"{path}/latest", query={"verbose": "true"}, body=body, headers=headers)
    where = client.connection.netloc
    if response.status != 200:
        raise RemoteUnavailable(
            f"{where} answers with status {response.status}{_verdict_message(response.body)}", status=response.status
        )
    value = response.json(f"{where}: the answer")
    if not isinstance(value, dict) or not isinstance(value.get("is_compatible"), bool):
        raise RemoteUnavailable(f"{where} gives no verdict: its answer has no is_compatible.")
    return value


def _verdict_message(body: bytes) -> str:
    try:
        message = json.loads(body)["message"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return "."
    return f": {str(message)[:MAX_MESSAGE]}"
