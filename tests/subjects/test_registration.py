"""Registering, reading and deleting through the services: identity, ids, references, modes, counts of queries."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from registry.access.roles import Actor
from registry.errors import (
    IncompatibleSchema,
    InvalidReference,
    InvalidSchema,
    OperationNotPermitted,
    ReferenceExists,
    SchemadeskError,
    VersionNotFound,
)
from registry.formats.base import Reference
from registry.subjects.models import Config, Context, Mode, Registry, Schema, SchemaReference, SchemaVersion, Subject
from registry.subjects.names import SubjectName
from registry.subjects.selectors import (
    effective_config,
    get_schema,
    get_version,
    list_versions,
    referenced_by,
)
from registry.subjects.services import (
    RegisteredVersion,
    delete_config,
    delete_subject,
    delete_version,
    set_config,
    set_mode,
)

ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
WITH_NOTE = {**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": ["null", "string"], "default": None}]}
WITH_KEY = {**ORDER, "fields": [*ORDER["fields"], {"name": "key", "type": "string"}]}
Register = Callable[..., RegisteredVersion]


def name(subject: str, context: str = ".") -> SubjectName:
    """A subject's name, of the default context unless told otherwise."""
    return SubjectName(context, subject)


def state() -> dict[str, list[Any]]:
    """All rows of this app."""
    models = (Registry, Context, Subject, Schema, SchemaVersion, SchemaReference, Config, Mode)
    return {model.__name__: list(model.objects.order_by("pk").values()) for model in models}


@pytest.mark.requirement("GOO-1")
def test_a_compatible_schema_is_the_next_version_and_a_known_one_keeps_its_id(
    dev: Registry, register: Register
) -> None:
    first, second = register("orders", ORDER), register("orders", WITH_NOTE)
    assert [(row.version, row.schema_id, row.created) for row in (first, second)] == [(1, 1, True), (2, 2, True)]
    again, elsewhere = register("orders", ORDER), register("other", WITH_NOTE)
    assert (again.version, again.schema_id, again.created) == (1, 1, False)
    assert (elsewhere.version, elsewhere.schema_id, elsewhere.created) == (1, 2, True)
    assert elsewhere.guid == second.guid
    assert list_versions(dev, name("orders")) == [1, 2]


@pytest.mark.requirement("GOO-1")
@pytest.mark.parametrize(
    ("error", "schema", "references"),
    [
        (IncompatibleSchema, WITH_KEY, []),
        (InvalidSchema, '{"type": "recor"}', []),
        (InvalidReference, WITH_NOTE, [Reference("a.B", "nothing", 1)]),
        (InvalidReference, WITH_NOTE, [Reference("a.B", "orders", 2)]),
        (InvalidReference, WITH_NOTE, [Reference("a.B", "nothing", -1)]),
        (InvalidReference, WITH_NOTE, [Reference("a.B", ":.lab:orders", 1)]),
    ],
)
def test_a_refusal_changes_nothing(
    register: Register, error: type[SchemadeskError], schema: object, references: list[Reference]
) -> None:
    register("orders", ORDER)
    before = state()
    with pytest.raises(error):
        register("orders", schema, *references)
    with pytest.raises((InvalidSchema, InvalidReference)) if error is not IncompatibleSchema else pytest.raises(error):
        register("orders", schema, *references, normalize=True)
    assert state() == before


@pytest.mark.requirement("GOO-1")
def test_a_refusal_in_a_new_context_leaves_no_context(dev: Registry, register: Register, system: Actor) -> None:
    set_mode(registry="dev", subject=None, mode="READONLY", by=system)
    before = state()
    with pytest.raises(OperationNotPermitted):
        register("orders", ORDER, context=".lab")
    assert state() == before


def test_whitespace_comments_and_key_order_make_no_version(dev: Registry, register: Register) -> None:
    first = register("orders", ORDER)
    spaced = json.dumps(ORDER, indent=8)
    for text in (spaced, f"// an order\n{spaced}", json.dumps({key: ORDER[key] for key in reversed(ORDER)})):
        assert register("orders", text).version_id == first.version_id
    version = get_version(dev, name("orders"), 1)
    assert version.submitted == json.dumps(ORDER), "the text as it came first"
    assert json.loads(version.schema.text) == ORDER


