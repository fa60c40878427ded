"""A large registry to measure with: subjects as companies have them, registered in bulk, valid row by row.

The texts are read by the engines, so canonical forms, fingerprints, identities and GUIDs are the real ones; ids come from
the contexts' counters. The same numbers give the same data set. The audit is left out: it would be larger than the data,
and so only the owner of the tables can fill them.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Final

from django.db import ProgrammingError, connection, transaction
from django.utils import timezone

from dashboard.management.commands.prepare import make_people, make_registries
from registry.access.models import User
from registry.access.roles import Actor, system_actor
from registry.audit.context import record
from registry.drift.models import Finding, Source
from registry.errors import Conflict
from registry.formats.base import ParsedSchema, ResolvedReference
from registry.promotions.models import Environment, PromotionRequest, RequestItem
from registry.search import services as index
from registry.subjects.engine import schema_engine
from registry.subjects.models import Context, Registry, Subject
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT
from registry.subjects.versions.schema_identity import identify

#: of ten subjects in the first environment, so many are in each
SHARES: Final = {"dev": 10, "staging": 6, "prod": 4}
BATCH: Final = 500
SHARED: Final = "common.address-value"
MOST_REQUESTS: Final = 1_000
MOST_FINDINGS: Final = 1_000
NAMESPACE: Final = "bench"

_TEAMS: Final = ("billing", "catalog", "checkout", "crm", "delivery", "finance", "fraud", "inventory", "logistics",
                 "marketing", "orders", "payments", "people", "pricing", "risk", "search", "support", "warehouse")  # fmt: skip
_NOUNS: Final = ("account", "address", "agent", "basket", "batch", "booking", "campaign", "card", "carrier", "case",
                 "category", "channel", "claim", "contract", "coupon", "customer", "delivery", "device", "discount",
                 "document", "employee", "event", "file", "flight", "group", "invoice", "item", "job", "label", "lead",
                 "ledger", "location", "merchant", "message", "offer", "order", "package", "partner", "payment", "person",
                 "plan", "policy", "position", "price", "product", "profile", "project", "quote", "receipt", "refund",
                 "region", "report", "request", "return", "review", "route", "sale", "sensor", "session", "shipment",
                 "shop", "site", "stock", "store", "subscription", "supplier", "task", "tax", "team", "ticket",
                 "transaction", "transfer", "trip", "user", "vehicle", "vendor", "visit", "voucher", "wallet", "zone")  # fmt: skip
_ATTRIBUTES: Final = ("id", "name", "type", "status", "code", "amount", "currency", "email", "phone", "created_at",
                      "updated_at", "deleted_at", "count", "total", "rate", "reason", "reference", "source", "target",
                      "version", "owner", "country", "city", "postal_code", "street", "latitude", "longitude", "start",
                      "end", "duration", "weight", "height", "width", "length", "colour", "size", "url", "hash", "token",
                      "locale", "title", "description", "comment", "priority", "score", "level", "quantity", "unit",
                      "limit", "balance", "iban", "vat_number", "birth_date", "first_name", "last_name", "gender",
                      "language", "enabled", "verified", "expires_at")  # fmt: skip
_EVERYWHERE: Final = ("id", "created_at", "updated_at", "status", "email", "amount", "currency", "name")
_TYPES: Final[tuple[Any, ...]] = (
    "string", "string", "string", ["null", "string"], ["null", "string"], "long", "int", "double", "boolean",
    {"type": "long", "logicalType": "timestamp-millis"}, {"type": "int", "logicalType": "date"},
    {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2},
    {"type": "array", "items": "string"}, {"type": "map", "values": "string"},
    {"type": "string", "logicalType": "uuid"},
)  # fmt: skip
_TAGS: Final = ("PII", "GDPR", "SENSITIVE", "FINANCIAL", "PUBLIC", "INTERNAL")
_NOTES: Final = ("The truth of the warehouse.", "Relevant to GDPR: holds personal data.", "Owned by platform.")


@dataclass(frozen=True, slots=True)
class Size:
    """How much there is: subjects in all environments, versions of each, fields of the largest and on average."""

    subjects: int = 100_000
    versions: int = 2
    fields_max: int = 2_000
    fields_mean: int = 50


def field_count(number: int, size: Size) -> int:
    """The fields of a subject: one in 200 has the most, one in ten three times the mean, the rest what is left."""
    if number % 200 == 199:
        return size.fields_max
    if number % 10 == 5:
        return min(3 * size.fields_mean, size.fields_max)
    # what is left of the mean, over the 179 of 200 that are neither
    rest = (200 * size.fields_mean - size.fields_max - 20 * min(3 * size.fields_mean, size.fields_max)) / 179
    middle = max(2, int(rest))
    return random.Random(number).randint(max(1, middle // 2), max(2, middle + middle // 2))  # noqa: S311  no secret


def name_of(number: int) -> str:
    """The subject's name."""
    noun = _NOUNS[number % len(_NOUNS)]
    return f"{_TEAMS[number % len(_TEAMS)]}.{noun}-{number}-value"


