"""Metadata, rule sets and identity: pure, so without a database; and the services that take them."""

from __future__ import annotations

import hashlib
import struct
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from registry.access.roles import Actor
from registry.errors import (
    ContextNotEmpty,
    InvalidRuleSet,
    InvalidSchema,
    OperationNotPermitted,
    ReferenceExists,
    SchemaNotFound,
)
from registry.formats.base import Reference
from registry.subjects.models import Config, Context, Registry, Schema, SchemaVersion
from registry.subjects.policy.data_contracts import (
    merge_metadata,
    merge_rule_sets,
    read_metadata,
    read_rule_set,
    version_in,
    with_version,
    without_rules,
    without_version,
)
from registry.subjects.policy.effective_policy import config_and_settings, effective_config
from registry.subjects.selectors import get_schema, get_version, list_versions
from registry.subjects.services import (
    RegisteredVersion,
    delete_context,
    delete_mode,
    delete_version,
    set_config,
    set_mode,
)
from registry.subjects.versions.qualified_names import SubjectName, parse_scope
from registry.subjects.versions.schema_identity import identify

ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
TOTAL = {**ORDER, "fields": [*ORDER["fields"], {"name": "total", "type": "double"}]}
RULE = {"name": "a", "type": "CEL"}
Register = Callable[..., RegisteredVersion]


def md5(*parts: bytes) -> uuid.UUID:
    return uuid.UUID(bytes=hashlib.md5(b"".join(parts)).digest())


def test_the_guid_is_the_one_that_the_established_server_gives() -> None:
    """The MD5 of the text, the references with versions of four bytes, then what the contract holds, in its order."""
    assert identify("AVRO", '"int"').guid == md5(b'"int"')
    assert identify("AVRO", '"int"').guid == identify("JSON", '"int"').guid
    assert identify("AVRO", '"int"').digest != identify("JSON", '"int"').digest
    reference = Reference("a.B", "b", 258)
    assert identify("AVRO", "x", [reference]).guid == md5(b"x", b"a.B", b"b", struct.pack(">i", 258))
    metadata = {"tags": {"p": ["t", "s"]}, "properties": {"k": "v", "a": "b"}, "sensitive": ["z"]}
    assert identify("AVRO", "x", (), metadata).guid == md5(b"x", b"pst", b"ab", b"kv", b"z")
    rules = {
        "migrationRules": [
            {"name": "n", "kind": "TRANSFORM", "mode": "UP", "type": "T", "params": {"b": "1", "a": "2"}}
        ],
        "domainRules": [{"name": "d", "doc": "D", "tags": ["y", "x"], "expr": "e", "onFailure": "f", "disabled": True}],
        "enableAt": "ALL",
    }
    expected = md5(b"x", b"nTRANSFORMUPT", b"a2b1", b"dD", b"xy", b"ef", b"\x01", b"ALL")
    assert identify("AVRO", "x", (), None, rules).guid == expected
    assert identify("AVRO", "x", (), {}, {}) == identify("AVRO", "x")


def test_equal_contracts_are_equal_values() -> None:
    one = read_metadata({"tags": {"b": ["y", "x", "x"], "a": []}, "properties": {"n": 1, "f": False}, "more": 1})
    assert one == {"tags": {"a": [], "b": ["x", "y"]}, "properties": {"f": "false", "n": "1"}}
    assert read_metadata(one) == one
    assert (read_metadata(None), read_metadata({}), read_metadata({"tags": {}})) == (None, {}, {})
    rules = read_rule_set({"domainRules": [RULE], "migrationRules": [], "enableAt": "CLIENT"})
    assert rules == {
        "domainRules": [{"name": "a", "kind": "TRANSFORM", "mode": "WRITEREAD", "type": "CEL", "disabled": False}],
        "enableAt": "CLIENT",
    }
    assert read_rule_set(rules) == rules


