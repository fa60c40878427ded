"""`manage.py decode_message`: decodes a message's bytes to its schema and value."""

from __future__ import annotations

import getpass
import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from registry.access.roles import system_actor
from registry.drift.selectors.messages import ENCODINGS, MAX_TEXT, decode_message
from registry.errors import SchemadeskError
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, check_context


class Command(BaseCommand):
    """Prints a message's schema and value as JSON; the exit code is 1 if it can't be decoded."""

    help = "Decode a message given as hexadecimal, base64 or JSON. Use - to read it from standard input."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("message", help="the bytes as text, or - for standard input")
        parser.add_argument("--registry", default="", help="default: the default registry")
        parser.add_argument("--context", default="", help="the context that the message's schema ids come from")
        parser.add_argument("--headers", type=Path, help="a file with one header per line, as name: value")
        parser.add_argument("--key", action="store_true", help="the bytes are a message key")
        parser.add_argument("--encoding", choices=ENCODINGS, default="auto")

    def handle(self, *args: Any, **options: Any) -> None:
        """Decode and print the message."""
        message = options["message"]
        try:
            decoded = decode_message(
                get_registry(options["registry"]),
                text=sys.stdin.read(MAX_TEXT + 1) if message == "-" else message,
                headers=options["headers"].read_text(encoding="utf-8") if options["headers"] else "",
                side="key" if options["key"] else "value",
                encoding=options["encoding"],
                context=check_context(options["context"]) if options["context"] else DEFAULT_CONTEXT,
                by=system_actor(getpass.getuser(), "command"),
            )
        except (SchemadeskError, OSError, UnicodeDecodeError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(json.dumps(decoded.to_dict(), indent=2, ensure_ascii=False))
        if decoded.error:
            raise SystemExit(1)
