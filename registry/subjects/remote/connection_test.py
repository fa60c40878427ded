"""The connection test: how a remote registry answers, step by step, and which calls it supports. Writes nothing."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from registry.access.egress import Connection, EgressPolicy, current_policy, parse_connection
from registry.access.http_client import HttpLimits, OutgoingClient, ServerResponse, authorization
from registry.errors import InvalidSecret, RemoteUnavailable, SchemadeskError
from registry.formats import DEFAULT_FORMAT, FORMATS
from registry.subjects.models.policy import MODES_WITH_IDS

LIMITS: Final = HttpLimits(connect_seconds=4.0, read_seconds=6.0, total_seconds=8.0, max_bytes=16 * 1024 * 1024)
SECONDS: Final = 25.0
ADDRESS, REACHED, SIGNED_IN, SUBJECTS = "address", "reached", "signed_in", "subjects"
STEPS: Final = (ADDRESS, REACHED, SIGNED_IN, SUBJECTS)
CONTEXTS, IMPORT, REFERENCES, DELETED = "contexts", "import_mode", "references", "deleted"
#: prefix of a format's name: the server accepts schemas in it
FORMAT: Final = "format:"
#: error codes for missing resources: the server's own codes, so it supports the call
OWN_CODES: Final = range(40400, 40500)


@dataclass(frozen=True)
class Step:
    """A step of the test; `ok` is None if it wasn't reached."""

    name: str
    ok: bool | None
    said: str


@dataclass(frozen=True)
class Capability:
    """What the server supports; `known` is None if only writing there could tell."""

    name: str
    known: bool | None
    said: str