def text_of(number: int, version: int, size: Size) -> str:
    """The Avro text of a version: the later one has an optional field more."""
    rng = random.Random(number)  # noqa: S311  no secret
    count = field_count(number, size)
    noun = _NOUNS[number % len(_NOUNS)]
    fields: list[dict[str, Any]] = []
    taken = set[str]()
    while len(fields) < count:
        name = _field_name(rng, number, noun)
        if name in taken:
            name = f"{name}_{len(fields)}"
        taken.add(name)
        if not number % 7 and not fields and count > 4:
            inner = [{"name": number_or_name, "type": "string"} for number_or_name in ("street", "city", "postal_code")]
            fields.append({"name": "home", "type": {"type": "record", "name": "Home", "fields": inner}})
            count -= len(inner)
            continue
        fields.append(_field(rng, name, noun))
    if is_referring(number):
        fields.append({"name": "address", "type": f"{NAMESPACE}.Address"})
    fields += [
        {"name": f"added_in_{number_or_name}", "type": ["null", "string"], "default": None}
        for number_or_name in range(2, version + 1)
    ]
    root: dict[str, Any] = {
        "type": "record",
        "name": f"{noun.title()}{number}",
        "namespace": NAMESPACE,
        "fields": fields,
    }
    return json.dumps({**root, "doc": f"What is known of a {noun}."} if number % 3 == 0 else root)


def _field_name(rng: random.Random, number: int, noun: str) -> str:
    kind = rng.random()
    if kind < 0.15:
        return rng.choice(_EVERYWHERE)
    if kind < 0.92:
        return f"{rng.choice((noun, *rng.choices(_NOUNS, k=2)))}_{rng.choice(_ATTRIBUTES)}"
    return f"legacy_{rng.choice(_ATTRIBUTES)}_{number}"


def _field(rng: random.Random, name: str, noun: str) -> dict[str, Any]:
    field: dict[str, Any] = {"name": name, "type": rng.choice(_TYPES)}
    chance = rng.random()
    if chance < 0.35:
        field["doc"] = f"The {name.replace('_', ' ')} of the {noun}."
    elif chance < 0.36:
        field["doc"] = f"Relevant to GDPR: the {name.replace('_', ' ')}."
    if rng.random() < 0.01:
        field["confluent:tags"] = [rng.choice(_TAGS)]
    return field


def is_referring(number: int) -> bool:
    """Whether the subject refers to the shared one."""
    return number % 50 == 7


# -- filling --------------------------------------------------------------------------------------------------------------


def fill(size: Size, say: Callable[[str], object] = lambda _: None, *, indexed: bool = True) -> Actor:
    """Fills an empty database as its owner, and indexes it; gives who did it. Raises Conflict where something is there."""
    if Subject.objects.exists():
        raise Conflict("There are subjects in this database: fill an empty one.")
    by = system_actor("bench", channel="command")
    with transaction.atomic():
        record(by=by, why="fill the database to measure")
        make_registries(by=by)
        make_people(by=by)
    began = time.perf_counter()
    with _unaudited():
        _Filling(size).run(say)
    _analyze()
    say(f"registered in {time.perf_counter() - began:,.0f} s")
    if indexed:
        index_all(say)
    return by


