"""Values of fields that are tagged as personal data: neither kept nor shown.

Spark masks every value already, to lengths, shapes, magnitudes and years, and gives symbols of enums as they are. Of a
personal field nothing at all is kept: no range, no symbol, no part of a sample. So nothing is judged by its symbols
either. What earlier scans kept of it goes with the next scan; samples that findings kept before the field was tagged are
masked where they are shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from django.db.models import Q

from registry.drift.known_versions import by_mark, condition_of, version_rows
from registry.drift.models import FieldStatistic, Source
from registry.formats.effective_tags import MASK, SchemaTags
from registry.observations import FieldProfile, Observation, Sample
from registry.subjects.models import Registry, Schema, SchemaVersion
from registry.subjects.names import DEFAULT_CONTEXT, SubjectName, parse_subject
from registry.subjects.selectors.tags import tags_of_schemas

NOTHING: Final = SchemaTags()
#: conditions of one statement
BATCH: Final = 200


def without_personal(source: Source, observations: Sequence[Observation]) -> list[Observation]:
    """The observations without what they tell of personal fields; what earlier scans kept of these goes too.

    A few queries, however much was observed.
    """
    told = [each for each in observations if isinstance(each, FieldProfile | Sample)]
    if not told:
        return list(observations)
    tags = _Tags(source, told)
    _forget(source, [each for each in told if isinstance(each, FieldProfile) and tags.of(each).covers(each.path)])
    return [_without(each, tags.of(each)) if isinstance(each, FieldProfile | Sample) else each for each in observations]


def _without(seen: FieldProfile | Sample, tags: SchemaTags) -> Observation:
    if isinstance(seen, Sample):
        return replace(seen, text=masked_text(seen.text, tags))
    if not tags.covers(seen.path):
        return seen
    return replace(seen, minimum=None, maximum=None, values={})


def masked_text(text: str, tags: SchemaTags) -> str:
    """A sample, which is JSON, without what is personal; one that was cut can't be read, so nothing of it stays."""
    if not tags.has_personal:
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return MASK
    return json.dumps(tags.masked(value), ensure_ascii=False)


def _forget(source: Source, profiles: Sequence[FieldProfile]) -> None:
    """Take values of personal fields out of what earlier scans kept."""
    keys = sorted({(each.topic, each.side, each.framing or "", each.mark, each.path) for each in profiles})
    for begin in range(0, len(keys), BATCH):
        wanted = Q()
        for topic, side, framing, mark, path in keys[begin : begin + BATCH]:
            wanted |= Q(topic__name=topic, side=side, framing=framing, mark=mark, path=path)
        rows = FieldStatistic.objects.filter(wanted, topic__source=source)
        rows.exclude(values={}, minimum="", maximum="").update(values={}, minimum="", maximum="")


class _Tags:
    """The tags of what wrote each observation: of the schemas that its mark means, or of its topic's subject."""

    def __init__(self, source: Source, told: Iterable[FieldProfile | Sample]) -> None:
        context = source.context or DEFAULT_CONTEXT
        listed = list(told)
        marks = {(each.framing, each.mark) for each in listed if each.framing}
        bare = {f"{each.topic}-{each.side}" for each in listed if not each.framing}
        condition = condition_of(marks) if marks else Q(pk__in=[])
        named = Q(subject__context__name=context, subject__name__in=bare, deleted_at=None)
        rows = version_rows(source.registry, condition | named, ghosts=None)
        schemas = Schema.objects.filter(pk__in={row.schema_pk for row in rows})
        known = tags_of_schemas(source.registry, list(schemas))
        by_schema = {row.schema_pk: known.get(row.schema_pk, NOTHING) for row in rows}
        self._by_mark = {
            mark: _joined(by_schema[row.schema_pk] for row in found) for mark, found in by_mark(rows, marks).items()
        }
        self._by_subject = {
            name: _joined(by_schema[row.schema_pk] for row in rows if (row.context, row.name) == (context, name))
            for name in bare
        }

    def of(self, seen: FieldProfile | Sample) -> SchemaTags:
        """The tags for one observation."""
        if seen.framing:
            return self._by_mark.get((seen.framing, seen.mark), NOTHING)
        return self._by_subject.get(f"{seen.topic}-{seen.side}", NOTHING)


def _joined(found: Iterable[SchemaTags]) -> SchemaTags:
    """The tags of several schemas that may be meant: a field is personal where one of them says so."""
    parts = list({id(each): each for each in found}.values())
    if len(parts) <= 1:
        return parts[0] if parts else NOTHING
    return SchemaTags(
        fields=tuple(field for part in parts for field in part.fields),
        is_personal=any(part.is_personal for part in parts),
        any_root=any(part.any_root for part in parts),
    )


def tags_of_subjects(places: Iterable[tuple[Registry, str]]) -> dict[tuple[str, str], SchemaTags]:
    """The tags of the newest versions of subjects (given by registry and qualified name), by both names.

    The newest live one, a soft-deleted one where none is live. Some five queries for each registry.
    """
    found: dict[tuple[str, str], SchemaTags] = {}
    wanted: dict[Registry, set[str]] = {}
    for registry, subject in places:
        wanted.setdefault(registry, set()).add(subject)
    for registry, subjects in wanted.items():
        names = {parse_subject(subject): subject for subject in subjects if subject}
        newest = _newest(registry, names)
        tags = tags_of_schemas(registry, list({row.schema.pk: row.schema for row in newest.values()}.values()))
        for name, row in newest.items():
            found[registry.name, names[name]] = tags[row.schema_id]
    return found


def _newest(registry: Registry, names: Iterable[SubjectName]) -> dict[SubjectName, SchemaVersion]:
    wanted = set(names)
    rows = SchemaVersion.objects.filter(
        subject__context__registry=registry, subject__name__in={name.subject for name in wanted}
    ).select_related("schema", "subject__context")
    found: dict[SubjectName, SchemaVersion] = {}
    for row in rows.order_by("subject_id", "version"):
        name = SubjectName(row.subject.context.name, row.subject.name)
        known = found.get(name)
        if name in wanted and (known is None or row.deleted_at is None or known.deleted_at is not None):
            found[name] = row
    return found


def masked_samples(samples: Sequence[dict[str, Any]], tags: SchemaTags) -> list[dict[str, Any]]:
    """Samples of a finding without what is personal."""
    return [{**sample, "value": masked_text(str(sample.get("value", "")), tags)} for sample in samples]
