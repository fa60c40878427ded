"""The generation of the data that responses depend on, in memory shared by the processes of a host.

It is a small file mapped by every process. Each process has a slot, held by a lock on a byte of a second file, which
ends with the process in any case. A slot has one word per group of responses: the lower 16 bits count the process's
commits in progress, the upper bits its completed ones. A commit changes the words of the groups that it touches before
it begins and after it ends, and no value repeats. So if a group's words are unchanged, no commit in between touched it,
and a response made while none was in progress is valid exactly as long as the words of its groups stay the same.

A registration touches its subject's group, and the group of responses that don't name their subjects. Any other commit
touches `EVERYTHING`, which each response depends on (registry/audit/triggers.py decides which is which).

A word is eight aligned bytes, written atomically; the words needn't be read at one moment, because each alone announces
a commit before it can be seen.
"""

from __future__ import annotations

import fcntl
import hashlib
import mmap
import os
import re
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from registry.errors import SchemadeskError

SLOTS: Final = 128
ONE: Final = 1 << 16
UNDER_WAY: Final = ONE - 1
LOW: Final = 0 if sys.byteorder == "little" else 6  # offset of the lower two bytes of a word
#: groups of responses; from the third on they are of subjects, by a hash of the name without the context
EVERYTHING, REGISTRATIONS, SUBJECTS = range(3)
#: number of subjects' groups, as in the triggers
SUBJECT_GROUPS: Final = 117
GROUPS: Final = SUBJECTS + SUBJECT_GROUPS
Groups = tuple[int, ...]
ALL: Final = (EVERYTHING,)
_REGISTERED: Final = re.compile(r"\+(?: \d{1,3})*")
MAGIC: Final = b"schemadesk gen 2"
PAGE: Final = 4096
ROW: Final = SLOTS * 8  # bytes per group
COUNTS: Final = slice(PAGE, PAGE + 2 * ROW)  # hits and misses of each slot
WORDS: Final = slice(2 * PAGE, 2 * PAGE + GROUPS * ROW)
HOST: Final = slice(16, 48)
TIMES: Final = slice(64, 64 + 5 * 8)
SIZE: Final = WORDS.stop
#: bytes of the lock file after those of the slots
OPENING, HOSTS = SLOTS, SLOTS + 1
#: on Linux, `time.monotonic` stands still while the machine is suspended
CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
#: after a commit with unknown outcome, the cache is off for this time, in which the server finishes
DOUBT_SECONDS: Final = 10.0


class NoSlot(SchemadeskError):
    """There are more processes than slots in the file."""


