"""A Java process that does with Spring's released clients and message converter what a test says."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import IO, Any

from tests.api.spring.parts import HERE, OPENED, class_path

SOURCES = ("java/SpringClients.java", "java/desk/User.java")


def compiled(folder: Path) -> str:
    """A class path with the harness compiled into the folder."""
    path = class_path()
    sources = [str(HERE / source) for source in SOURCES]
    subprocess.run(["javac", "-nowarn", "-d", str(folder), "-cp", path, *sources], check=True, capture_output=True)
    return os.pathsep.join((str(folder), path))


class Conversation:
    """Orders to the process and its answers, one at a time."""

    def __init__(self, path: str, log: IO[bytes]) -> None:
        argv = ["java", *OPENED, "-cp", path, "SpringClients"]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)

    def tell(self, order: str, **values: Any) -> dict[str, Any]:
        """Gives an order; returns what it gave, or what was thrown under `error`."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps({"order": order, **values}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the process ended with {self.process.wait(60)}"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def do(self, order: str, **values: Any) -> dict[str, Any]:
        """Gives an order that has to work."""
        answer = self.tell(order, **values)
        assert "error" not in answer, answer
        return answer

    def close(self) -> None:
        """Ends the process."""
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(60)
