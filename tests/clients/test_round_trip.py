"""Unmodified clients of other languages do their whole round trip: what they say is what our services store."""

from __future__ import annotations

import json
from typing import Any

import pytest

from registry.access.roles import Actor
from registry.subjects import selectors
from registry.subjects.policy.effective_policy import own_config
from registry.subjects.services import delete_subject
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.one_version import get_version
from registry.subjects.versions.qualified_names import SubjectName, parse_subject
from registry.subjects.versions.versions import VersionInfo, list_versions
from tests.clients.expected import CUSTOMERS, FORMATS, VALUE, Format, is_refused
from tests.clients.programs import LANGUAGES, ProgramFailed
from tests.clients.serving import Program, Server
from tests.toolchains import missing_tools

pytestmark = [pytest.mark.clients, pytest.mark.slow, pytest.mark.requirement("GOO-1")]

TYPES = list(FORMATS)
#: The npm client writes no index of the message before a Protobuf value, so the others can't read what it writes.
WITHOUT_INDEX = {"node"}
#: The phase that asks whether schemas fit; the npm client has no call for that.
CHECKS = {"go": "write", "rust": "check"}
NAMES = ("a/versions/1", "größe 100%", "a+b&c=d?e#f", "%2F", ":.shop:customers-value")


def stored(subject: str, version: int | str, *, registry: str = "", context: str = ".") -> VersionInfo:
    """The version as our services have it."""
    return get_version(get_registry(registry), SubjectName(context, subject), version)


def is_stored(found: VersionInfo, text: str, schema_type: str, form: Format, *, refers: bool) -> None:
    """Asserts that the version is what the client sent."""
    assert found.submitted == text
    assert found.schema.schema_type == schema_type
    assert found.schema.references == (form.references if refers else ())
    assert (found.created_by, found.channel, found.deleted) == ("admin", "confluent", False)


def carries(message: str, schema_id: int, schema_type: str, program: str) -> None:
    """Asserts that a message is the header of the wire format and the value."""
    header, payload = bytes.fromhex(message)[:5], bytes.fromhex(message)[5:]
    assert header == b"\0" + schema_id.to_bytes(4, "big")
    if schema_type == "JSON":
        assert json.loads(payload) == VALUE
        return
    index = b"\0" if schema_type == "PROTOBUF" and program not in WITHOUT_INDEX else b""
    assert payload == index + FORMATS[schema_type].payload


@pytest.mark.requirement("GOO-5")
@pytest.mark.parametrize("schema_type", TYPES)
def test_a_client_registers_checks_and_encodes(program: Program, schema_type: str) -> None:
    registers_checks_and_encodes(program, schema_type)


@pytest.mark.parametrize("place", [{"context": ".shop"}, {"registry": "staging"}], ids=str)
def test_a_base_address_leads_to_a_context_or_another_registry(program: Program, place: dict[str, str]) -> None:
    registers_checks_and_encodes(program, "AVRO", **place)
    assert selectors.list_subjects(get_registry(), context=".") == []
    assert not [line for line in program.server.asked if " /contexts/" not in line and " /registries/" not in line]


def registers_checks_and_encodes(program: Program, schema_type: str, **place: str) -> None:
    """The phase `write`, and what it left."""
    form = FORMATS[schema_type]
    steps = program.steps("write", schema_type, **place)
    registry, context = get_registry(place.get("registry", "")), place.get("context", ".")
    names = [SubjectName(context, subject).qualified for subject in (form.subject, CUSTOMERS)]
    assert selectors.list_subjects(registry) == sorted(names)
    assert list_versions(registry, SubjectName(context, CUSTOMERS)) == [1, 2], "a refused schema was stored"
    for step, subject, version, file in (
        ("register address", form.subject, 1, "address"),
        ("register customer", CUSTOMERS, 1, "customer"),
        ("register again", CUSTOMERS, 1, "customer"),
        ("register nickname", CUSTOMERS, 2, "customer_nickname"),
    ):
        found = stored(subject, version, **place)
        is_stored(found, form.text(file), schema_type, form, refers=subject == CUSTOMERS)
        assert steps[step]["id"] == found.schema.schema_id, step
    is_refused(steps, "incompatible")
    carries(steps["encode"]["message"], steps["register customer"]["id"], schema_type, program.name)


@pytest.mark.parametrize("program", sorted(CHECKS), indirect=True)
@pytest.mark.parametrize("schema_type", TYPES)
def test_a_client_asks_whether_a_schema_fits(program: Program, schema_type: str) -> None:
    steps = program.all_steps(CHECKS[program.name], schema_type)
    answers = [step for step in steps if step["step"] == "compatible"]
    assert {step["name"] for step in answers} == {"customer_nickname", "customer_tier"}
    for step in answers:
        assert step["given"]["is_compatible"] is (step["name"] == "customer_nickname"), step
        if "messages" in step["given"]:
            assert bool(step["given"]["messages"]) is (step["name"] == "customer_tier"), step


