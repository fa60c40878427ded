"""The pages of registries, and the same by the API: listed, tested, connected, refreshed once, changed, disconnected."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from registry.access.models import User
from registry.access.roles import Actor
from registry.access.services import issue_token
from registry.errors import NotAllowed, ReleaseRequired
from registry.promotions.models import Environment
from registry.subjects.models import Registry
from registry.subjects.policy.registries import list_mirrors
from registry.subjects.remote.mirrors import (
    add_remote_registry,
    queue_due_syncs,
    request_sync,
    sync_registry,
    update_remote_registry,
)
from registry.subjects.services import register_version
from registry.subjects.versions.qualified_names import SubjectName
from tests.conftest import RawClient
from tests.subjects.remote.test_mirrors import Remote, mirror, remote  # noqa: F401 - fixtures
from tests.subjects.remote.test_remote_client import entry

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-2", "CARD-4")]
QUERIES = json.loads((Path(__file__).parents[1] / "query_counts.json").read_text())
Browser = Callable[[str], Client]


def text(response: Any) -> str:
    return str(response.content.decode())


def test_the_list_says_what_is_there_and_how_fresh_it_is(
    look: Browser,
    mirror: int,  # noqa: F811
    remote: Remote,  # noqa: F811
    system: Actor,
    django_assert_max_num_queries: Any,
) -> None:
    register_version(registry="dev", subject=SubjectName(".", "orders"), text='"string"', by=system)
    remote.entries = [entry("a"), entry("a", 2, 2)]
    admin = look("admin")
    assert "Not synced yet" in text(admin.get("/ui/registries"))
    sync_registry(registry_id=mirror)
    admin.get("/ui/registries")
    with django_assert_max_num_queries(QUERIES["registries"]):
        shown = text(admin.get("/ui/registries"))
    assert remote.url in shown and "In sync" in shown and "always current" in shown
    Registry.objects.filter(pk=mirror).update(
        sync_error="<b>503</b>", failing_since=timezone.now() - timedelta(hours=2)
    )
    failing = text(admin.get("/ui/registries"))
    assert "Failing since" in failing and "&lt;b&gt;503" in failing
    reader = text(look("reader").get("/ui/registries"))
    assert "You need the admin role" in reader and "disabled" in reader


def test_connecting_is_tested_first_and_keeps_nothing(look: Browser, remote: Remote, registries: None) -> None:  # noqa: F811
    admin = look("admin")
    fields = {"name": "theirs", "url": remote.url, "every_seconds": "60"}
    shown = text(admin.post("/ui/registries/connect", {**fields, "do": "test"}))
    assert "Test steps" in shown and f'value="{remote.url}"' in shown
    assert not Registry.objects.filter(name="theirs").exists()
    refused = admin.post("/ui/registries/connect", {**fields, "every_seconds": "x", "do": "keep"})
    assert refused.status_code == 422 and "Enter a whole number" in text(refused)
    assert admin.post("/ui/registries/connect", {**fields, "do": "keep"}).status_code == 302
    assert [mirror_row.every_seconds for mirror_row in list_mirrors()] == [60]
    taken = admin.post("/ui/registries/connect", {**fields, "do": "keep"})
    assert taken.status_code == 422 and "already" in text(taken)


def test_two_clicks_are_one_sync(look: Browser, mirror: int, django_capture_on_commit_callbacks: Any) -> None:  # noqa: F811
    steward = look("steward")
    with django_capture_on_commit_callbacks() as sent:
        first = steward.post("/ui/registries/theirs/refresh", {"next": "/ui/registries/dev/subjects"}, follow=True)
        second = steward.post("/ui/registries/theirs/refresh", {"next": "//evil.example"}, follow=True)
    assert len(sent) == 1
    assert first.redirect_chain[0][0] == "/ui/registries/dev/subjects" and "has started" in text(first)
    assert second.redirect_chain[0][0] == "/ui/registries" and "already running" in text(second)
    assert list_mirrors()[0].is_queued and "Queued" in text(second)
    sync_registry(registry_id=mirror)
    assert not list_mirrors()[0].is_queued


def test_a_sync_whose_message_was_lost_is_handed_out_again(mirror: int, system: Actor) -> None:  # noqa: F811
    assert queue_due_syncs() == [mirror]
    assert request_sync(name="theirs", by=system) is None
    assert queue_due_syncs() == []
    Registry.objects.filter(pk=mirror).update(sync_lease_until=timezone.now() - timedelta(seconds=1))
    assert queue_due_syncs() == [mirror]


def test_a_running_sync_is_not_asked_for_again(mirror: int, system: Actor) -> None:  # noqa: F811
    Registry.objects.filter(pk=mirror).update(sync_tag="x", sync_lease_until=timezone.now() + timedelta(minutes=1))
    assert request_sync(name="theirs", by=system) is None
    assert Registry.objects.get(pk=mirror).sync_tag == "x"
    assert queue_due_syncs() == [mirror]
    assert Registry.objects.get(pk=mirror).sync_tag == "x"


def test_a_mirrors_pages_have_a_button_that_leads_back(look: Browser, mirror: int) -> None:  # noqa: F811
    shown = text(look("steward").get("/ui/registries/theirs/subjects"))
    assert 'action="/ui/registries/theirs/refresh"' in shown and 'value="/ui/registries/theirs/subjects"' in shown
    assert "/refresh" not in text(look("reader").get("/ui/registries/theirs/subjects"))


def test_changing_and_testing_what_is_connected(look: Browser, mirror: int, remote: Remote) -> None:  # noqa: F811
    admin = look("admin")
    assert f'value="{remote.url}"' in text(admin.get("/ui/registries/theirs/connection"))
    assert "Test steps" in text(admin.post("/ui/registries/theirs/test"))
    sent = {"url": f"{remote.url}/other", "every_seconds": "90", "do": "keep"}
    assert admin.post("/ui/registries/theirs/connection", sent).status_code == 302
    mirror_row = list_mirrors()[0]
    assert (mirror_row.url, mirror_row.every_seconds, mirror_row.is_queued) == (f"{remote.url}/other", 90, True)
    hidden = admin.post("/ui/registries/theirs/connection", {**sent, "url": "http://169.254.169.254/"})
    assert hidden.status_code == 422 and "cloud metadata" in text(hidden)


def test_disconnecting_says_what_is_lost(look: Browser, mirror: int, remote: Remote) -> None:  # noqa: F811
    remote.entries = [entry("a")]
    sync_registry(registry_id=mirror)
    admin = look("admin")
    shown = text(admin.get("/ui/registries/theirs/disconnect"))
    assert "1 subject" in shown and "1 version" in shown and "nothing is written to it" in shown
    assert admin.post("/ui/registries/theirs/disconnect").status_code == 302
    assert not Registry.objects.filter(name="theirs").exists()
    assert admin.get("/ui/registries/dev/disconnect").status_code == 409


def test_a_closed_environment_keeps_its_address(mirror: int, remote: Remote, system: Actor) -> None:  # noqa: F811
    Environment.objects.create(registry_id=mirror, position=9, is_closed=True)
    with pytest.raises(ReleaseRequired):
        update_remote_registry(name="theirs", url=remote.url, by=system)


def test_only_an_admin_manages(person: Callable[[str], Actor], mirror: int, remote: Remote) -> None:  # noqa: F811
    for role in ("reader", "steward", "approver"):
        with pytest.raises(NotAllowed):
            update_remote_registry(name="theirs", url=remote.url, by=person(role))


def test_the_same_by_the_api(person: Callable[[str], Actor], remote: Remote, system: Actor) -> None:  # noqa: F811
    person("admin")
    token = issue_token(username="admin", name="t", by=system)
    client = RawClient(headers={"authorization": f"Bearer {token}"})
    address = {"url": remote.url}

    def call(method: str, path: str, body: Any = None) -> Any:
        return client.generic(method, f"/api/v1/{path}", json.dumps(body) if body else "", "application/json")

    tested = call("POST", "registry-tests", address).json()
    assert tested["steps"][0]["ok"] is True and not Registry.objects.filter(kind="remote").exists()
    assert call("POST", "registries", {**address, "name": "theirs", "every_seconds": 60}).status_code == 201
    assert call("POST", "registries", {**address, "name": "theirs"}).status_code == 409
    Registry.objects.filter(name="theirs").update(sync_lease_until=None, sync_tag="")
    assert [call("POST", "registries/theirs/refresh").json()["queued"] for _ in range(2)] == [True, False]
    assert call("PUT", "registries/theirs", {**address, "every_seconds": 30}).json()["mirror"]["every_seconds"] == 30
    assert "theirs" in [row["name"] for row in call("GET", "registries").json()]
    assert call("GET", "registries/theirs").json()["mirror"]["url"] == remote.url
    assert call("POST", "registries/theirs/test").json()["url"] == remote.url
    assert call("DELETE", "registries/theirs").status_code == 204
    assert call("GET", "registries/theirs").status_code == 404
    assert call("POST", "registries/dev/refresh").status_code == 409


def test_the_first_run_begins_with_a_registry(
    look: Browser,
    remote: Remote,  # noqa: F811
    registries: None,
    system: Actor,
) -> None:
    admin = look("admin")
    assert 'href="/ui/registries/connect"' in text(admin.get("/ui/"))
    number = add_remote_registry(name="theirs", url=remote.url, by=system)
    remote.broken = None
    Registry.objects.filter(pk=number).update(sync_error="It is away", failing_since=timezone.now())
    shown = text(admin.get("/ui/"))
    assert "theirs can’t be read: It is away" in shown and 'action="/ui/registries/theirs/test"' in shown
    assert User.objects.filter(username="admin").exists()
