"""The toolchains of other languages that some tests need, and what happens where one is missing.

A toolchain is there if its tools start and are new enough. A launcher on PATH without a toolchain behind it (rustup's
`rustc`, a version manager's `node` or `java`) is missing like one that isn't on PATH. Tests that need a missing one are
skipped, and the end of the run says which and why; `REQUIRE_CLIENTS=1` makes each a failure.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

#: set to 1 where a missing toolchain has to fail
REQUIRED = "REQUIRE_CLIENTS"
NOT_RUN = "was not run: "
#: What the tools and programs get of this process's environment: where tools, caches and certificates are.
PASSED_ON = ("PATH", "HOME", "LANG", "TMPDIR", "XDG_CACHE_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR", "JAVA_HOME")
PASSED_ON_PREFIXES = (
    "CARGO_",
    "RUSTUP_",
    "GO",
    "NPM_CONFIG_",
    "npm_config_",
    "NODE_",
    "PIP_",
    "HTTP",
    "http",
    "NO_PROXY",
    "no_proxy",
)
START_SECONDS = 60  # a launcher may be slow for the first time; one that waits for a person never ends


@dataclass(frozen=True)
class Tool:
    """How a tool says its version, and the oldest major version that will do."""

    version_words: tuple[str, ...] = ("--version",)
    oldest: int = 0


TOOLS = {
    "cargo": Tool(),
    "cc": Tool(),
    "go": Tool(("version",)),
    "java": Tool(oldest=17),
    "javac": Tool(oldest=17),
    "node": Tool(),
    "npm": Tool(),
    "pip": Tool(oldest=23),  # from there on it installs for another Python
    "rustc": Tool(),
}
#: what compiles and starts a Java source; `java Source.java` needs the compiler too
JAVA = ("java", "javac")


def environment() -> dict[str, str]:
    """The variables that tools and programs are started with."""
    return {
        name: value for name, value in os.environ.items() if name in PASSED_ON or name.startswith(PASSED_ON_PREFIXES)
    }


def missing_tools(tools: Iterable[str]) -> str:
    """What this machine lacks of the tools and why, in words; empty where nothing is missing."""
    variables = tuple(sorted(environment().items()))
    faults = {tool: _fault(tool, variables) for tool in tools}
    absent = [tool for tool, fault in faults.items() if fault == "not on PATH"]
    broken = [f"{tool} {fault}" for tool, fault in faults.items() if fault and tool not in absent]
    return "; ".join([f"{' and '.join(absent)} not on PATH"] * bool(absent) + broken)


@cache
def _fault(tool: str, variables: tuple[tuple[str, str], ...]) -> str:
    """Why the tool can't be used with these variables; empty where it can."""
    env: Mapping[str, str] = dict(variables)
    path = shutil.which(tool, path=env.get("PATH", ""))
    if path is None:
        return "not on PATH"
    description = TOOLS[tool]
    try:
        done = subprocess.run(
            [path, *description.version_words],
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=START_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"doesn't answer {' '.join(description.version_words)} in {START_SECONDS} s"
    except OSError as error:
        return f"doesn't start ({error.strerror})"
    if done.returncode:
        lines = (done.stderr + done.stdout).strip().splitlines()
        return f"doesn't start ({lines[0] if lines else f'exit code {done.returncode}'})"
    version = re.search(r"\d+", done.stdout)
    if version is None:
        return f"doesn't say its version ({done.stdout.strip()[:80]!r})"
    if int(version[0]) < description.oldest:
        return f"is version {version[0]}, older than {description.oldest}"
    return ""


def require_tools(what: str, tools: Iterable[str]) -> None:
    """Skips the test if tools are missing that `what` needs; fails it if REQUIRE_CLIENTS is 1."""
    if missing := missing_tools(tools):
        reason = f"{what} {NOT_RUN}{missing}"
        if os.environ.get(REQUIRED) == "1":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)


def report_not_run(terminalreporter: Any) -> None:
    """Says at the end of a run which tests lacked a toolchain."""
    prefix = "Skipped: "
    reasons = [str(report.longrepr[2]).removeprefix(prefix) for report in terminalreporter.stats.get("skipped", [])]
    not_run = [reason for reason in reasons if NOT_RUN in reason]
    if not not_run:
        return
    terminalreporter.section("not run: toolchains that this machine lacks")
    for reason in sorted(set(not_run)):
        terminalreporter.line(f"{reason} ({not_run.count(reason)} tests)")
    terminalreporter.line(f"{REQUIRED}=1 makes a missing toolchain a failure.")
