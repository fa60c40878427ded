"""What `bench stale` writes and reads, over all dialects, the product's API and pages."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from typing import Final

from benchmarks.stale_model import Answer, Client, Read, Tracked
from benchmarks.stale_site import CHANCE, POINTS, WHEN, Program

MODES: Final = ("READWRITE", "READONLY", "READONLY_OVERRIDE")
GOOGLE: Final = "/v1/projects/local/locations/local/schemaRegistries/dev"
#: how the newest version of a subject is read
PATHS: Final = {
    "latest": "/subjects/{}/versions/latest",
    "text": "/subjects/{}/versions/latest/schema",
    "list": "/schemas?subjectPrefix={}",
    "google": GOOGLE + "/subjects/{}/versions/latest",
    "spring": "/spring/{}/avro",
    "page": "/ui/registries/dev/subjects/{}/?tab=source",
}


def mark(number: int) -> str:
    """Return the text by which a state is recognised."""
    return f"n{number:08d}x"


def schema(number: int) -> dict[str, str]:
    """Return the body of a registration."""
    return {"schema": json.dumps({"type": "record", "name": "R", "doc": mark(number), "fields": []})}


def reading(path: str) -> Read:
    """Return a read of the highest number in an answer."""
    return lambda thing, client: client.ask("GET", path.format(thing.name)).numbers


def subject(name: str) -> Tracked:
    """A subject that gets version after version, in every dialect."""
    return Tracked(
        name,
        lambda thing, client, number: client.ask("POST", f"/subjects/{name}/versions", schema(number)),
        {what: reading(path) for what, path in PATHS.items()},
    )


def deleted(name: str) -> Tracked:
    """A subject that is registered, deleted, registered again, deleted, and deleted permanently."""

    def write(thing: Tracked, client: Client, number: int) -> Answer:
        phase = (number - 1) % 5
        if phase in (0, 2):
            return client.ask("POST", f"/subjects/{name}/versions", schema(number - phase))
        return client.ask("DELETE", f"/subjects/{name}{'?permanent=true' if phase == 4 else ''}")

    def read(path: str, phases: tuple[int, ...]) -> Read:
        return lambda thing, client: None if (value := client.ask("GET", path).numbers) is None else (value, phases)

    def fits(value: tuple[int, tuple[int, ...]], number: int) -> bool:
        phase = (number - 1) % 5
        return value[0] == (number - phase if number and phase in value[1] else 0)

    live, there = (0, 2), (0, 1, 2, 3)
    reads = {"latest": read(f"/subjects/{name}/versions/latest", live), "list": read(f"/schemas?subjectPrefix={name}", live),
             "google": read(f"{GOOGLE}/subjects/{name}/versions/latest", live),
             "deleted": read(f"/schemas?subjectPrefix={name}&deleted=true", there)}  # fmt: skip
    return Tracked(name, write, reads, fits)


def config(name: str, *, is_doomed: bool = False) -> Tracked:
    """The config of a subject, or with an empty name of the registry; a doomed one is written by what is killed."""

    def write(thing: Tracked, client: Client, number: int) -> Answer:
        if is_doomed:
            death = (CHANCE.choice(POINTS), CHANCE.choice(WHEN)) if CHANCE.random() < 0.8 else None
            thing.note(f"to die: {death}")
            status, _ = client.host.writer.do("config", name, mark(number), death=death)
            thing.more["killed"] = thing.more.get("killed", 0) + (status == "killed")
            return Answer(200 if status == "done" else 0, status)
        return client.ask(
            "PUT", f"/config/{name}".rstrip("/"), {"compatibility": "NONE", "compatibilityGroup": mark(number)}
        )

    own, inherited = (f"/config/{name}", f"/config/{name or 'other'}?defaultToGlobal=true")
    return Tracked(name or "the registry", write, {path: reading(path) for path in (own.rstrip("/"), inherited)})


def mode(name: str) -> Tracked:
    """A subject's mode."""

    def read(path: str) -> Read:
        def value(thing: Tracked, client: Client) -> str | None:
            answer = client.ask("GET", path)
            return None if answer.numbers is None else str(json.loads(answer.text).get("mode"))

        return value

    return Tracked(name, lambda thing, client, number: client.ask("PUT", f"/mode/{name}", {"mode": MODES[number % 3]}),
                   {"mode": read(f"/mode/{name}?defaultToGlobal=true")},
                   lambda value, number: bool(value == MODES[number % 3]))  # fmt: skip


def alias(name: str) -> Tracked:
    """A name for one of three subjects after the other."""
    return Tracked(
        name,
        lambda thing, client, number: client.ask("PUT", f"/config/{name}", {"alias": f"{name}-{number % 3}"}),
        {what: reading(PATHS[what]) for what in ("latest", "google", "spring")},
        lambda value, number: bool(value == (number % 3 + 1 if number else 0)),
    )


