"""What the tests of the registry core share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from registry.access.roles import Actor
from registry.formats.base import Reference
from registry.subjects.models import Registry
from registry.subjects.services import RegisteredVersion, register_version
from registry.subjects.versions.qualified_names import SubjectName
from tests.subjects.races import CLIENTS, Clients, client_processes


@pytest.fixture(scope="module")
def clients(django_db_setup: None) -> Iterator[Clients]:
    """Processes, each with a connection of its own to the test database."""
    with client_processes(CLIENTS) as started:
        yield started


@pytest.fixture
def dev(registries: None) -> Registry:
    """The registry `dev`."""
    return Registry.objects.get(name="dev")


@pytest.fixture
def register(registries: None, system: Actor) -> Callable[..., RegisteredVersion]:
    """Register a schema, given as JSON or as text, under a subject of the default context of `dev`."""

    def call(subject: str, schema: object, *references: Reference, **options: Any) -> RegisteredVersion:
        text = schema if isinstance(schema, str) else json.dumps(schema)
        where = {"registry": "dev", "subject": SubjectName(options.pop("context", "."), subject)}
        return register_version(**{**where, **options}, text=text, references=references, by=system)

    return call
