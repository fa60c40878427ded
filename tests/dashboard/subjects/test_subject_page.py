"""The page of one subject: verdicts under the level in force, what is deleted or damaged, actions, and what isn't there."""

from __future__ import annotations

import html
import io
import json
import re
import zipfile
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dashboard.subjects.header import level_asks
from registry.access.models import RoleGrant, User
from registry.access.name_patterns import name_pattern
from registry.access.roles import Actor
from registry.drift.models import Cluster, Source, Topic
from registry.drift.usage.subject_topics import carrying_topics, own_topics
from registry.errors import Unavailable
from registry.formats.compatibility import LEVELS
from registry.search.services import index_stale
from registry.subjects import selectors
from registry.subjects.engine import schema_engine
from registry.subjects.models import Registry, SchemaVersion
from registry.subjects.policy.effective_policy import EffectiveConfig, OwnConfig, config_and_settings
from registry.subjects.selectors import origins_of, read_whole, summarize_versions
from registry.subjects.services import delete_subject, delete_version, register_version, set_config, set_mode
from registry.subjects.versions import parsed_schemas
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName
from tests.markup import compact

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-2"), pytest.mark.requirement("CARD-4")]

ORDERS = SubjectName(".", "orders-value")
PAGE = "/ui/registries/dev/subjects/orders-value/"


def record(*fields: str, name: str = "Order") -> str:
    """A record of longs; a field whose name ends with ? has a default."""
    record_fields = [
        {"name": field.rstrip("?"), "type": "long"} | ({"default": 0} if field.endswith("?") else {})
        for field in fields
    ]
    return json.dumps({"type": "record", "name": name, "fields": record_fields})


def register(by: Actor, *fields: str, subject: SubjectName = ORDERS, registry: str = "dev", **more: Any) -> int:
    return register_version(registry=registry, subject=subject, text=record(*fields), by=by, **more).version


def level(by: Actor, name: str | None, **more: Any) -> None:
    set_config(registry="dev", subject=ORDERS, by=by, level=name, **more)


def text_of(response: Any) -> str:
    markup = re.sub(r"<(script|style)\b.*?</\1>", " ", response.content.decode(), flags=re.DOTALL)
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", markup)))


def page_of(response: Any) -> Any:
    return response.context["page"]


@pytest.fixture
def forgetting() -> None:
    """Nothing is known of what other tests read."""
    parsed_schemas.forget()
    schema_engine.forget()


# -- the verdict against the version before ---------------------------------------------------------------------------

#: level → the verdicts of version 2 (a field without a default came) and 3 (one with a default went)
VERDICTS = {
    "NONE": (None, None),
    "BACKWARD": ("breaks", "ok"),
    "BACKWARD_TRANSITIVE": ("breaks", "ok"),
    "FORWARD": ("ok", "ok"),
    "FORWARD_TRANSITIVE": ("ok", "ok"),
    "FULL": ("breaks", "ok"),
    "FULL_TRANSITIVE": ("breaks", "ok"),
}


@pytest.fixture
def three(registries: None, system: Actor) -> None:
    level(system, "NONE")
    for fields in (("a", "b?"), ("a", "b?", "c"), ("a", "c")):
        register(system, *fields)


def test_each_step_is_judged_under_the_level_in_force(
    three: None, system: Actor, look: Callable[[str], Client]
) -> None:
    """In one process, so that a verdict kept for one level would be seen under the next."""
    client, queries = look("reader"), set()
    client.get(PAGE)
    for name, expected in VERDICTS.items():
        level(system, name)
        with CaptureQueriesContext(connection) as executed:
            response = client.get(PAGE)
        queries.add(len(executed))
        verdicts = {row.info.version: row.verdict.code if row.verdict else None for row in page_of(response).versions}
        assert (verdicts[2], verdicts[3]) == expected, name
        assert verdicts[1] is None
        assert f"Against the previous version, under {name}" in text_of(response)
    assert len(queries) == 1


def test_a_level_that_asks_nothing_gives_no_verdict(three: None, look: Callable[[str], Client]) -> None:
    rows = {row.info.version: row for row in page_of(look("reader").get(PAGE)).versions}
    assert [(row.verdict, row.verdict_note) for row in (rows[2], rows[3])] == [(None, "not checked")] * 2
    assert rows[1].verdict_note == ""


