"""What the supervisor says on the terminal: a line an event, and below them what is being waited for."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from typing import TextIO

WIDTH = 15  # the longest name of a part and a space


class Console:
    """Lines from several threads; a terminal that went away is no reason to fail."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        self._terminal = self._stream.isatty()
        self._lock = threading.Lock()
        self._status = ""
        self._next_word = time.monotonic() + 2

    def say(self, part: str, text: str) -> None:
        """A line about `part`; an empty name is for all of it."""
        line = f"{part:<{WIDTH}}{text}" if part else text
        with self._lock:
            self._write(f"\r\033[K{line}\n{self._status}" if self._status else f"{line}\n")

    def wait(self, text: str) -> None:
        """What is being waited for: the terminal's last line, or a line every ten seconds where there is none."""
        with self._lock:
            if self._terminal:
                # A line that wraps could not be taken back.
                text = text[: shutil.get_terminal_size().columns - 1]
                if text != self._status:
                    self._status = text
                    self._write(f"\r\033[K{text}")
            elif text and time.monotonic() >= self._next_word:
                self._next_word = time.monotonic() + 10
                self._write(text + "\n")

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            # The terminal was closed; SIGHUP is on its way, and stopping in order needs no terminal.
            self._status = ""
