"""Scala sources compiled with the compiler that PySpark's own jars hold, for what has no Python form."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pyspark

from tests.java_words import SHORT_LIVED


def compiled(sources: Sequence[Path], folder: Path) -> Path:
    """Compile Scala sources against the installed Spark into `folder`, which goes on a class path.

    Raises RuntimeError with the compiler's own words.
    """
    folder.mkdir(parents=True, exist_ok=True)
    jars = Path(pyspark.__file__).parent / "jars"
    command = ["java", *SHORT_LIVED, "-Xmx1g", "-Xss8m", "-cp", f"{jars}/*"]
    command += ["scala.tools.nsc.Main", "-usejavacp", "-nowarn"]
    command += ["-d", str(folder), *map(str, sources)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the Scala sources don't compile: {(done.stdout + done.stderr)[-3000:]}")
    return folder
