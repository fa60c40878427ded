"""The generation of what answers depend on, in memory that the processes of one host share.

A small file, mapped by every process. Each has a slot in it, held by a lock on a byte of a second file, which ends with
the process however that ends. A slot has one word for each group of answers: its lower sixteen bits count the commits
of that process that are under way, the bits above them those that have ended. A commit changes the words of the groups
that it touches before it begins and again when it is over, and no value ever comes back. So whoever finds the words of
a group as they were has seen that nothing was committed in between that touches it, and an answer made while nothing
was under way is right for exactly as long as the words of its groups stay so.

A registration touches its subject's group, and that of the answers that don't say which subjects they are about. Every
other commit touches `EVERYTHING`, which each answer depends on (registry/audit/triggers.py tells which is which).

A word is eight bytes at an address that eight divides, written in one piece; the words need not be read at one moment,
as each alone tells of a commit before it can be seen.
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
LOW: Final = 0 if sys.byteorder == "little" else 6  # where the lower two bytes of a word are
#: groups of answers; the third and those after it are of subjects, by a hash of their names without the context
EVERYTHING, REGISTRATIONS, SUBJECTS = range(3)
#: how many groups subjects have, as the triggers count them
SUBJECT_GROUPS: Final = 117
GROUPS: Final = SUBJECTS + SUBJECT_GROUPS
Groups = tuple[int, ...]
ALL: Final = (EVERYTHING,)
_REGISTERED: Final = re.compile(r"\+(?: \d{1,3})*")
MAGIC: Final = b"schemadesk gen 2"
PAGE: Final = 4096
ROW: Final = SLOTS * 8  # bytes of a group
COUNTS: Final = slice(PAGE, PAGE + 2 * ROW)  # hits and misses of each slot
WORDS: Final = slice(2 * PAGE, 2 * PAGE + GROUPS * ROW)
HOST: Final = slice(16, 48)
TIMES: Final = slice(64, 64 + 5 * 8)
SIZE: Final = WORDS.stop
#: bytes of the lock file behind those of the slots
OPENING, HOSTS = SLOTS, SLOTS + 1
#: a commit whose outcome nobody told: the cache is off for so long, in which the server ends what it was at
DOUBT_SECONDS: Final = 10.0


class NoSlot(SchemadeskError):
    """More processes than the file has slots for."""


class Generation:
    """The file as this process sees it; one for a path and process (`generation_at`)."""

    def __init__(self, path: Path) -> None:
        """Open the file, made if needed, for this user alone. Raises OSError, NoSlot."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path = path
        self._guard, self._holding = threading.Lock(), threading.Lock()
        # Never closed while the process lives: closing any descriptor of a file ends all its locks of the process.
        self._locks = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            with self.locked(OPENING):
                self._begin(descriptor)
                self._memory = mmap.mmap(descriptor, SIZE)
                self._counters = memoryview(self._memory)[WORDS].cast("Q")
                self._counts = memoryview(self._memory)[COUNTS].cast("Q")
                #: when the lease ends, from when on it counts, until when no other host has one, since when and until
                #: when Valkey was seen to be away: of the clock `time.monotonic`, which the processes of a host share
                self.times = memoryview(self._memory)[TIMES].cast("d")
                self.slot = self._claim()
                self._inode = os.fstat(descriptor).st_ino
        finally:
            os.close(descriptor)
        self.host = self._memory[HOST].decode()

    @staticmethod
    def _begin(descriptor: int) -> None:
        """Fill a fresh file."""
        if os.fstat(descriptor).st_size == SIZE and os.pread(descriptor, 16, 0) == MAGIC:
            return
        os.ftruncate(descriptor, SIZE)
        os.pwrite(descriptor, (MAGIC + _host()).ljust(SIZE, b"\0"), 0)

    def _claim(self) -> int:
        """A free slot, not one that was left in the middle of a commit. Whoever is alone forgets what times there are."""
        free = [slot for slot in range(SLOTS) if self._try(slot)]
        usable = [slot for slot in free if not self._is_under_way(slot)]
        for slot in free:
            if slot not in usable[:1]:
                self._release(slot)
        if len(usable) == SLOTS:
            self._memory[HOST] = _host()  # the file may be a copy of another host's
        if len(free) == SLOTS:
            for number in range(len(self.times)):
                self.times[number] = 0.0  # perhaps of before the machine was started
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
        """Alone among the processes, and the threads of this one."""
        with self._holding:
            fcntl.lockf(self._locks, fcntl.LOCK_EX, 1, slot)
            try:
                yield
            finally:
                self._release(slot)

    def is_in_place(self) -> bool:
        """Whether processes that start now find this file; not if somebody removed it."""
        try:
            return self.path.stat().st_ino == self._inode
        except OSError:
            return False

    # -- what was committed --------------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """The words of all groups."""
        return self._memory[WORDS]

    def words(self, group: int) -> bytes:
        """The words of a group."""
        start = WORDS.start + group * ROW
        return self._memory[start : start + ROW]

    def begin(self, groups: Groups = ALL) -> None:
        """A commit that touches these groups is about to begin."""
        self._add(groups, 1)

    def end(self, groups: Groups = ALL) -> None:
        """It is over."""
        self._add(groups, ONE - 1)

    def bump(self, groups: Groups = ALL) -> None:
        """Something has changed, wherever that was."""
        self._add(groups, ONE)

    def _add(self, groups: Groups, amount: int) -> None:
        with self._guard:
            for group in groups:
                self._counters[group * SLOTS + self.slot] += amount

    def end_later(self, groups: Groups = ALL, seconds: float = DOUBT_SECONDS) -> None:
        """The commit may still be under way at the server."""
        timer = threading.Timer(seconds, self.end, [groups])
        timer.daemon = True
        timer.start()

    def _is_under_way(self, slot: int) -> bool:
        return any(word & UNDER_WAY for word in self._counters[slot::SLOTS])

    def left(self) -> list[int]:
        """The slots of processes that ended in the middle of a commit."""
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
        """End the commits of processes that are gone, where the server is done with them too; gives how many slots."""
        swept = 0
        for slot in self.left():
            if not is_over(slot):
                continue
            with self._guard:
                if self._try(slot):  # another process may have been quicker
                    if self._is_under_way(slot):
                        for place in range(slot, GROUPS * SLOTS, SLOTS):
                            if self._counters[place] & UNDER_WAY:
                                self._counters[place] = (self._counters[place] & ~UNDER_WAY) + ONE
                        swept += 1
                    self._release(slot)
        return swept

    def name_of(self, slot: int) -> str:
        """What the database connections of the process in a slot are called."""
        return f"schemadesk {self.host} {slot}"

    # -- how often the cache answered ----------------------------------------------------------------------------------

    def hit(self) -> None:
        """One more; called in one thread of the process."""
        self._counts[2 * self.slot] += 1

    def missed(self) -> None:
        """One more; called in one thread of the process."""
        self._counts[2 * self.slot + 1] += 1

    def counted(self) -> tuple[int, int]:
        """Hits and misses of all processes since the file was made."""
        return sum(self._counts[0::2]), sum(self._counts[1::2])


