"""What an outlook was worked out from, as a hash that the database makes: so a whole board is told to be fresh at once.

Of each subject and pair of environments: the version that would go, what the target holds, its own config and mode, and
what other apps say of it; besides what holds for the pair as a whole. A subject that refers to others also depends on
theirs; for it any version, config or decision that moves in either environment counts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from django.db import connection

from registry.promotions.models import Environment, ReviewRule
from registry.promotions.outlook import facts_of
from registry.subjects.models import Config, Mode, SchemaReference
from registry.subjects.names import SubjectName

#: the version that would be promoted: the newest live one that isn't quarantined
CANDIDATE = """
    SELECT v.version, v.schema_id, sc.identity, sc.fingerprint, coalesce(st.standing, '') AS standing
    FROM subjects_schemaversion v
    JOIN subjects_schema sc ON sc.id = v.schema_id
    LEFT JOIN subjects_versionstanding st ON st.version_id = v.id
    WHERE v.subject_id = {subject} AND v.deleted_at IS NULL AND coalesce(st.standing, '') <> 'quarantined'
    ORDER BY v.version DESC LIMIT 1
"""

_BASIS_OF = """
WITH pair(n, source_registry, target_registry, digest, movement) AS (
    SELECT * FROM unnest(%(n)s::int[], %(sources)s::bigint[], %(targets)s::bigint[], %(digests)s::text[],
                         %(movements)s::text[])
), fact(registry, subject, said) AS (
    SELECT * FROM unnest(%(fact_registries)s::bigint[], %(fact_subjects)s::text[], %(facts)s::text[])
), wanted(context, subject) AS (
    SELECT DISTINCT * FROM unnest(%(contexts)s::text[], %(subjects)s::text[])
), source AS (
    SELECT s.id, s.name AS subject, c.name AS context, c.registry_id
    FROM subjects_subject s JOIN subjects_context c ON c.id = s.context_id {wanted}
    WHERE c.registry_id = ANY(%(sources)s)
)
SELECT pair.n, source.context, source.subject, encode(sha256(convert_to(concat_ws('|',
    pair.digest,
    candidate.version, candidate.identity, candidate.standing,
    coalesce((SELECT string_agg(v.version || ' ' || sc.identity, ',' ORDER BY v.version)
              FROM subjects_schemaversion v JOIN subjects_schema sc ON sc.id = v.schema_id
              WHERE v.subject_id = there.id AND v.deleted_at IS NULL), ''),
    coalesce((SELECT config::text FROM subjects_config config
              WHERE config.registry_id = pair.target_registry AND config.context_id = target.context_id
              AND config.subject_name = source.subject), ''),
    coalesce((SELECT mode.mode FROM subjects_mode mode
              WHERE mode.registry_id = pair.target_registry AND mode.context_id = target.context_id
              AND mode.subject_name = source.subject), ''),
    coalesce(fact.said, ''),
    CASE WHEN EXISTS (SELECT 1 FROM subjects_schemareference r WHERE r.schema_id = candidate.schema_id)
         THEN pair.movement ELSE '' END
), 'UTF8')), 'hex') AS basis
FROM pair
JOIN source ON source.registry_id = pair.source_registry
CROSS JOIN LATERAL ({candidate}) candidate
LEFT JOIN (
    SELECT c.id AS context_id, c.name AS context, c.registry_id FROM subjects_context c
) target ON target.registry_id = pair.target_registry AND target.context = source.context
LEFT JOIN subjects_subject there ON there.context_id = target.context_id AND there.name = source.subject
LEFT JOIN fact ON fact.registry = pair.target_registry
    AND fact.subject = CASE source.context WHEN '.' THEN source.subject
                       ELSE ':' || source.context || ':' || source.subject END
"""
_CANDIDATE = CANDIDATE.format(subject="source.id")
_BASIS_OF_ALL = _BASIS_OF.format(candidate=_CANDIDATE, wanted="")
#: those of a page are found by their names, in an index
_BASIS_OF_WANTED = _BASIS_OF.format(
    candidate=_CANDIDATE, wanted="JOIN wanted ON wanted.context = c.name AND wanted.subject = s.name"
)

#: everything of a registry that may concern a subject by way of its references
_MOVEMENT = """
SELECT c.registry_id,
       count(v.id) || ' ' || coalesce(max(v.id), 0) || ' ' || count(v.deleted_at) || ' ' || count(st.id)
       || ' ' || coalesce(max(st.decided_at)::text, '') || ' ' || coalesce(sum(v.schema_id), 0)
