"""A hash, computed by the database, of everything that a stored readiness answer depends on.

One query finds the answers of a board that are still fresh.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from django.db import connection
from django.db.models import prefetch_related_objects

from registry.promotions.hook_points import facts_of
from registry.promotions.models import Environment, ReviewRule
from registry.subjects.models import Config, Mode
from registry.subjects.versions.qualified_names import SubjectName

#: the version that would be promoted: the newest live one that isn't quarantined
CANDIDATE = """
    SELECT v.version, v.schema_id, sc.identity, sc.fingerprint, coalesce(st.standing, '') AS status
    FROM subjects_schemaversion v
    JOIN subjects_schema sc ON sc.id = v.schema_id
    LEFT JOIN subjects_versionstanding st ON st.version_id = v.id
    WHERE v.subject_id = {subject} AND v.deleted_at IS NULL AND coalesce(st.standing, '') <> 'quarantined'
    ORDER BY v.version DESC LIMIT 1
"""

#: everything that the candidate refers to, directly or indirectly, and what the target has of it
_ALONG = """
    WITH RECURSIVE along(version) AS (
        SELECT r.target_id FROM subjects_schemareference r WHERE r.schema_id = candidate.schema_id
        UNION
        SELECT r.target_id FROM along
        JOIN subjects_schemaversion v ON v.id = along.version
        JOIN subjects_schemareference r ON r.schema_id = v.schema_id
    )
    SELECT jsonb_agg(jsonb_build_array(
        c.name, s.name, v.version, v.deleted_at IS NULL, st.standing,
        (SELECT jsonb_agg(jsonb_build_array(held.version, held_schema.identity) ORDER BY held.version)
         FROM subjects_schemaversion held JOIN subjects_schema held_schema ON held_schema.id = held.schema_id
         WHERE held.subject_id = there.id AND held.deleted_at IS NULL),
        (SELECT config::text FROM subjects_config config
         WHERE config.registry_id = pair.target_registry AND config.context_id = place.id
         AND config.subject_name = s.name),
        (SELECT mode.mode FROM subjects_mode mode
         WHERE mode.registry_id = pair.target_registry AND mode.context_id = place.id AND mode.subject_name = s.name),
        EXISTS (SELECT FROM subjects_association owner WHERE owner.subject_id = there.id AND owner.lifecycle = 'STRONG')
    ) ORDER BY v.id)::text
    FROM along
    JOIN subjects_schemaversion v ON v.id = along.version
    JOIN subjects_subject s ON s.id = v.subject_id
    JOIN subjects_context c ON c.id = s.context_id
    LEFT JOIN subjects_versionstanding st ON st.version_id = v.id
    LEFT JOIN subjects_context place ON place.registry_id = pair.target_registry AND place.name = c.name
    LEFT JOIN subjects_subject there ON there.context_id = place.id AND there.name = s.name