def test_versions_are_judged_within_their_group(registries: None, system: Actor) -> None:
    level(system, "BACKWARD", compatibility_group="major")
    for major, fields in (("1", ("a",)), ("2", ("x",)), ("1", ("a", "b?")), ("2", ("x", "y"))):
        register(
            system,
            *fields,
            metadata={"properties": {"major": major}},
            **({"force": "why"} if fields == ("x", "y") else {}),
        )
    registry = get_registry("dev")
    summaries = summarize_versions(read_whole(registry, ORDERS)[1], *config_and_settings(registry, ORDERS))
    verdicts = {
        number: (summary.previous, summary.against, summary.is_compatible) for number, summary in summaries.items()
    }
    assert verdicts == {2: (1, None, None), 3: (2, 1, True), 4: (3, 2, False)}
    assert summaries[2].unjudged == "first in its group"


def test_the_rules_beside_the_level_count(registries: None, system: Actor) -> None:
    """They refuse what BACKWARD takes: a field of another type, which is promoted."""
    for kind in ("int", "long"):
        text = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": kind, "default": 0}]})
        register_version(registry="dev", subject=ORDERS, text=text, by=system)
    readings = read_whole(get_registry("dev"), ORDERS)[1]
    verdicts = {
        policy: summarize_versions(readings, EffectiveConfig("BACKWARD", False, "subject", policy=policy), OwnConfig())[
            2
        ]
        for policy in ("none", "oracle_nosql")
    }
    assert verdicts["none"].is_compatible is True
    assert verdicts["oracle_nosql"].is_compatible is False


# -- what the head says -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "versions", "sentence"),
    [
        ("NONE", 3, "Nothing is checked: any schema is accepted."),
        ("BACKWARD", 0, "There is no version to check a new schema against."),
        ("BACKWARD", 1, "A new schema must read the data of the newest version."),
        ("BACKWARD", 3, "A new schema must read the data of the newest version. The 2 older versions are not checked."),
        ("BACKWARD_TRANSITIVE", 7, "A new schema must read the data of all 7 versions."),
        ("FORWARD", 2, "The newest version must read the data of a new schema. The older version is not checked."),
        ("FORWARD_TRANSITIVE", 1, "The only version must read the data of a new schema."),
        ("FULL", 1, "A new schema and the newest version must read each other’s data."),
        ("FULL_TRANSITIVE", 12, "A new schema and all 12 versions must read each other’s data."),
    ],
)  # fmt: skip
def test_what_a_level_asks_is_said_with_the_number_of_versions(name: str, versions: int, sentence: str) -> None:
    assert level_asks(EffectiveConfig(name, False, "subject"), OwnConfig(), versions) == sentence
    assert LEVELS[name].name == name


def test_the_head_says_where_the_level_is_set_and_what_is_inherited(
    three: None, system: Actor, look: Callable[[str], Client]
) -> None:
    client = look("reader")
    assert "NONE (own setting; the default is BACKWARD)" in text_of(client.get(PAGE))
    set_config(registry="dev", subject=None, by=system, level="FULL")
    level(system, "BACKWARD_TRANSITIVE")
    said = (
        "BACKWARD_TRANSITIVE (own setting; the registry has FULL): A new schema must read the data of all 3 versions."
    )
    assert said in text_of(client.get(PAGE))


def test_the_head_names_the_topics_and_how_they_are_known(three: None, look: Callable[[str], Client]) -> None:
    dev = Registry.objects.get(name="dev")
    cluster = Cluster.objects.create(name="c", bootstrap="localhost:9092", created_by="x")
    source = Source.objects.create(registry=dev, kind="kafka", name="all", created_by="x", cluster=cluster)

    def topic(name: str, subjects: dict[str, list[str]], strategies: dict[str, list[str]], **more: Any) -> None:
        Topic.objects.create(source=source, name=name, subjects=subjects, strategies=strategies, **more)

    topic("orders", {}, {})
    topic("bills", {"value": ["orders-value", "x"]}, {"value": ["RecordName", "TopicName"]})
    topic("other", {"value": ["others-value"]}, {"value": ["TopicName"]})
    topic("gone", {"value": ["orders-value"]}, {"value": ["RecordName"]}, gone_at=timezone.now())
    with CaptureQueriesContext(connection) as executed:
        topics = carrying_topics(own_topics(dev, ORDERS), ORDERS)
    assert len(executed) == 1
    assert [(topic.name, topic.side, topic.strategies, topic.is_found) for topic in topics] == [
        ("bills", "value", ("RecordName",), True),
        ("orders", "value", ("TopicName",), False),
    ]
    text = text_of(look("reader").get(PAGE))
    assert "bills values, by RecordName" in text
    assert "orders values, by its name only" in text


