"""The generation across hosts, over Valkey: a write is answered once no other host repeats an older response.

A host is the processes that share a file of dashboard/response_cache/epoch.py. Its web processes share a lease, and its
cache answers only during the lease. An agent thread renews it after a round trip on the connection that receives
changes: the server sends earlier published messages before its PONG, so that a lease proves that all changes until
shortly before were received. A host that joins waits before its cache answers, so that the others know it by that time.

A writer publishes after its commit and waits until each other host has acknowledged, or can no longer have a lease. The
agents store in the file until when no other host can exist: until then, a write needs no network.

If Valkey is away, leases end, caches are off, and writers wait for one lease. If only the writer can't reach Valkey,
other hosts learn of the change by PostgreSQL's NOTIFY, some milliseconds later (dashboard/response_cache/listener.py).
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from contextlib import closing
from functools import lru_cache
from typing import Any, Final

from django.conf import settings
from redis import Redis
from redis.client import PubSub
from redis.exceptions import RedisError

from dashboard.response_cache.epoch import ALL, HOSTS, Generation, Groups, now

LEASE: Final = 2.0
MARGIN: Final = 0.2  # the clocks of two hosts run at different speeds
WAIT: Final = LEASE + MARGIN  # afterwards nobody has an earlier lease
JOIN: Final = WAIT + MARGIN  # time before a new host's cache answers
KNOWN: Final = 2 * LEASE  # how long Valkey remembers a host, longer than any lease
BEAT: Final = 0.5
#: indexes in `Generation.times`
LEASE_ENDS, SERVES_FROM, ALONE_UNTIL, AWAY_SINCE, AWAY_SEEN = range(5)

CHANNEL: Final = "schemadesk:generation"
MEMBERS: Final = "{schemadesk:generation}:hosts"
EPOCH: Final = "{schemadesk:generation}:run"  # of Valkey, and since when it has remembered
ACKNOWLEDGED: Final = "schemadesk:generation:ack:"
ACK_SECONDS: Final = 10
#: returns the hosts, and for how many milliseconds this run of Valkey has remembered them; adds the host in the argument.
#: A restarted server, or a replica in its place, may have an older state: it lacks a host that still has a lease.
WHO_IS_THERE: Final = """
local at = redis.call('TIME')
local now = at[1] * 1000 + math.floor(at[2] / 1000)
if ARGV[1] ~= '' then redis.call('ZADD', KEYS[1], now + tonumber(ARGV[2]), ARGV[1]) end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local info = redis.pcall('INFO', 'server')
local run = type(info) == 'string' and string.match(info, 'run_id:(%w+)') or ''
local run_before, since = string.match(redis.call('GET', KEYS[2]) or '', '^(%w*) (%d+)$')
if run_before ~= run then
    since = now
    redis.call('SET', KEYS[2], string.format('%s %.0f', run, now))
