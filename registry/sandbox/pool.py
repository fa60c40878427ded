"""A pool of children: each has one job at a time, is replaced when it dies, and isn't left behind.

One thread, the keeper, starts all children: the kernel ends a child with the thread that started it, and a thread that
serves a request may end at any time. A forked process has no children; it starts its own when it needs them.
"""

from __future__ import annotations

import atexit
import math
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

from registry import errors
from registry.errors import InvalidInput, InvalidSchema, SchemaTooCostly, Unavailable
from registry.sandbox import codec
from registry.sandbox.process import MIB, PROGRAM, Allowance, ChildEnded, ChildProcess, Limits, sweep_folders

_RETRY_SECONDS: Final = 1.0
#: the errors that a child's reply may raise in its caller, by name
_REFUSALS: Final[Mapping[str, type[InvalidInput]]] = {
    kind.__name__: kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, InvalidInput)
}


class EngineFailed(RuntimeError):
    """An undocumented error of an engine in a child: a bug of the product; the message is its traceback."""


class Pool:
    """Children that read and compare costly schemas. Thread-safe; the first job or `start` starts them."""

    def __init__(self, limits: Limits | None = None, program: str = PROGRAM) -> None:
        self.limits = limits or Limits()
        self._program = program
        self._reset()
        _POOLS.add(self)

    def _reset(self) -> None:
        self._change = threading.Condition()
        self._idle: list[ChildProcess] = []
        self._busy: set[ChildProcess] = set()
        self._turns: deque[object] = deque()
        self._keeper: threading.Thread | None = None
        self._is_closed = False
        self._fault = ""

    def start(self) -> None:
        """Begin to start the children, and return immediately."""
        with self._change:
            self._keep()

    def close(self) -> None:
        """End all children, also busy ones. The pool can be started again."""
        with self._change:
            self._is_closed = True
            self._change.notify_all()
            keeper = self._keeper
        if keeper is not None and keeper is not threading.current_thread():
            keeper.join()
        with self._change:
            for child in [*self._idle, *self._busy]:
                child.end()
            self._reset_after_close()

    def _reset_after_close(self) -> None:
        self._idle, self._keeper, self._is_closed = [], None, False
        self._busy.clear()

    @property
    def pids(self) -> tuple[int, ...]:
        """The process ids of the idle and busy children."""
        with self._change:
            return tuple(child.pid for child in [*self._idle, *self._busy])

    def run(
        self,
        verb: str,
        arguments: Sequence[Any],
        options: Mapping[str, Any] | None = None,
        *,
        about: str = "the schema",
        allowance: Allowance | None = None,
    ) -> Any:
        """Return the answer of a verb of `registry.sandbox.child`.

        `about` names the schema in errors; `allowance` is what is left to the request, and is reduced by this job.
        Raises the engine's own errors, SchemaTooCostly if a limit was reached, Unavailable if all children stay busy
        or the machine is too busy for the job, and EngineFailed for a bug of the engine.
        """
        left = allowance or self.allowance()
        if left.wall <= 0:
            raise self._ended(ChildEnded("time"), about)
        values = {"verb": verb, "arguments": list(arguments), "options": dict(options or {})}
        job = codec.encode({**values, "seconds": left.processor})
        child = self._take()
        began = time.monotonic()
        used = math.inf
        try:
            reply = child.ask(job, left.wall)
            used = reply["seconds"]
        except ChildEnded as end:
            raise self._ended(end, about) from None
        finally:
            took = time.monotonic() - began
            left.wall -= took
            left.processor -= min(max(used, 0.0), took)  # of one that ended, nobody knows it
            self._give_back(child)
        return self._value(reply, about)

    def allowance(self) -> Allowance:
        """Return what the jobs of one request may use together."""
        return Allowance(self.limits.seconds, self.limits.seconds * self.limits.busy)

    def _value(self, reply: Mapping[str, Any], about: str) -> Any:
        if "refusal" in reply:
            raise _refusal(reply["refusal"])
        if "failure" in reply:
            raise EngineFailed(str(reply["failure"]))
        if "limit" in reply:
            raise self._ended(ChildEnded(str(reply["limit"]), str(reply.get("value", ""))), about)
        return reply["value"]

    # -- whose turn it is ---------------------------------------------------------------------------------------------

    def _take(self) -> ChildProcess:
        """Return a live child for this caller alone; first come, first served. Raises Unavailable."""
        began = time.monotonic()
        turn = object()
        with self._change:
            if len(self._turns) >= self.limits.waiting:
                raise self._all_busy(waiting=len(self._turns))
            self._keep()
            self._turns.append(turn)
            try:
                while self._turns[0] is not turn or (child := self._next_idle()) is None:
                    patience = self.limits.seconds if self._busy else self.limits.start
                    left = began + patience - time.monotonic()
                    if not self._busy and not self._idle and (self._fault or left <= 0):
                        raise self._none_runs(patience)
                    if left <= 0:
                        raise self._all_busy(patience=patience)
                    self._change.wait(left)
            finally:
                self._turns.remove(turn)
                self._change.notify_all()
            self._busy.add(child)
            return child

    def _next_idle(self) -> ChildProcess | None:
        while self._idle:
            child = self._idle.pop()
            if child.is_alive():
                return child
            child.end()
            self._change.notify_all()  # the keeper starts another
        return None

    def _give_back(self, child: ChildProcess) -> None:
        is_useful = child.is_fit and child.is_alive()
        if not is_useful:
            child.end()
        with self._change:
            if child in self._busy:  # not closed meanwhile
                self._busy.discard(child)
                if is_useful:
                    self._idle.append(child)
            self._change.notify_all()

    def _all_busy(self, *, waiting: int = 0, patience: float = 0) -> Unavailable:
        count = self.limits.children
        is_one = count == 1
        those = "The process that reads" if is_one else f"All {count} processes that read"
        if waiting:
            requests = "1 other request waits" if waiting == 1 else f"{waiting} other requests wait"
            more = f"and {requests} for {'it' if is_one else 'them'} already"
        else:
            more = f"and {'did not become' if is_one else 'none of them became'} free within {patience:g} s"
        what = f"{those} costly schemas {'is' if is_one else 'are'} busy, {more}."
        return self._ask_again(what, math.ceil(self.limits.seconds))

    def _none_runs(self, seconds: float) -> Unavailable:
        why = f"it could not be started ({self._fault})" if self._fault else f"it did not start within {seconds:g} s"
        return self._ask_again(f"No process that reads costly schemas runs: {why}.", math.ceil(self.limits.start))

    def _ask_again(self, what: str, seconds: int) -> Unavailable:
        """Return an error that says what happened and when to retry, as a sentence and for the header Retry-After."""
        unit = "second" if seconds == 1 else "seconds"
        cure = f"The server did not read the schema. Send the request again in {seconds} {unit}."
        return Unavailable(f"{what} {cure}", retry_after=seconds)

    # -- the keeper ---------------------------------------------------------------------------------------------------

    def _keep(self) -> None:
        if self._keeper is None or not self._keeper.is_alive():
            self._keeper = threading.Thread(target=self._keep_full, name="schema-children", daemon=True)
            self._keeper.start()

    def _keep_full(self) -> None:
        """Start a child whenever one is missing, until the pool is closed."""
        sweep_folders()
        while True:
            with self._change:
                while not self._is_closed and len(self._idle) + len(self._busy) >= self.limits.children:
                    self._change.wait()
                if self._is_closed:
                    return
            child = self._started()
            with self._change:
                if child is not None:
                    self._idle.append(child)
                    self._change.notify_all()
                elif not self._is_closed:
                    self._change.wait(_RETRY_SECONDS)

    def _started(self) -> ChildProcess | None:
        """Return a new child that is ready; None, with the reason stored for callers, if it can't be started."""
        try:
            child = ChildProcess(self.limits, self._program)
        except OSError as error:
            self._fault = error.strerror or type(error).__name__
            return None
        try:
            child.wait_until_ready()
        except ChildEnded as error:
            child.end()
            self._fault = _FAULTS.get(error.limit, _FAULTS["crash"]).format(detail=error.detail[:200])
            return None
        self._fault = ""
        return child

    def forget(self) -> None:
        """Forget the children in a forked process: they are the parent's."""
        inherited = [*self._idle, *self._busy]
        self._reset()
        for child in inherited:
            child.forget()

    def _ended(self, end: ChildEnded, about: str) -> SchemaTooCostly | Unavailable:
        if end.limit == "time":
            wall = self.limits.seconds * self.limits.busy
            what = f"Reading and comparing {about} didn't end within {wall:.2g} s, because the server is too busy."
            return self._ask_again(what, math.ceil(self.limits.seconds))
        sentence = _MET.get(end.limit, _MET["crash"]).format(
            about=about,
            seconds=self.limits.seconds,
            memory=self.limits.memory // MIB,
            answer=self.limits.answer // MIB,
            detail=end.detail[:200],
        )
        return SchemaTooCostly(f"{sentence} {_CURE}", limit=end.limit)


