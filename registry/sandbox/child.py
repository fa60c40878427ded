"""The program of a child and its verbs: `python -m registry.sandbox.child PARENT MEMORY ANSWER`.

Reads jobs from standard input and writes answers to standard output, one at a time, each preceded by its length in four
bytes. Ends when the input does. What libraries print is discarded.

Its jobs are verbs of the engines, over schemas given as text. A verb has the arguments of the engine's method of that
name, with a `Source` for each schema.
"""

from __future__ import annotations

import ctypes
import gc
import hashlib
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from registry.errors import InvalidInput, InvalidSchema, SchemaTooCostly
from registry.formats import FORMATS, assessment, compatibility, read_modify_write, suggested_edits
from registry.formats.base import ParsedSchema
from registry.formats.policies import POLICIES, PolicyReport
from registry.formats.schema_format import SchemaFormat, load_formats
from registry.sandbox import WeighedCache, codec
from registry.sandbox.codec import Source

#: characters of text whose parsed forms a child keeps
_KEPT_CHARACTERS: Final = 4_000_000

#: methods of an engine; the first schema among the arguments names the format
ENGINE_VERBS: Final = frozenset(
    {
        "normalize",
        "diff",
        "outline",
        "self_contained",
        "judge",
        "incompatibilities",
        "truth",
        "witness",
        "example",
        "resolve",
        "repair",
        "accept_rename",
        "edit_field",
        "position",
        "tags",
        "with_tags",
        "has_top_level_field",
        "lint",
        "decode_body",
    }
)


def _assess(
    engine: SchemaFormat, new: ParsedSchema, history: compatibility.History, level: str, source: Source, **options: Any
) -> assessment.Assessment:
    """Assess a new schema; `source` is that schema unparsed, whose references its edits are parsed with."""
    return assessment.assess(
        engine, new, history, level, parse=lambda text: engine.parse(text, source.references), **options
    )


def _repairs_of(
    engine: SchemaFormat, new: ParsedSchema, history: compatibility.History, level: str, source: Source, **options: Any
) -> tuple[suggested_edits.FindingRepairs, ...]:
    """Repair the findings of a new schema; `source` is as for `_assess`."""
    return suggested_edits.repairs_of(
        engine, new, history, level, parse=lambda text: engine.parse(text, source.references), **options
    )


def _check_policy(engine: SchemaFormat, new: ParsedSchema, history: compatibility.History, policy: str) -> PolicyReport:
    return POLICIES[policy].check(new, history)


#: functions of an engine over several schemas
CHECK_VERBS: Final[Mapping[str, Callable[..., Any]]] = {
    "check": compatibility.check,
    "check_all_levels": compatibility.check_all_levels,
    "assess": _assess,
    "repairs_of": _repairs_of,
    "check_policy": _check_policy,
    "simulate_read_modify_write": read_modify_write.simulate_read_modify_write,
    "find_resets": read_modify_write.find_resets,
}

_parsed: Final = WeighedCache[ParsedSchema](_KEPT_CHARACTERS, lambda parsed: len(parsed.text))


