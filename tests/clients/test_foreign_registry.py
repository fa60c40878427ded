"""Another's registry, not ours: franz-go's own, in memory, is copied whole and mirrored.

It answers a part of the established server's API, in its own words where that server's are not documented.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import urllib3
from django.core.management import call_command

from registry.access.roles import Actor
from registry.formats.base import Reference
from registry.subjects.policy.effective_policy import effective_config, effective_mode
from registry.subjects.remote.mirrors import SyncResult, add_remote_registry, sync_registry
from registry.subjects.selectors import get_version, list_versions
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName
from tests.clients.programs import LANGUAGES, built
from tests.toolchains import require_tools

pytestmark = [pytest.mark.clients, pytest.mark.slow, pytest.mark.requirement("GOO-1", "CARD-1")]

ADDRESS = {"type": "record", "name": "Address", "namespace": "shop", "fields": [{"name": "city", "type": "string"}]}
CUSTOMER = {
    "type": "record",
    "name": "Customer",
    "namespace": "shop",
    "fields": [{"name": "id", "type": "long"}, {"name": "home", "type": "shop.Address"}],
}
NAMED = {**CUSTOMER, "fields": [*CUSTOMER["fields"], {"name": "name", "type": ["null", "string"], "default": None}]}
TO_ADDRESS = [{"name": "shop.Address", "subject": "shop.Address", "version": 1}]
USER = {"type": "object", "properties": {"email": {"type": "string"}}}
MONEY = 'syntax = "proto3";\npackage shop;\nmessage Money { int64 cents = 1; }\n'


class Foreign:
    """The other registry, through plain HTTP."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._pool = urllib3.PoolManager()

    def call(self, method: str, path: str, body: object = None) -> Any:
        """The answer's JSON; anything but success fails the test."""
        answer = self._pool.request(method, self.url + path, json=body, retries=False, timeout=60)
        assert answer.status == 200, (method, path, answer.data)
        return answer.json()

    def register(self, subject: str, schema: object, kind: str = "AVRO", references: object = ()) -> int:
        """The id of a schema."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        body = {"schema": text, "schemaType": kind, "references": list(references)}  # type: ignore[call-overload]
        return int(self.call("POST", f"/subjects/{subject}/versions", body)["id"])


@pytest.fixture
def foreign(settings: Any) -> Iterator[Foreign]:
    """It runs, with something of everything in it."""
    require_tools(LANGUAGES["go"].client, LANGUAGES["go"].tools)
    settings.EGRESS_ALLOW = ("127.0.0.1",)
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    command = [*built("go"), "registry"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        registry = Foreign(json.loads(process.stdout.readline())["url"])
        fill(registry)
        yield registry
        process.terminate()


def fill(registry: Foreign) -> None:
    """Three formats, a reference, versions, a deleted one, a context, levels, a mode."""
    registry.register("shop.Address", ADDRESS)
    registry.register("customers-value", CUSTOMER, references=TO_ADDRESS)
    registry.register("customers-value", NAMED, references=TO_ADDRESS)
    registry.register("users-value", USER, "JSON")
    registry.register("money-value", MONEY, "PROTOBUF")
    registry.register(":.eu:users-value", USER, "JSON")
    registry.register("old-value", ADDRESS)
    registry.call("DELETE", "/subjects/customers-value/versions/1")
    registry.call("DELETE", "/subjects/old-value")
    registry.call("PUT", "/config", {"compatibility": "FORWARD"})
    registry.call("PUT", "/config/users-value", {"compatibility": "FULL_TRANSITIVE"})
    registry.call("PUT", "/mode/money-value", {"mode": "READONLY"})


def ids_of(registry: Foreign) -> dict[tuple[str, int], tuple[int, str]]:
    """Subject and version → id and text, of all that isn't deleted."""
    return {
        (item["subject"], item["version"]): (item["id"], item["schema"])
        for item in registry.call("GET", "/schemas?subjectPrefix=:*:")
    }


@pytest.mark.usefixtures("transactional_db", "registries")
def test_a_foreign_registry_is_copied_with_its_ids(foreign: Foreign) -> None:
    out = io.StringIO()
    call_command("import_registry", "--from", foreign.url, "--into", "copy", stdout=out, stderr=out)
    copy = get_registry("copy")
    for (subject, number), (schema_id, text) in ids_of(foreign).items():
        context, _, name = subject.removeprefix(":").partition(":") if subject.startswith(":") else (".", "", subject)
        info = get_version(copy, SubjectName(context, name), number)
        assert (info.schema.schema_id, info.schema.text) == (schema_id, text), subject
    customers = SubjectName(".", "customers-value")
    assert list_versions(copy, customers) == [2]
    assert list_versions(copy, customers, deleted=True) == [1, 2]
    assert get_version(copy, customers, 2).schema.references == (Reference("shop.Address", "shop.Address", 1),)
    assert get_version(copy, SubjectName(".", "old-value"), 1, deleted=True).deleted
    assert effective_config(copy, customers).level == "FORWARD"
    assert effective_config(copy, SubjectName(".", "users-value")).level == "FULL_TRANSITIVE"
    assert effective_mode(copy, SubjectName(".", "money-value")).mode == "READONLY"
    out.truncate(0)
    call_command("import_registry", "--from", foreign.url, "--into", "copy", stdout=out, stderr=out)
    assert "0 versions added, 0 changed" in out.getvalue()


@pytest.mark.usefixtures("transactional_db", "registries")
def test_a_foreign_registry_is_mirrored_as_it_moves(foreign: Foreign, system: Actor) -> None:
    number = add_remote_registry(name="theirs", url=foreign.url, by=system)
    first = sync_registry(registry_id=number)
    assert isinstance(first, SyncResult)
    assert (first.added, first.error) == (7, "")
    assert sync_registry(registry_id=number) == SyncResult(0, 0, 0, "")
    foreign.register("users-value", {**USER, "properties": {**USER["properties"], "phone": {"type": "string"}}}, "JSON")
    foreign.call("DELETE", "/subjects/money-value")
    moved = sync_registry(registry_id=number)
    assert isinstance(moved, SyncResult)
    assert (moved.added, moved.error) == (1, "")
    theirs = get_registry("theirs")
    assert list_versions(theirs, SubjectName(".", "users-value")) == [1, 2]
    assert get_version(theirs, SubjectName(".", "money-value"), 1, deleted=True).deleted
    assert effective_mode(theirs, SubjectName(".", "users-value")).mode == "READONLY_OVERRIDE"
