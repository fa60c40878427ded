"""Secrets for outgoing connections: kept by the operator, named by us, each bound to the host that it is for.

A secret is a file of the folder SECRETS_DIR, or an environment variable `SCHEMADESK_SECRET_NAME`. Its first word is the
host that it may be sent to, the rest is the secret:

    registry.example.com the-password
    registry.example.com:8443 the-password
    http://10.0.0.7:8081 the-password

It is sent over https alone, or to this machine, unless the binding says `http://`. So whoever may name a secret can't
send it to a host of their own.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings

from registry.access.egress import PORTS, Connection
from registry.errors import InvalidSecret

PREFIX = "SCHEMADESK_SECRET_"
MAX_SECRET = 8192
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class Secret:
    """A secret and what it is for; its value shows in no repr, so in no log and no traceback of ours."""

    name: str
    binding: str
    value: str = field(repr=False)


def authorization(connection: Connection) -> dict[str, str]:
    """The header that signs in: Basic with a user, Bearer without one; none where no secret is named.

    Raises InvalidSecret for a secret that isn't there or isn't for that host.
    """
    if not connection.secret:
        return {}
    secret = find_secret(connection.secret)
    refuse_other_host(secret, connection)
    if connection.user:
        pair = f"{connection.user}:{secret.value}".encode()
        return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
    return {"Authorization": f"Bearer {secret.value}"}


def find_secret(name: str, *, folder: Path | None = None, environment: Mapping[str, str] | None = None) -> Secret:
    """The secret of that name; a file wins over a variable. Raises InvalidSecret."""
    if not _NAME.fullmatch(name):
        raise InvalidSecret("A secret's name has 1 to 64 letters, digits, _ and -.")
    folder = folder or settings.SECRETS_DIR
    variable = PREFIX + name.upper().replace("-", "_")
    text = _read(folder, name) if folder else None
    if text is None:
        text = (os.environ if environment is None else environment).get(variable)
    if text is None:
        raise InvalidSecret(
            f"There is no secret {name!r}: put it into a file of that name in SCHEMADESK_SECRETS_DIR,"
            f" or into the environment variable {variable}.",
            secret=name,
        )
    return _parsed(name, text)


def _read(folder: Path, name: str) -> str | None:
    """The file's text, None where there is none. A link may lead to elsewhere in the folder and no further."""
    path = folder / name
    if not path.exists():
        return None
    if not path.resolve().is_relative_to(folder.resolve()) or not path.is_file():
        raise InvalidSecret(f"The secret {name!r} is no file of the secrets folder.", secret=name)
    try:
        with path.open("rb") as file:
            return file.read(MAX_SECRET + 1).decode()
    except OSError as error:
        raise InvalidSecret(f"The secret {name!r} can't be read: {error.strerror}.", secret=name) from error
    except UnicodeDecodeError:
        raise InvalidSecret(f"The secret {name!r} is not UTF-8 text.", secret=name) from None


def _parsed(name: str, text: str) -> Secret:
    words = text.strip().split(None, 1)
    if len(text) > MAX_SECRET or len(words) != 2:
        raise InvalidSecret(
            f"The secret {name!r} is not HOST and the secret, with a space or a line break between.", secret=name
        )
    binding, value = words[0], words[1].strip()
    if not value.isprintable() or not value.isascii():
        raise InvalidSecret(f"The secret {name!r} has a character that no header can carry.", secret=name)
    return Secret(name, binding, value)


def refuse_other_host(secret: Secret, connection: Connection) -> None:
    """Raise InvalidSecret unless the secret is for the connection's host, port and scheme."""
    scheme, _, rest = secret.binding.rpartition("://")
    host = rest.rstrip("/").lower()
    with_port = (
        f"[{connection.host}]:{connection.port}" if ":" in connection.host else (f"{connection.host}:{connection.port}")
    )
    if host not in (connection.host, with_port, f"[{connection.host}]"):
        raise InvalidSecret(
            f"The secret {secret.name!r} is not for {with_port}: it is bound to another host.", secret=secret.name
        )
    if connection.scheme == "http" and scheme != "http" and connection.host not in _LOOPBACK:
        raise InvalidSecret(
            f"The secret {secret.name!r} is not sent over plain http; use https, or bind it to"
            f" http://{connection.host}.",
            secret=secret.name,
        )
    if scheme and scheme not in PORTS:
        raise InvalidSecret(f"The secret {secret.name!r} is bound to no http or https host.", secret=secret.name)
