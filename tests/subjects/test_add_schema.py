"""Adding and evolving a schema from a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from registry.audit.models import AuditEvent
from registry.subjects.selectors import get_version, list_versions
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName

pytestmark = pytest.mark.requirement("ORA-1")
V1 = {"type": "record", "name": "User", "fields": [{"name": "id", "type": "long"}]}
V2 = {**V1, "fields": [*V1["fields"], {"name": "age", "type": "int", "default": -1}]}
BROKEN = {**V1, "fields": [{"name": "id", "type": "string"}]}


@pytest.fixture
def add(registries: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    def run(schema: object, *words: str) -> str:
        path = tmp_path / "user.avsc"
        path.write_text(schema if isinstance(schema, str) else json.dumps(schema))
        call_command("add_schema", "user", str(path), *words)
        return capsys.readouterr().out.strip()

    return run


def test_add_then_evolve(add) -> None:
    assert add(V1) == "user version 1, schema id 1, added"
    assert add(V2, "--evolve") == "user version 2, schema id 2, added"
    assert add(V1, "--evolve") == "user version 1, schema id 1, already existed"


def test_neither_is_done_by_mistake(add) -> None:
    with pytest.raises(CommandError, match="without --evolve"):
        add(V1, "--evolve")
    add(V1)
    with pytest.raises(CommandError, match="with --evolve"):
        add(V2)


def test_an_unsafe_one_is_rejected_with_its_reasons_unless_forced(add) -> None:
    add(V1)
    with pytest.raises(CommandError, match=r"at User\.id"):
        add(BROKEN, "--evolve")
    subject = SubjectName(".", "user")
    assert list_versions(get_registry("dev"), subject) == [1]
    add(BROKEN, "--evolve", "--force", "nobody reads it yet")
    assert list_versions(get_registry("dev"), subject) == [1, 2]
    trace = AuditEvent.objects.filter(table="subjects_schemaversion").first()
    assert trace is not None
    assert trace.why.endswith("forced: nobody reads it yet")


def test_a_text_that_does_not_parse_is_named_with_its_place(add) -> None:
    with pytest.raises(CommandError, match=r"user\.avsc.*line 1, column"):
        add('{"type": "recor"}')


def test_the_format_goes_by_the_suffix(registries: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "user.proto"
    path.write_text('syntax = "proto3"; message User { int64 id = 1; }')
    call_command("add_schema", "user", str(path))
    assert capsys.readouterr().out.startswith("user version 1, schema id ")
    assert get_version(get_registry(""), SubjectName(".", "user"), 1).schema.schema_type == "PROTOBUF"
