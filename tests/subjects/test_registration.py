"""Registering, reading and deleting through the services; and the state that a registration reads at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import product
from threading import Thread, current_thread, main_thread
from typing import Any
from unittest import mock

import pytest
from django.db import DataError, connection, transaction
from django.test.utils import CaptureQueriesContext

from registry.access.models import User
from registry.access.roles import Actor
from registry.audit.models import AuditEvent
from registry.errors import (
    IncompatibleSchema,
    InvalidReference,
    InvalidSchema,
    OperationNotPermitted,
    ReferenceExists,
    SchemadeskError,
    SchemaTooLarge,
    VersionNotFound,
)
from registry.formats.base import Reference
from registry.notifications.models import Webhook
from registry.subjects.engine import schema_engine
from registry.subjects.models import Config, Context, Mode, Registry, Schema, SchemaReference, SchemaVersion, Subject
from registry.subjects.policy.effective_policy import (
    config_and_settings,
    effective_mode,
    scope_settings_for_many,
)
from registry.subjects.registration import registration, registration_state
from registry.subjects.registration.locks import committing, pipelined
from registry.subjects.registration.submission import (
    RegistrationFacts,
    Submission,
    equal_version,
    prepare,
    read_situation,
    settings_and_existing_version,
    situation_of,
    versions_of,
)
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
    register_version,
    set_config,
    set_mode,
)
from registry.subjects.versions import parsed_schemas
from registry.subjects.versions.qualified_names import SubjectName
from tests.subjects.client_process import Call
from tests.subjects.races import Clients
from tests.subjects.test_integrity import wait_for_a_waiter

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
        spoken = scope_settings_for_many(dev, [ORDERS])[ORDERS]
        config, settings = spoken.config(), spoken.settings()
        found = situation(dev, ORDERS)
        assert (found.config, found.scope) == (config, settings), combination
        assert config_and_settings(dev, ORDERS) == (config, settings), combination
    for modes in product(MODES, repeat=3):
        _write(Mode, dev, scopes, [mode and {"mode": mode} for mode in modes])
        mode = scope_settings_for_many(dev, [ORDERS])[ORDERS].mode(dev)
        assert situation(dev, ORDERS).mode == mode.mode, modes
        assert effective_mode(dev, ORDERS) == mode, modes


def situation(
    registry: Registry, subject: SubjectName, submission: Submission | None = None, canonical: str = ""
) -> RegistrationFacts:
    with connection.cursor() as cursor:
        read_situation(cursor, registry, subject, submission, canonical)
        return situation_of(registry, cursor)


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


@pytest.mark.requirement("CARD-1")
@pytest.mark.parametrize(
    ("schema_type", "text", "is_kept"),
    [
        ("AVRO", json.dumps(WITH_NOTE), True),
        ("AVRO", json.dumps({"type": "enum", "name": "E", "doc": '\u00e4 "1.0"', "symbols": ["A"]}, indent=2), True),
        ("AVRO", json.dumps({**WITH_NOTE, "doc": "stored in another place"}), False),
        ("AVRO", '{"type": "array", "items": {"type": "string"}}', False),  # stored as "items": "string"
        ("JSON", '{"type": "object", "properties": {"a": {"type": "number", "maximum": 1.5}}}', True),
        ("PROTOBUF", 'syntax = "proto3"; message M { int64 a = 1; }', False),
    ],
)
def test_the_next_version_is_compared_with_what_was_parsed(
    dev: Registry, system: Actor, schema_type: str, text: str, is_kept: bool
) -> None:
    """A stored schema that is the same JSON as what was sent isn't parsed again; both are the same."""
    register_version(registry=dev, subject=name("kept"), text=text, schema_type=schema_type, by=system)
    row = Schema.objects.get()
    with mock.patch.object(schema_engine, "parse", side_effect=schema_engine.parse) as parse:
        kept = parsed_schemas.parse_stored([row], refer=False)[0]
    assert parse.called != is_kept
    parsed_schemas.forget()
    anew = parsed_schemas.parse_stored([row], refer=False)[0]
    assert (kept, kept.text, kept.missing_types) == (anew, anew.text, anew.missing_types)
    assert schema_engine.outline(kept) == schema_engine.outline(anew)
    assert schema_engine.diff(anew, kept) == ()


