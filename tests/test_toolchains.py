"""A toolchain that is missing, or that is on PATH and can't run, is reported, or fails the run where it is required."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.clients.programs import LANGUAGES
from tests.clients.serving import available
from tests.toolchains import JAVA, NOT_RUN, REQUIRED, TOOLS, environment, missing_tools, report_not_run, require_tools

ROOT = Path(__file__).resolve().parent.parent
#: what a launcher on PATH does → how it is described, for a tool of the name `{tool}`
BROKEN = {
    "no default toolchain": (
        "echo 'error: no default is configured' >&2; exit 1",
        "{tool} doesn't start (error: no default is configured)",
    ),
    "silent failure": ("exit 127", "{tool} doesn't start (exit code 127)"),
    "no version": ("echo hello", "{tool} doesn't say its version ('hello')"),
}


def launcher(folder: Path, tool: str, script: str) -> None:
    path = folder / tool
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.mark.parametrize("tool", sorted(TOOLS))
@pytest.mark.parametrize("case", sorted(BROKEN))
def test_a_launcher_without_a_toolchain_counts_as_missing(
    tool: str, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, description = BROKEN[case]
    launcher(tmp_path, tool, script)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert missing_tools([tool]) == description.format(tool=tool)


def test_a_tool_that_is_no_program_counts_as_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "go").write_bytes(b"\x00not a program")
    (tmp_path / "go").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert missing_tools(["go"]) == "go doesn't start (Exec format error)"


@pytest.mark.parametrize(("line", "fault"), [("openjdk 17.0.15 2025-04-15", ""), ("openjdk 11.0.2", "is version 11")])
def test_an_old_java_counts_as_missing(line: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher(tmp_path, "java", f"echo '{line}'")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert missing_tools(["java"]) == (f"java {fault}, older than 17" if fault else "")


def test_a_tool_sees_the_variables_that_the_program_is_built_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher(tmp_path, "rustc", 'test -n "$RUSTUP_HOME" && echo "rustc 1.95.0"')
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("RUSTUP_HOME", raising=False)
    assert missing_tools(["rustc"]) == "rustc doesn't start (exit code 1)"
    monkeypatch.setenv("RUSTUP_HOME", str(tmp_path))
    assert missing_tools(["rustc"]) == ""


@pytest.mark.parametrize("name", sorted(LANGUAGES))
def test_a_missing_toolchain_skips_the_test_or_fails_it_where_it_is_required(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    missing = missing_tools(LANGUAGES[name].tools)
    assert missing == f"{' and '.join(LANGUAGES[name].tools)} not on PATH"
    monkeypatch.delenv(REQUIRED, raising=False)
    with pytest.raises(pytest.skip.Exception, match=f"{NOT_RUN}{missing}"):
        available(name, None)  # type: ignore[arg-type]
    monkeypatch.setenv(REQUIRED, "1")
    with pytest.raises(pytest.fail.Exception, match=f"{NOT_RUN}{missing}"):
        available(name, None)  # type: ignore[arg-type]


def test_absent_and_broken_tools_are_named_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher(tmp_path, "javac", "exit 2")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv(REQUIRED, "1")
    with pytest.raises(pytest.fail.Exception, match="Java's was not run: java not on PATH; javac doesn't start"):
        require_tools("Java's", JAVA)


@pytest.mark.slow
def test_the_run_reports_what_it_left_out_and_succeeds(tmp_path: Path) -> None:
    launcher(tmp_path, "go", "echo 'no toolchain' >&2; exit 1")
    path = f"{tmp_path}:{os.environ['PATH']}"
    # Nothing else of this run's environment: its database is in use.
    command = [sys.executable, "manage.py", "test", "tests/clients/test_franz_go.py", "-q", "-n", "2"]
    done = subprocess.run(
        command, cwd=ROOT, env=environment() | {"PATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "franz-go's sr was not run: go doesn't start (no toolchain) (7 tests)" in done.stdout
    assert f"{REQUIRED}=1 makes a missing toolchain a failure." in done.stdout


def test_other_skips_are_not_reported_as_toolchains() -> None:
    lines: list[str] = []
    reports = [
        SimpleNamespace(longrepr=("file", 1, f"Skipped: franz-go's sr {NOT_RUN}no go")),
        SimpleNamespace(longrepr=("file", 1, "Skipped: something else")),
    ]
    reporter: Any = SimpleNamespace(stats={"skipped": reports}, section=lines.append, line=lines.append)
    report_not_run(reporter)
    assert f"franz-go's sr {NOT_RUN}no go (1 tests)" in lines
    assert not [line for line in lines if "something else" in line]
    lines.clear()
    reporter.stats = {}
    report_not_run(reporter)
    assert lines == []
