"""The program of a child: `python -m registry.sandbox.child PARENT MEMORY ANSWER`.

Reads jobs from its standard input and writes answers to its standard output, one at a time, each with its length in
four bytes before it. Ends when the input does. Anything that a library prints goes nowhere.
"""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import signal
import sys
import traceback
from pathlib import Path
from typing import Any, Final

from registry.formats.schema_format import load_formats
from registry.sandbox import codec, jobs

LENGTH_BYTES: Final = 4
#: the variable of the environment with the dotted paths of further formats
FORMATS_VARIABLE: Final = "SCHEMA_FORMATS"
_PR_SET_PDEATHSIG: Final = 1
_NICENESS: Final = 5
_OPEN_FILES: Final = 64
_FILE_BYTES: Final = 64 * 1024 * 1024
#: of its memory, what a child may have used at most to be given another job
_FIT: Final = 0.5
_TRACEBACK: Final = 8_000


class _Exchange:
    """The two ends of the pipe, out of reach of what libraries write to standard output."""

    def __init__(self) -> None:
        self._input, self._output = os.dup(0), os.dup(1)
        null = os.open(os.devnull, os.O_RDWR)
        for taken in (0, 1):
            os.dup2(null, taken)
        os.close(null)

    def read(self) -> bytes | None:
        """The next message, None when the parent is gone."""
        head = self._exactly(LENGTH_BYTES)
        return None if head is None else self._exactly(int.from_bytes(head, "big"))

    def write(self, data: bytes) -> None:
        """Sends a message."""
        view = memoryview(len(data).to_bytes(LENGTH_BYTES, "big") + data)
        while view:
            view = view[os.write(self._output, view) :]

    def _exactly(self, size: int) -> bytes | None:
        data = bytearray()
        while len(data) < size:
            part = os.read(self._input, min(size - len(data), 1 << 20))
            if not part:
                return None
            data += part
        return bytes(data)


def main(parent: int, memory: int, most_answer: int) -> None:
    """Serves jobs until the parent is gone."""
    exchange = _Exchange()
    load_formats(os.environ.get(FORMATS_VARIABLE, "").split(), installed=False)
    _end_with(parent)
    _restrict(memory)
    gc.collect()
    gc.freeze()
    exchange.write(codec.encode({"ready": os.getpid()}))
    while (data := exchange.read()) is not None:
        exchange.write(_reply(data, memory, most_answer))


def _reply(data: bytes, memory: int, most_answer: int) -> bytes:
    try:
        job = codec.decode(data)
        _limit_processor(job["seconds"])
        reply = codec.encode({"value": jobs.perform(job["verb"], job["arguments"], job["options"])} | _fitness(memory))
    except MemoryError:
        # What was made is freed with the frames that the exception held; there is room for a short answer again.
        jobs.forget()
        return codec.encode({"limit": "memory", "retire": True})
    except Exception as error:  # noqa: BLE001 - told to the parent, which raises it
        return codec.encode(_failure(error) | _fitness(memory))
    if len(reply) > most_answer:
        return codec.encode({"limit": "answer", "value": len(reply)} | _fitness(memory))
    return reply


def _failure(error: Exception) -> dict[str, Any]:
    refusal = jobs.refusal_of(error)
    if refusal is not None:
        return {"refusal": jobs.refusal_values(refusal)}
    return {"failure": "".join(traceback.format_exception(error))[-_TRACEBACK:]}


def _fitness(memory: int) -> dict[str, Any]:
    """Whether this process has grown so much that the next job should get a fresh one."""
    return {"retire": _peak() > memory * _FIT}


def _peak() -> int:
    """The most memory that this program has had, in bytes."""
    if sys.platform == "linux":
        # ru_maxrss begins with what the parent had: a large server would never keep a child.
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _end_with(parent: int) -> None:
    """Has the kernel end this process with its parent, even amid a job; elsewhere the processor limit does it later."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("the parent ended before its child began")


def _restrict(memory: int) -> None:
    os.nice(_NICENESS)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its children
    # macOS takes these limits and doesn't hold them; there the time limit alone ends what grows.
    kinds = [(resource.RLIMIT_DATA, memory), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, _FILE_BYTES)]
    for kind, amount in [*kinds, (resource.RLIMIT_NOFILE, _OPEN_FILES)]:
        _, hard = resource.getrlimit(kind)
        limit = amount if hard == resource.RLIM_INFINITY else min(amount, hard)
        try:
            resource.setrlimit(kind, (limit, limit))
        except (ValueError, OSError):
            if sys.platform == "linux":
                raise


def _limit_processor(seconds: int) -> None:
    """From now on so much processor time; the kernel ends what uses more (SIGXCPU)."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = int(used.ru_utime + used.ru_stime) + 1 + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