@pytest.mark.parametrize(
    "difference",
    [{"metadata": {"properties": {"owner": "me"}}}, {"rule_set": {"domainRules": [{"name": "r", "type": "CEL"}]}}],
)
def test_metadata_and_rules_are_part_of_what_a_schema_is(register: Register, difference: dict[str, object]) -> None:
    plain, marked = register("orders", ORDER), register("orders", ORDER, **difference)
    assert (marked.version, marked.schema_id) == (2, 2)
    assert marked.guid != plain.guid
    assert register("orders", ORDER, **difference).version == 2
    assert register("orders", ORDER, metadata={}, rule_set={}).version == 1, "nothing said is nothing meant"


@pytest.mark.requirement("GOO-5")
def test_references_to_another_version_are_another_schema(dev: Registry, register: Register) -> None:
    for schema in (ORDER, WITH_NOTE):
        register("order", schema)
    basket = {"type": "record", "name": "Basket", "fields": [{"name": "order", "type": "Order"}]}
    old, new = (register("basket", basket, Reference("Order", "order", number)) for number in (1, 2))
    assert [old.version, new.version] == [1, 2]
    assert old.schema_id != new.schema_id
    assert register("basket", basket, Reference("Order", "order", -1)).version == 2, "-1 is the latest"
    assert [referenced_by(dev, name("order"), number) for number in (1, 2)] == [[old.schema_id], [new.schema_id]]
    assert get_version(dev, name("basket"), 1).schema.references == (Reference("Order", "order", 1),)


@pytest.mark.requirement("GOO-5")
def test_references_reach_into_another_context(dev: Registry, register: Register) -> None:
    register("order", ORDER, context=".lab")
    basket = {"type": "record", "name": "Basket", "fields": [{"name": "order", "type": "Order"}]}
    made = register("basket", basket, Reference("Order", ":.lab:order", 1))
    assert referenced_by(dev, name("order", ".lab"), 1) == [made.schema_id]
    with pytest.raises(InvalidReference):
        register("basket", basket, Reference("Order", "order", 1))


def test_the_same_content_has_the_same_fingerprint_in_every_registry(register: Register) -> None:
    """Whatever its id, and whatever version holds what it refers to."""
    basket = {"type": "record", "name": "Basket", "fields": [{"name": "order", "type": "Order"}]}
    register("order", ORDER)
    register("order", WITH_NOTE)
    register("basket", basket, Reference("Order", "order", 2))
    register("unrelated", {"type": "record", "name": "Other", "fields": []}, registry="staging")
    register("shop-order", WITH_NOTE, registry="staging")
    register("basket", basket, Reference("Order", "shop-order", 1), registry="staging")
    there = [get_version(Registry.objects.get(name=place), name("basket"), 1).schema for place in ("dev", "staging")]
    assert there[0].fingerprint == there[1].fingerprint
    assert there[0].guid != there[1].guid, "the references are part of the identity"
    assert len(set(Schema.objects.values_list("fingerprint", flat=True))) == Schema.objects.count() - 2


def test_normalize_by_call_and_by_config(dev: Registry, register: Register, system: Actor) -> None:
    text = '{"type":"record","name":"Order","fields":[],"z":1,"a":2}'
    normal = '{"type":"record","name":"Order","fields":[],"a":2,"z":1}'
    assert register("plain", text).schema_id != register("called", text, normalize=True).schema_id
    set_config(registry="dev", subject=name("ruled"), normalize=True, by=system)
    ruled = register("ruled", text)
    assert get_schema(dev, ruled.schema_id).text == normal
    assert get_version(dev, name("ruled"), 1).submitted == text
    assert register("ruled", normal).created is False
    assert register("plain", normal).version == 2
    assert register("ruled", text, normalize=False).version == 2, "the call has the last word"


@pytest.mark.requirement("GOO-1")
def test_ids_belong_to_a_context_and_are_never_given_again(dev: Registry, register: Register, system: Actor) -> None:
    assert [register("orders", ORDER, context=context).schema_id for context in (".", ".lab")] == [1, 1]
    assert register("orders", ORDER, registry="staging").schema_id == 1
    register("orders", WITH_NOTE)
    for permanent in (False, True):
        assert delete_subject(registry="dev", subject=name("orders"), by=system, permanent=permanent) == [1, 2]
    assert not Schema.objects.filter(context__registry=dev, context__name=".").exists()
    assert [register("orders", schema).schema_id for schema in (WITH_NOTE, ORDER)] == [3, 4]
    assert list_versions(dev, name("orders")) == [1, 2]


def test_a_schema_stays_while_one_version_has_it(dev: Registry, register: Register, system: Actor) -> None:
    for subject in ("orders", "other"):
        register(subject, ORDER)
    for permanent in (False, True):
        delete_subject(registry="dev", subject=name("orders"), by=system, permanent=permanent)
    assert get_schema(dev, 1).text
    assert register("orders", ORDER).schema_id == 1


