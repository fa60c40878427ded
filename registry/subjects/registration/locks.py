"""The order of locks, the same everywhere to avoid deadlocks.

role → policy (configs and modes of a registry) → subject → referenced versions by id → the context's counter.

The change guard (registry/subjects/policy/change_guard.py) is called under the policy lock; closing an environment
takes that lock exclusively. With break-glass, the guard also locks the break-glass row. A registration calls the guard
only if it has something to write, so an existing subject is locked first; other changes call it before they lock a
subject. So two changes of one person to one subject may deadlock; they are retried like any deadlock.

A permanent deletion takes the policy lock exclusively, so it is alone in its registry: it also deletes a subject's
config and mode, and schemas that a registration of another subject may be about to use.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

from django.db import DatabaseError, connection, transaction
from django.db.backends.utils import CursorWrapper
from django.utils import timezone
from psycopg.errors import DeadlockDetected, ForeignKeyViolation, SerializationFailure

from registry.access.roles import Actor
from registry.audit.context import RECORDING, recording
from registry.errors import OperationNotPermitted
from registry.subjects.models import Context, Registry, SchemaVersion, Subject
from registry.subjects.versions.lookup import among, columns_of, row_of, width_of
from registry.subjects.versions.qualified_names import SubjectName

#: first key of the advisory locks for a registry's configs and modes, whose rows may not exist yet
POLICY_LOCK = 7201
RETRIES = 3
#: the end of a context's counter, which ids are below
MAX_SCHEMA_ID: Final = 2**31 - 1
_P = ParamSpec("_P")
_R = TypeVar("_R")


@contextmanager
def pipelined() -> Iterator[None]:
    """Send the statements of this block in one round trip; results are available after it.

    Raises the error of the first statement that fails; later ones aren't executed.
    """
    with connection.wrap_database_errors, connection.connection.pipeline():
        yield


def committing(subject: str) -> AbstractContextManager[None]:
    """Send the statements of this block with the commit in one round trip, if all that they do is a registration.

    The transaction, which is the outermost, must have changed nothing but that subject's versions; otherwise it is
    rolled back with SerializationFailure.
    """
    return connection.committing(subject)  # type: ignore[attr-defined, no-any-return]  # of dashboard/database/base.py


def is_outermost() -> bool:
    """Return whether the end of this transaction commits it."""
    return len(connection.atomic_blocks) == 1


def lock_policy(registry: Registry, *, exclusive: bool = False) -> None:
    """Lock a registry's configs, modes, subjects and schemas until the transaction ends; exclusive for changes."""
    shared = "" if exclusive else "_shared"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_advisory_xact_lock{shared}(%s, %s)", [POLICY_LOCK, registry.pk])


def lock_context(registry: Registry, name: str) -> Context:
    """Return the context's row, created if new. It isn't locked: only `take_schema_id` locks it, last."""
    context, _ = Context.objects.get_or_create(registry=registry, name=name)
    return context


_HOLD: Final = f"""
WITH told AS MATERIALIZED (SELECT {RECORDING}),
policy AS MATERIALIZED (
    SELECT pg_advisory_xact_lock_shared({POLICY_LOCK}, %(registry)s::integer) FROM told),
place AS MATERIALIZED (
    SELECT c.* FROM policy CROSS JOIN subjects_context c
    WHERE c.registry_id = %(registry)s::bigint AND c.name = %(context)s::text),
held AS MATERIALIZED (
    SELECT s.* FROM place JOIN subjects_subject s ON s.context_id = place.id
    WHERE s.name = %(subject)s::text FOR UPDATE OF s)
SELECT {columns_of(Context, "c")}, {columns_of(Subject, "s")}
FROM policy LEFT JOIN place c ON true LEFT JOIN held s ON true
"""  # noqa: S608


def hold_subject(cursor: CursorWrapper, registry: Registry, subject: SubjectName, *, by: Actor, why: str) -> None:
    """Record who changes it and why, then lock the policy and the subject, for `held_subject`.

    One statement: it locks the row last, after the policy.
    """
    values: dict[str, Any] = {
        **recording(by, why),
        "registry": registry.pk,
        "context": subject.context,
        "subject": subject.subject,
    }
    cursor.execute(_HOLD, values)


def held_subject(cursor: CursorWrapper) -> Subject | None:
    """Return the locked subject with its context; None if it doesn't exist, or didn't before the policy was locked."""
    row = cursor.fetchone()
    place, held = row[: width_of(Context)], row[width_of(Context) :]
    if held[0] is None:
        return None
    subject_row = row_of(Subject, held)
    subject_row.context = row_of(Context, place)
    return subject_row


_MAKE: Final = f"""
INSERT INTO subjects_subject AS s (context_id, name, created_at) VALUES (%s, %s, %s)
ON CONFLICT DO NOTHING RETURNING {columns_of(Subject, "s")}
"""  # noqa: S608


def lock_subject(context: Context, name: str) -> Subject:
    """Return the subject's row, created if new, locked until the transaction ends; the policy lock keeps it.

    One statement if it is new, otherwise two.
    """
    with connection.cursor() as cursor:
        cursor.execute(_MAKE, [context.pk, name, timezone.now()])
        row = cursor.fetchone()
    subject_row = row_of(Subject, row) if row else Subject.objects.select_for_update().get(context=context, name=name)
    subject_row.context = context
    return subject_row