@pytest.mark.requirement("GOO-1")
def test_the_newest_versions_are_the_live_one_and_the_highest_number(
    dev: Registry, register: Register, system: Actor
) -> None:
    Subject.objects.create(context=Context.objects.get(registry=dev, name="."), name="orders")

    def seen() -> tuple[int, int | None, bool]:
        found = situation(dev, ORDERS)
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
    found = situation(dev, SubjectName(".", "using"))
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
        found = situation(dev, name, submission, canonical)
        equal = equal_version(versions_of(dev, name), submission, canonical)
        is_missed = is_missed or (equal is not None and not found.may_equal)
        is_spared = is_spared or not found.may_equal
        identity = submission.identity(canonical).digest
        same = settings_and_existing_version(dev, name, [identity], latest=True)[1]
        assert (same is not None) == found.is_known == (identity == version.schema.identity), sent
        if same is not None:
            of_row = (version.pk, version.version, version.schema.schema_id, str(version.schema.guid))
            assert (same.id, same.version, same.schema.schema_id, same.schema.guid) == of_row
    assert (is_missed, is_spared) == (False, stored != "referring"), stored
    register("tried", {**PLAIN, "doc": "newer"}, force="to be the newest")
    assert settings_and_existing_version(dev, name, [version.schema.identity], latest=True)[1] is None
    older = settings_and_existing_version(dev, name, [version.schema.identity])[1]
    assert older is not None
    assert older.version == 1
    delete_version(registry="dev", subject=name, version=1, by=system)
    assert settings_and_existing_version(dev, name, [version.schema.identity])[1] is None


@pytest.mark.requirement("GOO-1")
def test_what_is_read_before_a_registration_has_as_many_schemas_whatever_its_subject_has(
    dev: Registry, register: Register
) -> None:
    """Counted with index scans alone, because small tables are read whole."""
    read = "SELECT idx_tup_fetch + seq_tup_read FROM pg_stat_xact_user_tables WHERE relname = 'subjects_schema'"
    counts = []
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        for number in range(6):
            register("orders", {**PLAIN, "doc": str(number)})
            cursor.execute(read)
            before = cursor.fetchone()[0]
            submission = prepare(dev, ORDERS, json.dumps(WIDER))
            assert not situation(dev, ORDERS, submission, submission.canonical(normalize=False)).may_equal
            cursor.execute(read)
            counts.append(cursor.fetchone()[0] - before)
    assert max(counts) == counts[0], "it may get less once the server keeps a plan"


@pytest.mark.requirement("GOO-1")
@pytest.mark.parametrize("normalize", [False, True])
def test_a_text_that_is_likely_new_is_looked_for_under_the_locks_alone(
    dev: Registry, register: Register, system: Actor, monkeypatch: pytest.MonkeyPatch, normalize: bool
) -> None:
    """It is if the last text that was never parsed here was new; one that isn't new all the same is found."""
    monkeypatch.setattr(registration.UNSEEN_TEXTS, "are_new", False)
    parsed_schemas.forget()
    set_config(registry="dev", subject=ORDERS, by=system, normalize=normalize)
    before = {**PLAIN, "b": 1, "a": 2}, {**WIDER, "b": 1, "a": 2}
    again = tuple({**schema, "a": 2, "b": 1} for schema in (PLAIN, WIDER)) if normalize else before

    def ways(schema: dict[str, Any]) -> tuple[int, bool, bool]:
        """The version, and whether it was looked for without a lock, and under the locks."""
        with CaptureQueriesContext(connection) as queries:
            done = register("orders", schema)
        told = " ".join(query["sql"] for query in queries)
        return done.version, "AS twin" in told, "pg_advisory_xact_lock_shared" in told

    assert ways(before[0]) == (1, True, True)
    assert ways(before[1]) == (2, False, True)
    parsed_schemas.forget()
    assert ways(again[0]) == (1, False, True), "another process has registered it"
    parsed_schemas.forget()
    assert ways(again[1]) == (2, True, False)
    assert ways({**PLAIN, "doc": "newer"}) == (3, True, True)
    assert ways(again[1]) == (2, True, False), "it was parsed not long ago"
    assert SchemaVersion.objects.count() == 3
    assert Context.objects.get(registry=dev, name=".").next_schema_id == 4


