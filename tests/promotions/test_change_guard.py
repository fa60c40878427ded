"""Every door to a closed environment: each mutating address of the product, from a table that has them all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.test import Client

from registry.access.models import User
from registry.access.roles import Actor
from registry.promotions.services import open_break_glass
from tests.conftest import RawClient
from tests.promotions.closed_environment import COPY, Caller, answered, fill, registered_in
from tests.rights.calls import BODY, address, row_of
from tests.rights.conftest import cast, content, present  # noqa: F401 - fixtures
from tests.rights.routes import METHODS, Route, all_routes
from tests.rights.test_rights import body_of

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.requirement("ORA-1"),
    pytest.mark.requirement("GOO-7"),
    pytest.mark.slow,
]
HERE = Path(__file__).parent
TABLE: dict[str, Any] = yaml.safe_load((HERE / "closed_gate.yaml").read_text())
RIGHTS: dict[str, Any] = yaml.safe_load((HERE.parent / "rights" / "rights.yaml").read_text())
NAMES = {
    "registry": "prod", "subject": "orders-value", "version": "1", "context": ".", "project": "local",
    "location": "local", "resource_id": "r", "schema_format": "avro",
    "copy_id": str(COPY),
}  # fmt: skip
Call = dict[str, Any]


@pytest.fixture
def caller(api: Callable[[str], Client]) -> Callable[[str], Caller]:
    """One of the cast with both ways to call."""

    def make(name: str) -> Caller:
        program, browser = api(name), RawClient(raise_request_exception=False)
        browser.force_login(User.objects.get(username=name))
        return Caller(program, browser)

    return make


@pytest.fixture
def admin(caller: Callable[[str], Caller], settings: Any) -> Caller:
    """An admin; what names no registry means prod, and Spring's deletion is on."""
    settings.DEFAULT_REGISTRY = "prod"
    settings.SPRING_ALLOW_DELETION = True
    return caller("admin")


def dialect(row: str) -> str:
    """Whose address it is."""
    named = {"/v1/projects": "google", "/spring": "spring", "/api/v1": "product", "/ui": "page"}
    return next((name for prefix, name in named.items() if row.startswith(prefix)), "confluent")


def gated(*, every_way: bool) -> Iterator[tuple[Route, str, Call]]:
    """The gated calls with their method; each way to a row, or the row's own address alone."""
    for route in all_routes():
        row = row_of(route)
        if not every_way and route.template != row:
            continue
        for method in route.methods:
            for call in TABLE["gated"].get(f"{method} {row}", ()):
                yield route, method, call


def path_of(route: Route, call: Call) -> str:
    """The call's address with what it asks."""
    values = {**NAMES, **{name: str(value) for name, value in call.get("values", {}).items()}}
    query = f"?{call['query']}" if "query" in call else ""
    return address(route, values) + query


def mutating() -> set[str]:
    """All that may change something, as the table of rights has it and as the classes of views have it."""
    rows: dict[str, dict[str, str]] = RIGHTS["rows"]
    named = {(method, row) for row, methods in rows.items() for method in methods}
    classes = {
        (method, row_of(route))
        for route in all_routes()
        for method in route.methods
        if route.methods != METHODS and not route.template.startswith("/ui/")
    }
    return {f"{method} {row}" for method, row in named | classes if method != "GET"}


def test_every_mutating_address_is_in_the_table_once() -> None:
    listed = [*TABLE["gated"], *TABLE["releases"], *TABLE["elsewhere"]]
    assert len(listed) == len(set(listed))
    assert mutating() - set(listed) == set(), "say in closed_gate.yaml what these do to a closed environment"
    rows = {row_of(route) for route in all_routes()}
    assert [item for item in listed if item.split()[1] not in rows] == [], "these are no addresses any more"
    reached = {f"{method} {row_of(route)}" for route, method, _ in gated(every_way=False)}
    assert reached == set(TABLE["gated"])


