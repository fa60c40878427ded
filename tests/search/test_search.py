"""What is found, by whom, and what isn't."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from registry.access.roles import Actor, Grant, TokenLimit, may
from registry.errors import InvalidInput, NotAllowed, NotSignedIn
from registry.search.results import FieldHit, IdHit, SearchResult, SubjectHit, TagHit, TypeHit
from registry.search.selectors import search, search_group
from registry.search.selectors.conditions import read_scope_of

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-4")]


def names(found: SearchResult, group: str) -> list[str]:
    """What was found in a group, in words."""
    words = []
    for hit in next(each.hits for each in found.groups if each.name == group):
        if isinstance(hit, FieldHit):
            words.append(f"{hit.registry} {hit.subject} {hit.path}")
        elif isinstance(hit, SubjectHit):
            words.append(f"{hit.registry} {hit.subject}")
        elif isinstance(hit, IdHit):
            words.append(f"{hit.registry} {hit.subject} {hit.version}")
        elif isinstance(hit, TypeHit):
            words.append(hit.type)
        elif isinstance(hit, TagHit):
            words.append(f"{hit.tag} {hit.subject_count}")
        else:
            words.append(str(hit.id))
    return words


CASES: list[tuple[str, str, list[str]]] = [
    ("orders", "subjects", ["dev orders-value", "staging orders-value", "dev :.eu:orders-value"]),
    ("ORDERS value", "subjects", ["dev orders-value", "staging orders-value", "dev :.eu:orders-value"]),
    ("shop sells", "subjects", ["dev orders-value"]),
    ("field:email", "fields", ["dev customers-value Customer.address.email", "dev customers-value Customer.email",
                               "dev secret-payroll Payroll.email", "dev orders-value Order.customer_email"]),
    ("field:email", "subjects", ["dev customers-value", "dev secret-payroll", "dev orders-value"]),
    ("field:address.email", "fields", ["dev customers-value Customer.address.email"]),
    ("field:email type:string ref:nothing", "fields", []),
    ("field:EMAIL doc:gdpr", "fields", ["dev orders-value Order.customer_email"]),
    ('doc:"gdpr relevant"', "fields", ["dev orders-value Order.customer_email"]),
    ('doc:"gdpr relevant"', "subjects", ["dev orders-value"]),
    ('doc:"a shop"', "subjects", ["dev orders-value"]),
    ("gdpr", "docs", ["dev orders-value Order.customer_email"]),
    ("type:decimal", "fields", ["dev orders-value Order.total"]),
    ("decimal", "types", ["bytes (decimal(10,2))"]),
    ("tag:pii", "fields", ["dev orders-value Order.phone"]),
    ("tag:pii", "subjects", ["dev orders-value"]),
    ("tag:pi", "fields", []),
    ("pi", "tags", ["PII 1"]),
    ("customer email", "fields", ["dev orders-value Order.customer_email", "dev customers-value Customer.address.email",
                                  "dev customers-value Customer.email"]),
    ("compat:NONE", "subjects", []),
    ("compat:backward orders", "subjects", ["dev orders-value", "staging orders-value", "dev :.eu:orders-value"]),
    ("drift:no field:total", "fields", ["dev orders-value Order.total"]),
    ("drift:yes", "subjects", []),
    ("custmer", "subjects", ["dev customers-value"]),
    ("field:salery_amount", "fields", ["dev secret-payroll Payroll.salary_amount"]),
    ("field:emial", "fields", ["dev customers-value Customer.address.email", "dev customers-value Customer.email",
                               "dev secret-payroll Payroll.email", "dev orders-value Order.customer_email"]),
    ("field:id", "fields", ["dev orders-value Order.id", "dev customers-value Customer.id", "staging orders-value Order.id"]),
    ("field:%", "fields", []),
    ("field:_", "fields", []),
    ("%", "subjects", []),
    ("field:.*", "fields", []),
]  # fmt: skip


@pytest.mark.parametrize(("query", "group", "expected"), CASES, ids=[f"{query} {group}" for query, group, _ in CASES])
def test_a_query_finds(subjects: None, system: Actor, query: str, group: str, expected: list[str]) -> None:
    assert names(search(query, by=system), group) == expected


# -- rights ---------------------------------------------------------------------------------------------------------


def everything(found: SearchResult) -> str:
    """All that an answer tells."""
    return repr(found)


SECRET = ("secret", "payroll", "field:salary", "salary_amount", "field:hidden_kind", "HiddenKind", "type:HiddenKind",
          "field:salery_amount", "secert-payroll", "compat:BACKWARD", "drift:no", "field:email", "type:string")  # fmt: skip


@pytest.mark.parametrize("query", SECRET)
def test_who_may_not_read_learns_nothing(
    subjects: None, limited: Callable[..., Actor], system: Actor, query: str
) -> None:
    reader = limited(("", "[!s]*"), ("", "orders-*"))
    with_secret = search(query, by=reader)
    assert "secret" not in everything(with_secret).replace(query, "")
    assert "salary" not in everything(with_secret).replace(query, "")
    from registry.subjects.services import delete_subject
    from registry.subjects.versions.qualified_names import parse_subject

    delete_subject(registry="dev", subject=parse_subject("secret-payroll"), by=system)
    from registry.search import services

    services.index_stale()
    without = search(query, by=reader)
    assert without == with_secret, "what isn't readable changes counts, hits or suggestions"


def test_a_registry_of_ones_own(subjects: None, limited: Callable[..., Actor]) -> None:
    reader = limited(("staging", "*"))
    assert names(search("orders", by=reader), "subjects") == ["staging orders-value"]
    assert names(search("field:id", by=reader), "fields") == ["staging orders-value Order.id"]
    assert names(search("field:email", by=reader), "fields") == []


def test_ids_are_of_readable_subjects(subjects: None, limited: Callable[..., Actor], system: Actor) -> None:
    assert len(names(search("id:1", by=system), "ids")) == 3
    assert names(search("id:1", by=limited(("dev", "customers-*"))), "ids") == []
    assert names(search("1", by=limited(("dev", "orders-*"), name="other")), "ids") == ["dev orders-value 1"]


def test_nobody_and_strangers_are_refused(subjects: None, person: Callable[[str], Actor]) -> None:
    with pytest.raises(NotSignedIn):
        search("orders", by=Actor("anonymous", "ui"))
    with pytest.raises(NotAllowed):
        search("orders", by=person("stranger"))
    with pytest.raises(NotAllowed):
        search("", by=person("stranger"))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    patterns=st.lists(st.text(alphabet="osec*?[]!-%_\\.:u", max_size=8), min_size=1, max_size=3),
    place=st.sampled_from(["", "dev", "staging", "nowhere"]),
    limit=st.none() | st.text(alphabet="os*?[]%_-", min_size=1, max_size=5),
)
def test_what_is_seen_is_what_may_be_read(subjects: None, patterns: list[str], place: str, limit: str | None) -> None:
    from registry.search.models import IndexedSubject
    from registry.search.selectors.conditions import rows_of

    actor = Actor(
        "x", "ui", user_id=1, grants=tuple(Grant("reader", place, pattern) for pattern in patterns),
        limit=TokenLimit("read", "", limit) if limit else None,
    )  # fmt: skip
    sight = read_scope_of(actor)
    sql = f"SELECT e.registry_id, e.name FROM search_indexedsubject e WHERE {sight.condition}"
    seen = set(rows_of(sql, sight.parameters))
    expected = {
        (registry, name)
        for registry, name in IndexedSubject.objects.values_list("registry_id", "name")
        if may(actor, "schema.read", registry=sight.registries[registry], subject=name)
    }
    assert seen == expected


# -- pages ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "group"), [("field:f", "fields"), ("s", "subjects"), ("field:f", "subjects"), ("id:1 id:2", "ids")]
)
def test_pages_follow_each_other(register: Callable[..., int], system: Actor, query: str, group: str) -> None:
    from tests.search.conftest import record

    for number in range(7):
        register("dev", f"s{number}", record(f"R{number}", "f", "f2", "g"))
    whole = search_group(query, group, by=system, limit=100)
    paged: list[Any] = []
    cursor = ""
    for _ in range(20):
        page = search_group(query, group, by=system, cursor=cursor, limit=2)
        paged += page.hits
        assert (page.total is None) == bool(cursor)
        cursor = page.cursor
        if not cursor:
            break
    assert paged == list(whole.hits)
    assert len(set(map(repr, paged))) == len(paged)
    assert whole.total == len(paged)


@pytest.mark.parametrize("group", ["subjects", "fields", "ids", "requests"])
@pytest.mark.parametrize("cursor", ["x", "1.2", "9" * 30, "\0", "MC4w", "AAAA", "1.1.1.1", "-1"])
def test_a_strange_cursor_is_refused(subjects: None, system: Actor, group: str, cursor: str) -> None:
    query = "id:1" if group == "ids" else "orders"
    with pytest.raises(InvalidInput, match="cursor"):
        search_group(query, group, by=system, cursor=cursor)


def test_an_unknown_group_is_refused(subjects: None, system: Actor) -> None:
    with pytest.raises(InvalidInput, match="The groups are subjects, fields"):
        search_group("orders", "people", by=system)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text(alphabet="ao%_\\\"'[]()*+?.|^$;-\u202e\u200f\u0130é ", max_size=40))
def test_hostile_queries_are_answered(subjects: None, system: Actor, text: str) -> None:
    try:
        found = search(text, by=system)
    except InvalidInput as error:
        assert error.message
        return
    assert isinstance(found.groups, tuple)


# -- pasted -----------------------------------------------------------------------------------------------------------


def test_a_pasted_schema_finds_equal_and_nearest(subjects: None, system: Actor, limited: Callable[..., Actor]) -> None:
    from registry.search.selectors import find_pasted
    from tests.search.conftest import SUBJECTS, record

    text = {f"{registry} {subject}": schema for registry, subject, schema in SUBJECTS}["dev customers-value"]
    found = find_pasted(text.replace(",", ", \n"), by=system)
    assert [(hit.subject, hit.equal) for hit in found.equal] == [("customers-value", True)]
    near = find_pasted(record("Other", ("id", "long"), "email", "name"), by=system)
    assert near.equal == ()
    assert next((hit.subject, hit.shared) for hit in near.nearest) == ("customers-value", 3)
    reader = limited(("dev", "orders-*"))
    assert find_pasted(text, by=reader).equal == ()
    assert {hit.subject for hit in find_pasted(text, by=reader).nearest} <= {"orders-value"}
    assert find_pasted('{"type": "record"', by=system).problem != ""


def test_a_pasted_message_finds_its_versions(subjects: None, system: Actor, limited: Callable[..., Actor]) -> None:
    from registry.search.selectors import find_pasted

    for text in ("00 00 00 00 01 02", "0x000000000102", "AAAAAAEC"):
        found = find_pasted(text, by=system)
        assert found.mark is not None
        assert (found.mark.kind, found.mark.value) == ("id", "1"), text
        assert {f"{hit.registry} {hit.subject}" for hit in found.ids} == {
            "dev orders-value", "staging orders-value", "dev :.eu:orders-value",
        }  # fmt: skip
    assert find_pasted("0000000001", by=limited(("dev", "customers-*"))).ids == ()
    assert find_pasted("00ffffffff00", by=system).ids == ()


@pytest.mark.parametrize("text", ["just words", "", "\0" * 9, "x" * 1_000_001])
def test_what_is_neither_is_refused(subjects: None, system: Actor, text: str) -> None:
    from registry.search.selectors import find_pasted

    with pytest.raises(InvalidInput):
        find_pasted(text, by=system)


# -- many -------------------------------------------------------------------------------------------------------------


def test_what_fits_one_word_alone_crowds_out_nothing(
    register: Callable[..., int], system: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    from registry.search.selectors import fields
    from tests.search.conftest import record

    monkeypatch.setattr(fields, "MOST_TERMS", 1)
    noted = [{"name": f"f{number}", "type": "string", "doc": f"GDPR {number}"} for number in range(3)]
    noted.append({"name": "phone", "type": "string", "doc": "Relevant to GDPR: of the customer"})
    register("dev", "notes", record("Note", *noted))
    register("dev", "customers", record("C", "id", "email"))
    register("dev", "others", record("O", "customer_id", "customer_name"))
    for query, group in (("gdpr customer", "docs"), ("doc:gdpr doc:customer", "fields")):
        assert names(search(query, by=system), group) == ["dev notes Note.phone"], query
    assert names(search("doc:gdpr doc:customer", by=system), "subjects") == ["dev notes"]
    assert names(search("customer email", by=system), "fields") == ["dev customers C.email"]


def all_pages(query: str, group: str, by: Actor) -> list[Any]:
    """The hits of a group, page by page."""
    found: list[Any] = []
    cursor = ""
    for _ in range(20):
        page = search_group(query, group, by=by, cursor=cursor, limit=2)
        found += page.hits
        cursor = page.cursor
        if not cursor:
            return found
    raise AssertionError("the pages don't end")


@pytest.mark.parametrize("query", ["s", "shop", "what", "compat:BACKWARD", "zzz"])
def test_subjects_are_the_same_whether_few_or_many_fit(
    register: Callable[..., int], system: Actor, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    from registry.search.selectors import subjects as selector
    from tests.search.conftest import record

    for name in ("a-shop", "shop"):  # those that come first are found last
        for number in range(4):
            register("dev", f"{name}{number}", record(f"R{number}", "f", doc="What is sold."))
    sorted_, whole = all_pages(query, "subjects", system), search_group(query, "subjects", by=system)
    monkeypatch.setattr(selector, "MOST_SORTED", 1)
    assert all_pages(query, "subjects", system) == sorted_ == list(whole.hits)
    assert search_group(query, "subjects", by=system, limit=20) == search_group(query, "subjects", by=system, limit=100)


def test_as_many_subjects_are_found_as_are_counted_though_each_has_several_fields(
    register: Callable[..., int], system: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    from registry.search.selectors import fields
    from tests.search.conftest import record

    for number in range(5):
        inner = {"type": "record", "name": f"I{number}", "fields": [{"name": "f", "type": "string"}]}
        register("dev", f"s{number}", record(f"R{number}", "f", ("inner", inner)))
    whole = search_group("field:f", "subjects", by=system)
    assert len(whole.hits) == 5
    monkeypatch.setattr(fields, "MOST_COUNTED", 3)
    assert search_group("field:f", "subjects", by=system).hits == whole.hits[:4]
    found = search("field:f", by=system)
    assert names(found, "subjects") == [f"dev s{number}" for number in range(4)]
    assert names(found, "fields") == ["dev s0 R0.f", "dev s0 R0.inner.f", "dev s1 R1.f", "dev s1 R1.inner.f"]


def test_fields_are_looked_up_once_for_all_groups(subjects: None, system: Actor) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as queries:
        search("field:email type:string", by=system)
    assert sum("driver AS" in each["sql"] for each in queries.captured_queries) == 1


def test_of_several_words_names_with_the_most_come_first(register: Callable[..., int], system: Actor) -> None:
    from tests.search.conftest import record

    for name in ("a-red-x", "b-red-green-x", "c-green-x", "d-gren-x"):
        register("dev", name, record("R", "f"))
    found = search("red green blue", by=system)
    assert names(found, "subjects") == ["dev b-red-green-x", "dev a-red-x", "dev c-green-x", "dev d-gren-x"]
    assert all(hit.similar for group in found.groups for hit in group.hits if isinstance(hit, SubjectHit))
