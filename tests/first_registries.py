"""What thousands of tests begin with, in a few statements each: the registries of the first start, and somebody of a role."""

from __future__ import annotations

import secrets

from django.conf import settings
from django.db import transaction

from dashboard.management.commands.prepare import ENVIRONMENTS
from registry.access.models import RoleGrant, User
from registry.access.roles import Actor
from registry.audit.context import record
from registry.promotions.models import Environment
from registry.subjects.models import Context, Mode, Registry
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT


def make_at_once(*, by: Actor) -> None:
    """What `dashboard.management.commands.prepare.make_registries` makes where nothing is there; test_first_registries.py compares the two."""
    place = {"project": settings.DEFAULT_PROJECT, "location": settings.DEFAULT_LOCATION}
    closed = {name for name, is_closed in ENVIRONMENTS if is_closed}
    with transaction.atomic(savepoint=False):
        record(by=by, why="make registries")
        made = Registry.objects.bulk_create(Registry(name=name, **place) for name, _ in ENVIRONMENTS)
        Context.objects.bulk_create(Context(registry=row, name=DEFAULT_CONTEXT) for row in made)
        Mode.objects.bulk_create(Mode(registry=row, mode="READONLY") for row in made if row.name in closed)
        Environment.objects.bulk_create(
            Environment(registry=row, position=position, is_closed=row.name in closed)
            for position, row in enumerate(made, start=1)
        )


def ensure_at_once(*, username: str, role: str, by: Actor) -> User:
    """The user that `ensure_person` makes, or that is there already, with the role; nobody knows a new one's password."""
    with transaction.atomic(savepoint=False):
        record(by=by, why=f"give {username} the role {role}")
        User.objects.bulk_create([User(username=username)], ignore_conflicts=True)
        user = User.objects.get(username=username)
        RoleGrant.objects.bulk_create([RoleGrant(user=user, role=role)], ignore_conflicts=True)
        if not user.password:
            user.set_password(secrets.token_urlsafe(12))
            user.save(update_fields=["password"])
    return user