@dataclass(frozen=True)
class Probe:
    """All steps in order, and the capabilities, which are empty if a step failed."""

    url: str
    steps: tuple[Step, ...]
    capabilities: tuple[Capability, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether it can be mirrored."""
        return all(step.ok for step in self.steps)


class _Stopped(Exception):
    """A step failed; the later ones are skipped."""


def probe(url: str, *, user: str = "", secret: str = "", policy: EgressPolicy | None = None) -> Probe:
    """Try an address with the secret of that name. Anything that goes wrong is a failed step, not an error."""
    return _Test(policy or current_policy()).run(url, user, secret)


class _Test:
    """One test, within its time limit."""

    def __init__(self, policy: EgressPolicy) -> None:
        self._policy = policy
        self._until = time.monotonic() + SECONDS
        self._steps: dict[str, Step] = {}

    def run(self, url: str, user: str, secret: str) -> Probe:
        capabilities: tuple[Capability, ...] = ()
        try:
            connection = self._address(url, user, secret)
            with OutgoingClient(connection, policy=self._policy, limits=LIMITS) as client:
                names = self._reach(client)
                capabilities = self._capabilities(client, names)
        except _Stopped:
            pass
        steps = tuple(self._steps.get(name, Step(name, None, "")) for name in STEPS)
        return Probe(url, steps, capabilities)

    def _keep(self, name: str, ok: bool, sentence: str) -> None:
        self._steps[name] = Step(name, ok, sentence)
        if not ok:
            raise _Stopped

    def _address(self, url: str, user: str, secret: str) -> Connection:
        try:
            connection = parse_connection(url, user=user, secret=secret)
            addresses = self._policy.addresses(connection)
        except SchemadeskError as error:
            self._keep(ADDRESS, False, error.message)
            raise
        self._keep(ADDRESS, True, f"{connection.host} is {', '.join(str(address) for address in addresses[:4])}.")
        try:
            authorization(connection)
        except InvalidSecret as error:
            self._keep(SIGNED_IN, False, error.message)
        return connection

    def _reach(self, client: OutgoingClient) -> list[str]:
        """Return the names of live subjects, after the steps of reaching it, signing in and listing them."""
        where = client.connection.netloc
        try:
            response = self._call(client, "/subjects")
        except RemoteUnavailable as error:
            self._keep(REACHED, getattr(error, "status", None) is not None, error.message)
            self._keep(SUBJECTS, False, error.message)
            raise _Stopped from error
        except SchemadeskError as error:
            self._keep(REACHED, False, error.message)
            raise
        self._keep(REACHED, True, f"{where} responds.")
        if response.status in (401, 403):
            self._keep(
                SIGNED_IN, False, f"{where} rejects the sign-in ({response.status}). Check the user and the secret."
            )
        signed = "The sign-in was accepted." if client.connection.secret else "No sign-in needed."
        self._keep(SIGNED_IN, True, signed)
        names = _json(response)
        if response.status != 200 or not isinstance(names, list):
            self._keep(
                SUBJECTS,
                False,
                f"The answer to /subjects is not a list (status {response.status}). This may not be a schema registry.",
            )
        self._keep(SUBJECTS, True, f"It lists {len(names):,} subject{'' if len(names) == 1 else 's'}.")
        return [str(name) for name in names]

    def _call(self, client: OutgoingClient, path: str, **query: str) -> ServerResponse:
        if time.monotonic() > self._until:
            raise RemoteUnavailable("The test took too long and was stopped.")
        accept = {"Accept": "application/vnd.schemaregistry.v1+json, application/json; q=0.9"}
        return client.call("GET", path, query=query, headers=accept)

    def _capabilities(self, client: OutgoingClient, names: list[str]) -> tuple[Capability, ...]:
        asks: dict[str, Callable[[OutgoingClient], Capability]] = {
            CONTEXTS: self._contexts,
            IMPORT: self._import_mode,
            REFERENCES: self._references,
            DELETED: lambda its: self._deleted(its, len(names)),
        }
        capabilities = []
        for name, ask in asks.items():
            try:
                capabilities.append(ask(client))
            except SchemadeskError as error:
                capabilities.append(Capability(name, None, error.message))
        return (*capabilities, *self._formats(client))

    def _contexts(self, client: OutgoingClient) -> Capability:
        response = self._call(client, "/contexts")
        names = _json(response)
        if response.status == 200 and isinstance(names, list):
            return Capability(CONTEXTS, True, f"It has {len(names):,}.")
        return Capability(CONTEXTS, False, "It doesn't support GET /contexts: everything is in the default context.")

    def _import_mode(self, client: OutgoingClient) -> Capability:
        response = self._call(client, "/mode")
        value = _json(response)
        mode = value.get("mode") if isinstance(value, dict) else None
        if response.status != 200 or not isinstance(mode, str):
            return Capability(IMPORT, False, "It doesn't support GET /mode, so versions can't keep their ids there.")
        if mode in MODES_WITH_IDS:
            return Capability(IMPORT, True, f"It is in the mode {mode}.")
        sentence = (
            f"Its mode is {mode[:40]}. Whether it accepts IMPORT is known only when that mode is set. Most registries "
            "accept it while they are empty."
        )
        return Capability(IMPORT, None, sentence)

    def _references(self, client: OutgoingClient) -> Capability:
        response = self._call(client, "/subjects/schemadesk-connection-test/versions/1/referencedby")
        value = _json(response)
        code = value.get("error_code") if isinstance(value, dict) else None
        if response.status == 200 or code in OWN_CODES:
            return Capability(REFERENCES, True, "It lists the schemas that refer to a version.")
        return Capability(REFERENCES, False, "It doesn't support …/referencedby, and so no references.")

    def _deleted(self, client: OutgoingClient, live: int) -> Capability:
        every = _json(self._call(client, "/subjects", deleted="true"))
        if isinstance(every, list) and len(every) > live:
            return Capability(DELETED, True, f"{len(every) - live:,} subjects are soft-deleted there.")
        response = self._call(client, "/schemas", deleted="true", offset="0", limit="1")
        listed = _json(response)
        first = listed[0] if isinstance(listed, list) and listed else None
        if response.status == 200 and isinstance(first, dict) and "deleted" in first:
            return Capability(DELETED, True, "It lists soft-deleted versions.")
        sentence = (
            "There are no soft-deleted subjects, or it doesn't list them. Subjects that disappear there are marked "
            "as deleted here."
        )
        return Capability(DELETED, None, sentence)

    def _formats(self, client: OutgoingClient) -> tuple[Capability, ...]:
        try:
            names = _json(self._call(client, "/schemas/types"))
        except SchemadeskError:
            names = None
        types = {str(name).upper() for name in names} if isinstance(names, list) else None
        return tuple(_format(name, types) for name in FORMATS)


def _format(name: str, types: set[str] | None) -> Capability:
    key = f"{FORMAT}{name}"
    if types is None:
        first = name == DEFAULT_FORMAT
        return Capability(key, True if first else None, "" if first else "It doesn't support GET /schemas/types.")
    return Capability(key, name in types, "" if name in types else "Not among its types.")


def _json(response: ServerResponse) -> Any:
    try:
        return json.loads(response.body)
    except (ValueError, RecursionError):
        return None
