"""What tests of pages share."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from registry.access.models import User
from registry.access.roles import Actor
from tests.conftest import RawClient


@pytest.fixture
def look(person: Callable[[str], Actor]) -> Callable[[str], Client]:
    """A browser of one of the cast."""

    def make(name: str) -> Client:
        person(name)
        client = RawClient()
        client.force_login(User.objects.get(username=name))
        return client

    return make
