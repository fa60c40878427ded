"""Comparing any two versions, the compatibility report and the simulator, over the real database."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client

from dashboard.compare.change_cards import MAX_CARDS
from dashboard.components.badges import Verdict
from registry.access.models import RoleGrant, User
from registry.access.roles import Actor
from registry.errors import SchemaTooCostly
from registry.formats import FORMATS
from registry.subjects.engine import schema_engine
from registry.subjects.lifecycle.notes import change_tags
from registry.subjects.services import register_version, set_config
from registry.subjects.usage.clients import declare_client
from registry.subjects.versions.qualified_names import SubjectName
from tests.conftest import RawClient, signed_in
from tests.markup import compact

ORDERS = SubjectName(".", "orders-value")
PERSON = SubjectName(".", "person-value")
NASTY = "<script>alert(1)</script>\"\u202eevil'"
V1 = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long", "doc": NASTY},
        {"name": "amount", "type": "int"},
        {"name": "customer_name", "type": "string"},
    ],
}
V2 = {
    **V1,
    "fields": [
        {"name": "id", "type": "long", "doc": NASTY},
        {"name": "amount", "type": "float"},
        {"name": "client_name", "type": "string"},
    ],
}
CLIENT = "<script>alert(1)</script>\"billing'"
PERSON_1 = {"type": "record", "name": "Person", "fields": [{"name": "name", "type": "string"}]}
PERSON_2 = {**PERSON_1, "fields": [*PERSON_1["fields"], {"name": "age", "type": "int", "default": -1}]}
SUBJECT = "/ui/registries/dev/subjects/orders-value/"
PEOPLE = "/ui/registries/dev/subjects/person-value/"
QUERIES = json.loads((Path(__file__).parents[1] / "query_counts.json").read_text())


@pytest.fixture
def reader(person: Callable[[str], Actor]) -> Client:
    """A signed-in browser of somebody who may read."""
    person("reader")
    return signed_in("reader")


@pytest.fixture
def content(person: Callable[[str], Actor]) -> Actor:
    """Orders with a breaking second version (also in staging: the first), and a person who gets an age."""
    by = person("steward")
    set_config(registry="dev", subject=ORDERS, level="NONE", by=by)
    for schema in (V1, V2):
        register_version(registry="dev", subject=ORDERS, text=json.dumps(schema), by=by)
    set_config(registry="dev", subject=ORDERS, level="BACKWARD", by=by)
    register_version(registry="staging", subject=ORDERS, text=json.dumps(V1), by=by)
    for schema in (PERSON_1, PERSON_2):
        register_version(registry="dev", subject=PERSON, text=json.dumps(schema), by=by)
    return by


def seen(response: Any) -> str:
    """What a person reads of a page: without markup, white space folded."""
    text = re.sub(r"</?(?:b|bdi|code|del|ins|kbd|svg|use)\b[^>]*>", "", response.content.decode())
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


# -- compare ----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("CARD-2", "GOO-2")
def test_a_change_has_both_directions_and_a_proof_in_data_and_bytes(
    reader: Client, content: Actor, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(QUERIES["compare"]):
        response = reader.get(f"{SUBJECT}compare?from=1&to=2")
    text = seen(response)
    assert response.status_code == 200
    assert "decoding fails" in text
    assert "No default value for field client_name" in text
    assert "the value changes" in text
    assert "16777217" in text and "16777216.0" in text
    assert "82 80 80 10" in text  # 16777217 as Avro writes an int
    assert "New reader, old data: the established rules accept this, but data changes." in text


def test_a_made_up_value_is_called_an_example_and_not_data(reader: Client, content: Actor) -> None:
    page = reader.get(f"{SUBJECT}compare?from=1&to=2")
    shown = [card for group in page.context["page"].comparison.groups for card in group.cards if card.example]
    assert [card.path for card in shown] == ["Order.amount"]
    assert f"For example: {shown[0].example}" in seen(page)
    assert "In the data:" not in seen(page)  # nothing was scanned
    markdown = reader.get(f"{SUBJECT}compare?from=1&to=2&as=markdown").content.decode()
    assert "For example: 16777217 is read as" in markdown


def test_a_rename_is_proposed_with_its_score_and_the_edit_that_accepts_it(reader: Client, content: Actor) -> None:
    text = seen(reader.get(f"{SUBJECT}compare?from=1&to=2"))
    assert re.search(r"Possible renames .* \d\d % similar .* renamed\? .* Because: the same type", text)
    assert '"aliases": ["customer_name"]' in text or '"customer_name" ] ' in text
    assert 'Readers with the new schema stop at every message written with "customer_name"' in text
    assert 'Fix: Add the alias "customer_name" to "client_name"' in text
    markdown = reader.get(f"{SUBJECT}compare?from=1&to=2&as=markdown").content.decode()
    assert "Readers with the new schema stop at every message written with" in markdown


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("from=staging:1&to=2", ["version 1 in staging and version 2 in dev", "client_name"]),
        ("from=2&to=staging:1", ["version 2 in dev and version 1 in staging"]),
        ("from=1&to=latest", ["client_name"]),
        ("from=1&to=2&unchanged=1", ["1 unchanged field", "Order.id long"]),
        ("from=1&to=2&text=submitted", ["As submitted"]),
        ("with=person-value&from=2&to=1", ["person-value", "Compare within one subject"]),
        ("with=nobody", ["dev has no subject 'nobody'.", "client_name"]),
        ("", ["Compare version 1 and version 2"]),
    ],
)
def test_any_two_are_compared_by_the_address(reader: Client, content: Actor, query: str, sentence: list[str]) -> None:
    response = reader.get(f"{SUBJECT}compare?{query}")
    text = seen(response)
    assert response.status_code == 200
    assert [word for word in sentence if word not in text] == []


def test_swapped_sides_of_two_subjects_lead_to_the_other_ones_page(reader: Client, content: Actor) -> None:
    page = reader.get(f"{SUBJECT}compare?with=person-value&from=2&to=1").content.decode()
    swap = html.unescape(re.findall(r'href="([^"]+)"[^>]*><svg[^>]*><use[^>]*></use></svg>Swap', compact(page))[0])
    assert swap == f"{PEOPLE}compare?from=1&to=2&with=orders-value"
    assert "orders-value version 1" in seen(reader.get(swap))


@pytest.mark.parametrize(
    "query",
    ["from=1&to=9", "from=prod:1&to=2", "from=nowhere:1&to=2", "from=1&to=%3Cb%3E", "from=:&to=:", "from=1&to=0"],
)
def test_a_side_that_is_not_there_is_named_and_the_other_shown(reader: Client, content: Actor, query: str) -> None:
    response = reader.get(f"{SUBJECT}compare?{query}")
    assert "version <b>" not in response.content.decode()
    if query == "from=:&to=:":  # nothing is named, so the usual two are compared
        assert response.status_code == 200
        return
    assert response.status_code == 404
    assert "exists" in seen(response) or query == "from=1&to=%3Cb%3E"


def test_formats_that_differ_are_compared_as_texts(reader: Client, content: Actor) -> None:
    set_config(registry="dev", subject=PERSON, level="NONE", by=content)
    register_version(registry="dev", subject=PERSON, text='{"type": "object"}', schema_type="JSON", by=content)
    text = seen(reader.get(f"{PEOPLE}compare?from=2&to=3"))
    assert "Schemas in two formats can’t be compared field by field." in text
    assert "The format changed from Avro to JSON Schema." in text
    assert "Side by side" in text


def test_formatting_alone_is_the_same_meaning(reader: Client, content: Actor, person: Callable[[str], Actor]) -> None:
    other = SubjectName(".", "orders-copy-value")
    register_version(registry="dev", subject=other, text=json.dumps(V2, indent=7), by=content)
    text = seen(reader.get(f"{SUBJECT}compare?with=orders-copy-value&from=1&to=2"))
    assert "Same meaning" in text
    assert "only formatting differs" in text
    assert "Only formatting differs" in text
    laid_out = reader.get(f"{SUBJECT}compare?with=orders-copy-value&from=1&to=2&text=submitted")
    assert "texts are identical" not in seen(laid_out)


def test_the_comparison_as_markdown(reader: Client, content: Actor) -> None:
    response = reader.get(f"{SUBJECT}compare?from=1&to=2&as=markdown")
    text = response.content.decode()
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    assert text.startswith("# orders-value: dev version 1 → dev version 2\n")
    assert "- **Breaking: added `Order.client_name`**" in text
    assert "New reader / old data: fails. Old reader / new data: works." in text
    assert "bytes `82808010`" in text
    assert "```diff\n" in text


def test_a_side_that_the_reader_may_not_read_stays_closed(person: Callable[[str], Actor], content: Actor) -> None:
    person("stranger")
    user = User.objects.get(username="stranger")
    RoleGrant.objects.create(user=user, role="reader", registry="dev", subject_pattern="orders-*")
    client = RawClient()
    client.force_login(user)
    assert client.get(f"{SUBJECT}compare?from=1&to=2").status_code == 200
    for query in ("from=staging:1&to=2", "with=person-value&from=1&to=2"):
        response = client.get(f"{SUBJECT}compare?{query}")
        assert re.search(r"You need the .* role in (?:staging|dev) to read schemas", seen(response))
        assert '"age"' not in html.unescape(response.content.decode())
    assert client.get(f"{SUBJECT}compare?from=staging:1&to=2").status_code == 404


@pytest.mark.slow
def test_very_many_changes_are_drawn_on_demand(reader: Client, content: Actor) -> None:
    name = SubjectName(".", "wide-value")
    set_config(registry="dev", subject=name, level="NONE", by=content)
    for kind in ("int", "string"):
        fields = [{"name": f"f{number}", "type": kind} for number in range(230)]
        register_version(registry="dev", subject=name, text=json.dumps({**V1, "fields": fields}), by=content)
    page = reader.get("/ui/registries/dev/subjects/wide-value/compare").content.decode()
    assert page.count("data-change") == MAX_CARDS
    hidden = re.findall(r"(\d+) more changes of the same or lower severity aren’t shown.", page)
    more = html.unescape(re.findall(r'href="([^"]+)">Show all', compact(page))[0])
    assert reader.get(more).content.decode().count("data-change") == MAX_CARDS + int(hidden[0]) >= 230


def test_htmx_gets_the_text_alone(reader: Client, content: Actor) -> None:
    response = reader.get(
        f"{SUBJECT}compare?from=1&to=2&view=split", headers={"hx-request": "true", "hx-target": "text"}
    )
    body = response.content.decode()
    assert "<html" not in body
    assert compact(body).lstrip().startswith('<section class="panel" id="text"')
    assert "diff-split" in body


# -- report -----------------------------------------------------------------------------------------------------------


def check(reader: Client, schema: Any, **form: Any) -> Any:
    """The answer to the form, sent with a schema."""
    text = schema if isinstance(schema, str) else json.dumps(schema, indent=2)
    return reader.post(f"{SUBJECT}report", {"text": text, "schema_type": "AVRO"} | form)


PROPOSED = {**V2, "fields": [*V2["fields"], {"name": "channel", "type": "string"}]}


def test_the_form_opens_with_the_newest_version(reader: Client, content: Actor) -> None:
    page = html.unescape(reader.get(f"{SUBJECT}report").content.decode())
    assert '"name": "client_name"' in page
    assert all(f'<option value="{name}"' in page for name in FORMATS)


def test_a_finding_has_its_place_in_the_text_a_proof_and_a_cure(
    reader: Client, content: Actor, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(QUERIES["report"]):
        response = check(reader, PROPOSED)
    text = seen(response)
    line = json.dumps(PROPOSED, indent=2).splitlines().index('      "name": "channel",')
    assert response.status_code == 200
    assert "Incompatible under BACKWARD, by the established rules" in text
    assert f"Order.channel line {line}, column 5" in text
    assert "No default value for field channel" in text
    assert 'Fix: give "channel" a default' in text
    assert "beyond BACKWARD" in text  # version 1, which the level doesn't ask


def test_a_report_names_the_declared_clients_that_would_not_go_on(
    reader: Client, content: Actor, person: Callable[[str], Actor]
) -> None:
    for name, more in ((CLIENT, {"contact": CLIENT}), ("sender", {"reads": False, "writes": True})):
        declare_client(registry="dev", subject=ORDERS, name=name, by=person("steward"), **more)
    response = check(reader, {**V2, "fields": [{"name": "id", "type": "string"}, *V2["fields"][1:]]})
    result, text = response.context["page"].result, seen(response)
    assert {row.name: row.answer for row in result.clients} == {CLIENT: "no", "sender": "no"}
    assert "Declared clients" in text and "writes version 2" in text and "can't read data of this version" in text
    assert "<script>alert" not in response.content.decode()
    same = check(reader, V2).context["page"].result
    assert {row.answer for row in same.clients} == {"yes"}
    assert not same.headline.startswith("Move")


def test_the_headline_of_a_report_is_the_worst_of_all_that_it_says(
    reader: Client, content: Actor, person: Callable[[str], Actor]
) -> None:
    declare_client(registry="dev", subject=PERSON, name="ages", fields=["age"], by=person("steward"))
    sent = {"text": json.dumps(PERSON_1), "schema_type": "AVRO"}
    result = reader.post(f"{PEOPLE}report", sent).context["page"].result
    assert [row.answer for row in result.clients] == ["no"]
    assert (result.headline, result.verdict.code) == ("Move the affected clients first", "care")


def test_a_report_with_problems_folds_what_repeats_them(reader: Client, content: Actor) -> None:
    """The findings under the level come first and open; the same changes and findings beyond the level are folded."""
    folded = r'<details class="{}"\s*(open)?\s*>\s*<summary[^>]*>(?:(?!</summary>).)*{}'
    parts = {"more": "All changes against version 2, and both texts", "panel": "beyond BACKWARD"}
    for form, is_open in (({}, ""), ({"all": "1"}, "open")):
        page = compact(check(reader, PROPOSED, **form).content.decode())
        for style, title in parts.items():
            assert [match[1] or "" for match in re.finditer(folded.format(style, title), page, re.DOTALL)] == [is_open]
    assert "All changes against" not in seen(check(reader, {**V2, "doc": "Only words."}))


def test_findings_that_differ_only_in_their_place_are_shown_once(reader: Client, content: Actor) -> None:
    """The first one is shown, and the others are folded with their places; so are their edits, and a long diff."""
    was, new = (
        {**V1, "fields": [*V2["fields"], *({"name": f"n{at}", "type": kind} for at in range(8))]}
        for kind in ("long", "string")
    )
    set_config(registry="dev", subject=ORDERS, level="NONE", by=content)
    register_version(registry="dev", subject=ORDERS, text=json.dumps(was), by=content)
    set_config(registry="dev", subject=ORDERS, level="BACKWARD", by=content)
    response = check(reader, new)
    groups, text = response.context["page"].result.finding_groups, seen(response)
    assert [(group.first.path, len(group.others)) for group in groups] == [("Order.n0", 7)]
    assert "7 more places with this problem" in text
    assert groups[0].paths == [*(f"Order.n{at}" for at in range(1, 6)), "…"]
    assert text.count("Restore the type long") == 1 and "Restore the type long in 8 places" in text
    assert len(re.findall(r"Rest of the edit: \d+ lines", text)) == 1
    folded = re.findall(
        r'<li class="change-more">\s*<details class="more"\s*(open)?\s*>', compact(response.content.decode())
    )
    assert folded == ["", ""], "those that the level checks, and those beyond"
    assert '<details class="more" open' in compact(check(reader, new, all="1").content.decode())


def test_a_report_shows_what_the_text_changes_of_the_newest_version(reader: Client, content: Actor) -> None:
    page = check(reader, PROPOSED)
    shown = page.context["page"].comparison
    assert [card.path for group in shown.groups for card in group.cards] == ["Order.channel"]
    assert "Against the newest version in dev, version 2" in seen(page)
    assert "New reader, old data" in seen(page)
    assert check(reader, V2).context["page"].comparison is None  # it says the same as that version
    comparison = check(reader, PROPOSED, words="business").context["page"].comparison
    assert all(card.business for group in comparison.groups for card in group.cards)
    first = reader.post("/ui/registries/dev/subjects/nobody/report", {"text": json.dumps(V1), "schema_type": "AVRO"})
    assert first.context["page"].comparison is None


def test_findings_are_reported_in_business_words_with_the_schemas_one_click_away(
    reader: Client, content: Actor
) -> None:
    plain, in_business_words = (
        check(reader, PROPOSED, words=wording).context["page"].result for wording in ("", "business")
    )
    assert not any(item.business for item in (*plain.findings, *plain.beyond))
    assert plain.findings
    assert [item.rule for item in in_business_words.findings] == [item.rule for item in plain.findings]
    for item in (*in_business_words.findings, *in_business_words.beyond):
        assert item.business
        assert "changes its form" not in item.business
    page = check(reader, PROPOSED, words="business").content.decode()
    beside = 1  # the card of what the text changes of the newest version
    assert (
        len(re.findall(r"In technical terms\s*</summary>", page))
        == len(in_business_words.findings) + len(in_business_words.beyond) + beside
    )


def test_the_offered_text_passes_when_it_is_checked_again(reader: Client, content: Actor) -> None:
    page = check(reader, PROPOSED, profile="confluent").content.decode()
    assert "Would pass BACKWARD" in page
    form = re.findall(r'<form class="contents" method="post".*?</form>', compact(page))[0]
    sent = {name: html.unescape(value) for name, value in re.findall(r'name="([^"]+)" value="([^"]*)"', form)}
    assert '"default"' in sent["text"]
    response = reader.post(f"{SUBJECT}report", sent)
    assert "Compatible under BACKWARD" in seen(response)
    assert "Would pass" not in seen(response)


def test_the_edit_of_a_likely_rename_says_whether_it_is_enough(reader: Client, content: Actor) -> None:
    assert "Not enough to pass" not in seen(reader.get(f"{SUBJECT}compare?from=1&to=2"))  # a comparison has no level
    fields = json.loads(json.dumps(V2["fields"]).replace('"client_name"', '"clients_name"'))
    for level, verdict in (("BACKWARD", "Would pass"), ("FULL", "Not enough to pass")):
        text = seen(check(reader, {**V2, "fields": fields}, level=level, profile="confluent"))
        assert re.search(rf'If it was renamed: add the alias "client_name" {verdict} ', text), level


def test_line_ends_of_a_browser_do_not_move_the_places(reader: Client, content: Actor) -> None:
    plain = json.dumps(PROPOSED, indent=2)
    locations = [
        re.findall(r"line \d+, column \d+", seen(check(reader, text))) for text in (plain, plain.replace("\n", "\r\n"))
    ]
    assert locations[0] == locations[1] != []


@pytest.mark.requirement("GOO-2")
def test_the_profile_decides_whether_lost_digits_break(reader: Client, content: Actor) -> None:
    set_config(registry="dev", subject=PERSON, level="NONE", by=content)
    integer = {**PERSON_1, "fields": [{"name": "n", "type": "int"}]}
    register_version(registry="dev", subject=PERSON, text=json.dumps(integer), by=content)
    set_config(registry="dev", subject=PERSON, level="BACKWARD", by=content)
    widened = json.dumps({**PERSON_1, "fields": [{"name": "n", "type": "float"}]})
    pages = {
        profile: seen(reader.post(f"{PEOPLE}report", {"text": widened, "schema_type": "AVRO", "profile": profile}))
        for profile in ("confluent", "semantic")
    }
    assert "Needs care under BACKWARD, by the established rules" in pages["confluent"]
    assert "the rules accept it, but data changes" in pages["confluent"]
    assert "Incompatible under BACKWARD, by effects on data" in pages["semantic"]


def test_by_the_data_the_page_warns_of_what_no_value_shows(reader: Client, content: Actor) -> None:
    had, has = (
        f'syntax = "proto3"; package shop; message M {{ {inside} }}'
        for inside in ("optional int32 a = 1;", "int32 a = 1;")
    )
    subject = SubjectName(".", "presence-value")
    register_version(registry="dev", subject=subject, text=had, schema_type="PROTOBUF", by=content)
    form = {"text": has, "schema_type": "PROTOBUF", "profile": "semantic"}
    text = seen(reader.post("/ui/registries/dev/subjects/presence-value/report", form))
    assert "Compatible under BACKWARD" in text or "Needs care under BACKWARD" in text
    assert "PRESENCE_LOST" in text
    assert "so the reader can't tell whether it is set" in text


def test_the_policy_in_force_is_reported_with_the_weight_of_each_finding(reader: Client, content: Actor) -> None:
    set_config(registry="dev", subject=ORDERS, policy="oracle_nosql", by=content)
    text = seen(check(reader, PROPOSED))
    assert "Verdict of the policy oracle_nosql: rejected." in text
    assert re.search(r"Refused Order\.channel The field \"channel\" is added without a default", text)
    assert "Only with force" in text


def test_the_report_as_files_is_that_of_the_api(reader: Client, content: Actor, api: Callable[[str], Client]) -> None:
    file = check(reader, PROPOSED, **{"as": "json"})
    assert file["Content-Type"] == "application/json"
    assert "compatibility-report.json" in file["Content-Disposition"]
    body = {"registry": "dev", "subject": "orders-value", "schema": json.dumps(PROPOSED, indent=2)}
    same = api("reader").post("/api/v1/compatibility-reports", body, content_type="application/json").json()
    assert json.loads(file.content) == same
    markdown = check(reader, PROPOSED, **{"as": "markdown"}).content.decode()
    assert markdown.startswith("# Compatibility of orders-value in dev")
    assert "FIELD_WITHOUT_DEFAULT" in markdown
    for kind, accept, ending in (("sarif", "application/sarif+json", "sarif"), ("junit", "application/xml", "xml")):
        file = check(reader, PROPOSED, **{"as": kind})
        assert file["Content-Type"] == accept
        assert f"compatibility-report.{ending}" in file["Content-Disposition"]
        response = api("reader").post(
            "/api/v1/compatibility-reports", body, content_type="application/json", headers={"accept": accept}
        )
        assert response.content == file.content


def test_references_of_the_form_are_used_and_a_wrong_one_is_said_at_its_row(reader: Client, content: Actor) -> None:
    using = {"type": "record", "name": "Order", "fields": [{"name": "who", "type": "Person"}]}
    rows = {"ref_name": ["Person", ""], "ref_subject": ["person-value", ""], "ref_version": ["latest", ""]}
    assert "Incompatible under BACKWARD" in seen(check(reader, using, **rows))
    response = check(reader, using, **rows | {"ref_version": ["9", ""]})
    assert response.status_code == 422
    assert re.search(r'aria-describedby="ref_error_1"', response.content.decode())
    none = check(reader, using, **rows | {"ref_version": ["²", ""]})
    assert none.status_code == 422
    assert "is not a valid version" in seen(none)


@pytest.mark.parametrize(
    ("schema_type", "broken", "line"),
    [("AVRO", '{\n "type": "recor"\n}', 2), ("PROTOBUF", 'syntax = "proto3";\nmessage A {\n strin a = 1;\n}', 3), ("JSON", '{\n "type": ]\n}', 2)],
)  # fmt: skip
def test_a_syntax_error_has_its_line_in_every_format(
    reader: Client, content: Actor, schema_type: str, broken: str, line: int
) -> None:
    response = check(reader, broken, schema_type=schema_type)
    assert response.status_code == 422
    assert f"can’t be parsed: line {line}" in seen(response)


def test_a_first_version_has_nothing_to_compare_with(reader: Client, content: Actor) -> None:
    response = reader.post(
        "/ui/registries/dev/subjects/new-value/report", {"text": json.dumps(V1), "schema_type": "AVRO"}
    )
    assert response.status_code == 200
    assert "Nothing to compare with" in seen(response)


# -- simulator --------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("ORA-6")
def test_each_field_says_what_became_of_it(reader: Client, content: Actor, django_assert_max_num_queries: Any) -> None:
    with django_assert_max_num_queries(QUERIES["simulate"]):
        text = seen(reader.get(f"{PEOPLE}simulate?writer=1&reader=2"))
    assert "2 fields: 1 kept, 1 filled from the default" in text
    assert "Person.age Filled from default missing -1" in text
    datum = '{"name": "Ada", "age": 36}'
    response = reader.post(f"{PEOPLE}simulate?writer=2&reader=1", {"datum": datum})
    assert response.status_code == 200
    assert 'Person.name Kept "Ada" "Ada" Person.age Dropped 36 missing' in seen(response)
    assert "06 41 64 61 48" in seen(response)  # "Ada" and 36 as Avro writes them


@pytest.mark.requirement("ORA-8")
@pytest.mark.parametrize(("written_by", "modified_by", "order"), [(2, 1, "added"), (1, 2, "deleted")])
def test_an_age_that_nobody_touched_ends_at_its_default(
    reader: Client, content: Actor, written_by: int, modified_by: int, order: str
) -> None:
    name = SubjectName(".", f"{order}-value")
    versions = [PERSON_1, PERSON_2] if order == "added" else [PERSON_2, PERSON_1]
    set_config(registry="dev", subject=name, level="NONE", by=content)
    for schema in versions:
        register_version(registry="dev", subject=name, text=json.dumps(schema), by=content)
    address = f"/ui/registries/dev/subjects/{order}-value/simulate?part=modify&use=1&use=2"
    shown = seen(reader.get(address))
    assert "Fields at risk" in shown and "-1 the default" in shown
    form = {"datum": '{"name": "Ada", "age": 36}', "pointer": "/name", "value": "Grace"}
    response = reader.post(f"{address}&written_by={written_by}&modified_by={modified_by}", form)
    text = seen(response)
    assert "1 field silently reset without being changed by anyone Person.age : 36 -1, the default" in text
    assert "Silently reset" in text
    assert '{ "name": "Grace", "age": -1 }' in text
    assert all(title in text for title in ("Freeze the writers that lose it", "Give the field an owner"))


def test_hazards_take_no_query_for_each_version(
    reader: Client, content: Actor, django_assert_max_num_queries: Any
) -> None:
    fields = list(PERSON_2["fields"])
    for number in range(8):
        fields.append({"name": f"f{number}", "type": "int", "default": 0})
        register_version(registry="dev", subject=PERSON, text=json.dumps({**PERSON_1, "fields": fields}), by=content)
    chosen = "&".join(f"use={number}" for number in range(1, 11))
    with django_assert_max_num_queries(QUERIES["simulate"]):
        response = reader.get(f"{PEOPLE}simulate?part=modify&{chosen}")
    assert response.status_code == 200
    assert "versions 10, 9, 8, 7, 6, 5, 4, 3, 2" in seen(response)


@pytest.mark.parametrize(
    ("query", "form", "sentence", "field"),
    [
        ("writer=2&reader=1", {"datum": "{"}, "Invalid JSON in line 1, column 2", "datum"),
        ("writer=2&reader=1", {"datum": '{"name": 1, "age": 1}'}, "Person.name", "datum"),
        ("writer=2&reader=1", {"datum": "null"}, "Person", "datum"),
        ("writer=2&reader=1", {"datum": '{"name": "a", "ag": 1}'}, 'has no field "ag"', "datum"),
        ("writer=2&reader=1", {"datum": "[" * 100_000}, "can’t be read", "datum"),
        ("writer=2&reader=1", {"datum": "9" * 10_000}, "can’t be read", "datum"),
        ("writer=2&reader=1", {"datum": " " * 200_001}, "At most 200,000 are allowed", "datum"),
        ("part=modify", {"datum": '{"age": true, "name": "a"}', "pointer": "/name", "value": "1"}, "Person.age", "datum"),
        ("part=modify", {"datum": '{"age": 1, "name": "a"}', "pointer": "/nobody", "value": "1"}, "points to a missing value", "pointer"),
        ("part=modify", {"datum": '{"age": 1, "name": "a"}', "pointer": "/name", "value": "[1]"}, "Person.name", "value"),
    ],
)  # fmt: skip
def test_what_cannot_be_tried_is_said_at_the_field(
    reader: Client, content: Actor, query: str, form: dict[str, str], sentence: str, field: str
) -> None:
    response = reader.post(f"{PEOPLE}simulate?{query}", form)
    assert response.status_code == 422
    page = response.content.decode()
    about = re.search(rf'<div id="\w+Form_{field}_error">(.*?)</div>', page, flags=re.DOTALL)
    assert about is not None
    assert sentence in html.unescape(about[1])
    assert 'id="result"' not in page


@pytest.mark.parametrize(
    ("query", "status"),
    [("reader=9", 404), ("reader=x", 422), ("reader=latest", 200), ("part=modify&use=7", 404), ("part=modify&use=1", 200),
     ("part=modify&written_by=1&modified_by=1", 200), ("part=nothing", 200)],
)  # fmt: skip
def test_versions_that_are_not_there_are_a_page_that_says_so(
    reader: Client, content: Actor, query: str, status: int
) -> None:
    response = reader.get(f"{PEOPLE}simulate?{query}")
    assert response.status_code == status
    assert response.content.decode().count("<h1") == 1


def test_versions_that_cannot_read_each_other_are_not_called_safe(reader: Client, content: Actor) -> None:
    text = seen(reader.get(f"{SUBJECT}simulate?part=modify"))
    assert "No field is reset, because decoding fails first" in text
    assert "Data of version 1 can’t be read by version 2." in text
    assert "Stopped early" in text
    assert "No fields at risk" not in text


def test_one_version_can_lose_nothing(reader: Client, content: Actor) -> None:
    register_version(registry="dev", subject=SubjectName(".", "one"), text=json.dumps(V1), by=content)
    assert "Two versions needed" in seen(reader.get("/ui/registries/dev/subjects/one/simulate?part=modify"))
    assert "3 fields: 3 kept" in seen(reader.get("/ui/registries/dev/subjects/one/simulate"))


def test_hostile_names_and_docs_stay_text(reader: Client, content: Actor) -> None:
    name = SubjectName(".", NASTY)
    by = content
    register_version(registry="dev", subject=name, text=json.dumps(V1), by=by)
    set_config(registry="dev", subject=name, level="NONE", by=by)
    register_version(registry="dev", subject=name, text=json.dumps({**V2, "doc": NASTY}), by=by)
    address = f"/ui/registries/dev/subjects/{quote(NASTY, safe='')}/"
    pages = [
        reader.get(f"{address}compare?unchanged=1"),
        reader.get(f"{address}compare?text=submitted&with=person-value"),
        reader.get(f"{SUBJECT}compare?with={quote(NASTY, safe='')}"),
        reader.get(f"{address}simulate?part=modify"),
        reader.post(f"{address}simulate?writer=1&reader=2", {"datum": json.dumps({"id": NASTY})}),
        reader.post(f"{address}report", {"text": json.dumps({**V2, "doc": NASTY}), "schema_type": "AVRO"}),
        reader.post(f"{address}report", {"text": NASTY, "schema_type": NASTY, "profile": NASTY, "ref_name": NASTY,
                                         "ref_subject": NASTY, "ref_version": NASTY}),
    ]  # fmt: skip
    for response in pages:
        assert response.status_code in (200, 422)
        assert "<script>alert" not in response.content.decode()
    markdown = reader.get(f"{address}compare?as=markdown").content.decode()
    outside_code = re.sub(r"`+[^`]*`+", "", markdown.split("## Text")[0])
    assert "\\<script\\>" in outside_code
    assert "<script>" not in outside_code.replace("\\<script\\>", "")


@pytest.mark.parametrize("page", ["compare?from=1&to=2", "report", "simulate", "simulate?part=modify"])
def test_who_may_not_read_sees_nothing(person: Callable[[str], Actor], content: Actor, page: str) -> None:
    person("stranger")
    client = signed_in("stranger")
    response = client.get(f"{SUBJECT}{page}")
    assert response.status_code == 403
    assert "client_name" not in response.content.decode()


def test_costly_schemas_are_compared_in_a_child(
    reader: Client, content: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema_engine, "place_of", lambda cost: "child")
    schema_engine.forget()
    compared = seen(reader.get(f"{SUBJECT}compare?from=1&to=2"))
    assert "No default value for field client_name" in compared
    assert "Possible renames" in compared
    assert "Would pass BACKWARD" in seen(check(reader, PROPOSED))
    assert "Person.age Dropped" in seen(reader.get(f"{PEOPLE}simulate?writer=2&reader=1"))
    assert "Silently reset" in seen(reader.get(f"{PEOPLE}simulate?part=modify"))


def test_without_time_for_proof_the_rules_are_reported_alone(
    reader: Client, content: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_costly(*arguments: Any) -> Any:
        raise SchemaTooCostly("It takes more than 2 s.")

    monkeypatch.setattr(schema_engine, "truth", too_costly)
    schema_engine.forget()  # what was proved before is kept
    text = seen(reader.get(f"{SUBJECT}compare?from=1&to=2"))
    assert "Based on rules only, without proof It takes more than 2 s." in text
    assert "Breaking Order.client_name added" in text
    monkeypatch.setattr(schema_engine, "diff", too_costly)
    text = seen(reader.get(f"{SUBJECT}compare?from=1&to=2"))
    assert "Compared as text only" in text
    assert "It takes more than 2 s." in text
    assert "customer_name" in text


def test_advice_stands_in_a_report_and_a_tag_of_the_subject_answers_its_part(
    reader: Client, content: Actor, system: Actor
) -> None:
    mail = {"type": "record", "name": "Order", "fields": [{"name": "mail", "type": "string"}]}
    named = json.loads(json.dumps(mail).replace('"mail"', '"email"'))
    text = seen(check(reader, named))
    assert "Schema advice" in text
    assert "FIELD_HAS_NO_DEFAULT" in text
    assert "PERSONAL_WITHOUT_TAG" in text
    change_tags(registry="dev", subjects=[ORDERS], add=["PII"], by=system)
    assert "PERSONAL_WITHOUT_TAG" not in seen(check(reader, named))


def test_a_report_of_a_version_has_an_address(reader: Client, content: Actor, person: Callable[[str], Actor]) -> None:
    page = reader.get(f"{SUBJECT}report?version=2&level=FULL_TRANSITIVE")
    text = seen(page)
    assert "Incompatible under FULL_TRANSITIVE" in text
    assert "by checker version 0.1.0" in text
    assert "report?version=2&level=FULL_TRANSITIVE" in text
    elsewhere = seen(reader.get(f"{SUBJECT}report?from=staging:1"))
    assert "It is identical to version 1" in elsewhere
    posted = check(reader, V1)
    assert "report?version=1" in seen(posted), "a text that is stored has the version's address"
    for missing in ("version=9", "from=nowhere:1", "draft=1"):
        assert reader.get(f"{SUBJECT}report?{missing}").status_code == 404
    assert "LOUD is not one of the available choices" in seen(reader.get(f"{SUBJECT}report?version=2&level=LOUD"))


def test_a_pasted_text_is_kept_for_a_link_that_its_author_alone_opens(
    reader: Client, content: Actor, person: Callable[[str], Actor]
) -> None:
    assert "report?" not in seen(check(reader, PROPOSED))
    page = compact(check(reader, PROPOSED).content.decode())
    assert 'name="do" value="keep"' not in page, "reading gives no drafts"
    steward = signed_in("steward")
    response = check(steward, PROPOSED, do="keep")
    link = re.search(r'id="report-link" hidden>(http[^<]*draft=[^<]*)<', compact(response.content.decode()))
    assert link
    address = html.unescape(link[1]).partition("testserver")[2]
    again = steward.get(address)
    assert "FIELD_WITHOUT_DEFAULT" in again.content.decode()
    assert reader.get(address).status_code == 404
    other = check(steward, V1, do="keep")
    assert other.status_code == 422
    assert "Your draft of orders-value was changed" in seen(other)


@pytest.mark.requirement("CARD-2")
@pytest.mark.usefixtures("registries")
def test_a_likely_rename_that_loses_values_is_not_called_safe(reader: Client, person: Callable[[str], Actor]) -> None:
    def text(name: str) -> str:
        field = {"name": name, "type": "string", "default": ""}
        return json.dumps({"type": "record", "name": "Customer", "fields": [field]})

    for name in ("customer_name", "customerName"):
        register_version(
            registry="dev", subject=SubjectName(".", "renamed-value"), text=text(name), by=person("steward")
        )
    page = reader.get("/ui/registries/dev/subjects/renamed-value/compare?from=1&to=2").context["page"].comparison
    assert page.renames[0].info.effect
    assert (page.safe, page.care, page.verdict) == (0, 2, Verdict.CARE)
    assert {way.verdict for way in page.directions} == {Verdict.CARE}