def test_contracts_lie_on_top_of_each_other() -> None:
    below = {"tags": {"p": ["a"], "q": ["b"]}, "properties": {"x": "1", "y": "1"}, "sensitive": ["x"]}
    above = {"tags": {"p": ["c"]}, "properties": {"y": "2"}, "sensitive": ["y"]}
    assert merge_metadata(below, None, above) == {
        "tags": {"p": ["c"], "q": ["b"]},
        "properties": {"x": "1", "y": "2"},
        "sensitive": ["x", "y"],
    }
    assert (merge_metadata(None, None), merge_metadata(None, {})) == (None, {})
    old = {"domainRules": [{"name": "a", "n": 1}, {"name": "b", "n": 1}], "enableAt": "ALL"}
    new = {"domainRules": [{"name": "a", "n": 2}], "migrationRules": [{"name": "m"}]}
    assert merge_rule_sets(old, new) == {
        "domainRules": [{"name": "b", "n": 1}, {"name": "a", "n": 2}],
        "migrationRules": [{"name": "m"}],
        "enableAt": "ALL",
    }
    assert without_rules(old, ["a", "none"]) == {"domainRules": [{"name": "b", "n": 1}], "enableAt": "ALL"}
    assert (merge_rule_sets(None), without_rules(None, ["a"])) == (None, None)


def test_the_number_in_the_metadata() -> None:
    numbered = with_version({"properties": {"a": "b"}}, 7)
    assert (version_in(numbered), version_in(None), version_in({})) == ("7", None, None)
    assert without_version(numbered) == {"properties": {"a": "b"}}
    assert without_version(with_version(None, 1)) == without_version(None) == {}


@pytest.mark.parametrize("name", ["", "1a", "-a", "a.b", "a b", "x" * 257, None, 7])
def test_rule_names_that_are_none(name: object) -> None:
    with pytest.raises(InvalidRuleSet):
        read_rule_set({"domainRules": [{"name": name, "type": "CEL"}]})


def test_the_whole_registry_has_three_names() -> None:
    assert [parse_scope(text) for text in ("", ":.:", ":.__GLOBAL:")] == [None, None, None]
    assert parse_scope("", context=".lab") == SubjectName(".lab", "") == parse_scope(":.lab:")
    assert parse_scope(":.:", context=".lab") is None
    assert parse_scope("a", context=".lab") == SubjectName(".lab", "a")


@pytest.mark.requirement("GOO-3")
def test_defaults_and_overrides_come_from_the_nearest_config_alone(dev: Registry, system: Actor) -> None:
    where = {"registry": "dev", "by": system}
    orders = SubjectName(".", "orders")
    set_config(**where, subject=None, default_metadata={"properties": {"a": "b"}}, compatibility_group="major")
    assert config_and_settings(dev, orders)[1].default_metadata == {"properties": {"a": "b"}}
    set_config(**where, subject=orders, validate_rules=False)
    settings = config_and_settings(dev, orders)[1]
    assert (settings.default_metadata, settings.compatibility_group, settings.validate_rules) == (None, "major", False)
    assert effective_config(dev, orders).level == "BACKWARD"
    set_config(**where, subject=orders, unset=["validate_rules"])
    assert Config.objects.filter(subject_name="orders").count() == 0, "a config that sets nothing is none"
    with pytest.raises(TypeError, match="lvl"):
        set_config(**where, subject=orders, lvl="FULL")


def test_an_import_leaves_the_counter_above_its_ids(dev: Registry, register: Register, system: Actor) -> None:
    with pytest.raises(OperationNotPermitted):
        register("orders", ORDER, schema_id=7)
    set_mode(registry="dev", subject=None, mode="IMPORT", by=system)
    assert register("orders", ORDER, schema_id=2_147_483_646, version=2_147_483_647).version == 2_147_483_647
    assert Context.objects.get(registry=dev, name=".").next_schema_id == 2_147_483_647
    assert register("other", TOTAL, schema_id=3).schema_id == 3
    assert register("copies", ORDER, schema_id=4).schema_id == 4, "a second id for the same definition"
    assert Schema.objects.filter(identity=Schema.objects.get(schema_id=4).identity).count() == 2
    set_mode(registry="dev", subject=None, mode="READWRITE", by=system)
    assert register("third", ORDER).schema_id == 4, "the lowest id of the definition"
    with pytest.raises(OperationNotPermitted, match="no next one"):
        register("orders", TOTAL)


