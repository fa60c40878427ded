"""manage.py on a machine with nothing but Python."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from django.core.management import get_commands

from tests.runtime.conftest import ROOT

pytestmark = pytest.mark.slow

PYTHON = getattr(sys, "_base_executable", sys.executable)
FAKE_UV = """#!/bin/sh
echo "$@" >> {log}
sleep {pause}
exit {status}
"""
FAKE_COMMAND = "def adopt_running(data):\n    return data and f'No `up` runs on {data}.'\n"
HELLO = "class Command:\n    help = (\n        'Greet the world. '\n        'Exit code 0: always.'\n    )\n"
FAKE_DJANGO = "import sys\ndef execute_from_command_line(argv):\n    print('ran', argv[1], sys.prefix)\n"


@pytest.fixture
def manage() -> ModuleType:
    spec = importlib.util.spec_from_file_location("manage", ROOT / "manage.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Clone:
    """A project that has the real manage.py and stands in for the rest; its `uv` notes what it is asked for."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "clone"
        self.bin = folder / "bin"
        self.log = folder / "uv.log"
        for name in ("dashboard/runtime", "dashboard/management/commands", "django/core"):
            (self.root / name).mkdir(parents=True)
        self.bin.mkdir()
        shutil.copy(ROOT / "manage.py", self.root)
        (self.root / "dashboard/runtime/data_folder.py").write_text(FAKE_COMMAND)
        (self.root / "dashboard/management/commands/hello.py").write_text(HELLO)
        (self.root / "django/core/management.py").write_text(FAKE_DJANGO)
        (self.root / "requirements.lock").write_text("aaa==1.0 \\\n    --hash=sha256:00\n")
        (self.root / "requirements-dev.lock").write_text("bbb==1.0 \\\n    --hash=sha256:00\n")
        self.installer()

    def installer(self, *, status: int = 0, pause: float = 0) -> None:
        uv = self.bin / "uv"
        uv.write_text(FAKE_UV.format(log=self.log, status=status, pause=pause))
        uv.chmod(0o755)

    def start(self, *arguments: str, python: str = PYTHON) -> subprocess.Popen[str]:
        environment = {"PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(self.root)}
        return subprocess.Popen(
            [python, str(self.root / "manage.py"), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
        )

    def run(self, *arguments: str, python: str = PYTHON) -> tuple[int, str]:
        process = self.start(*arguments, python=python)
        shown, _ = process.communicate(timeout=240)
        return process.returncode, shown

    @property
    def installations(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    @property
    def stamp(self) -> dict[str, str]:
        path = self.root / ".venv/schemadesk-installed.json"
        return json.loads(path.read_text()) if path.exists() else {}


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


def test_the_first_run_installs_and_goes_on_inside_and_the_second_only_goes_on(clone: Clone) -> None:
    for _ in range(2):
        status, shown = clone.run("hello")
        assert (status, shown.splitlines()[-1]) == (0, f"ran hello {clone.root / '.venv'}")
    assert len(clone.installations) == 1
    assert "--require-hashes" in clone.installations[0]
    assert clone.stamp.keys() == {"requirements.lock"}


@pytest.mark.parametrize("arguments", [["--data", "/x"], ["--data=/x", "orders"], ["orders", "--data", "/x"]])
def test_any_command_takes_the_data_folder_of_a_running_up(
    clone: Clone, manage: ModuleType, arguments: list[str]
) -> None:
    others = [word for word in arguments if word == "orders"]
    assert manage.without_data(["manage.py", "hello", *arguments]) == ("/x", ["manage.py", "hello", *others])
    status, shown = clone.run("hello", *arguments)
    assert (status, shown.splitlines()[-1]) == (64, "No `up` runs on /x.")


def test_what_follows_two_hyphens_names_no_folder(manage: ModuleType) -> None:
    for argv in (["manage.py", "hello"], ["manage.py", "hello", "--data"], ["manage.py", "hello", "--", "--data", "x"]):
        assert manage.without_data(argv) == ("", argv)


@pytest.mark.parametrize("arguments", [[], ["help"], ["--help"], ["-h"]])
def test_the_help_installs_nothing(clone: Clone, arguments: list[str]) -> None:
    status, shown = clone.run(*arguments)
    assert status == 0
    assert "  hello                 Greet the world.\n" in shown
    assert not (clone.root / ".venv").exists() and clone.installations == []


@pytest.mark.parametrize("arguments", [["hullo"], ["help", "hullo"], ["hullo", "--help"]])
def test_an_unknown_command_installs_nothing(clone: Clone, arguments: list[str]) -> None:
    status, shown = clone.run(*arguments)
    assert (status, shown) == (1, "Unknown command: 'hullo'. Run `manage.py help` for the commands.\n")
    assert not (clone.root / ".venv").exists() and clone.installations == []


def test_the_help_knows_every_command(manage: ModuleType) -> None:
    assert [name for name in get_commands() if not manage.is_known(name)] == []
    summaries = {name: manage.summary_of(file) for name, file in manage.command_files().items()}
    assert {"up", "demo", "scan_source", "reference", "bench"} <= summaries.keys()
    assert [name for name, summary in summaries.items() if len(summary) < 10] == []


def test_another_lock_file_is_installed_once_more(clone: Clone) -> None:
    clone.run("hello")
    (clone.root / "requirements.lock").write_text("aaa==2.0 \\\n    --hash=sha256:00\n")
    clone.run("hello")
    clone.run("hello")
    assert len(clone.installations) == 2


def test_tests_need_the_development_lock_too_and_it_is_kept_up(clone: Clone) -> None:
    clone.run("hello")
    clone.run("lint")
    assert "requirements-dev.lock" in clone.installations[1]
    assert clone.stamp.keys() == {"requirements.lock", "requirements-dev.lock"}
    (clone.root / "requirements.lock").write_text("aaa==2.0 \\\n    --hash=sha256:00\n")
    clone.run("hello")
    assert "requirements-dev.lock" in clone.installations[2]


def test_a_failed_installation_is_said_and_done_again(clone: Clone) -> None:
    clone.installer(status=3)
    status, shown = clone.run("hello")
    assert status == 1
    assert "Installing requirements.lock failed" in shown
    assert clone.stamp == {}
    clone.installer()
    assert clone.run("hello")[0] == 0
    assert len(clone.installations) == 2


def test_an_interrupted_installation_is_done_again(clone: Clone) -> None:
    clone.installer(pause=30)
    process = clone.start("hello")
    while not clone.installations:
        assert process.poll() is None
    process.kill()
    process.communicate()
    assert clone.stamp == {}
    clone.installer()
    assert clone.run("hello")[0] == 0


def test_two_at_once_install_once(clone: Clone) -> None:
    clone.installer(pause=1)
    both = [clone.start("hello"), clone.start("hello")]
    shown = [process.communicate(timeout=240)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert len(clone.installations) == 1
    assert sum("Another process is installing" in text for text in shown) == 1


def test_an_environment_whose_python_is_gone_is_recreated(clone: Clone) -> None:
    clone.run("hello")
    python = clone.root / ".venv/bin/python"
    python.unlink()
    python.symlink_to("/no/such/python")
    assert clone.run("hello")[0] == 0
    assert len(clone.installations) == 2


def test_inside_somebody_elses_environment_nothing_is_installed(clone: Clone, tmp_path: Path) -> None:
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", tmp_path / "theirs"], check=True)
    theirs = str(tmp_path / "theirs/bin/python")
    status, shown = clone.run("hello", python=theirs)
    assert status == 1
    assert "lacks 1 of Schemadesk's requirements: aaa." in shown
    assert f"{theirs} -m pip install --require-hashes -r {clone.root / 'requirements.lock'}" in shown
    assert clone.installations == []
    assert not (clone.root / ".venv").exists()
    status, shown = clone.run("test", python=theirs)
    assert "lacks 2 of" in shown and "requirements-dev.lock" in shown


def test_somebodys_environment_that_has_all_is_used(clone: Clone, tmp_path: Path) -> None:
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", tmp_path / "theirs"], check=True)
    site = next((tmp_path / "theirs/lib").glob("python3*/site-packages"))
    (site / "aaa-1.0.dist-info").mkdir()
    (site / "aaa-1.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: aaa\nVersion: 1.0\n")
    status, shown = clone.run("hello", python=str(tmp_path / "theirs/bin/python"))
    assert (status, shown.split()) == (0, ["ran", "hello", str(tmp_path / "theirs")])


def test_an_old_python_gets_a_sentence(
    manage: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    assert manage.main(["manage.py", "up"]) == 1
    assert "needs Python 3.11 or newer" in capsys.readouterr().err


def test_what_takes_longer_is_said(
    manage: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(manage, "SAY_AFTER", 0.1)
    manage.with_progress("Resting", ["sleep", "0.4"])
    assert "Resting … 0 s" in capsys.readouterr().err


def test_the_failing_commands_own_words_are_shown(manage: ModuleType) -> None:
    with pytest.raises(manage.BootstrapError, match="no such hash"):
        manage.with_progress("Installing", ["sh", "-c", "echo no such hash; exit 1"])


def test_the_lock_files_name_no_index() -> None:
    for name in ("requirements.lock", "requirements-dev.lock", "dashboard/runtime/installer.lock"):
        text = (ROOT / name).read_text()
        assert "--hash=sha256:" in text
        assert "--index-url" not in text and "://" not in text


def test_the_real_lock_file_is_installed_here(manage: ModuleType) -> None:
    missing = [name for name in manage.locked_names(ROOT / "requirements.lock") if not manage.installed(name)]
    assert missing == []
