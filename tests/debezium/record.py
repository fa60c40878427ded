"""Writes `events/` anew, from Debezium's real connector: `python -m tests.debezium.record`.

Runs the tests of this folder, which run every scenario of scenarios.yaml, on a broker, a PostgreSQL and a Kafka
Connect of their own, and keeps what stood on the topics. Look at the difference before you keep it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest

from tests.debezium.events import FOLDER

#: what would stand in for the session's own parts, whose topics have to be empty
ADDRESSES = ("KAFKA_BOOTSTRAP", "CONNECT_URL", "LOGICAL_POSTGRES")
#: the tests that run all scenarios
TESTS = Path(__file__).with_name("test_connector.py")


def main() -> int:
    """The tests' exit status; only where it is 0 are there new files."""
    for name in ADDRESSES:
        os.environ.pop(name, None)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["RECORD_DEBEZIUM_EVENTS"] = folder
        if status := pytest.main(["-q", str(TESTS)]):
            return int(status)
        FOLDER.mkdir(exist_ok=True)
        for old in FOLDER.glob("*.json*"):
            old.unlink()
        for path in Path(folder).iterdir():
            (FOLDER / path.name).write_bytes(path.read_bytes())
    return 0


if __name__ == "__main__":
    sys.exit(main())
