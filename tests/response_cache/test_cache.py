"""The cache before an application: what it keeps, what it finds it by, and what goes to the application in any case."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.response_cache import cache as response_cache_cache
from dashboard.response_cache.cache import Entries, Entry, ResponseCache, is_path, key_of
from dashboard.response_cache.epoch import REGISTRATIONS, Generation, generation_at, group_of, now
from registry.api.response_marks import ENVIRON, Recent

Header = tuple[bytes, bytes]
PLAIN: list[Header] = [(b"host", b"here"), (b"authorization", b"Bearer a"), (b"accept", b"*/*")]


class Always:
    """A clock that allows it."""

    until = float("inf")


async def read_body(receive: Any) -> bytes:
    """The whole body; nothing of one whose client went away."""
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            return b""
        body, more = body + message.get("body", b""), message.get("more_body", False)
    return body


class Application:
    """Answers each request with another number."""

    def __init__(self) -> None:
        self.calls = 0
        self.status = 200
        self.headers: list[Header] = [(b"etag", b'"x"')]
        self.parts = 1
        self.replay: dict[str, Any] = {"is_allowed": True, "is_pure": True}
        self.meanwhile: Callable[[], None] = lambda: None
        self.bodies: list[bytes] = []
        self.recent: list[Recent] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.calls += 1
        number = b"%d" % self.calls
        if scope["method"] == "POST":
            self.bodies.append(await read_body(receive))
        for name, value in self.replay.items():
            if ENVIRON in scope:
                setattr(scope[ENVIRON], name, value)
        if ENVIRON in scope:
            self.recent.append(scope[ENVIRON].recent)
        self.meanwhile()
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        for part in range(self.parts):
            await send({"type": "http.response.body", "body": number, "more_body": part + 1 < self.parts})


class Site:
    """The cache with that application behind it."""

    def __init__(self, generation: Generation, **more: Any) -> None:
        self.application = Application()
        self.generation = generation
        self.clock: Any = Always()
        more = {"most_bytes": 1 << 20, **more}
        self.cache = ResponseCache(self.application, generation, [self], **more)

    @property
    def until(self) -> float:
        return float(self.clock.until)

    def ask(
        self, path: bytes = b"/schemas/ids/1", headers: list[Header] | None = None, *, method: str = "GET",
        query: bytes = b"", body: list[bytes] | None = None,
    ) -> bytes:  # fmt: skip
        sent: list[Any] = []

        async def run() -> None:
            parts = list(body or [])

            async def receive() -> Any:
                return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

            async def send(message: Any) -> None:
                sent.append(message)

            scope = {"type": "http", "method": method, "scheme": "http", "raw_path": path, "query_string": query}
            await self.cache({**scope, "headers": PLAIN if headers is None else headers}, receive, send)

        asyncio.run(run())
        assert sent[0]["status"] == self.application.status
        return b"".join(message["body"] for message in sent[1:])


@pytest.fixture(scope="module")
def generation(tmp_path_factory: pytest.TempPathFactory) -> Generation:
    return generation_at(Path(tmp_path_factory.mktemp("cache")) / "generation")


@pytest.fixture
def site(generation: Generation) -> Site:
    return Site(generation)


def test_the_same_request_is_answered_once_and_another_is_not(site: Site) -> None:
    assert [site.ask() for _ in range(3)] == [b"1", b"1", b"1"]
    assert site.ask(headers=[*PLAIN, (b"user-agent", b"another"), (b"traceparent", b"00-1")]) == b"1"
    others: list[dict[str, Any]] = [
        {"path": b"/schemas/ids/2"},
        {"path": b"/schemas/ids/1/"},
        {"path": b"/schemas/ids/%31"},
        {"query": b"a"},
        {"headers": [(b"host", b"there"), *PLAIN[1:]]},
        {"headers": [*PLAIN[:1], (b"authorization", b"Bearer b"), PLAIN[2]]},
        {"headers": PLAIN[:1]},
        {"headers": [*PLAIN, PLAIN[2]]},
        {"headers": PLAIN[::-1]},
        {"headers": [*PLAIN, (b"accept_", b"*/*")]},
        {"headers": [*PLAIN, (b"x-forwarded-for", b"1.2.3.4")]},
    ]
    for number, other in enumerate(others, 2):
        assert site.ask(**other) == b"%d" % number, other
    assert site.ask() == b"1"
    hits, misses = site.generation.counted()
    assert hits >= 4
    assert misses >= len(others)


def test_any_change_makes_it_ask_again(site: Site) -> None:
    assert [site.ask(), site.ask()] == [b"1", b"1"]
    site.generation.bump()
    assert [site.ask(), site.ask()] == [b"2", b"2"]
    site.generation.begin()
    assert [site.ask(), site.ask()] == [b"3", b"4"], "off while a commit is under way"
    site.generation.end()
    assert [site.ask(), site.ask()] == [b"5", b"5"]
    site.generation.bump((REGISTRATIONS, group_of("orders")))
    assert [site.ask(), site.ask()] == [b"6", b"6"], "it doesn't say which registrations change it"
    site.application.meanwhile = site.generation.bump
    site.generation.bump()
    assert [site.ask(), site.ask()] == [b"7", b"8"], "what was committed meanwhile may not be in it"


def test_a_registration_ends_the_answers_about_its_subject_alone(site: Site) -> None:
    site.application.replay["subjects"] = frozenset({"orders", "payments"})
    assert group_of("orders") != group_of("customers") != group_of("payments")
    assert [site.ask(), site.ask()] == [b"1", b"1"]
    site.generation.begin((REGISTRATIONS, group_of("customers")))
    assert [site.ask(), site.ask(b"/schemas/ids/2"), site.ask(b"/schemas/ids/2")] == [b"1", b"2", b"2"]
    site.generation.end((REGISTRATIONS, group_of("customers")))
    assert site.ask() == b"1"
    site.generation.bump((REGISTRATIONS, group_of("payments")))
    assert [site.ask(), site.ask()] == [b"3", b"3"]
    site.application.meanwhile = lambda: site.generation.bump((REGISTRATIONS, group_of("customers")))
    site.generation.bump()
    assert [site.ask(), site.ask()] == [b"4", b"4"]
    site.application.meanwhile = lambda: site.generation.bump((REGISTRATIONS, group_of("orders")))
    site.generation.bump()
    assert [site.ask(), site.ask()] == [b"5", b"6"], "what was committed meanwhile may not be in it"


def test_it_is_off_when_a_clock_says_so(site: Site) -> None:
    assert site.ask() == b"1"
    site.clock.until = 0.0
    assert [site.ask(), site.ask()] == [b"2", b"3"]
    site.clock.until = now() + 60
    assert site.ask() == b"1"


@pytest.mark.parametrize(
    "change",
    [
        {"status": 404},
        {"status": 304},
        {"parts": 2},
        {"headers": [(b"set-cookie", b"a=b")]},
        {"replay": {"is_allowed": True}},
        {"replay": {"is_pure": True}},
        {"replay": {"is_allowed": True, "is_pure": True, "until": datetime.now(UTC) - timedelta(seconds=1)}},
    ],
)
def test_what_is_not_kept(site: Site, change: dict[str, Any]) -> None:
    vars(site.application).update(change)
    parts = site.application.parts
    assert [site.ask(), site.ask()] == [b"1" * parts, b"2" * parts]


def test_it_gets_old_and_ends_with_the_token(generation: Generation, monkeypatch: pytest.MonkeyPatch) -> None:
    site, time = Site(generation), [1000.0]
    monkeypatch.setattr(response_cache_cache, "now", lambda: time[0])
    assert [site.ask(), site.ask()] == [b"1", b"1"]
    time[0] += 29.9
    assert site.ask() == b"1"
    time[0] += 0.2
    assert site.ask() == b"2"
    site.application.replay["until"] = datetime.now(UTC) + timedelta(seconds=10)
    generation.bump()
    assert site.ask() == b"3"
    time[0] += 9
    assert site.ask() == b"3"
    time[0] += 1.1
    assert site.ask() == b"4"


def asked(site: Site) -> dict[Any, Any]:
    """What a request that isn't cached finds that others have read."""
    site.ask(headers=[*PLAIN, (b"x-number", b"%d" % site.application.calls)])
    return site.application.recent[-1].values


