"""A child whose verbs do what hostile schemas make parsers do; run as a program by a pool under test."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from registry.formats.base import Edit
from registry.sandbox import child


def allocate(mebibytes: int) -> int:
    """Python's own memory."""
    return len(bytearray(mebibytes * 1024 * 1024))


def allocate_in_rust(blocks: int) -> str:
    """The blow-up of a JSON Schema's alternatives inside a native library, the interpreter's lock held."""
    import jsonschema_rs

    return str(jsonschema_rs.canonicalize(exploding(blocks)))


def spin() -> None:
    while True:
        pass


def burn(seconds: float) -> float:
    """Use so much processor time."""
    began = time.process_time()
    while time.process_time() - began < seconds:
        pass
    return seconds


def sleep(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def die(name: str) -> None:
    os.kill(os.getpid(), signal.Signals[name])


def leave(words: str) -> None:
    os.write(2, words.encode())
    os._exit(3)


def chatter() -> str:
    """Writes where a C library's printf would."""
    os.write(1, b"x" * 100)
    print("y" * 100, flush=True)
    return "said"


def forge() -> str:
    """What code that took the child over could do: write its own bytes into the pipe, found by its kind."""
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, (5).to_bytes(4, "big") + b"\x80\x05N.x")
        except OSError:
            continue
    return "forged"


def big(size: int) -> str:
    return "x" * size


def environment() -> dict[str, Any]:
    descriptors = sorted(int(link.name) for link in Path("/proc/self/fd").iterdir()) if sys.platform == "linux" else []
    return {"environment": dict(os.environ), "descriptors": descriptors, "folder": str(Path.cwd()), "pid": os.getpid()}


def echo(value: Any) -> Any:
    return value


def fault() -> None:
    raise ZeroDivisionError("an engine's fault")


def strange() -> object:
    return Edit


def exploding(blocks: int) -> dict[str, Any]:
    """A few hundred characters that take a checker seconds and a gigabyte."""
    one = [{"properties": {f"{name}{{}}": {"type": "string"}}} for name in "pq"]
    text = [[{"properties": {key.format(i): value for key, value in item["properties"].items()}} for item in one]
            for i in range(blocks)]  # fmt: skip
    return {"allOf": [{"anyOf": members} for members in text]}


BOMBS: dict[str, Callable[..., Any]] = {
    bomb.__name__: bomb
    for bomb in (
        allocate, allocate_in_rust, spin, burn, sleep, die, leave, chatter, forge, big, environment, echo, fault, strange,
    )
}  # fmt: skip
_real = child.perform


def perform(verb: str, arguments: list[Any], options: dict[str, Any]) -> Any:
    """A bomb, or the engines' verb."""
    return BOMBS[verb](*arguments) if verb in BOMBS else _real(verb, arguments, options)


if __name__ == "__main__":
    child.perform = perform  # type: ignore[assignment]
    child.main(*map(int, sys.argv[1:4]))