def test_the_actions_stand_in_the_head(three: None, look: Callable[[str], Client]) -> None:
    actions = {action.label: action for action in page_of(look("steward").get(PAGE)).actions}
    assert list(actions) == ["Promote…", "Propose version", "Check new version"]
    more = {action.label: action for action in page_of(look("steward").get(PAGE)).more}
    assert list(more) == [
        "Simulate with data", "Try a rule on messages", "Show on map", "Describe", "Subscribe", "Policy", "Retire …",
    ]  # fmt: skip
    assert all(action.allowed for action in actions.values())
    assert "subject=orders-value&from=dev%3Alatest" in actions["Propose version"].url
    assert "subject=orders-value" in more["Policy"].url
    client = look("reader")
    refused = {action.label: action for action in page_of(client.get(PAGE)).actions}["Propose version"]
    assert not refused.allowed
    assert refused.reason in text_of(client.get(PAGE))


@pytest.mark.requirement("CARD-4")
@pytest.mark.parametrize(
    ("registry", "pattern", "target"),
    [("staging", "*", "staging"), ("prod", "orders-*", "prod"), ("dev", "*", ""), ("staging", "bills-*", "")],
)
def test_whoever_may_ask_for_it_in_one_environment_alone_is_led_there(
    three: None, look: Callable[[str], Client], registry: str, pattern: str, target: str
) -> None:
    client = look("reader")
    RoleGrant.objects.create(
        user=User.objects.get(username="reader"), role="steward", registry=registry, subject_pattern=pattern
    )
    promote = page_of(client.get(PAGE)).actions[0]
    assert (promote.label, promote.allowed) == ("Promote…", bool(target))
    assert f"target={target or 'staging'}&" in promote.url
    assert client.get(promote.url).status_code == 200


@pytest.mark.requirement("CARD-3")
def test_a_subject_is_exported_and_subscribed_to_from_its_menu(
    three: None, system: Actor, look: Callable[[str], Client]
) -> None:
    register(system, "a", subject=SubjectName(".", "odd*[name]"))
    client = look("reader")
    response = client.get("/ui/registries/dev/subjects/odd*[name]/")
    page = page_of(response)
    assert 'name="subject" value="odd*[name]"' in compact(response.content.decode())
    archive = zipfile.ZipFile(io.BytesIO(client.post(page.export.url, {"subject": page.export.subject}).content))
    assert b"odd*[name]" in archive.read("subjects.jsonl")
    subscribe = next(item for item in page.more if item.label == "Subscribe")
    fields = {item.name: item.value() for item in client.get(subscribe.url).context["page"].form}
    assert (fields["registry_pattern"], fields["subject_pattern"]) == ("dev", "odd??name]")
    assert name_pattern(fields["subject_pattern"]).allows("odd*[name]")
    assert not name_pattern(fields["subject_pattern"]).allows("oddly named")


def test_what_a_version_has_in_each_environment_is_shown(
    three: None, system: Actor, look: Callable[[str], Client]
) -> None:
    register(system, "z", subject=SubjectName(".", "before"), registry="staging")
    set_config(registry="staging", subject=ORDERS, by=system, level="NONE")
    register(system, "a", "c", registry="staging")
    page = page_of(look("reader").get(PAGE))
    by_environment = {live.environment.name: live for live in page.versions[0].live_in}
    ids = dict(
        SchemaVersion.objects.filter(subject__name="orders-value")
        .values_list("subject__context__registry__name", "schema__schema_id")
        .order_by("version")
    )
    assert {name: (live.version, live.schema_id) for name, live in by_environment.items()} == {
        "dev": (3, ids["dev"]), "staging": (1, ids["staging"]),
    }  # fmt: skip
    assert [head.version for head in page.lanes.heads] == [1, 2, 3]
    cells = {lane.environment.name: lane.cells[2] for lane in page.lanes.lanes}
    assert (cells["staging"].there, cells["staging"].schema_id) == (1, ids["staging"])
    assert cells["staging"].since == by_environment["staging"].since


# -- deleted ------------------------------------------------------------------------------------------------------------


def test_a_subject_that_is_soft_deleted_leads_to_its_restoring(
    three: None, system: Actor, look: Callable[[str], Client]
) -> None:
    delete_subject(registry="dev", subject=ORDERS, by=system)
    client = look("steward")
    response = client.get(PAGE)
    restore = page_of(response).restore
    assert "You can restore them" in text_of(response)
    assert page_of(response).state.state.code == "deleted"
    assert restore.allowed
    assert client.get(restore.url).status_code == 200
    client.post(restore.url)
    assert SchemaVersion.objects.filter(deleted_at=None, subject__name="orders-value").count() == 3
    assert page_of(client.get(PAGE)).restore is None


