"""A real OpenID Connect provider on this machine: the certified npm package `oidc-provider` (MIT), in tests alone.

It takes node and npm, and npm's registry for the first build, which is kept in the product's cache.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dashboard.runtime.layout import cache_folder

HERE = Path(__file__).parent / "oidc_provider"
FILES = ("main.js", "package.json", "package-lock.json")
CLIENT_SECRET = "a-secret-of-the-tests"
BUILD_SECONDS = 300


def built() -> Path:
    """The folder with the provider and its packages; built once."""
    digest = hashlib.sha256(b"\0".join((HERE / name).read_bytes() for name in FILES)).hexdigest()[:16]
    base = cache_folder() / "clients"
    base.mkdir(parents=True, exist_ok=True)
    folder = base / f"oidc-provider-{digest}"
    with (base / "oidc-provider.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            fresh = Path(tempfile.mkdtemp(prefix="new-oidc-provider-", dir=base))
            try:
                for name in FILES:
                    shutil.copy2(HERE / name, fresh)
                command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
                subprocess.run(command, cwd=fresh, check=True, capture_output=True, timeout=BUILD_SECONDS)
                fresh.rename(folder)
            finally:
                shutil.rmtree(fresh, ignore_errors=True)
    return folder


@contextmanager
def running(*, people: dict[str, dict[str, Any]], redirect_uri: str) -> Iterator[str]:
    """The issuer's address, for people by their subject with what is claimed of each."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    environment = {
        "PATH": os.environ["PATH"],
        "PORT": str(port),
        "PEOPLE": json.dumps(people),
        "CLIENT_SECRET": CLIENT_SECRET,
        "REDIRECT_URI": redirect_uri,
    }
    process = subprocess.Popen(
        ["node", "main.js"],
        cwd=built(),
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
    )
    try:
        assert process.stdout is not None
        said = next((line for line in process.stdout if line.strip() == "ready"), "")
        assert said, f"the provider ended with {process.poll()}"
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=60)
        if process.stdout:
            process.stdout.close()