end
return {redis.call('ZRANGE', KEYS[1], 0, -1), now - since}
"""
AWAY = (RedisError, OSError)

logger = logging.getLogger(__name__)


class Hosts:
    """This process's messages with Valkey. Thread-safe."""

    def __init__(self, generation: Generation, url: str) -> None:
        self._generation = generation
        # Protocol 2, in which a PONG arrives in order with the messages.
        options: dict[str, Any] = {"protocol": 2, "retry": None, "decode_responses": True}
        self._client = Redis.from_url(url, socket_timeout=1, socket_connect_timeout=1, **options)

    # -- a writer ------------------------------------------------------------------------------------------------------

    def tell(self, groups: Groups = ALL) -> None:
        """Return once no other host repeats an older response in one of the groups."""
        if now() < self._generation.times[ALONE_UNTIL]:
            return
        began = now()
        try:
            others, remembered = self.others()
            until = began + WAIT - remembered
            if others:
                until = max(until, self._publish(others, groups))
        except AWAY as error:
            logger.warning("other hosts weren't notified of a change: %s", error)
            until = began if self.note_away() else began + WAIT
        time.sleep(max(0.0, until - now()))

    def others(self, renewed: str = "") -> tuple[set[str], float]:
        """Return the other hosts that may have a lease, and for how many seconds Valkey has remembered the hosts."""
        reply: Any = self._client.eval(WHO_IS_THERE, 2, MEMBERS, EPOCH, renewed, int(KNOWN * 1000))
        return set(reply[0]) - {self._generation.host}, reply[1] / 1000

    def _publish(self, others: set[str], groups: Groups) -> float:
        """Notify the others, and wait for them; return until when those that didn't answer may have a lease."""
        name = secrets.token_hex(8)
        self._client.publish(CHANNEL, " ".join((self._generation.host, name, *map(str, groups))))
        until, left = now() + WAIT, set(others)
        while left and (patience := until - now()) > 0:
            reply: Any = self._client.blpop([ACKNOWLEDGED + name], timeout=min(patience, BEAT))
            if reply is not None:
                left.discard(reply[1])
        return until if left else 0.0

    def note_away(self) -> bool:
        """Record that Valkey doesn't answer; return whether it has been away for so long that no host has a lease."""
        times, moment = self._generation.times, now()
        with self._generation.locked(HOSTS):
            is_known = times[AWAY_SINCE] and moment - times[AWAY_SEEN] < 3 * BEAT
            if not is_known:
                times[AWAY_SINCE] = moment
            times[AWAY_SEEN] = moment
            return bool(moment - times[AWAY_SINCE] > WAIT)

    # -- a host with a cache -------------------------------------------------------------------------------------------

    def attend(self, over: threading.Event) -> None:
        """Receive changes and keep the lease until the event is set. Raises RedisError, OSError."""
        with closing(self._client.pubsub()) as heard:  # type: ignore[no-untyped-call]
            heard.subscribe(CHANNEL)
            self._until_answered(heard, "subscribe", CHANNEL)
            self._generation.bump()  # for changes missed until now
            while not over.is_set():
                asked_at = now()
                others, remembered = self.others(self._generation.host)
                known_at = now()
                token = secrets.token_hex(8)
                heard.ping(token)
                self._until_answered(heard, "pong", token)
                self._renew(asked_at, known_at, is_alone=not others and remembered > WAIT)
                self._hear(heard, known_at + BEAT)

    def _renew(self, asked_at: float, known_at: float, *, is_alone: bool) -> None:
        times = self._generation.times
        with self._generation.locked(HOSTS):
            if now() >= times[LEASE_ENDS]:
                # Writers didn't wait for this host meanwhile.
                self._generation.bump()
                times[SERVES_FROM] = known_at + JOIN
            times[LEASE_ENDS] = max(times[LEASE_ENDS], asked_at + LEASE)
            if is_alone:
                times[ALONE_UNTIL] = max(times[ALONE_UNTIL], asked_at + LEASE)
            times[AWAY_SINCE] = 0.0

    def _until_answered(self, heard: PubSub, kind: str, text: str) -> None:
        if not self._hear(heard, now() + LEASE, kind, text):
            raise TimeoutError(f"Valkey sent no {kind} in {LEASE:.0f} s")

    def _hear(self, heard: PubSub, end: float, kind: str = "", text: str = "") -> bool:
        """Process messages until the deadline, or until one of that kind with that text; return whether it came."""
        while (moment := now()) < end:
            message = heard.get_message(timeout=end - moment)
            if message is None:
                continue
            if message["type"] == kind and text in (message["data"], message["channel"]):
                return True
            self._take(message)
        return False

    def _take(self, message: dict[str, Any]) -> None:
        if message["type"] != "message":
            return
        host, name, *groups = str(message["data"]).split()
        if host == self._generation.host:
            return  # the writer has already marked it in the file
        self._generation.bump(tuple(map(int, groups)))
        key = ACKNOWLEDGED + name
        with self._client.pipeline() as pipeline:
            pipeline.rpush(key, self._generation.host)
            pipeline.expire(key, ACK_SECONDS)
            pipeline.execute()


class Agent:
    """The thread of a web process that keeps its host's lease."""

    def __init__(self, generation: Generation, url: str) -> None:
        self._times = generation.times
        self._hosts = Hosts(generation, url)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="generation-hosts", daemon=True)

    @property
    def until(self) -> float:
        """The time when the cache must be off."""
        times = self._times
        return times[LEASE_ENDS] if times[SERVES_FROM] <= now() else 0.0

    def start(self) -> None:
        """Start to hold a lease."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; the lease expires."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        is_told = False
        while not self._over.is_set():
            try:
                self._hosts.attend(self._over)
                is_told = False
            except AWAY as error:
                if not is_told:
                    logger.warning("Valkey can't be reached; without a lease the cache is off: %s", error)
                is_told = True
                self._hosts.note_away()
                self._over.wait(BEAT)


@lru_cache(maxsize=4)
def _hosts(generation: Generation, url: str) -> Hosts:
    return Hosts(generation, url)


def tell_hosts(generation: Generation, groups: Groups) -> None:
    """Return once no other host repeats an older response; called after a commit and before its response."""
    if settings.HOT_PATH_HOSTS:
        _hosts(generation, settings.REDIS_URL).tell(groups)
