"""The wheel as an operator has it: built, unpacked away from the checkout, run, backed up and restored."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import psutil
import psycopg
import pytest

from dashboard.database.backup import back_up, remove_transaction_timeout, restore
from dashboard.runtime.layout import free_port
from registry.errors import SchemadeskError
from tests.migrated_database import ROOT, new_database, script
from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("package")]
#: what pip writes for the package's entry point
SECRET_KEY = "correct horse battery staple, 0123456789 and some more of it"
PROGRAM = "import sys\nfrom dashboard.command_line import main\nsys.exit(main())\n"
Run = Callable[..., subprocess.CompletedProcess[str]]


def build(folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("schemadesk-*.whl")
    return wheel


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked wheel with its program."""
    folder = tmp_path_factory.mktemp("package")
    zipfile.ZipFile(build(folder / "dist")).extractall(folder / "site")
    (folder / "schemadesk").write_text(PROGRAM)
    return folder


def database(*, filled: bool) -> AbstractContextManager[dict[str, str]]:
    """A database of its own, empty or with the tables; gives its variables."""
    return new_database(script().read_text() if filled and script().exists() else "")  # else `migrate` makes them


@pytest.fixture
def secrets_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "secrets"
    folder.mkdir()
    (folder / "kafka").write_text("broker:9092 geheim")
    return folder


@pytest.fixture
def program(package: Path, tmp_path: Path, secrets_folder: Path) -> Run:
    """Runs `schemadesk` away from the checkout, with the variables of an installation."""

    def run(*words: str, check: bool = True, **variables: str) -> subprocess.CompletedProcess[str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "REDIS_URL") if name in os.environ}
        environment = kept | {
            "PYTHONPATH": str(package / "site"),
            "SECRET_KEY": SECRET_KEY,
            "SCHEMADESK_SECRETS_DIR": str(secrets_folder),
            "SCHEMADESK_DATA": str(tmp_path / "data"),
        }
        command = [sys.executable, str(package / "schemadesk"), *words]
        done = subprocess.run(
            command, env=environment | variables, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        if check:
            assert done.returncode == 0, done.stderr
        return done

    return run


@contextmanager
def web(package: Path, folder: Path, variables: Mapping[str, str]) -> Iterator[str]:
    port = free_port()
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "REDIS_URL") if name in os.environ}
    environment |= {
        "PYTHONPATH": str(package / "site"),
        "SECRET_KEY": SECRET_KEY,
        "SCHEMADESK_DATA": str(folder / "data"),
    }
    environment |= {"SCHEMADESK_HOT_PATH": "1", "SCHEMADESK_HOSTS": "localhost"}  # as in compose.yaml
    command = [sys.executable, str(package / "schemadesk"), "web", "--port", str(port)]
    with (folder / "web.log").open("w") as log:
        server = subprocess.Popen(command, env={**environment, **variables}, cwd=folder, stdout=log, stderr=log)
        try:
            for _ in range(1200):
                if ask(f"http://localhost:{port}/healthz")[0] == 200:
                    break
                assert server.poll() is None, (folder / "web.log").read_text()
                time.sleep(0.1)
            yield f"http://localhost:{port}"
        finally:
            server.send_signal(signal.SIGTERM)
            assert server.wait(20) in (0, -signal.SIGTERM)


def ask(url: str, body: object = None, **headers: str) -> tuple[int, bytes]:
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(url, data, headers | ({"Content-Type": "application/json"} if data else {}))
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
    except OSError:
        return 0, b""


def test_the_wheel_is_the_same_when_it_is_built_again(tmp_path: Path) -> None:
    first, second = (build(tmp_path / name).read_bytes() for name in ("one", "two"))
    assert first == second
    names = zipfile.ZipFile(tmp_path / "one" / next((tmp_path / "one").iterdir()).name).namelist()
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/")) or name.endswith(".pyc")]


