"""The chain of seals over the audit: each event's seal is the SHA-256 of the one before it and of the event's own text.

An event that is changed, removed or inserted later breaks the chain from there on. Events get their position in the chain
after their transaction has committed, in the order in which the sealing finds them; the others are the unsealed tail.

A chain without its last events is still valid link by link. So the sealing function records the end of the chain
(`ChainHead`) in a row that the application's role can't write, and continues from that record: missing events leave a gap
that no later sealing closes. The owner of the database can rewrite the record too. So every sealing writes the head to the
worker's log, and `verify` compares the chain with heads that were stored elsewhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import connection, transaction

from registry.audit.models import AuditEvent, ChainHead

BATCH = 5_000

#: The text that an event's seal covers. PostgreSQL has only one text for equal jsonb values.
EVENT_TEXT = (
    "jsonb_build_array(id, (extract(epoch FROM at) * 1000000)::bigint, transaction_id, actor, door, origin, why,"
    ' operation, "table", row_id, before, after)::text'
)
SEAL_FUNCTION = f"""
CREATE OR REPLACE FUNCTION audit_seal(most integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    event record; place bigint; head text; number integer := 0; has_record boolean;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('schemadesk: the chain of the audit'));
    SELECT position, seal INTO place, head FROM audit_chainhead WHERE id = 1;
    has_record := FOUND;
    IF NOT has_record THEN
        SELECT position, seal INTO place, head FROM audit_auditevent
            WHERE position IS NOT NULL ORDER BY position DESC LIMIT 1;
    END IF;
    FOR event IN SELECT id, {EVENT_TEXT} AS text FROM audit_auditevent
        WHERE position IS NULL ORDER BY id LIMIT most
    LOOP
        place := coalesce(place, 0) + 1;
        head := encode(sha256(convert_to(coalesce(head, '') || event.text, 'UTF8')), 'hex');
        UPDATE audit_auditevent SET position = place, seal = head WHERE id = event.id;
        number := number + 1;
    END LOOP;
    IF number > 0 AND has_record THEN
        UPDATE audit_chainhead SET position = place, seal = head, sealed_at = clock_timestamp() WHERE id = 1;
    ELSIF number > 0 AND place = number THEN
        INSERT INTO audit_chainhead (id, position, seal, sealed_at) VALUES (1, place, head, clock_timestamp());
    END IF;
    RETURN number;
END $$;
REVOKE ALL ON FUNCTION audit_seal(integer) FROM PUBLIC;
"""  # noqa: S608  of constants


@dataclass(frozen=True)
class Head:
    """The last link of the chain; position 0 and no seal if nothing is sealed yet."""

    position: int
    seal: str

    def __str__(self) -> str:
        return f"{self.position}:{self.seal}"


@dataclass(frozen=True)
class Chain:
    """The result of a verification: `problem` is empty if every seal is right; `unsealed` counts the newer events."""

    head: Head
    unsealed: int
    oldest_unsealed: datetime | None
    problem: str = ""


@transaction.atomic
def seal_events(most: int = BATCH) -> int:
    """Seal up to `most` committed events; return how many. Concurrent calls wait for each other."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT audit_seal(%s)", [most])
        return int(cursor.fetchone()[0])


@dataclass(frozen=True)
class Link:
    """The input of an event's seal: the SHA-256 of `before` followed by `text`, in UTF-8."""

    before: str
    text: str


def links_of(events: Collection[int]) -> dict[int, Link]:
    """Return the inputs of these events' seals, without unsealed events; one query."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT id, {EVENT_TEXT}, (SELECT seal FROM audit_auditevent AS before"  # noqa: S608  a constant
            " WHERE before.position = audit_auditevent.position - 1) FROM audit_auditevent"
            " WHERE id = ANY(%s) AND position IS NOT NULL",
            [list(events)],
        )
        return {number: Link(before or "", text) for number, text, before in cursor.fetchall()}


def head() -> Head:
    """Return the last link."""
    row = AuditEvent.objects.exclude(position=None).order_by("-position").first()
    return Head(row.position or 0, row.seal) if row else Head(0, "")


def recorded_head() -> Head | None:
    """Return the recorded end of the chain; None if nothing was ever sealed."""
    row = ChainHead.objects.first()
    return Head(row.position, row.seal) if row else None


def truncation() -> str:
    """Return the contradiction between the last link and the record, as a sentence; "" if they agree.

    Reads two rows.
    """
    recorded = recorded_head()
    return _against_record(head(), recorded, recorded_head())


def tail() -> tuple[int, datetime | None]:
    """Return the number of unsealed events, and the time of the oldest; two queries of a partial index."""
    unsealed = AuditEvent.objects.filter(position=None).order_by("id")
    return unsealed.count(), unsealed.values_list("at", flat=True).first()


def verify(*expected: Head) -> Chain:
    """Compute every seal again and compare; `expected` are heads that were noted earlier.

    Also compares the last link with the record of the sealing, to notice events missing at the end.
    """
    number, oldest = tail()
    recorded = recorded_head()
    last, problem = _walk({noted.position: noted.seal for noted in expected if noted.position})
    problem = problem or _contradiction(expected)
    return Chain(last, number, oldest, problem or _against_record(last, recorded, recorded_head()))


def _against_record(last: Head, before: Head | None, after: Head | None) -> str:
    """Return what is wrong with the end of the chain, by the records before and after it was read; "" if nothing."""
    if before is None:
        if after is None and last.position:
            return f"The record of the chain's head was removed, although {last.position} events are sealed."
        return ""
    if last.position < before.position:
        missing = before.position - last.position
        return (
            f"The chain ends at position {last.position}, but {before.position} events were sealed. The last"
            f" {missing} {'is' if missing == 1 else 'are'} missing."
        )
    if last.position == before.position and last.seal != before.seal:
        return f"The seal at position {last.position} differs from the recorded one."
    if after is None or last.position > after.position:
        return f"The chain continues to position {last.position}, beyond the recorded head."
    return ""


def _walk(expected: Mapping[int, str]) -> tuple[Head, str]:
    """Return the last valid link, and what is wrong with the next one; "" if all are valid."""
    last = Head(0, "")
    for position, number, seal, text in _links():
        if position != last.position + 1:
            return last, f"Position {last.position + 1} of the chain is missing. An event was removed."
        if hashlib.sha256((last.seal + text).encode()).hexdigest() != seal:
            return last, f"Event {number} at position {position} is not the event that was sealed."
        last = Head(position, seal)
        if expected.get(position, seal) != seal:
            return last, f"The seal at position {position} differs from the noted one."
    furthest = max(expected, default=0)
    if last.position < furthest:
        return last, f"The chain ends before position {furthest}."
    return last, ""


def _contradiction(expected: Iterable[Head]) -> str:
    """Return a sentence if two noted heads contradict each other, else ""."""
    seals: dict[int, str] = {}
    for noted in expected:
        if seals.setdefault(noted.position, noted.seal) != noted.seal:
            return f"Two different seals were noted for position {noted.position}. The chain was rebuilt in between."
    return ""


def _links() -> Iterator[tuple[int, int, str, str]]:
    """Yield position, event, seal and text of all links in order, a few thousand per query."""
    after = 0
    while True:
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT position, id, seal, {EVENT_TEXT} FROM audit_auditevent"  # noqa: S608  a constant
                " WHERE position > %s ORDER BY position LIMIT %s",
                [after, BATCH],
            )
            rows = cursor.fetchall()
        if not rows:
            return
        yield from rows
        after = rows[-1][0]
