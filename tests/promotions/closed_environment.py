"""A closed environment with something of everything in it, and what of it a call changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from django.apps import apps
from django.contrib.messages import get_messages
from django.db import connection, transaction
from django.test import Client

from registry.access.roles import Actor
from registry.promotions.models import Environment
from registry.subjects.archive.restore import plan_copy
from registry.subjects.associations.requests import AssociationSpec, Resource
from registry.subjects.import_export.import_plan import RestoreOptions
from registry.subjects.lifecycle.retirement import set_version_status
from registry.subjects.models import ArchivedCopy
from registry.subjects.services import associate, delete_subject, register_version, set_config, set_mode
from registry.subjects.versions.qualified_names import SubjectName

ORDERS, SPARE, GONE = (SubjectName(".", name) for name in ("orders-value", "spare-value", "gone-value"))
#: the number of the copy of what was deleted for good
COPY = 900061
#: what a body says → what is sent for it: a plan is named by what it was made of
PLANNED: dict[str, str] = {}
#: what there is a config and a mode of: the registry, the context and a subject
SCOPES = (None, SubjectName(".", ""), ORDERS)
APPS = ("subjects", "promotions", "drift", "streams", "notifications", "audit")
TABLES = [model._meta.db_table for model in apps.get_models() if model._meta.app_label in APPS]
WRITTEN = """
SELECT relname, pg_stat_get_xact_tuples_inserted(oid) + pg_stat_get_xact_tuples_updated(oid)
    + pg_stat_get_xact_tuples_deleted(oid)
FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname = ANY(%s)
"""
V1: dict[str, Any] = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
V2 = {**V1, "fields": [*V1["fields"], {"name": "note", "type": ["null", "string"], "default": None}]}
#: what is registered in the registry of that name
REGISTERED = """
WITH place AS (SELECT id FROM subjects_registry WHERE name = %(name)s),
context AS (SELECT * FROM subjects_context WHERE registry_id IN (SELECT id FROM place)),
subject AS (SELECT * FROM subjects_subject WHERE context_id IN (SELECT id FROM context))
SELECT 'context', md5(coalesce(string_agg(context::text, '' ORDER BY id), '')) FROM context
UNION ALL SELECT 'subject', md5(coalesce(string_agg(subject::text, '' ORDER BY id), '')) FROM subject
UNION ALL SELECT 'schema', md5(coalesce(string_agg(x::text, '' ORDER BY id), '')) FROM subjects_schema x
    WHERE context_id IN (SELECT id FROM context)
UNION ALL SELECT 'version', md5(coalesce(string_agg(x::text, '' ORDER BY id), '')) FROM subjects_schemaversion x
    WHERE subject_id IN (SELECT id FROM subject)
UNION ALL SELECT 'config', md5(coalesce(string_agg(x::text, '' ORDER BY id), '')) FROM subjects_config x
    WHERE registry_id IN (SELECT id FROM place)
UNION ALL SELECT 'mode', md5(coalesce(string_agg(x::text, '' ORDER BY id), '')) FROM subjects_mode x
    WHERE registry_id IN (SELECT id FROM place)
UNION ALL SELECT 'association', md5(coalesce(string_agg(x::text, '' ORDER BY id), '')) FROM subjects_association x
    WHERE registry_id IN (SELECT id FROM place)
