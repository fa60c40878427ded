"""What a registry holds, saved as a file in the browser and by the API; brought in from one; and kept of deletions."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from registry.access.roles import Actor, Grant
from registry.errors import NotAllowed
from registry.subjects.import_export import snapshot
from registry.subjects.import_export.export_file import read_snapshot, write_snapshot
from registry.subjects.import_export.registry_import import spooled_export
from registry.subjects.import_export.snapshot import contents_of
from registry.subjects.lifecycle.notes import change_tags
from registry.subjects.services import delete_subject, register_version, remove_subject, set_config
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

pytestmark = [pytest.mark.requirement("CARD-1", "CARD-2")]
Browser = Callable[[str], Client]
QUERIES = json.loads((Path(__file__).parents[1] / "query_counts.json").read_text())
PAGE = "/ui/registries/dev/transfer"
NAMES = ["a", "b", "ä", "Z", ":.x:a"]


def furnish(by: Actor) -> None:
    """Subjects in two contexts, one soft-deleted, one described, one with a level of its own."""
    for name in NAMES:
        for text in ('"int"', '"long"'):
            set_config(registry="dev", subject=parse_subject(name), level="NONE", by=by)
            register_version(registry="dev", subject=parse_subject(name), text=text, by=by)
    change_tags(registry="dev", subjects=[SubjectName(".x", "a")], add=["PII"], by=by)
    delete_subject(registry="dev", subject=SubjectName(".", "b"), by=by)


def whole(registry: str = "dev") -> bytes:
    """The file that the command writes."""
    file = io.BytesIO()
    write_snapshot(contents_of(get_registry(registry)), file)
    return file.getvalue()


@pytest.mark.django_db
def test_the_page_and_the_api_give_the_file_of_the_command(
    registries: None,
    system: Actor,
    look: Browser,
    api: Browser,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    furnish(system)
    monkeypatch.setattr(snapshot, "CHUNK", 2)  # several pieces of one context
    reader = look("reader")
    with CaptureQueriesContext(connection) as queries:
        shown = reader.get(PAGE).content.decode()
    assert len(queries) <= QUERIES["transfer"]
    assert "5 subjects" not in shown and "Currently 4 subjects with 8 live versions" in shown
    response = look("reader").post(f"{PAGE}/export")
    assert 'filename="dev.jsonl"' in response["Content-Disposition"]
    assert response.getvalue() == whole()
    assert api("reader").get("/api/v1/registries/dev/export").getvalue() == whole()


@pytest.mark.django_db
def test_who_may_not_read_all_of_it_gets_nothing(registries: None, look: Browser) -> None:
    assert look("stranger").get(PAGE).status_code == 403
    assert look("stranger").post(f"{PAGE}/export").status_code == 403
    some = Actor("some", "ui", 1, (Grant("reader", "dev", "a*"),))
    with pytest.raises(NotAllowed):
        spooled_export(registry="dev", by=some)


@pytest.mark.django_db(transaction=True)
def test_an_export_is_of_one_moment_and_nobody_waits(
    registries: None, system: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    furnish(system)
    before, done = whole(), []
    names_after = snapshot._names_after

    def register() -> None:
        done.append(register_version(registry="dev", subject=SubjectName(".", "late"), text='"int"', by=system))
        connection.close()

    def names_and_a_registration(*args: Any) -> Any:
        if not done:
            thread = threading.Thread(target=register)
            thread.start()
            thread.join(timeout=20)
        return names_after(*args)

    monkeypatch.setattr(snapshot, "_names_after", names_and_a_registration)
    with spooled_export(registry="dev", by=system) as file:
        assert done, "a registration waits for the export"
        assert file.read() == before
    assert len(read_snapshot(io.BytesIO(whole()), "now").versions) == len(NAMES) * 2 + 1


def sent(data: bytes, name: str = "dev.jsonl") -> dict[str, Any]:
    return {"file": SimpleUploadedFile(name, data)}


@pytest.mark.django_db
def test_a_file_is_planned_confirmed_and_there(registries: None, system: Actor, look: Browser) -> None:
    furnish(system)
    admin, before = look("admin"), whole("staging")
    led = admin.post("/ui/registries/staging/transfer/import", sent(whole()))
    plan_url = led["Location"]
    with CaptureQueriesContext(connection) as queries:
        page = admin.get(plan_url)
    shown = page.content.decode()
    assert (
        "Of 10 versions: 10 to import." in shown
        and "Everything can be imported" in shown
        and whole("staging") == before
    )
    assert len(queries) <= QUERIES["copy: sent"]
    assert "dev.jsonl" in admin.get("/ui/registries/staging/transfer").content.decode()
    body = dict(page.context["page"].hidden)
    other = admin.post(f"{plan_url}/restore", body | {"plan": "x"}, follow=True)
    assert "Review the plan again" in other.content.decode() and whole("staging") == before
    done = admin.post(f"{plan_url}/restore", body)
    assert done.status_code == 302 and whole("staging") == whole()
    assert admin.post(f"{plan_url}/restore", body).status_code == 404, "a second click finds nothing to do"


@pytest.mark.django_db
def test_what_cant_come_is_worst_first_and_offers_the_rest(registries: None, system: Actor, look: Browser) -> None:
    furnish(system)
    hostile = "<b>\u202e"
    register_version(registry="staging", subject=SubjectName(".", "a"), text='"string"', by=system)
    admin = look("admin")
    plan_url = admin.post("/ui/registries/staging/transfer/import", sent(whole(), f"{hostile}.jsonl"))["Location"]
    page = admin.get(plan_url)
    shown = page.content.decode()
    assert next((row.fate, row.version) for row, _ in page.context["page"].lines) == ("conflict", 1)
    assert "Choose “Only what is missing”" in shown and hostile not in shown
    missing = admin.get(f"{plan_url}?only=missing").context["page"]
    assert not missing.refused and missing.verdict.code == "conflict"
    admin.post(f"{plan_url}/restore", dict(missing.hidden))
    rows = contents_of(get_registry("staging")).by_key
    assert rows[SubjectName(".", "a"), 1].text == '"string"' and (SubjectName(".x", "a"), 2) in rows


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("who", "registry", "body", "status", "sentence"),
    [
        ("steward", "staging", sent(b"x"), 403, "You need the admin role"),
        ("admin", "staging", {}, 422, "Choose a file first."),
        ("admin", "staging", sent(b"{"), 422, "line 1 can&#x27;t be read"),
        ("admin", "staging", sent(bytes(16 * 2**20 + 1)), 422, "import_registry"),
    ],
)
def test_a_file_that_isnt_taken(
    registries: None,
    look: Browser,
    who: str,
    registry: str,
    body: dict[str, Any],
    status: int,
    sentence: str,
) -> None:
    for file in body.values():
        file.seek(0)
    response = look(who).post(f"/ui/registries/{registry}/transfer/import", body)
    assert response.status_code == status and sentence in response.content.decode()


@pytest.mark.django_db
def test_a_file_larger_than_a_schema_is_taken_here_alone(
    registries: None,
    system: Actor,
    look: Browser,
    settings: Any,
) -> None:
    furnish(system)
    settings.SCHEMA_MAX_BYTES = 100
    assert look("admin").post("/ui/registries/staging/transfer/import", sent(whole())).status_code == 302


@pytest.mark.django_db
def test_what_was_deleted_for_good_is_listed_saved_restored_and_forgotten(
    registries: None,
    system: Actor,
    look: Browser,
) -> None:
    names = ["orders", ":.x:<b>"]
    for name in names:
        register_version(registry="dev", subject=parse_subject(name), text='"int"', by=system)
        remove_subject(registry="dev", subject=parse_subject(name), by=system)
    admin = look("admin")
    with CaptureQueriesContext(connection) as queries:
        listed = admin.get("/ui/registries/dev/deleted")
    assert [row.name for row in listed.context["page"].rows] == names[::-1]
    assert len(queries) <= QUERIES["deleted"] and "&lt;b&gt;" in listed.content.decode()
    there_no_more = admin.get("/ui/registries/dev/subjects/orders/")
    assert there_no_more.status_code == 410 and "Restore until" in there_no_more.content.decode()
    assert "Restore until" not in look("steward").get("/ui/registries/dev/subjects/orders/").content.decode()
    done = admin.get("/ui/registries/dev/subjects/orders/retire/done?did=hard&versions=1&ids=1")
    assert (
        done.context["page"].read_back.restore.url
        == f"/ui/registries/dev/copies/{listed.context['page'].rows[1].number}"
    )
    other, orders = (f"/ui/registries/dev/copies/{row.number}" for row in listed.context["page"].rows)
    assert read_snapshot(io.BytesIO(admin.get(f"{orders}/file").getvalue()), "x").versions[0].text == '"int"'
    with CaptureQueriesContext(connection) as queries:
        page = admin.get(orders)
    assert len(queries) <= QUERIES["copy"]
    assert "Live" in page.content.decode() and "Of 1 version: 1 to import." in page.content.decode()
    back = admin.post(f"{orders}/restore", dict(page.context["page"].hidden))
    assert back["Location"] == "/ui/registries/dev/subjects/orders/"
    assert admin.get(back["Location"]).status_code == 200
    assert admin.post(f"{other}/delete").status_code == 302
    assert admin.get("/ui/registries/dev/deleted").context["page"].rows == ()
    assert look("steward").get("/ui/registries/dev/deleted").status_code == 403


@pytest.mark.django_db
def test_programs_send_plan_bring_list_and_forget(registries: None, system: Actor, api: Browser) -> None:
    furnish(system)
    admin, base = api("admin"), "/api/v1/registries/staging"
    number = admin.post(f"{base}/imports", whole(), content_type="application/jsonl").json()["number"]
    plan = admin.get(f"{base}/copies/{number}", {"only_missing": "true"}).json()
    assert {line["fate"] for line in plan["versions"]} == {"created"} and plan["problems"] == []
    body = {"plan": plan["digest"], "only_missing": True}
    refused = admin.post(
        f"{base}/copies/{number}/restore", body | {"only_missing": False}, content_type="application/json"
    )
    assert (refused.status_code, refused.json()["error"]) == (409, "PlanChanged")
    assert admin.post(f"{base}/copies/{number}/restore", body, content_type="application/json").status_code == 200
    assert whole("staging") == whole()
    remove_subject(registry="staging", subject=SubjectName(".", "a"), by=system)
    (copy,) = admin.get(f"{base}/copies").json()
    assert (copy["name"], copy["versions"]) == ("a", 2)
    assert b'"subject":"a"' in admin.get(f"{base}/copies/{copy['number']}/file").getvalue()
    assert admin.delete(f"{base}/copies/{copy['number']}").status_code == 204
    assert admin.get(f"{base}/copies/{copy['number']}").status_code == 404
