"""`python -m tests.stories.tour`: take the pictures of docs/tour.md again, by running its stories."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def main() -> None:
    """Run the stories with a folder for their pictures."""
    environment = os.environ | {"TOUR_PICTURES": str(ROOT / "docs" / "tour")}
    command = [sys.executable, "manage.py", "test", "tests/stories/test_tour.py", "-q", *sys.argv[1:]]
    sys.exit(subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode)


if __name__ == "__main__":
    main()
