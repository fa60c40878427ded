"""How much of the sources was looked at: what couldn't be read says why, with the right that is missing."""

from __future__ import annotations

import html
from collections.abc import Callable

import pytest
from django.test import Client
from django.utils import timezone

from registry.drift import selectors
from registry.drift.models import Scan, Source, Topic
from registry.drift.rules import RULES
from registry.drift.selectors.sources import MOST_UNREADABLE, missing_right
from tests.drift.scans import make_source

pytestmark = pytest.mark.requirement("CARD-3")


@pytest.fixture
def source(registries: None) -> Source:
    return make_source()


#: what the cluster or Spark said of a topic, the user → the entry that is missing
RIGHTS = [
    (
        "The cluster's user may not describe topic orders; grant it Describe and Read on that topic.",
        "scan",
        "kafka-acls --add --allow-principal User:scan --operation Describe --operation Read --topic orders",
    ),
    (
        "Topic orders couldn't be read: its reading isn't allowed to this user; grant it Read.",
        "",
        "kafka-acls --add --allow-principal User:ANONYMOUS --operation Read --topic orders",
    ),
    (
        "Topic orders couldn't be read: its offsets aren't told: it was deleted, or this user lacks Describe.",
        "scan",
        "kafka-acls --add --allow-principal User:scan --operation Describe --topic orders",
    ),
    ("Topic orders couldn't be read: its messages are gone: it was deleted meanwhile.", "scan", ""),
    ("Topic orders: Broker: Leader not available. Read it later.", "scan", ""),
]


@pytest.mark.parametrize(("problem", "user", "wanted"), RIGHTS)
def test_the_missing_right_is_named_where_it_is_one(problem: str, user: str, wanted: str) -> None:
    assert missing_right("orders", problem, user) == wanted


def test_a_name_stays_one_word_of_the_command() -> None:
    found = missing_right("a'; rm -rf x", RIGHTS[0][0], "b c")
    assert found.endswith("""--topic 'a'"'"'; rm -rf x'""") and "'User:b c'" in found


def test_the_drift_page_tells_what_could_not_be_read(source: Source, look: Callable[[str], Client]) -> None:
    Topic.objects.create(source=source, name="orders", problem=RIGHTS[0][0])
    Topic.objects.create(source=source, name="customers", checked_at=timezone.now())
    Topic.objects.create(source=source, name="gone", problem="x", gone_at=timezone.now())
    broken = make_source(name="other")
    Scan.objects.create(source=broken, state="failed", queued_by="x", error="The cluster didn't answer.")
    empty = make_source(name="empty")
    Scan.objects.create(source=empty, state="done", queued_by="x", read={"nothing": True}, finished_at=timezone.now())
    answer = look("reader").get("/ui/findings")
    page, text = answer.context["page"], html.unescape(answer.content.decode())
    assert page.coverage.startswith("1 of 2 topics scanned in the last 24 h; 1 unreadable: orders")
    assert [(item.name, item.reason, bool(item.right)) for item in page.unreadable] == [
        ("orders", RIGHTS[0][0], True),
        ("other", "The cluster didn't answer.", False),
        ("empty", "Its last scan read nothing: that is not scanned, not clean.", False),
    ]
    assert "--allow-principal User:ANONYMOUS --operation Describe --operation Read --topic orders" in text
    assert "pending, not drift" in text


def test_many_are_counted_and_some_told(source: Source) -> None:
    Topic.objects.bulk_create(
        [Topic(source=source, name=f"t-{number:03}", problem="no leader") for number in range(MOST_UNREADABLE + 15)]
    )
    found = selectors.topic_coverage([source.pk])
    assert (found.unreadable_count, len(found.unreadable)) == (MOST_UNREADABLE + 15, MOST_UNREADABLE)


#: each kind of drift that there is to find → the rules that find it
KINDS = {
    "unknown id": ("UNKNOWN_SCHEMA_ID",),
    "id of other subject": ("ID_OF_OTHER_SUBJECT", "ID_OF_OTHER_CONTEXT"),
    "id registered without a request": ("ID_NOT_RELEASED", "ID_QUARANTINED", "REGISTERED_WITHOUT_PROMOTION"),
    "id below minimum or retired": (
        "ID_BELOW_LEAST", "ID_RETIRED", "ID_DEPRECATED", "OLD_VERSION_WRITTEN", "ID_DELETED",
    ),
    "unframed or wrong magic byte": ("UNFRAMED_DATA", "FRAME_CUT", "FRAMED_TWICE", "FRAMING_MIXED"),
    "undecodable": ("UNDECODABLE", "SCHEMA_VIOLATED", "MESSAGE_NOT_READ", "NOT_JSON"),
    "undeclared field": ("FIELD_UNDECLARED",),
    "type, null-rate, enum drift": (
        "FIELD_KIND_WRONG", "FIELD_KIND_NEW", "NULL_SHARE_ROSE", "ENUM_VALUE_UNDECLARED", "ENUM_SHARE_SHIFTED",
    ),
    "field never populated any more": ("FIELD_NEVER_FILLED",),
    "state differs from input": ("STATE_DEPARTS", "STATE_FIELD_DROPPED", "STATE_EVOLVED_UNRELEASED"),
    "state value or key incompatible": ("STATE_CANNOT_EVOLVE", "STATE_KEY_AT_RISK"),
    "DDL changed but no new schema": ("COLUMN_ADDED", "COLUMN_DROPPED", "COLUMN_RETYPED", "COLUMN_RENAMED"),
    "compatibility or mode changed": ("LEVEL_RELAXED", "MODE_RELAXED"),
    "same subject differs between environments": ("ENVIRONMENTS_DIFFER",),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_drift_has_rules(kind: str) -> None:
    assert set(KINDS[kind]) <= set(RULES)