@pytest.mark.requirement("CARD-1")
def test_an_installed_package_serves_is_backed_up_and_is_restored(
    package: Path, program: Run, tmp_path: Path, secrets_folder: Path
) -> None:
    backup, key, former = tmp_path / "monday.tar", tmp_path / "key", "the key before 0123456789 which still counts"
    with database(filled=True) as one, database(filled=False) as other:
        assert "web server" in program().stdout
        assert re.fullmatch(r"Schemadesk \d+\.\d+\.\d+\n", program("--version").stdout)
        program("migrate", **one)
        checks = ("check", "--deploy", "--fail-level", "WARNING")
        assert "no issues" in program(*checks, **one).stdout
        assert "SECRET_KEY_FALLBACKS[0]" in program(*checks, check=False, SECRET_KEY_FALLBACKS="short", **one).stderr
        assert "The admin ops signs in with" in program("prepare", "--admin", "ops", **one).stdout
        assert "There is an admin already" in program("prepare", "--admin", "more", check=False, **one).stderr
        schema = tmp_path / "order.avsc"
        schema.write_text('{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}')
        program("add_schema", "orders-value", str(schema), "--registry", "dev", **one)
        token = program("issue_token", "ops", "backup", **one).stdout.split()[-1]
        with web(package, tmp_path, one) as site:
            before = ask(f"{site}/schemas/ids/1", Authorization=f"Bearer {token}")
            assert before[0] == 200, before
            assert ask(f"{site}/ui/static/app.css")[0] == 200
            page = ask(f"{site}/ui/accounts/login/")
            assert (page[0], b"Schemadesk" in page[1]) == (200, True)
            with psycopg.connect(one["DATABASE_OWNER_URL"]) as connection:
                query = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'schemadesk_app' AND datname = current_database()"
                (kept,) = connection.execute(query).fetchone()
                assert kept >= 1, "connections are pooled"
            said = program("backup", str(backup), SECRET_KEY_FALLBACKS=former, **one).stdout  # while it serves
        assert "1 versions" in said
        assert "3 secrets" in said
        assert backup.stat().st_mode & 0o077 == 0
        assert not list(tmp_path.glob(".backup-*"))
        again = program("backup", str(backup), check=False, **one)
        assert (again.returncode, "exists" in again.stderr) == (1, True)

        elsewhere = {**other, "SCHEMADESK_SECRETS_DIR": str(tmp_path / "restored-secrets")}
        (tmp_path / "restored-secrets").mkdir()
        key.touch()  # as a new host has it
        said = program("restore", str(backup), "--secret-key-file", str(key), **elsewhere).stdout
        assert "agree with it" in said
        assert (tmp_path / "restored-secrets" / "kafka").read_text() == "broker:9092 geheim"
        assert key.read_text() == SECRET_KEY
        assert (tmp_path / "key_fallbacks").read_text() == former
        program("verify_audit", **other)
        with web(package, tmp_path, other) as site:
            assert ask(f"{site}/schemas/ids/1", Authorization=f"Bearer {token}") == before, "ids and tokens stay"
            check_health(site)
        again = program("restore", str(backup), check=False, **elsewhere)
        assert (again.returncode, "Restore into an empty one" in again.stderr) == (1, True)


def check_health(site: str) -> None:
    """Run the image's health check, with the host names of compose.yaml."""
    text = (ROOT / "deploy" / "Containerfile").read_text()
    command = json.loads("[" + re.search(r"^HEALTHCHECK .*CMD \[(.*?)\]$", text.replace("\\\n", ""), re.M)[1] + "]")
    code = command[2].replace("127.0.0.1:8081", site.removeprefix("http://"))
    assert code != command[2]
    subprocess.run([sys.executable, "-c", code], env={"SCHEMADESK_HOSTS": "localhost"}, check=True)
    wrong = subprocess.run(
        [sys.executable, "-c", code.replace("/healthz", "/nothing")], check=False, capture_output=True
    )
    assert wrong.returncode != 0


@pytest.mark.parametrize(
    ("line", "becomes"), [("SET transaction_timeout = 0;\n", "--  transaction_timeout = 0;\n"), ("", "")]
)
def test_an_older_server_gets_no_setting_that_it_does_not_know(line: str, becomes: str, tmp_path: Path) -> None:
    header = (
        "--\n-- PostgreSQL database dump\n--\n\nSET lock_timeout = 0;\nSET idle_in_transaction_session_timeout = 0;\n"
    )
    rest = "SET client_encoding = 'UTF8';\nCOPY t FROM stdin;\nSET transaction_timeout = 0;\n\\.\n"
    (tmp_path / "dump.sql").write_text(header + line + rest)
    remove_transaction_timeout(tmp_path / "dump.sql")
    assert (tmp_path / "dump.sql").read_text() == header + becomes + rest


