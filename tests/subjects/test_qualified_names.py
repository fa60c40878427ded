"""Lists in the order of qualified names: whole and page by page, of one context and of several."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from registry.access.roles import Actor
from registry.errors import InvalidName
from registry.search.services import index_stale
from registry.subjects.models import Registry
from registry.subjects.selectors import list_subjects, search_versions
from registry.subjects.services import delete_subject, register_version, set_config
from registry.subjects.versions.qualified_names import MAX_BYTES, SubjectName, check_context, parse_subject

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-4")]

ONE = [".b", "B", "a", "a-value", "a.b", "a_b", "b", "z", "é", "中", "\U0001f600"]
SEVERAL = [":.ctx:a", ":.ctx:b", ":.ctx-2:a", ":.ä:a", "9", "a", "z", "~"]
LONG = "\U0001f600" * 475


@pytest.fixture(params=[ONE, SEVERAL, [*ONE, LONG]], ids=["one context", "several contexts", "a long name"])
def names(request: pytest.FixtureRequest, dev: Registry, system: Actor) -> list[str]:
    """Subjects of two versions each, registered in another order than that of their names."""
    found: list[str] = request.param
    for text in reversed(found):
        for name in ("A", "B"):
            register_version(registry=dev.name, subject=_name(text), text=_record(name), by=system)
    return sorted(found)


def _name(text: str) -> SubjectName:
    context, _, rest = text[1:].partition(":") if text.startswith(":.") else (".", "", text)
    return SubjectName(context, rest)


def _record(name: str) -> str:
    return f'{{"type": "record", "name": "R", "fields": [{{"name": "{name}", "type": "int", "default": 0}}]}}'


def test_pages_of_subjects_are_the_list(dev: Registry, names: list[str]) -> None:
    assert list_subjects(dev) == names
    pages = [list_subjects(dev, offset=at, limit=3) for at in range(0, len(names) + 3, 3)]
    assert [name for page in pages for name in page] == names
    assert pages[-1] == [] or len(names) % 3


def test_pages_of_versions_are_the_list(dev: Registry, names: list[str]) -> None:
    whole = [(name, number) for name in names for number in (1, 2)]
    pages = [search_versions(dev, offset=at, limit=5) for at in range(0, len(whole), 5)]
    found = [(item.info.subject.qualified, item.info.version) for page in pages for item in page]
    assert found == whole
    latest = search_versions(dev, latest_only=True, offset=1, limit=len(names))
    assert [(item.info.subject.qualified, item.info.version) for item in latest] == [(name, 2) for name in names[1:]]


def test_a_context_has_its_own_list_and_none_that_is_not_there(dev: Registry, names: list[str]) -> None:
    for context in {_name(name).context for name in names} | {".nowhere"}:
        here = [name for name in names if _name(name).context == context]
        assert list_subjects(dev, context=context) == here
        assert [
            item.info.subject.qualified for item in search_versions(dev, context=context, latest_only=True, limit=99)
        ] == here
    assert list_subjects(dev, prefix="a") == [name for name in names if _name(name).subject.startswith("a")]


def test_what_is_deleted_is_listed_when_it_is_asked_for(
    dev: Registry, names: list[str], system: Actor, django_assert_num_queries: Callable[..., object]
) -> None:
    gone = names[1]
    delete_subject(registry=dev.name, subject=_name(gone), by=system)
    assert list_subjects(dev) == [name for name in names if name != gone]
    assert list_subjects(dev, deleted=True) == names
    with django_assert_num_queries(2):
        assert list_subjects(dev, deleted_only=True) == [gone]
    assert [item.info.version for item in search_versions(dev, deleted=True, limit=99)] == [1, 2] * len(names)
    assert len(search_versions(dev, limit=99)) == 2 * (len(names) - 1)


@pytest.mark.parametrize("context", [".", ".c", f".{'é' * 240}"], ids=["default", "short", "long"])
def test_the_longest_name_is_kept_and_a_longer_one_refused(dev: Registry, system: Actor, context: str) -> None:
    """Random characters of four bytes, which no index makes smaller; the search keeps qualified names too."""
    chars = random.Random(7)
    text = "".join(chr(chars.randint(0x20000, 0x2A000)) for _ in range(MAX_BYTES // 4 + 1))
    with pytest.raises(InvalidName, match="bytes in UTF-8 is too long"):
        parse_subject(f":{context}:{text}")
    longest = parse_subject(f":{context}:{text[:-1]}")
    assert register_version(registry=dev.name, subject=longest, text=_record("A"), by=system).created
    set_config(registry=dev.name, subject=longest, level="FULL", by=system)
    assert index_stale() == 1
    assert list_subjects(dev) == [longest.qualified]


def test_a_context_has_few_bytes() -> None:
    with pytest.raises(InvalidName, match="504 bytes in UTF-8 is too long; 500 are allowed"):
        check_context(f".x{'é' * 251}")


@pytest.mark.parametrize("prefix", ["", "a", "a_", "a%", "\\", "😀"])
def test_names_of_one_context_begin_with_the_prefix_as_it_is(
    names: list[str], dev: Registry, system: Actor, prefix: str
) -> None:
    here = [name for name in names if not name.startswith(":") and name.startswith(prefix)]
    assert list_subjects(dev, context=".", prefix=prefix) == here
    assert list_subjects(dev, context=".", prefix=prefix, offset=1, limit=2) == here[1:3]
    for name in here[:1]:
        delete_subject(registry=dev.name, subject=_name(name), by=system)
    assert list_subjects(dev, context=".", prefix=prefix) == here[1:]
    assert list_subjects(dev, context=".", prefix=prefix, deleted=True) == here
    assert list_subjects(dev, context=".", prefix=prefix, deleted_only=True) == here[:1]


def test_a_version_that_is_replaced_meanwhile_is_not_missing(dev: Registry, system: Actor) -> None:
    """Between the two queries of the list, the soft-deleted version of the schema makes room for a new one."""
    subject, text = SubjectName(".", "a"), _record("A")
    register_version(registry=dev.name, subject=subject, text=text, by=system)
    delete_subject(registry=dev.name, subject=subject, by=system)
    left = [lambda: register_version(registry=dev.name, subject=subject, text=text, by=system)]

    def replacing(execute: Callable[..., Any], statement: str, *arguments: Any) -> Any:
        result = execute(statement, *arguments)
        if left and "ORDER BY" in statement:
            left.pop()()
        return result

    with connection.execute_wrapper(replacing):
        (match,) = search_versions(dev, deleted=True, limit=99)
    assert (match.info.subject, match.info.version, left) == (subject, 2, [])
