"""Compares the fields of a topic's messages with the declared schema and with the last weeks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from registry.drift.judge import baselines, field_history
from registry.drift.judge.declared_fields import MAX_DEPTH, MAX_FIELDS, DeclaredField, DeclaredFields, parent_of
from registry.drift.judge.finding_builder import (
    CheckedPlace,
    SideOfTopic,
    at_most,
    either,
    kind_words,
    limited,
    named,
    offending_at,
    owners,
    share_of,
    side_of,
)
from registry.drift.judge.model import FieldDay, JudgedFinding, Mark, Memory, Registered, RegisteredVersion
from registry.drift.judge.swapped_fields import judge_swapped
from registry.drift.judge.topic_observations import SIDES, PartitionSpan, TopicObservations, parts_of, subjects_of_side
from registry.formats import format_of
from registry.observations import EXTENSION, UNKNOWN_KIND, UNLISTED, FieldProfile

MAX_FINDINGS: Final = 50  # per rule in one mark's messages
MANY_NAMES: Final = 20  # undeclared names in one object from which on they are one finding: it is used as a map
LONGEST_PATH: Final = 200
#: verb forms in rules by the number of declaring versions: one, or several
_ONE: Final = {"doesnt": "doesn't", "requires": "requires", "declares": "declares"}
_SEVERAL: Final = {"doesnt": "don't", "requires": "require", "declares": "declare"}


@dataclass(frozen=True)
class Bodies:
    """The decoded messages of a side with one mark (framing and mark empty: JSON without a schema)."""

    where: SideOfTopic
    framing: str
    mark: str
    messages: int
    profiles: Mapping[str, FieldProfile]
    parts: tuple[PartitionSpan, ...]
    declared: tuple[DeclaredFields, ...]
    versions: tuple[RegisteredVersion, ...]
    marks: frozenset[tuple[str, str]] = frozenset()  # of several versions together

    @property
    def declared_by(self) -> str:
        """Return the declaring versions as text."""
        return owners(self.versions)

    @property
    def lacks_fields(self) -> bool:
        """Return whether some of their fields weren't counted."""
        return self.where.reading.lacks_fields(self.where.side, self.framing, self.mark)

    @property
    def place(self) -> CheckedPlace:
        """Return the topic's side with the schema."""
        return side_of(self.where.reading.topic, self.where.side or "", self.framing, self.mark)

    def listed(self, findings: Iterable[JudgedFinding]) -> Iterator[JudgedFinding]:
        """Yield at most MAX_FINDINGS findings of one rule, and the number of the others."""
        return at_most(MAX_FINDINGS, findings, self.place)

    def finding(
        self,
        rule: str,
        path: str,
        count: int,
        names: Mapping[str, Any],
        evidence: Mapping[str, Any],
        *,
        places: Iterable[tuple[int, ...]] = (),
        **more: Any,
    ) -> JudgedFinding:
        """Return a finding about a field; `count` is the number of messages, `places` where they are, if known."""
        profile = self.profiles.get(path)
        details: dict[str, Any] = {"field": shortened(path), "framing": self.framing, "mark": self.mark}
        details |= {"owners": self.declared_by} if self.versions else {}
        if profile is not None:
            counts = {"decoded": profile.possible, "present": profile.present, "nulls": profile.nulls}
            details |= {**counts, "kinds": dict(sorted(profile.kinds.items()))}
        verbs = _SEVERAL if len(named(self.versions)) > 1 else _ONE
        filled = {"path": shortened(path), "declared_by": self.declared_by, **verbs, **names}
        finding = self.where.finding(
            rule,
            self.parts,
            filled,
            key=(self.framing, self.mark, path),
            evidence={**details, **evidence},
            count=count,
            **more,
        )
        return finding if finding.offending else replace(finding, offending=offending_at(places))


def judge_fields(reading: TopicObservations, registered: Registered, memory: Memory) -> Iterator[JudgedFinding]:
    """Yield the findings of a topic's fields."""
    for side in SIDES:
        subjects = subjects_of_side((reading.topic, side), reading.marks(side), registered).subjects
        where = SideOfTopic(reading, side, registered, memory, subjects)
        reported: set[str] = set()
        bodies = _bodies(where)
        for versions in bodies:
            findings = [*_against_schema(versions), *_passed_over(versions)]
            reported |= {str(finding.evidence["field"]) for finding in findings if "field" in finding.evidence}
            yield from findings
        for group, days in _of_subjects(where, bodies):
            swapped = list(judge_swapped(group, days))
            reported |= {str(finding.evidence[name]) for finding in swapped for name in ("field", "other_field")}
            yield from swapped
            yield from baselines.judge_baselines(group, days, reported=reported)