def lock_subjects(registry: Registry, names: Collection[SubjectName]) -> dict[SubjectName, Subject]:
    """Return the existing subjects, with their contexts, locked in a fixed order until the transaction ends."""
    rows = Subject.objects.filter(among(names, ""), context__registry=registry).select_related("context")
    locked_rows = rows.select_for_update(of=("self",)).order_by("pk")
    return {SubjectName(row.context.name, row.name): row for row in locked_rows}


_MAKE_SEVERAL: Final = f"""
INSERT INTO subjects_subject AS s (context_id, name, created_at)
SELECT w.context_id, w.name, %s FROM unnest(%s::bigint[], %s::text[]) AS w(context_id, name)
RETURNING {columns_of(Subject, "s")}
"""  # noqa: S608


def make_subjects(registry: Registry, names: Collection[SubjectName]) -> dict[SubjectName, Subject]:
    """Create subjects, and their contexts if new; the caller holds the registry's exclusive lock."""
    if not names:
        return {}
    contexts, made = _contexts(registry, {name.context for name in names}), {}
    with connection.cursor() as cursor:
        pairs = [contexts[name.context].pk for name in names], [name.subject for name in names]
        cursor.execute(_MAKE_SEVERAL, [timezone.now(), *pairs])
        by_pk = {row.pk: row for row in contexts.values()}
        for values in cursor.fetchall():
            row = row_of(Subject, values)
            row.context = by_pk[row.context_id]
            made[SubjectName(row.context.name, row.name)] = row
    return made


def _contexts(registry: Registry, names: set[str]) -> dict[str, Context]:
    contexts = {row.name: row for row in Context.objects.filter(registry=registry, name__in=names)}
    return contexts | {name: lock_context(registry, name) for name in sorted(names - contexts.keys())}


def lock_referenced(rows: Iterable[SchemaVersion]) -> dict[int, SchemaVersion]:
    """Return the live rows among these, locked against deletion, by primary key."""
    ids = sorted({row.pk for row in rows})
    if not ids:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM subjects_schemaversion WHERE id = ANY(%s) AND deleted_at IS NULL ORDER BY id FOR SHARE",
            [ids],
        )
        alive = {pk for (pk,) in cursor.fetchall()}
    return {row.pk: row for row in rows if row.pk in alive}


def take_schema_id(context: Context) -> int:
    """Return the context's next id. It locks the counter until the transaction ends, so call it last.

    Raises OperationNotPermitted if there is none.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE subjects_context SET next_schema_id = next_schema_id + 1 WHERE id = %s AND next_schema_id < %s"
            " RETURNING next_schema_id - 1",
            [context.pk, MAX_SCHEMA_ID],
        )
        row = cursor.fetchone()
    if row is None:
        raise no_schema_id(context)
    return int(row[0])


def no_schema_id(context: Context) -> OperationNotPermitted:
    """Return the error for a context whose counter of ids has reached its end."""
    return OperationNotPermitted(
        f"Context {context.name} has no next schema id: an import assigned the last ids before 2^31-1. Register the schema "
        "with an explicit id in mode IMPORT, or use another context."
    )


def lock_ids(context: Context, cursor: CursorWrapper | None = None) -> None:
    """Lock the context's counter until the transaction ends, so that no id is assigned meanwhile. Call it last.

    Another statement may follow over the same cursor in a pipeline.
    """
    with nullcontext(cursor) if cursor else connection.cursor() as own:
        own.execute("SELECT 1 FROM subjects_context WHERE id = %s FOR UPDATE", [context.pk])


_RAISE: Final = """
WITH held AS MATERIALIZED (SELECT id FROM subjects_context WHERE id = ANY(%(contexts)s::bigint[]) ORDER BY id FOR UPDATE)
UPDATE subjects_context c SET next_schema_id = w.following
FROM held JOIN unnest(%(contexts)s::bigint[], %(following)s::bigint[]) AS w(id, following) USING (id)
WHERE c.id = held.id AND c.next_schema_id < w.following
"""


def pass_schema_ids(newest: Mapping[int, int]) -> None:
    """Raise the counters above ids that an import assigned: primary key of a context → id.

    Locks the counters as `lock_ids` does, so call it last.
    """
    column = Context._meta.get_field("next_schema_id")
    following = [column.get_db_prep_save(schema_id + 1, connection) for schema_id in newest.values()]
    with connection.cursor() as cursor:
        cursor.execute(_RAISE, {"contexts": list(newest), "following": following})


def retry_deadlocks(service: Callable[_P, _R]) -> Callable[_P, _R]:
    """Retry a service if PostgreSQL aborted its transaction to resolve a deadlock, or a row that it uses was deleted."""

    @wraps(service)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        for attempt in range(RETRIES):
            try:
                return service(*args, **kwargs)
            except DatabaseError as error:
                if not _ended_by_deadlock(error):
                    raise
            time.sleep(0.01 * 2**attempt)
        return service(*args, **kwargs)

    return run


def _ended_by_deadlock(error: BaseException) -> bool:
    broken = isinstance(error.__cause__, DeadlockDetected | SerializationFailure | ForeignKeyViolation)
    return broken and not connection.in_atomic_block


def retried(service: Callable[_P, _R]) -> Callable[_P, _R]:
    """Run a service in one transaction, and retry it if PostgreSQL aborted that to resolve a deadlock."""
    return retry_deadlocks(transaction.atomic(service))
