"""The response cache before Django: repeats complete responses while nothing that they depend on has changed.

It implements no dialect: it knows which requests are cacheable, but not the content of responses. The key has
everything in the request that could matter, including credentials, so that nobody gets another's response. A response
is valid until a commit touches one of its groups (see dashboard/response_cache/epoch.py), and has a maximum age in
addition.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
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
from registry.api.response_marks import ENVIRON, Recent, Replay

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Key = tuple[Any, ...]
Epochs = tuple[tuple[int, int], ...]

MOST_SECONDS: Final = 30.0  # so that the time of a token's last use is exact to half a minute
RECENT_SECONDS: Final = 10.0  # of MOST_SECONDS: for so long, other requests use what one has read
MOST_BODY: Final = 4 * 1024 * 1024  # bytes of a response
MOST_ASKED: Final = 256 * 1024  # bytes of a request's body
BODY_SECONDS: Final = 60.0  # limit for a client to send its body
MOST_HEADERS: Final = 48
MOST_HEAD: Final = 8 * 1024  # bytes of a request's target and headers
OVERHEAD: Final = 2_800  # bytes of an entry in addition to its texts
PAIR: Final = 200  # those of a header

#: headers that no response depends on; all others are part of the key
IGNORED: Final = frozenset(
    b"user-agent connection keep-alive content-length date traceparent tracestate baggage b3 x-b3-traceid x-b3-spanid"
    b" x-b3-parentspanid x-b3-sampled x-request-id x-correlation-id".split()
)
#: headers that make a request uncacheable
BARRING: Final = frozenset({b"cookie", b"transfer-encoding", b"expect", b"upgrade", b"range"})

_PLACE: Final = rb"(?:/registries/[^/]+)?(?:/contexts/[^/]+)?"
#: method → pattern of the cacheable raw paths
PATHS: Final = {
    "GET": re.compile(
        _PLACE + rb"/(?:schemas(?:/types|/ids/[^/]+(?:/schema|/subjects|/versions)?|/guids/[^/]+(?:/ids)?)?"
        rb"|subjects(?:/[^/]+/(?:metadata|versions(?:/[^/]+(?:/schema|/referencedby)?)?))?"
        rb"|config(?:/[^/]+)?|mode(?:/[^/]+)?)/?"
    ),
    "POST": re.compile(_PLACE + rb"/(?:compatibility/)?subjects/[^/]+(?:/versions(?:/[^/]+)?)?/?"),
}


class Clock(Protocol):
    """A source of the time until which the cache may answer at all."""

    @property
    def until(self) -> float:
        """The time by `epoch.now`."""


@dataclass(slots=True)
class Entry:
    """A cached response in ASGI's form, its expiry, and the epochs of its groups."""

    start: Message
    body: Message
    until: float
    size: int
    epochs: Epochs


