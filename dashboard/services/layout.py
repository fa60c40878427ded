"""Where one `up`, or one test session, keeps its things and which addresses its parts have."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dashboard.services.folders import kept_secret, private_folder, socket_folder
from dashboard.services.process import Watchdog

PROJECT = Path(__file__).resolve().parents[2]
KEEP_OF_LOG = 1024 * 1024


def _silent(part: str, text: str) -> None:
    """For tests: nobody reads along."""


@dataclass(frozen=True)
class Layout:
    """The folders of one set of parts, its watchdog, and the addresses that were found for it.

    `ports` maps the names in `PORTS` to numbers; `product` is what our own programs find in their environment besides
    that of this process; `say` tells people what a part is doing.
    """

    data: Path
    sockets: Path
    watchdog: Watchdog
    # Tests trade durability for speed: what they keep is thrown away.
    durable: bool = True
    ports: Mapping[str, int] = field(default_factory=dict)
    product: Mapping[str, str] = field(default_factory=dict)
    say: Callable[[str, str], None] = _silent

    @classmethod
    def at(cls, data: Path, watchdog: Watchdog, **more: Any) -> Layout:
        """The layout under `data`, which is made if needed. Raises ServiceError when it can't be."""
        data = private_folder(data.absolute())
        private_folder(data / "logs")
        return cls(data, socket_folder(data), watchdog, **more)

    def log(self, part: str) -> Path:
        """The file that takes what `part` prints."""
        return self.data / "logs" / f"{part}.log"

    def turn_log(self, part: str) -> None:
        """Begins a fresh log; the last one stays as `….log.1`."""
        log = self.log(part)
        if log.exists():
            log.replace(log.with_suffix(".log.1"))

    def trim_log(self, part: str, limit: int = 32 * 1024 * 1024) -> None:
        """Empties a log of more than `limit` bytes while it is written; its last megabyte stays as `….log.1`."""
        log = self.log(part)
        if not log.exists() or log.stat().st_size <= limit:
            return
        with log.open("r+b") as file:
            file.seek(-KEEP_OF_LOG, os.SEEK_END)
            log.with_suffix(".log.1").write_bytes(file.read())
            # Its writer appends (O_APPEND), so it goes on at the new end.
            file.truncate(0)

    def folder(self, name: str) -> Path:
        """A private folder of a part, made if needed."""
        return private_folder(self.data / name)

    def secret(self, name: str) -> str:
        """A secret of this data folder, made at the first call."""
        return kept_secret(self.folder("secrets") / name)

    def plain_environment(self) -> dict[str, str]:
        """What a program that isn't ours gets to see: no address or secret of the other parts."""
        kept = ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TZ", "LANG", "SHELL", "LD_LIBRARY_PATH")
        return {name: os.environ[name] for name in kept if name in os.environ}

    def own_environment(self) -> dict[str, str]:
        """What our own programs get to see: this process's environment, and where the parts are.

        An empty address says that the part was left out, whatever the environment says of it.
        """
        given = {name: value for name, value in os.environ.items() if name not in self.product}
        return {**given, **{name: value for name, value in self.product.items() if value}, "PYTHONUNBUFFERED": "1"}
