"""Every address: what is answered before Django depends on known tables, and every change of those is noticed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard.database.statements import ANSWERS, BESIDE, FOLLOWING
from dashboard.response_cache.cache import PATHS, noting
from registry.access.models import User
from registry.access.roles import Actor
from registry.api.response_marks import ENVIRON, Replay
from registry.promotions.services import open_break_glass
from tests.conftest import RawClient
from tests.promotions.closed_environment import Caller, fill
from tests.promotions.test_change_guard import NAMES, TABLE, gated, path_of
from tests.rights.calls import BODY, address, row_of
from tests.rights.conftest import cast, content, present  # noqa: F401 - fixtures
from tests.rights.routes import all_routes
from tests.rights.test_rights import body_of

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
SCHEMA = {"schema": '"string"'}


@pytest.fixture
def caller(api: Callable[[str], Client]) -> Caller:
    """An admin with both ways to call."""
    program, browser = api("admin"), RawClient(raise_request_exception=False)
    browser.force_login(User.objects.get(username="admin"))
    return Caller(program, browser)


@pytest.fixture
def noticed() -> Iterator[Callable[[], bool]]:
    """Says whether the transaction is one that a commit would announce, and forgets it."""
    wrapper: Any = connection

    def ask() -> bool:
        changed, wrapper._changed = wrapper._changed, False
        return bool(changed)

    with connection.execute_wrapper(wrapper._noting):
        ask()
        yield ask
        ask()


def rows() -> dict[str, str]:
    """Table → a digest of its rows without what is bookkeeping, of those that answers depend on."""
    left_out = "'last_used_at' - 'last_used_from' - 'last_login'"
    parts = [
        f"SELECT '{table}', md5(coalesce(string_agg((to_jsonb(t) - {left_out})::text, '' ORDER BY"
        f" (to_jsonb(t) - {left_out})::text), '')) FROM {table} t"
        for table in sorted(ANSWERS)
    ]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts))
        return dict(cursor.fetchall())


def calls(present: dict[str, str]) -> Iterator[tuple[str, str, Any]]:  # noqa: F811
    """Method, path and body of every mutating call of the tables, those to a closed environment and the others."""
    for route, method, call in gated(every_way=True):
        yield method, path_of(route, call), call.get("body")
    names = {**present, **{name: NAMES[name] for name in ("registry", "context")}}
    for route in all_routes():
        for method in route.methods:
            row = row_of(route)
            if f"{method} {row}" in TABLE["elsewhere"] or f"{method} {row}" in TABLE["releases"]:
                yield (
                    method,
                    address(route, {**dict.fromkeys(route.names, "1"), **names}),
                    {**BODY, **body_of(row, method)},
                )


def test_every_change_of_what_answers_depend_on_is_noticed(
    cast: dict[str, Any],  # noqa: F811
    present: dict[str, str],  # noqa: F811
    caller: Caller,
    person: Callable[[str], Actor],
    system: Actor,
    noticed: Callable[[], bool],
    settings: Any,
) -> None:
    settings.DEFAULT_REGISTRY = "prod"
    settings.SPRING_ALLOW_DELETION = True
    fill(system)
    open_break_glass(environment="prod", by=person("admin"), reason="the broker is down")
    missed, changed, needless, count = [], 0, [], 0
    for method, path, body in calls(present):
        count += 1
        with transaction.atomic():
            before = rows()
            noticed()
            caller.send(method, path, body)
            was_noticed, after = noticed(), rows()
            transaction.set_rollback(True)
        if before != after:
            changed += 1
            if not was_noticed:
                missed.append(f"{method} {path}: {[table for table in after if before[table] != after[table]]}")
        elif was_noticed:
            needless.append(f"{method} {path}")
    assert missed == []
    assert count > 250
    assert changed > 100
    assert len(needless) < count / 2, needless


def asked() -> list[tuple[str, str, Any]]:
    """Calls of the addresses that are answered before Django: each of them, in each way."""
    names = {**NAMES, "schema_id": "1", "guid": "x", "version": "latest", "subject": "spare-value"}
    calls: list[tuple[str, str, Any]] = []
    for route in all_routes():
        path = address(route, names) if all(name in names for name in route.names) else ""
        calls += [
            (method, path, SCHEMA if method == "POST" else None)
            for method in route.methods
            if method in PATHS and path and PATHS[method].fullmatch(path.encode())
        ]
    plain = [call for call in calls if not call[1].startswith(("/registries", "/contexts")) and call[1][-1] != "/"]
    queries = ("deleted=true", "subject=orders-value", "defaultToGlobal=true", "latestOnly=true", "lifecycle=NONE",
               "aliases=true", "verbose=true&normalize=true", "fetchMaxId=true&findTags=*&format=resolved")  # fmt: skip
    return [*calls, *((method, f"{path}?{query}", body) for method, path, body in plain for query in queries)]


def test_what_is_answered_before_django_is_read_from_known_tables_and_nothing_else(
    caller: Caller, system: Actor, settings: Any, api: Callable[[str], Client]
) -> None:
    settings.DEFAULT_REGISTRY = "prod"
    fill(system)
    tables = {*ANSWERS, *BESIDE}
    strange, answered, cached = [], 0, 0
    for who in ("admin", "reader"):
        program = api(who)
        for method, path, body in asked():
            replay = Replay()
            text = "" if body is None else json.dumps(body)
            with transaction.atomic(), connection.execute_wrapper(connection._noting):  # type: ignore[attr-defined]
                with CaptureQueriesContext(connection) as queries:
                    noted = program_noting(program, replay)
                    response = noted.generic(method, path, text, "application/json")
                transaction.set_rollback(True)
            if response.status_code != 200 or not replay.is_allowed or not replay.is_pure:
                continue
            answered += 1
            cached += response.streaming is False
            read = {
                word
                for query in queries.captured_queries
                for word in re.findall(r"\w+", query["sql"])
                if word in tables
            }
            if read - ANSWERS - FOLLOWING.keys():
                strange.append(f"{method} {path}: {sorted(read - ANSWERS - FOLLOWING.keys())}")
    assert strange == []
    assert answered > 200
    assert cached == answered


def program_noting(program: Client, replay: Replay) -> Client:
    """The client with that in the environment of its requests, and its handler as the bridge calls it."""
    made = RawClient(**{**program.defaults, ENVIRON: replay})
    handler = made.handler

    def call(environ: dict[str, Any]) -> Any:
        responses: list[Any] = []

        def application(environ: dict[str, Any], start_response: Any) -> Any:
            responses.append(handler(environ))
            return responses[0]

        noting(application)(environ, None)  # type: ignore[arg-type]
        return responses[0]

    made.handler = call  # type: ignore[assignment, method-assign]
    return made


def test_an_answer_says_that_it_may_be_given_again_and_until_when(
    registries: None, api: Callable[[str], Client], system: Actor
) -> None:
    replay = Replay()
    client = program_noting(api("reader"), replay)
    assert client.get("/subjects").status_code == 200
    assert replay.is_allowed
    assert replay.until is not None, "the token ends"
    other = Replay()
    page = program_noting(api("reader"), other)
    assert page.get("/api/v1/config").status_code in (200, 400, 404)
    assert not other.is_allowed, "another dialect says nothing"
