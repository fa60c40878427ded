"""A page of a mirror says where its content is from, and how old it is."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from dashboard.components.links import subject_url
from registry.access.models import User
from registry.access.roles import Actor
from registry.subjects.models import Registry
from registry.subjects.services import register_version
from registry.subjects.versions.qualified_names import SubjectName


@pytest.fixture
def mirrored(client: Client, person, system: Actor) -> Client:
    person("reader")
    client.force_login(User.objects.get(username="reader"))
    register_version(registry="dev", subject=SubjectName(".", "orders"), text='"string"', by=system)
    Registry.objects.filter(name="dev").update(
        kind="remote", url="http://theirs.example", every_seconds=60, synced_at=timezone.now() - timedelta(seconds=40)
    )
    return client


@pytest.mark.parametrize("page", ["/ui/registries/dev/subjects", subject_url("dev", "orders")])
def test_list_and_subject_say_how_old_the_mirror_is(mirrored: Client, page: str) -> None:
    text = mirrored.get(page).content.decode()
    assert "http://theirs.example" in text
    assert "synced" in text
    assert "Three syncs" not in text


def test_a_stale_mirror_and_a_failing_one_say_so(mirrored: Client) -> None:
    Registry.objects.filter(name="dev").update(synced_at=timezone.now() - timedelta(hours=1))
    assert "Three syncs in a row were missed" in mirrored.get("/ui/registries/dev/subjects").content.decode()
    Registry.objects.filter(name="dev").update(
        sync_error="<b>refused</b>", failing_since=timezone.now() - timedelta(hours=1)
    )
    text = mirrored.get("/ui/registries/dev/subjects").content.decode()
    assert "Syncs have failed since" in text
    assert "&lt;b&gt;refused" in text


def test_our_own_registry_has_no_such_mark(client: Client, person) -> None:
    person("reader")
    client.force_login(User.objects.get(username="reader"))
    assert "Mirror of" not in client.get("/ui/registries/dev/subjects").content.decode()
