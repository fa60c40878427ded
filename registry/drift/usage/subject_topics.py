"""What carries the data of subjects: topics by naming strategy, streaming queries, and the versions in messages.

Each is read in one query, for one subject or for all subjects of a page.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from django.db import connection
from django.db.models import Q

from registry.drift.judge.topic_observations import TOPIC_NAME
from registry.drift.models import SIDES, Finding, SchemaUse, Topic
from registry.subjects.models import Registry, SchemaReference, SchemaVersion
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, SubjectName


def uses_of(registry: Registry, subject: SubjectName, rows: Sequence[SchemaVersion]) -> list[SchemaUse]:
    """Return the uses whose mark may refer to one of the versions: an id within its context, a GUID anywhere."""
    ids = {row.schema.schema_id for row in rows}
    named = Q(framing="content_type", mark__contains=f".{subject.subject}.v")
    by_id = Q(framing="id", schema_id__in=ids) | Q(framing="id", mark__in=[str(number) for number in ids])
    condition = (
        (by_id & Q(topic__source__context__in=_context_names(subject.context)))
        | Q(framing="guid", mark__in=[str(row.schema.guid) for row in rows])
        | named
    )
    uses = SchemaUse.objects.filter(condition, topic__source__registry=registry)
    return list(uses.order_by("topic_id", "side", "framing", "mark", "partition"))


def _context_names(context: str) -> tuple[str, ...]:
    """Return the spellings of a context in sources, which usually omit the default."""
    return (context, context.removeprefix("."), f":{context}:")


def is_of(use: SchemaUse, row: SchemaVersion, subject: SubjectName) -> bool:
    """Return whether a use's mark refers to that version."""
    if use.framing == "content_type":
        return use.mark.endswith(f".{subject.subject}.v{row.version}")
    if use.framing == "guid":
        return use.mark == str(row.schema.guid)
    return (use.schema_id if use.schema_id is not None else use.mark) in (
        row.schema.schema_id,
        str(row.schema.schema_id),
    )


def topics_of(registry: Registry, subject: SubjectName, used: Iterable[int]) -> dict[int, Topic]:
    """Return topics with such messages, topics that scans assigned to the subject, and the topic of its name."""
    names = [subject.subject.removesuffix(f"-{side}") for side in SIDES if subject.subject.endswith(f"-{side}")]
    condition = Q(pk__in=set(used)) | Q(name__in=names, source__context__in=_context_names(subject.context))
    for side in SIDES:
        for name in {subject.subject, subject.qualified}:
            condition |= Q(**{f"subjects__{side}__contains": [name]})
    rows = (
        Topic.objects.filter(condition, source__registry=registry)
        .select_related("source__cluster")
        .order_by("name", "pk")
    )
    return {row.pk: row for row in rows}


#: findings about messages without a schema reference: the messages stay even after the finding is resolved
_UNFRAMED_RULES: Final = ("UNFRAMED_DATA", "FRAME_TRUNCATED", "TOPIC_WITHOUT_SUBJECT", "TOO_MANY_IDS")


@dataclass(frozen=True)
class Unidentified:
    """Messages of a topic that scans couldn't match to a schema; `last_offsets` by partition, as far as known."""

    messages: int
    last_offsets: Mapping[int, int]
    seen_at: datetime


def unidentified_in(topics: Collection[Topic], subject: SubjectName) -> dict[int, list[Unidentified]]:
    """Return the unidentified messages of each topic that may belong to the subject, by topic number; one query."""
    is_unidentified = Q(rule__in=_UNFRAMED_RULES) | (Q(rule="UNKNOWN_SCHEMA_ID") & ~Q(state="resolved"))
    by_number = {topic.pk: topic for topic in topics}
    by_topic: dict[int, list[Unidentified]] = {}
    for row in Finding.objects.filter(is_unidentified, topic__in=by_number).order_by("pk"):
        topic, side = by_number[row.topic_id or 0], row.evidence.get("side")
        if any(owner_of(topic, name, subject) != "other" for name in SIDES if side in (name, None)):
            last = {part["partition"]: part["last_offset"] for part in row.evidence.get("partitions", ())}
            by_topic.setdefault(topic.pk, []).append(Unidentified(row.count, last, row.last_seen))
    return by_topic


def own_topics(registry: Registry, subject: SubjectName) -> list[Topic]:
    """Return topics that scans assigned to the subject, and an unassigned topic of its name; one query."""
    topics = topics_of(registry, subject, ()).values()
    return [row for row in topics if any(owner_of(row, side, subject) == "this" for side in SIDES)]