def _of_subjects(where: SideOfTopic, bodies: Sequence[Bodies]) -> Iterator[tuple[Bodies, dict[str, list[FieldDay]]]]:
    """Yield the bodies of each subject, all versions merged, with its baselines; plain JSON is a group of its own.

    A single version would prove nothing: few producers write it at first, and others last.
    """
    registered, side = where.registered, where.side or "value"
    groups: dict[str, list[Bodies]] = {}
    for versions in bodies:
        name = _subject_of(where, (versions.framing, versions.mark)) if versions.framing else ""
        groups.setdefault(name, []).append(versions)
    for name, group in sorted(groups.items()):
        marks = {(versions.framing, versions.mark) for versions in group}
        if name:
            marks |= {mark for mark in registered.marks_of_subject.get(name, ()) if _subject_of(where, mark) == name}
        whole = _together(group, name)
        days = field_history.baselines_of(where.memory, (where.reading.topic, side), marks)
        if not name and whole.lacks_fields:
            days = {path: field_days for path, field_days in days.items() if path in whole.profiles}
        if name:  # a path that not all versions have only shows who moved to which
            most = field_history.COVERAGE * sum(versions.messages for versions in group)
            profiles = {path: versions for path, versions in whole.profiles.items() if versions.messages >= most}
            whole, days = replace(whole, profiles=profiles), {path: days.get(path, []) for path in profiles}
        yield whole, days


def _subject_of(where: SideOfTopic, mark: tuple[str, str]) -> str:
    """Return the subject of a mark; of several with the same schema, the topic's own."""
    subjects = where.registered.subjects_of_mark.get(mark, [mark[1]])
    return next((subject for subject in where.subjects if subject in subjects), subjects[-1])


def _together(group: Sequence[Bodies], name: str) -> Bodies:
    by_path: dict[str, list[FieldProfile]] = {}
    for bodies in group:
        for path, profile in bodies.profiles.items():
            by_path.setdefault(path, []).append(profile)
    return Bodies(
        where=group[0].where,
        framing=field_history.ALL_VERSIONS if name else "",
        mark=name,
        messages=sum(bodies.messages for bodies in group),
        profiles={path: field_history.merge_profiles(profiles) for path, profiles in by_path.items()},
        parts=tuple(part for bodies in group for part in bodies.parts),
        declared=tuple(declared for bodies in group for declared in bodies.declared),
        versions=tuple(version for bodies in group for version in bodies.versions),
        marks=frozenset((bodies.framing, bodies.mark) for bodies in group),
    )


def _bodies(where: SideOfTopic) -> list[Bodies]:
    groups: dict[tuple[str, str], dict[str, FieldProfile]] = {}
    for profile in where.reading.profiles:
        if profile.side == where.side:
            groups.setdefault((profile.framing or "", profile.mark), {})[profile.path] = profile
    return [_body(where, framing, mark, profiles) for (framing, mark), profiles in sorted(groups.items())]


def _body(where: SideOfTopic, framing: str, mark: str, profiles: Mapping[str, FieldProfile]) -> Bodies:
    versions: Sequence[RegisteredVersion]
    if framing:
        key: Mark = (framing, mark)  # type: ignore[assignment]  # the profile's own framing
        parts = where.reading.framed.get((where.side, key), [])
        # Decoding already enforces Avro and Protobuf schemas.
        own = where.registered.versions.get(key, ())
        versions = [version for version in own if format_of(version.schema_type).has_value_rules]
    else:
        parts = parts_of(
            version for version in where.reading.unframed.get(where.side, ()) if version.hint.startswith("json")
        )
        versions = [
            version
            for subject in where.subjects
            for version in where.registered.histories.get(subject, ())
            if not version.deleted and format_of(version.schema_type).has_value_rules
        ]
    declarations = [
        (version, where.registered.declared.get((version.subject, version.version))) for version in versions
    ]
    complete = all(declared is not None for _, declared in declarations)
    return Bodies(
        where=where,
        framing=framing,
        mark=mark,
        messages=max((profile.messages for profile in profiles.values()), default=0),
        profiles=profiles,
        parts=tuple(parts),
        # A version whose fields are unknown may declare anything.
        declared=tuple(declared for _, declared in declarations if declared is not None) if complete else (),
        versions=tuple(version for version, _ in declarations),
    )


# ---- against the declared schema ----------------------------------------------------------------------------------


