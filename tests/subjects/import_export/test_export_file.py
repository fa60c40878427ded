"""Files that somebody sends to be brought in: what they may be, the plan of them, and doing it once."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from registry.access.roles import Actor, Grant
from registry.errors import InvalidInput, InvalidSnapshot, NotAllowed, OperationNotPermitted, PlanChanged
from registry.subjects.archive import restore
from registry.subjects.archive.restore import apply_copy, plan_copy, send_file
from registry.subjects.import_export import export_file
from registry.subjects.import_export.export_file import read_sent, write_snapshot
from registry.subjects.import_export.import_plan import RestoreOptions
from registry.subjects.import_export.snapshot import contents_of
from registry.subjects.lifecycle.bulk import export_subjects
from registry.subjects.models import ArchivedCopy, Registry, SchemaVersion
from registry.subjects.services import delete_subject, register_version, set_config, set_mode, set_note
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-1", "CARD-2")]
STRICT, MISSING = RestoreOptions(), RestoreOptions(only_missing=True)
SUBJECTS = ("a", "b", "c")


@pytest.fixture
def file(registries: None, system: Actor) -> bytes:
    """Three subjects of dev with all that goes with them, one soft-deleted."""
    for name in SUBJECTS:
        for text in ('"int"', '"long"'):
            set_config(registry="dev", subject=SubjectName(".", name), level="NONE", by=system)
            register_version(registry="dev", subject=SubjectName(".", name), text=text, by=system)
    delete_subject(registry="dev", subject=SubjectName(".", "c"), by=system)
    set_note(registry="dev", subject=SubjectName(".", "a"), tags=["PII"], doc="A.", by=system, expected="*")
    return exported()


def exported(registry: str = "dev") -> bytes:
    found = io.BytesIO()
    write_snapshot(contents_of(get_registry(registry)), found)
    return found.getvalue()


def send(data: bytes, by: Actor, registry: str = "staging") -> int:
    return send_file(registry=registry, data=data, name="dev.jsonl", by=by)


def fates(plan: Any) -> dict[tuple[str, int], str]:
    return {(line.subject.subject, line.version): line.fate for line in plan.lines}


def test_a_plan_changes_nothing_and_is_done_once_as_it_said(file: bytes, system: Actor) -> None:
    number = send(file, system)
    before = exported("staging")
    plan = plan_copy(registry="staging", number=number, ways=STRICT, by=system)
    assert exported("staging") == before
    assert set(fates(plan).values()) == {"created"} and len(plan.lines) == 6 and not plan.stops
    assert any("description of a" in line for line in plan.settings) and any(
        "settings of b" in line for line in plan.settings
    )
    for digest, ways in (("x", STRICT), (plan.digest, MISSING)):
        with pytest.raises(PlanChanged):
            apply_copy(registry="staging", number=number, ways=ways, digest=digest, by=system)
    apply_copy(registry="staging", number=number, ways=STRICT, digest=plan.digest, by=system)
    assert exported("staging") == file
    with pytest.raises(Exception, match=r"Copy \d+ doesn't exist"):
        apply_copy(registry="staging", number=number, ways=STRICT, digest=plan.digest, by=system)
    again = plan_copy(registry="staging", number=send(file, system), ways=STRICT, by=system)
    assert again.is_empty and set(fates(again).values()) == {"same"}


@pytest.fixture
def differing(file: bytes, system: Actor) -> bytes:
    """In staging id 1 is another schema, b 1 is there otherwise, c is live, and x is there alone."""
    set_config(registry="staging", subject=None, level="NONE", by=system)
    for name, text in (("x", '"bytes"'), ("b", '"string"'), ("c", '"double"')):
        register_version(registry="staging", subject=SubjectName(".", name), text=text, by=system)
    return file


def test_conflicts_come_first_and_stop_the_whole(differing: bytes, system: Actor) -> None:
    number, before = send(differing, system), exported("staging")
    plan = plan_copy(registry="staging", number=number, ways=STRICT, by=system)
    assert plan.stops and plan.lines[0].fate == "conflict"
    why = {(line.subject.subject, line.version): line.why for line in plan.lines}
    assert "schema id 1 is used by another schema (x version 1)" in why["a", 1]
    assert why["b", 1] == "it has schema id 2 here and 1 there."
    with pytest.raises(OperationNotPermitted, match="nothing was changed"):
        apply_copy(registry="staging", number=number, ways=STRICT, digest=plan.digest, by=system)
    assert exported("staging") == before


def test_only_what_is_missing_leaves_what_is_there(file: bytes, system: Actor) -> None:
    number = send(file, system)
    strict = plan_copy(registry="staging", number=number, ways=STRICT, by=system)
    apply_copy(registry="staging", number=number, ways=STRICT, digest=strict.digest, by=system)
    b = SubjectName(".", "b")
    for permanent in (False, True):
        delete_subject(registry="staging", subject=b, by=system, permanent=permanent)
    delete_subject(registry="staging", subject=SubjectName(".", "a"), by=system)
    set_config(registry="staging", subject=SubjectName(".", "a"), level="FULL", by=system)
    set_note(registry="staging", subject=SubjectName(".", "a"), tags=[], doc="Mine.", by=system, expected="*")
    here = contents_of(get_registry("staging"))
    number = send(file, system)
    plan = plan_copy(registry="staging", number=number, ways=MISSING, by=system)
    assert fates(plan) == {
        ("a", 1): "left", ("a", 2): "left", ("b", 1): "created", ("b", 2): "created", ("c", 1): "same", ("c", 2): "same",
    }  # fmt: skip
    assert plan.settings == ("settings of b: level",)
    apply_copy(registry="staging", number=number, ways=MISSING, digest=plan.digest, by=system)
    now = contents_of(get_registry("staging"))
    assert {row for row in now.versions if row.subject != b} == set(here.versions)
    assert sum(row.subject == b for row in now.versions) == 2
    assert (now.notes, now.modes) == (here.notes, here.modes)


def test_the_registry_that_moved_in_between_is_reported(file: bytes, system: Actor) -> None:
    number = send(file, system)
    plan = plan_copy(registry="staging", number=number, ways=STRICT, by=system)
    register_version(registry="staging", subject=SubjectName(".", "a"), text='"int"', by=system)
    with pytest.raises(PlanChanged, match="Review the plan again"):
        apply_copy(registry="staging", number=number, ways=STRICT, digest=plan.digest, by=system)


def test_more_than_is_brought_at_once_names_the_command(file: bytes, system: Actor, monkeypatch: Any) -> None:
    monkeypatch.setattr(restore, "MOST", 5)
    with pytest.raises(InvalidInput, match=r"6 versions to import, but at most 5 can be imported.*import_registry"):
        plan_copy(registry="staging", number=send(file, system), ways=STRICT, by=system)
    assert not SchemaVersion.objects.filter(subject__context__registry__name="staging").exists()


def test_chosen_subjects_and_packed_files_are_taken(file: bytes, system: Actor) -> None:
    chosen = io.BytesIO()
    export_subjects(registry="dev", subjects=[SubjectName(".", "a")], file=chosen, by=system)
    for data, versions in ((chosen.getvalue(), 2), (gzip.compress(file), 6)):
        plan = plan_copy(registry="staging", number=send(data, system), ways=STRICT, by=system)
        assert len(plan.lines) == versions and not plan.stops


def zipped(*files: bytes, how: int = zipfile.ZIP_DEFLATED) -> bytes:
    found = io.BytesIO()
    with zipfile.ZipFile(found, "w", how) as archive:
        for number, data in enumerate(files):
            archive.writestr(f"{number}.jsonl", data)
    return found.getvalue()


def twice(good: bytes) -> bytes:
    lines = good.split(b"\n")
    return b"\n".join([*lines[:-2], lines[-3], *lines[-2:]])


#: what is sent, made of a good file → what is said of it
HOSTILE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "nothing": (lambda good: b"", "has no last line, so it is incomplete"),
    "cut": (lambda good: good[:-40], "line"),
    "without its end": (lambda good: b"\n".join(good.split(b"\n")[:-2]) + b"\n", "has no last line"),
    "changed": (lambda good: good.replace(b'"level":"NONE"', b'"level":"FULL"', 1), "was changed or is incomplete"),
    "JSON of another kind": (lambda good: b"[1]\n", "a value has another type than an export writes"),
    "no JSON": (lambda good: b"<html>", r"line 1 can't be read: it isn't JSON at column 1 \(Expecting value\)"),
    "deep": (lambda good: b"[" * 100_000, "it is nested too deeply"),
    "no text": (lambda good: b"\xff\xfe\x00", "it isn't UTF-8"),
    "twice the same version": (twice, "repeats "),
    "bomb of gzip": (lambda good: gzip.compress(bytes(2_000_000)), "Unpacked"),
    "bomb of zip": (lambda good: zipped(bytes(2_000_000)), "Unpacked"),
    "bomb of lzma": (lambda good: zipped(bytes(2_000_000), how=zipfile.ZIP_LZMA), "unsupported compression"),
    "cut gzip": (lambda good: gzip.compress(good)[:-20], "gzip"),
    "two gzips": (lambda good: gzip.compress(good) * 2, "after the end"),
    "damaged gzip": (lambda good: b"\x1f\x8b" + good, "damaged"),
    "damaged zip": (lambda good: zipped(good)[:-30], "damaged"),
    "two files": (lambda good: zipped(good, good), "has 2 files"),
    "too large": (lambda good: bytes(1_500_001), "import_registry"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_files_are_refused_by_name(file: bytes, system: Actor, kind: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(export_file, "MAX_SENT", 1_500_000)
    monkeypatch.setattr(export_file, "MAX_UNPACKED", 1_500_000)
    make, said = HOSTILE[kind]
    with pytest.raises(InvalidSnapshot, match=said):
        send(make(file), system)
    assert not ArchivedCopy.objects.exists()


def test_a_hostile_name_becomes_a_plain_one(file: bytes) -> None:
    assert (
        export_file.shown_name("C:\\x\\dev.jsonl") == "dev.jsonl"
        and export_file.shown_name("../..//\x00\u202e") == "the file"
    )
    assert len(export_file.shown_name("a" * 10_000)) == 200
    with pytest.raises(InvalidSnapshot, match=r"^dev\.jsonl, line 1"):
        read_sent(b"{", "a/dev.jsonl", size=1)


def test_a_version_that_does_not_parse_is_a_conflict_of_its_own(file: bytes, system: Actor) -> None:
    number = send(file, system)
    row = ArchivedCopy.objects.get(pk=number)
    text = row.content.replace(json.dumps('"long"'), json.dumps('{"type": "nothing"}'), 1)
    lines = text.encode().split(b"\n")[:-2]
    body = b"\n".join(lines) + b"\n"
    end = {"kind": "end", "lines": len(lines), "sha256": hashlib.sha256(body).hexdigest()}
    plan = plan_copy(
        registry="staging", number=send(body + json.dumps(end).encode() + b"\n", system), ways=MISSING, by=system
    )
    assert [line.fate for line in plan.lines].count("conflict") == 1 and plan.count("created") == 5


@pytest.mark.parametrize("way", ["mirror", "readonly", "steward", "too many"])
def test_where_nothing_is_taken(file: bytes, system: Actor, way: str) -> None:
    by = system
    if way == "mirror":
        Registry.objects.filter(name="staging").update(kind="remote", url="https://registry.example")
        error: type[Exception] = OperationNotPermitted
    elif way == "readonly":
        set_mode(registry="staging", subject=None, mode="READONLY", by=system)
        with pytest.raises(OperationNotPermitted, match="READONLY"):
            plan_copy(registry="staging", number=send(file, system), ways=STRICT, by=system)
        return
    elif way == "steward":
        by, error = Actor("some", "ui", 1, (Grant("steward"),)), NotAllowed
    else:
        for _ in range(restore.WAITING):
            send(file, system)
        error = InvalidInput
    with pytest.raises(error):
        send(file, by)


def test_the_command_brings_only_what_is_missing_too(file: bytes, system: Actor, tmp_path: Path) -> None:
    """What is here stays as it is, conflicts are passed over, and the registry isn't left in IMPORT."""
    (tmp_path / "dev.jsonl").write_bytes(file)
    register_version(registry="staging", subject=SubjectName(".", "b"), text='"string"', by=system)
    set_config(registry="staging", subject=None, level="FULL", by=system)
    here = contents_of(get_registry("staging"))
    with pytest.raises(SystemExit):  # id 1 stands for another schema: told, and passed over
        call_command(
            "import_registry", "--from", str(tmp_path / "dev.jsonl"), "--into", "staging", "--only-missing",
            stdout=io.StringIO(), stderr=io.StringIO(),
        )  # fmt: skip
    now = contents_of(get_registry("staging"))
    assert set(here.versions) < set(now.versions) and now.configs[None] == here.configs[None]
    assert (SubjectName(".", "b"), 2) in now.by_key and now.modes == here.modes