def owner_of(topic: Topic, side: str, subject: SubjectName) -> Literal["this", "other", "unknown"]:
    """Return whose messages a topic's side has, as scans found, else by its name."""
    names = topic.subjects.get(side) if isinstance(topic.subjects, dict) else None
    if not names:
        return "this" if f"{topic.name}-{side}" == subject.subject else "unknown"
    return "this" if subject.subject in names or subject.qualified in names else "other"


@dataclass(frozen=True)
class OtherVersions:
    """Versions of other subjects: names of those that the reader may read, and the number of the others."""

    names: tuple[str, ...] = ()
    hidden: int = 0


#: returns whether a reader may read a subject, by its qualified name
Readable = Callable[[str], bool]


def shared_with(rows: Sequence[SchemaVersion], readable: Readable) -> dict[int, OtherVersions]:
    """Return the live versions of other subjects with the same schema, by schema."""
    own = rows[0].subject_id
    others = (
        SchemaVersion.objects.filter(schema_id__in={row.schema_id for row in rows}, deleted_at=None)
        .exclude(subject_id=own)
        .order_by("subject__name", "version")
        .values_list("schema_id", "subject__context__name", "subject__name", "version")
    )
    by_schema: dict[int, dict[tuple[str, int], None]] = {}
    for schema, context, name, version in others:
        by_schema.setdefault(schema, {})[SubjectName(context, name).qualified, version] = None
    return {schema: _in_sight(versions, readable) for schema, versions in by_schema.items()}


def _in_sight(versions: Iterable[tuple[str, int]], readable: Readable) -> OtherVersions:
    listed = list(versions)
    names = tuple(f"{subject} version {version}" for subject, version in listed if readable(subject))
    return OtherVersions(names, len(listed) - len(names))


def referrers_of(rows: Sequence[SchemaVersion], readable: Readable) -> dict[int, OtherVersions]:
    """Return the live versions whose schema refers to each version."""
    own = [row.pk for row in rows]
    links = (
        SchemaReference.objects.filter(target_id__in=own, schema__versions__deleted_at=None)
        .exclude(schema__versions=None)
        .values_list(
            "target_id",
            "schema__versions__subject__context__name",
            "schema__versions__subject__name",
            "schema__versions__version",
        )
    )
    by_target: dict[int, set[tuple[str, int]]] = {}
    for target, context, name, version in links:
        by_target.setdefault(target, set()).add((SubjectName(context or DEFAULT_CONTEXT, name).qualified, version))
    return {target: _in_sight(sorted(versions), readable) for target, versions in by_target.items()}


@dataclass(frozen=True)
class CarryingTopic:
    """A topic's side that belongs to a subject, with the naming `strategies`; `is_found` if a scan saw that in data.

    Otherwise only the topic's name says so.
    """

    name: str
    source: int
    side: str
    strategies: tuple[str, ...]
    is_found: bool


def carrying_topics(own: Iterable[Topic], subject: SubjectName) -> tuple[CarryingTopic, ...]:
    """Return the existing ones of the subject's `own_topics`, by name."""
    topics = []
    for row in own:
        if row.gone_at is not None:
            continue
        for side in SIDES:
            if owner_of(row, side, subject) == "this":
                is_found = bool(row.subjects.get(side))
                strategies = _leading(f"{row.name}-{side}" == subject.subject, row.strategies.get(side) or ())
                topics.append(CarryingTopic(row.name, row.source_id, side, strategies, is_found))
    return tuple(topics)


def _leading(is_topic_name: bool, strategies: list[str] | tuple[str, ...]) -> tuple[str, ...]:
    """Return the strategies of a side's subjects that can yield this subject."""
    if is_topic_name:
        return (TOPIC_NAME,)
    return tuple(name for name in strategies if name != TOPIC_NAME)


@dataclass(frozen=True)
class SubjectCarriers:
    """The number of topics with a subject's messages, of queries that read it, and the time of the newest message."""

    topics: int = 0
    queries: int = 0
    last_seen: datetime | None = None


NOTHING: Final = SubjectCarriers()