def perform(verb: str, arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """Return the answer of a verb. Raises the engine's errors, LookupError for an unknown verb or format."""
    if verb == "parse":
        (source,) = arguments
        return _parse(source, **options)
    sources = list(_sources(arguments))
    is_lenient = bool(options.get("lenient"))
    options = {name: value for name, value in options.items() if name != "lenient"}
    engine = FORMATS[sources[0].schema_type]
    engine = engine.lenient if is_lenient else engine
    ready = [_ready(argument) for argument in arguments]
    if verb in ("assess", "repairs_of"):
        ready.append(sources[0])
    if verb in CHECK_VERBS:
        return CHECK_VERBS[verb](engine, *ready, **options)
    if verb not in {*ENGINE_VERBS, *engine.forms.values()}:
        raise LookupError(f"no verb {verb!r}")
    return getattr(engine, verb)(*ready, **options)


def forget() -> None:
    """Free what is kept between jobs."""
    _parsed.clear()


def refusal_of(error: Exception) -> InvalidInput | None:
    """Return the error that the caller should see; None for one that no engine documents."""
    if isinstance(error, InvalidInput):
        return error
    if isinstance(error, RecursionError):
        return SchemaTooCostly("the schema is nested too deep for this process: nest less")
    return None


def refusal_values(error: InvalidInput) -> dict[str, Any]:
    """Return an error as plain values, without details that aren't plain."""
    details = {name: value for name, value in error.details.items() if isinstance(value, str | int | float | bool)}
    values: dict[str, Any] = {"kind": type(error).__name__, "message": error.message, "details": details}
    if isinstance(error, InvalidSchema):
        values |= {"line": error.line, "column": error.column}
    return values


def _sources(value: Any) -> Iterator[Source]:
    """Yield the schemas among the arguments, also those in a history."""
    if isinstance(value, Source):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _sources(item)


def _ready(argument: Any) -> Any:
    if isinstance(argument, Source):
        return _parse(argument)
    if isinstance(argument, tuple):
        return tuple(_ready(item) for item in argument)
    return argument


def _parse(source: Source, is_new: bool = False) -> ParsedSchema:
    """Parse a schema, unless the cache has it. It is weighed by its own text: it keeps what it refers to in memory.

    One that isn't new was accepted once, perhaps with defaults that Avro no longer accepts.
    """

    def read() -> ParsedSchema:
        return FORMATS[source.schema_type].parse(source.text, source.references, is_new=is_new)

    return _parsed.get((source.schema_type, is_new, _digest(source)), read)


def _digest(source: Source) -> str:
    """Return what identifies a source: its text, and every reference with what it points to."""
    digest = hashlib.sha256()

    def add(*parts: object) -> None:
        for part in parts:
            data = str(part).encode("utf-8", "surrogatepass")
            digest.update(b"%d:" % len(data) + data)

    add(source.text, len(source.references))
    visited = set()
    stack = list(reversed(source.references))
    while stack:
        node = stack.pop()
        key = (node.name, node.subject, node.version, node.text)
        add(node.name, node.subject, node.version, len(node.references))
        if key not in visited:
            visited.add(key)
            add(node.text)
            stack.extend(reversed(node.references))
    return digest.hexdigest()


LENGTH_BYTES: Final = 4
#: the environment variable with the dotted paths of additional formats
FORMATS_VARIABLE: Final = "SCHEMA_FORMATS"
_PR_SET_PDEATHSIG: Final = 1
_NICENESS: Final = 5
_OPEN_FILES: Final = 64
_FILE_BYTES: Final = 64 * 1024 * 1024
#: the share of its memory that a child may have used at most to get another job
_FIT: Final = 0.5
_TRACEBACK: Final = 8_000


class _Exchange:
    """The two ends of the pipe, separate from the standard output that libraries write to."""

    def __init__(self) -> None:
        self._input, self._output = os.dup(0), os.dup(1)
        null = os.open(os.devnull, os.O_RDWR)
        for taken in (0, 1):
            os.dup2(null, taken)
        os.close(null)

    def read(self) -> bytes | None:
        """Return the next message; None if the parent is gone."""
        head = self._exactly(LENGTH_BYTES)
        return None if head is None else self._exactly(int.from_bytes(head, "big"))

    def write(self, data: bytes) -> None:
        """Send a message."""
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
    """Serve jobs until the parent is gone."""
    exchange = _Exchange()
    load_formats(os.environ.get(FORMATS_VARIABLE, "").split(), installed=False)
    _end_with(parent)
    _restrict(memory)
    gc.collect()
    gc.freeze()
    exchange.write(codec.encode({"ready": os.getpid()}))
    while (data := exchange.read()) is not None:
        exchange.write(_reply(data, memory, most_answer))
        signal.setitimer(signal.ITIMER_PROF, 0)


def _reply(data: bytes, memory: int, most_answer: int) -> bytes:
    began = time.process_time()
    try:
        job = codec.decode(data)
        # The kernel ends a process that uses more processor time, even inside a native library (SIGPROF).
        signal.setitimer(signal.ITIMER_PROF, job["seconds"])
        value = perform(job["verb"], job["arguments"], job["options"])
        reply = codec.encode({"value": value} | _state(memory, began))
    except MemoryError:
        # The exception's frames are gone, and their objects with them, so there is room for a short answer.
        forget()
        return codec.encode({"limit": "memory"} | _state(memory, began) | {"retire": True})
    except Exception as error:  # noqa: BLE001 - sent to the parent, which raises it
        return codec.encode(_failure(error) | _state(memory, began))
    if len(reply) > most_answer:
        return codec.encode({"limit": "answer", "value": len(reply)} | _state(memory, began))
    return reply


def _failure(error: Exception) -> dict[str, Any]:
    refusal = refusal_of(error)
    if refusal is not None:
        return {"refusal": refusal_values(refusal)}
    return {"failure": "".join(traceback.format_exception(error))[-_TRACEBACK:]}


def _state(memory: int, began: float) -> dict[str, Any]:
    """Return the job's processor time, and whether this process has grown so much that the next job needs a new one."""
    return {"retire": _peak() > memory * _FIT, "seconds": time.process_time() - began}


def _peak() -> int:
    """Return the peak memory of this program, in bytes."""
    if sys.platform == "linux":
        # ru_maxrss starts with the parent's value: a large server would never keep a child.
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _end_with(parent: int) -> None:
    """Make the kernel end this process with its parent, even during a job.

    Only on Linux; elsewhere the limit of processor time ends it later.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("the parent ended before its child began")


def _restrict(memory: int) -> None:
    os.nice(_NICENESS)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its children
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    # macOS accepts these limits but doesn't enforce them; there only the time limit ends what grows.
    kinds = [(resource.RLIMIT_DATA, memory), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, _FILE_BYTES)]
    for kind, amount in [*kinds, (resource.RLIMIT_NOFILE, _OPEN_FILES)]:
        _, hard = resource.getrlimit(kind)
        limit = amount if hard == resource.RLIM_INFINITY else min(amount, hard)
        try:
            resource.setrlimit(kind, (limit, limit))
        except (ValueError, OSError):
            if sys.platform == "linux":
                raise


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
