"""Importing: exports that restore exactly, and other registries that are copied over HTTP."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.core.servers.basehttp import WSGIRequestHandler
from django.db import connection

from registry.access.roles import Actor
from registry.errors import InvalidSnapshot
from registry.formats.base import Reference
from registry.subjects.import_export.export_file import read_snapshot, write_snapshot
from registry.subjects.import_export.snapshot import Snapshot, contents_of
from registry.subjects.models import SchemaVersion
from registry.subjects.policy.effective_policy import effective_config, effective_mode
from registry.subjects.remote.mirrors import SyncResult, add_remote_registry, sync_registry
from registry.subjects.selectors import get_schema, get_version, list_versions
from registry.subjects.services import delete_subject, delete_version, ensure_registry, register_version, set_mode
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName
from tests.subjects.import_export.import_fixtures import furnish, record

ROOT = Path(__file__).resolve().parents[3]
ORDER = SubjectName(".", "aa-order")


@pytest.fixture
def source(raw_targets: None, live_server: Any, token: Callable[[str], str], settings: Any, monkeypatch: Any) -> str:
    """The address of the registry `dev` of a running server, with one of everything in it, and its secret `source`."""
    settings.EGRESS_ALLOW = ("localhost",)
    port = live_server.url.rpartition(":")[2]
    monkeypatch.setenv("SCHEMADESK_SECRET_SOURCE", f"localhost:{port} {token('admin')}")
    return f"http://localhost:{port}/registries/dev"


@pytest.fixture
def raw_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Django's test server hands over the raw target as a production server does."""
    environ = WSGIRequestHandler.get_environ
    monkeypatch.setattr(WSGIRequestHandler, "get_environ", lambda self: {**environ(self), "RAW_URI": self.path})


def run(*arguments: str) -> tuple[int, str]:
    """Exit code and output of `import_registry`."""
    out, problems = io.StringIO(), io.StringIO()
    try:
        call_command("import_registry", *arguments, stdout=out, stderr=problems)
    except SystemExit as end:
        said = [line for line in problems.getvalue().splitlines() if line.startswith("!")]
        return int(end.code or 0), "\n".join([*said, out.getvalue()])
    except CommandError as error:
        return error.returncode, str(error)
    return 0, out.getvalue()


def exported(registry: str, folder: Path) -> bytes:
    file = folder / f"{registry}.jsonl"
    call_command("export_registry", str(file), "--registry", registry, stdout=io.StringIO())
    return file.read_bytes()


@pytest.mark.django_db
@pytest.mark.requirement("CARD-1")
def test_an_export_restores_exactly(registries: None, system: Actor, tmp_path: Path) -> None:
    furnish("dev", system)
    first = exported("dev", tmp_path)
    code, said = run("--from", str(tmp_path / "dev.jsonl"), "--into", "restored")
    assert code == 0, said
    assert exported("restored", tmp_path) == first
    assert b'"deleted_at"' in first
    assert b'"submitted"' in first
    code, said = run("--from", str(tmp_path / "dev.jsonl"), "--into", "restored")
    assert (code, said.splitlines()[-1].split(",")[0]) == (0, "0 versions added")
    assert run("--from", str(tmp_path / "dev.jsonl"), "--into", "restored", "--diff")[0] == 0


@pytest.mark.django_db
def test_ids_are_not_given_again_after_a_restore(registries: None, system: Actor, tmp_path: Path) -> None:
    furnish("dev", system)
    exported("dev", tmp_path)
    run("--from", str(tmp_path / "dev.jsonl"), "--into", "restored")
    new = {"subject": SubjectName(".", "new"), "text": record("New", "x"), "by": system}
    assert register_version(registry="restored", **new) == _with_id_of(
        register_version(registry="dev", **new), "restored"
    )


def _with_id_of(done: Any, registry: str) -> Any:
    from dataclasses import replace

    row = SchemaVersion.objects.get(subject__context__registry__name=registry, subject__name="new")
    return replace(done, version_id=row.pk)


@pytest.mark.slow
@pytest.mark.requirement("GOO-1", "CARD-1")
@pytest.mark.usefixtures("transactional_db")
def test_a_running_registry_is_copied(source: str, system: Actor) -> None:
    furnish("dev", system)
    code, said = run("--from", source, "--secret", "source", "--into", "copy")
    assert code == 0, said
    here, there = contents_of(get_registry("copy")), contents_of(get_registry("dev"))
    assert _facts(here) == _facts(there)
    copy = get_registry("copy")
    assert get_version(copy, SubjectName(".", "mm-price"), 1).schema.references == (Reference("Money", "zz-money", 1),)
    assert list_versions(copy, ORDER) == [1, 3]
    assert effective_config(copy, ORDER).level == "FORWARD"
    assert (effective_mode(copy).mode, effective_mode(copy, ORDER).mode) == ("READWRITE", "READONLY")
    assert run("--from", source, "--secret", "source", "--into", "copy", "--diff") == (
        0,
        f"{len(there.versions)} versions are the same\n",
    )
    code, said = run("--from", source, "--secret", "source", "--into", "copy")
    assert (code, said.splitlines()[-1]) == (
        0,
        f"0 versions added, 0 changed, {len(there.versions)} unchanged, 0 problems",
    )


