"""Removes the values of personal data: they are neither stored nor shown.

Spark already masks every value to lengths, shapes, magnitudes and years, but returns enum symbols unchanged. For a
personal field, nothing is stored: no range, no symbol, no part of a sample. So nothing is judged by its symbols either.
Values that earlier scans stored are deleted by the next scan. Samples that findings stored before the field was tagged
are masked when shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from django.db.models import Q

from registry.drift.models import FieldStatistic, Source
from registry.drift.scan_context.versions import by_mark, condition_of, version_rows
from registry.formats.personal_data import MASK, SchemaTags
from registry.observations import FieldProfile, Observation, RankedMessages, Sample
from registry.subjects.comparison.parsed_versions import tags_of_schemas
from registry.subjects.models import Registry, Schema, SchemaVersion
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, SubjectName, parse_subject

NOTHING: Final = SchemaTags()
#: conditions per statement
BATCH: Final = 200
#: observations with values, masked
WithValues = FieldProfile | Sample | RankedMessages


def without_personal(source: Source, observations: Sequence[Observation]) -> list[Observation]:
    """Return the observations without values of personal fields, and delete values that earlier scans stored.

    A constant number of queries.
    """
    sensitive = [observation for observation in observations if isinstance(observation, WithValues)]
    if not sensitive:
        return list(observations)
    tags = _Tags(source, sensitive)
    _forget(
        source,
        [
            observation
            for observation in sensitive
            if isinstance(observation, FieldProfile) and tags.of(observation).covers(observation.path)
        ],
    )
    return [
        _without(observation, tags.of(observation)) if isinstance(observation, WithValues) else observation
        for observation in observations
    ]


def _without(observation: WithValues, tags: SchemaTags) -> Observation:
    if isinstance(observation, Sample):
        return replace(observation, text=masked_text(observation.text, tags))
    if isinstance(observation, RankedMessages):
        return _without_ranks(observation, tags)
    if not tags.covers(observation.path):
        return observation
    return replace(observation, minimum=None, maximum=None, values={})


def _without_ranks(observation: RankedMessages, tags: SchemaTags) -> RankedMessages:
    kept = [number for number, path in enumerate(observation.paths) if not tags.covers(path)]
    rows = tuple((part, offset, tuple(ranks[number] for number in kept)) for part, offset, ranks in observation.rows)
    return replace(observation, paths=tuple(observation.paths[number] for number in kept), rows=rows)


def masked_text(text: str, tags: SchemaTags) -> str:
    """Mask personal data in a sample (JSON); a truncated sample can't be parsed, so all of it is masked."""
    if not tags.has_personal:
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return MASK
    return json.dumps(tags.masked(value), ensure_ascii=False)


def _forget(source: Source, profiles: Sequence[FieldProfile]) -> None:
    """Delete stored values of personal fields."""
    keys = sorted(
        {(profile.topic, profile.side, profile.framing or "", profile.mark, profile.path) for profile in profiles}
    )
    for begin in range(0, len(keys), BATCH):
        condition = Q()
        for topic, side, framing, mark, path in keys[begin : begin + BATCH]:
            condition |= Q(topic__name=topic, side=side, framing=framing, mark=mark, path=path)
        rows = FieldStatistic.objects.filter(condition, topic__source=source)
        rows.exclude(values={}, minimum="", maximum="").update(values={}, minimum="", maximum="")


class _Tags:
    """The tags for each observation: of the schemas behind its mark, or of its topic's subject."""

    def __init__(self, source: Source, observations: Iterable[WithValues]) -> None:
        context = source.context or DEFAULT_CONTEXT
        listed = list(observations)
        marks = {(observation.framing, observation.mark) for observation in listed if observation.framing}
        bare = {f"{observation.topic}-{observation.side}" for observation in listed if not observation.framing}
        condition = condition_of(marks) if marks else Q(pk__in=[])
        named = Q(subject__context__name=context, subject__name__in=bare, deleted_at=None)
        rows = version_rows(source.registry, condition | named, unapproved=None)
        schemas = Schema.objects.filter(pk__in={row.schema_pk for row in rows})
        tags = tags_of_schemas(source.registry, list(schemas))
        by_schema = {row.schema_pk: tags.get(row.schema_pk, NOTHING) for row in rows}
        self._by_mark = {
            mark: _merged_tags(by_schema[row.schema_pk] for row in matches)
            for mark, matches in by_mark(rows, marks).items()
        }
        by_name: dict[str, list[SchemaTags]] = {name: [] for name in bare}
        for row in rows:
            if row.context == context and row.name in by_name:
                by_name[row.name].append(by_schema[row.schema_pk])
        self._by_subject = {name: _merged_tags(tags_of_rows) for name, tags_of_rows in by_name.items()}

    def of(self, observation: WithValues) -> SchemaTags:
        """Return the tags for one observation."""
        if observation.framing:
            return self._by_mark.get((observation.framing, observation.mark), NOTHING)
        return self._by_subject.get(f"{observation.topic}-{observation.side}", NOTHING)


def _merged_tags(tags: Iterable[SchemaTags]) -> SchemaTags:
    """Merge the tags of all schemas that may apply: a field is personal if one of them says so."""
    parts = list({id(item): item for item in tags}.values())
    if len(parts) <= 1:
        return parts[0] if parts else NOTHING
    return SchemaTags(
        fields=tuple(field for part in parts for field in part.fields),
        is_personal=any(part.is_personal for part in parts),
        any_root=any(part.any_root for part in parts),
    )


def tags_of_subjects(subjects_by_registry: Iterable[tuple[Registry, str]]) -> dict[tuple[str, str], SchemaTags]:
    """Return the tags of subjects' newest versions, by registry name and qualified name.

    The newest live version, or the newest soft-deleted one if none is live. About five queries per registry.
    """
    tags_by_subject: dict[tuple[str, str], SchemaTags] = {}
    names_by_registry: dict[Registry, set[str]] = {}
    for registry, subject in subjects_by_registry:
        names_by_registry.setdefault(registry, set()).add(subject)
    for registry, subjects in names_by_registry.items():
        names = {parse_subject(subject): subject for subject in subjects if subject}
        newest = _newest(registry, names)
        tags = tags_of_schemas(registry, list({row.schema.pk: row.schema for row in newest.values()}.values()))
        for name, row in newest.items():
            tags_by_subject[registry.name, names[name]] = tags[row.schema_id]
    return tags_by_subject


def _newest(registry: Registry, names: Iterable[SubjectName]) -> dict[SubjectName, SchemaVersion]:
    name_set = set(names)
    rows = SchemaVersion.objects.filter(
        subject__context__registry=registry, subject__name__in={name.subject for name in name_set}
    ).select_related("schema", "subject__context")
    newest: dict[SubjectName, SchemaVersion] = {}
    for row in rows.order_by("subject_id", "version"):
        name = SubjectName(row.subject.context.name, row.subject.name)
        current = newest.get(name)
        if name in name_set and (current is None or row.deleted_at is None or current.deleted_at is not None):
            newest[name] = row
    return newest


def masked_samples(samples: Sequence[dict[str, Any]], tags: SchemaTags) -> list[dict[str, Any]]:
    """Return a finding's samples with personal data masked."""
    return [{**sample, "value": masked_text(str(sample.get("value", "")), tags)} for sample in samples]
