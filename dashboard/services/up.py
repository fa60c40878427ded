"""`manage.py up`: which parts run, where, and what they are told about each other."""

from __future__ import annotations

import os
import shutil
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dashboard.services import kafka, parts, ports, postgres, spark, valkey
from dashboard.services.console import Console
from dashboard.services.errors import ServiceError
from dashboard.services.folders import default_data_folder
from dashboard.services.layout import Layout
from dashboard.services.part import Part, Step
from dashboard.services.process import Watchdog
from dashboard.services.state import claim
from dashboard.services.supervisor import Supervisor

USUAL_PORT = 8081  # the one that clients of schema registries expect

# The address of each replaceable part, once it is ours.
EMBEDDED: Mapping[str, Callable[[Layout], str]] = {
    "REDIS_URL": valkey.url,
    "DATABASE_URL": lambda layout: postgres.url(layout, postgres.APPLICATION),
    "KAFKA_BOOTSTRAP": kafka.bootstrap,
    "SPARK_REMOTE": spark.remote,
}


@dataclass(frozen=True)
class Options:
    """What `up` was asked for: None or empty stands for the default."""

    data: Path | None = None
    port: int | None = None
    without: tuple[str, ...] = ()
    demo: bool = False

    @classmethod
    def of(cls, *, data: str | None, port: int | None, without: str, demo: bool) -> Options:
        """From the command line's words. Raises ServiceError for a part that can't be left out or a port that isn't."""
        names = tuple(name.strip() for name in without.split(",") if name.strip())
        if unknown := sorted(set(names) - set(parts.OPTIONAL)):
            raise ServiceError(f"--without {','.join(unknown)}: only {' and '.join(parts.OPTIONAL)} can be left out.")
        if port is not None and not 1 <= port <= 65535:
            raise ServiceError(f"--port {port}: a port is a number from 1 to 65535.")
        return cls(Path(data).expanduser().absolute() if data else None, port, names, demo)


def add_arguments(parser: ArgumentParser) -> None:
    """The options on the command line."""
    parser.add_argument("--data", metavar="DIR", help="folder for everything that is kept (default: user's data)")
    parser.add_argument("--port", type=int, help=f"the web server's port (default: {USUAL_PORT}, else a free one)")
    parser.add_argument("--without", metavar="PARTS", default="", help="parts to leave out: kafka,spark")
    parser.add_argument("--demo", action="store_true", help="make the demo's input when everything is ready")


def main(words: Sequence[str]) -> int:
    """`manage.py up` without loading Django, which the supervisor itself has no use for: 1 to 3 s earlier."""
    parser = ArgumentParser("manage.py up", description="Runs the whole product on this machine, until Ctrl-C.")
    add_arguments(parser)
    try:
        return up(Options.of(**vars(parser.parse_args(words))))
    except ServiceError as error:
        sys.stderr.write(f"{error.message}\n")
        return 1


def up(options: Options, console: Console | None = None) -> int:
    """Runs the product until a signal says stop; the exit status.

    Raises AlreadyRunning, PortTaken, and what the parts raise when they can't be set up (all are ServiceError).
    """
    console = console or Console()
    claimed = claim(options.data or default_data_folder(), lambda text: console.say("", text))
    # The watchdog holds the folder's lock too: until it has ended what a killed `up` left, nobody else may start.
    watchdog = Watchdog(keep=(claimed.descriptor,))
    watchdog.start()
    layout: Layout | None = None
    try:
        port, remark = ports.web_port(options.port, USUAL_PORT)
        if remark:
            console.say("web", remark)
        layout = _layout(options, claimed.data, watchdog, port, console)
        items = choose(options, os.environ)
        address = f"http://localhost:{port}/"
        claimed.publish(address=address, environment={name: value for name, value in layout.product.items() if value})
        console.say("", f"data in {layout.data}, logs in {layout.data / 'logs'}")
        return Supervisor(layout, items, console, f"Schemadesk is at {address}   (Ctrl-C stops it)").run()
    finally:
        watchdog.close()
        if layout:
            shutil.rmtree(layout.sockets, ignore_errors=True)
        claimed.release()


def choose(options: Options, environment: Mapping[str, str]) -> Sequence[Part | Step]:
    """The parts and steps to run: none that is left out, or whose place a server in the environment takes."""
    gone = {part.name for part in parts.SERVICES if part.name in options.without or environment.get(part.replaced_by)}
    items: list[Part | Step] = [item for item in parts.ALL if item.name not in gone]
    unusable = {part.name for part in parts.SERVICES if part.name in options.without}
    if not options.demo:
        unusable.add("demo")
    # What needs a part that was left out goes too; one that is replaced is there, and needn't be waited for.
    items = [item for item in items if item.name not in unusable and unusable.isdisjoint(item.after)]
    return [replace(item, after=tuple(name for name in item.after if name not in gone)) for item in items]


def _layout(options: Options, data: Path, watchdog: Watchdog, port: int, console: Console) -> Layout:
    kept = ports.kept_ports(data, (*kafka.PORTS, *spark.PORTS))
    layout = Layout.at(data, watchdog, ports={**kept, "web": port}, say=console.say)
    layout.secret("django")
    product = {
        "SCHEMADESK_UP": "1",
        "SCHEMADESK_PORT": str(port),
        "SCHEMADESK_DATA": str(layout.data),
        "SECRET_KEY_FILE": str(layout.data / "secrets" / "django"),
    }
    for part in parts.SERVICES:
        variable = part.replaced_by
        if part.name in options.without:
            product[variable] = ""
        else:
            product[variable] = os.environ.get(variable) or EMBEDDED[variable](layout)
    if not os.environ.get("DATABASE_URL"):
        product["DATABASE_OWNER_URL"] = postgres.url(layout, postgres.OWNER)
        product["DATABASE_APPLICATION_ROLE"] = postgres.APPLICATION
    return replace(layout, product=product)
