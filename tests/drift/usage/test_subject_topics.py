"""What the list of subjects says of data: topics, queries, and when a message of the very subject was last seen."""

from __future__ import annotations

import pytest
from django.utils import timezone

from registry.access.roles import Actor
from registry.drift.models import Source
from registry.drift.usage.subject_topics import NOTHING, SubjectCarriers, carriers_of
from registry.streams.models import QueryInput, StreamQuery
from registry.subjects.models import Registry
from registry.subjects.services import register_version
from registry.subjects.versions.qualified_names import SubjectName, parse_subject
from tests.drift.usage.test_version_usage import dev, ids, source, text, topic, use

__all__ = ["dev", "ids", "source"]
pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-2")]
NAMES = [parse_subject(name) for name in ("orders-value", "orders-key", ":.x:orders-value", "refunds", "unknown")]


def test_topics_and_messages_are_those_of_the_very_subject(
    dev: Registry, source: Source, ids: list[int], system: Actor, django_assert_num_queries: object
) -> None:
    other = register_version(registry="dev", subject=SubjectName(".", "refunds"), text=text("z"), by=system).schema_id
    named = topic(source, subjects={"value": ["orders-value", "refunds", ":.x:orders-value"], "key": "no list"})
    topic(source, "archive", subjects={"value": ["orders-value"]})
    topic(source, "gone", subjects={"value": ["orders-value"]}, gone_at=timezone.now())
    topic(source, "damaged", subjects=["orders-value"])
    first_use = use(named, ids[0])
    later = use(named, other, partition=1)
    query = StreamQuery.objects.create(
        source=source, registry=dev, path="/q", query_id="q", encoding="avro", allowed_value_schemas=1, allowed_schema_files=1,
        scanned_at=timezone.now(),
    )  # fmt: skip
    for side in ("value", "key"):
        QueryInput.objects.create(query=query, topic="orders", side=side, context=".", subject="orders-value")
    with django_assert_num_queries(1):  # type: ignore[operator]
        carriers = carriers_of(dev, NAMES)
    assert carriers == {
        "orders-value": SubjectCarriers(2, 1, first_use.last_time),
        "orders-key": SubjectCarriers(1),
        ":.x:orders-value": SubjectCarriers(1),
        "refunds": SubjectCarriers(1, 0, later.last_time),
    }
    assert carriers_of(dev, []) == {} and SubjectCarriers() == NOTHING


@pytest.mark.parametrize("context", ["x", ".x", ":.x:"])
def test_names_without_a_context_are_of_the_sources_own(dev: Registry, source: Source, context: str) -> None:
    source.context = context
    source.save()
    topic(source, subjects={"value": ["refunds"]})
    names = [parse_subject(name) for name in (":.x:orders-value", ":.x:refunds", "refunds", "orders-value")]
    assert set(carriers_of(dev, names)) == {":.x:orders-value", ":.x:refunds"}