def test_what_a_request_has_read_others_needn_t_read_until_a_commit(
    generation: Generation, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, time = Site(generation), [1000.0]
    monkeypatch.setattr(response_cache_cache, "now", lambda: time[0])
    asked(site)
    first = site.application.recent[0]
    first.keep("who", 1)
    generation.bump((REGISTRATIONS, group_of("orders")))
    assert asked(site) == {"who": 1}, "a registration changes nobody's rights"
    generation.begin()
    first.keep("late", 1)
    assert asked(site) == {}
    site.application.recent[-1].keep("during", 1)
    assert asked(site) == {}, "a commit is under way"
    generation.end()
    assert asked(site) == {}
    assert first.values == {"who": 1}, "what was read while something was committed isn't kept"


def test_what_others_have_read_is_not_used_after_the_lease_or_ten_seconds(
    generation: Generation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request may wait for a thread for long."""
    site, time = Site(generation), [1000.0]
    monkeypatch.setattr(response_cache_cache, "now", lambda: time[0])
    asked(site)
    recent = site.application.recent[-1]
    recent.keep("who", 1)
    assert recent.get("who") == 1
    time[0] += 10.5
    assert recent.get("who") is None


def test_what_others_have_read_and_the_answer_together_get_half_a_minute_old(
    generation: Generation, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, time = Site(generation), [1000.0]
    monkeypatch.setattr(response_cache_cache, "now", lambda: time[0])
    asked(site)
    site.application.recent[-1].keep("who", 1)
    time[0] += 9
    assert site.ask() == b"2"
    time[0] += 2
    assert asked(site) == {}, "it is read again after ten seconds"
    time[0] += 18.9
    assert site.ask() == b"2"
    time[0] += 0.2
    assert site.ask() == b"4"


#: what goes to Django each time
BARRED: list[dict[str, Any]] = [
    {"headers": [*PLAIN, (b"cookie", b"a=b")]},
    {"headers": [*PLAIN, (b"content-length", b"3")]},
    {"headers": [*PLAIN, (b"transfer-encoding", b"chunked")]},
    {"headers": [*PLAIN, *((b"x-%d" % number, b"") for number in range(8_000))]},
    {"headers": [*PLAIN, (b"x-long", b"x" * 9_000)]},
    {"query": b"x" * 9_000},
    {"path": b"/ui/"},
    {"path": b"/"},
    {"path": b"/metrics"},
    {"path": b"/api/v1/tokens"},
    {"path": b"/v1/projects/a"},
    {"path": b"/schemas/ids/1/other"},
    {"path": b"/subjects/a/b/c/d/e"},
    {"path": b"//schemas/ids/1"},
    {"path": b"http://here/schemas/ids/1"},
    {"method": "HEAD"},
    {"method": "DELETE"},
    {"method": "PUT"},
    {"method": "POST", "path": b"/subjects/a/versions"},
    {"method": "POST", "path": b"/schemas/ids/1", "body": [b"{}"], "headers": [*PLAIN, (b"content-length", b"2")]},
    {"method": "POST", "path": b"/subjects/a", "body": [b"{}"], "headers": [*PLAIN, (b"content-length", b"999999")]},
]


@pytest.mark.parametrize("request_options", BARRED)
def test_what_goes_to_the_application_each_time(site: Site, request_options: dict[str, Any]) -> None:
    request_options = {"body": [b""], **request_options}
    assert [site.ask(**{**request_options, "body": list(request_options["body"])}) for _ in range(2)] == [b"1", b"2"]
    assert len(site.cache.entries) == 0


@pytest.mark.parametrize(
    "path",
    [
        b"/schemas", b"/schemas/types", b"/schemas/ids/1/schema", b"/schemas/guids/x/ids", b"/subjects",
        b"/subjects/a%2Fb/versions", b"/subjects/a/versions/latest/schema", b"/subjects/a/metadata", b"/config",
        b"/config/a/", b"/mode", b"/contexts/.c/subjects/a/versions/1", b"/registries/dev/schemas/ids/1",
        b"/registries/dev/contexts/.c/mode/a",
    ],
)  # fmt: skip
def test_the_addresses(site: Site, path: bytes) -> None:
    assert [site.ask(path), site.ask(path)] == [b"1", b"1"]


@pytest.mark.parametrize(
    "path", [b"/subjects/a", b"/subjects/a/versions", b"/compatibility/subjects/a/versions/latest"]
)
def test_bodies_count_and_reach_the_application_whole(site: Site, path: bytes) -> None:
    def post(*parts: bytes) -> bytes:
        length = b"%d" % sum(map(len, parts))
        return site.ask(path, [*PLAIN, (b"content-length", length)], method="POST", body=list(parts))

    assert [post(b"{}"), post(b"{}"), post(b"{", b"}")] == [b"1", b"1", b"1"]
    assert [post(b"{ }"), post(b"{}"), post(b"{", b" }")] == [b"2", b"1", b"2"]
    assert site.application.bodies == [b"{}", b"{ }"]


TEXTS = st.binary(max_size=3)
REQUESTS = st.fixed_dictionaries(
    {
        "method": st.sampled_from(["GET", "POST"]),
        "scheme": st.sampled_from(["http", "https"]),
        "raw_path": TEXTS,
        "query_string": TEXTS,
        "headers": st.lists(st.tuples(TEXTS, TEXTS), max_size=3),
    }
)


@given(one=REQUESTS, other=REQUESTS)
def test_two_requests_have_one_key_only_if_they_are_one(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert (key_of(one) == key_of(other)) == (one == other)


@given(path=st.binary(max_size=40))
def test_no_path_breaks_the_patterns(path: bytes) -> None:
    for method in ("GET", "POST"):
        is_path({"method": method, "raw_path": path, "query_string": b"", "headers": []})


def entry(size: int, until: float = 1e9, *epochs: tuple[int, int]) -> Entry:
    return Entry({}, {}, until, size, epochs)


STEPS = st.lists(
    st.tuples(st.sampled_from("kkffb"), st.integers(0, 9), st.integers(0, 60), st.sampled_from([0, 1, 2, 3])),
    max_size=80,
)


@given(steps=STEPS)
def test_the_least_lately_used_go_first_and_the_bytes_are_counted(
    generation: Generation, steps: list[tuple[str, int, int, int]]
) -> None:
    """An entry ends with a change of its group; it leaves its bytes when it is asked for then."""
    entries, model, changes = Entries(generation, 100), OrderedDict[int, tuple[Entry, int]](), [0] * 4
    for what, number, size, group in steps:
        if what == "b":
            changes[group] += 1
            generation.bump((group,))
        elif what == "f":
            kept, at = model.get(number, (None, 0))
            if kept is not None and changes[kept.epochs[0][0]] != at:
                del model[number]
                kept = None
            assert entries.find((number,), 0.0) is kept
            if kept is not None:
                model.move_to_end(number)
        else:
            made = entry(size, 1e9, (group, entries.epoch(group)))
            entries.keep((number,), made)
            model.pop(number, None)
            model[number] = (made, changes[group])
            while sum(one.size for one, _ in model.values()) > 100:
                model.popitem(last=False)
        assert entries.size == sum(one.size for one, _ in model.values()) <= 100
        assert len(entries) == len(model)


def test_what_is_larger_than_all_room_is_not_kept(generation: Generation) -> None:
    entries = Entries(generation, 100)
    entries.keep(("a",), entry(100))
    entries.keep(("b",), entry(101))
    assert entries.find(("a",), 0.0) is not None
    assert entries.find(("b",), 0.0) is None
    assert entries.find(("a",), 1e9) is None, "too old"
    assert entries.size == 0


def test_a_body_that_does_not_come_is_for_the_bridge_to_refuse(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response_cache_cache, "BODY_SECONDS", 0.01)
    errors: list[BaseException] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        try:
            await receive()
        except TimeoutError as error:
            errors.append(error)

    async def never() -> Any:
        await asyncio.Event().wait()

    cache = ResponseCache(application, site.generation, [Always()], most_bytes=1)
    headers = [*PLAIN, (b"content-length", b"5")]
    scope = {"type": "http", "method": "POST", "scheme": "http", "raw_path": b"/subjects/a", "query_string": b""}
    asyncio.run(cache({**scope, "headers": headers}, never, never))
    assert len(errors) == 1
