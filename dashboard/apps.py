"""The site's app, and system checks in addition to Django's, some only with `check --deploy`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from django.apps import AppConfig
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import DatabaseError, connection
from django.db.models import Count
from django.db.models.functions import Lower

#: the variable, the setting that it becomes, and how its addresses begin
ADDRESSES: Final = (
    ("REDIS_URL", "REDIS_URL", ("redis://", "rediss://", "unix://")),
    ("SCHEMADESK_URL", "SITE_URL", ("https://", "http://")),
    ("SPARK_REMOTE", "SPARK_REMOTE", ("sc://",)),
)
OWNED = """
SELECT pg_has_role(current_user, c.relowner, 'USAGE') FROM pg_class c
WHERE c.oid = to_regclass('audit_auditevent')
"""


@register(Tags.security, deploy=True)
def audit_is_out_of_reach(**_options: Any) -> list[CheckMessage]:
    """Warn if the application's role owns the audit table, and so could rewrite it."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(OWNED)
            row = cursor.fetchone()
    except DatabaseError as error:
        message = f"Who owns the audit table couldn't be asked: {type(error).__name__}."
        return [Warning(message, hint="Run this check where the database answers.", id="schemadesk.W002")]
    if row is None or not row[0]:
        return []
    return [
        Warning(
            "The application's database role owns the audit table and could change what is written there.",
            hint="Migrate as an owner role (DATABASE_OWNER_URL) and run as another (DATABASE_URL).",
            id="schemadesk.W001",
        )
    ]


@register(Tags.database)
def usernames_differ_by_more_than_case(databases: Collection[str] | None = None, **_options: Any) -> list[CheckMessage]:
    """Warn about active accounts whose names differ only in case, created before the unique index."""
    user_model = get_user_model()
    if (
        connection.alias not in (databases or ())
        or user_model._meta.db_table not in connection.introspection.table_names()
    ):
        return []
    named = user_model.objects.filter(is_active=True).annotate(name=Lower("username"))
    several = named.values("name").annotate(count=Count("pk")).filter(count__gt=1).values("name")
    names = named.filter(name__in=several).order_by("name", "username").values_list("username", flat=True)
    if not names:
        return []
    message = f"These active usernames differ only in case: {', '.join(names)}."
    hint = "Each signs in with its exact name. Deactivate those that nobody needs, under People and groups."
    return [Warning(message, hint=hint, id="schemadesk.W003")]


@register("settings", deploy=True)
def addresses_can_work(**_options: Any) -> list[CheckMessage]:
    """Warn of host names and addresses that no request or connection can use."""
    problems = [
        f"{name} begins with none of {', '.join(schemes)}."
        for name, setting, schemes in ADDRESSES
        if not (getattr(settings, setting) or schemes[0]).startswith(schemes)
    ]
    if any("/" in host for host in settings.ALLOWED_HOSTS):
        problems.append("SCHEMADESK_HOSTS has a URL, so that each request to it gets 400.")
    hint = "See docs/reference/settings.md. SCHEMADESK_HOSTS takes names alone, such as schemas.example.com."
    return [Warning(problem, hint=hint, id="schemadesk.W004") for problem in problems]


@register(Tags.urls)
def spring_has_a_path_of_its_own(**_options: Any) -> list[CheckMessage]:
    """Refuse a root path of the Spring dialect that would hide other URLs; the dialect isn't served there."""
    from registry.api.spring.views import problem_of

    problem = problem_of(settings.SPRING_PATH)
    if not problem:
        return []
    return [Error(problem, hint="Set SPRING_PATH to a path of its own, such as spring/.", id="schemadesk.E001")]


class DashboardConfig(AppConfig):
    """Loads the Celery application, so that tasks find their broker in every process, and starts the telemetry."""

    name = "dashboard"

    def ready(self) -> None:
        """Import the Celery application."""
        from dashboard import celery, telemetry  # noqa: F401

        telemetry.start()  # before Django loads the middlewares
