"""The requests of requests.yaml, sent to any server, with recorded answers; a registration, and the schemas that tests send."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from django.test import Client

HERE = Path(__file__).parent
RECORDED = HERE / "recorded.json"
HEADERS = ("Location", "Allow", "Content-Type")


@dataclass(frozen=True)
class Answer:
    """A status, the headers that matter, and the body: parsed where it is JSON, without its timestamp."""

    status: int
    headers: dict[str, str]
    body: Any
    timestamp: str = ""

    def as_json(self) -> dict[str, Any]:
        """What stands in recorded.json."""
        return {"status": self.status, "headers": self.headers, "body": self.body}


@dataclass
class Ask:
    """One request; `what` says it in words."""

    what: str
    send: str
    body: Any = None
    text: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    keep: str = ""
    begins: str = ""
    ours: dict[str, Any] = field(default_factory=dict)

    @property
    def method(self) -> str:
        return self.send.split(" ")[0]

    def path(self, kept: dict[str, int]) -> str:
        """The path, with the ids that were kept."""
        return self.send.split(" ", 1)[1].format(**kept)

    @property
    def data(self) -> bytes | None:
        if self.body is not None:
            return json.dumps(self.body).encode()
        return self.text.encode() if self.text is not None else None

    @property
    def all_headers(self) -> dict[str, str]:
        return {**({"Content-Type": "application/json"} if self.data is not None else {}), **self.headers}


def scenarios() -> dict[str, list[Ask]]:
    """The requests by scenario, in their order."""
    read = yaml.safe_load((HERE / "requests.yaml").read_text())["scenarios"]
    return {name: [Ask(**ask) for ask in asks] for name, asks in read.items()}


Send = Callable[[str, str, bytes | None, dict[str, str]], Answer]


def ask_all(asks: list[Ask], send: Send) -> Iterator[tuple[Ask, Answer]]:
    """Sends the requests in order and gives each answer."""
    kept: dict[str, int] = {}
    for ask in asks:
        path = ask.path(kept)
        answer = send(ask.method, path, ask.data, ask.all_headers)
        if isinstance(answer.body, dict) and answer.body.get("path") == path:
            answer.body["path"] = ask.send.split(" ", 1)[1]  # ids differ from server to server
        if ask.keep:
            kept[ask.keep] = answer.body["id"]
        yield ask, answer


def answer_of(status: int, headers: dict[str, str], content: bytes, address: str) -> Answer:
    """An answer in the form that is compared; `address`, where the server's root is, is left out of it."""
    wanted = {name: headers[name].removeprefix(address) for name in HEADERS if name in headers}
    if not content or "json" not in headers.get("Content-Type", ""):
        return Answer(status, wanted, content.decode())
    body = json.loads(content)
    timestamp = body.pop("timestamp", "") if isinstance(body, dict) else ""
    if isinstance(body, dict) and "path" in body:
        body["path"] = body["path"].removeprefix(urlsplit(address).path)
    return Answer(status, wanted, body, timestamp)


def over_http(address: str) -> Send:
    """Sends to a real server."""
    place = urlsplit(address)

    def send(method: str, path: str, data: bytes | None, headers: dict[str, str]) -> Answer:
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=60)
        try:
            connection.request(method, (place.path + path) or "/", data, headers)
            response = connection.getresponse()
            return answer_of(response.status, dict(response.headers), response.read(), address)
        finally:
            connection.close()

    return send


V1 = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
V2 = {**V1, "fields": [*V1["fields"], {"name": "note", "type": ["null", "string"], "default": None}]}
BREAKING = {**V1, "fields": [*V1["fields"], {"name": "total", "type": "double"}]}


def register(client: Client, subject: str, schema: Any, *, root: str = "/spring", schema_format: str = "avro") -> Any:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    body = {"subject": subject, "format": schema_format, "definition": text}
    return client.post(f"{root}/", json.dumps(body), content_type="application/json")