def test_every_call_to_a_closed_environment_is_refused_and_changes_nothing(admin: Caller, system: Actor) -> None:
    fill(system)
    complaints, count = [], 0
    for route, method, call in gated(every_way=True):
        wanted = TABLE["refused"][dialect(row_of(route))]
        answer = answered(admin, method, path_of(route, call), call.get("body"))
        count += 1
        said = "Registry prod is a closed environment" in answer.text and wanted["says"] in answer.text.replace(" ", "")
        if answer.status != call.get("refused", wanted["status"]) or not said or answer.changed:
            complaints.append(f"{method} {path_of(route, call)}: {answer}")
    assert complaints == []
    assert count > 150


@pytest.mark.parametrize(
    ("mode", "also"),
    [("READONLY", "-"), ("READONLY_OVERRIDE", "is in mode READONLY_OVERRIDE: no changes are allowed")],
)
def test_a_closed_environment_says_so_in_any_mode(admin: Caller, system: Actor, mode: str, also: str) -> None:
    """Where the mode stops more than the environment does, it may be told first."""
    fill(system, mode=mode)
    complaints = []
    for route, method, call in gated(every_way=False):
        answer = answered(admin, method, path_of(route, call), call.get("body"))
        is_said = "Registry prod is a closed environment" in answer.text or (also != "-" and also in answer.text)
        if not is_said or answer.changed:
            complaints.append(f"{method} {path_of(route, call)}: {answer}")
    assert complaints == []


@pytest.mark.parametrize("mode", ["READWRITE", "READONLY"])
def test_with_break_glass_each_passes_and_says_so_in_the_audit(
    admin: Caller, person: Callable[[str], Actor], system: Actor, mode: str
) -> None:
    fill(system, mode=mode)
    number = open_break_glass(environment="prod", by=person("admin"), reason="the broker is down")
    complaints = []
    for route, method, call in gated(every_way=False):
        passes = call["passes"]
        answer = answered(admin, method, path_of(route, call), call.get("body"))
        was_done = passes < 400
        explained = all(why.startswith(f"break-glass {number}: the broker is down; ") for why in answer.reasons)
        counted = "promotions_breakglass" in answer.changed
        changes = was_done and call.get("has") != mode
        if answer.status != passes or changes != bool(answer.reasons) or not explained or was_done != counted:
            complaints.append(f"{method} {path_of(route, call)}: {answer}")
    assert complaints == []


def test_with_break_glass_an_override_still_stops_all_but_the_mode(
    admin: Caller, person: Callable[[str], Actor], system: Actor
) -> None:
    fill(system, mode="READONLY_OVERRIDE")
    open_break_glass(environment="prod", by=person("admin"), reason="the broker is down")
    complaints = []
    for route, method, call in gated(every_way=False):
        answer = answered(admin, method, path_of(route, call), call.get("body"))
        if bool(answer.reasons) != ("/mode" in route.template):
            complaints.append(f"{method} {path_of(route, call)}: {answer}")
    assert complaints == []


def test_nobody_else_passes_with_an_admins_break_glass(
    admin: Caller, caller: Callable[[str], Caller], person: Callable[[str], Actor], system: Actor
) -> None:
    fill(system)
    open_break_glass(environment="prod", by=person("admin2"), reason="the broker is down")
    steward, complaints = caller("steward"), []
    for route, method, call in gated(every_way=False):
        for other in (admin, steward):
            answer = answered(other, method, path_of(route, call), call.get("body"))
            if answer.changed:
                complaints.append(f"{method} {path_of(route, call)}: {answer}")
    assert complaints == []


def test_what_is_called_elsewhere_leaves_the_closed_environment_as_it_is(
    cast: dict[str, Any],  # noqa: F811
    present: dict[str, str],  # noqa: F811
    admin: Caller,
    system: Actor,
) -> None:
    fill(system)
    names = {**present, **{name: NAMES[name] for name in ("registry", "context")}}
    before = registered_in("prod")
    called = set()
    for route in all_routes():
        row = row_of(route)
        for method in route.methods:
            if f"{method} {row}" not in TABLE["elsewhere"]:
                continue
            path, body = address(route, names), body_of(row, method)
            if row.startswith("/ui/"):
                body = {**body, "registry": "prod"}
            answered(admin, method, path, {**BODY, **body})
            called.add(f"{method} {row}")
            assert registered_in("prod") == before, f"{method} {path}"
    assert called == set(TABLE["elsewhere"])