@pytest.mark.requirement("GOO-3")
def test_a_registration_recreates_the_subject_that_was_removed_while_it_waited(
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


def test_a_new_text_is_measured_once_and_before_its_references_are_read(dev: Registry) -> None:
    with mock.patch.object(parsed_schemas, "refuse_too_large") as measured_again:
        prepare(dev, name("orders-value"), json.dumps(ORDER))
    assert not measured_again.called
    missing = [Reference("Gone", "gone", 1)]
    with pytest.raises(SchemaTooLarge):
        prepare(dev, name("orders-value"), json.dumps(ORDER) + " " * 3_000_000, references=missing)


def test_statements_that_go_to_the_server_together_fail_as_the_first_that_does(db: None) -> None:
    raised = pytest.raises(DataError, match="division by zero")
    with raised, transaction.atomic(), connection.cursor() as cursor, pipelined():
        cursor.execute("SELECT 1/0")
        cursor.execute("SELECT 'never'::integer")
    with connection.cursor() as cursor:
        with pipelined():
            cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)


@pytest.fixture
def commits(transactional_db: None, registries: None, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The subjects whose versions were committed in the round trip that stored them."""
    subjects: list[str] = []

    def noted(subject: str) -> AbstractContextManager[None]:
        subjects.append(subject)
        return committing(subject)

    monkeypatch.setattr(registration_state, "committing", noted)
    return subjects


def test_a_new_schema_is_committed_with_its_version(commits: list[str], register: Register, system: Actor) -> None:
    """Not a new subject, a known schema, or one for whose event somebody may wait."""
    register("orders", ORDER)
    register("others", {**ORDER, "name": "Other"})
    assert commits == []
    done = register("orders", WITH_NOTE)
    assert (done.version, done.created, commits) == (2, True, ["orders"])
    written = AuditEvent.objects.filter(table="subjects_schemaversion", operation="INSERT").latest("id")
    assert (written.actor, written.row_id) == (system.name, str(done.version_id))
    register("others", {**ORDER, "name": "Other", "doc": "refers"}, Reference("Order", "orders", 2))
    assert commits == ["orders", "others"]
    set_config(registry="dev", subject=name("others"), by=system, level="NONE")
    assert register("others", WITH_NOTE).schema_id == done.schema_id
    owner = User.objects.create(username="watcher")
    Webhook.objects.create(
        owner=owner, name="a", url="https://example.org/", host="example.org", subject_pattern="none"
    )
    register("orders", {**WITH_NOTE, "doc": "awaited"})
    assert commits == ["orders", "others"]
    assert Context.objects.get(name=".", registry__name="dev").next_schema_id == 6


def test_a_schema_that_another_stores_meanwhile_keeps_its_id(
    commits: list[str], register: Register, monkeypatch: pytest.MonkeyPatch
) -> None:
    register("orders", ORDER)
    register("others", {**ORDER, "name": "Other"})
    check = registration.refuse_by_rules

    def elsewhere() -> None:
        register("elsewhere", WITH_NOTE)
        connection.close()

    def checked(*args: Any) -> None:
        check(*args)
        if commits == [] and current_thread() is main_thread():
            thread = Thread(target=elsewhere)
            thread.start()
            thread.join()

    monkeypatch.setattr(registration, "refuse_by_rules", checked)
    done = register("orders", WITH_NOTE)
    assert commits == ["orders"], "the second time it is known"
    assert done.schema_id == get_version(Registry.objects.get(name="dev"), name("elsewhere"), 1).schema.schema_id == 3
    assert Context.objects.get(name=".", registry__name="dev").next_schema_id == 4
