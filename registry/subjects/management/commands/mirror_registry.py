"""`manage.py mirror_registry [NAME --from URL]`: add a remote registry; without a name, list the mirrors."""

from __future__ import annotations

import getpass
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from registry.access.roles import system_actor
from registry.errors import SchemadeskError
from registry.subjects.policy.registries import MirrorState, list_mirrors
from registry.subjects.remote.mirrors import EVERY_SECONDS, add_remote_registry, remove_remote_registry, sync_registry


class Command(BaseCommand):
    """The command; adds a mirror and reads it once, so that a wrong address or secret is found immediately."""

    help = "Mirror another registry read-only. Without a name, list the mirrors with their age and problems."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the mirror's name, and the source."""
        parser.add_argument("name", nargs="?", default="")
        parser.add_argument("--from", dest="url", default="", metavar="URL")
        parser.add_argument(
            "--user", default="", help="user name for the sign-in; without it, the secret is a bearer token"
        )
        parser.add_argument(
            "--secret", default="", metavar="NAME", help="the name of the secret, never the secret itself"
        )
        parser.add_argument("--every", type=int, default=EVERY_SECONDS, metavar="SECONDS")
        parser.add_argument("--remove", action="store_true", help="remove the mirror of that name")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print what was mirrored, or the list."""
        name, by = options["name"], system_actor(getpass.getuser(), "command")
        if not name:
            for mirror in list_mirrors():
                self.stdout.write(_line(mirror))
            return
        try:
            if options["remove"]:
                remove_remote_registry(name=name, by=by)
                self.stdout.write(f"{name} removed")
                return
            number = add_remote_registry(
                name=name,
                url=options["url"],
                by=by,
                user=options["user"],
                secret=options["secret"],
                every_seconds=options["every"],
            )
            done = sync_registry(registry_id=number)
        except SchemadeskError as error:
            raise CommandError(error.message) from error
        if done is not None:
            self.stdout.write(f"{name}: {done.added} versions{'; ' + done.error if done.error else ''}")


def _line(mirror: MirrorState) -> str:
    age = "never read" if mirror.age is None else f"{int(mirror.age.total_seconds())} s old"
    failure = f"; since {mirror.failing_since:%Y-%m-%d %H:%M} UTC: {mirror.error}" if mirror.failing_since else ""
    return f"{mirror.registry}: {mirror.url}, {age}{failure}"