def _against_schema(bodies: Bodies) -> Iterator[JudgedFinding]:
    """Yield what no version declares, what every version requires, and what none allows."""
    names = {path for path in bodies.profiles if "." not in path}
    shared = any(path in declared.fields for declared in bodies.declared for path in names)
    if not bodies.declared or not shared:
        return  # nothing in common with the schema: other data, which framing findings already report
    for findings in (_undeclared(bodies), _missing(bodies), _wrong_kinds(bodies), _wrong_symbols(bodies)):
        yield from bodies.listed(findings)
    if any(declared.is_cut for declared in bodies.declared):
        reason = f"a scan reads at most {MAX_FIELDS:,} fields of {bodies.declared_by}, {MAX_DEPTH} levels deep, and there are more"
        yield limited(bodies.place, "declared fields", reason, {"most": MAX_FIELDS})


def _undeclared(bodies: Bodies) -> Iterator[JudgedFinding]:
    profiles = [
        profile for path, profile in sorted(bodies.profiles.items()) if profile.present and _is_undeclared(bodies, path)
    ]
    yield from _by_object(bodies, profiles)


def _by_object(bodies: Bodies, undeclared: Iterable[FieldProfile]) -> Iterator[JudgedFinding]:
    """Yield a finding per undeclared field; one per object with very many of them."""
    by_parent: dict[str, list[FieldProfile]] = {}
    for profile in undeclared:
        by_parent.setdefault(parent_of(profile.path), []).append(profile)
    for parent, profiles in sorted(by_parent.items()):
        is_closed = all(declared.others.get(parent) == "closed" for declared in bodies.declared)
        severity = "risk" if is_closed else "notice"
        if len(profiles) > MANY_NAMES:
            most = max(profiles, key=lambda profile: profile.present)
            path = f"{parent}.*" if parent else "*"
            yield bodies.finding(
                "FIELD_UNDECLARED",
                path,
                most.present,
                {"share": share_of(most.present, most.possible)},
                {"names": len(profiles)},
                severity=severity,
            )
            continue
        for profile in profiles:
            names = {"share": share_of(profile.present, profile.possible)}
            first = profile.undeclared or min(profile.first_of_kind.values(), default=())
            evidence = {**_encodings(profile), **_example_of(first)}
            more: dict[str, Any] = {"severity": severity, "places": profile.places.get("present", ())}
            yield bodies.finding("FIELD_UNDECLARED", profile.path, profile.present, names, evidence, **more)


def _is_undeclared(bodies: Bodies, path: str) -> bool:
    """Return whether every version declares the object around a path but none the path itself."""
    parent = parent_of(path)
    if not path or path.endswith(("[]", "{}")):
        return False
    return all(
        path not in declared.fields and declared.others.get(parent) in ("closed", "silent")
        for declared in bodies.declared
    )


def _missing(bodies: Bodies) -> Iterator[JudgedFinding]:
    required = set.intersection(
        *({path for path, field in declared.fields.items() if field.required} for declared in bodies.declared)
    )
    for path in sorted(required):
        if "[]" in path or "{}" in path:
            continue  # the number of elements is unknown
        profile, around = bodies.profiles.get(path), bodies.profiles.get(parent_of(path))
        if profile is None and bodies.lacks_fields:
            continue  # the scan may have stopped before it
        possible = around.kinds.get("object", 0) if around is not None else 0
        if around is None and not parent_of(path):
            possible = bodies.messages
        missing = possible - (profile.present if profile is not None else 0)
        if missing > 0:
            names = {"share": share_of(missing, bodies.messages)}
            evidence = {"missing": missing, **_example_of(_without(bodies, path))}
            places = profile.places.get("absent", ()) if profile is not None else ()
            yield bodies.finding("FIELD_MISSING", path, missing, names, evidence, places=places)


def _without(bodies: Bodies, path: str) -> tuple[int, ...]:
    """Return a message without the field, empty if unknown; if all lack it, the first with its parent object."""
    if (profile := bodies.profiles.get(path)) is not None:
        return profile.absent
    around = bodies.profiles.get(parent_of(path))
    if around is not None:
        return around.first_of_kind.get("object", ())
    firsts = [place for profile in bodies.profiles.values() for place in profile.first_of_kind.values()]
    return () if parent_of(path) else min(firsts, default=())


def _wrong_kinds(bodies: Bodies) -> Iterator[JudgedFinding]:
    for path, profile in sorted(bodies.profiles.items()):
        fields = _declared_at(bodies, path)
        if not fields or any(field.kinds is None for field in fields):
            continue
        allowed = frozenset().union(*(field.kinds or frozenset() for field in fields))
        undeclared = {kind: number for kind, number in profile.kinds.items() if number and kind not in allowed}
        if undeclared:
            number = min(sum(undeclared.values()), profile.messages)
            names = {
                "observed": kind_words(undeclared),
                "share": share_of(number, profile.messages),
                "declared": kind_words(allowed),
            }
            firsts = [profile.first_of_kind[kind] for kind in undeclared if kind in profile.first_of_kind]
            evidence = {"declared": sorted(allowed), **_example_of(min(firsts, default=()))}
            places = [place for kind in undeclared for place in profile.places.get(kind, ())]
            yield bodies.finding("FIELD_TYPE_WRONG", path, number, names, evidence, places=places)