def test_who_may_not_restore_sees_why(three: None, system: Actor, look: Callable[[str], Client]) -> None:
    delete_subject(registry="dev", subject=ORDERS, by=system)
    response = look("reader").get(PAGE)
    assert not page_of(response).restore.allowed
    assert "You need the admin or steward role in dev to delete versions" in text_of(response)
    set_mode(registry="dev", subject=ORDERS, by=system, mode="READONLY")
    response = look("steward").get(PAGE)
    assert not page_of(response).restore.allowed
    assert "The mode is READONLY: no changes are allowed" in text_of(response)


def test_a_soft_deleted_version_leads_to_its_own_restoring(
    three: None, system: Actor, look: Callable[[str], Client]
) -> None:
    delete_version(registry="dev", subject=ORDERS, version=2, by=system)
    client = look("steward")
    assert page_of(client.get(PAGE)).restore is None
    restore = page_of(client.get(f"{PAGE}?version=2")).restore
    assert "version 2" in restore.label
    client.post(restore.url)
    assert SchemaVersion.objects.get(subject__name="orders-value", version=2).deleted_at is None


# -- settings -----------------------------------------------------------------------------------------------------------


def test_settings_lead_to_where_they_are_changed(three: None, system: Actor, look: Callable[[str], Client]) -> None:
    client = look("steward")
    settings = {setting.label: setting for setting in page_of(client.get(f"{PAGE}?tab=settings")).selected.settings}
    compatibility, mode = settings["Compatibility"], settings["Mode"]
    assert compatibility.change.allowed and compatibility.reset.allowed
    assert compatibility.inherited == "BACKWARD"
    assert "Reset to inherited" in text_of(client.get(compatibility.reset.url))
    assert mode.reset is None
    assert not mode.change.allowed
    assert "change modes" in mode.why[0].sentence
    reader = page_of(look("reader").get(f"{PAGE}?tab=settings")).selected.settings[0]
    assert (reader.change.allowed, reader.reset.allowed) == (False, False)
    assert reader.why


# -- proposing ----------------------------------------------------------------------------------------------------------


def test_the_editor_begins_with_the_newest_version(three: None, look: Callable[[str], Client]) -> None:
    client = look("steward")
    url = {action.label: action for action in page_of(client.get(PAGE)).actions}["Propose version"].url
    form = page_of(client.get(url))
    assert json.loads(form.form["text"].value()) == json.loads(record("a", "c"))
    assert form.form["subject"].value() == "orders-value"


def test_a_checked_text_is_taken_to_the_editor(three: None, look: Callable[[str], Client]) -> None:
    client = look("steward")
    form_fields = {
        "text": record("a", "c", "d?"), "schema_type": "AVRO", "ref_name": ["R", ""], "ref_subject": ["r", ""],
        "ref_version": ["2", ""],
    }  # fmt: skip
    page = client.post(f"{PAGE}report", form_fields)
    propose = page_of(page).propose
    assert propose.allowed
    assert f'formaction="{propose.url}"' in page.content.decode()
    markup = compact(page.content.decode())
    hidden = dict(re.findall(r'<input type="hidden" name="(registry|subject)" value="([^"]*)">', markup))
    form = page_of(client.post(propose.url, {**form_fields, **hidden}))
    assert form.form["text"].value() == form_fields["text"]
    assert next((row.name, row.subject, row.version) for row in form.form.rows) == ("R", "r", "2")
    assert (form.form["subject"].value(), form.draft_id) == ("orders-value", None)
    assert not page_of(look("reader").post(f"{PAGE}report", form_fields)).propose.allowed


# -- damaged --------------------------------------------------------------------------------------------------------------

DAMAGED = '{"type": "record", "name": "Order", "fields": [{"name": "a", "type": "nope"}]}'


@pytest.fixture
def damaged(three: None, forgetting: None) -> None:
    """Version 2, past the product, as a fault of a disk would; nothing kept from before hides it."""
    row = SchemaVersion.objects.get(subject__name="orders-value", version=2)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE subjects_schema SET canonical = %s WHERE id = %s", [DAMAGED, row.schema_id])
        assert cursor.rowcount == 1


def test_a_damaged_version_shows_its_text_and_the_place(damaged: None, look: Callable[[str], Client]) -> None:
    client = look("reader")
    for tab in ("structure", "source"):
        response = client.get(f"{PAGE}?version=2&tab={tab}")
        assert response.status_code == 200
        selected = page_of(response).selected
        assert selected.problem and "nope" in selected.problem.detail
        assert selected.source == DAMAGED
        assert DAMAGED in html.unescape(response.content.decode())
    for tab in ("references", "settings"):
        response = client.get(f"{PAGE}?version=2&tab={tab}")
        assert response.status_code == 200
        assert page_of(response).selected.problem is None