@pytest.mark.parametrize("schema_type", TYPES)
def test_every_client_reads_what_every_client_wrote(server: Server, schema_type: str) -> None:
    programs = [Program(name, server) for name in sorted(LANGUAGES) if not missing_tools(LANGUAGES[name].tools)]
    written = {program.name: program.steps("write", schema_type)["encode"]["message"] for program in programs}
    for program in programs:
        for name, message in written.items():
            if schema_type == "PROTOBUF" and name in WITHOUT_INDEX - {program.name}:
                continue
            steps = program.steps("read", schema_type, message)
            assert steps["decode"]["value"] == VALUE, f"{program.name} reads what {name} wrote"
        fetches(steps, schema_type)


@pytest.mark.parametrize("schema_type", TYPES)
def test_messages_outlive_a_soft_delete_and_no_permanent_one(program: Program, schema_type: str, system: Actor) -> None:
    message = program.steps("write", schema_type)["encode"]["message"]
    subject = {"registry": get_registry().name, "subject": SubjectName(".", CUSTOMERS), "by": system}
    assert delete_subject(**subject) == [1, 2]
    assert program.steps("decode", schema_type, message)["decode"]["value"] == VALUE
    assert delete_subject(**subject, permanent=True) == [1, 2]
    with pytest.raises(ProgramFailed, match=r"Schema \d+ not found"):
        program.steps("decode", schema_type, message)


def fetches(steps: dict[str, dict[str, Any]], schema_type: str) -> None:
    """What the phase `read` fetched is what is stored; a client that lacks a call has no such step."""
    form = FORMATS[schema_type]
    address, first, last = stored(form.subject, 1), stored(CUSTOMERS, 1), stored(CUSTOMERS, "latest")
    assert last.version == 2
    for step, found in (("version", first), ("latest", last), ("by id", first), ("look up", address)):
        if "id" in steps.get(step, {}):
            assert steps[step]["id"] == found.schema.schema_id, step
        if "given" in steps.get(step, {}):
            is_answer(steps[step]["given"], found)
    if "by guid" in steps:
        is_answer(steps["by guid"]["given"], address)
    for step in ("unknown subject", "unknown version", "unknown id"):
        is_refused(steps, step)
    for step in ("unknown guid", "look up of another"):
        if step in steps:
            is_refused(steps, step)


def is_answer(given: dict[str, Any], found: VersionInfo) -> None:
    """Asserts that what a client made of an answer is the stored version; it may leave out what it doesn't keep."""
    assert given["schema"] == found.schema.text
    kind = given.get("schemaType") or given.get("schema_type") or "AVRO"  # the Rust client writes `Protobuf`
    assert kind.upper() == found.schema.schema_type
    references = [(item["name"], item["subject"], item["version"]) for item in given.get("references") or ()]
    assert references == [(item.name, item.subject, item.version) for item in found.schema.references]
    assert given.get("guid", found.schema.guid) == found.schema.guid
    if given.get("subject"):
        assert (given["subject"], given["version"]) == (found.subject.qualified, found.version)


@pytest.mark.parametrize("program", ["go", "node"], indirect=True)  # the Rust client escapes nothing but slashes
def test_odd_names_reach_the_server_whole(program: Program) -> None:
    steps = program.steps("names", "AVRO", *NAMES)
    for name in NAMES:
        found = get_version(get_registry(), parse_subject(name), 1)
        assert steps[name]["id"] == steps[name]["latest"] == found.schema.schema_id
    assert selectors.list_subjects(get_registry()) == sorted(NAMES)


@pytest.mark.parametrize(("who", "status"), [("", 401), ("reader", 403)])
def test_a_client_without_the_right_is_refused(program: Program, who: str, status: int) -> None:
    steps = program.steps("refused", "AVRO", who=who)
    is_refused(steps, "refused", (status, status, r"Sign in|role"))
    assert selectors.list_subjects(get_registry(), deleted=True) == []


@pytest.mark.parametrize("schema_type", TYPES)
def test_the_npm_client_keeps_a_level_for_its_subjects_and_a_cache(node: Program, schema_type: str) -> None:
    steps = node.steps("write", schema_type)
    level = steps["another level"]
    assert level["error"] == "ConfluentSchemaRegistryCompatibilityError"
    assert level["message"] == "Compatibility does not match the configuration (FULL != BACKWARD)"
    assert own_config(get_registry(), SubjectName(".", CUSTOMERS)).level == "BACKWARD"
    assert steps["unfit value"]["error"] == "ConfluentSchemaRegistryValidationError"
    node.server.asked.clear()
    message = steps["encode"]["message"]
    read = node.steps("read", schema_type, message)
    assert read["decode again"]["value"] == VALUE
    assert node.server.asked.count(f"GET /schemas/ids/{int(message[2:10], 16)}") == 1, "the cache wasn't used"
    if schema_type == "AVRO":
        assert read["decode as nickname"]["value"] == {**VALUE, "nickname": None}
