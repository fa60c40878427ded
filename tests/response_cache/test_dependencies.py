"""What an answer says it depends on is all that it depends on: any history, and no kept answer differs from a fresh one."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client

from dashboard.response_cache.cache import groups_of
from dashboard.response_cache.epoch import Groups, groups_in
from registry.api.response_marks import ENVIRON, Replay
from tests.amounts import how_many

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("GOO-2")]

NAMES = ("a", "b", "c")
SUBJECTS = ("a", "b", ":.x:a", ":.x:b", ":.y:a")
HISTORIES = how_many("histories of registrations")
Call = tuple[str, str, Any]


def schema(number: int) -> dict[str, Any]:
    record = {"type": "record", "name": "R", "fields": [{"name": f"f{number}", "type": "long", "default": 0}]}
    return {"schema": json.dumps(record)}


def referring(subject: str) -> dict[str, Any]:
    record = {"type": "record", "name": "Q", "fields": [{"name": "r", "type": "R"}]}
    return {"schema": json.dumps(record), "references": [{"name": "R", "subject": subject, "version": -1}]}


def reads() -> Iterator[Call]:
    for path in ("/subjects", "/schemas", "/contexts", "/config", "/mode", "/subjects?subjectPrefix=:.x:"):
        yield "GET", path, None
    for number in range(1, 4):
        for more in ("", "/schema", "/subjects", "/versions", "?fetchMaxId=true", "?subject=a", "?subject=:.x:b"):
            yield "GET", f"/schemas/ids/{number}{more}", None
        yield "GET", f"/contexts/.x/schemas/ids/{number}", None
    for subject in SUBJECTS:
        for more in ("", "/latest", "/1", "/latest/schema", "/1/referencedby"):
            yield "GET", f"/subjects/{subject}/versions{more}", None
        yield "GET", f"/config/{subject}?defaultToGlobal=true", None
        yield "GET", f"/mode/{subject}?defaultToGlobal=true", None
        for number in range(3):
            yield "POST", f"/subjects/{subject}", schema(number)
            yield "POST", f"/subjects/{subject}/versions", schema(number)
        yield "POST", f"/compatibility/subjects/{subject}/versions/latest", schema(9)
        yield "POST", f"/compatibility/subjects/{subject}/versions", referring("b")
        yield "POST", f"/subjects/{subject}", referring("a")


@dataclass
class Kept:
    """An answer as it was given, and the groups that it is in."""

    content: tuple[int, bytes]
    groups: Groups


class Histories:
    """A registry that is written to, and what a cache keeps of it."""

    def __init__(self, client: Client, chance: random.Random) -> None:
        self.client = client
        self.chance = chance
        self.kept: dict[int, Kept] = {}
        self.hits = 0

    def send(self, method: str, path: str, body: Any, **more: Any) -> Any:
        content = None if body is None else json.dumps(body)
        return self.client.generic(method, path, content or "", content_type="application/json", **more)

    def write(self) -> None:
        subject, number = self.chance.choice(SUBJECTS), self.chance.randrange(4)
        writes: list[Call] = [
            *[("POST", f"/subjects/{subject}/versions", schema(number))] * 8,
            ("POST", f"/subjects/{subject}/versions", referring(self.chance.choice(NAMES))),
            ("DELETE", f"/subjects/{subject}", None),
            ("DELETE", f"/subjects/{subject}/versions/latest", None),
            ("PUT", f"/config/{subject}", {"alias": self.chance.choice(NAMES)}),
            ("DELETE", f"/config/{subject}", None),
            ("PUT", f"/mode/{subject}", {"mode": self.chance.choice(("READONLY", "READWRITE"))}),
        ]
        touched = set(self.touched(self.chance.choice(writes)))
        self.kept = {key: kept for key, kept in self.kept.items() if not touched & set(kept.groups)}

    def touched(self, call: Call) -> Groups:
        """The groups that the triggers tell of a write."""
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('schemadesk.changed', '', true)")
            response = self.send(*call)
            with connection.cursor() as cursor:
                cursor.execute("SELECT current_setting('schemadesk.changed', true)")
                told = cursor.fetchone()[0]
        return groups_in(told) if response.status_code < 300 and told else ()

    def read(self, number: int, call: Call) -> None:
        replay, before = Replay(), count_versions()
        response = self.send(*call, **{ENVIRON: replay})
        if call[1].endswith("/versions") and call[0] == "POST" and count_versions() != before:
            raise VersionAdded
        content = response.status_code, response.content
        kept = self.kept.get(number)
        if kept is not None:
            self.hits += 1
            assert kept.content == content, call
        elif replay.is_allowed and response.status_code == 200:
            self.kept[number] = Kept(content, groups_of(replay))


class VersionAdded(Exception):
    """A read was none: it is taken back."""


def count_versions() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM subjects_schemaversion")
        return int(cursor.fetchone()[0])


@pytest.mark.slow
def test_no_kept_answer_differs_from_a_fresh_one(registries: None, api: Callable[[str], Client]) -> None:
    client, calls = api("admin"), list(enumerate(reads()))
    hits = 0
    for seed in range(HISTORIES):
        history = Histories(client, random.Random(seed))
        with transaction.atomic():
            history.send("PUT", "/config", {"compatibility": "NONE"})
            chosen = history.chance.sample(calls, 25)
            for _ in range(15):
                history.write()
                for number, call in chosen:
                    try:
                        with transaction.atomic():
                            history.read(number, call)
                    except VersionAdded:
                        continue
            transaction.set_rollback(True)
        hits += history.hits
    assert hits > 20 * HISTORIES


def register(subject: str, body: Any) -> Call:
    return "POST", f"/subjects/{subject}/versions", body


#: what is registered before, what is read, what is registered then, and whether the answer changes
CASES: dict[str, tuple[list[Call], Call, Call, bool]] = {
    "newest version": ([register("a", schema(0))], ("GET", "/subjects/a/versions/latest", None), register("a", schema(1)), True),
    "list of versions": ([register("a", schema(0))], ("GET", "/subjects/a/versions", None), register("a", schema(1)), True),
    "another subject": ([register("a", schema(0))], ("GET", "/subjects/a/versions/latest", None), register("b", schema(1)), False),
    "look-up beside another": ([register("a", schema(0))], ("POST", "/subjects/a", schema(0)), register("b", schema(1)), False),
    "repeated beside another": ([register("a", schema(0))], register("a", schema(0)), register("b", schema(1)), False),
    "check beside another": (
        [register("a", schema(0))], ("POST", "/compatibility/subjects/a/versions/latest", schema(9)),
        register("b", schema(1)), False,
    ),
    "check of a subject that isn't there": (
        [], ("POST", "/compatibility/subjects/a/versions", {"schema": '"string"'}), register("a", {"schema": '"int"'}), True,
    ),
    "alias": (
        [register("b", schema(0)), ("PUT", "/config/a", {"alias": "b"})], ("GET", "/subjects/a/versions/latest", None),
        register("b", schema(1)), True,
    ),
    "found in another context, then in its own": (
        [register(":.x:a", schema(0))], ("GET", "/subjects/a/versions/latest", None), register("a", schema(1)), True,
    ),
    "looked up in another context, then in its own": (
        [register(":.x:a", schema(0))], ("POST", "/subjects/a", schema(0)), register("a", schema(0)), True,
    ),
    "text by id": ([register("a", schema(0))], ("GET", "/schemas/ids/1", None), register("a", schema(1)), False),
    "id in a subject of another context, then of its own": (
        [register(":.x:a", schema(0)), register("b", schema(0))], ("GET", "/schemas/ids/1?subject=a", None),
        register("a", schema(0)), True,
    ),
    "newest id": ([register("a", schema(0))], ("GET", "/schemas/ids/1?fetchMaxId=true", None), register("b", schema(1)), True),
    "subjects of an id": ([register("a", schema(0))], ("GET", "/schemas/ids/1/subjects", None), register("b", schema(0)), True),
    "list of subjects": ([register("a", schema(0))], ("GET", "/subjects", None), register("b", schema(0)), True),
    "reference to the newest version": (
        [register("a", schema(0)), register("b", referring("a"))], ("POST", "/subjects/b", referring("a")),
        register("a", schema(1)), True,
    ),
    "config": ([register("a", schema(0))], ("GET", "/config/a?defaultToGlobal=true", None), register("b", schema(1)), False),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_registration_ends_what_it_changes_and_nothing_else(
    registries: None, api: Callable[[str], Client], name: str
) -> None:
    before, read, write, is_changed = CASES[name]
    history = Histories(api("admin"), random.Random())
    for call in (("PUT", "/config", {"compatibility": "NONE"}), *before):
        assert history.send(*call).status_code == 200
    if name.startswith("check of"):
        history.send("PUT", "/config", {"compatibility": "FULL"})
    history.read(0, read)
    touched = history.touched(write)
    fresh = history.send(*read)
    assert touched
    assert bool(set(history.kept[0].groups) & set(touched)) == is_changed
    assert (history.kept[0].content != (fresh.status_code, fresh.content)) == is_changed