class Generation:
    """The file as mapped by this process; one per path and process (`generation_at`)."""

    def __init__(self, path: Path) -> None:
        """Open the file, created if needed, only for this user. Raises OSError, NoSlot."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path = path
        self._guard, self._holding = threading.Lock(), threading.Lock()
        # Never closed while the process lives: closing any descriptor of a file releases all its locks of the process.
        self._locks = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            with self.locked(OPENING):
                self._begin(descriptor)
                self._memory = mmap.mmap(descriptor, SIZE)
                self._counters = memoryview(self._memory)[WORDS].cast("Q")
                self._counts = memoryview(self._memory)[COUNTS].cast("Q")
                #: the end of the lease, when it takes effect, until when no other host has one, since and until when
                #: Valkey was seen to be away: times of `now`, which the processes of a host share
                self.times = memoryview(self._memory)[TIMES].cast("d")
                self.slot = self._claim()
                self._inode = os.fstat(descriptor).st_ino
        finally:
            os.close(descriptor)
        self.host = self._memory[HOST].decode()

    @staticmethod
    def _begin(descriptor: int) -> None:
        """Initialise a new file."""
        if os.fstat(descriptor).st_size == SIZE and os.pread(descriptor, 16, 0) == MAGIC:
            return
        os.ftruncate(descriptor, SIZE)
        os.pwrite(descriptor, (MAGIC + _host()).ljust(SIZE, b"\0"), 0)

    def _claim(self) -> int:
        """Take a free slot that wasn't left during a commit; reset the times if no other process has one."""
        free = [slot for slot in range(SLOTS) if self._try(slot)]
        usable = [slot for slot in free if not self._is_under_way(slot)]
        for slot in free:
            if slot not in usable[:1]:
                self._release(slot)
        if len(usable) == SLOTS:
            self._memory[HOST] = _host()  # the file may be copied from another host
        if len(free) == SLOTS:
            for number in range(len(self.times)):
                self.times[number] = 0.0  # they may be from before the machine started
        if not usable:
            raise NoSlot(f"{self.path} has no free slot: {SLOTS} processes use it. End some of them.")
        return usable[0]

    def _try(self, slot: int) -> bool:
        try:
            fcntl.lockf(self._locks, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, slot)
        except OSError:
            return False
        return True

    def _release(self, slot: int) -> None:
        fcntl.lockf(self._locks, fcntl.LOCK_UN, 1, slot)

    @contextmanager
    def locked(self, slot: int) -> Iterator[None]:
        """Hold a lock exclusively among the processes, and among the threads of this one."""
        with self._holding:
            fcntl.lockf(self._locks, fcntl.LOCK_EX, 1, slot)
            try:
                yield
            finally:
                self._release(slot)

    def is_in_place(self) -> bool:
        """Return whether starting processes find this file; False if it was removed."""
        try:
            return self.path.stat().st_ino == self._inode
        except OSError:
            return False

    # -- what was committed --------------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the words of all groups."""
        return self._memory[WORDS]

    def words(self, group: int) -> bytes:
        """Return the words of a group."""
        start = WORDS.start + group * ROW
        return self._memory[start : start + ROW]

    def begin(self, groups: Groups = ALL) -> None:
        """Mark the beginning of a commit that touches these groups."""
        self._add(groups, 1)

    def end(self, groups: Groups = ALL) -> None:
        """Mark its end."""
        self._add(groups, ONE - 1)

    def bump(self, groups: Groups = ALL) -> None:
        """Mark a change made elsewhere."""
        self._add(groups, ONE)

    def _add(self, groups: Groups, amount: int) -> None:
        with self._guard:
            for group in groups:
                self._counters[group * SLOTS + self.slot] += amount

    def end_later(self, groups: Groups = ALL, seconds: float = DOUBT_SECONDS) -> None:
        """Mark the end of a commit after a delay, because it may still be in progress at the server."""
        timer = threading.Timer(seconds, self.end, [groups])
        timer.daemon = True
        timer.start()

    def _is_under_way(self, slot: int) -> bool:
        return any(word & UNDER_WAY for word in self._counters[slot::SLOTS])

    def left(self) -> list[int]:
        """Return the slots of processes that ended during a commit."""
        if is_quiet(self.snapshot()):
            return []
        with self._guard:
            slots = []
            for slot in range(SLOTS):
                if slot != self.slot and self._is_under_way(slot) and self._try(slot):
                    slots.append(slot)
                    self._release(slot)
            return slots

    def sweep(self, is_over: Callable[[int], bool]) -> int:
        """End the commits of ended processes if the server has finished them too; return the number of slots."""
        swept = 0
        for slot in self.left():
            if not is_over(slot):
                continue
            with self._guard:
                if self._try(slot):  # another process may have been faster
                    if self._is_under_way(slot):
                        for place in range(slot, GROUPS * SLOTS, SLOTS):
                            if self._counters[place] & UNDER_WAY:
                                self._counters[place] = (self._counters[place] & ~UNDER_WAY) + ONE
                        swept += 1
                    self._release(slot)
        return swept

    def name_of(self, slot: int) -> str:
        """Return the application name of the database connections of a slot's process."""
        return f"schemadesk {self.host} {slot}"

    # -- how often the cache answered ----------------------------------------------------------------------------------

    def hit(self) -> None:
        """Count a hit; called in one thread of the process."""
        self._counts[2 * self.slot] += 1

    def missed(self) -> None:
        """Count a miss; called in one thread of the process."""
        self._counts[2 * self.slot + 1] += 1

    def counted(self) -> tuple[int, int]:
        """Return the hits and misses of all processes since the file was created."""
        return sum(self._counts[0::2]), sum(self._counts[1::2])


def _host() -> bytes:
    """Return a unique name for the host."""
    return secrets.token_hex(16).encode()


def words_in(snapshot: bytes, group: int) -> bytes:
    """Return the words of a group in a snapshot."""
    return snapshot[group * ROW : (group + 1) * ROW]


def is_quiet(words: bytes) -> bool:
    """Return whether no commit was in progress: the lower two bytes of each word are zero."""
    low = words[LOW::8] + words[LOW + 1 :: 8]
    return low.count(0) == len(low)


def group_of(subject: str) -> int:
    """Return the group of subjects with that name in any context; names in one group share invalidations."""
    digest = hashlib.md5(subject.encode(), usedforsecurity=False).digest()
    return SUBJECTS + int.from_bytes(digest[:4]) % SUBJECT_GROUPS


def groups_in(told: str) -> Groups:
    """Parse the triggers' message about a commit: `+ 3 15` are registrations in subjects' groups; else all groups."""
    if not _REGISTERED.fullmatch(told):
        return ALL
    numbers = {int(number) for number in told.split()[1:]}
    return ALL if max(numbers, default=0) >= SUBJECT_GROUPS else (REGISTRATIONS, *(SUBJECTS + n for n in numbers))


def now() -> float:
    """Return the clock of the times in the file; leases end while the machine is suspended too."""
    return time.clock_gettime(CLOCK)


_OPENED: Final[dict[Path, Generation]] = {}
_OPENING_HERE = threading.Lock()


def generation_at(path: Path) -> Generation:
    """Return the generation in that file; one per process, because a second one would release the first one's locks."""
    with _OPENING_HERE:
        if path not in _OPENED:
            _OPENED[path] = Generation(path)
        return _OPENED[path]


def _forget_in_child() -> None:
    """Reset the state in a forked child, which doesn't inherit locks and takes a slot of its own."""
    global _OPENING_HERE  # noqa: PLW0603 - a thread that the child doesn't have may have held it
    _OPENING_HERE = threading.Lock()
    _OPENED.clear()


os.register_at_fork(after_in_child=_forget_in_child)