def index_all(say: Callable[[str], object] = lambda _: None) -> tuple[int, float]:
    """Works off the queue as the task does; gives how many subjects, and in how many seconds."""
    began, done = time.perf_counter(), 0
    while count := index.index_stale():
        done += count
        say(f"{done:,} subjects indexed after {time.perf_counter() - began:,.0f} s")
    taken = time.perf_counter() - began
    _analyze()
    return done, taken


def _analyze() -> None:
    with connection.cursor() as cursor:
        # as PostgreSQL does by itself soon after; a test's transaction can't
        cursor.execute("ANALYZE" if connection.in_atomic_block else "VACUUM (ANALYZE)")


@contextmanager
def _unaudited() -> Iterator[None]:
    """One transaction in which the tables that are filled write nothing to the audit. Raises Conflict for who may not."""
    tables = ("subjects_subject", "subjects_schema", "subjects_schemaversion", "subjects_schemareference",
              "subjects_subjectnote", "subjects_context", "promotions_promotionrequest", "drift_finding", "drift_source")  # fmt: skip
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT tgrelid::regclass::text FROM pg_trigger WHERE tgname = 'audit' AND tgrelid = ANY(%s::regclass[])",
            [list(tables)],
        )
        audited = [table for (table,) in cursor.fetchall()]
        try:
            for table in audited:
                cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER audit")
        except ProgrammingError as error:
            raise Conflict("Only the owner of the tables may fill them: set DATABASE_URL to the owner's.") from error
        # each statement's rows are checked at its end: of all at once there would be millions of pending checks
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        yield
        for table in audited:
            cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER audit")


@dataclass
class _Place:
    """An environment's context with the next numbers."""

    context: Context
    next_id: int


