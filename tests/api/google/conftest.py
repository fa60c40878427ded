"""The service's own Python client, unmodified, over plain HTTP to a server on loopback."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import requests
from google.auth.credentials import AnonymousCredentials, Credentials
from google.cloud import managedkafka_schemaregistry_v1 as google
from google.cloud.managedkafka_schemaregistry_v1.services.managed_schema_registry.transports.rest import (
    ManagedSchemaRegistryRestTransport,
)

PLACE = "projects/local/locations/local"
DEV = f"{PLACE}/schemaRegistries/dev"


@dataclass(frozen=True)
class Google:
    """A client with the base address of the server that it calls."""

    calls: google.ManagedSchemaRegistryClient
    url: str
    session: requests.Session

    def register(self, subject: str, schema: Any, *, registry: str = DEV, **fields: Any) -> int:
        """The schema id of a new version."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        request = {"parent": f"{registry}/{subject}", "schema": text, **fields}
        return self.calls.create_version(request=request).id

    def http(self, method: str, path: str, **kwargs: Any) -> requests.Response:
        """A call without the client, for what its own checks don't let it send."""
        return self.session.request(method, f"{self.url}/v1/{path}", timeout=20, **kwargs)


def body(answer: Any) -> Any:
    """The content of an HttpBody."""
    assert answer.content_type == "application/json"
    return json.loads(answer.data)


def client_of(url: str, credentials: Credentials, session: requests.Session) -> Google:
    transport = ManagedSchemaRegistryRestTransport(
        host=url.removeprefix("http://"), url_scheme="http", credentials=credentials
    )
    return Google(google.ManagedSchemaRegistryClient(transport=transport), url, session)


@pytest.fixture
def client(live_server: Any, registries: None, settings: Any) -> Google:
    """Anonymous, with every right: what `up` grants on loopback to programs without a token, in the widest form."""
    settings.ANONYMOUS_ROLE = "admin"
    return client_of(live_server.url, AnonymousCredentials(), requests.Session())


@pytest.fixture
def client_with_token(live_server: Any, token: Callable[[str], str]) -> Callable[[str], Google]:
    """A client with the token of one of the cast."""
    from google.oauth2.credentials import Credentials as Token

    def make(name: str) -> Google:
        text = token(name)
        session = requests.Session()
        session.headers["Authorization"] = f"Bearer {text}"
        return client_of(live_server.url, Token(token=text), session)

    return make