def test_the_other_versions_are_as_they_were(damaged: None, system: Actor, look: Callable[[str], Client]) -> None:
    level(system, "BACKWARD")
    page = page_of(look("reader").get(f"{PAGE}?version=3"))
    assert [field.item.name for field in page.selected.structure.fields] == ["a", "c"]
    rows = {row.info.version: row for row in page.versions}
    assert all(rows[number].verdict.code == "unknown" for number in (2, 3))
    assert all("Version 2 can't be read" in rows[number].problem for number in (2, 3))
    assert (rows[1].verdict, rows[1].problem) == (None, "")
    since = origins_of(read_whole(get_registry("dev"), ORDERS)[1])
    assert since["Order.a"] == 1
    assert "Order.c" not in since, "it came with version 2 or 3, which can't be told"


def test_a_place_in_the_text_is_pointed_at(three: None, forgetting: None, look: Callable[[str], Client]) -> None:
    row = SchemaVersion.objects.get(subject__name="orders-value", version=3)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE subjects_schema SET canonical = %s WHERE id = %s", ['{"type": "long"\n  oops}', row.schema_id]
        )
    selected = page_of(look("reader").get(PAGE)).selected
    assert "line 2" in selected.problem.where
    assert any(line.caret for line in selected.snippet)


def test_a_schema_that_is_too_costly_is_shown_as_text(
    three: None, forgetting: None, look: Callable[[str], Client], settings: Any
) -> None:
    """What was accepted under other limits than today's."""
    text = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "a", "type": "long"}]})
    deep = '{"type": "array", "items": ' * 3_000 + text + "}" * 3_000
    row = SchemaVersion.objects.get(subject__name="orders-value", version=3)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE subjects_schema SET canonical = %s WHERE id = %s", [deep, row.schema_id])
    response = look("reader").get(PAGE)
    assert response.status_code == 200
    selected = page_of(response).selected
    assert selected.problem
    assert selected.source == deep


def test_a_version_that_could_not_be_read_now_is_not_called_wrong(
    three: None, look: Callable[[str], Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = Unavailable("All processes are busy. Try again.", retry_after=1)

    def read_late(*arguments: Any, **named: Any) -> Any:
        infos, readings = read_whole(*arguments, **named)
        return infos, [replace(reading, schema=None, error=busy) for reading in readings]

    monkeypatch.setattr(selectors, "read_whole", read_late)
    problem = page_of(look("reader").get(PAGE)).selected.problem
    assert problem.what == "Version 3 wasn’t read as Avro." and problem.detail == "All processes are busy. Try again."
    assert "wasn’t checked" in problem.cure and "retire" not in problem.cure


# -- what isn't there -----------------------------------------------------------------------------------------------------


def nearest_of(client: Client, address: str) -> list[str]:
    response = client.get(address)
    assert response.status_code == 404
    return [link.label for link in page_of(response).nearest]


def test_a_missing_subject_leads_to_the_nearest_and_to_where_it_is(
    three: None, system: Actor, look: Callable[[str], Client]
) -> None:
    register(system, "a", subject=SubjectName(".", "bills-value"), registry="staging")
    index_stale()
    client = look("reader")
    assert nearest_of(client, "/ui/registries/dev/subjects/order-valeu/") == ["orders-value"]
    assert nearest_of(client, "/ui/registries/dev/subjects/bills-value/usage")[0] == "bills-value in staging"
    assert nearest_of(client, f"{PAGE}?version=9") == [f"version {number} of orders-value" for number in (3, 2, 1)]
    assert nearest_of(client, "/ui/registries/nowhere/subjects/orders-value/") == []
    assert nearest_of(client, "/ui/findings/999") == []


def test_nothing_is_reported_that_the_viewer_may_not_read(
    three: None, system: Actor, look: Callable[[str], Client]
) -> None:
    register(system, "a", subject=SubjectName(".", "bills-value"), registry="staging")
    register(system, "a", subject=SubjectName(".", "bills-key"))
    index_stale()
    client = look("reader")
    assert nearest_of(client, "/ui/registries/dev/subjects/bills-value/") == ["bills-value in staging", "bills-key"]
    RoleGrant.objects.filter(user__username="reader").update(registry="dev", subject_pattern="bills-v*")
    assert nearest_of(client, "/ui/registries/dev/subjects/bills-value/") == []
    for address in (PAGE, "/ui/registries/dev/subjects/orders-valeu/", "/ui/registries/staging/subjects/bills-valu/"):
        response = client.get(address)
        assert response.status_code == 403
        assert page_of(response).nearest == ()
        assert "bills-key" not in text_of(response)