def note(name: str) -> Tracked:
    """The text and tags of a subject, in the product's API and on its page."""
    path = f"/api/v1/registries/dev/subjects/{name}/notes"
    return Tracked(
        name,
        lambda thing, client, number: client.ask(
            "PUT", path, {"tags": ["t"], "doc": mark(number)}, **{"If-Match": "*"}
        ),
        {"product": reading(path), "page": reading(f"/ui/registries/dev/subjects/{name}/")},
    )


def token(name: str, *, is_person: bool) -> Tracked:
    """A token, or somebody with one, that is made and revoked or deactivated: read by the last one that was made."""

    def write(thing: Tracked, client: Client, number: int) -> Answer:
        made = thing.more.get("made", (0, "", 0))
        if number % 2 == 0:
            if is_person:
                return client.ask("PATCH", f"/api/v1/people/{name}-{made[0]}", {"active": False})
            return client.ask("DELETE", f"/api/v1/tokens/{made[2]}")
        if is_person:
            status, secret = client.host.writer.do("person", f"{name}-{number}")
            answer = Answer(200 if status == "done" else 0, json.dumps({"token": secret, "token_id": 0}))
        else:
            answer = client.ask("POST", "/api/v1/tokens", {"name": f"{name}-{secrets.token_hex(4)}"})
        if 200 <= answer.status < 300:
            body = json.loads(answer.text)
            thing.more["made"] = (number, body["token"], body["token_id"])
        return answer

    def read(thing: Tracked, client: Client) -> tuple[int, int] | None:
        number, secret, _ = thing.more.get("made", (0, "", 0))
        status = client.ask("GET", "/subjects", token=secret).status if secret else 500
        return (number, status) if 0 < status < 500 else None

    return Tracked(name, write, {"token": read}, lambda value, number: (value[1] == 200) == (number == value[0]))


def grants(name: str) -> Tracked:
    """Somebody who may read one subject, then two, then the other, then none."""

    def write(thing: Tracked, client: Client, number: int) -> Answer:
        letter = "ab"[(number - 1) % 4 % 2]
        if (number - 1) % 4 < 2:
            grant = {"role": "reader", "registry": "dev", "subject_pattern": f"{name}-{letter}*"}
            return client.ask("POST", f"/api/v1/people/{name}/grants", grant)
        people = client.ask("GET", f"/api/v1/people?q={name}")
        if people.status != 200:
            return people
        ids = [grant["grant_id"] for person in json.loads(people.text) if person["username"] == name
               for grant in person["grants"] if grant["subject_pattern"] == f"{name}-{letter}*"]  # fmt: skip
        answers = [client.ask("DELETE", f"/api/v1/grants/{grant_id}") for grant_id in ids]
        return next((answer for answer in answers if answer.status >= 300 or not answer.status), Answer(200, ""))

    def read(letter: str) -> Read:
        def value(thing: Tracked, client: Client) -> tuple[str, int] | None:
            status = client.ask("GET", f"/subjects/{name}-{letter}/versions", token=thing.more["token"]).status
            return (letter, status) if 0 < status < 500 else None

        return value

    def fits(value: tuple[str, int], number: int) -> bool:
        return (value[1] == 200) == (number % 4 in ((1, 2) if value[0] == "a" else (2, 3)))

    return Tracked(name, write, {letter: read(letter) for letter in "ab"}, fits)


def things(client: Client, writer: Program, prefix: str = "") -> Iterator[Tracked]:
    """Make all that is written and read, with names of that prefix. Raises AssertionError if that fails."""

    def register(name: str, number: int) -> None:
        answer = client.ask("POST", f"/subjects/{prefix}{name}/versions", schema(number))
        assert answer.status == 200, answer

    own = [f"/{prefix}{name}" for name in ("config", "doomed-0", "doomed-1", "doomed-2")]
    for place in ("", *own):  # without a config of their own these would inherit the registry's
        answer = client.ask("PUT", f"/config{place}", {"compatibility": "NONE", "compatibilityGroup": mark(0)})
        assert answer.status == 200, answer
    for number in range(3):
        register(f"alias-{number}", number + 1)
        yield subject(f"{prefix}subject-{number}")
        yield deleted(f"{prefix}deleted-{number}")
        yield config(f"{prefix}doomed-{number}", is_doomed=True)
    for name in ("note", "grants-a", "grants-b"):
        register(name, 0)
    limited = grants(f"{prefix}grants")
    client.ask("POST", "/api/v1/people", {"username": limited.name})
    _, limited.more["token"] = writer.do("secret", limited.name)
    yield from (limited, config(""), *(kind(prefix + kind.__name__) for kind in (alias, note, config, mode)))
    yield from (token(f"{prefix}{name}", is_person=name == "person") for name in ("token", "person"))
