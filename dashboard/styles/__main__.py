"""`python -m dashboard.styles`: rebuild the committed CSS and icon sprite."""

from __future__ import annotations

import sys

from dashboard.styles import ROOT, build


def main() -> None:
    """Build both files and print a line for each."""
    for path in build():
        sys.stdout.write(f"{path.relative_to(ROOT)}  {path.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
