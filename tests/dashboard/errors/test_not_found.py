"""What was removed has a page that says what it was, who removed it and when, for whoever may read that in the audit."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

import pytest
from django.test import Client

from registry.access.models import RoleGrant
from registry.access.roles import Actor
from registry.drift.models import Finding, Source
from registry.drift.services.sources import remove_source
from registry.notifications.webhooks import remove_webhook
from registry.subjects.models import Registry
from registry.subjects.services import delete_subject, register_version
from registry.subjects.versions.qualified_names import SubjectName
from tests.drift.scans import judged, make_source, scan
from tests.notifications.conftest import hook, server
from tests.notifications.endpoint import Endpoint

__all__ = ["hook", "server"]  # fixtures of the tests of notifications

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-4", "CARD-5")]


def text_of(response: object) -> str:
    content: str = response.content.decode()  # type: ignore[attr-defined]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", content)).split())


@pytest.fixture
def removed(registries: None, person: Callable[[str], Actor], system: Actor) -> tuple[int, int]:
    """The numbers of a source and of its finding, which the steward removed."""
    source = make_source(name="orders topics")
    scan(source, system, judged(sentence="Schema id 7 is unknown in orders."))
    number = Finding.objects.get().pk
    remove_source(source_id=source.pk, by=person("steward"))
    assert not Source.objects.exists()
    return source.pk, number


@pytest.mark.parametrize("who", ["reader", "admin"])
def test_a_removed_source_and_its_finding_say_what_they_were(
    removed: tuple[int, int], look: Callable[[str], Client], who: str
) -> None:
    client = look(who)
    for address, sentence in (
        (f"/ui/sources/{removed[0]}", "orders topics"),
        (f"/ui/findings/{removed[1]}", "Schema id 7 is unknown in orders."),
    ):
        response = client.get(address)
        text = text_of(response)
        assert response.status_code == 410
        assert sentence in text
        assert "Removed by steward" in text
        assert "remove source orders topics" in text
        links = re.findall(r'<a class="button" href="([^"]+)"', response.content.decode())
        assert {client.get(html.unescape(link)).status_code for link in links} == {200}


def test_who_may_not_read_the_event_learns_nothing(
    removed: tuple[int, int], look: Callable[[str], Client], person: Callable[[str], Actor]
) -> None:
    for address in (f"/ui/sources/{removed[0]}", f"/ui/findings/{removed[1]}"):
        response = look("stranger").get(address)
        assert response.status_code in (403, 404)
        assert "orders" not in text_of(response)
    reader = person("reader")
    for registry, status in (("prod", 404), ("dev", 410)):
        RoleGrant.objects.filter(user=reader.user_id).delete()
        RoleGrant.objects.create(user_id=reader.user_id, role="reader", registry=registry)
        for address in (f"/ui/sources/{removed[0]}", f"/ui/findings/{removed[1]}"):
            response = look("reader").get(address)
            assert response.status_code == status
            assert ("Removed by steward" in text_of(response)) is (status == 410)


def test_what_was_never_there_stays_not_found(registries: None, look: Callable[[str], Client]) -> None:
    for address in ("/ui/findings/999", "/ui/sources/999", "/ui/registries/dev/subjects/none/", "/ui/promotions/999"):
        assert look("admin").get(address).status_code == 404


def test_a_subject_that_was_deleted_for_good(
    registries: None, look: Callable[[str], Client], person: Callable[[str], Actor]
) -> None:
    admin, name = person("admin"), SubjectName(".", "orders-value")
    register_version(registry="dev", subject=name, text='"string"', by=admin)
    for permanent in (False, True):
        delete_subject(registry="dev", subject=name, permanent=permanent, by=admin)
    response = look("reader").get("/ui/registries/dev/subjects/orders-value/")
    assert response.status_code == 410
    assert "Removed by admin" in text_of(response)


def test_a_registry_and_a_webhook(
    registries: None, look: Callable[[str], Client], person: Callable[[str], Actor], hook: str, server: Endpoint
) -> None:
    remove_webhook(webhook=hook, by=person("steward"))
    assert "Removed by steward" in text_of(look("steward").get(f"/ui/webhooks/{hook}"))
    assert look("approver").get(f"/ui/webhooks/{hook}").status_code == 404
    registry = Registry.objects.create(name="lab")
    registry.delete()
    assert look("admin").get("/ui/registries/lab/subjects").status_code == 410
    assert look("stranger").get("/ui/registries/lab/subjects").status_code in (403, 404)
