"""What franz-go's client can do besides: listings, deletes, levels, modes, contracts, given ids, contexts."""

from __future__ import annotations

from typing import Any

import pytest

from registry.formats import FORMATS as ENGINES
from registry.subjects import selectors
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.one_version import get_version
from registry.subjects.versions.qualified_names import SubjectName
from tests.clients.expected import CUSTOMERS, FORMATS, is_refused
from tests.clients.serving import Program
from tests.clients.test_round_trip import TYPES, stored

pytestmark = [pytest.mark.clients, pytest.mark.slow, pytest.mark.requirement("GOO-1")]

#: The client's names of the codes that deletes are refused with.
KNOWN = {
    "SUBJECT_NOT_FOUND",
    "SUBJECT_SOFT_DELETED",
    "SUBJECT_NOT_SOFT_DELETED",
    "SCHEMA_VERSION_SOFT_DELETED",
    "SCHEMA_VERSION_NOT_SOFT_DELETED",
    "REFERENCE_EXISTS",
}


@pytest.mark.parametrize("schema_type", TYPES)
def test_listings_say_what_is_stored(go: Program, schema_type: str) -> None:
    form = FORMATS[schema_type]
    written = go.steps("write", schema_type)
    steps = go.steps("read", schema_type, written["encode"]["message"])
    given = {name: step["given"] for name, step in steps.items() if "given" in step}
    address, first, last = stored(form.subject, 1), stored(CUSTOMERS, 1), stored(CUSTOMERS, 2)
    assert written["incompatible"]["error"] == "INCOMPATIBLE_SCHEMA"
    is_refused(written, "broken")
    is_refused(written, "compatible with no version")
    for step, found in (("register customer", first), ("register nickname", last)):
        created = written[step]["created"]
        assert (created["subject"], created["version"]) == (CUSTOMERS, found.version)
        assert created["guid"] == found.schema.guid
    assert given["text of version"] == given["text of id"] == first.schema.text
    assert given["ids of guid"] == [{"context": ".", "id": address.schema.schema_id}]
    assert given["subjects"] == sorted([form.subject, CUSTOMERS])
    assert given["subjects by prefix"] == given["subjects of id"] == [CUSTOMERS]
    assert given["versions of id"] == [{"subject": CUSTOMERS, "version": 1}]
    assert given["versions"] == [1, 2]
    assert [item["schema"] for item in given["schemas of subject"]] == [first.schema.text, last.schema.text]
    latest = {item["subject"]: item["version"] for item in given["all schemas"]}
    assert latest == {form.subject: 1, CUSTOMERS: 2}
    assert sorted(steps["referenced by"]["ids"]) == [first.schema.schema_id, last.schema.schema_id]


@pytest.mark.parametrize("schema_type", TYPES)
def test_deletes_soft_and_permanent(go: Program, schema_type: str) -> None:
    go.steps("write", schema_type)
    steps = go.steps("delete", schema_type)
    for step in (
        "subject permanent before soft",
        "version permanent before soft",
        "referenced",
        "version twice",
        "subject twice",
        "nothing left",
    ):
        is_refused(steps, step)
        assert steps[step]["error"] in KNOWN, "the client has no name for the code"
    given = {name: step["given"] for name, step in steps.items() if "given" in step}
    assert given["versions left"] == [2]
    assert given["versions with deleted"] == [1, 2]
    assert given["versions deleted"] == [1]
    assert given["subject"] == [2]
    assert given["subject permanent"] == [1, 2]
    assert given["subjects left"] == []
    assert selectors.list_subjects(get_registry(), deleted=True) == []


@pytest.fixture
def policies(go: Program) -> dict[str, dict[str, Any]]:
    """What the phase `policies` says."""
    return go.steps("policies", "AVRO")


def test_levels_modes_contracts_ids_and_contexts(policies: dict[str, dict[str, Any]]) -> None:
    assert set(policies["types"]["given"]) == set(ENGINES)
    levels(policies)
    modes(policies)
    contracts(policies)
    imports(policies)
    assert policies["in context"]["given"]["subject"] == f":.shop:{CUSTOMERS}"
    assert policies["subjects in context"]["given"] == [f":.shop:{CUSTOMERS}"]
    assert policies["contexts"]["given"] == [".", ".shop"]
    is_refused(policies, "context that isn't empty")
    assert policies["contexts left"]["given"] == selectors.list_contexts(get_registry()) == ["."]


def levels(steps: dict[str, dict[str, Any]]) -> None:
    """Levels of the registry and of a subject."""
    assert steps["global level"]["level"] == steps["level in scope"]["level"] == "BACKWARD"
    for step in ("set level", "own level"):
        found = steps[step]
        assert (found["level"], found["normalize"], found["group"]) == ("FULL_TRANSITIVE", True, "major")
    for step in ("no level of its own", "level after reset", "reset twice"):
        is_refused(steps, step)


def modes(steps: dict[str, dict[str, Any]]) -> None:
    """Modes of the registry and of a subject."""
    assert steps["global mode"]["mode"] == steps["mode in scope"]["mode"] == "READWRITE"
    assert steps["set mode"]["mode"] == "READONLY"
    for step in ("no mode of its own", "register in READONLY", "mode after reset"):
        is_refused(steps, step)


def contracts(steps: dict[str, dict[str, Any]]) -> None:
    """Metadata and rules are stored and come back."""
    found = stored("contracts-value", 1).schema
    for step in ("contract", "contract by id"):
        given = steps[step]["given"]
        assert given["metadata"] == found.metadata, step
        rule = given["ruleSet"]["domainRules"][0]
        assert (rule["name"], rule["mode"], rule["tags"]) == ("city", "WRITE", ["PII"])
        assert found.rule_set
        assert rule | {"disabled": False} == found.rule_set["domainRules"][0], "the client leaves `disabled` out"
    assert found.metadata == {
        "tags": {"Address.city": ["PII"]},
        "properties": {"owner": "shop"},
        "sensitive": ["owner"],
    }


def imports(steps: dict[str, dict[str, Any]]) -> None:
    """A schema under a given id and version."""
    is_refused(steps, "given id outside IMPORT")
    is_refused(steps, "IMPORT with schemas there")
    assert steps["IMPORT"]["mode"] == "IMPORT"
    assert steps["imported"]["given"] == 4711
    found = get_version(get_registry(), SubjectName(".", "imported-value"), 7)
    assert (found.schema.schema_id, found.schema.metadata) == (4711, {"properties": {"copied": "yes"}})
