"""What another level would have said of the past, for a registry, a context and a subject; and of open requests."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from registry.access.roles import Actor, Grant
from registry.errors import InvalidCompatibility, InvalidName, SchemaTooCostly, SubjectNotFound
from registry.promotions.requests.level_simulation import requests_under
from registry.promotions.services import request_promotion
from registry.subjects.engine import schema_engine
from registry.subjects.history import level_history as module
from registry.subjects.history.level_history import WhatIf, what_if
from registry.subjects.models import Registry, SchemaVersion
from registry.subjects.services import register_version, set_config
from registry.subjects.versions.qualified_names import SubjectName

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("GOO-3")]

LEVELS = (
    "NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE",
)  # fmt: skip
#: required long fields by their names; an optional one ends in "?"
HISTORY = ("a", "ab?", "b?", "b?c")


def record(fields: str) -> str:
    """A record with a field a letter, which has a default where a question mark follows."""
    columns = []
    for position, letter in enumerate(fields):
        if letter != "?":
            optional = fields[position + 1 : position + 2] == "?"
            columns.append({"name": letter, "type": "long", **({"default": 0} if optional else {})})
    return json.dumps({"type": "record", "name": "R", "fields": columns})


@pytest.fixture
def past(registries: None, system: Actor) -> Callable[..., None]:
    """Registers a history of records, whatever the levels say of it, and leaves the level as it was."""

    def make(name: str, *history: str, context: str = ".", registry: str = "dev") -> None:
        subject = SubjectName(context, name)
        set_config(registry=registry, subject=subject, by=system, level="NONE")
        for fields in history:
            register_version(registry=registry, subject=subject, text=record(fields), by=system)
        set_config(registry=registry, subject=subject, by=system, unset=["level"])

    return make


def failing(found: WhatIf) -> dict[str, list[int]]:
    """Subject → versions that fail, ascending."""
    return {
        item.subject.qualified: sorted(each.version for each in item.failing) for item in found.subjects if item.failing
    }


#: of HISTORY: 2 adds b with a default; 3 takes a away, which has none; 4 adds c without a default
@pytest.mark.parametrize(
    ("level", "versions"),
    [
        ("NONE", []),
        ("BACKWARD", [4]),
        ("BACKWARD_TRANSITIVE", [4]),
        ("FORWARD", [3]),
        ("FORWARD_TRANSITIVE", [3, 4]),
        ("FULL", [3, 4]),
        ("FULL_TRANSITIVE", [3, 4]),
    ],
)
def test_each_version_is_held_against_those_that_the_level_names(
    past: Callable[..., None], dev: Registry, level: str, versions: list[int]
) -> None:
    past("s", *HISTORY)
    found = what_if(dev, level.lower())
    assert found.level == level
    assert failing(found) == ({"s": versions} if versions else {})
    assert (found.transitions, found.failing, found.looked_at, found.total) == (3, len(versions), 1, 1)
    assert found.cursor == found.stopped == ""


def test_it_says_the_same_as_registering_under_that_level(
    past: Callable[..., None], dev: Registry, system: Actor
) -> None:
    """The selector judges as the service does: each version is tried again on a copy of what was there before it."""
    past("s", *HISTORY)
    for level in LEVELS:
        refused = []
        for number in range(2, len(HISTORY) + 1):
            copy = f"copy-{level}-{number}"
            past(copy, *HISTORY[: number - 1])
            set_config(registry="dev", subject=SubjectName(".", copy), by=system, level=level)
            try:
                register_version(
                    registry="dev", subject=SubjectName(".", copy), text=record(HISTORY[number - 1]), by=system
                )
            except Exception as error:  # noqa: BLE001 - which error it is is the other tests' concern
                assert type(error).__name__ == "IncompatibleSchema"
                refused.append(number)
        assert failing(what_if(dev, level, SubjectName(".", "s"))) == ({"s": refused} if refused else {}), level


def test_a_failing_version_says_where_against_what_and_whether_it_is_new(
    past: Callable[..., None], dev: Registry
) -> None:
    past("s", *HISTORY)
    (trial,) = what_if(dev, "FULL_TRANSITIVE").subjects
    newest, older = trial.failing
    assert (newest.version, older.version) == (4, 3)
    assert "R.c" in newest.sentence
    assert newest.fails_now, "BACKWARD, which is in force, refuses it too"
    assert newest.against == (3, 2, 1)
    assert (older.against, older.fails_now) == ((2, 1), False)
    assert trial.level == "BACKWARD"


def test_subjects_with_a_level_of_their_own_are_left_out_and_counted(
    past: Callable[..., None], dev: Registry, system: Actor
) -> None:
    past("plain", *HISTORY)
    past("own", *HISTORY)
    past("within", *HISTORY, context=".team")
    past("within-own", *HISTORY, context=".team")
    set_config(registry="dev", subject=SubjectName(".", "own"), by=system, level="NONE")
    set_config(registry="dev", subject=SubjectName(".team", "within-own"), by=system, level="NONE")
    everywhere = what_if(dev, "FULL")
    assert (set(failing(everywhere)), everywhere.keeping) == ({"plain", ":.team:within"}, 2)
    team = what_if(dev, "FULL", SubjectName(".team", ""))
    assert (set(failing(team)), team.keeping) == ({":.team:within"}, 1)
    set_config(registry="dev", subject=SubjectName(".team", ""), by=system, level="NONE")
    assert set(failing(what_if(dev, "FULL"))) == {"plain"}
    assert set(failing(what_if(dev, "FULL", SubjectName(".team", "")))) == {":.team:within"}
    one = what_if(dev, "FULL", SubjectName(".", "own"))
    assert (set(failing(one)), one.keeping) == ({"own"}, 0)


def test_the_groups_and_the_profile_of_a_subject_count(past: Callable[..., None], dev: Registry, system: Actor) -> None:
    subject = SubjectName(".", "grouped")
    set_config(registry="dev", subject=subject, by=system, compatibility_group="major", level="NONE")
    for fields, major in (("a", "1"), ("b", "2"), ("bc", "2")):
        metadata = {"properties": {"major": major}}
        register_version(registry="dev", subject=subject, text=record(fields), metadata=metadata, by=system)
    assert failing(what_if(dev, "FULL_TRANSITIVE", subject)) == {"grouped": [3]}


def test_pages_follow_each_other_without_a_gap(past: Callable[..., None], dev: Registry) -> None:
    names = [f"s{number:02}" for number in range(7)]
    for name in names:
        past(name, "a", "b")
    past("a", "a", "b", context=".z")
    seen, cursor, looked_at = [], "", []
    while True:
        found = what_if(dev, "FULL", cursor=cursor, limit=3)
        seen += list(failing(found))
        looked_at.append((found.looked_at, found.total))
        cursor = found.cursor
        if not cursor:
            break
    assert seen == [*names, ":.z:a"]
    assert looked_at == [(3, 8), (6, 8), (8, 8)]


def test_when_the_time_is_over_it_says_so_and_goes_on_from_there(past: Callable[..., None], dev: Registry) -> None:
    for name in ("s1", "s2", "s3"):
        past(name, "a", "b")
    first = what_if(dev, "FULL", seconds=0)
    assert list(failing(first)) == ["s1"], "one subject at least, or it would never come to an end"
    assert (first.looked_at, first.total) == (1, 3)
    assert "time" in first.stopped
    assert list(failing(what_if(dev, "FULL", cursor=first.cursor))) == ["s2", "s3"]


def test_a_subject_that_takes_all_of_the_time_is_reported_as_judged_in_part(
    past: Callable[..., None], dev: Registry
) -> None:
    past("long", "a", "b", "c", "d")
    past("next", "a", "b")
    found = what_if(dev, "FULL", seconds=0)
    (trial,) = found.subjects
    assert (trial.judged, trial.transitions, trial.is_whole) == (1, 3, False)
    assert [item.version for item in trial.failing] == [4], "the newest is looked at first"
    assert found.cursor == ":.:long"


def test_only_the_newest_versions_are_read(
    past: Callable[..., None], dev: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_VERSIONS", 3)
    past("s", "a", "b", "c", "d", "e")
    (trial,) = what_if(dev, "FULL").subjects
    assert (trial.left_out, trial.transitions, trial.judged) == (2, 4, 2)
    assert [item.version for item in trial.failing] == [5, 4]


def test_a_version_that_cannot_be_judged_says_why_and_hides_no_other(past: Callable[..., None], dev: Registry) -> None:
    past("broken", "a", "x")
    past("sound", "a", "b")
    row = SchemaVersion.objects.get(subject__name="broken", version=2).schema
    type(row).objects.filter(pk=row.pk).update(canonical="{", identity="x" * 64)
    found = what_if(dev, "FULL")
    broken, sound = found.subjects
    assert broken.unjudged[0].version == 2
    assert broken.unjudged[0].sentence
    assert failing(found) == {"sound": [2]}
    assert sound.is_whole


@pytest.mark.parametrize(("limit", "stops"), [({"limit": "time"}, False), ({}, True)])
def test_one_costly_schema_stops_nothing_and_a_spent_allowance_stops_all(
    past: Callable[..., None], dev: Registry, monkeypatch: pytest.MonkeyPatch, limit: dict[str, str], stops: bool
) -> None:
    past("s1", "a", "b", "c")
    past("s2", "a", "b")

    def refuse(*arguments: Any, **options: Any) -> Any:
        raise SchemaTooCostly("it takes more than 1 s", **limit)

    monkeypatch.setattr(schema_engine, "check", refuse)
    found = what_if(dev, "FULL")
    assert [len(item.unjudged) for item in found.subjects] == ([1] if stops else [2, 1])
    assert bool(found.stopped) == stops
    assert found.looked_at == (1 if stops else 2)


@pytest.mark.parametrize("name", ["", "a/b%2Fc", "<b>", "Ω\u202eabc", ". .", "x" * 1000])
def test_hostile_names_are_pages_of_their_own(past: Callable[..., None], dev: Registry, name: str) -> None:
    past("!first", "a")
    subject = SubjectName(".", name or "empty")
    past(subject.subject, "a", "b")
    past("\U0001f600last", "a", "b")
    first = what_if(dev, "FULL", limit=2)
    second = what_if(dev, "FULL", limit=2, cursor=first.cursor)
    assert set(failing(first)) | set(failing(second)) == {subject.qualified, "\U0001f600last"}


def test_what_cannot_be_asked_is_refused(past: Callable[..., None], dev: Registry) -> None:
    with pytest.raises(InvalidCompatibility, match="is not a compatibility level"):
        what_if(dev, "SIDEWARD")
    with pytest.raises(SubjectNotFound):
        what_if(dev, "FULL", SubjectName(".", "absent"))
    with pytest.raises(InvalidName):
        what_if(dev, "FULL", cursor="\0")


def test_as_many_queries_for_many_subjects_as_for_few(past: Callable[..., None], dev: Registry) -> None:
    def count() -> int:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            what_if(dev, "FULL_TRANSITIVE")
        return len(queries)

    for number in range(3):
        past(f"s{number}", "a", "b")
    few = count()
    for number in range(3, 30):
        past(f"s{number}", "a", "b", "c")
    assert count() == few <= 9


# -- open requests ----------------------------------------------------------------------------------------------------


@pytest.fixture
def asked(past: Callable[..., None], person: Callable[[str], Actor], system: Actor) -> Callable[[str, str, str], int]:
    """Asks for a version in staging that has one already; both as records."""

    def make(name: str, there: str, wanted: str) -> int:
        past(name, there, registry="staging")
        past(name, wanted)
        return request_promotion(
            source="dev", target="staging", subject=SubjectName(".", name), version=1, by=person("steward"), reason="x"
        )

    return make


@pytest.fixture
def staging(registries: None) -> Registry:
    return Registry.objects.get(name="staging")


def test_open_requests_that_would_be_judged_otherwise(
    asked: Callable[[str, str, str], int], staging: Registry, system: Actor
) -> None:
    tightened, loosened, neither = asked("t", "a", "b?"), asked("l", "a", "ab"), asked("n", "a", "ab?")
    found = requests_under(staging, "FORWARD", by=system)
    told = {item.request: item for item in found.changed}
    assert (found.total, found.looked_at, found.stopped) == (3, 3, "")
    assert set(told) == {tightened, loosened}
    assert (told[tightened].passes_now, told[tightened].subject) == (True, "t")
    assert "would break FORWARD" in told[tightened].sentence
    assert not told[loosened].passes_now
    assert "breaks BACKWARD now" in told[loosened].sentence
    assert neither not in told


def test_a_level_of_their_own_keeps_requests_as_they_are(
    asked: Callable[[str, str, str], int], staging: Registry, system: Actor
) -> None:
    asked("t", "a", "b?")
    set_config(registry="staging", subject=SubjectName(".", "t"), by=system, level="BACKWARD")
    assert requests_under(staging, "FORWARD", by=system).changed == ()
    assert len(requests_under(staging, "FORWARD", SubjectName(".", "t"), by=system).changed) == 1
    assert requests_under(staging, "FORWARD", SubjectName(".", "other"), by=system).total == 0


def test_a_request_that_somebody_may_not_read_is_not_mentioned(
    asked: Callable[[str, str, str], int], staging: Registry, system: Actor
) -> None:
    asked("t", "a", "b?")
    stranger = Actor("some", "product", 1, (Grant("reader", "staging", "other-*"),))
    found = requests_under(staging, "FORWARD", by=stranger)
    assert (found.total, found.changed) == (0, ())


def test_as_many_queries_for_many_requests_as_for_few(
    asked: Callable[[str, str, str], int], staging: Registry, system: Actor
) -> None:
    def count() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert requests_under(staging, "FORWARD", by=system).stopped == ""
        return len(queries)

    for number in range(3):
        asked(f"t{number}", "a", "b?")
    few = count()
    for number in range(3, 20):
        asked(f"t{number}", "a", "b?")
    assert count() == few <= 10


# -- the API ----------------------------------------------------------------------------------------------------------


def test_the_api_tells_the_same(
    asked: Callable[[str, str, str], int], past: Callable[..., None], api: Callable[[str], Client]
) -> None:
    number = asked("t", "a", "b?")
    past("s", *HISTORY, registry="staging")
    path = "/api/v1/registries/staging/what-if"
    told = api("reader").get(f"{path}?level=forward").json()
    assert (told["level"], told["total"], told["looked_at"], told["cursor"]) == ("FORWARD", 2, 2, "")
    assert [item["request"] for item in told["requests"]["changed"]] == [number]
    assert told["subjects"][0]["subject"] == "s"
    assert [item["version"] for item in told["subjects"][0]["failing"]] == [3]
    one = api("reader").get(f"{path}?level=FULL&subject=s").json()
    assert (one["subject"], one["total"]) == ("s", 1)
    page = api("reader").get(f"{path}?level=FULL&limit=1").json()
    following = api("reader").get(path, {"level": "FULL", "limit": 1, "cursor": page["cursor"]}).json()
    assert following["requests"] is None
    assert [item["subject"] for item in page["subjects"] + following["subjects"]] == ["s"]


@pytest.mark.parametrize(
    ("query", "status", "says"),
    [
        ("", 422, "level"),
        ("level=SIDEWARD", 422, "BACKWARD_TRANSITIVE"),
        ("level=FULL&subject=absent", 404, "absent"),
        ("level=FULL&cursor=%00", 422, "cursor"),
        ("level=FULL&limit=100000", 422, "limit"),
        ("level=FULL&context=a:b", 422, "context"),
        ("level=FULL&colour=red", 422, "colour"),
    ],
)
def test_the_api_names_what_is_wrong(
    registries: None, api: Callable[[str], Client], query: str, status: int, says: str
) -> None:
    answer = api("reader").get(f"/api/v1/registries/dev/what-if?{query}")
    assert answer.status_code == status
    assert says in answer.content.decode()


@pytest.mark.requirement("CARD-4")
def test_a_pattern_of_subjects_opens_those_alone(
    past: Callable[..., None], api: Callable[[str], Client], person: Callable[[str], Actor], system: Actor
) -> None:
    from registry.access.models import RoleGrant, User

    past("orders-value", *HISTORY)
    person("stranger")
    user = User.objects.get(username="stranger")
    RoleGrant.objects.create(user=user, role="reader", subject_pattern="orders-*")
    client, path = api("stranger"), "/api/v1/registries/dev/what-if?level=FULL"
    assert client.get(f"{path}&subject=orders-value").status_code == 200
    assert client.get(f"{path}&subject=other-value").status_code == 403
    assert client.get(f"{path}&context=.team").status_code == 403
    assert client.get(path).status_code == 403
