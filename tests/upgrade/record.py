"""`python -m tests.upgrade.record`: records the database of a release, for the tests of the next (docs/how-to/release.md)."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.upgrade.definitions import EXCEPTIONS, HERE

ROOT = HERE.parents[1]


def main() -> None:
    """Fill a database through the services and write it, with no exceptions yet."""
    environment = os.environ | {"RECORD_RELEASE": "1"}
    command = [sys.executable, "manage.py", "test", str(HERE / "recording.py"), "-q"]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=False)
    if done.returncode == 0:
        kept = [line for line in EXCEPTIONS.read_text().splitlines(keepends=True) if line.startswith("#")]
        EXCEPTIONS.write_text("".join(kept))
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
