"""What a source's page leads to beside its own scans and findings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from registry.access.models import User
from registry.access.roles import Actor
from registry.drift.models import Scan
from registry.streams.models import StreamQuery
from tests.conftest import RawClient
from tests.drift.scans import make_source

pytestmark = pytest.mark.django_db


def page_of(person: Callable[[str], Actor], number: int) -> Any:
    person("reader")
    client = RawClient()
    client.force_login(User.objects.get(username="reader"))
    return client.get(f"/ui/sources/{number}")


def test_a_checkpoint_leads_to_its_query_and_says_why_rows_weren_t_read(
    registries: None, person: Callable[[str], Actor]
) -> None:
    source = make_source(kind="state_store", name="/data/totals", cluster=None)
    assert b"The query and its state" not in page_of(person, source.pk).content
    query = StreamQuery.objects.create(
        source=source, registry=source.registry, path="/data/totals", query_id="q", scanned_at=timezone.now(),
        allowed_value_schemas=16, allowed_schema_files=128,
    )  # fmt: skip
    read = {"nothing": False, "rows": 0, "seconds": 1, "variables": [], "rows_problem": "Spark isn't there <b>"}
    Scan.objects.create(source=source, state="done", queued_by="s", read=read)
    said = page_of(person, source.pk).content.decode()
    assert f'href="/ui/queries/{query.pk}"' in said
    assert "Spark isn&#x27;t there &lt;b&gt;." in said


def test_topics_lead_to_no_query(registries: None, person: Callable[[str], Actor]) -> None:
    assert b"The query and its state" not in page_of(person, make_source().pk).content
