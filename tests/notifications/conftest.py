"""What the tests of notifications share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import transaction

from registry.access.roles import Actor
from registry.notifications.services import notify
from registry.notifications.webhooks import create_webhook
from tests.notifications.endpoint import Endpoint, endpoint


@pytest.fixture
def server(settings: Any) -> Iterator[Endpoint]:
    """A server that the egress policy lets us reach, its port alone."""
    with endpoint() as running:
        settings.EGRESS_ALLOW = (f"127.0.0.1:{running.port}",)
        yield running


@pytest.fixture
def hook(person: Callable[[str], Actor], server: Endpoint) -> str:
    """A webhook of the steward's to that server, for everything."""
    return create_webhook(name="ci", url=server.url, by=person("steward")).webhook


def tell(**more: Any) -> int:
    """Tell of a registered version, as a service does in its transaction."""
    happening = {
        "event": "version.registered",
        "registry": "dev",
        "subject": "orders-value",
        "text": "Version 2 of orders-value was registered in dev.",
        "url": "/ui/registries/dev/subjects/orders-value/",
    }
    with transaction.atomic():
        return notify(**{**happening, **more})
