"""What a registration reads at once says the same as the selectors that read it one by one."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import pytest
from django.db import transaction

from registry.access.roles import Actor
from registry.formats.base import Reference
from registry.subjects.models import Config, Context, Mode, Registry, SchemaVersion, Subject
from registry.subjects.names import SubjectName
from registry.subjects.selectors.effective import (
    config_and_settings,
    configs_and_settings,
    effective_mode,
    effective_modes,
)
from registry.subjects.selectors.situation import situation_of
from registry.subjects.selectors.submission import equal_version, prepare, same_version, versions_of
from registry.subjects.services import RegisteredVersion, delete_subject, delete_version, register_version
from tests.subjects.client_process import Call
from tests.subjects.clients import Clients
from tests.subjects.test_locks import wait_for_a_waiter

Register = Callable[..., RegisteredVersion]
ORDERS = SubjectName(".", "orders")
PLAIN: dict[str, Any] = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
WIDER = {**PLAIN, "fields": [*PLAIN["fields"], {"name": "note", "type": "string", "default": ""}]}
USING = {"type": "record", "name": "Using", "fields": [{"name": "order", "type": "Order"}]}
INSIDE = {**USING, "fields": [{"name": "order", "type": PLAIN}]}
TO_ORDER = Reference("Order", "orders", 1)

#: what a scope may set; None is no row
CONFIGS: Sequence[dict[str, Any] | None] = (
    None,
    {"compatibility_level": "FULL", "default_metadata": {"properties": {"a": "b"}}},
    {"normalize": True, "policy": "oracle_nosql", "compatibility_group": "major", "profile": "semantic"},
)
MODES = (None, "READONLY", "READONLY_OVERRIDE", "IMPORT")


@pytest.mark.requirement("GOO-3")
@pytest.mark.parametrize("kind", [Registry.LOCAL, Registry.REMOTE])
def test_the_settings_are_those_of_the_selectors_of_many(dev: Registry, register: Register, kind: str) -> None:
    """Every combination of what the registry, the context and the subject say, and rows that say nothing of it."""
    register("orders", PLAIN)
    row = Subject.objects.get()
    Registry.objects.filter(pk=dev.pk).update(kind=kind, url="http://elsewhere" if kind == Registry.REMOTE else "")
    dev.refresh_from_db()
    other = Context.objects.create(registry=dev, name=".eu")
    Config.objects.create(registry=dev, context=other, subject_name="orders", compatibility_level="NONE")
    Config.objects.create(registry=dev, context=row.context, subject_name="payments", compatibility_level="NONE")
    Mode.objects.create(registry=dev, context=other, mode="IMPORT")
    scopes: Sequence[dict[str, Any]] = (
        {"context": None, "subject_name": None},
        {"context": row.context, "subject_name": None},
        {"context": row.context, "subject_name": "orders"},
    )
    for combination in [*product(CONFIGS, repeat=3)]:
        _write(Config, dev, scopes, combination)
        config, settings, _ = configs_and_settings(dev, [ORDERS])[ORDERS]
        found = situation_of(dev, ORDERS, row, None, "")
        assert (found.config, found.scope) == (config, settings), combination
        assert config_and_settings(dev, ORDERS) == (config, settings), combination
    for modes in product(MODES, repeat=3):
        _write(Mode, dev, scopes, [mode and {"mode": mode} for mode in modes])
        mode = effective_modes(dev, [ORDERS])[ORDERS]
        assert situation_of(dev, ORDERS, row, None, "").mode == mode.mode, modes
        assert effective_mode(dev, ORDERS) == mode, modes


def _write(
    model: type[Config] | type[Mode],
    registry: Registry,
    scopes: Sequence[dict[str, Any]],
    said: Sequence[dict[str, Any] | str | None],
) -> None:
    for scope, values in zip(scopes, said, strict=True):
        model.objects.filter(registry=registry, **scope).delete()
        if values:
            model.objects.create(registry=registry, **scope, **values)


@pytest.mark.requirement("GOO-1")
def test_the_newest_versions_are_the_live_one_and_the_highest_number(
    dev: Registry, register: Register, system: Actor
) -> None:
    row = Subject.objects.create(context=Context.objects.get(registry=dev, name="."), name="orders")

    def seen() -> tuple[int, int | None, bool]:
        found = situation_of(dev, ORDERS, row, None, "")
        if found.latest is not None:
            stored = SchemaVersion.objects.select_related("schema").get(pk=found.latest.pk)
            assert {**vars(found.latest), "_state": None} == {**vars(stored), "_state": None}
            assert {**vars(found.latest.schema), "_state": None} == {**vars(stored.schema), "_state": None}
        return found.highest, found.latest and found.latest.version, found.latest_refers

    assert seen() == (0, None, False)
    register("orders", PLAIN, metadata={"properties": {"major": "1"}})
    assert seen() == (1, 1, False)
    register("orders", WIDER)
    assert seen() == (2, 2, False)
    delete_version(registry="dev", subject=ORDERS, version=2, by=system)
    assert seen() == (2, 1, False)
    delete_subject(registry="dev", subject=ORDERS, by=system)
    assert seen() == (2, None, False)
    register("orders", PLAIN)
    register("using", USING, Reference("Order", "orders", 3))
    row = Subject.objects.get(name="using")
    found = situation_of(dev, SubjectName(".", "using"), row, None, "")
    assert (found.highest, found.latest_refers) == (1, True)


#: a schema, its references and its metadata
Sent = tuple[dict[str, Any], tuple[Reference, ...], dict[str, Any] | None]
SENT: dict[str, Sent] = {
    "plain": (PLAIN, (), None),
    "wider": (WIDER, (), None),
    "with metadata": (PLAIN, (), {"properties": {"major": "1"}}),
    "numbered 1": (PLAIN, (), {"properties": {"confluent:version": "1"}}),
    "numbered 2": (PLAIN, (), {"properties": {"confluent:version": "2"}}),
    "numbered by no number": (PLAIN, (), {"properties": {"confluent:version": "first"}}),
    "referring": (USING, (TO_ORDER,), None),
    "what it refers to inside": (INSIDE, (), None),
}


@pytest.mark.requirement("GOO-1")
@pytest.mark.parametrize("stored", SENT)
def test_what_may_be_equal_is_never_missed(dev: Registry, register: Register, stored: str, system: Actor) -> None:
    """Where nothing may be equal, `equal_version` finds nothing; the very schema is known, and is the same version."""
    register("orders", {**PLAIN, "doc": "the one that is referred to"})
    name = SubjectName(".", "tried")
    schema, references, metadata = SENT[stored]
    register("tried", schema, *references, metadata=metadata)
    row = Subject.objects.get(name="tried")
    version = SchemaVersion.objects.select_related("schema").get(subject=row)
    is_missed, is_spared = False, False
    for sent, (other, to, said) in SENT.items():
        submission = prepare(dev, name, json.dumps(other), "AVRO", to, said)
        canonical = submission.canonical(normalize=False)
        found = situation_of(dev, name, row, submission, canonical)
        equal = equal_version(versions_of(dev, name), submission, canonical)
        is_missed = is_missed or (equal is not None and not found.may_equal)
        is_spared = is_spared or not found.may_equal
        identity = submission.identity(canonical).digest
        same = same_version(dev, name, [identity], latest=True)
        assert (same is not None) == found.is_known == (identity == version.schema.identity), sent
        if same is not None:
            of_row = (version.pk, version.version, version.schema.schema_id, str(version.schema.guid))
            assert (same.id, same.version, same.schema_id, same.guid) == of_row
    assert (is_missed, is_spared) == (False, stored != "referring"), stored
    register("tried", {**PLAIN, "doc": "newer"}, force="to be the newest")
    assert same_version(dev, name, [version.schema.identity], latest=True) is None
    older = same_version(dev, name, [version.schema.identity])
    assert older is not None
    assert older.version == 1
    delete_version(registry="dev", subject=name, version=1, by=system)
    assert same_version(dev, name, [version.schema.identity]) is None


@pytest.mark.requirement("GOO-3")
def test_a_registration_makes_the_subject_anew_that_was_removed_while_it_waited(
    transactional_db: None, registries: None, system: Actor, clients: Clients
) -> None:
    """The subject was there when the statement began that waits for the policy lock."""
    text = {"registry": "dev", "subject": ORDERS, "text": json.dumps(WIDER)}
    register_version(registry="dev", subject=ORDERS, text=json.dumps(PLAIN), by=system)
    delete_subject(registry="dev", subject=ORDERS, by=system)
    with transaction.atomic():
        delete_subject(registry="dev", subject=ORDERS, permanent=True, by=system)
        clients.begin([[Call("register_version", text)]])
        wait_for_a_waiter()
    (outcome,) = clients.outcomes()
    assert (outcome.error, outcome.value.version, outcome.value.created) == ("", 1, True)
    assert [(row.subject.name, row.version) for row in SchemaVersion.objects.select_related("subject")] == [
        ("orders", 1)
    ]


@pytest.mark.requirement("GOO-1")
def test_a_definition_that_came_meanwhile_is_not_given_a_second_id(
    transactional_db: None, registries: None, system: Actor, clients: Clients
) -> None:
    """Of two subjects at once: the second waits for the counter, and then finds the schema."""
    payments = SubjectName(".", "payments")
    for name in (ORDERS, payments):
        register_version(registry="dev", subject=name, text=json.dumps(PLAIN), by=system)
    with transaction.atomic():
        first = register_version(registry="dev", subject=ORDERS, text=json.dumps(WIDER), by=system)
        clients.begin([[Call("register_version", {"registry": "dev", "subject": payments, "text": json.dumps(WIDER)})]])
        wait_for_a_waiter()
    (outcome,) = clients.outcomes()
    assert (outcome.error, outcome.value.version, outcome.value.schema_id) == ("", 2, first.schema_id)
    assert Context.objects.get(registry__name="dev", name=".").next_schema_id == first.schema_id + 1