@pytest.mark.requirement("GOO-5")
def test_what_is_soft_deleted_can_not_be_referred_to(dev: Registry, register: Register, system: Actor) -> None:
    for schema in (ORDER, WITH_NOTE):
        register("order", schema)
    delete_version(registry="dev", subject=name("order"), version=2, by=system)
    basket = {"type": "record", "name": "Basket", "fields": [{"name": "order", "type": "Order"}]}
    with pytest.raises(InvalidReference, match='"order" and version 2'):
        register("basket", basket, Reference("Order", "order", 2))
    register("basket", basket, Reference("Order", "order", -1))
    assert get_version(dev, name("basket"), 1).schema.references == (Reference("Order", "order", 1),)
    with pytest.raises(ReferenceExists):
        delete_version(registry="dev", subject=name("order"), version=1, by=system)
    delete_subject(registry="dev", subject=name("basket"), by=system)
    delete_subject(registry="dev", subject=name("order"), by=system)
    with pytest.raises(ReferenceExists):
        delete_subject(registry="dev", subject=name("order"), by=system, permanent=True)
    assert get_schema(dev, 3).references == (Reference("Order", "order", 1),), "a deleted version still has its text"
    with pytest.raises(InvalidReference):
        register("basket", basket, Reference("Order", "order", 1))
    with pytest.raises(VersionNotFound):
        get_version(dev, name("order"), 3, deleted=True)


@pytest.mark.requirement("GOO-3")
def test_the_nearest_level_counts(dev: Registry, register: Register, system: Actor) -> None:
    assert effective_config(dev, name("orders")).level == "BACKWARD"
    set_config(registry="dev", subject=name("orders"), level="full", by=system)
    set_config(registry="dev", subject=None, level="NONE", by=system)
    set_config(registry="dev", subject=name("", ".lab"), level="FORWARD", by=system)
    levels = [
        effective_config(dev, name(subject, context)).level
        for subject in ("orders", "other")
        for context in (".", ".lab")
    ]
    assert levels == ["FULL", "FORWARD", "NONE", "FORWARD"]
    register("other", ORDER)
    assert register("other", WITH_KEY).version == 2
    register("orders", ORDER)
    with pytest.raises(IncompatibleSchema):
        register("orders", WITH_KEY)
    assert delete_config(registry="dev", subject=name("orders"), by=system).level == "FULL"
    assert register("orders", WITH_KEY).version == 2


@pytest.mark.requirement("GOO-6")
@pytest.mark.parametrize("place", [None, SubjectName(".", ""), SubjectName(".", "orders")], ids=str)
@pytest.mark.parametrize("mode", ["READONLY", "READONLY_OVERRIDE"])
def test_readonly_blocks_versions_deletions_and_config(
    register: Register, system: Actor, place: SubjectName | None, mode: str
) -> None:
    register("orders", ORDER)
    register("orders", WITH_NOTE)
    delete_version(registry="dev", subject=name("orders"), version=2, by=system)
    where = {"registry": "dev", "by": system}
    set_config(**where, subject=place, level="NONE")
    set_mode(**where, subject=place, mode=mode)
    before = state()
    attempts: Sequence[Callable[[], object]] = (
        lambda: register("orders", WITH_KEY),
        lambda: set_config(**where, subject=place, level="FULL"),
        lambda: delete_config(**where, subject=place),
        lambda: delete_subject(**where, subject=name("orders")),
        lambda: delete_version(**where, subject=name("orders"), version=1),
        lambda: delete_version(**where, subject=name("orders"), version=2, permanent=True),
    )
    for attempt in attempts:
        with pytest.raises(OperationNotPermitted):
            attempt()
    assert state() == before
    set_mode(**where, subject=place, mode="READWRITE")
    assert register("orders", WITH_KEY).version == 3


@pytest.mark.requirement("GOO-6")
def test_a_subject_may_be_open_in_a_closed_registry(register: Register, system: Actor) -> None:
    where = {"registry": "dev", "by": system}
    set_mode(**where, subject=name("orders"), mode="READWRITE")
    set_mode(**where, subject=None, mode="READONLY")
    assert register("orders", ORDER).version == 1
    with pytest.raises(OperationNotPermitted):
        register("other", ORDER)
    for permanent in (False, True):
        delete_subject(**where, subject=name("orders"), permanent=permanent)
    with pytest.raises(OperationNotPermitted):
        register("orders", ORDER)
