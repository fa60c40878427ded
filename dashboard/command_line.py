"""The program `schemadesk` of the installed package: the services, and Django's commands.

`schemadesk web`, `worker` and `beat` replace themselves with the server that does the work, so that a supervisor (systemd,
a container's runtime) sees that one. All settings come from the environment (docs/reference/settings.md).
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NoReturn

from dashboard.resources import product_version
from dashboard.runtime.programs import CELERY, QUEUES, THRIFTY, most_files, web_arguments, worker_arguments

DESCRIPTION: Final = """\
usage: schemadesk COMMAND [OPTIONS]

  web                   the web server: pages and APIs
  worker                the worker of a queue
  beat                  the scheduler; run it once
  migrate               update the tables, as their owner
  prepare               create the registries dev, staging and prod in a new database
  check --deploy        check the settings
  doctor                check every part, and say how to mend it
  backup, restore       one file with the database and the secrets

`schemadesk COMMAND --help` shows the options of a command, `schemadesk help` Django's other commands, `schemadesk
--version` the version.
"""


def main(argv: Sequence[str] = sys.argv) -> int:
    """Run a command; return its exit code."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    command, arguments = (argv[1], list(argv[2:])) if len(argv) > 1 else ("", [])
    if command in ("", "-h", "--help"):
        sys.stdout.write(DESCRIPTION)
        return 0
    if command == "--version":
        sys.stdout.write(f"Schemadesk {product_version()}\n")
        return 0
    if service := SERVICES.get(command):
        service(arguments)
    from django.core.management import execute_from_command_line

    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # a command removes its temporary files
    try:
        execute_from_command_line(list(argv))
    except Exception as error:  # broad, because the cause is further down the chain; what has no cure is raised again
        cure = None if "--traceback" in argv else _cure(error)
        if cure is None:
            raise
        sys.stderr.write(f"schemadesk {command}: {str(error).strip().partition(chr(10))[0]}\n{cure}".rstrip() + "\n")
        return 1
    return 0


def _cure(error: BaseException) -> str | None:
    """Return what an operator has to do about an error; None if it is unknown."""
    from django.core.exceptions import ImproperlyConfigured
    from psycopg import errors

    cures: Mapping[type[BaseException], str] = {
        ImproperlyConfigured: "",  # its message says it
        errors.UndefinedTable: "Run `schemadesk migrate` first, with DATABASE_OWNER_URL.",
        errors.InsufficientPrivilege: "Set DATABASE_OWNER_URL to the database as its owner; migrate, backup and restore use it.",
        errors.OperationalError: "Start PostgreSQL, or correct DATABASE_URL and DATABASE_OWNER_URL.",
    }
    before = error.__cause__ or error.__context__
    return cures.get(type(error), _cure(before) if before else None)


def _web(arguments: list[str]) -> NoReturn:
    parser = ArgumentParser(prog="schemadesk web", description="Run the web server: one process, for pages and APIs.")
    listen = os.environ.get("SCHEMADESK_LISTEN") or "127.0.0.1"
    parser.add_argument(
        "--host", default=listen, help="the address to listen on (default: SCHEMADESK_LISTEN, 127.0.0.1)"
    )
    parser.add_argument("--port", type=int, default=8081)
    options = parser.parse_args(arguments)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files(), hard))
    words = ["-m", "granian", *web_arguments(options.port, options.host), "dashboard.asgi:application"]
    _become(words, THRIFTY)


def _worker(arguments: list[str]) -> NoReturn:
    parser = ArgumentParser(prog="schemadesk worker", description="Run the worker of a queue. Every queue needs one.")
    parser.add_argument("--queue", choices=QUEUES, required=True)
    parser.add_argument("--threads", type=int, help="tasks at the same time (default 4; 3 for scans)")
    options = parser.parse_args(arguments)
    threads = options.threads or QUEUES[options.queue]
    _become([*CELERY, *worker_arguments(options.queue, threads, socket.gethostname())])


def _beat(arguments: list[str]) -> NoReturn:
    parser = ArgumentParser(prog="schemadesk beat", description="Run the scheduler. Several would do everything twice.")
    parser.add_argument("--schedule", default="/tmp/schemadesk-beat", help="its file (default: %(default)s)")  # noqa: S108
    options = parser.parse_args(arguments)
    _become([*CELERY, "beat", "--schedule", options.schedule, "--pidfile", ""])


def _become(words: Sequence[str], usual: Mapping[str, str] | None = None) -> NoReturn:
    """Replace this process by Python with these arguments; `usual` are variables that may be set already."""
    environment = {**(usual or {}), "CELERY_SKIP_CHECKS": "true", **os.environ}
    os.execve(sys.executable, [sys.executable, *words], environment)  # noqa: S606 - the service itself


SERVICES: Final[Mapping[str, Callable[[list[str]], NoReturn]]] = {"web": _web, "worker": _worker, "beat": _beat}
