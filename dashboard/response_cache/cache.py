"""Answers before Django: whole answers that Django gave, given again while nothing that they depend on has changed.

No dialect is written twice here: this knows which requests may be asked to Django once for many, and nothing of what
is in an answer. An answer is found by everything of the request that could matter, the credentials among it, so
nobody gets what Django gave to somebody else; it is right as long as nothing was committed that touches the groups of
answers that it is in (see dashboard/response_cache/epoch.py), and is asked for anew now and then all the same.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from dashboard.database.statements import written
from dashboard.response_cache.epoch import (
    EVERYTHING,
    REGISTRATIONS,
    Generation,
    Groups,
    group_of,
    is_quiet,
    now,
    words_in,
)
from registry.api.response_marks import ENVIRON, Replay

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Key = tuple[Any, ...]
Epochs = tuple[tuple[int, int], ...]

MOST_SECONDS: Final = 30.0  # so that the time of a token's last use is right to the half minute
MOST_BODY: Final = 4 * 1024 * 1024  # of an answer
MOST_ASKED: Final = 256 * 1024  # of a request's body
BODY_SECONDS: Final = 60.0  # for a client to send its body
MOST_HEADERS: Final = 48
MOST_HEAD: Final = 8 * 1024  # bytes of a request's target and headers
OVERHEAD: Final = 2_000  # bytes that an entry takes besides its texts

#: headers that no answer depends on; any other one is part of what an answer is found by
IGNORED: Final = frozenset(
    b"user-agent connection keep-alive content-length date traceparent tracestate baggage b3 x-b3-traceid x-b3-spanid"
    b" x-b3-parentspanid x-b3-sampled x-request-id x-correlation-id".split()
)
#: those with which a request goes to Django in any case
BARRING: Final = frozenset({b"cookie", b"transfer-encoding", b"expect", b"upgrade", b"range"})

_PLACE: Final = rb"(?:/registries/[^/]+)?(?:/contexts/[^/]+)?"
#: method → the paths that may be answered here, as they stand in the request
PATHS: Final = {
    "GET": re.compile(
        _PLACE + rb"/(?:schemas(?:/types|/ids/[^/]+(?:/schema|/subjects|/versions)?|/guids/[^/]+(?:/ids)?)?"
        rb"|subjects(?:/[^/]+/(?:metadata|versions(?:/[^/]+(?:/schema|/referencedby)?)?))?"
        rb"|config(?:/[^/]+)?|mode(?:/[^/]+)?)/?"
    ),
    "POST": re.compile(_PLACE + rb"/(?:compatibility/)?subjects/[^/]+(?:/versions(?:/[^/]+)?)?/?"),
}

logger = logging.getLogger(__name__)


class Clock(Protocol):
    """Until when answers may be given here at all."""

    @property
    def until(self) -> float:
        """The time of the clock of `generation.now`."""


@dataclass(slots=True)
class Entry:
    """An answer as the server takes it, when it is too old, and the epochs of its groups."""

    start: Message
    body: Message
    until: float
    size: int
    epochs: Epochs


class Entries:
    """Answers, those that nobody asked for the longest time going first. For one thread."""

    def __init__(self, generation: Generation, most_bytes: int) -> None:
        self._generation = generation
        self._most = most_bytes
        self._entries: OrderedDict[Key, Entry] = OrderedDict()
        self._words: dict[int, tuple[bytes, int]] = {}
        self.size = 0

    def __len__(self) -> int:
        return len(self._entries)

    def epoch(self, group: int) -> int:
        """How often the words of the group were seen to have changed: entries keep this number for a kilobyte of words."""
        words = self._generation.words(group)
        known = self._words.get(group)
        if known is None or known[0] != words:
            known = self._words[group] = (words, known[1] + 1 if known else 0)
        return known[1]

    def find(self, key: Key, moment: float) -> Entry | None:
        """The answer; None where there is none, it is too old, or something was committed that touches it."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if moment >= entry.until or any(self.epoch(group) != epoch for group, epoch in entry.epochs):
            self._drop(key)
            return None
        self._entries.move_to_end(key)
        return entry

    def keep(self, key: Key, entry: Entry) -> None:
        """Keep an answer, as far as there is room."""
        if entry.size > self._most:
            return
        if key in self._entries:
            self._drop(key)
        self._entries[key] = entry
        self.size += entry.size
        while self.size > self._most:
            self.size -= self._entries.popitem(last=False)[1].size

    def _drop(self, key: Key) -> None:
        self.size -= self._entries.pop(key).size


