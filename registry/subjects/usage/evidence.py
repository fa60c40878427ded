"""What other apps know of versions: whether data, state or clients still need them.

They register in `registry.hooks`. The kinds of evidence are kept apart and dated; what isn't known is reported as
unknown, never as unused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, Literal

from registry import hooks
from registry.access.permission_filters import extent_of
from registry.access.roles import Actor, require
from registry.errors import InvalidVersion, NotFound, Unavailable, VersionInUse
from registry.subjects.models import Registry
from registry.subjects.versions.qualified_names import SubjectName
from registry.subjects.versions.versions import list_versions, parse_version

Kind = Literal["data", "state", "clients"]
_GENERAL: Final[Mapping[Kind, str]] = {
    "data": "A topic",
    "state": "The state of a streaming query",
    "clients": "A client",
}
InUse = Literal["yes", "no", "unknown"]
#: doors whose clients know nothing of evidence: there a delete goes on and says what it does in a header
DIALECT_DOORS: Final = frozenset({"confluent", "google", "spring"})
HEADER: Final = "X-Schemadesk-In-Use"
MAX_PARTS: Final = 50


@dataclass(frozen=True)
class Evidence:
    """What one provider knows of one version. `until`: needed until then at least; `as_of`: when that was seen.

    `names` is the part of the sentence that names what belongs to the registry as a whole, such as a query.
    """

    kind: Kind
    in_use: InUse
    sentence: str
    until: datetime | None = None
    as_of: datetime | None = None
    names: str = ""

    def without_names(self) -> Evidence:
        """For somebody who may read the subject and not the whole registry."""
        sentence = self.sentence.replace(self.names, _GENERAL[self.kind]) if self.names else self.sentence
        return replace(self, sentence=sentence, names="")

    def to_dict(self) -> dict[str, Any]:
        """As JSON values, times as they are."""
        return {name: value for name, value in vars(self).items() if name != "names"}


#: the share of data that fills the fields at some paths of a schema, in words; "" for one never seen with a value, and
#: nothing for any where no fields were counted
Filled = Callable[[Registry, SubjectName, Collection[str]], Mapping[str, str]]


@dataclass(frozen=True)
class EvidenceProvider:
    """The kind of its evidence, and what it knows of each of a subject's versions, in a constant number of queries."""

    kind: Kind
    evidence: Callable[[Registry, SubjectName, Sequence[int]], Mapping[int, Sequence[Evidence]]]
    filled: Filled | None = None


def filled_fields(registry: Registry, subject: SubjectName, paths: Collection[str]) -> dict[str, str]:
    """What providers know of how many messages fill the fields at a schema's paths, as `Filled` says."""
    providers = [provider.filled for provider in hooks.version_evidence if provider.filled] if paths else []
    return {path: share for filled in providers for path, share in filled(registry, subject, paths).items()}


def evidence_of(
    registry: Registry,
    subject: SubjectName,
    versions: Sequence[int],
    *,
    kinds: Collection[Kind] = (),
    by: Actor | None = None,
) -> dict[int, tuple[Evidence, ...]]:
    """All evidence of these versions, of all kinds or those named; a provider that is unavailable knows nothing.

    For `by` it names what they may read.
    """
    is_named = by is None or extent_of(by, "schema.read").has_all_of(registry.name)
    evidence: dict[int, list[Evidence]] = {number: [] for number in versions}
    for name, provider in hooks.version_evidence.items():
        if kinds and provider.kind not in kinds:
            continue
        try:
            items_by_version = provider.evidence(registry, subject, list(versions))
        except Unavailable as error:
            unknown = Evidence(
                provider.kind, "unknown", f"The usage according to {name} can't be read: {error.message}"
            )
            items_by_version = {number: [unknown] for number in versions}
        for number in versions:
            items = items_by_version.get(number, ())
            evidence[number].extend(items if is_named else (item.without_names() for item in items))
    return {number: tuple(items) for number, items in evidence.items()}


def refuse_in_use(
    registry: Registry, subject: SubjectName, versions: Sequence[int], *, by: Actor, force: str = ""
) -> None:
    """Refuse to remove versions that are in use; `force` is the reason of somebody who may all the same.

    Nothing is refused at the doors of the dialects: their clients expect what the real servers do. Raises VersionInUse,
    NotAllowed for a `force` without the right.
    """
    if by.door in DIALECT_DOORS:
        return
    used = _used(evidence_of(registry, subject, versions, by=by))
    if not used:
        return
    if force.strip():
        require(by, "version.force", registry=registry.name, subject=subject.qualified)
        return
    number, items = next(iter(used.items()))
    more = f" {len(used) - 1} more of its versions are in use too." if len(used) > 1 else ""
    raise VersionInUse(
        f"Version {number} of {subject.qualified} is in use: {items[0].sentence}{more} "
        "Wait, or force it with a reason.",
        subject=subject.qualified,
        versions=sorted(used),
        reasons=[item.sentence for items in used.values() for item in items],
    )


def in_use_header(registry: Registry, subject: SubjectName, version: int | str | None = None) -> dict[str, str]:
    """The header that the answer to a delete carries: `3;kind=data;until=2026-12-12T00:00:00Z, 4;kind=state`.

    Of one version, or with None of all of the subject; empty where nothing is known to be in use, and for a version
    that isn't there. To be asked before the delete.
    """
    try:
        number = None if version is None else parse_version(version)
        numbers = list_versions(registry, subject, deleted=True)
    except (NotFound, InvalidVersion):
        return {}  # the delete itself says so, in the dialect's own words
    chosen_numbers = numbers if version is None else [number] if number is not None else numbers[-1:]
    used = _used(evidence_of(registry, subject, chosen_numbers))
    parts = [_part(number, item) for number, items in used.items() for item in items]
    return {HEADER: ", ".join(parts[:MAX_PARTS])} if parts else {}


def _used(evidence: Mapping[int, Sequence[Evidence]]) -> dict[int, list[Evidence]]:
    used = {number: [item for item in items if item.in_use == "yes"] for number, items in evidence.items()}
    return {number: items for number, items in used.items() if items}


def _part(number: int, item: Evidence) -> str:
    until = f";until={item.until.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" if item.until else ""
    return f"{number};kind={item.kind}{until}"
