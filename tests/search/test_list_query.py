"""The operators of the search in the box of a registry's list: the subjects that the search itself finds there."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

import pytest
from django.test import Client
from django.utils import timezone

from registry.access.roles import Actor
from registry.audit.time_travel import as_of
from registry.errors import InvalidInput
from registry.formats.base import Reference
from registry.search import services
from registry.search.facets import facet_counts
from registry.search.selectors import search_group
from registry.search.subject_list import Page, SubjectFilter, find_subjects
from registry.subjects.models import Registry, SchemaVersion, Subject, SubjectNote
from registry.subjects.selectors import SubjectRows
from registry.subjects.services import register_version, set_config
from registry.subjects.versions.qualified_names import parse_subject
from tests.search.conftest import record

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-4")]
SORTS = ("", "name", "changed", "versions")
#: what is asked for → what the list of dev has then
QUERIES = {
    "field:email": {"orders-value", "customers-value", "secret-payroll"},
    "FIELD:Email": {"orders-value", "customers-value", "secret-payroll"},
    "field:address.email": {"customers-value"},
    "field:address field:email": {"customers-value"},
    "field:email customers": {"customers-value"},
    "field:e": {"customers-value", "secret-payroll"},
    "field:email type:string": {"orders-value", "customers-value", "secret-payroll"},
    "field:email type:decimal": set(),
    "field:email doc:gdpr": {"orders-value"},
    "field:id doc:noted": {"customers-value"},
    "field:id tag:gold": {"customers-value"},
    "type:decimal": {"orders-value"},
    "type:long": {"orders-value", "customers-value"},
    'doc:"gdpr relevant"': {"orders-value"},
    "doc:shop": {"orders-value"},
    "doc:noted": {"customers-value"},
    "tag:pii": {"orders-value"},
    "tag:gold": {"customers-value"},
    "tag:gold doc:noted": {"customers-value"},
    "tag:gold tag:pii": set(),
    "ref:referred": {"refers"},
    "ref:referred field:own": {"refers"},
    "ref:referred field:email": set(),
    "compat:full": {"customers-value"},
    "compat:full field:email": {"customers-value"},
    "drift:yes": set(),
    "drift:no tag:pii": {"orders-value"},
    "field:nobody_has_this": set(),
    "type:decimal orders": {"orders-value"},
}


@pytest.fixture
def dev(subjects: None, system: Actor) -> Registry:
    """The subjects of the search, with a note, a level of its own and a reference."""
    customers = Subject.objects.get(name="customers-value", context__registry__name="dev")
    SubjectNote.objects.create(subject=customers, tags=["gold"], doc="Noted by hand.", updated_by="x")
    set_config(registry="dev", subject=parse_subject("customers-value"), level="FULL", by=system)
    register_version(registry="dev", subject=parse_subject("base"), text=record("Referred", "x"), by=system)
    refers = record("Refers", ("own", "Referred"))
    reference = Reference("Referred", "base", 1)
    register_version(registry="dev", subject=parse_subject("refers"), text=refers, references=[reference], by=system)
    services.index_stale()
    return Registry.objects.get(name="dev")


def pages(place: Registry, size: int = 50, **chosen: str) -> list[SubjectRows]:
    found, cursor = [], ""
    while True:
        found.append(find_subjects(place, SubjectFilter(**chosen), Page(after=cursor, limit=size)))
        if not (cursor := found[-1].after):
            return found


def names(found: list[SubjectRows]) -> list[str]:
    return [row.subject.qualified for page in found for row in page.rows]


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("most", [25_000, 0], ids=["counted", "each asked"])
def test_the_list_has_what_the_search_finds(
    dev: Registry, system: Actor, monkeypatch: pytest.MonkeyPatch, sort: str, most: int
) -> None:
    monkeypatch.setattr("registry.search.list_query.MOST_FIELDS", most)
    for query, wanted in QUERIES.items():
        hits = search_group(query, "subjects", by=system).hits
        searched = {hit.subject for hit in hits if hit.registry == "dev" and not hit.similar}  # type: ignore[union-attr]
        one = names(pages(dev, text=query, sort=sort))
        assert set(one) == wanted == searched, query
        assert names(pages(dev, 1, text=query, sort=sort)) == one, query
        last = pages(dev, 2, text=query, sort=sort)[-1]
        if last.before:
            back = find_subjects(dev, SubjectFilter(text=query, sort=sort), Page(before=last.before, limit=50))
            assert names([back]) == one[: -len(last.rows)], query


def test_each_version_has_its_id(dev: Registry) -> None:
    for version in SchemaVersion.objects.filter(subject__context__registry=dev).select_related("subject", "schema"):
        same = {row.subject.name for row in SchemaVersion.objects.filter(schema__schema_id=version.schema.schema_id)}
        for value in (version.schema.guid, version.schema.fingerprint):
            assert {name.rpartition(":")[2] for name in names(pages(dev, text=f"id:{value}"))} <= same
            assert names(pages(dev, text=f"id:{value}"))
        assert parse_subject(version.subject.name).subject in {
            name.rpartition(":")[2] for name in names(pages(dev, text=f"id:{version.schema.schema_id}"))
        }
    assert names(pages(dev, text="id:999999")) == []


def test_what_is_too_wide_is_not_counted(dev: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    first = find_subjects(dev, SubjectFilter(text="field:email"), Page(limit=2))
    assert first.total == 3
    monkeypatch.setattr("registry.search.list_query.MOST_FIELDS", 2)
    wide = find_subjects(dev, SubjectFilter(text="field:email"), Page(limit=2))
    assert (wide.total, wide.rows) == (None, first.rows)
    monkeypatch.setattr("registry.search.list_query.MOST_TERMS", 1)
    with pytest.raises(InvalidInput, match="too many"):
        find_subjects(dev, SubjectFilter(text="field:email"), Page())


def test_what_takes_too_long_says_so(dev: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = "((SELECT pg_sleep(3) IS NULL WHERE %(expressions)s > 0) IS TRUE)"
    monkeypatch.setattr("registry.search.list_query._HAS_ONE", slow)
    monkeypatch.setattr("registry.search.list_query.MOST_FIELDS", 0)
    monkeypatch.setattr("registry.search.subject_list._SECONDS", 0.05)
    with pytest.raises(InvalidInput, match="too many matches to apply the filters in time"):
        find_subjects(dev, SubjectFilter(text="field:email"), Page())


@pytest.mark.parametrize("text", ["urn:x", '"', "type", "a:b", 'say "x', "%", "_"])
def test_without_an_operator_it_is_a_part_of_the_name(dev: Registry, system: Actor, text: str) -> None:
    assert names(pages(dev, text=text)) == []
    register_version(registry="dev", subject=parse_subject(f"a {text} b".replace("%", "pct%")), text='"int"', by=system)
    assert len(names(pages(dev, text=text))) == 1


def test_a_name_like_an_operator_is_found_in_quotes(dev: Registry, system: Actor) -> None:
    register_version(registry="dev", subject=parse_subject("type:decimal"), text='"int"', by=system)
    assert names(pages(dev, text='"type:decimal"')) == ["type:decimal"]


def test_the_index_knows_no_past_and_the_rest_does(dev: Registry) -> None:
    with as_of(timezone.now()):
        assert names(pages(dev, text="compat:full")) == ["customers-value"]
        assert len(names(pages(dev, text="drift:no"))) == 6
        with pytest.raises(InvalidInput, match="return to the present"):
            find_subjects(dev, SubjectFilter(text="compat:full field:email"), Page())


def test_the_numbers_are_of_what_is_left(dev: Registry) -> None:
    found = facet_counts(dev, SubjectFilter(text="field:email"))
    assert (found.total, dict(found.counts["level"])["FULL"], found.counts["tag"]) == (3, 1, {"gold": 1})


def test_the_page_and_the_api(dev: Registry, look: Callable[[str], Client], api: Callable[[str], Client]) -> None:
    page = look("reader").get("/ui/registries/dev/subjects?q=field:address.email").content.decode()
    assert 'href="/ui/registries/dev/subjects/customers-value/"' in page
    assert 'href="/ui/registries/dev/subjects/orders-value/"' not in page
    for wrong in ("compat:none_such", "id:abc", 'field:"x', "field:a urn:x"):
        page = look("reader").get(f"/ui/registries/dev/subjects?q={quote(wrong)}").content.decode()
        assert "filter can’t be applied" in page and "Search everything for" in page, wrong
    listed = "/api/v1/registries/dev/subjects?text="
    answer = api("reader").get(f"{listed}field:address.email")
    assert [row["subject"] for row in answer.json()["subjects"]] == ["customers-value"]
    assert api("reader").get(f"{listed}compat:x").status_code == 422