class Entries:
    """The cached responses; the least recently used ones are evicted. For one thread."""

    def __init__(self, generation: Generation, most_bytes: int) -> None:
        self._generation = generation
        self._most = most_bytes
        self._entries: OrderedDict[Key, Entry] = OrderedDict()
        self._words: dict[int, tuple[bytes, int]] = {}
        self.size = 0

    def __len__(self) -> int:
        return len(self._entries)

    def epoch(self, group: int) -> int:
        """Return how often the group's words were seen to change; entries store this, not a kilobyte of words."""
        words = self._generation.words(group)
        known = self._words.get(group)
        if known is None or known[0] != words:
            known = self._words[group] = (words, known[1] + 1 if known else 0)
        return known[1]

    def find(self, key: Key, moment: float) -> Entry | None:
        """Return the response; None if missing, expired, or invalidated by a commit."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if moment >= entry.until or any(self.epoch(group) != epoch for group, epoch in entry.epochs):
            self._drop(key)
            return None
        self._entries.move_to_end(key)
        return entry

    def keep(self, key: Key, entry: Entry) -> None:
        """Store a response, and evict others beyond the size limit."""
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


class ResponseCache:
    """An ASGI application that answers from the cache if possible, and otherwise calls the application."""

    def __init__(
        self,
        application: Application,
        generation: Generation,
        clocks: Iterable[Clock],
        *,
        most_bytes: int,
        most_seconds: float = MOST_SECONDS,
    ) -> None:
        """Create the cache; it answers only while all `clocks` allow it."""
        self._application = application
        self._generation = generation
        self._clocks = tuple(clocks)
        self._most_seconds = most_seconds
        self._recent, self._began = Recent(lambda: False), 0.0
        self.entries = Entries(generation, most_bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        key = key_of(scope) if scope["type"] == "http" else None
        if key is not None and scope["method"] == "POST":
            key, receive = await _with_body(key, scope, receive)
        if key is not None and self._may_answer():
            entry = self.entries.find(key, now())
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
        """Call Django, and store the response if it may be repeated."""
        snapshot = self._generation.snapshot()  # first, so that nothing recent is older
        recent, began = self._recently_read()
        replay, sent = Replay(recent=recent), list[Message]()
        scope[ENVIRON] = replay

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
            self.entries.keep(key, Entry(start, body, began + seconds, _size(key, start, body), epochs))

    def _recently_read(self) -> tuple[Recent, float]:
        """Return what requests have read since a moment, and that moment; no commit of `EVERYTHING` came after it."""
        if not self._recent.is_current():
            self._began = now()
            words, until = self._generation.words(EVERYTHING), self._began + RECENT_SECONDS
            can_keep = is_quiet(words)
            self._recent = Recent(
                lambda: can_keep and self._may_answer(until) and self._generation.words(EVERYTHING) == words
            )
        return self._recent, self._began

    def _may_answer(self, until: float = math.inf) -> bool:
        """Return whether all clocks allow what was read before, and it is before `until`."""
        moment = now()
        return moment < until and all(moment < clock.until for clock in self._clocks)

    def _epochs(self, groups: Groups, snapshot: bytes) -> Epochs | None:
        """Return the epochs of the groups; None if a commit since the snapshot touches one of them."""
        epochs = tuple((group, self.entries.epoch(group)) for group in groups)
        words = [(group, words_in(snapshot, group)) for group in groups]
        is_same = all(is_quiet(before) and before == self._generation.words(group) for group, before in words)
        return epochs if is_same else None


def groups_of(replay: Replay) -> Groups:
    """Return the groups of a response."""
    subjects = replay.subjects
    return (EVERYTHING, *((REGISTRATIONS,) if subjects is None else {group_of(name) for name in subjects}))


def key_of(scope: Scope) -> Key | None:
    """Return the cache key without the body; None for an uncacheable request."""
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
    # A tuple of the server's bytes, not a concatenation: no part can be confused with another.
    return (method, scope["scheme"], scope["raw_path"], scope["query_string"], *headers)


def is_path(scope: Scope) -> bool:
    """Return whether the request's path is cacheable."""
    head = len(scope["raw_path"]) + len(scope["query_string"]) + sum(len(n) + len(v) for n, v in scope["headers"])
    return head <= MOST_HEAD and PATHS[scope["method"]].fullmatch(scope["raw_path"]) is not None


def length_of(scope: Scope) -> int:
    """Return the announced length of the body; 0 if missing or invalid."""
    lengths = [value for name, value in scope["headers"] if name == b"content-length"]
    return int(lengths[0]) if len(lengths) == 1 and lengths[0].isdigit() and len(lengths[0]) < 10 else 0


def _size(key: Key, start: Message, body: Message) -> int:
    """Estimate the bytes of an entry."""
    headers = [*start["headers"], *(part for part in key if isinstance(part, tuple))]
    texts = sum([len(name) + len(value) for name, value in headers])
    return OVERHEAD + PAIR * len(headers) + texts + len(key[2]) + len(key[3]) + len(body.get("body", b""))


def _is_whole(sent: list[Message]) -> bool:
    """Return whether it is a complete response with status 200, and not too large."""
    if [message["type"] for message in sent] != ["http.response.start", "http.response.body"]:
        return False
    start, body = sent
    is_ended = not body.get("more_body", False) and len(body.get("body", b"")) <= MOST_BODY
    return start["status"] == 200 and is_ended and all(name != b"set-cookie" for name, _ in start["headers"])


async def _with_body(key: Key, scope: Scope, receive: Receive) -> tuple[Key | None, Receive]:
    """Return the key with the body, None if uncacheable; and a `receive` that repeats the body."""
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
    """Raise TimeoutError, which the bridge takes as a body that didn't arrive in time."""
    raise TimeoutError


def _again(messages: list[Message], receive: Receive) -> Receive:
    """Return a `receive` that repeats these messages, then continues."""
    left = iter(messages)

    async def next_message() -> Message:
        message = next(left, None)
        return await receive() if message is None else message

    return next_message


WsgiApplication = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def noting(application: WsgiApplication) -> WsgiApplication:
    """Wrap the WSGI application to note whether it wrote anything; it runs in the calling thread."""

    def call(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        replay = environ.get(ENVIRON)
        if replay is None:
            return application(environ, start_response)
        before = written()
        result = application(environ, start_response)
        replay.is_pure = written() == before and not getattr(result, "streaming", True)
        return result

    return call
