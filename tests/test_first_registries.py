"""What thousands of tests begin with is what the first start makes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, transaction

from dashboard.management.commands import prepare
from dashboard.management.commands.prepare import make_registries
from registry.access.models import User
from registry.access.roles import Actor
from registry.access.services import ensure_person
from registry.promotions.models import Environment
from tests.first_registries import ensure_at_once, make_at_once

#: what differs from one time to the next
BOOKKEEPING = {"id", "created_at", "updated_at", "date_joined", "password", "at", "why", "txid", "xid"}


def made_by(make: Callable[..., object], by: Actor) -> dict[str, Counter[str]]:
    """Table → its rows as texts, after that and before it is undone; of numbers only which rows belong together."""
    with transaction.atomic():
        make(by=by)
        found = {table: rows_of(table) for table in connection.introspection.table_names()}
        transaction.set_rollback(True)
    return found


def rows_of(table: str) -> Counter[str]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT to_jsonb(t)::text FROM {table} t")
        return Counter(str(told(json.loads(text))) for (text,) in cursor.fetchall())


def told(value: Any) -> Any:
    """Without bookkeeping, times and numbers of rows."""
    if isinstance(value, dict):
        kept = ((name, each) for name, each in value.items() if name not in BOOKKEEPING)
        return {name: None if name.endswith(("_id", "_at", "row_pk")) else told(each) for name, each in sorted(kept)}
    return value


@pytest.mark.django_db
def test_it_is_what_the_first_start_makes(system: Actor) -> None:
    ours, real = made_by(make_at_once, system), made_by(make_registries, system)
    assert {table: rows for table, rows in ours.items() if rows != real[table]} == {}
    assert sum(ours["subjects_registry"].values()) == 3


@pytest.mark.django_db
def test_somebody_of_the_cast_is_who_the_first_start_makes(system: Actor) -> None:
    ours = made_by(lambda by: ensure_at_once(username="steward", role="steward", by=by), system)
    real = made_by(lambda by: ensure_person(username="steward", role="steward", by=by), system)
    assert {table: rows for table, rows in ours.items() if rows != real[table]} == {}
    assert sum(ours["access_rolegrant"].values()) == 1


@pytest.mark.django_db
def test_a_first_start_that_is_killed_leaves_prod_to_the_next(system: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(**_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(prepare, "set_mode", killed)
        with pytest.raises(KeyboardInterrupt):
            make_registries(by=system)
    assert make_registries(by=system) == ["prod"]
    assert Environment.objects.get(registry__name="prod").is_closed


@pytest.mark.django_db
def test_passwords_are_shown_before_the_accounts_are_there_for_good(registries: None, settings: Any) -> None:
    class Killed(StringIO):
        def flush(self) -> None:
            raise KeyboardInterrupt

    settings.UNDER_UP = True
    out = Killed()
    with pytest.raises(KeyboardInterrupt):
        call_command("prepare", stdout=out)
    assert "admin" in out.getvalue()
    assert not User.objects.filter(username__in=prepare.PEOPLE).exists()
