"""Several subjects at once, from the list: exported as a zip that can be imported, and deprecated one by one."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable

import pytest
from django.test import Client

from registry.access.roles import Actor
from registry.errors import SubjectNotFound
from registry.subjects.import_export.export_file import read_snapshot
from registry.subjects.import_export.snapshot import contents_of
from registry.subjects.lifecycle.bulk import export_subjects
from registry.subjects.lifecycle.notes import change_tags
from registry.subjects.models import VersionStatus
from registry.subjects.services import delete_subject, register_version, set_config, set_mode
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-2")]
NAMES = ["a", ":.x:a", "b", "c"]
LIST, EXPORT, DEPRECATE = (f"/ui/registries/dev/{name}" for name in ("subjects", "export", "deprecate"))


@pytest.fixture(autouse=True)
def subjects(registries: None, system: Actor) -> None:
    """Four in two contexts; one is soft-deleted, one frozen, one described."""
    for name in NAMES:
        register_version(registry="dev", subject=parse_subject(name), text='"int"', by=system)
    set_config(registry="dev", subject=SubjectName(".", "a"), level="FULL", by=system)
    set_config(registry="dev", subject=SubjectName(".", "b"), level="NONE", by=system)
    change_tags(registry="dev", subjects=[SubjectName(".x", "a")], add=["PII"], by=system)
    delete_subject(registry="dev", subject=SubjectName(".", "c"), by=system)
    set_mode(registry="dev", subject=SubjectName(".", "b"), mode="READONLY_OVERRIDE", by=system)


def opened(content: bytes) -> io.BytesIO:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.namelist() == ["subjects.jsonl"]
        return io.BytesIO(archive.read("subjects.jsonl"))


def test_the_file_has_what_belongs_to_the_chosen_and_nothing_else(
    look: Callable[[str], Client],
    api: Callable[[str], Client],
) -> None:
    chosen = ["a", ":.x:a", "c"]
    response = look("reader").post(EXPORT, {"subject": chosen})
    assert response["Content-Type"] == "application/zip" and "attachment" in response["Content-Disposition"]
    snapshot = read_snapshot(opened(response.content), "subjects.jsonl")
    whole = contents_of(get_registry("dev"))
    names = {parse_subject(name) for name in chosen}
    assert {row.key for row in snapshot.versions} == {(name, 1) for name in names}
    assert {row.subject for row in snapshot.versions if row.deleted} == {SubjectName(".", "c")}
    assert snapshot.configs == {SubjectName(".", "a"): whole.configs[SubjectName(".", "a")]}
    assert snapshot.modes == {} and list(snapshot.notes) == [SubjectName(".x", "a")]
    assert snapshot.contexts == whole.contexts
    body = {"subjects": list(reversed(chosen))}
    same = api("reader").post("/api/v1/registries/dev/exports", body, content_type="application/json")
    assert same.content == response.content, "equal subjects give equal bytes"


@pytest.mark.parametrize(
    ("who", "names", "status"),
    [("reader", [], 422), ("reader", ["nowhere"], 404), ("stranger", ["a"], 403), ("reader", ["a"] * 201, 200)],
)
def test_what_cant_be_exported(
    look: Callable[[str], Client],
    who: str,
    names: list[str],
    status: int,
) -> None:
    response = look(who).post(EXPORT, {"subject": names})
    assert response.status_code == status or (status == 422 and response.status_code == 400)


def test_no_subject_is_left_out_silently(system: Actor) -> None:
    with pytest.raises(SubjectNotFound):
        export_subjects(
            registry="dev", subjects=[SubjectName(".", "a"), SubjectName(".", "x")], file=io.BytesIO(), by=system
        )


def test_each_is_deprecated_by_its_own_rules(look: Callable[[str], Client]) -> None:
    client = look("steward")
    preview = client.post(DEPRECATE, {"subject": NAMES})
    assert preview.status_code == 200 and not VersionStatus.objects.exists(), "it is shown first"
    rows = {row.name: row.why_not for row in preview.context["page"].rows}
    assert rows == {"a": "", ":.x:a": "", "b": "", "c": "No live version."}
    body = {"subject": NAMES, "message": "use d", "ends_at": "2999-01-01", "confirmed": "yes"}
    done = client.post(DEPRECATE, body)
    outcomes = {row.name: row.why_not for row in done.context["page"].rows}
    assert (
        (outcomes["a"], outcomes[":.x:a"]) == ("", "")
        and "READONLY_OVERRIDE" in outcomes["b"]
        and "There is nothing to deprecate for c" in outcomes["c"]
    )
    assert "2 of 4 are now deprecated." in done.content.decode()
    stands = VersionStatus.objects.values_list("version__subject__name", "status", "message", "ends_at__year")
    assert list(stands) == [("a", "deprecated", "use d", 2999)] * 2


@pytest.mark.parametrize(
    ("who", "body", "status"),
    [
        ("steward", {"message": ""}, 422),
        ("steward", {"message": "x", "ends_at": "soon"}, 422),
        ("steward", {"message": "x", "subject": []}, 422),
        ("reader", {"message": "x"}, 403),
    ],
)
def test_what_is_wrong_with_all_changes_none(
    look: Callable[[str], Client],
    who: str,
    body: dict[str, object],
    status: int,
) -> None:
    response = look(who).post(DEPRECATE, {"subject": ["a"], "confirmed": "yes"} | body)
    assert response.status_code == status and not VersionStatus.objects.exists()
    assert 'name="message"' in response.content.decode() or status == 403 or body.get("subject") == []


def test_programs_deprecate_several_too(api: Callable[[str], Client]) -> None:
    body = {"subjects": ["a", "b"], "message": "use d"}
    address = "/api/v1/registries/dev/deprecations"
    done = api("steward").post(address, body, content_type="application/json").json()
    assert done[0] == {"subject": "a", "versions": [1], "refusal": "", "error": ""}
    assert (done[1]["subject"], done[1]["versions"], done[1]["error"]) == ("b", [], "OperationNotPermitted")
    assert api("reader").post(address, body, content_type="application/json").status_code == 403
