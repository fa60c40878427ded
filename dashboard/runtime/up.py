"""`manage.py up`: which parts run, where, and how they find each other."""

from __future__ import annotations

import os
import shutil
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dashboard.runtime import ServiceError, kafka, kafka_connect, parts, postgres, spark, valkey
from dashboard.runtime import layout as runtime_layout
from dashboard.runtime.data_folder import claim
from dashboard.runtime.layout import Layout, default_data_folder
from dashboard.runtime.parts import Part, StartupStep
from dashboard.runtime.process import Watchdog
from dashboard.runtime.supervisor import Console, Supervisor

USUAL_PORT = 8081  # the default port of schema registry clients

# Variable → address of each replaceable part, if embedded.
EMBEDDED: Mapping[str, Callable[[Layout], str]] = {
    "REDIS_URL": valkey.url,
    "DATABASE_URL": lambda layout: postgres.url(layout, postgres.APPLICATION),
    "KAFKA_BOOTSTRAP": kafka.bootstrap,
    "SPARK_REMOTE": spark.remote,
    "CONNECT_URL": kafka_connect.url,
}


@dataclass(frozen=True)
class Options:
    """The options of `up`; None or empty means the default."""

    data: Path | None = None
    port: int | None = None
    without: tuple[str, ...] = ()
    demo: bool = False
    with_parts: tuple[str, ...] = ()

    @classmethod
    def of(cls, *, data: str | None, port: int | None, without: str, demo: bool, with_parts: str = "") -> Options:
        """Parse the command line's options.

        Raises ServiceError for a part that can't be omitted, or is both wanted and omitted, or an invalid port.
        """
        names, with_names = _names(without), _names(with_parts)
        if unknown := sorted(set(names) - set(parts.OPTIONAL)):
            raise ServiceError(f"--without {','.join(unknown)}: only {_listed(parts.OPTIONAL)} can be omitted.")
        if unknown := sorted(set(with_names) - set(parts.ON_DEMAND)):
            raise ServiceError(f"--with {','.join(unknown)}: only {_listed(parts.ON_DEMAND)} can be added.")
        if with_names and (clash := sorted({*with_names, "kafka"} & set(names))):
            raise ServiceError(f"--with {','.join(with_names)} needs {_listed(clash)}, which --without omits.")
        if port is not None and not 1 <= port <= 65535:
            raise ServiceError(f"--port {port}: a port must be a number from 1 to 65535.")
        return cls(Path(data).expanduser().absolute() if data else None, port, names, demo, with_names)

    @property
    def left_out(self) -> frozenset[str]:
        """The services not to run: omitted ones, those that need them, and unrequested ones on demand."""
        asked_for = {*self.with_parts, *(parts.ON_DEMAND if self.demo else ())}
        gone = {*self.without, *(set(parts.ON_DEMAND) - asked_for)}
        services = [part for part in parts.SERVICES if not gone.isdisjoint(part.after)]
        return frozenset(gone | {part.name for part in services})


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options to the command line's parser."""
    parser.add_argument("--data", metavar="DIR", help="folder for all stored data (default: the user's data folder)")
    parser.add_argument(
        "--port", type=int, help=f"the web server's port (default: {USUAL_PORT}, or a free port if it is in use)"
    )
    parser.add_argument("--without", metavar="PARTS", default="", help="parts to omit: kafka,spark")
    parser.add_argument(
        "--with", metavar="PARTS", default="", dest="with_parts", help="parts to add: connect (Kafka Connect, Debezium)"
    )
    parser.add_argument("--demo", action="store_true", help="load the demo data when everything is ready")


def main(arguments: Sequence[str]) -> int:
    """Run `manage.py up` without loading Django, which the supervisor doesn't need: it starts 1 to 3 s earlier."""
    parser = ArgumentParser(
        "manage.py up", description="Run Schemadesk with all its parts on this machine until Ctrl-C."
    )
    add_arguments(parser)
    try:
        return up(Options.of(**vars(parser.parse_args(arguments))))
    except ServiceError as error:
        sys.stderr.write(f"{error.message}\n")
        return 1


