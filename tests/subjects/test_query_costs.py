"""What calls cost: parses and queries grow with what is there, not with what it unfolds to, nor with its number."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from registry.formats.avro.parser import Parser
from registry.formats.base import Reference
from registry.subjects.models import Registry
from registry.subjects.selectors import (
    check_proposal,
    compare_versions,
    get_version,
    list_subjects,
    list_versions,
    self_contained_schemas,
)
from registry.subjects.services import RegisteredVersion
from registry.subjects.versions.qualified_names import SubjectName
from registry.subjects.versions.versions import versions_of_schema

Register = Callable[..., RegisteredVersion]
TOP, USING = SubjectName(".", "top"), SubjectName(".", "using")
DEPTH = 25


def diamond(register: Register, level: int) -> None:
    """Two schemas that both refer to both of the level below: as a tree 2^level large."""
    below = [f"{side}{level - 1}" for side in "AB"] if level else []
    for side in "AB":
        fields = [{"name": kind.lower(), "type": kind} for kind in below] or [{"name": "id", "type": "long"}]
        schema = {"type": "record", "name": f"{side}{level}", "fields": fields}
        register(f"{side}{level}", schema, *(Reference(kind, kind, 1) for kind in below))


@pytest.mark.requirement("GOO-5")
@pytest.mark.slow
def test_diamonds_of_references_cost_what_they_are_and_not_what_they_unfold_to(
    dev: Registry, register: Register, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unfolded, the highest schema has 2^26 parts; here it has 51, and parsing reads each once."""
    read: list[str] = []
    one = Parser.parse_document

    def counting(self: Parser, value: Any) -> Any:
        read.append(value["name"])
        return one(self, value)

    monkeypatch.setattr(Parser, "parse_document", counting)
    for level in range(DEPTH + 1):
        read.clear()
        diamond(register, level)
        assert len(read) <= 2 * (2 * level + 1), f"level {level}: {read}"
    top = {
        "type": "record",
        "name": "Top",
        "fields": [{"name": "a", "type": f"A{DEPTH}"}, {"name": "b", "type": f"B{DEPTH}"}],
    }
    wider = {**top, "fields": [*top["fields"], {"name": "note", "type": "string", "default": ""}]}
    references = [Reference(f"{side}{DEPTH}", f"{side}{DEPTH}", 1) for side in "AB"]
    read.clear()
    register("top", top, *references)
    register("top", wider, *references)
    assert check_proposal(
        dev, TOP, text=json.dumps(top), references=references, schema_type="AVRO", version="latest"
    ).is_compatible
    differences = compare_versions(dev, TOP, old=1, new=2).differences
    assert differences is not None
    assert [difference.rule for difference in differences] == ["FIELD_ADDED"]
    whole = self_contained_schemas(dev, [get_version(dev, TOP, 2).schema.schema_id], schema_type="AVRO")
    assert sum(text.count('"record"') for text in whole.values()) == 2 * DEPTH + 3
    assert len(read) <= 6 * (2 * DEPTH + 3), "a call parsed the graph more than a few times"


@pytest.fixture
def crowd(register: Register) -> Callable[[int], list[Reference]]:
    """So many subjects, each with so many versions, and references to the first version of each."""

    def make(count: int) -> list[Reference]:
        for number in range(count):
            schema = {"type": "record", "name": f"T{number}", "fields": []}
            for other in range(count):
                schema["fields"].append({"name": f"f{other}", "type": "int", "default": 0})
                register(f"t{number}", schema)
        return [Reference(f"T{number}", f"t{number}", -1 if number % 2 else 1) for number in range(count)]

    return make


@pytest.mark.parametrize("count", [2, 9])
def test_query_counts_do_not_grow(
    dev: Registry,
    register: Register,
    crowd: Callable[[int], list[Reference]],
    count: int,
    django_assert_max_num_queries,
) -> None:
    references = crowd(count)
    using = {
        "type": "record",
        "name": "Using",
        "fields": [{"name": item.subject, "type": item.name} for item in references],
    }
    # one more with references: whether a resource owns one of the subjects; two for every version that is added: whether
    # the registry is a closed environment, and whether anybody wants to be told; one more for a new subject
    with django_assert_max_num_queries(20):
        assert register("using", using, *references).created
    more = {**using, "fields": [*using["fields"], {"name": "more", "type": "int", "default": 0}]}
    with django_assert_max_num_queries(18):
        assert register("using", more, *references).version == 2
    with django_assert_max_num_queries(8):
        assert not register("using", more, *references).created
    longer = {"type": "record", "name": "T0", "fields": [{"name": "new", "type": "int", "default": 0}]}
    with django_assert_max_num_queries(10):
        assert register("t0", longer).version == count + 1
    with django_assert_max_num_queries(2):
        assert len(get_version(dev, USING, "latest").schema.references) == count
    with django_assert_max_num_queries(2):
        assert len(list_versions(dev, SubjectName(".", "t0"))) == count + 1
    with django_assert_max_num_queries(2):  # the contexts, and the page
        assert len(list_subjects(dev)) == count + 1


def test_the_subjects_of_a_shared_schema_are_read_without_its_text(dev: Registry, register: Register) -> None:
    """All topics can have the same key: ten thousand subjects of one id took 30 times as long as all subjects."""
    key = {"type": "record", "name": "Key", "fields": []}
    names = [SubjectName(".", "a-key"), SubjectName(".", "b-key")]
    registered = [register(name.subject, key) for name in names]
    with CaptureQueriesContext(connection) as queries:
        found = versions_of_schema(dev, registered[0].schema_id)
    assert found == [(name, 1) for name in names]
    assert not any("submitted" in query["sql"] for query in queries.captured_queries)