def test_an_import_replaces_a_version_that_nothing_refers_to(dev: Registry, register: Register, system: Actor) -> None:
    set_mode(registry="dev", subject=None, mode="IMPORT", by=system)
    register("order", ORDER, schema_id=1, version=1)
    basket = {"type": "record", "name": "Basket", "fields": [{"name": "order", "type": "Order"}]}
    register("basket", basket, Reference("Order", "order", 1), schema_id=2, version=1)
    with pytest.raises(ReferenceExists):
        register("order", TOTAL, schema_id=3, version=1)
    assert not Schema.objects.filter(schema_id=3).exists()
    register("basket", TOTAL, schema_id=3, version=1)
    assert get_version(dev, SubjectName(".", "basket"), 1).schema.schema_id == 3
    with pytest.raises(SchemaNotFound):
        get_schema(dev, 2)
    assert not Schema.objects.filter(versions=None).exists()


def test_import_removes_what_was_soft_deleted_unless_it_is_referred_to(
    dev: Registry, register: Register, system: Actor
) -> None:
    where = {"registry": "dev", "by": system}
    register("order", ORDER)
    basket = {"type": "record", "name": "Basket", "fields": [{"name": "order", "type": "Order"}]}
    register("basket", basket, Reference("Order", "order", 1))
    set_config(**where, subject=SubjectName(".", "order"), level="FULL")
    for name in ("basket", "order"):
        delete_version(**where, subject=SubjectName(".", name), version=1)
    with pytest.raises(ReferenceExists):
        set_mode(**where, subject=SubjectName(".", "order"), mode="IMPORT")
    set_mode(**where, subject=SubjectName(".", "basket"), mode="IMPORT")
    set_mode(**where, subject=SubjectName(".", "order"), mode="IMPORT")
    assert SchemaVersion.objects.count() == 0
    assert effective_config(dev, SubjectName(".", "order")).level == "FULL", "its settings stay"


def test_an_empty_text_repeats_the_latest_version(dev: Registry, register: Register) -> None:
    for text in ("", "  \n"):
        with pytest.raises(InvalidSchema, match="Empty schema"):
            register("orders", text)
    first = register("orders", ORDER)
    assert register("orders", " ").version_id == first.version_id
    again = register("orders", "", metadata={"properties": {"a": "b"}})
    assert (again.version, again.created) == (2, True)
    assert get_version(dev, SubjectName(".", "orders"), 2).schema.metadata == {"properties": {"a": "b"}}


def test_registering_again_drops_tombstones_but_those_that_are_referred_to(
    dev: Registry, register: Register, system: Actor
) -> None:
    name = SubjectName(".", "order")
    register("order", ORDER)
    basket = {"type": "record", "name": "Basket", "fields": [{"name": "order", "type": "Order"}]}
    register("basket", basket, Reference("Order", "order", 1))
    delete_version(registry="dev", subject=SubjectName(".", "basket"), version=1, by=system)
    delete_version(registry="dev", subject=name, version=1, by=system)
    assert (register("order", ORDER).version, list_versions(dev, name, deleted=True)) == (2, [1, 2])
    delete_version(registry="dev", subject=name, version=2, by=system)
    assert (register("order", ORDER).version, list_versions(dev, name, deleted=True)) == (3, [1, 3])


@pytest.mark.requirement("GOO-6")
def test_what_is_there_is_given_in_any_mode(register: Register, system: Actor) -> None:
    first = register("orders", ORDER)
    for mode in ("READONLY", "READONLY_OVERRIDE"):
        set_mode(registry="dev", subject=None, mode=mode, by=system)
        assert register("orders", ORDER).version_id == first.version_id
        with pytest.raises(OperationNotPermitted):
            register("orders", TOTAL)
    assert delete_mode(registry="dev", subject=None, by=system) == "READONLY_OVERRIDE"


def test_a_context_goes_when_it_is_empty(register: Register, system: Actor) -> None:
    where: dict[str, Any] = {"registry": "dev", "by": system}
    register("orders", ORDER, context=".lab")
    set_config(**where, subject=SubjectName(".lab", ""), level="NONE")
    with pytest.raises(ContextNotEmpty):
        delete_context(**where, context=".lab")
    for permanent in (False, True):
        delete_version(**where, subject=SubjectName(".lab", "orders"), version=1, permanent=permanent)
    set_mode(**where, subject=SubjectName(".lab", ""), mode="READONLY")
    with pytest.raises(OperationNotPermitted):
        delete_context(**where, context=".lab")
    set_mode(**where, subject=SubjectName(".lab", ""), mode="READWRITE")
    assert delete_context(**where, context=".lab") is True
    assert delete_context(**where, context=".lab") is False
    with pytest.raises(OperationNotPermitted):
        delete_context(**where, context=".")
    assert not Config.objects.exists()