# A topic carries the subjects that scans found in its messages, and those named after it; a name without a context is
# in the source's context.
_CARRIED: Final = """
WITH page(context, name, qualified) AS (
    SELECT * FROM unnest(%(contexts)s::text[], %(names)s::text[], %(qualified)s::text[])
), looked_at(topic, name, subjects, prefix) AS (
    SELECT t.id, t.name, CASE jsonb_typeof(t.subjects) WHEN 'object' THEN t.subjects ELSE '{}' END,
        CASE trim(BOTH ':' FROM source.context) WHEN '' THEN '' WHEN '.' THEN ''
            ELSE ':.' || ltrim(trim(BOTH ':' FROM source.context), '.') || ':' END
    FROM drift_topic t JOIN drift_source source ON source.id = t.source_id
    WHERE source.registry_id = %(registry)s AND t.gone_at IS NULL
), carried AS (
    SELECT topic, side, prefix || name || '-' || side AS qualified FROM looked_at CROSS JOIN unnest(%(sides)s::text[]) side
    UNION
    SELECT topic, side.key, CASE WHEN named.name LIKE ':.%%' THEN named.name ELSE prefix || named.name END
    FROM looked_at CROSS JOIN LATERAL jsonb_each(subjects) side
    CROSS JOIN LATERAL jsonb_array_elements_text(
        CASE jsonb_typeof(side.value) WHEN 'array' THEN side.value ELSE '[]' END) named(name)
), topics AS (
    SELECT page.qualified, count(DISTINCT carried.topic) AS number, max(used.last_time) AS last_seen
    FROM page JOIN carried USING (qualified)
    LEFT JOIN LATERAL (
        SELECT max(u.last_time) AS last_time FROM drift_schemause u
        WHERE u.topic_id = carried.topic AND u.side = carried.side AND u.schema_id IN (
            SELECT sc.schema_id FROM subjects_context c
            JOIN subjects_subject s ON s.context_id = c.id AND s.name = page.name
            JOIN subjects_schemaversion v ON v.subject_id = s.id
            JOIN subjects_schema sc ON sc.id = v.schema_id
            WHERE c.registry_id = %(registry)s AND c.name = page.context)
    ) used ON true
    GROUP BY page.qualified
), queries AS (
    SELECT page.qualified, count(DISTINCT query.id) AS number
    FROM page JOIN streams_queryinput input ON input.subject = page.name AND input.context = page.context
    JOIN streams_streamquery query ON query.id = input.query_id AND query.registry_id = %(registry)s
    GROUP BY page.qualified
)
SELECT page.qualified, coalesce(topics.number, 0), coalesce(queries.number, 0), topics.last_seen
FROM page LEFT JOIN topics USING (qualified) LEFT JOIN queries USING (qualified)
WHERE topics.number > 0 OR queries.number > 0
"""


def carriers_of(registry: Registry, subjects: Collection[SubjectName]) -> dict[str, SubjectCarriers]:
    """Return the carriers of each subject by its qualified name, without subjects that have none; one query."""
    if not subjects:
        return {}
    parameters: dict[str, Any] = {
        "registry": registry.pk,
        "contexts": [name.context for name in subjects],
        "names": [name.subject for name in subjects],
        "qualified": [name.qualified for name in subjects],
        "sides": list(SIDES),
    }
    with connection.cursor() as cursor:
        cursor.execute(_CARRIED, parameters)
        return {name: SubjectCarriers(topics, queries, seen_at) for name, topics, queries, seen_at in cursor.fetchall()}


#: A schema id is one of its source's context, in any spelling; a GUID is valid anywhere. If scans found the subjects of
# a topic's messages, another subject with the same schema isn't one of them.
_SEEN: Final = """
WITH wanted AS (
    SELECT v.id, s.name, c.name AS context, c.registry_id, sc.schema_id, sc.guid::text AS guid
    FROM subjects_schemaversion v
    JOIN subjects_schema sc ON sc.id = v.schema_id
    JOIN subjects_subject s ON s.id = v.subject_id
    JOIN subjects_context c ON c.id = s.context_id
    WHERE v.id = ANY(%s)
), used AS (
    SELECT wanted.*, u.topic_id, u.side, u.framing, u.last_time
    FROM wanted JOIN drift_schemause u ON u.schema_id = wanted.schema_id AND u.framing = 'id'
    UNION ALL
    SELECT wanted.*, u.topic_id, u.side, u.framing, u.last_time
    FROM wanted JOIN drift_schemause u ON u.framing = 'guid' AND u.mark = wanted.guid
)
SELECT used.id, max(used.last_time)
FROM used
JOIN drift_topic t ON t.id = used.topic_id
JOIN drift_source o ON o.id = t.source_id AND o.registry_id = used.registry_id
WHERE (used.framing = 'guid' OR o.context IN (used.context, ltrim(used.context, '.'), ':' || used.context || ':'))
AND (coalesce(jsonb_array_length(t.subjects -> used.side), 0) = 0 OR jsonb_exists_any(
    t.subjects -> used.side, ARRAY[used.name, ':' || used.context || ':' || used.name]))
GROUP BY used.id"""


def last_seen(versions: Collection[int]) -> dict[int, datetime]:
    """Return version's primary key → time of the last message with its id or GUID; omits versions that no scan saw.

    One query. Spring's content types are ignored: they have a version's number and no id.
    """
    if not versions:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_SEEN, [list(versions)])
        return dict(cursor.fetchall())