def _facts(snapshot: Snapshot) -> dict[str, Any]:
    """All that the REST API tells of a registry."""
    return {
        "versions": {
            (item.subject, item.version): (
                item.schema_id, item.schema_type, item.text, item.references, item.metadata, item.rule_set, item.deleted,
            )
            for item in snapshot.versions
        },
        "contexts": dict(snapshot.contexts),
        "configs": {scope: dict(settings) for scope, settings in snapshot.configs.items()},
        "modes": dict(snapshot.modes),
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.requirement("CARD-1")
@pytest.mark.usefixtures("transactional_db")
def test_an_import_that_is_killed_goes_on_when_started_again(registries: None, system: Actor, tmp_path: Path) -> None:
    """kill -9 at three moments; each further run goes on, and the last finds nothing to change."""
    ensure_registry(name="full", by=system)
    for number in range(400):
        name = SubjectName(".", f"s{number % 40:02}")
        register_version(registry="full", subject=name, text=record("R", f"f{number}"), by=system, force="many")
    exported("full", tmp_path)
    arguments = ["import_registry", "--from", str(tmp_path / "full.jsonl"), "--into", "half"]
    counts = [_killed(arguments, after=versions) for versions in (1, 120, 250)]
    assert 0 < counts[0] <= counts[1] <= counts[2] < 400, counts
    assert counts[0] % 100 == 0, "a batch is there as a whole or not at all"
    assert effective_mode(get_registry("half")).mode == "IMPORT"
    code, said = run(*arguments[1:])
    assert (code, said.splitlines()[-1]) == (
        0,
        f"{400 - counts[2]} versions added, 0 changed, {counts[2]} unchanged, 0 problems",
    )
    assert exported("half", tmp_path) == exported("full", tmp_path)
    assert run(*arguments[1:])[1].startswith("0 versions added, 0 changed, 400 unchanged, 0 problems")


def _killed(arguments: list[str], *, after: int) -> int:
    """Run the command in a process of its own and kill it when so many versions are there; gives how many stayed."""
    login = connection.settings_dict
    url = f"postgresql:///{login['NAME']}?host={login['HOST']}&port={login['PORT']}&user={login['USER']}"
    environment = os.environ | {"DATABASE_URL": url + f"&password={login['PASSWORD']}", "SECRET_KEY": "x"}
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "manage.py"), *arguments], env=environment, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 180
        while _count("half") < after and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        assert process.poll() is None, "it ended before it could be killed"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    time.sleep(0.2)  # the server notices, and gives up what wasn't committed
    return _count("half")


def _count(registry: str) -> int:
    return SchemaVersion.objects.filter(subject__context__registry__name=registry).count()


@pytest.mark.django_db
def test_the_differences_are_said_and_nothing_changes(registries: None, system: Actor, tmp_path: Path) -> None:
    furnish("dev", system)
    file = tmp_path / "dev.jsonl"
    exported("dev", tmp_path)
    code, said = run("--from", str(file), "--into", "staging", "--diff")
    assert code == 1
    assert "+ aa-order version 2, schema id 3, deleted" in said.splitlines()
    assert (
        "~ config of aa-order: compatibility_group inherited here, major there; default_metadata inherited here, {'properties': {'k': 'v'}} there; level inherited here, FORWARD there"
        in said.splitlines()
    )
    assert "~ mode of aa-order: inherited here, READONLY there" in said.splitlines()
    assert _count("staging") == 0
    run("--from", str(file), "--into", "staging")
    register_version(registry="staging", subject=SubjectName(".", "mine"), text=record("Mine", "x"), by=system)
    code, said = run("--from", str(file), "--into", "staging", "--diff")
    assert (code, said.splitlines()[0]) == (1, "- mine version 1 exists only here")


@pytest.mark.django_db
def test_a_clash_is_said_and_the_rest_comes_if_asked(registries: None, system: Actor, tmp_path: Path) -> None:
    furnish("dev", system)
    exported("dev", tmp_path)
    file = str(tmp_path / "dev.jsonl")
    register_version(registry="staging", subject=SubjectName(".", "own"), text=record("Own", "x"), by=system)
    code, said = run("--from", file, "--into", "staging")
    clash = "! zz-money version 1: schema id 1 is used by another schema (own version 1) here."
    assert code == 1
    assert clash in said.splitlines()
    assert effective_mode(get_registry("staging")).mode == "IMPORT"
    code, said = run("--from", file, "--into", "staging", "--keep-going")
    assert code == 1
    assert clash in said.splitlines()
    assert "! mm-price version 1: No schema reference found" in said
    assert list_versions(get_registry("staging"), ORDER) == [1, 3]
    assert (
        get_schema(get_registry("staging"), 1).text
        == get_version(get_registry("staging"), SubjectName(".", "own"), 1).schema.text
    )