"""

_BASIS_OF = """
WITH pair(n, source_registry, target_registry, digest) AS (
    SELECT * FROM unnest(%(n)s::int[], %(sources)s::bigint[], %(targets)s::bigint[], %(digests)s::text[])
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
    candidate.version, candidate.identity, candidate.status,
    coalesce((SELECT string_agg(v.version || ' ' || sc.identity, ',' ORDER BY v.version)
              FROM subjects_schemaversion v JOIN subjects_schema sc ON sc.id = v.schema_id
              WHERE v.subject_id = there.id AND v.deleted_at IS NULL), ''),
    coalesce((SELECT config::text FROM subjects_config config
              WHERE config.registry_id = pair.target_registry AND config.context_id = target.context_id
              AND config.subject_name = source.subject), ''),
    coalesce((SELECT mode.mode FROM subjects_mode mode
              WHERE mode.registry_id = pair.target_registry AND mode.context_id = target.context_id
              AND mode.subject_name = source.subject), ''),
    coalesce(fact.said, ''), coalesce(source_fact.said, ''),
    CASE WHEN EXISTS (SELECT 1 FROM subjects_schemareference r WHERE r.schema_id = candidate.schema_id)
         THEN ({along}) ELSE '' END
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
LEFT JOIN fact source_fact ON source_fact.registry = pair.source_registry
    AND source_fact.subject = CASE source.context WHEN '.' THEN source.subject
                              ELSE ':' || source.context || ':' || source.subject END
"""
_CANDIDATE = CANDIDATE.format(subject="source.id")
_BASIS_OF_ALL = _BASIS_OF.format(candidate=_CANDIDATE, along=_ALONG, wanted="")
#: an index finds the subjects of a page by name
_BASIS_OF_WANTED = _BASIS_OF.format(
    candidate=_CANDIDATE, along=_ALONG, wanted="JOIN wanted ON wanted.context = c.name AND wanted.subject = s.name"
)


@dataclass(frozen=True)
class EnvironmentPair:
    """Two environments that follow each other."""

    source: Environment
    target: Environment


def pairs_of(environments: Sequence[Environment]) -> list[EnvironmentPair]:
    """Return each environment with the next one."""
    return [EnvironmentPair(source, target) for source, target in pairwise(environments)]


def basis_query(
    pairs: Sequence[EnvironmentPair], subjects: Sequence[SubjectName] | None = None
) -> tuple[str, dict[str, Any]]:
    """Return SQL for (position of the pair, context, subject, fingerprint), and its parameters.

    `subjects` None means all.
    """
    names = None if subjects is None else [name.qualified for name in subjects]
    registries = {row.registry.pk: row.registry for pair in pairs for row in (pair.source, pair.target)}
    facts_by_registry = facts_of(list(registries.values()), names)
    facts = [
        (registry, subject, fact)
        for registry, facts_by_subject in facts_by_registry.items()
        for subject, fact in facts_by_subject.items()
    ]
    parameters = {
        "n": list(range(len(pairs))),
        "sources": [pair.source.registry_id for pair in pairs],
        "targets": [pair.target.registry_id for pair in pairs],
        "digests": _digests(pairs),
        "fact_registries": [registry for registry, _, _ in facts],
        "fact_subjects": [subject for _, subject, _ in facts],
        "facts": [fact for _, _, fact in facts],
        "contexts": [name.context for name in subjects or ()],
        "subjects": [name.subject for name in subjects or ()],
    }
    return _BASIS_OF_ALL if subjects is None else _BASIS_OF_WANTED, parameters


def bases(
    pairs: Sequence[EnvironmentPair], subjects: Sequence[SubjectName] | None = None
) -> Iterator[tuple[int, SubjectName, str]]:
    """Return the rows of `basis_query`."""
    with connection.cursor() as cursor:
        cursor.execute(*basis_query(pairs, subjects))
        for number, context, subject, basis in cursor.fetchall():
            yield number, SubjectName(context, subject), basis


def _digests(pairs: Sequence[EnvironmentPair]) -> list[str]:
    """Return a digest per pair of its general inputs: the target's rules, and configs and modes of wider scopes."""
    registries = [pair.target.registry_id for pair in pairs]
    prefetch_related_objects([pair.target for pair in pairs], "review_rules")
    wide = {
        model: _grouped(model.objects.filter(registry__in=registries, subject_name=None).order_by("pk"), "registry_id")
        for model in (Config, Mode)
    }
    digests = []
    for pair in pairs:
        registry = pair.target.registry
        parts = [
            pair.source.pk, pair.target.pk, pair.target.reviews_needed, pair.target.drift_blocks, registry.kind,
            registry.sync_error, registry.synced_at is None, pair.target.is_closed, _rules(pair.target),
            wide[Config].get(registry.pk), wide[Mode].get(registry.pk),
        ]  # fmt: skip
        digests.append(hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest())
    return digests


def _rules(environment: Environment) -> list[dict[str, Any]] | None:
    """Return the rules in the form of `_grouped`, because the hash of stored answers contains it."""
    names = [column.attname for column in ReviewRule._meta.concrete_fields]
    rules = sorted(environment.review_rules.all(), key=lambda rule: rule.pk)
    return [{name: getattr(rule, name) for name in names} for rule in rules] or None


def _grouped(rows: Any, key: str) -> dict[int, list[dict[str, Any]]]:
    groups: dict[int, list[dict[str, Any]]] = {}
    for row in rows.values():
        groups.setdefault(row[key], []).append(row)
    return groups
