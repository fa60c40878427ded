"""What the tests of the registry core share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.subjects.clients import Clients, client_processes


@pytest.fixture(scope="module")
def clients(django_db_setup: None) -> Iterator[Clients]:
    """Sixteen processes, each with a connection of its own to the test database."""
    with client_processes(16) as started:
        yield started
