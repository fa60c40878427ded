"""Role × action through every address and method of the product, from Django's own resolver.

`rights.yaml` says who is not refused; it was reviewed by hand and is what the code is held against.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from registry.access.roles import ACTION_WORDS, ACTIONS
from tests.rights.calls import BODY, REFUSED, WHO, Caller, address, in_words, row_of
from tests.rights.routes import METHODS, Route, all_routes

pytestmark = [pytest.mark.requirement("CARD-4"), pytest.mark.slow]
DATA: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "rights.yaml").read_text())
ROWS: dict[str, dict[str, str]] = DATA["rows"]
#: what isn't called: it answers by what other tests of this file or the network did before
LIMITED = "/ui/accounts/"
LATE = (302, 400, 404, 405, 409, 422)
#: of the addresses that differ by a prefix or a last slash alone, these are asked whether they refuse
FEW = ("anonymous", "stranger")


def named(row: str, method: str) -> tuple[list[str], bool]:
    """Who isn't refused, and whether the refusal may come late."""
    words = ROWS[row][method].split()
    return DATA["who"][words[0]], "late" in words[1:]


def body_of(row: str, method: str) -> dict[str, Any]:
    """What the call sends."""
    body: dict[str, Any] = DATA["bodies"].get(f"{method} {row}", BODY)
    return body


def routes(*, canonical: bool) -> list[Route]:
    """The addresses that are their own row, each row once; or all."""
    if not canonical:
        return all_routes()
    own = (route for route in reversed(all_routes()) if (route.template.rstrip("/") or "/") == row_of(route))
    return sorted({row_of(route): route for route in own}.values())


def test_every_address_is_in_the_data_and_nothing_else_does() -> None:
    rows = {row_of(route) for route in all_routes()}
    assert rows - set(ROWS) == set(), "say in tests/rights/rights.yaml who may call these"
    assert set(ROWS) - rows == set(), "these are no addresses any more"


def test_every_class_of_views_has_its_methods_in_the_data() -> None:
    missing = [
        f"{method} {route.template}"
        for route in all_routes()
        for method in route.methods
        if route.methods != METHODS and not route.template.startswith("/ui/") and method not in ROWS[row_of(route)]
    ]
    assert missing == []


def test_every_action_has_roles_and_words() -> None:
    assert set(ACTIONS) == set(ACTION_WORDS)
    assert all(ACTIONS.values())


def place(present: dict[str, str], row: str) -> dict[str, str]:
    """What is there, with the decision that the address knows."""
    return {**present, "decision": "acknowledge" if "findings" in row else "approve"}


def wrong(caller: Caller, method: str, path: str, row: str) -> str:
    """What is wrong with the answer to one of the cast; empty where it is as the data has it."""
    status, _, changes = caller.call(method, path, body_of(row, method))
    allowed, late = named(row, method)
    if caller.name in allowed:
        return f"{status} to {caller.name}: {method} {path}" if status in REFUSED else ""
    refused = status in REFUSED or (late and status in LATE)
    return "" if refused and not changes else f"{status} to {caller.name} ({changes} changes): {method} {path}"


@pytest.mark.parametrize("area", ["/ui", "/api/v1", "/v1/projects", "/spring", ""])
def test_whoever_is_not_named_is_refused(cast: dict[str, Caller], present: dict[str, str], area: str) -> None:
    others = tuple(prefix for prefix in ("/ui", "/api/v1", "/v1/projects", "/spring") if prefix != area)
    complaints = []
    for route in routes(canonical=True):
        row = row_of(route)
        inside = row.startswith(area) if area else not row.startswith(others)
        if not inside or row.startswith(LIMITED):
            continue
        for method in ROWS[row]:
            path = address(route, place(present, row))
            complaints += filter(None, (wrong(cast[name], method, path, row) for name in WHO))
    assert complaints == []


def test_other_ways_to_a_row_refuse_as_well(cast: dict[str, Caller], present: dict[str, str]) -> None:
    complaints = []
    for route in routes(canonical=False):
        row = row_of(route)
        if route.template == row or row.startswith(LIMITED):
            continue
        for method in ROWS[row]:
            if method in route.methods:
                path = address(route, place(present, row))
                complaints += filter(None, (wrong(cast[name], method, path, row) for name in FEW))
    assert complaints == []


def test_what_is_not_in_the_data_is_no_method(cast: dict[str, Caller], present: dict[str, str]) -> None:
    complaints = []
    for route in routes(canonical=True):
        row = row_of(route)
        if row.startswith(LIMITED) or route.methods != METHODS or row == "/":
            continue
        for method in sorted(set(METHODS) - set(ROWS[row])):
            status, _, changes = cast["admin"].call(method, address(route, place(present, row)), {})
            if status not in (403, 404, 405) or changes:
                complaints.append(f"{status}: {method} {route.template}")
    assert complaints == []


def test_a_stranger_cannot_tell_a_secret_from_an_absence(cast: dict[str, Caller], present: dict[str, str]) -> None:
    telling = []
    for route in routes(canonical=True):
        row = row_of(route)
        varying = [name for name in route.names if name not in ("decision", "schema_format", "project", "location")]
        if not varying or row.startswith(LIMITED):
            continue
        for method in ROWS[row]:
            values, body = place(present, row), body_of(row, method)
            there = cast["stranger"].call(method, address(route, values), body)
            absent = cast["stranger"].call(method, address(route, values, absent=True), body)
            if (there[0], in_words(there[1], values)) != (absent[0], in_words(absent[1], values)):
                telling.append(f"{method} {row}")
    known = set(DATA["tells_absence"])
    assert set(telling) - known == set(), "these tell a stranger what is there"
    assert known - set(telling) == set(), "these don't tell any more: take them off the list"
