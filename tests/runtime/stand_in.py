"""Runs a supervisor over stand-in parts, as a program of its own: `python -m tests.runtime.stand_in DATA PARTS.json`.

A part is {"name", "argv", "ready": a file whose presence says that it is ready, "after", "ladder", "without"}; one with
"step" is a step. A part's `{data}` stands for the data folder. A part with "port" is an HTTP server there: it is probed
by HTTP, and its silence is told and ended within seconds. "keeps_data" is the part's own.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from dashboard.runtime import ServiceError, supervisor
from dashboard.runtime.data_folder import claim
from dashboard.runtime.layout import HTTP_HELLO, Layout, reply
from dashboard.runtime.parts import Part, StartupStep
from dashboard.runtime.process import Command, Watchdog
from dashboard.runtime.supervisor import Console, Supervisor


def item(row: dict[str, Any], data: Path) -> Part | StartupStep:
    argv = [word.replace("{data}", str(data)) for word in row["argv"]]
    ready = data / row.get("ready", f"{row['name']}.ready")

    def command(layout: Layout) -> Command:
        ready.unlink(missing_ok=True)
        return Command(argv, dict(os.environ), data, row.get("ladder", "TERM:3"))

    after = tuple(row.get("after", ()))
    if port := row.get("port"):
        return Part(
            row["name"],
            lambda layout: Command(argv, dict(os.environ), data),
            lambda layout: reply(port, HTTP_HELLO),
            after=after,
            answer=lambda layout: reply(port, HTTP_HELLO, seconds=2),
            keeps_data=row.get("keeps_data", False),
        )
    if "step" in row:
        return StartupStep(row["name"], command, after, relay=row["step"] == "relay", vital=row["step"] != "relay")
    return Part(
        row["name"],
        command,
        lambda layout: "there" if ready.exists() else None,
        after=after,
        seconds=60,
        without=row.get("without", ""),
    )


def main() -> int:
    data = Path(sys.argv[1])
    supervisor.WATCH_PACE, supervisor.TELL_AFTER, supervisor.HUNG_AFTER = 0.5, 3.0, 8.0
    console = Console()
    try:
        claimed = claim(data, lambda text: console.say("", text))
        watchdog = Watchdog(keep=(claimed.descriptor,))
        watchdog.start()
        claimed.publish(address="http://localhost:12345/", environment={"X": "y"}, watchdog=watchdog.pid)
        layout = Layout.at(data, watchdog, say=console.say)
        try:
            items = [item(row, data) for row in json.loads(Path(sys.argv[2]).read_text())]
            return Supervisor(layout, items, console, "all there").run()
        finally:
            watchdog.close()
            claimed.release()
    except ServiceError as error:
        print(error.message, flush=True)
        return 1


if __name__ == "__main__":
    sys.exit(main())
