"""Break-glass: who passes a closed environment, for how long, what is left of it, and who says that it was right."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.utils import timezone

from registry.access.models import RoleGrant
from registry.access.roles import Actor, TokenLimit, system_actor
from registry.access.selectors import actor_of_user
from registry.audit.models import AuditEvent
from registry.errors import InvalidInput, NotAllowed, OperationNotPermitted, ReleaseRequired, WrongState
from registry.notifications.models import InboxEntry, Notice
from registry.promotions import services
from registry.promotions.models import BreakGlass, Environment
from registry.promotions.selectors import break_glass_history, environment_info, open_break_glass_of
from registry.subjects.import_export import registry_import
from registry.subjects.models import Registry, SchemaVersion
from registry.subjects.services import register_version, set_config, set_mode
from tests.promotions.closed_environment import GONE, ORDERS, V1, V2, beside, fill
from tests.promotions.factories import Cast
from tests.subjects.test_integrity import wait_for_a_waiter

pytestmark = pytest.mark.requirement("ORA-1")
V3 = {**V2, "fields": [*V2["fields"], {"name": "more", "type": "int", "default": 0}]}
V4 = {**V3, "fields": [*V3["fields"], {"name": "most", "type": "int", "default": 0}]}


def register(schema: object, by: Actor, **more: Any) -> int:
    """Register it in prod; gives the version."""
    return register_version(registry="prod", subject=ORDERS, text=json.dumps(schema), by=by, **more).version


def opened(cast: Cast, by: str = "admin", **more: Any) -> int:
    """Open break-glass in prod."""
    return services.open_break_glass(environment="prod", by=cast[by], **{"reason": "the broker is down", **more})


def closed_since(number: int, **ago: int) -> None:
    """Let it be opened so long ago, and closed a minute later."""
    at = timezone.now() - timedelta(**ago)
    BreakGlass.objects.filter(pk=number).update(opened_at=at, ends_at=at + timedelta(minutes=1))


def test_the_refusal_names_the_environment_and_both_ways_in(cast: Cast, system: Actor) -> None:
    fill(system)
    with pytest.raises(ReleaseRequired) as refused:
        register(V3, cast["steward"])
    assert refused.value.message == (
        "Registry prod is a closed environment. Only a release can register versions there. Request a promotion at"
        " /ui/promotions/request?target=prod&subject=orders-value, or ask an admin to open break-glass at"
        " /ui/environments/prod."
    )


@pytest.mark.requirement("GOO-7")
def test_what_is_registered_already_is_given_in_a_closed_environment_too(cast: Cast, system: Actor) -> None:
    fill(system, mode="READONLY")
    count = AuditEvent.objects.count()
    assert [register(schema, cast["steward"]) for schema in (V1, V2)] == [1, 2]
    assert AuditEvent.objects.count() == count


def test_with_break_glass_its_person_changes_what_they_may_and_all_of_it_is_notified(
    cast: Cast, person: Any, system: Actor
) -> None:
    fill(system, mode="READONLY")
    person("admin2")
    number = opened(cast)
    assert register(V3, cast["admin"]) == 3
    assert register(V4, cast["admin"]) == 4
    assert BreakGlass.objects.get().uses == 2
    events = AuditEvent.objects.filter(table="subjects_schemaversion", operation="INSERT").order_by("-id")[:2]
    why = f"break-glass {number}: the broker is down; register a version of orders-value in prod"
    assert [(event.actor, event.why) for event in events] == [("admin", why)] * 2
    told = Notice.objects.filter(event__startswith="breakglass.").order_by("pk")
    assert list(told.values_list("event", "registry", "subject")) == [
        ("breakglass.opened", "prod", ""),
        ("breakglass.used", "prod", "orders-value"),
        ("breakglass.used", "prod", "orders-value"),
    ]


def test_other_admins_are_notified_but_not_the_one_who_opened_it(cast: Cast, person: Any, system: Actor) -> None:
    other = person("admin2")
    opened(cast)
    told = InboxEntry.objects.filter(notice__event="breakglass.opened").values_list("user_id", flat=True)
    assert other.user_id in told
    assert cast["admin"].user_id not in told


def test_nothing_is_used_and_nobody_is_notified_of_what_fails(cast: Cast, system: Actor) -> None:
    fill(system)
    opened(cast)
    with pytest.raises(OperationNotPermitted):
        register(V3, cast["admin"], schema_id=77)
    assert BreakGlass.objects.get().uses == 0
    assert not Notice.objects.filter(event="breakglass.used").exists()


@pytest.mark.requirement("GOO-7")
def test_read_only_is_passed_and_its_override_stops_break_glass_and_releases(cast: Cast, system: Actor) -> None:
    fill(system, mode="READONLY")
    opened(cast)
    assert register(V3, cast["admin"]) == 3
    set_config(registry="prod", subject=ORDERS, level="FULL", by=cast["admin"])
    for subject in (ORDERS, None):
        set_mode(registry="prod", subject=subject, mode="READONLY_OVERRIDE", by=cast["admin"])
    for release in (False, True):
        with pytest.raises(OperationNotPermitted, match="read-only") as refused:
            register(V4, cast["admin"], release=release)
        assert refused.value.details["mode"] == "READONLY_OVERRIDE"
        with pytest.raises(OperationNotPermitted, match="read-only"):
            set_config(registry="prod", subject=ORDERS, level="NONE", by=cast["admin"], release=release)


@pytest.mark.requirement("GOO-7")
def test_a_release_changes_versions_configs_and_modes_without_break_glass(cast: Cast, system: Actor) -> None:
    fill(system, mode="READONLY")
    approver = cast["approver"]
    assert register(V3, approver, release=True) == 3
    assert set_config(registry="prod", subject=ORDERS, level="FULL", by=approver, release=True).level == "FULL"
    assert set_mode(registry="prod", subject=ORDERS, mode="READONLY_OVERRIDE", by=approver, release=True)
    with pytest.raises(NotAllowed):
        set_config(registry="prod", subject=ORDERS, level="NONE", by=cast["steward"], release=True)


@pytest.mark.requirement("GOO-7")
def test_an_open_environment_keeps_its_mode(cast: Cast) -> None:
    set_mode(registry="dev", subject=None, mode="READONLY", by=cast["admin"])
    opened(cast)
    with pytest.raises(OperationNotPermitted, match="read-only"):
        register_version(registry="dev", subject=ORDERS, text=json.dumps(V1), by=cast["admin"])
    with pytest.raises(WrongState, match="dev is open, so it doesn't need break-glass"):
        services.open_break_glass(environment="dev", by=cast["admin"], reason="x")


def test_it_ends_with_its_time_with_its_closing_and_with_the_right(cast: Cast, person: Any, system: Actor) -> None:
    fill(system)
    number = opened(cast, minutes=1)
    assert register(V3, cast["admin"]) == 3
    with pytest.raises(WrongState, match="already"):
        opened(cast)
    BreakGlass.objects.filter(pk=number).update(ends_at=timezone.now())
    with pytest.raises(ReleaseRequired):
        register(V4, cast["admin"])
    again = opened(cast)
    services.close_break_glass(break_glass_id=again, by=person("admin2"))
    with pytest.raises(ReleaseRequired):
        register(V4, cast["admin"])
    with pytest.raises(WrongState, match="already closed"):
        services.close_break_glass(break_glass_id=again, by=cast["admin"])
    opened(cast)
    RoleGrant.objects.filter(user_id=cast["admin"].user_id).update(role="steward")
    by_now = actor_of_user(RoleGrant.objects.get(user_id=cast["admin"].user_id).user, channel="ui")
    with pytest.raises(ReleaseRequired):
        register(V4, by_now)


def test_a_token_that_may_not_manage_the_registry_does_not_use_its_persons_break_glass(
    cast: Cast, system: Actor
) -> None:
    fill(system)
    opened(cast)
    narrow = TokenLimit(scope="write", registry="prod", subject_pattern="orders-*")
    with pytest.raises(ReleaseRequired):
        register(V3, replace(cast["admin"], limit=narrow))


def test_no_program_of_ours_passes_but_the_mirror_of_a_remote_registry(registries: None, system: Actor) -> None:
    fill(system)
    for actor in (system, system_actor("mirror"), system_actor("demo")):
        with pytest.raises(ReleaseRequired):
            register(V3, actor)
    remote = Registry.objects.create(
        project="p", location="l", name="far", kind=Registry.REMOTE, url="http://far.example"
    )
    Environment.objects.create(registry=remote, position=9, is_closed=True)
    with transaction.atomic():
        registry_import.hold(remote, by=system_actor("mirror"), why="mirror it")
    with pytest.raises(ReleaseRequired), transaction.atomic():
        registry_import.hold(remote, by=system, why="a command")


@pytest.mark.parametrize("command", ["add_schema", "import_registry"])
def test_commands_are_refused_too(registries: None, system: Actor, tmp_path: Path, command: str) -> None:
    fill(system)
    there = SchemaVersion.objects.count()
    file = tmp_path / "x.avsc"
    file.write_text(json.dumps(V3))
    export = tmp_path / "dev.jsonl"
    register_version(registry="dev", subject=ORDERS, text=json.dumps(V4), by=system)
    call_command("export_registry", str(export), "--registry", "dev", stdout=io.StringIO())
    arguments = {
        "add_schema": ["orders-value", str(file), "--evolve", "--registry", "prod"],
        "import_registry": ["--from", str(export), "--into", "prod"],
    }
    with pytest.raises(CommandError, match="Registry prod is a closed environment"):
        call_command(command, *arguments[command], stdout=io.StringIO(), stderr=io.StringIO())
    assert SchemaVersion.objects.count() == there + 1


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"reason": " "}, "reason must have 1 to 2000"),
        ({"reason": "x" * 2001}, "reason must have 1 to 2000"),
        ({"reason": "a\x00b"}, "can't be stored"),
        ({"minutes": 0}, "1 to 240 minutes"),
        ({"minutes": 241}, "1 to 240 minutes"),
        ({"minutes": -5}, "1 to 240 minutes"),
    ],
)
def test_it_needs_a_reason_and_an_end(cast: Cast, values: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        opened(cast, **values)
    assert not BreakGlass.objects.exists()


def test_one_a_person_and_environment_at_a_time(cast: Cast, person: Any) -> None:
    person("admin2")
    first = opened(cast)
    assert services.open_break_glass(environment="prod", by=person("admin2"), reason="the other one's") != first
    with pytest.raises(WrongState, match="Close it to give another reason"):
        opened(cast, reason="another")
    mine = open_break_glass_of("prod", cast["admin"].user_id)
    assert mine is not None
    assert (mine.id, mine.reason) == (first, "the broker is down")
    assert open_break_glass_of("prod", cast["approver"].user_id) is None
    assert open_break_glass_of("prod", None) is None


def test_two_openings_at_once_leave_one(transactional_db: None, cast: Cast) -> None:
    with beside() as submit:
        with transaction.atomic():
            opened(cast)
            second = submit(opened, cast)
            wait_for_a_waiter()
        with pytest.raises(WrongState):
            second.result()
    assert BreakGlass.objects.count() == 1


def test_closing_it_waits_for_the_change_that_is_made_with_it(
    transactional_db: None, cast: Cast, person: Any, system: Actor
) -> None:
    fill(system)
    number, other = opened(cast), person("admin2")
    with beside() as submit:
        with transaction.atomic():
            assert register(V3, cast["admin"]) == 3
            closing = submit(services.close_break_glass, break_glass_id=number, by=other)
            wait_for_a_waiter()
        closing.result()
    with pytest.raises(ReleaseRequired):
        register(V4, cast["admin"])


def test_a_second_person_confirms_it_when_it_is_over(cast: Cast) -> None:
    number = opened(cast)
    with pytest.raises(WrongState, match="still open"):
        services.confirm_break_glass(break_glass_id=number, by=cast["approver"])
    services.close_break_glass(break_glass_id=number, by=cast["admin"])
    for who in ("reader", "steward", "stranger", "admin"):
        with pytest.raises(NotAllowed):
            services.confirm_break_glass(break_glass_id=number, by=cast[who])
    (waiting,) = environment_info("prod").break_glass
    assert (waiting.can_be_confirmed, waiting.is_red) == (True, False)
    services.confirm_break_glass(break_glass_id=number, by=cast["approver"], comment=" it was right ")
    with pytest.raises(WrongState, match="already confirmed"):
        services.confirm_break_glass(break_glass_id=number, by=cast["approver2"])
    assert environment_info("prod").break_glass == ()
    (row,) = break_glass_history("prod")
    assert (row.confirmed_by, row.comment, row.is_red) == ("approver", "it was right", False)


def test_what_nobody_confirmed_within_a_day_stays_red(cast: Cast) -> None:
    number = opened(cast)
    closed_since(number, hours=23, minutes=58)
    assert not environment_info("prod").has_red
    closed_since(number, hours=24)
    assert environment_info("prod").has_red
    with pytest.raises(WrongState, match="stays unconfirmed"):
        services.confirm_break_glass(break_glass_id=number, by=cast["approver"])
    closed_since(number, days=400)
    assert environment_info("prod").has_red


def test_where_people_sign_in_through_an_issuer_a_password_confirms_nothing(cast: Cast, settings: Any) -> None:
    number = opened(cast)
    services.close_break_glass(break_glass_id=number, by=cast["admin"])
    settings.OIDC_ISSUER, settings.OIDC_NAME = "https://id.example", "Example"
    with pytest.raises(NotAllowed, match="sign in with Example"):
        services.confirm_break_glass(break_glass_id=number, by=replace(cast["approver"], signed_in_by="password"))
    services.confirm_break_glass(break_glass_id=number, by=replace(cast["approver"], signed_in_by="oidc"))


def test_the_database_knows_that_the_second_person_is_another(cast: Cast) -> None:
    row = BreakGlass.objects.get(pk=opened(cast))
    with pytest.raises(IntegrityError, match="second_person_confirms"), transaction.atomic():
        BreakGlass.objects.filter(pk=row.pk).update(confirmed_by=row.opened_by_id, confirmed_at=timezone.now())


def test_a_soft_deleted_subject_is_not_brought_back_either(cast: Cast, system: Actor) -> None:
    fill(system)
    with pytest.raises(ReleaseRequired):
        register_version(registry="prod", subject=GONE, text='"string"', by=cast["admin"])
