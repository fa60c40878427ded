"""The steps of the first run: each says what was found when it was tried, and what is missing."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import Client, RequestFactory
from django.utils import timezone

from dashboard.home.views import home_page
from registry.access.models import RoleGrant, User
from registry.access.roles import Actor
from registry.promotions.models import Environment, ReviewRule
from registry.subjects.models import Registry

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-4")]


def steps(client: Client) -> list[str]:
    """Each step as text, what stands in it one after the other."""
    page = client.get("/ui/").content.decode()
    (listed,) = re.findall(r'<ol class="steps">(.*?)</ol>', page, re.DOTALL)
    return [unescape(" ".join(re.sub(r"<[^>]+>", " ", step).split())) for step in listed.split("<li")[1:]]


@pytest.fixture
def client(registries: None, look: Callable[[str], Client]) -> Client:
    """An admin at an empty house of dev, staging and prod."""
    return look("admin")


def test_what_is_there_is_said_before_anything_is_done(client: Client) -> None:
    connect, environments, reviewers, source = steps(client)
    assert "None connected" in connect and "schema.registry.url=http" in connect
    assert "Set up dev → staging → prod." in environments
    assert "Can be approved prod needs 1 approval. Approvers: admin." in reviewers
    assert "Their own requests need another approver." in reviewers
    assert "Add a source" in source


@pytest.mark.parametrize(
    ("state", "word", "sentence"),
    [
        ({"synced_at": True}, "Reachable", "old was read. It has no schemas yet."),
        ({"synced_at": True, "sync_error": "no route", "failing_since": True}, "Not reachable", "old can’t be read: no route"),
        ({}, "Not read yet", "old has not been read yet."),
    ],
)  # fmt: skip
def test_a_connected_registry_says_how_its_last_reading_went(
    client: Client, state: dict[str, object], word: str, sentence: str
) -> None:
    then = timezone.now() - timedelta(hours=2)
    fields = {name: then if value is True else value for name, value in state.items()}
    Registry.objects.create(name="old", kind=Registry.REMOTE, url="http://old.example", every_seconds=60, **fields)
    connect = steps(client)[0]
    assert word in connect and sentence in connect and "Test connection" in connect
    assert ("2 h ago" in connect) is bool(state)


def test_one_environment_promotes_nothing(client: Client) -> None:
    Environment.objects.exclude(registry__name="dev").delete()
    assert "Too few environments Promotions need at least two environments. There are 1." in steps(client)[1]


def test_who_is_missing_to_approve_is_said_with_where_that_is_mended(client: Client) -> None:
    Environment.objects.filter(registry__name="prod").update(reviews_needed=2)
    assert "Too few approvers prod needs 2 approvals. 1 person can approve. People and their roles" in steps(client)[2]
    Environment.objects.filter(registry__name="prod").update(reviews_needed=0)
    assert "prod needs 1 approval." in steps(client)[2]
    ReviewRule.objects.create(environment=Environment.objects.get(registry__name="prod"), reviewers="owners")
    assert "1 rule names other approvers." in steps(client)[2]


def test_only_those_count_who_are_active_and_have_the_right_for_everything(
    client: Client, person: Callable[[str], Actor]
) -> None:
    for name in ("approver", "approver2", "reader", "steward"):
        person(name)
    assert "Approvers: admin, approver, approver2." in steps(client)[2]
    User.objects.filter(username="approver").update(is_active=False)
    RoleGrant.objects.filter(user__username="approver2").update(subject_pattern="orders-*")
    assert "Approvers: admin." in steps(client)[2]


def test_whoever_isnt_signed_in_reads_no_names(client: Client, settings: Any) -> None:
    settings.ANONYMOUS_ROLE = "reader"  # as `up` has it on one's own machine
    request = RequestFactory().get("/ui/")
    request.user = AnonymousUser()
    sentences = [step.tried.sentence for step in home_page(request).first_steps if step.tried]
    assert "prod needs 1 approval. 1 person can approve." in sentences[-1] and "admin" not in sentences[-1]