UNION ALL SELECT 'registry', count(*)::text FROM place
"""


def fill(by: Actor, *, mode: str = "READWRITE") -> None:
    """Put something of everything into prod, in that mode at every scope, and close it."""
    Environment.objects.filter(registry__name="prod").update(is_closed=False)
    set_mode(registry="prod", subject=None, by=by, mode="READWRITE")
    for schema in (V1, V2):
        register_version(registry="prod", subject=ORDERS, text=json.dumps(schema), by=by)
    for subject in (SPARE, GONE, SubjectName(".empty", "x")):
        register_version(registry="prod", subject=subject, text='"string"', by=by)
    delete_subject(registry="prod", subject=GONE, by=by)
    for permanent in (False, True):
        delete_subject(registry="prod", subject=SubjectName(".empty", "x"), by=by, permanent=permanent)
    ArchivedCopy.objects.filter(registry__name="prod").update(id=COPY)
    PLANNED["PLAN"] = plan_copy(registry="prod", number=COPY, ways=RestoreOptions(live=True), by=by).digest
    asked = AssociationSpec(subject=SPARE.qualified, lifecycle="WEAK")
    associate(registry="prod", resource=Resource("t", "n", "r", "topic"), specs=[asked], by=by, create=True)
    set_version_status(
        registry="prod", subject=SPARE, version=1, status="deprecated", message="use orders-value", by=by
    )
    for scope in SCOPES:
        set_config(registry="prod", subject=scope, by=by, level="BACKWARD")
    for scope in SCOPES:
        set_mode(registry="prod", subject=scope, by=by, mode=mode)
    Environment.objects.filter(registry__name="prod").update(is_closed=True)


@dataclass(frozen=True)
class Answer:
    """What a call answered, which tables it changed, and the reasons that stand in the audit of them."""

    status: int
    text: str
    changed: frozenset[str]
    reasons: frozenset[str]


@dataclass(frozen=True)
class Caller:
    """Somebody with a token for programs and a session for pages."""

    program: Client
    browser: Client
    #: what is in the tables before each call, as all calls are undone
    before: dict[str, str] = field(default_factory=dict)

    def send(self, method: str, path: str, body: Any) -> Any:
        """A page gets a form, everything else JSON."""
        if body is not None and body.get("plan") in PLANNED:
            body = {**body, "plan": PLANNED[body["plan"]]}
        if path.startswith("/ui/"):
            return self.browser.generic(method, path, urlencode(body or {}), "application/x-www-form-urlencoded")
        return self.program.generic(method, path, "" if body is None else json.dumps(body), "application/json")


def answered(caller: Caller, method: str, path: str, body: Any = None) -> Answer:
    """Send it, see what it changed in any table, and undo that. The text has what the next page says, too."""
    with transaction.atomic():
        if not caller.before:
            caller.before.update(digests(TABLES))
        last, before = _last_event(), rows_written()
        response = caller.send(method, path, body)
        written = [table for table, count in rows_written().items() if count != before[table]]
        changed = frozenset(table for table, digest in digests(written).items() if caller.before[table] != digest)
        reasons = _reasons(last)
        transaction.set_rollback(True)
    said = [str(message) for message in get_messages(response.wsgi_request)] if path.startswith("/ui/") else []
    text = "\n".join([response.content.decode(errors="replace"), *said])
    return Answer(response.status_code, text, changed, reasons)


def rows_written() -> dict[str, int]:
    """Table → how many of its rows this transaction wrote so far, those that were undone too."""
    with connection.cursor() as cursor:
        cursor.execute(WRITTEN, [TABLES])
        return dict(cursor.fetchall())


def digests(tables: Sequence[str]) -> dict[str, str]:
    """Table → a digest of its rows."""
    parts = [
        f"SELECT '{table}', md5(coalesce(string_agg(md5(t::text), '' ORDER BY md5(t::text)), '')) FROM {table} t"
        for table in tables
    ]
    return _pairs(" UNION ALL ".join(parts), {}) if parts else {}


def registered_in(name: str) -> dict[str, str]:
    """Kind → a digest of what is registered in the registry of that name."""
    return _pairs(REGISTERED, {"name": name})


def _pairs(query: str, values: dict[str, Any]) -> dict[str, str]:
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return dict(cursor.fetchall())


def _last_event() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(max(id), 0) FROM audit_auditevent")
        return int(cursor.fetchone()[0])


def _reasons(after: int) -> frozenset[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT why FROM audit_auditevent WHERE id > %s AND \"table\" LIKE 'subjects_%%'", [after]
        )
        return frozenset(why for (why,) in cursor.fetchall())


def _disconnect() -> None:
    """End this thread's own connection."""
    connection.close()


@contextmanager
def beside() -> Iterator[Callable[..., Future[Any]]]:
    """Runs calls in another thread, one after the other, with a database connection of its own."""
    with ThreadPoolExecutor(1) as pool:
        try:
            yield pool.submit
        finally:
            pool.submit(_disconnect).result()
