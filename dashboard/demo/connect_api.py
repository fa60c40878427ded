"""Connectors of a Kafka Connect worker, over its REST API."""

from __future__ import annotations

import base64
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from registry.errors import Unavailable

PATIENCE = 30.0  # seconds for an answer: a worker that rebalances takes its time
LARGEST = 16 * 1024 * 1024
PACE = 0.2
WITHOUT_PROXY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class ConnectRefused(Unavailable):
    """Kafka Connect can't be reached (`status` 0), or refused what it was asked for; the message has its own words."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Status:
    """A connector's state and those of its tasks. A connector stays RUNNING while its task is FAILED: `failure` is
    the first failed task's reason, empty where none failed."""

    connector: str
    tasks: tuple[str, ...]
    failure: str = ""

    @property
    def running(self) -> bool:
        """Whether the connector and all its tasks run, and there is one."""
        return self.connector == "RUNNING" and bool(self.tasks) and set(self.tasks) == {"RUNNING"}


class Connect:
    """A worker's REST API at `url`, which may carry a user and a password. Methods raise ConnectRefused."""

    def __init__(self, url: str) -> None:
        found = urlsplit(url)
        self._base = f"{found.scheme}://{found.hostname}:{found.port}"
        self._headers = {"Content-Type": "application/json"}
        if found.username:
            login = f"{unquote(found.username)}:{unquote(found.password or '')}"
            self._headers["Authorization"] = "Basic " + base64.b64encode(login.encode()).decode()

    def names(self) -> list[str]:
        """The names of all connectors."""
        return sorted(self._ask("GET", "/connectors"))

    def put(self, name: str, configuration: Mapping[str, str]) -> None:
        """Makes the connector, or gives the one that is there this configuration."""
        self._ask("PUT", f"/connectors/{quote(name, safe='')}/config", configuration)

    def delete(self, name: str) -> None:
        """Removes the connector if it is there. Its slot in PostgreSQL stays."""
        try:
            self._ask("DELETE", f"/connectors/{quote(name, safe='')}")
        except ConnectRefused as error:
            if error.status != 404:
                raise

    def restart_failed(self, name: str, *, seconds: float = 10.0) -> None:
        """Starts what failed of the connector again; returns when it was, or failed again within so many seconds."""
        self._ask("POST", f"/connectors/{quote(name, safe='')}/restart?includeTasks=true&onlyFailed=true")
        # The worker does it a little later, and calls the task FAILED until then.
        deadline = time.monotonic() + seconds
        while self.status(name).failure and time.monotonic() < deadline:
            time.sleep(PACE / 4)

    def status(self, name: str) -> Status:
        """How it is with the connector now; `UNASSIGNED` where the worker hasn't taken it up yet."""
        try:
            found = self._ask("GET", f"/connectors/{quote(name, safe='')}/status")
        except ConnectRefused as error:
            if error.status == 404:
                return Status("UNASSIGNED", ())
            raise
        failed = [task.get("trace", "") for task in found["tasks"] if task["state"] == "FAILED"]
        failure = failed[0] if failed else found["connector"].get("trace", "")
        return Status(found["connector"]["state"], tuple(task["state"] for task in found["tasks"]), failure)

    def wait_until(self, name: str, wanted: Callable[[Status], bool], *, seconds: float = 60.0) -> Status:
        """The first status that is as wanted. Raises ConnectRefused with the last one after so many seconds."""
        deadline = time.monotonic() + seconds
        while not wanted(status := self.status(name)):
            if time.monotonic() > deadline:
                raise ConnectRefused(f"The connector {name} is {status} after {seconds:.0f} s.")
            time.sleep(PACE)
        return status

    def wait_until_running(self, name: str, *, seconds: float = 60.0) -> None:
        """Returns when the connector and its task run. Raises ConnectRefused with the task's reason where it failed."""
        status = self.wait_until(name, lambda found: found.running or bool(found.failure), seconds=seconds)
        if status.failure:
            raise ConnectRefused(f"The connector {name} failed: {status.failure}")

    def _ask(self, method: str, path: str, content: Mapping[str, str] | None = None) -> Any:
        data = json.dumps(content).encode() if content is not None else None
        request = urllib.request.Request(self._base + path, data, self._headers, method=method)  # noqa: S310
        try:
            with WITHOUT_PROXY.open(request, timeout=PATIENCE) as answer:
                body = answer.read(LARGEST)
        except urllib.error.HTTPError as error:
            with error:
                said = error.read(LARGEST).decode("utf-8", "replace")
            message = f"Kafka Connect answered {method} {path} with {error.code}: {said[:2000]}"
            raise ConnectRefused(message, error.code) from error
        except OSError as error:
            raise ConnectRefused(f"Kafka Connect at {self._base} can't be reached: {error}") from error
        return json.loads(body) if body else None
