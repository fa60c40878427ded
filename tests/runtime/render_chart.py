"""`python -m tests.runtime.render_chart`: renders deploy/helm with `helm` into chart_rendered.yaml, which tests check.

Helm is a program of its own: `go install helm.sh/helm/v3/cmd/helm@v3.16.4`. Run this after each change of the chart.
"""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
CHART: Final = HERE.parents[1] / "deploy" / "helm"
VALUES: Final = HERE / "chart_values.yaml"
RENDERED: Final = HERE / "chart_rendered.yaml"


def digest() -> str:
    """The SHA-256 of all files that the rendered text is made of."""
    whole = hashlib.sha256()
    for path in [*sorted(path for path in CHART.rglob("*") if path.is_file()), VALUES]:
        whole.update(f"{path.name}\0".encode() + path.read_bytes() + b"\0")
    return whole.hexdigest()


def rendered() -> str:
    """What Helm makes of the chart. Raises CalledProcessError with Helm's reason on the terminal."""
    command = ["helm", "template", "schemadesk", str(CHART), "--values", str(VALUES), "--kube-version", "1.31.0"]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


if __name__ == "__main__":
    subprocess.run(["helm", "lint", str(CHART), "--values", str(VALUES), "--kube-version", "1.31.0"], check=True)
    RENDERED.write_text(f"# made of files with the digest {digest()}\n{rendered()}")
