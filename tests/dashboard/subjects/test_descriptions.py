"""Tags, owners and texts on pages: shown, changed by forms, chosen by, changed for several; without JavaScript."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard.compare.business_terms import FINDINGS, PHRASES, fact_name, phrase_of
from registry.access.models import Ownership, User
from registry.access.roles import Actor
from registry.access.services import add_member, add_owner, make_group, set_group_channel
from registry.audit.models import AuditEvent
from registry.formats.avro import rules as avro
from registry.formats.avro import rules as avro_findings
from registry.formats.json_schema import differences as json_schema
from registry.formats.json_schema import rules as json_schema_findings
from registry.formats.protobuf import rules as protobuf
from registry.formats.protobuf import rules as protobuf_findings
from registry.subjects.lifecycle.notes import note_of
from registry.subjects.models import SubjectNote
from registry.subjects.services import register_version, set_note
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName
from tests.markup import compact

ORDERS = SubjectName(".", "orders-value")
LIST, PAGE = "/ui/registries/dev/subjects", "/ui/registries/dev/subjects/orders-value/"
SEVERAL = "/ui/registries/dev/describe"
QUERIES = json.loads((Path(__file__).parents[1] / "query_counts.json").read_text())
SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "email", "type": "string", "confluent:tags": ["PII"]}],
}

pytestmark = pytest.mark.requirement("CARD-4")


@pytest.fixture
def subjects(registries: None, system: Actor) -> None:
    """Two subjects: the first with a note, owned by a person, the second by a group."""
    for name in ("orders-value", "spare-value"):
        register_version(registry="dev", subject=SubjectName(".", name), text=json.dumps(SCHEMA), by=system)
    set_note(registry="dev", subject=ORDERS, tags=["Gold"], doc="One <b>\n\nTwo", by=system, expected="none")


@pytest.fixture
def owners(subjects: None, person: Callable[[str], Actor], system: Actor) -> None:
    person("ada")
    person("bob")
    make_group(name="payments", by=system)
    add_member(group="payments", username="bob", by=system)
    add_owner(subject_pattern="orders-*", registry="dev", username="ada", by=system)
    add_owner(subject_pattern="spare-*", group="payments", by=system)


def names(client: Client, query: str = "") -> list[str]:
    return sorted(row.info.subject.subject for row in client.get(f"{LIST}{query}").context["page"].table.rows)


def describe(client: Client, **changes: str) -> Any:
    values = {"tags": "PII, sales", "doc": "Orders.", "reason": "known now", "expected": "none"}
    return client.post(f"{PAGE}describe", values | changes)


def test_the_page_shows_what_is_written(owners: None, look: Callable[[str], Client]) -> None:
    page = look("reader").get(PAGE)
    part, content = page.context["page"].note, page.content.decode()
    assert [chip.word for chip in part.tags] == ["Gold"]
    assert [chip.word for chip in part.in_fields] == ["PII"]
    assert [(chip.name, chip.group) for chip in part.owners] == [("ada", False)]
    assert part.note.doc == "One <b>\n\nTwo"
    assert '<p class="whitespace-pre-line">One &lt;b&gt;</p><p class="whitespace-pre-line">Two</p>' in content
    assert "<summary>Change tags" not in content
    assert "You need the admin or steward role" in content
    spare = look("reader").get(f"{LIST}/spare-value/").context["page"].note
    assert [(chip.name, chip.group) for chip in spare.owners] == [("payments", True)]


def test_the_page_shows_where_to_ask(owners: None, system: Actor, look: Callable[[str], Client]) -> None:
    client = look("steward")
    assert describe(client, expected="*", channel="javascript:alert(1)").status_code == 422
    assert describe(client, expected="*", channel="https://chat.example/?a=1&b=2").status_code == 302
    page = compact(client.get(PAGE).content.decode())
    assert '<a href="https://chat.example/?a=1&amp;b=2" rel="noopener noreferrer">' in page
    set_group_channel(group="payments", channel="#payments", by=system)
    spare = client.get(f"{LIST}/spare-value/")
    assert [(link.label, link.url) for link in spare.context["page"].note.channels] == [("#payments", "")]
    assert "#payments" in spare.content.decode()


def test_the_structure_shows_the_tags_of_fields(subjects: None, look: Callable[[str], Client]) -> None:
    page = look("reader").get(PAGE)
    fields = {field.item.name: ([tag.word for tag in field.tags], field.personal)
              for field in page.context["page"].selected.structure.fields}  # fmt: skip
    assert fields == {"id": (["Gold"], False), "email": (["Gold", "PII"], True)}
    assert "Values are masked." in page.content.decode()


def test_a_steward_changes_it_by_the_form_as_it_stands(subjects: None, look: Callable[[str], Client]) -> None:
    client = look("steward")
    content = compact(client.get(PAGE).content.decode())
    (state,) = re.findall(r'name="expected" value="([^"]+)"', content)
    response = describe(client, expected=state)
    assert (response.status_code, response["Location"]) == (302, f"{PAGE}#note")
    note = note_of(get_registry("dev"), ORDERS)
    assert (note.tags, note.doc, note.updated_by) == (("PII", "sales"), "Orders.", "steward")
    event = AuditEvent.objects.filter(table="subjects_subjectnote").latest("id")
    assert (event.actor, event.channel, event.why) == ("steward", "ui", "describe orders-value in dev: known now")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "was changed by tests after you opened it"),
        ({"expected": "*", "tags": "a <b>"}, "is not a valid tag"),
        ({"expected": "*", "doc": "x" * 20_001}, "20,001 characters"),
        ({"expected": "*", "doc": "a\0b"}, "Null characters are not allowed"),
    ],
)
def test_what_is_refused_stays_in_the_form(
    subjects: None, look: Callable[[str], Client], changes: dict[str, str], sentence: str
) -> None:
    response = describe(look("steward"), **changes)
    assert response.status_code == 422
    page = response.content.decode()
    assert sentence in page
    assert '<details class="more" open>' in compact(page)
    assert f'value="{changes.get("tags", "PII, sales").replace("<", "&lt;").replace(">", "&gt;")}"' in page
    assert note_of(get_registry("dev"), ORDERS).tags == ("Gold",)


@pytest.mark.parametrize("name", ["reader", "approver"])
def test_others_are_refused(subjects: None, look: Callable[[str], Client], name: str) -> None:
    assert describe(look(name), expected="*").status_code == 403
    assert note_of(get_registry("dev"), ORDERS).tags == ("Gold",)


def test_the_list_shows_and_chooses_by_tag_and_owner(
    owners: None, look: Callable[[str], Client], system: Actor
) -> None:
    client = look("reader")
    page = client.get(LIST).context["page"]
    row = next(row for row in page.table.rows if row.qualified == "orders-value")
    assert ([tag.word for tag in row.tags], [owner.name for owner in row.owners]) == (["Gold"], ["ada"])
    tags = {
        choice.value: choice.count
        for filter_row in page.search.filters
        if filter_row.name == "tag"
        for choice in filter_row.choices
    }
    assert tags == {"": None, "gold": 1}
    assert names(client, "?tag=gold") == names(client, "?tag=GOLD") == ["orders-value"]
    assert names(client, "?owner=user:ada") == ["orders-value"]
    assert names(client, "?owner=user:bob") == names(client, "?owner=group:payments") == ["spare-value"]
    assert names(client, "?owner=user:ada&tag=gold&q=orders") == ["orders-value"]
    add_owner(subject_pattern="*", registry="staging", username="bob", by=system)
    assert names(client, "?owner=user:bob") == ["spare-value"]


@pytest.mark.parametrize(
    "query",
    ["?tag=nothing", "?tag=g.ld", "?tag=(", "?tag=%00", "?tag=%C3%A9", "?tag=a%20b", "?owner=nobody", "?owner=user:",
     "?owner=user:%00", "?owner=group:x", "?owner=:", "?tag=" + "x" * 3000],
)  # fmt: skip
def test_a_list_of_nothing(owners: None, look: Callable[[str], Client], query: str) -> None:
    response = look("reader").get(f"{LIST}{query}")
    assert response.status_code == 200
    assert response.context["page"].table.rows == () or query == "?tag=%00"


def test_an_owner_s_pattern_may_be_anything(owners: None, look: Callable[[str], Client]) -> None:
    ada = User.objects.get(username="ada")
    Ownership.objects.all().delete()
    for pattern in ("[z-a]*", "[", "[!o]rders*", "[]]", "\\*", "(", "ord?rs-value"):
        Ownership.objects.create(registry="dev", subject_pattern=pattern, user=ada)
    assert names(look("reader"), "?owner=user:ada") == ["orders-value"]


# -- several --------------------------------------------------------------------------------------------------------

BOTH = ["orders-value", "spare-value"]


def test_several_get_a_tag_after_a_page_that_lists_them(subjects: None, look: Callable[[str], Client]) -> None:
    client = look("steward")
    assert 'name="subject" value="spare-value"' in compact(client.get(LIST).content.decode())
    preview = client.post(SEVERAL, {"change": "add", "value": "PII", "subject": [*BOTH, "spare-value"]})
    page = preview.context["page"]
    assert preview.status_code == 200
    assert [(row.name, [chip.word for chip in row.after]) for row in page.rows] == [
        ("orders-value", ["Gold", "PII"]),
        ("spare-value", ["PII"]),
    ]
    assert SubjectNote.objects.count() == 1  # nothing is done yet
    hidden = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', preview.content.decode())
    sent = dict(hidden) | {"subject": [value for name, value in hidden if name == "subject"]}
    done = client.post(SEVERAL, {**sent, "reason": "law"})
    assert (done.status_code, done["Location"]) == (302, LIST)
    assert note_of(get_registry("dev"), ORDERS).tags == ("Gold", "PII")
    whys = AuditEvent.objects.filter(table="subjects_subjectnote").values_list("why", flat=True)
    assert {why for why in whys if why.endswith(": law")} == {
        "add PII at orders-value in dev: law",
        "add PII at spare-value in dev: law",
    }
    client.post(SEVERAL, {"change": "remove", "value": "gold", "subject": BOTH, "confirmed": "yes"})
    assert note_of(get_registry("dev"), ORDERS).tags == ("PII",)


def test_several_get_an_owner_by_an_admin_alone(
    owners: None, look: Callable[[str], Client], person: Callable[[str], Actor], system: Actor
) -> None:
    register_version(registry="dev", subject=SubjectName(".", "a[b]*"), text='"int"', by=system)
    Ownership.objects.all().delete()
    body = {"change": "own_user", "value": "ada", "subject": ["orders-value", "a[b]*"], "confirmed": "yes"}
    assert look("steward").post(SEVERAL, body).status_code == 403
    client = look("admin")
    assert client.post(SEVERAL, body).status_code == 302
    assert names(client, "?owner=user:ada") == ["a[b]*", "orders-value"]
    assert client.post(SEVERAL, {**body, "change": "own_group", "value": "payments"}).status_code == 302
    assert names(client, "?owner=group:payments") == ["a[b]*", "orders-value"]
    missing = client.post(SEVERAL, {**body, "value": "nobody-here"})
    assert missing.status_code == 422
    assert "nobody-here" in missing.content.decode()
    assert Group.objects.count() == 1


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"subject": []}, 422),
        ({"change": "drop"}, 422),
        ({"change": ""}, 422),
        ({"value": ""}, 422),
        ({"value": "<b>"}, 422),
        ({"subject": ["nowhere-value"]}, 422),
        ({"subject": [":.x"]}, 422),
        ({"subject": [f"s{number}" for number in range(201)]}, 422),
    ],
)
def test_a_change_of_several_that_is_refused(
    subjects: None, look: Callable[[str], Client], changes: dict[str, Any], status: int
) -> None:
    body = {"change": "add", "value": "PII", "subject": BOTH, "confirmed": "yes"} | changes
    response = look("steward").post(SEVERAL, body)
    assert response.status_code == status
    assert SubjectNote.objects.count() == 1


def test_a_reader_is_offered_no_change_of_several(subjects: None, look: Callable[[str], Client]) -> None:
    client = look("reader")
    offered = client.get(LIST).context["page"].bulk
    assert (offered.choices, offered.url, offered.deprecate_url) == ((), "", "") and offered.export_url
    body = {"change": "add", "value": "PII", "subject": BOTH, "confirmed": "yes"}
    assert client.post(SEVERAL, body).status_code == 403


@pytest.mark.parametrize("name", ["subjects: described", "subjects: several"])
def test_pages_take_as_many_queries_for_many_subjects(
    owners: None, look: Callable[[str], Client], system: Actor, name: str
) -> None:
    client = look("steward")

    def count(names: list[str]) -> int:
        with CaptureQueriesContext(connection) as caught:
            if name == "subjects: described":
                client.get(LIST)
            else:
                client.post(SEVERAL, {"change": "add", "value": "PII", "subject": names})
        return len(caught)

    # one without an owner, as the others below: they are a tier of the list, which is a query
    register_version(registry="dev", subject=SubjectName(".", "nobodys-value"), text=json.dumps(SCHEMA), by=system)
    count(BOTH)
    few = count(BOTH)
    more = [f"more{number}-value" for number in range(5)]
    for text in more:
        subject = SubjectName(".", text)
        register_version(registry="dev", subject=subject, text=json.dumps(SCHEMA), by=system)
        set_note(registry="dev", subject=subject, tags=["PII", text], doc="", by=system, expected="none")
    assert count([*BOTH, *more]) <= few
    assert few <= QUERIES[name]


# -- business words -------------------------------------------------------------------------------------------------

COMPARE = f"{PAGE}compare?from=1&to=2"


@pytest.fixture
def changed(subjects: None, system: Actor) -> None:
    """A second version whose e-mail is optional and described, and which has one choice more."""
    fields = [
        {"name": "id", "type": "long"},
        {"name": "customerEmail", "type": ["null", "string"], "default": None, "aliases": ["email"],
         "doc": "Where we <i>write</i> to.", "confluent:tags": ["PII"]},
    ]  # fmt: skip
    register_version(registry="dev", subject=ORDERS, text=json.dumps({**SCHEMA, "fields": fields}), by=system)


@pytest.mark.requirement("CARD-2")
def test_changes_are_reported_in_business_words_with_the_source_one_click_away(
    changed: None, look: Callable[[str], Client]
) -> None:
    client = look("reader")
    plain = client.get(COMPARE)
    assert not [
        card.business for group in plain.context["page"].comparison.groups for card in group.cards if card.business
    ]
    url = plain.context["page"].words_url
    assert "words=business" in url
    page = client.get(url)
    content = page.content.decode()
    cards = {card.rule: card for group in page.context["page"].comparison.groups for card in group.cards}
    assert cards["NULL_ADDED"].business == "Order customer email is now optional – tagged Gold, PII"
    assert cards["FIELD_RENAMED"].business.startswith("Order customer email is renamed")
    assert cards["NULL_ADDED"].meaning == "Where we <i>write</i> to."
    assert "Where we &lt;i&gt;write&lt;/i&gt; to." in content
    assert len(re.findall(r"In technical terms\s*</summary>", content)) == len(cards)
    assert "Null is now allowed" in content
    assert page.context["page"].words_url == plain.context["page"].words_url.replace("&words=business", "")


@pytest.mark.requirement("CARD-2")
def test_a_field_that_goes_is_known_from_the_old_version(changed: None, look: Callable[[str], Client]) -> None:
    page = look("reader").get(f"{PAGE}compare?from=2&to=1&words=business").context["page"]
    cards = [card for group in page.comparison.groups for card in group.cards]
    assert all(card.business for card in cards)
    (gone,) = (card for card in cards if card.rule == "FIELD_REMOVED")
    assert gone.business == "Order customer email is removed – tagged Gold, PII"
    assert gone.meaning == "Where we <i>write</i> to."


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("Order.customer.eMail", "Customer e mail"),
        ("Order.items[].price_in_EUR", "Items price in EUR"),
        ("$.a", "A"),
        ("$", "The whole record"),
        ("", "The whole record"),
        ("HTTPServer.id2", "HTTP server id2"),
        ("Order.straße", "Order straße"),
        ("...", "The whole record"),
    ],
)
def test_a_path_is_said_as_a_name(path: str, name: str) -> None:
    assert fact_name(path) == name


def test_every_phrase_is_of_a_rule_that_there_is() -> None:
    rules = {rule for module in (avro, protobuf, json_schema) for table in vars(module).values()
             if isinstance(table, dict) for rule in table}  # fmt: skip
    assert set(PHRASES) <= rules
    assert set(FINDINGS) <= {*avro_findings.RULES, *protobuf_findings.RULES, *json_schema_findings.RULES}
    assert all("%(field)s" in text for text in (*PHRASES.values(), *FINDINGS.values()))
    assert phrase_of("PROPERTY_ADDED", "JSON") == "%(field)s is new"
    assert (
        phrase_of("PROPERTY_ADDED", "AVRO")
        == phrase_of("NAMESPACE_CHANGED", "AVRO")
        == "%(field)s changes its form, but not its meaning"
    )
    assert phrase_of("MAXIMUM_RAISED", "JSON") == "%(field)s gets a higher limit"
