"""What deploy/ has for operators: its commands and settings exist, units are valid, the roles' script works."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
import yaml
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from dashboard import command_line
from dashboard.environment import VARIABLES
from dashboard.runtime.postgres import find_programs

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES = {name: service for name, service in COMPOSE["services"].items() if service.get("image") == "schemadesk"}


def commands() -> dict[str, list[str]]:
    """The words of each command, by where it is."""
    units = {
        unit.name: re.search(r"^ExecStart=\S+/schemadesk (.*)$", unit.read_text(), re.M)[1].split() for unit in UNITS
    }
    image = re.search(r'^CMD \["(.*)"\]$', (DEPLOY / "Containerfile").read_text(), re.M)[1].split('", "')
    return {**units, **{name: service["command"] for name, service in SERVICES.items()}, "Containerfile": image}


@pytest.mark.slow
@pytest.mark.parametrize("place", commands())
def test_its_command_can_be_run(place: str) -> None:
    words = [word.replace("%i", "scans") for word in commands()[place]]
    program = (
        "import sys; sys.argv[0] = 'schemadesk'; from dashboard.command_line import main; sys.exit(main(sys.argv))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *words, "--help"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "usage" in done.stdout) == (0, True), done.stderr
    wrong = subprocess.run(
        [sys.executable, "-c", program, *words, "--no-such-option"], capture_output=True, text=True, check=False
    )
    assert wrong.returncode == 2


def test_every_program_runs_somewhere_and_beat_once() -> None:
    started = [" ".join(words) for words in commands().values()]
    for program in ("web", "worker --queue default", "worker --queue scans", "beat", "migrate"):
        assert any(words.startswith(program) for words in started), program
    assert [name for name, service in SERVICES.items() if service["command"][0] == "beat"] == ["beat"]
    wants = re.search(r"^Wants=(.*)$", (DEPLOY / "systemd" / "schemadesk.target").read_text(), re.M)[1].split()
    assert {re.sub(r"@\w+\.", "@.", name) for name in wants} == {unit.name for unit in UNITS}
    assert {name.split("@")[1].split(".")[0] for name in wants if "@" in name} == set(command_line.QUEUES)


def test_every_variable_is_a_setting() -> None:
    documented = re.findall(r"^([A-Z_]+)=", (DEPLOY.parent / "docs" / "operations" / "install.md").read_text(), re.M)
    used = {name for service in SERVICES.values() for name in service["environment"]} | set(documented)
    assert used - set(VARIABLES) == {"PGPASSWORD"}, "libpq's alone"


def test_containers_are_closed_and_the_owner_is_for_migrations_alone() -> None:
    for name, service in SERVICES.items():
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"]), name
        assert ("DATABASE_OWNER_URL" in service["environment"]) == (name == "migrate")
        for address in service.get("ports", ()):
            assert address.startswith("127.0.0.1:"), "a proxy is in front"
    assert re.search(r"^USER (\d+)", (DEPLOY / "Containerfile").read_text(), re.M)[1] != "0"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_accepts_the_unit(unit: Path, tmp_path: Path) -> None:
    for file in (DEPLOY / "systemd").iterdir():
        (tmp_path / file.name).write_text(file.read_text().replace("/opt/schemadesk/bin/schemadesk", sys.executable))
    name = unit.name.replace("@.", "@scans.")
    command = ["systemd-analyze", "verify", "--man=no", str(tmp_path / name)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "SYSTEMD_UNIT_PATH": f"{tmp_path}:"}
    )
    assert [line for line in done.stderr.splitlines() if "schemadesk" in line] == []


@pytest.mark.skipif(shutil.which("systemctl") is None, reason="no systemd here")
def test_what_is_enabled_starts_with_the_host(tmp_path: Path) -> None:
    units = tmp_path / "etc" / "systemd" / "system"
    shutil.copytree(DEPLOY / "systemd", units)
    guide = (DEPLOY.parent / "docs" / "operations" / "install.md").read_text()
    enabled = {name for line in re.findall(r"^systemctl enable --now (.*)$", guide, re.M) for name in line.split()}
    subprocess.run(
        ["systemctl", f"--root={tmp_path}", "enable", *enabled, "schemadesk.target"], check=True, capture_output=True
    )
    started = {link.name for link in (units / "multi-user.target.wants").iterdir()}
    assert started == {f"{name}.service" for name in enabled} | {"schemadesk.target"}


def test_secrets_are_made_once_and_for_their_owner_alone(tmp_path: Path) -> None:
    script = tmp_path / "secrets.sh"
    script.write_text((DEPLOY / "secrets.sh").read_text())
    for _ in range(2):
        subprocess.run(["sh", str(script)], check=True)
    text = (tmp_path / ".env").read_text()
    lines = dict(line.split("=") for line in text.splitlines())
    needed = set(re.findall(r"\$\{([A-Z_]+):\?", (DEPLOY / "compose.yaml").read_text()))
    assert lines.keys() == needed
    assert len(set(lines.values())) == len(lines)
    assert all(len(value) >= 50 for value in lines.values())
    assert stat.S_IMODE((tmp_path / ".env").stat().st_mode) == 0o600
    subprocess.run(["sh", str(script)], check=True)
    assert (tmp_path / ".env").read_text() == text


@pytest.mark.skipif("DATABASE_OWNER_URL" not in os.environ, reason="the database is given")
def test_the_roles_are_made(tmp_path: Path) -> None:
    suffix = secrets.token_hex(4)
    script = (DEPLOY / "roles.sh").read_text()
    script = re.sub(r"schemadesk(_owner|_app)?\b", lambda found: f"{found[0]}_{suffix}", script)
    login = conninfo_to_dict(os.environ["DATABASE_OWNER_URL"])
    variables = {"PGHOST": str(login["host"]), "PGUSER": "postgres", "OWNER_PASSWORD": "it's $1", "APP_PASSWORD": "b"}
    path = f"{find_programs().folder}:{os.environ['PATH']}"
    subprocess.run(["sh", "-c", script], env={"PATH": path, **variables}, check=True)
    superuser = make_conninfo(os.environ["DATABASE_OWNER_URL"], user="postgres", dbname="postgres")
    with psycopg.connect(superuser, autocommit=True) as connection:
        try:
            rows = connection.execute(
                "SELECT rolname, rolcanlogin, rolsuper, rolcreatedb, rolcreaterole FROM pg_roles WHERE rolname LIKE %s ORDER BY 1",
                [f"%{suffix}"],
            ).fetchall()
            assert rows == [(f"schemadesk_{role}_{suffix}", True, False, False, False) for role in ("app", "owner")]
        finally:
            connection.execute(sql.SQL("DROP DATABASE {}").format(sql.Identifier(f"schemadesk_{suffix}")))
            for role in ("app", "owner"):
                connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(f"schemadesk_{role}_{suffix}")))