class _Filling:
    """The rows, in the order in which they refer to each other; keys are counted here and the sequences set after."""

    def __init__(self, size: Size) -> None:
        self.size = size
        self.now: datetime = timezone.now()
        self.places = {
            name: _Place(
                Context.objects.get_or_create(registry=Registry.objects.get(name=name), name=DEFAULT_CONTEXT)[0], 1
            )
            for name in SHARES
        }
        self.keys = dict.fromkeys(("subject", "schema", "schemaversion"), 0)
        self.targets: dict[str, int] = {}
        self.last: tuple[int, list[tuple[str, ParsedSchema]]] = (-1, [])
        self.shared = schema_engine.parse("AVRO", json.dumps({
            "type": "record", "name": "Address", "namespace": NAMESPACE,
            "fields": [{"name": name, "type": "string"} for name in ("street", "city", "postal_code", "country")],
        }))  # fmt: skip

    def run(self, say: Callable[[str], object]) -> None:
        """All of it."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT setval(pg_get_serial_sequence('subjects_subject', 'id'), 1, false)")
        shares = sum(SHARES.values())
        first = max(1, self.size.subjects * max(SHARES.values()) // shares)
        most = first * (self.size.versions + 1) + 10
        for environment in self.places.values():
            environment.context.next_schema_id = most
            environment.context.save()
        self._copy([self._rows(-1, name) for name in self.places])
        numbers = iter(range(first))
        done = 0
        while batch := list(islice(numbers, BATCH)):
            self._copy([self._rows(number, name) for number in batch for name in self._holders(number)])
            done += len(batch)
            if done % 10_000 < BATCH:
                say(f"{done:,} of {first:,} subjects of the first environment")
        self._finish()

    def _holders(self, number: int) -> list[str]:
        return [name for name, share in SHARES.items() if number % 10 < share]

    def _rows(self, number: int, registry: str) -> dict[str, list[tuple[Any, ...]]]:
        """The rows of one subject in one environment; -1 is the shared one."""
        environment = self.places[registry]
        rows: dict[str, list[tuple[Any, ...]]] = {"subject": [], "schema": [], "schemaversion": [], "schemareference": [], "subjectnote": []}  # fmt: skip
        name = SHARED if number < 0 else name_of(number)
        subject = self._next("subject")
        rows["subject"].append((subject, environment.context.pk, name, self.now))
        for version, (text, parsed) in enumerate(self._schemas(number), start=1):
            identity = identify("AVRO", parsed.canonical, parsed.references)
            schema, row = self._next("schema"), self._next("schemaversion")
            rows["schema"].append((
                schema, environment.context.pk, environment.next_id, "AVRO", parsed.canonical, identity.digest, parsed.fingerprint,
                identity.guid, False, self.now,
            ))  # fmt: skip
            environment.next_id += 1
            rows["schemaversion"].append((row, subject, version, schema, text, self.now, "bench", "command", False))
            if number < 0:
                self.targets[registry] = row
            elif is_referring(number):
                rows["schemareference"].append((schema, 0, f"{NAMESPACE}.Address", SHARED, self.targets[registry]))
        if number >= 0 and number % 20 == 3:
            tags = sorted({_TAGS[number % len(_TAGS)], "team-" + _TEAMS[number % len(_TEAMS)]})
            rows["subjectnote"].append((subject, tags, _NOTES[number % len(_NOTES)], self.now, "bench"))
        return rows

    def _next(self, table: str) -> int:
        self.keys[table] += 1
        return self.keys[table]

    def _schemas(self, number: int) -> Sequence[tuple[str, ParsedSchema]]:
        """The texts of a subject's versions, read; those of the same number are read once for all environments."""
        if number < 0:
            return [(self.shared.text, self.shared)]
        if self.last[0] != number:
            texts = [text_of(number, version, self.size) for version in range(1, self.size.versions + 1)]
            references = (ResolvedReference(f"{NAMESPACE}.Address", SHARED, 1, self.shared.text),)
            used = references if is_referring(number) else ()
            self.last = (number, [(text, schema_engine.parse("AVRO", text, used)) for text in texts])
        return self.last[1]

    def _copy(self, subjects: Sequence[dict[str, list[tuple[Any, ...]]]]) -> None:
        for table, columns in _COLUMNS.items():
            rows = [row for subject in subjects for row in subject[table]]
            if not rows:
                continue
            with connection.cursor() as cursor, cursor.copy(f"COPY subjects_{table} ({columns}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)

    def _finish(self) -> None:
        """Requests and findings of some of them, and the sequences where the counted keys end."""
        with connection.cursor() as cursor:
            for table, last in self.keys.items():
                cursor.execute(f"SELECT setval(pg_get_serial_sequence('subjects_{table}', 'id'), %s)", [last])
        subjects = Subject.objects.filter(context=self.places["staging"].context).exclude(name=SHARED).order_by("pk")
        names = list(subjects.values_list("name", flat=True)[:MOST_REQUESTS])
        self._requests(names)
        self._findings(names[:MOST_FINDINGS])

    def _requests(self, names: Sequence[str]) -> None:
        source, target = (
            Environment.objects.get(registry__name="staging"),
            Environment.objects.get(registry__name="prod"),
        )
        requests = PromotionRequest.objects.bulk_create(
            PromotionRequest(
                source=source, target=target, context_name=DEFAULT_CONTEXT, subject_name=name, version_number=1,
                fingerprint="0" * 64, plan={"steps": [], "checks": []}, plan_hash="0" * 64,
                requested_by=User.objects.get(username="steward"), reason="to measure", state="withdrawn",
                closed_at=self.now,
            )
            for name in names
        )  # fmt: skip
        RequestItem.objects.bulk_create(
            RequestItem(
                request=row, position=0, context_name=row.context_name, subject_name=row.subject_name, version_number=1,
                fingerprint=row.fingerprint, schema_type="AVRO",
            )
            for row in requests
        )  # fmt: skip

    def _findings(self, names: Sequence[str]) -> None:
        source = Source.objects.create(
            registry=self.places["staging"].context.registry, kind="registry", name="staging", created_by="bench"
        )
        Finding.objects.bulk_create(
            Finding(
                source=source, fingerprint=f"{number:064x}", rule="bench", severity="notice", sentence="To measure.",
                remedy="None.", location=name, subject_name=name, evidence={}, first_seen=self.now, last_seen=self.now,
            )
            for number, name in enumerate(names)
        )  # fmt: skip


_COLUMNS: Final = {
    "subject": "id, context_id, name, created_at",
    "schema": "id, context_id, schema_id, schema_type, canonical, identity, fingerprint, guid, imported, created_at",
    "schemaversion": "id, subject_id, version, schema_id, submitted, created_at, created_by, door, imported",
    "schemareference": "schema_id, position, name, subject_name, target_id",
    "subjectnote": "subject_id, tags, doc, updated_at, updated_by",
}
