"""The cast of a promotion."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from registry.access.roles import Actor
from tests.promotions.factories import PEOPLE, Cast


@pytest.fixture
def cast(person: Callable[[str], Actor]) -> Cast:
    """Everybody who takes part, by name."""
    return {name: person(name) for name in PEOPLE}
