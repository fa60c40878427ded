"""How quick the board, the inbox and `can-promote` are with thousands of subjects, in a database made for it."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from django.conf import settings
from django.core.management import call_command
from django.db import connection, connections, transaction
from django.test import Client, override_settings
from django.urls import reverse
from psycopg.conninfo import conninfo_to_dict

from benchmarks.engines import milliseconds
from benchmarks.measurement import machine, timed
from dashboard.management.commands.prepare import make_people, make_registries
from dashboard.runtime.parts import postgres_server
from registry.access.models import User
from registry.access.roles import Actor, system_actor
from registry.access.selectors import actor_of_user
from registry.audit.context import record
from registry.formats.base import ParsedSchema
from registry.promotions.board.board_index import refresh_marks
from registry.promotions.board.readiness import can_promote, environments_in_order, work_out
from registry.promotions.board.readiness_fingerprint import bases, pairs_of
from registry.promotions.board.rows import FILTERS, board_rows
from registry.promotions.models import BoardChange, Environment, PromotionOutlook, PromotionRequest, RequestItem
from registry.promotions.plan.builder import make_plan
from registry.promotions.plan.types import PromotionSpec, SpecItem
from registry.promotions.selectors import count_waiting_for, list_requests
from registry.subjects.engine import schema_engine
from registry.subjects.models import Context, Schema, SchemaVersion, Subject
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, SubjectName
from registry.subjects.versions.schema_identity import identify

PAGE: Final = 50
BATCH: Final = 2_000
VERSIONS: Final = 3
#: of each subject how many of its versions an environment has, by the subject's number: a lag as between real ones
LAGS: Final = {"dev": (3, 3, 3, 3, 3), "staging": (3, 3, 3, 2, 2), "prod": (3, 3, 2, 2, 0)}
BOARD_GOAL: Final = 0.3
ANSWER_GOAL: Final = 0.05
#: subjects that changed between two runs of the task that keeps the marks
CHANGED: Final = 500
#: there is no Redis beside the database of its own
_CACHES: Final = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured: subjects of three environments, requests in review, calls of each row."""

    subjects: int = 10_000
    requests: int = 1_000
    repeats: int = 20


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement; `goal` in seconds for the 99th percentile, None without one."""

    what: str
    median: float
    p99: float
    goal: float | None = None
    note: str = ""


def measure(size: Size) -> Iterator[Row]:
    """The rows, as they are measured, in a database of their own."""
    with scratch_database(), override_settings(CACHES=_CACHES):
        yield from measure_here(size)


@contextmanager
def scratch_database() -> Iterator[None]:
    """Connects to a PostgreSQL that is started for the length of the block, with every migration applied."""
    with tempfile.TemporaryDirectory(prefix="schemadesk-bench-") as folder:
        (Path(folder) / "postgres").mkdir()
        with postgres_server(Path(folder) / "postgres") as address:
            parts = conninfo_to_dict(address)
            before = dict(connection.settings_dict)
            connections.close_all()
            connection.settings_dict.update(
                NAME=parts["dbname"], USER=parts["user"], PASSWORD="", HOST=parts["host"], PORT=str(parts.get("port") or ""),
                OPTIONS={},
            )  # fmt: skip
            try:
                call_command("migrate", verbosity=0)
                yield
            finally:
                connections.close_all()
                connection.settings_dict.update(before)


def measure_here(size: Size) -> Iterator[Row]:
    """The rows, in the database that is connected and empty."""
    by = fill(size)
    reader = actor_of_user(User.objects.get(username="approver"), channel="ui")
    subjects = f"{size.subjects:,} subjects × {len(LAGS)} environments"

    def row(what: str, call: Callable[[], object], goal: float | None) -> Row:
        taken = timed(lambda: call, most_calls=size.repeats, most_seconds=30)
        return Row(what, taken.median, taken.p99, goal)

    middle = SubjectName(DEFAULT_CONTEXT, _name(size.subjects // 2)).qualified
    yield row(f"the board's first page, {subjects}", lambda: board_rows(by=reader, limit=PAGE), BOARD_GOAL)
    yield row("a page in the middle", lambda: board_rows(by=reader, after=middle, limit=PAGE), BOARD_GOAL)
    yield row("a search", lambda: board_rows(by=reader, text="7 value", limit=PAGE), BOARD_GOAL)
    for name in FILTERS:
        yield row(f"filter: {name}", lambda name=name: board_rows(by=reader, filters=[name], limit=PAGE), BOARD_GOAL)  # type: ignore[misc]
    changed = min(CHANGED, size.subjects)
    BoardChange.objects.bulk_create(
        BoardChange(context_name=DEFAULT_CONTEXT, subject_name=_name(number)) for number in range(changed)
    )
    yield row(f"filter: {FILTERS[0]}, with {changed:,} subjects changed since the marks were made",
              lambda: board_rows(by=reader, filters=FILTERS[:1], limit=PAGE), BOARD_GOAL)  # fmt: skip
    refresh_marks()
    visit = _visitor()
    board = reverse("ui:environments")
    yield row("the whole page: home", lambda: visit(reverse("ui:home")), BOARD_GOAL)
    yield row("the whole page: the board", lambda: visit(board), BOARD_GOAL)
    for name in FILTERS:
        address = f"{board}?{urlencode({'show': name})}"
        yield row(f"the whole page: the board, filter: {name}", lambda address=address: visit(address), BOARD_GOAL)  # type: ignore[misc]
    assert reader.user_id is not None
    waiting = reader.user_id
    yield row(f"how many of {size.requests:,} wait, on every page", lambda: count_waiting_for(waiting), ANSWER_GOAL)
    yield row(
        f"the inbox, {size.requests:,} requests in review",
        lambda: list_requests(waiting_for=waiting, limit=20),
        BOARD_GOAL,
    )
    behind = SubjectName(DEFAULT_CONTEXT, _name(3))
    yield row("can-promote for a subject that is behind",
              lambda: can_promote(subject=behind, source="dev", target="staging", by=by), ANSWER_GOAL)  # fmt: skip
    there = SubjectName(DEFAULT_CONTEXT, _name(0))
    yield row("can-promote for one that is there",
              lambda: can_promote(subject=there, source="dev", target="staging", by=by), ANSWER_GOAL)  # fmt: skip
    yield _page_worked_out()


def _visitor() -> Callable[[str], None]:
    """Opens a page as a signed-in person gets it, from the address to the last byte; RuntimeError for any but 200."""
    client = Client(SERVER_NAME=next((host for host in settings.ALLOWED_HOSTS if host[0] not in "*.["), "localhost"))
    client.force_login(User.objects.get(username="approver"))

    def visit(address: str) -> None:
        response = client.get(address)
        if response.status_code != HTTPStatus.OK:
            raise RuntimeError(f"{address} answered {response.status_code}: what isn't shown can't be measured.")

    return visit


def _page_worked_out() -> Row:
    """The answers of one page when none is known, as after the level of a whole registry was changed."""
    PromotionOutlook.objects.all().delete()
    subjects = [row.subject for row in board_rows(by=system_actor("bench", channel="command"), limit=PAGE).rows]
    began = time.perf_counter()
    done = work_out(environments_in_order(), subjects)
    taken = time.perf_counter() - began
    return Row(f"work out the {done} answers of a page", taken, taken, None, "in the background")


# -- what is measured ---------------------------------------------------------------------------------------------------


def fill(size: Size) -> Actor:
    """Registries, subjects with versions, an answer for each that holds, and requests; gives who did it."""
    by = system_actor("bench", channel="command")
    make_registries(by=by)
    make_people(by=by)
    environments = environments_in_order()
    for begin in range(0, size.subjects, BATCH):
        with transaction.atomic():
            record(by=by, why="fill the database to measure")
            _add_subjects(environments, range(begin, min(begin + BATCH, size.subjects)))
    with transaction.atomic():
        record(by=by, why="fill the database to measure")
        _add_outlooks(environments)
        refresh_marks()
        _add_requests(environments, min(size.requests, size.subjects))
    with connection.cursor() as cursor:
        # as PostgreSQL does by itself soon after; a test's transaction can't
        cursor.execute("ANALYZE" if connection.in_atomic_block else "VACUUM (ANALYZE)")
    return by


def _name(number: int) -> str:
    return f"team-{number % 40}.orders-{number}-value"


def _schema(number: int, version: int) -> ParsedSchema:
    fields: list[dict[str, Any]] = [{"name": "id", "type": "long"}]
    fields += [{"name": f"field_{i}", "type": ["null", "string"], "default": None} for i in range(version)]
    text = json.dumps({"type": "record", "name": f"Order{number}", "namespace": "bench", "fields": fields})
    return schema_engine.parse("AVRO", text)


def _add_subjects(environments: list[Environment], numbers: range) -> None:
    schemas = {(number, version): _schema(number, version) for number in numbers for version in range(1, VERSIONS + 1)}
    for environment in environments:
        lags = LAGS[environment.registry.name]
        context, _ = Context.objects.get_or_create(registry=environment.registry, name=DEFAULT_CONTEXT)
        version_counts = {number: lags[number % len(lags)] for number in numbers}
        rows = Subject.objects.bulk_create(
            Subject(context=context, name=_name(n)) for n in numbers if version_counts[n]
        )
        subjects = dict(zip((n for n in numbers if version_counts[n]), rows, strict=True))
        keys = [(number, version) for number in subjects for version in range(1, version_counts[number] + 1)]
        first, context.next_schema_id = context.next_schema_id, context.next_schema_id + len(keys)
        context.save()
        stored = Schema.objects.bulk_create(
            _schema_row(context, first + offset, schemas[key]) for offset, key in enumerate(keys)
        )
        SchemaVersion.objects.bulk_create(
            SchemaVersion(
                subject=subjects[number], version=version, schema=row, submitted=row.canonical, created_by="bench",
                channel="command",
            )
            for (number, version), row in zip(keys, stored, strict=True)
        )  # fmt: skip


def _schema_row(context: Context, schema_id: int, schema: ParsedSchema) -> Schema:
    identity = identify("AVRO", schema.canonical)
    return Schema(
        context=context,
        schema_id=schema_id,
        schema_type="AVRO",
        canonical=schema.canonical,
        identity=identity.digest,
        fingerprint=schema.fingerprint,
        guid=identity.guid,
    )


def _add_outlooks(environments: list[Environment]) -> None:
    """An answer to every question of the board; every ninth says no."""
    pairs = pairs_of(environments)
    PromotionOutlook.objects.bulk_create(
        (
            PromotionOutlook(
                source=pairs[number].source,
                target=pairs[number].target,
                context_name=subject.context,
                subject_name=subject.subject,
                basis=basis,
                verdict="no" if index % 9 == 0 else "needs approval",
                reasons=[{"code": "approval", "sentence": "prod asks for 1 approval.", "cure": "Request it."}],
            )
            for index, (number, subject, basis) in enumerate(bases(pairs))
        ),
        batch_size=BATCH,
    )


def _add_requests(environments: list[Environment], count: int) -> None:
    """Requests in review, all with a whole plan, of as many subjects."""
    requester = User.objects.get(username="steward")
    source, target = environments[0], environments[-1]
    numbers = [number for number in range(count * 5) if number % 5 == 4][:count]
    plan = make_plan(PromotionSpec(target, (SpecItem(SubjectName(DEFAULT_CONTEXT, _name(4)), VERSIONS),), source))
    requests = PromotionRequest.objects.bulk_create(
        PromotionRequest(
            source=source, target=target, context_name=DEFAULT_CONTEXT, subject_name=_name(number),
            version_number=VERSIONS, fingerprint=_schema(number, VERSIONS).fingerprint, plan=plan.to_dict(),
            plan_hash=plan.hash, requested_by=requester, reason="to measure",
        )
        for number in numbers
    )  # fmt: skip
    RequestItem.objects.bulk_create(
        RequestItem(
            request=row, position=0, open_in=target, context_name=row.context_name, subject_name=row.subject_name,
            version_number=row.version_number, fingerprint=row.fingerprint, schema_type="AVRO",
        )
        for row in requests
    )  # fmt: skip


def cells(row: Row) -> tuple[str, str, str, str, str]:
    """A row as the table shows it."""
    goal = "" if row.goal is None else f"{milliseconds(row.goal)}{'' if row.p99 <= row.goal else ' (missed)'}"
    return row.what, milliseconds(row.median), milliseconds(row.p99), goal, row.note


def section(rows: list[Row], size: Size, note: str = "") -> str:
    """The section of the page of measurements."""
    lines = [
        f"Measured on {time.strftime('%Y-%m-%d')} with {machine()}.{' ' + note if note else ''}",
        "",
        f"What the server does for a page of {PAGE} rows, in a PostgreSQL of its own on the same machine: the query "
        f"alone, and the whole page as a signed-in person gets it, with its template. {size.subjects:,} subjects with up to {VERSIONS} versions in each of dev, staging and prod, which lag "
        "behind each other; the goals are for the 99th percentile.",
        "",
        "| what | median | 99 % | goal | |",
        "|---|---|---|---|---|",
        *(f"| {' | '.join(cells(row))} |" for row in rows),
    ]
    return "\n".join(lines)