def _wrong_symbols(bodies: Bodies) -> Iterator[JudgedFinding]:
    """Yield values that no version lists: counted but never shown, as they may contain anything."""
    for path, profile in sorted(bodies.profiles.items()):
        fields = _declared_at(bodies, path)
        if not fields or any(field.symbols is None for field in fields):
            continue
        listed = frozenset().union(*(field.symbols or frozenset() for field in fields))
        undeclared = {value: number for value, number in profile.values.items() if number and value not in listed}
        if undeclared:
            number = min(sum(undeclared.values()), profile.messages)
            values = {"different_values": len(undeclared), "lengths": sorted({len(value) for value in undeclared})[:10]}
            # The decoder may have merged all of them: then their number is unknown.
            evidence = _example(profile) | (values if UNLISTED.isdisjoint(undeclared) else {})
            names = {"share": share_of(number, profile.messages)}
            places = profile.places.get("unlisted", ())
            yield bodies.finding("ENUM_VALUE_UNDECLARED", path, number, names, evidence, places=places)


# ---- what Protobuf's decoders ignore ------------------------------------------------------------------------------


def _passed_over(bodies: Bodies) -> Iterator[JudgedFinding]:
    """Yield Protobuf fields and enum values that the message's schema doesn't declare: decoders don't fail on them."""
    own = bodies.where.registered.versions.get((bodies.framing, bodies.mark), ())  # type: ignore[arg-type]
    if bodies.versions or not own:
        return
    known = replace(bodies, versions=tuple(own))
    unknown = [profile for _, profile in sorted(bodies.profiles.items()) if UNKNOWN_KIND in profile.kinds]
    undeclared = [profile for profile in unknown if _number_of(profile)[0] == "" and EXTENSION not in profile.values]
    otherwise = [profile for profile in unknown if _number_of(profile)[0]]
    for findings in (_by_object(known, undeclared), _wrong_encodings(known, otherwise), _unlisted_numbers(known)):
        yield from known.listed(findings)


def _wrong_encodings(bodies: Bodies, profiles: Iterable[FieldProfile]) -> Iterator[JudgedFinding]:
    for profile in profiles:
        path = profile.path.rpartition("#")[0]
        names = {
            "path": shortened(path),
            "observed": f"encoded as {either(sorted(profile.values))}",
            "share": share_of(profile.present, profile.possible),
            "declared": profile.declared,
        }
        evidence = {
            "field": shortened(path),
            "declared": [profile.declared],
            **_encodings(profile),
            **_example(profile),
        }
        places = profile.places.get("present", ())
        yield bodies.finding("FIELD_TYPE_WRONG", profile.path, profile.present, names, evidence, places=places)


def _unlisted_numbers(bodies: Bodies) -> Iterator[JudgedFinding]:
    for path, profile in sorted(bodies.profiles.items()):
        number = min(sum(profile.values.get(value, 0) for value in UNLISTED), profile.present)
        if number:
            names = {"share": share_of(number, profile.possible)}
            places = profile.places.get("unlisted", ())
            yield bodies.finding("ENUM_VALUE_UNDECLARED", path, number, names, _example(profile), places=places)


def _number_of(profile: FieldProfile) -> tuple[str, str]:
    """Return the name (empty if undeclared) and the number of a rejected field."""
    name, _, number = profile.path.rpartition(".")[2].rpartition("#")
    return name, number


def _encodings(profile: FieldProfile) -> dict[str, Any]:
    if UNKNOWN_KIND not in profile.kinds:
        return {}
    return {"field_number": int(_number_of(profile)[1]), "encodings": sorted(profile.values)}


def _example(profile: FieldProfile) -> dict[str, Any]:
    """Return a message with an undeclared field or value, if known."""
    return _example_of(profile.undeclared)


def _example_of(place: tuple[int, ...]) -> dict[str, Any]:
    """Return a message's partition and offset, if known."""
    return {"example": [dict(zip(("partition", "offset"), place, strict=True))]} if place else {}


def _declared_at(bodies: Bodies, path: str) -> list[DeclaredField]:
    return [declared.fields[path] for declared in bodies.declared if path in declared.fields]


def shortened(path: str) -> str:
    """Return a path of at most LONGEST_PATH characters: names come from the data."""
    return path if len(path) <= LONGEST_PATH else f"{path[: LONGEST_PATH - 1]}…"
