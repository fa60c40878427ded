"""One child process as its parent sees it: started by exec, limited, used through two pipes, never trusted."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from registry.formats.schema_format import loaded_paths
from registry.sandbox import codec
from registry.sandbox.child import FORMATS_VARIABLE, LENGTH_BYTES

MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a pool and of each of its children.

    `seconds` is the processor time of one job, and how long a caller waits for a free child. On a busy machine a job
    takes longer, at most `busy` times as long. `memory` is in bytes, of a child's private data. `answer` is in bytes,
    as JSON. After `jobs` jobs a child is replaced. At most `waiting` callers wait at a time. If no child is busy, the
    first one is only starting: then a caller waits up to `start` seconds.
    """

    children: int = 2
    seconds: float = 2.0
    busy: float = 5.0
    memory: int = 512 * MIB
    answer: int = 4 * MIB
    jobs: int = 200
    waiting: int = 4
    start: float = 10.0


@dataclass(slots=True)
class Allowance:
    """What is left to the jobs of one request: seconds of processor time, and of waiting for them to end."""

    processor: float
    wall: float


_ROOT: Final = Path(__file__).resolve().parent.parent.parent
#: the module that a child runs
PROGRAM: Final = "registry.sandbox.child"
_CHUNK: Final = 1 << 16
_PREFIX: Final = "schemadesk-child-"
_OLD_SECONDS: Final = 600.0
_LAST_WORDS: Final = 4_000
_STARTING_SECONDS: Final = 20.0
#: what the runtimes write when they run out of memory
_OUT_OF_MEMORY: Final = ("memory allocation", "bad_alloc", "MemoryError", "out of memory", "Cannot allocate")


def _importable() -> dict[str, str]:
    """Return the environment in which a child finds the product and any formats beside the built-in ones."""
    places = [str(_ROOT), *(sys.path if loaded_paths else ())]
    return {"PYTHONPATH": os.pathsep.join(places), FORMATS_VARIABLE: " ".join(loaded_paths)}


class ChildEnded(Exception):
    """The child ended or was killed; `limit` is "time", "memory", "processor", "answer" or "crash"."""

    def __init__(self, limit: str, detail: str = "") -> None:
        super().__init__(f"{limit}: {detail}")
        self.limit = limit
        self.detail = detail


class ChildProcess:
    """A child that does one job at a time. After ChildEnded it can't be used; `end` cleans up."""

    def __init__(self, limits: Limits, program: str = PROGRAM) -> None:
        self._limits = limits
        self.jobs = 0
        self.is_fit = True
        self._folder = tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-")
        # Its last output when it dies; bounded by its limit of file sizes.
        self._errors = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - closed by end()
        theirs_in, self._input = os.pipe()
        self._output, theirs_out = os.pipe()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-B", "-m", program]
                + [str(number) for number in (os.getpid(), limits.memory, limits.answer)],
                stdin=theirs_in,
                stdout=theirs_out,
                stderr=self._errors,
                cwd=self._folder,
                env={"TMPDIR": self._folder, "LC_ALL": "C.UTF-8", **_importable()},
                start_new_session=True,
            )
        except BaseException:
            self._close()
            raise
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        os.set_blocking(self._input, False)
        os.set_blocking(self._output, False)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def wait_until_ready(self) -> None:
        """Wait until it takes jobs. Raises ChildEnded."""
        message = self._read(time.monotonic() + _STARTING_SECONDS)
        if not isinstance(message, dict) or message.get("ready") != self.pid:
            raise ChildEnded("crash", "it did not begin as it should")

    def is_alive(self) -> bool:
        """Return whether it runs and is silent, as it must be between two jobs."""
        return self._process.poll() is None and not select.select([self._output], [], [], 0)[0]

    def ask(self, job: bytes, seconds: float) -> dict[str, Any]:
        """Send an encoded job; return the answer, within `seconds` by the clock.

        Raises ChildEnded after the child ended or was killed.
        """
        deadline = time.monotonic() + seconds
        self.jobs += 1
        self._write(len(job).to_bytes(LENGTH_BYTES, "big") + job, deadline)
        reply = self._read(deadline)
        if not isinstance(reply, dict) or not isinstance(reply.get("seconds"), float) or not reply["seconds"] >= 0:
            self._kill()
            raise ChildEnded("crash", "its answer is none")
        self.is_fit = reply.get("retire") is False and self.jobs < self._limits.jobs
        return reply

    def end(self) -> None:
        """End it and delete its files."""
        self._kill()
        self._close()

    def forget(self) -> None:
        """Release the parent's child without ending it, in a forked process."""
        self._process.returncode = 0
        for descriptor in (self._input, self._output):
            with suppress(OSError):
                os.close(descriptor)
        self._errors.close()

    def _write(self, data: bytes, deadline: float) -> None:
        view = memoryview(data)
        while view:
            self._wait_for(self._input, writing=True, deadline=deadline)
            try:
                view = view[os.write(self._input, view[:_CHUNK]) :]
            except BlockingIOError:
                continue
            except OSError:
                raise self._died() from None

    def _read(self, deadline: float) -> Any:
        size = int.from_bytes(self._exactly(LENGTH_BYTES, deadline), "big")
        # Our program replaces an answer that is too long, so only a compromised child sends one.
        if size > self._limits.answer + _CHUNK:
            self._kill()
            raise ChildEnded("answer", f"{size} bytes")
        try:
            return codec.decode(self._exactly(size, deadline))
        except codec.Unreadable as error:
            self._kill()
            raise ChildEnded("crash", f"its answer can't be read: {error}") from error

    def _exactly(self, size: int, deadline: float) -> bytes:
        data = bytearray()
        while len(data) < size:
            self._wait_for(self._output, writing=False, deadline=deadline)
            try:
                part = os.read(self._output, min(size - len(data), _CHUNK))
            except BlockingIOError:
                continue
            if not part:
                raise self._died()
            data += part
        return bytes(data)

    def _wait_for(self, descriptor: int, *, writing: bool, deadline: float) -> None:
        poll = select.poll()
        poll.register(descriptor, select.POLLOUT if writing else select.POLLIN)
        left = deadline - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            self._kill()
            raise ChildEnded("time")

    def _died(self) -> ChildEnded:
        """Return why it ended, from its status and its last output."""
        try:
            status = self._process.wait(1)
        except subprocess.TimeoutExpired:
            self._kill()
            return ChildEnded("crash", "it closed its pipe")
        self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(self._errors.tell() - _LAST_WORDS, 0))
        error_text = self._errors.read().decode("utf-8", "replace").strip()
        if status == -signal.SIGPROF:
            return ChildEnded("processor")
        if any(sign in error_text for sign in _OUT_OF_MEMORY):
            return ChildEnded("memory", error_text)
        name = signal.Signals(-status).name if status < 0 else f"status {status}"
        return ChildEnded("crash", f"{name} {error_text}".strip())

    def _kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def _close(self) -> None:
        for descriptor in (self._input, self._output):
            with suppress(OSError):
                os.close(descriptor)
        self._errors.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def sweep_folders() -> None:
    """Delete the folders of children whose parents were killed before they could."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        pid = folder.name.removeprefix(_PREFIX).partition("-")[0]
        with suppress(OSError):
            if pid.isdigit() and not _is_there(int(pid)) and time.time() - folder.stat().st_mtime > _OLD_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