#: why a child ended before it was ready
_FAULTS: Final[Mapping[str, str]] = {
    "time": "it was not ready in time",
    "memory": "it took more memory than it may",
    "processor": "it took more processor time than it may",
    "crash": "it ended: {detail}",
}
_CURE: Final = "Use fewer alternatives, less nesting or smaller schemas."
_MET: Final[Mapping[str, str]] = {
    "processor": "Reading and comparing {about} takes more than {seconds:.2g} s of processor time, which is the limit.",
    "memory": "Reading or comparing {about} takes more than {memory} MiB of memory, which is the limit.",
    "answer": "The result for {about} takes more than {answer} MiB, which is the limit.",
    "crash": "The process that read or compared {about} ended within its limits of {memory} MiB and {seconds:.2g} s"
    " ({detail}).",
}


def _refusal(values: Mapping[str, Any]) -> InvalidInput:
    kind = _REFUSALS[values["kind"]]
    details = {
        str(name): value for name, value in values["details"].items() if name not in ("message", "line", "column")
    }
    if issubclass(kind, InvalidSchema):
        return kind(str(values["message"]), line=values["line"], column=values["column"], **details)
    return kind(str(values["message"]), **details)


_POOLS: Final[weakref.WeakSet[Pool]] = weakref.WeakSet()


def _after_fork() -> None:
    for pool in list(_POOLS):
        pool.forget()


def _close_all() -> None:
    for pool in list(_POOLS):
        pool.close()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_close_all)
