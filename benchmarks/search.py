"""How quick the search is over a hundred thousand subjects and five million fields, in a database made for it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, fields
from typing import Any, Final

from django.conf import settings
from django.test import Client, override_settings
from django.urls import reverse

from benchmarks import dataset
from benchmarks.board import scratch_database
from benchmarks.engines import milliseconds
from benchmarks.measurement import machine
from registry.access.models import RoleGrant, User
from registry.access.roles import Actor
from registry.access.selectors import actor_of_user
from registry.search.models import IndexedField, IndexedSubject
from registry.search.selectors import find_pasted, search, search_group

GOAL: Final = 0.1
HELD: Final = "what is there"
#: there is no Redis beside the database of its own
_CACHES: Final = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
#: queries as people write them: words of all kinds, each operator, several together, misspelt ones, such as nothing fits
QUERIES: Final = (
    "orders",
    "customer",
    "customer email",
    "billing invoice-1000",
    "id",
    "gdpr",
    "field:email",
    "field:customer_email",
    "field:id",
    "field:home.city",
    "field:email type:string",
    "field:amount type:decimal",
    "field:email doc:gdpr",
    "field:status tag:pii",
    "field:email drift:yes",
    "field:email ref:address",
    "type:string",
    "type:decimal",
    'doc:"relevant to gdpr"',
    "tag:pii",
    "tag:team-billing field:iban",
    "compat:BACKWARD",
    "compat:NONE",
    "drift:yes",
    "ref:Address",
    "id:1234",
    "field:custmer_emial",
    "invioce",
    "nothing-is-called-this",
    "field:a",
)


@dataclass(frozen=True, slots=True)
class Size(dataset.Size):
    """How much is measured, besides how much there is: `repeats` of each query, after one that isn't counted."""

    repeats: int = 20


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement; `goal` in seconds for the 95th percentile, None without one."""

    what: str
    p50: float
    p95: float
    goal: float | None = None
    note: str = ""


def measure(size: Size, say: Callable[[str], object] = lambda _: None, *, here: bool = False) -> Iterator[Row]:
    """The rows, as they are measured, in a database of their own; or in the one that is connected and was filled."""
    with nullcontext() if here else scratch_database(), override_settings(CACHES=_CACHES):
        if not here:
            dataset.fill(size, say, indexed=False)
            done, taken = dataset.index_all(say)
            yield Row(f"index {done:,} subjects, one worker", taken / max(1, done), taken / max(1, done), None, f"{taken:,.0f} s in all")  # fmt: skip
        yield from measure_here(size)


def measure_here(size: Size) -> Iterator[Row]:
    """The rows, in the database that is connected and filled."""
    yield Row(HELD, 0.0, 0.0, None, what_is_there())
    reader = actor_of_user(User.objects.get(username="reader"), channel="ui")
    for query in QUERIES:
        results = search(query, by=reader)
        counts = ", ".join(f"{group.total:,}{'+' * group.more} {group.name}" for group in results.groups if group.total)
        yield _row(f"`{query}`", lambda query=query: search(query, by=reader), size, counts or "nothing")  # type: ignore[misc]
    yield _row("a later page of `field:email`", _later_page(reader), size)
    few = _limited("bench-few", "billing.*")
    one = _limited("bench-one", dataset.name_of(0))
    for actor, who in ((few, "one team of 18 is readable"), (one, "one subject is readable")):
        for query in ("field:email", "field:id", "orders"):
            yield _row(f"`{query}`, {who}", lambda query=query, actor=actor: search(query, by=actor), size)  # type: ignore[misc]
    text = dataset.text_of(3, 1, size)
    yield _row("a pasted schema that is there", lambda: find_pasted(text, by=reader), size)
    other = dataset.text_of(4, 1, size).replace("_id", "_ident", 3)
    yield _row("a pasted schema that is near others", lambda: find_pasted(other, by=reader), size)
    visit = _visitor()
    for query in ("orders", "field:email", "customer email"):
        yield _row(f"the whole page: `{query}`", lambda query=query: visit(query), size)  # type: ignore[misc]


def _row(what: str, call: Callable[[], object], size: Size, note: str = "") -> Row:
    call()
    taken = []
    for _ in range(size.repeats):
        began = time.perf_counter()
        call()
        taken.append(time.perf_counter() - began)
    ordered = sorted(taken)
    return Row(what, ordered[len(ordered) // 2], ordered[math.ceil(0.95 * len(ordered)) - 1], GOAL, note)


def _later_page(reader: Actor) -> Callable[[], object]:
    cursor = ""
    for _ in range(5):
        cursor = search_group("field:email", "fields", by=reader, cursor=cursor).cursor or cursor
    return lambda: search_group("field:email", "fields", by=reader, cursor=cursor)


def _limited(name: str, pattern: str) -> Actor:
    """A reader of the subjects that a pattern names."""
    user, _ = User.objects.get_or_create(username=name)
    RoleGrant.objects.get_or_create(user=user, role="reader", registry="", subject_pattern=pattern)
    return actor_of_user(user, channel="ui")


def _visitor() -> Callable[[str], None]:
    """Opens the page as a signed-in person gets it; RuntimeError for any answer but 200."""
    client = Client(SERVER_NAME=next((host for host in settings.ALLOWED_HOSTS if host[0] not in "*.["), "localhost"))
    client.force_login(User.objects.get(username="reader"))

    def visit(query: str) -> None:
        response = client.get(reverse("ui:search"), {"q": query})
        if response.status_code != 200:
            raise RuntimeError(
                f"The search for {query} answered {response.status_code}: what isn't shown can't be measured."
            )

    return visit


def cells(row: Row) -> tuple[str, str, str, str, str]:
    """A row as the table shows it."""
    goal = "" if row.goal is None else f"{milliseconds(row.goal)}{'' if row.p95 <= row.goal else ' (missed)'}"
    return row.what, milliseconds(row.p50), milliseconds(row.p95), goal, row.note


def section(rows: list[Row], note: str = "") -> str:
    """The section of the page of measurements."""
    size_text = next(row.note for row in rows if row.what == HELD)
    lines = [
        f"Measured on {time.strftime('%Y-%m-%d')} with {machine()}.{' ' + note if note else ''}",
        "",
        f"What the server does for a query, all its groups together, in a PostgreSQL of its own on the same machine: {size_text}."
        " The goals are for the 95th percentile.",
        "",
        "| what | median | 95 % | goal | |",
        "|---|---|---|---|---|",
        *(f"| {' | '.join(cells(row))} |" for row in rows if row.what != HELD),
    ]
    return "\n".join(lines)


def what_is_there() -> str:
    """How much is in the index, in words."""
    return f"{IndexedSubject.objects.count():,} subjects with {IndexedField.objects.count():,} fields"


def size_of(options: Mapping[str, Any]) -> Size:
    """The size that a command's options say."""
    return Size(**{option.name: options[option.name] for option in fields(Size)})