def up(options: Options, console: Console | None = None) -> int:
    """Run the product until a signal stops it; return the exit status.

    Raises AlreadyRunning, PortTaken, and the parts' errors when they can't be set up (all are ServiceError).
    """
    console = console or Console()
    claimed = claim(options.data or default_data_folder(), lambda text: console.say("", text))
    # The watchdog also holds the folder's lock: nobody else may start before it has ended what a killed `up` left.
    watchdog = Watchdog(keep=(claimed.descriptor,))
    watchdog.start()
    layout: Layout | None = None
    try:
        port, remark = runtime_layout.web_port(options.port, USUAL_PORT)
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


def choose(options: Options, environment: Mapping[str, str]) -> Sequence[Part | StartupStep]:
    """Return the parts and steps to run, without omitted ones and those replaced by a server in the environment."""
    left_out = options.left_out
    gone = {part.name for part in parts.SERVICES if part.name in left_out or environment.get(part.replaced_by)}
    gone |= {companion for name, companion in parts.ONLY_FOR.items() if name in gone}
    items: list[Part | StartupStep] = [item for item in parts.ALL if item.name not in gone]
    # The demo also works without the parts that only run on demand.
    unusable = left_out - set(parts.ON_DEMAND)
    if not options.demo:
        unusable |= {"demo"}
    # Omit what needs an omitted part; a replaced part exists, and needn't be waited for.
    items = [item for item in items if item.name not in unusable and unusable.isdisjoint(item.after)]
    return [replace(item, after=tuple(name for name in item.after if name not in gone)) for item in items]


def _own(layout: Layout) -> list[str]:
    """Return the addresses of our own parts that the product reads: other loopback addresses are refused."""
    names = [name for name in (*kafka_connect.PORTS, *postgres.PORTS) if name in layout.ports]
    return [f"{runtime_layout.LOOPBACK}:{layout.ports[name]}" for name in names]


def _layout(options: Options, data: Path, watchdog: Watchdog, port: int, console: Console) -> Layout:
    connects = "connect" not in options.left_out and not os.environ.get("CONNECT_URL")
    names = [*kafka.PORTS, *spark.PORTS, *((*kafka_connect.PORTS, "avro-endpoint") if connects else ())]
    if connects and not os.environ.get("DATABASE_URL"):
        names += postgres.PORTS
    ports = runtime_layout.kept_ports(data, names)
    layout = Layout.at(data, watchdog, ports={**ports, "web": port}, say=console.say)
    layout.secret("django")
    product = {
        "SCHEMADESK_UP": "1",
        "SCHEMADESK_PORT": str(port),
        "SCHEMADESK_DATA": str(layout.data),
        "SECRET_KEY_FILE": str(layout.data / "secrets" / "django"),
        "SCHEMADESK_SECRETS_DIR": os.environ.get("SCHEMADESK_SECRETS_DIR") or str(layout.folder("outgoing-secrets")),
        "SCHEMADESK_EGRESS_ALLOW": ",".join(filter(None, (os.environ.get("SCHEMADESK_EGRESS_ALLOW"), *_own(layout)))),
    }
    for part in parts.SERVICES:
        variable = part.replaced_by
        value = os.environ.get(variable, "")
        if part.name in options.without:
            product[variable] = ""
        elif value or part.name in options.left_out:
            product[variable] = value
        else:
            product[variable] = EMBEDDED[variable](layout)
    if not os.environ.get("DATABASE_URL"):
        product["DATABASE_OWNER_URL"] = postgres.url(layout, postgres.OWNER)
        product["DATABASE_APPLICATION_ROLE"] = postgres.APPLICATION
    return replace(layout, product=product)