def altered(backup: Path, target: Path, change: Callable[[str, bytes], bytes | None]) -> Path:
    with tarfile.open(backup) as old, tarfile.open(target, "w") as new:
        for entry in old:
            text = change(entry.name, old.extractfile(entry).read())
            if text is not None:
                entry.size = len(text)
                new.addfile(entry, io.BytesIO(text))
    return target


def stopped(backup: Callable[[], subprocess.CompletedProcess[str]], one: Mapping[str, str], folder: Path) -> None:
    """Stops a backup while it waits for a table: neither a file nor a part of it stays."""
    with psycopg.connect(one["DATABASE_OWNER_URL"]) as holder, ThreadPoolExecutor(1) as pool:
        holder.execute("LOCK TABLE subjects_registry")
        done = pool.submit(backup)
        until(lambda: list(folder.glob(".backup-*")))
        for process in psutil.process_iter(["cmdline"]):
            if str(folder / "stopped.tar") in (process.info["cmdline"] or ()):
                process.terminate()
        assert done.result().returncode == 128 + signal.SIGTERM
    assert [path.name for path in folder.iterdir() if "stopped" in path.name or "backup" in path.name] == []


@pytest.mark.django_db
def test_a_restore_refuses_what_is_no_backup_damaged_newer_or_in_the_way(
    program: Run, tmp_path: Path, secrets_folder: Path
) -> None:
    backup = tmp_path / "b.tar"

    def manifest(**values: object) -> Callable[[str, bytes], bytes]:
        return lambda name, text: json.dumps(json.loads(text) | values).encode() if name == "manifest.json" else text

    with database(filled=True) as one, database(filled=False) as other:
        program("migrate", **one)
        program("backup", str(backup), **one)
        stopped(lambda: program("backup", str(tmp_path / "stopped.tar"), check=False, **one), one, tmp_path)
        (tmp_path / "text.tar").write_text("no archive")
        with tarfile.open(backup) as archive:
            migrations = json.loads(archive.extractfile("manifest.json").read())["migrations"]
        cases = {
            "can't be read as a backup": tmp_path / "text.tar",
            "This is not a backup": altered(
                backup, tmp_path / "1.tar", lambda name, text: None if name == "manifest.json" else text
            ),
            "is damaged": altered(
                backup, tmp_path / "2.tar", lambda name, text: text[:-1] + b"x" if name == "database.dump" else text
            ),
            "made by a newer version": altered(
                backup, tmp_path / "3.tar", manifest(migrations=[*migrations, "subjects.9999_future"])
            ),
            "has no file database.dump": altered(
                backup, tmp_path / "6.tar", lambda name, text: None if name == "database.dump" else text
            ),
            "has no SHA-256 of database.dump": altered(backup, tmp_path / "7.tar", manifest(parts={})),
            "has format 2": altered(backup, tmp_path / "4.tar", manifest(format=2)),
        }
        for words, path in cases.items():
            with pytest.raises(SchemadeskError, match=words):
                restore(path)
        wrong = altered(backup, tmp_path / "5.tar", manifest(rows={"subjects_registry": 7}))
        (secrets_folder / "kafka").write_text("another")
        done = program("restore", str(wrong), check=False, **other)
        assert "another content" in done.stderr
        with psycopg.connect(other["DATABASE_OWNER_URL"]) as connection:
            assert connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (0,)
        (secrets_folder / "kafka").write_text("broker:9092 geheim")
        with pytest.raises(SchemadeskError, match="can't be written"):  # before the database is filled
            restore(wrong, key_file=tmp_path / "nowhere" / "key")
        with pytest.raises(SchemadeskError, match="No backup was made"):
            back_up(tmp_path / "nowhere" / "b.tar")
        done = program("restore", str(wrong), check=False, **other)
        assert "subjects_registry has 0 rows instead of 7" in done.stderr
