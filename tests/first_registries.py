"""The registries of the first start in a third of the statements: thousands of tests begin with them."""

from __future__ import annotations

from django.conf import settings
from django.db import transaction

from dashboard.setup import ENVIRONMENTS
from registry.access.roles import Actor
from registry.audit.services import record
from registry.promotions.models import Environment
from registry.subjects.models import Context, Registry
from registry.subjects.names import DEFAULT_CONTEXT
from registry.subjects.services import set_mode


@transaction.atomic
def make_at_once(*, by: Actor) -> None:
    """What `dashboard.setup.make_registries` makes where nothing is there; test_first_registries.py compares the two."""
    record(by=by, why="make registries")
    place = {"project": settings.DEFAULT_PROJECT, "location": settings.DEFAULT_LOCATION}
    made = Registry.objects.bulk_create(Registry(name=name, **place) for name, _ in ENVIRONMENTS)
    Context.objects.bulk_create(Context(registry=row, name=DEFAULT_CONTEXT) for row in made)
    for name, is_closed in ENVIRONMENTS:
        if is_closed:
            set_mode(registry=name, subject=None, by=by, mode="READONLY")
    record(by=by, why="make environment")
    Environment.objects.bulk_create(
        Environment(registry=row, position=position, is_closed=is_closed)
        for position, (row, (_, is_closed)) in enumerate(zip(made, ENVIRONMENTS, strict=True), start=1)
    )