@pytest.mark.django_db
def test_a_closed_registry_takes_no_import(registries: None, system: Actor, tmp_path: Path) -> None:
    furnish("dev", system)
    exported("dev", tmp_path)
    code, said = run("--from", str(tmp_path / "dev.jsonl"), "--into", "prod")
    assert (code, said.partition(".")[0]) == (2, "Registry prod is a closed environment")
    assert _count("prod") == 0
    set_mode(registry="staging", subject=None, by=system, mode="READONLY")
    code, said = run("--from", str(tmp_path / "dev.jsonl"), "--into", "staging")
    assert (code, said) == (2, "Registry staging is in mode READONLY. Set it to READWRITE or IMPORT first.")
    assert _count("staging") == 0


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("http://anna:hunter2@a.example", "The address contains a user name"),
        ("http://169.254.169.254/", "cloud metadata"),
        ("http://127.0.0.1:9", "must list 127.0.0.1:9 in SCHEMADESK_EGRESS_ALLOW"),
        ("/nowhere/at/all", "No such file"),
        ("ftp://a.example", "must be http://"),
    ],
)
@pytest.mark.django_db
def test_what_cannot_be_read_ends_with_two(registries: None, source: str, why: str) -> None:
    code, said = run("--from", source)
    assert code == 2
    assert why in said
    assert "hunter2" not in said


def _file(*edits: Callable[[list[bytes]], Any]) -> io.BytesIO:
    from registry.subjects.import_export.snapshot import VersionRecord

    versions = [VersionRecord(SubjectName(".", "a"), number, number, "AVRO", '"int"') for number in (1, 2)]
    file = io.BytesIO()
    write_snapshot(Snapshot(tuple(versions), {".": 3}, {None: {"level": "FULL"}}, {None: "READWRITE"}), file)
    lines = file.getvalue().splitlines(keepends=True)
    for edit in edits:
        edit(lines)
    return io.BytesIO(b"".join(lines))


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (lambda lines: lines.pop(), "it is incomplete"),
        (lambda lines: lines.pop(-2), "doesn't match the lines before it"),
        (lambda lines: lines.append(lines[1]), "comes after the end"),
        (lambda lines: lines.pop(0), "line 1 can't be read"),
        (lambda lines: lines.insert(2, lines[4]), "repeats "),
        (lambda lines: lines.__setitem__(1, b"[]\n"), "line 2 can't be read"),
        (lambda lines: lines.__setitem__(1, b"[" * 100_000 + b"\n"), "line 2 can't be read"),
        (lambda lines: lines.__setitem__(1, b"\xff\xfe\n"), "line 2 can't be read"),
        (lambda lines: lines.__setitem__(1, b'{"kind": "__init__"}\n'), "line 2 can't be read"),
        (lambda lines: lines.__setitem__(3, b'{"kind":"mode","context":null,"subject":null,"mode":"X"}\n'), "'X' is not a supported mode"),
        (lambda lines: lines.__setitem__(0, lines[0].replace(b'version":1', b'version":2')), "this program reads 1"),
        (lambda lines: lines.__setitem__(1, b"x" * (17 * 1024 * 1024)), "line 2 has more than"),
        (lambda lines: lines.clear(), "it is incomplete"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_whole_is_refused_by_its_line(edit: Callable[[list[bytes]], Any], why: str) -> None:
    with pytest.raises(InvalidSnapshot, match=why):
        read_snapshot(_file(edit), "x.jsonl")


def test_a_file_says_what_it_holds() -> None:
    lines = [json.loads(line) for line in _file()]
    assert [line["kind"] for line in lines] == ["header", "context", "config", "mode", "version", "version", "end"]
    assert lines[0] == {"kind": "header", "format": "schemadesk registry export", "format_version": 1}
    assert len(read_snapshot(_file(), "x").versions) == 2


@pytest.mark.slow
@pytest.mark.requirement("CARD-1")
@pytest.mark.usefixtures("transactional_db")
def test_a_running_registry_is_mirrored(source: str, system: Actor) -> None:
    furnish("dev", system)
    number = add_remote_registry(name="theirs", url=source, secret="source", by=system)
    done = sync_registry(registry_id=number)
    there = contents_of(get_registry("dev"))
    assert done == SyncResult(len(there.versions), 0, 0, "")
    mirrored = _facts(contents_of(get_registry("theirs")))
    assert mirrored.pop("modes") == {**there.modes, None: "READONLY_OVERRIDE"}
    assert mirrored == {name: facts for name, facts in _facts(there).items() if name != "modes"}
    delete_version(registry="dev", subject=SubjectName(".", "mm-price"), version=1, by=system)
    for permanent in (False, True):
        delete_subject(registry="dev", subject=SubjectName(".", "rules"), by=system, permanent=permanent)
    assert sync_registry(registry_id=number) == SyncResult(0, 1, 1, "")
    theirs = get_registry("theirs")
    assert get_version(theirs, SubjectName(".", "rules"), 1, deleted=True).deleted
    assert get_version(theirs, SubjectName(".", "mm-price"), 1, deleted=True).deleted
    assert sync_registry(registry_id=number) == SyncResult(0, 0, 0, "")
