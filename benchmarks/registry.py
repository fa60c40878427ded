"""How quick a registry answers what clients ask all day, and the CPU time that it takes for it.

Any registry that speaks Confluent's API can be measured, also two beside each other in one run. The requests come from
a process of its own (`registry_load`); the server's CPU time is the operating system's count of its processes.
"""

from __future__ import annotations

import json
import os
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from benchmarks import site
from benchmarks.engines import milliseconds
from benchmarks.measurement import machine
from benchmarks.registry_calls import EACH, FIRST_SERIAL, GOAL_CONNECTIONS, HOT, DataSet, Operation
from benchmarks.registry_client import (
    Call,
    Measured,
    Target,
    Writer,
    ask,
    ask_all,
    basic,
    bearer,
    cpu_of,
    load,
    server_pids,
)
from registry.errors import InvalidInput, RemoteUnavailable

LARGE: Final = 100_000
ACCESS: Final = {401: "asks who is there", 403: "asks who is there", 200: "answers everybody"}
MOST_CONNECTIONS: Final = 512
ONLY_WITH_URL: Final = ("server_pid", "database_pid", "token_from", "user")
AT_ITS_LIMIT: Final = 0.9  # of one processor: then the load generator is what is measured
HEAD: Final = (
    "registry", "what", "condition", "connections", "a second", "p50", "p99", "CPU ms", "database's", "goal", "generator"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Condition:
    """Under which an operation is measured: whether no cache knows the requests, and registrations a second beside it."""

    name: str
    is_fresh: bool = False
    registrations: float = 0.0


CACHED: Final = Condition("cached")
UNCACHED: Final = Condition("uncached", is_fresh=True)
CONDITIONS: Final = (
    CACHED,
    UNCACHED,
    Condition("writes-1", registrations=1),
    Condition("writes-5", registrations=5),
)


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured: seconds of each row, how many connections at a time, and subjects that are listed.

    `large` more subjects are listed besides, where it isn't 0; `keep` leaves the data set where it is.
    """

    seconds: float = 5.0
    connections: tuple[int, ...] = (1, GOAL_CONNECTIONS)
    subjects: int = 1_000
    large: int = 0
    keep: bool = False
    conditions: tuple[Condition, ...] = CONDITIONS


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement. The CPU seconds are those of a request, None where nobody knows them."""

    target: str
    what: str
    condition: str
    connections: int
    measured: Measured
    cpu: float | None = None
    database_cpu: float | None = None
    goal: float | None = None


# -- what was asked for -------------------------------------------------------------------------------------------------


def add_arguments(parser: ArgumentParser) -> None:
    """The options on the command line."""
    usual = Size()
    parser.add_argument("--url", help="the base URL of a registry; without it our own server is started for the run")
    _credential_arguments(parser, "", "that registry")
    parser.add_argument(
        "--server-pid", type=int, nargs="+", metavar="PID", help="its processes (default: who listens on the port)"
    )
    parser.add_argument("--database-pid", type=int, nargs="+", metavar="PID", help="those of its database")
    parser.add_argument("--compare", nargs="+", default=[], metavar="URL", help="registries to be measured beside it")
    _credential_arguments(parser, "compare-", "those")
    parser.add_argument("--seconds", type=float, default=usual.seconds, help="of each row")
    parser.add_argument("--connections", default="1,32", help="how many at a time, one after the other (%(default)s)")
    parser.add_argument(
        "--conditions",
        default=",".join(condition.name for condition in CONDITIONS),
        help="under which reads are measured (%(default)s)",
    )
    parser.add_argument("--subjects", type=int, default=usual.subjects, help="that are listed")
    parser.add_argument(
        "--large", type=int, nargs="?", const=LARGE, default=0, metavar="SUBJECTS", help=f"list so many ({LARGE:,}) too"
    )
    parser.add_argument("--keep", action="store_true", help="leave the subjects of the run in the registry")
    parser.add_argument("--yes", action="store_true", help="write to a registry that isn't on this machine")
    parser.add_argument("--note", default="", help="what else was running, to note on the page")


def _credential_arguments(parser: ArgumentParser, prefix: str, whose: str) -> None:
    parser.add_argument(f"--{prefix}token-from", metavar="VARIABLE", help=f"the variable with a token for {whose}")
    parser.add_argument(f"--{prefix}user", help=f"a user of {whose}")
    parser.add_argument(f"--{prefix}password-env", metavar="VARIABLE", help="the variable with the user's password")


def size_of(options: Mapping[str, Any]) -> Size:
    """The sizes that the options name. Raises InvalidInput."""
    numbers = options["connections"].split(",")
    if not all(word.isascii() and word.isdigit() and 1 <= int(word) <= MOST_CONNECTIONS for word in numbers):
        raise InvalidInput(
            f"--connections {options['connections']}: numbers from 1 to {MOST_CONNECTIONS} with commas between them."
        )
    by_name = {condition.name: condition for condition in CONDITIONS}
    names = options["conditions"].split(",")
    if unknown := [name for name in names if name not in by_name]:
        raise InvalidInput(f"--conditions {unknown[0]}: use {', '.join(by_name)}, with commas between them.")
    for name, least, most in (("seconds", 0.05, 3_600), ("subjects", 1, 1_000_000), ("large", 0, 1_000_000)):
        if not least <= options[name] <= most:
            raise InvalidInput(f"--{name} {options[name]}: a number from {least} to {most:,}.")
    return Size(
        seconds=options["seconds"],
        connections=tuple(int(word) for word in numbers),
        subjects=options["subjects"],
        large=options["large"],
        keep=options["keep"],
        conditions=tuple(by_name[name] for name in names),
    )


@contextmanager
def targets_of(options: Mapping[str, Any]) -> Iterator[list[Target]]:
    """The registries that the options name, ours being started where there is no URL.

    Raises InvalidInput for options that can't be together, or an address that isn't on this machine without `--yes`.
    """
    authorization, compared = _credentials(options, ""), _credentials(options, "compare_")
    named = [_target(url, compared) for url in options["compare"]]
    if options["url"]:
        pids, database = options["server_pid"], options["database_pid"]
        own = replace(_target(options["url"], authorization), has_goals=True, database_pids=tuple(database or ()))
        named.insert(0, replace(own, pids=tuple(pids)) if pids else own)
    elif remote_options := [f"--{name.replace('_', '-')}" for name in ONLY_WITH_URL if options[name]]:
        raise InvalidInput(f"{remote_options[0]} is about a registry that --url names; without it our own is started.")
    if compared and not options["compare"]:
        raise InvalidInput("--compare-token-from and --compare-user are for the registries that --compare names.")
    for target in named:
        if not target.is_here and not options["yes"]:
            raise InvalidInput(
                f"{target.url} isn't on this machine, and measuring writes: it registers and deletes subjects bench-*. "
                "Say --yes if that is wanted."
            )
    with ExitStack() as stack:
        if not options["url"]:
            named.insert(0, stack.enter_context(site.own_server()))
        yield named


def _target(url: str, authorization: str) -> Target:
    base = url.rstrip("/")
    return Target(base.partition("://")[2] or base, base, authorization)


def _credentials(options: Mapping[str, Any], prefix: str) -> str:
    token, user, password = (options[f"{prefix}{name}"] for name in ("token_from", "user", "password_env"))
    if token and (user or password):
        raise InvalidInput("A token or a user with a password, not both.")
    if bool(user) != bool(password):
        raise InvalidInput("A user and the variable with the password go together: --user and --password-env.")
    if token:
        return bearer(_variable(token))
    return basic(user, _variable(password)) if user else ""


def _variable(name: str) -> str:
    value = os.environ.get(name, "")
    if not value or not value.isprintable() or not value.isascii():
        raise InvalidInput(f"The environment variable {name} has no token or password that could be sent.")
    return value


class MeasuredSet(Protocol):
    """What is measured: where it is, and how many versions there are of those subjects that get new ones."""

    @property
    def target(self) -> Target:
        """The registry."""

    def registered(self) -> int:
        """How many versions."""

    @property
    def registering(self) -> Sequence[Call]:
        """The calls that register new versions."""


# -- measuring ----------------------------------------------------------------------------------------------------------


def measure(targets: Sequence[Target], size: Size, say: Callable[[str], None]) -> Iterator[Row]:
    """The rows of one registry after the other, as they are measured. Raises RemoteUnavailable."""
    for candidate in targets:
        target = _with_processes(candidate)
        say(describe(target))
        with _data_set(target, size, say) as data:
            yield from measure_operations(data, data.make(), size)
            if size.large:
                for made in data.add_many(size.large):
                    say(f"{made:,} of {size.large:,} subjects")
                yield from measure_operations(data, [data.listing(data.many(size.large))], size)


@contextmanager
def _data_set(target: Target, size: Size, say: Callable[[str], None]) -> Iterator[DataSet]:
    """Nothing yet, to be filled; removed at the end, whatever the end is."""
    data = DataSet(target, size.subjects)

    def put_away() -> None:
        if size.keep:
            say(f"{target.name}: the subjects {data.prefix}* stay")
        elif not target.is_scratch:
            data.remove()

    if not (size.keep or target.is_scratch):
        data.try_to_remove()
    try:
        yield data
    except BaseException as error:
        try:
            put_away()
        except RemoteUnavailable as left:
            raise RemoteUnavailable(f"{error}\n{left.message}") from error
        raise
    put_away()


def describe(target: Target) -> str:
    """A line about a registry: whether it lets everybody in, its level, and whose CPU time is counted.

    Raises RemoteUnavailable where it doesn't answer these as a registry does.
    """
    subjects_call, config = Call("GET", "/subjects?subjectPrefix=bench-", is_right=_is_list), Call("GET", "/config")
    _, level = ask_all(target, [subjects_call, config])
    status = ask(target, [subjects_call], signed=False)[0][0]
    access = ACCESS.get(status, f"answers {status} to who has no credentials")
    pids = "unknown" if target.pids is None else ", ".join(map(str, target.pids))
    database = ", ".join(map(str, target.database_pids)) or "not told"
    return f"{target.name}: {access}; {json.dumps(level)[:200]}; processes {pids}; database's {database}"


def _is_list(content: Any) -> bool:
    return isinstance(content, list)


def _with_processes(target: Target) -> Target:
    target_with_pids = replace(target, pids=server_pids(target)) if target.pids is None else target
    cpu_of(target_with_pids)  # fails for a missing process before anything is written
    return target_with_pids


def measure_operations(data: MeasuredSet, operations: Sequence[Operation], size: Size) -> Iterator[Row]:
    """The rows of some operations, as they are measured. Raises RemoteUnavailable."""
    serial = FIRST_SERIAL
    for operation in operations:
        # What is registered is new, and a fleet that starts asks for what nobody has asked for.
        for condition in (UNCACHED,) if operation.is_numbered or operation.each else size.conditions:
            for connections in size.connections:
                before = data.registered() if operation.is_numbered else 0
                with _writing(data, condition, serial) as writer:
                    row = _row(data.target, operation, condition, connections, size.seconds, serial)
                serial += row.measured.sent + (writer.serial - serial if writer else 0)
                if writer and writer.failed:
                    row = _failed(row, writer.failed)
                if operation.is_numbered and not row.measured.failed:
                    row = _proven(row, data.registered() - before)
                yield row


def _writing(data: MeasuredSet, condition: Condition, serial: int) -> AbstractContextManager[Writer | None]:
    if not condition.registrations:
        return nullcontext()
    return Writer(data.target, data.registering, condition.registrations, serial)


def _row(
    target: Target, operation: Operation, condition: Condition, connections: int, seconds: float, serial: int
) -> Row:
    counts: list[tuple[float | None, float | None]] = []
    is_fresh = condition.is_fresh and not operation.is_numbered
    measured = load(
        target,
        operation.calls,
        connections=connections,
        seconds=seconds,
        serial=serial if is_fresh or operation.is_numbered else 0,
        quiet=lambda: counts.append(cpu_of(target)),
        is_fresh=is_fresh,
        each=operation.each,
    )
    cpu, database = (
        None if before is None or after is None else (after - before) / max(measured.answered, 1)
        for before, after in zip(*counts, strict=True)
    )
    goal = operation.goals.get(condition.name) if target.has_goals and connections == GOAL_CONNECTIONS else None
    return Row(target.name, operation.name, condition.name, connections, measured, cpu, database, goal)


def _proven(row: Row, registered: int) -> Row:
    """The row, failed where not every version that was answered for is there."""
    if registered == row.measured.sent:
        return row
    return _failed(row, f"{row.measured.sent:,} registrations were answered and {registered:,} versions are there")


def _failed(row: Row, reason: str) -> Row:
    return replace(row, measured=replace(row.measured, failed=row.measured.failed or reason))


# -- what is shown ------------------------------------------------------------------------------------------------------


def cells(row: Row) -> tuple[str, ...]:
    """A row as the table shows it."""
    measured = row.measured
    shown = (row.target, row.what, row.condition, str(row.connections))
    if measured.failed:
        return (*shown, f"failed: {measured.failed}")
    remark = f"{measured.cpu:.0%}{' (its limit)' if measured.cpu >= AT_ITS_LIMIT else ''}"
    if measured.reconnects:
        remark += f", {measured.reconnects:,} connections made again"
    return (
        *shown,
        f"{measured.per_second:,.0f}",
        milliseconds(measured.p50),
        milliseconds(measured.p99),
        "unknown" if row.cpu is None else f"{row.cpu * 1000:.3f}",
        "" if row.database_cpu is None else f"{row.database_cpu * 1000:.3f}",
        _goal(row),
        remark,
    )


def _goal(row: Row) -> str:
    if row.goal is None or row.cpu is None:
        return ""
    used = (row.cpu + (row.database_cpu or 0.0)) * 1000
    return f"{row.goal:.2f}{'' if used <= row.goal else f' (× {used / row.goal:.1f})'}"


def section(rows: Sequence[Row], size: Size, note: str = "") -> str:
    """The section of the page of measurements."""
    load_average = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    conditions = [condition.name for condition in CONDITIONS if any(row.condition == condition.name for row in rows)]
    head = ("registry", "what", "connections", *conditions)
    lines = [
        f"Measured on {time.strftime('%Y-%m-%d')} with {machine()}; load average at the end {load_average}."
        f"{' ' + note if note else ''}",
        "",
        f"{size.seconds:g} s for each figure after a warm-up, from one process on the same machine; {size.subjects:,} "
        f"subjects with Avro schemas of ten fields, of which {min(size.subjects, HOT)} are asked for in turn. `ours` is "
        "one web process as under `up`, in front of a durable PostgreSQL, asked with a token, without workers. Each "
        "cell has the requests a second, the 99th percentile of their times, and the CPU time of one in milliseconds: "
        "that of the web processes, the database and Valkey together, by the operating system's count. In parentheses "
        "stands how many times the goal that is. Uncached requests have a header that no request had before. In the columns "
        "`writes-1` and `writes-5`, so many versions of other subjects are registered a second beside them; their CPU time "
        f"counts too. In a fleet that starts, each client asks {EACH} times on a connection of its own.",
        "",
        f"| {' | '.join(head)} |",
        f"|{'---|' * len(head)}",
        *(f"| {' | '.join(line)} |" for line in _pivoted(rows, conditions)),
    ]
    return "\n".join(lines)


def _pivoted(rows: Sequence[Row], conditions: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """A line for each operation, with a cell for each condition."""
    by_line: dict[tuple[str, str, int], dict[str, Row]] = {}
    for row in rows:
        by_line.setdefault((row.target, row.what, row.connections), {})[row.condition] = row
    for (target, what, connections), by_condition in by_line.items():
        cells_of = (by_condition.get(condition) for condition in conditions)
        yield (target, what, str(connections), *("" if row is None else _cell(row) for row in cells_of))


def _cell(row: Row) -> str:
    measured = row.measured
    used = "unknown" if row.cpu is None else f"{(row.cpu + (row.database_cpu or 0.0)) * 1000:.3f}"
    remark = " (the generator's limit)" if measured.cpu >= AT_ITS_LIMIT else ""
    return f"{measured.per_second:,.0f} a second, {milliseconds(measured.p99)}, {used}{_times(row)}{remark}"


def _times(row: Row) -> str:
    if row.goal is None or row.cpu is None:
        return ""
    return f" (× {(row.cpu + (row.database_cpu or 0.0)) * 1000 / row.goal:.1f})"