FROM subjects_context c
LEFT JOIN subjects_subject s ON s.context_id = c.id
LEFT JOIN subjects_schemaversion v ON v.subject_id = s.id
LEFT JOIN subjects_versionstanding st ON st.version_id = v.id
WHERE c.registry_id = ANY(%(registries)s)
GROUP BY c.registry_id
"""
_SETTINGS = """
SELECT r.id,
       coalesce((SELECT sum(hashtextextended(config::text, 0)) FROM subjects_config config
                 WHERE config.registry_id = r.id), 0)
       || ' ' || coalesce((SELECT sum(hashtextextended(mode::text, 0)) FROM subjects_mode mode
                           WHERE mode.registry_id = r.id), 0)
       || ' ' || (SELECT count(*) || ' ' || coalesce(max(a.id), 0) FROM subjects_association a
                  WHERE a.registry_id = r.id)
FROM subjects_registry r WHERE r.id = ANY(%(registries)s)
"""


@dataclass(frozen=True)
class Pair:
    """Two environments that follow each other."""

    source: Environment
    target: Environment


def pairs_of(environments: Sequence[Environment]) -> list[Pair]:
    """Each environment with the next one."""
    return [Pair(source, target) for source, target in pairwise(environments)]


def basis_query(pairs: Sequence[Pair], subjects: Sequence[SubjectName] | None = None) -> tuple[str, dict[str, Any]]:
    """SQL that gives (number of the pair, context, subject, basis), with its parameters; `subjects` None means all."""
    registries = sorted({place.registry_id for pair in pairs for place in (pair.source, pair.target)})
    facts = [
        (pair.target.registry_id, subject, said)
        for pair in pairs
        for subject, said in facts_of(pair.target.registry).items()
    ]
    movements = _movements(registries) if _refers(registries, subjects) else dict.fromkeys(registries, "")
    digests = _digests(pairs)
    parameters = {
        "n": list(range(len(pairs))),
        "sources": [pair.source.registry_id for pair in pairs],
        "targets": [pair.target.registry_id for pair in pairs],
        "digests": digests,
        "movements": [f"{movements[p.source.registry_id]} / {movements[p.target.registry_id]}" for p in pairs],
        "fact_registries": [registry for registry, _, _ in facts],
        "fact_subjects": [subject for _, subject, _ in facts],
        "facts": [said for _, _, said in facts],
        "registries": registries,
        "contexts": [name.context for name in subjects or ()],
        "subjects": [name.subject for name in subjects or ()],
    }
    return _BASIS_OF_ALL if subjects is None else _BASIS_OF_WANTED, parameters


def bases(
    pairs: Sequence[Pair], subjects: Sequence[SubjectName] | None = None
) -> Iterator[tuple[int, SubjectName, str]]:
    """The rows of that query."""
    with connection.cursor() as cursor:
        cursor.execute(*basis_query(pairs, subjects))
        for number, context, subject, basis in cursor.fetchall():
            yield number, SubjectName(context, subject), basis


def _refers(registries: Sequence[int], subjects: Sequence[SubjectName] | None) -> bool:
    """Whether any of the subjects refers to others; if none does, what moves elsewhere needn't be looked at."""
    rows = SchemaReference.objects.filter(schema__context__registry__in=registries)
    if subjects is not None:
        rows = rows.filter(schema__versions__subject__name__in={name.subject for name in subjects})
    return rows.exists()


def _movements(registries: Sequence[int]) -> Mapping[int, str]:
    found = dict.fromkeys(registries, "")
    with connection.cursor() as cursor:
        for query in (_MOVEMENT, _SETTINGS):
            cursor.execute(query, {"registries": list(registries)})
            for registry, said in cursor.fetchall():
                found[registry] += f" {said}"
    return found


def _digests(pairs: Sequence[Pair]) -> list[str]:
    """What holds for each pair as a whole: the target's rules, and the configs and modes wider than a subject."""
    targets = [pair.target.pk for pair in pairs]
    registries = [pair.target.registry_id for pair in pairs]
    rules = _grouped(ReviewRule.objects.filter(environment__in=targets).order_by("pk"), "environment_id")
    wide = {
        model: _grouped(model.objects.filter(registry__in=registries, subject_name=None).order_by("pk"), "registry_id")
        for model in (Config, Mode)
    }
    found = []
    for pair in pairs:
        registry = pair.target.registry
        parts = [
            pair.source.pk, pair.target.pk, pair.target.reviews_needed, pair.target.drift_blocks, registry.kind,
            registry.sync_error, registry.synced_at is None, rules.get(pair.target.pk),
            wide[Config].get(registry.pk), wide[Mode].get(registry.pk),
        ]  # fmt: skip
        found.append(hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest())
    return found


def _grouped(rows: Any, key: str) -> dict[int, list[dict[str, Any]]]:
    found: dict[int, list[dict[str, Any]]] = {}
    for row in rows.values():
        found.setdefault(row[key], []).append(row)
    return found