def _host() -> bytes:
    """A name for the host, which nobody else has."""
    return secrets.token_hex(16).encode()


def words_in(snapshot: bytes, group: int) -> bytes:
    """The words of a group in a snapshot."""
    return snapshot[group * ROW : (group + 1) * ROW]


def is_quiet(words: bytes) -> bool:
    """Whether no commit was under way: the lower two bytes of each word are zero."""
    low = words[LOW::8] + words[LOW + 1 :: 8]
    return low.count(0) == len(low)


def group_of(subject: str) -> int:
    """The group of the subjects of that name in any context; two names may share one, and then end each other's answers."""
    digest = hashlib.md5(subject.encode(), usedforsecurity=False).digest()
    return SUBJECTS + int.from_bytes(digest[:4]) % SUBJECT_GROUPS


def groups_in(told: str) -> Groups:
    """What the triggers say of a commit: `+ 3 15` of registrations, by numbers of subjects' groups; else all."""
    if not _REGISTERED.fullmatch(told):
        return ALL
    numbers = {int(number) for number in told.split()[1:]}
    return ALL if max(numbers, default=0) >= SUBJECT_GROUPS else (REGISTRATIONS, *(SUBJECTS + n for n in numbers))


def now() -> float:
    """The clock of the times in the file."""
    return time.monotonic()


_OPENED: Final[dict[Path, Generation]] = {}
_OPENING_HERE = threading.Lock()


def generation_at(path: Path) -> Generation:
    """The generation in that file; one a process, as a second one would take the first one's locks away."""
    with _OPENING_HERE:
        if path not in _OPENED:
            _OPENED[path] = Generation(path)
        return _OPENED[path]


def _forget_in_child() -> None:
    """A forked child has none of its parent's locks: it takes a slot of its own."""
    global _OPENING_HERE  # noqa: PLW0603 - it may have been held by a thread that the child doesn't have
    _OPENING_HERE = threading.Lock()
    _OPENED.clear()


os.register_at_fork(after_in_child=_forget_in_child)
