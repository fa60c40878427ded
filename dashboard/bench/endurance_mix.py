"""The mixed load: what is asked how often, as the load generator takes it, and what it tells while it runs."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from django.urls import reverse

from dashboard.bench import endurance_load
from dashboard.bench.endurance_load import GROUP
from dashboard.bench.registry_calls import DataSet, Operation
from dashboard.bench.registry_client import CONTENT_TYPE, Call, Target
from dashboard.bench.registry_load import SERIAL
from registry.errors import RemoteUnavailable

#: of a hundred requests, so many are of each kind: programs read far more than they write, and people look at pages
SHARES: Final = {
    "schema by id": 50,
    "latest": 15,
    "version": 8,
    "look-up": 9,
    "re-register": 6,
    "compatibility check": 4,
    "register new": 3,
    "list": 1,
    "page": 4,
}
OTHER: Final = 0.5  # any other kind  # fmt: skip
TURN: Final = 2_000  # requests after which the mix begins anew


@dataclass(frozen=True, slots=True)
class Kind:
    """What is counted together: its name, its requests as they go over the wire, and how many of a hundred are its."""

    name: str
    requests: Sequence[str]
    share: float


def kinds_of(target: Target, operations: Sequence[Operation], pages: Mapping[str, str], cookie: str) -> list[Kind]:
    """The kinds of a mix: operations of the registry, and pages (name → address) with a session's cookie."""
    found = []
    for operation in operations:
        name = "list" if operation.name.startswith("list of ") else operation.name
        found.append(Kind(operation.name, [_raw(target, call) for call in operation.calls], SHARES.get(name, OTHER)))
    share = SHARES["page"] / max(1, len(pages))
    return found + [Kind(name, [raw_page(target, address, cookie)], share) for name, address in pages.items()]


def _raw(target: Target, call: Call) -> str:
    """The product's own API speaks plain JSON alone."""
    raw = target.raw(call)
    return raw.replace(CONTENT_TYPE, "application/json") if call.path.startswith("/api/") else raw


def raw_page(target: Target, address: str, cookie: str) -> str:
    """The request of a page as it goes over the wire."""
    head = [f"GET {address} HTTP/1.1", f"Host: {urlsplit(target.url).netloc}", "Accept: text/html", f"Cookie: {cookie}"]
    return "\r\n".join([*head, "", ""])


def mixed(kinds: Sequence[Kind]) -> list[tuple[int, str]]:
    """The requests in the order in which they are sent, with the numbers of their kinds: each kind has its share."""
    rng = random.Random(1)  # noqa: S311  no secret
    total = sum(kind.share for kind in kinds)
    found: list[tuple[int, str]] = []
    for number, kind in enumerate(kinds):
        count = max(1, round(TURN * kind.share / total))
        found += [(number, kind.requests[place % len(kind.requests)]) for place in range(count)]
    rng.shuffle(found)
    return found


def registrations(data: DataSet) -> Operation:
    """New versions under subjects that get 64 each: a subject of thousands is measured by nobody who has one."""
    name = f"{data.prefix}g-{GROUP.decode()}"
    text = data.text(name, 0, f"added_{SERIAL.decode()}")
    return Operation("register new", [Call("POST", f"/subjects/{name}/versions", {"schema": text})])


def pages_of(registry: str, subject: str, word: str) -> dict[str, str]:
    """The pages that people look at, by name."""
    place = {"registry": registry, "subject": subject}
    return {
        "page: subjects": reverse("ui:subjects", kwargs={"registry": registry}),
        "page: search": f"{reverse('ui:search')}?q={word}",
        "page: subject": reverse("ui:subject", kwargs=place),
        "page: board": reverse("ui:environments"),
        "page: compare": f"{reverse('ui:compare', kwargs=place)}?from=1&to=2",
    }


# -- running it ---------------------------------------------------------------------------------------------------------


def stream(
    name: str, requests: Sequence[tuple[int, str]], *, rate: float, lanes: int, pinned: bool = False
) -> dict[str, Any]:
    """A stream as the load generator is told; rate 0 is as fast as it goes."""
    return {"name": name, "requests": requests, "rate": rate, "lanes": lanes, "pinned": pinned}


def lines(
    targets: Sequence[Target], streams: Sequence[Mapping[str, Any]], *, seconds: float, serial: int
) -> Iterator[dict[str, Any]]:
    """What the load generator tells, second by second. Raises RemoteUnavailable where it ends before it is over."""
    job = {
        "servers": [target.address[:2] for target in targets],
        "streams": streams,
        "seconds": seconds,
        "serial": serial,
    }
    process = subprocess.Popen(
        [sys.executable, "-I", str(Path(endurance_load.__file__))],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8",
    )  # fmt: skip
    with process:
        try:
            assert process.stdin is not None and process.stdout is not None
            with closing(process.stdin):
                process.stdin.write(json.dumps(job) + "\n")
            for line in process.stdout:
                told = json.loads(line)
                if told.get("over"):
                    return
                yield told
        finally:
            process.kill()
    raise RemoteUnavailable("The load generator ended before the load was over.")


def at_most(targets: Sequence[Target], requests: Sequence[tuple[int, str]], *, lanes: int, seconds: float, serial: int,
            note: Callable[[Mapping[str, Any]], None]) -> float:  # fmt: skip
    """How many requests a second are answered at most; the first third of the time isn't counted.

    `note` is given each line. Raises RemoteUnavailable where nothing is answered.
    """
    answered, last = 0, 0.0
    began: float | None = None
    for told in lines(targets, [stream("mix", requests, rate=0.0, lanes=lanes)], seconds=seconds, serial=serial):
        note(told)
        if told["at"] - told["began"] < seconds / 3:
            began = told["at"]
            continue
        began = told["began"] if began is None else began
        answered, last = answered + len(told["streams"]["mix"]["taken"]), told["at"]
    if began is None or not answered:
        raise RemoteUnavailable("No request of the mixed load was answered.")
    return answered / (last - began)
