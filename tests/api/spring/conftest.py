"""Who registers in these tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client


@pytest.fixture
def steward(api: Callable[[str], Client]) -> Client:
    """A client with a steward's token."""
    return api("steward")