class HotPath:
    """An ASGI application that answers what it may, and hands everything else on."""

    def __init__(
        self,
        application: Application,
        generation: Generation,
        clocks: Iterable[Clock],
        *,
        most_bytes: int,
        most_seconds: float = MOST_SECONDS,
    ) -> None:
        """`clocks` all have to allow it."""
        self._application = application
        self._generation = generation
        self._clocks = tuple(clocks)
        self._most_seconds = most_seconds
        self.entries = Entries(generation, most_bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        key = key_of(scope) if scope["type"] == "http" else None
        if key is not None and scope["method"] == "POST":
            key, receive = await _with_body(key, scope, receive)
        moment = now()
        if key is not None and all(moment < clock.until for clock in self._clocks):
            entry = self.entries.find(key, moment)
            if entry is not None:
                self._generation.hit()
                await send(entry.start)
                await send(entry.body)
                return
            if is_path(scope):
                self._generation.missed()
                await self._ask(key, scope, receive, send)
                return
        await self._application(scope, receive, send)

    async def _ask(self, key: Key, scope: Scope, receive: Receive, send: Send) -> None:
        """Have Django answer, and keep the answer if it may be given again."""
        replay, sent, snapshot = Replay(), list[Message](), self._generation.snapshot()
        scope[ENVIRON] = replay
        began = now()

        async def note(message: Message) -> None:
            sent.append(message)
            await send(message)

        await self._application(scope, receive, note)
        if not replay.is_allowed or not replay.is_pure or not _is_whole(sent):
            return
        seconds = self._most_seconds
        if replay.until is not None:
            seconds = min(seconds, (replay.until - datetime.now(UTC)).total_seconds())
        epochs = self._epochs(groups_of(replay), snapshot)
        if seconds > 0 and epochs is not None:
            start, body = sent
            self.entries.keep(key, Entry(start, body, began + seconds, OVERHEAD + size_of([key, sent]), epochs))

    def _epochs(self, groups: Groups, snapshot: bytes) -> Epochs | None:
        """The epochs of the groups, None where something was committed since the snapshot that touches one of them."""
        epochs = tuple((group, self.entries.epoch(group)) for group in groups)
        words = [(group, words_in(snapshot, group)) for group in groups]
        is_same = all(is_quiet(before) and before == self._generation.words(group) for group, before in words)
        return epochs if is_same else None


def groups_of(replay: Replay) -> Groups:
    """The groups that an answer is in."""
    subjects = replay.subjects
    return (EVERYTHING, *((REGISTRATIONS,) if subjects is None else {group_of(name) for name in subjects}))


def key_of(scope: Scope) -> Key | None:
    """What an answer is found by, but for the body; None for a request that goes to Django in any case."""
    method = scope["method"]
    if method not in PATHS or len(scope["headers"]) > MOST_HEADERS:
        return None
    headers = []
    for name, value in scope["headers"]:
        if name in IGNORED:
            if name == b"content-length" and method == "GET" and value != b"0":
                return None
        elif name in BARRING:
            return None
        else:
            headers.append((name, value))
    # Bytes from the server, not parts put together: nothing in one can look like another.
    return (method, scope["scheme"], scope["raw_path"], scope["query_string"], *headers)


def is_path(scope: Scope) -> bool:
    """Whether the request is one of those that may be answered here."""
    head = len(scope["raw_path"]) + len(scope["query_string"]) + sum(len(n) + len(v) for n, v in scope["headers"])
    return head <= MOST_HEAD and PATHS[scope["method"]].fullmatch(scope["raw_path"]) is not None


def length_of(scope: Scope) -> int:
    """The length of the body as it is announced; 0 for none that can be read."""
    lengths = [value for name, value in scope["headers"] if name == b"content-length"]
    return int(lengths[0]) if len(lengths) == 1 and lengths[0].isdigit() and len(lengths[0]) < 10 else 0


def size_of(item: Any) -> int:
    """About how many bytes something takes."""
    if isinstance(item, str | bytes):
        return 50 + len(item)
    parts = item.values() if isinstance(item, dict) else item if isinstance(item, tuple | list) else ()
    return 100 + sum(map(size_of, parts))


def _is_whole(sent: list[Message]) -> bool:
    """Whether it is one whole answer of status 200, and not too large."""
    if [message["type"] for message in sent] != ["http.response.start", "http.response.body"]:
        return False
    start, body = sent
    is_ended = not body.get("more_body", False) and len(body.get("body", b"")) <= MOST_BODY
    return start["status"] == 200 and is_ended and all(name != b"set-cookie" for name, _ in start["headers"])


async def _with_body(key: Key, scope: Scope, receive: Receive) -> tuple[Key | None, Receive]:
    """The key with the body in it, None where no answer is found by that; and what gives the body again."""
    if not is_path(scope) or not 0 < length_of(scope) <= MOST_ASKED:
        return None, receive
    messages, digest, more = list[Message](), hashlib.sha256(), True
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while more:
                messages.append(message := await receive())
                digest.update(message.get("body", b""))
                more = message.get("more_body", False)
    except TimeoutError:
        return None, _late
    has_left = messages[-1]["type"] != "http.request"
    return None if has_left else (*key, digest.digest()), _again(messages, receive)


async def _late() -> Message:
    """What the bridge takes for a body that didn't come in time."""
    raise TimeoutError


def _again(messages: list[Message], receive: Receive) -> Receive:
    """Gives these messages once more, then what comes."""
    left = iter(messages)

    async def next_message() -> Message:
        message = next(left, None)
        return await receive() if message is None else message

    return next_message


WsgiApplication = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def noting(application: WsgiApplication) -> WsgiApplication:
    """The WSGI application, which also says whether it wrote anything; it runs in the thread that it is called in."""

    def call(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        replay = environ.get(ENVIRON)
        if replay is None:
            return application(environ, start_response)
        before = written()
        result = application(environ, start_response)
        replay.is_pure = written() == before and not getattr(result, "streaming", True)
        return result

    return call
