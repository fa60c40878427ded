"""What other apps know about versions: whether data, state or clients still need them.

They register in `registry.hooks`. Each kind of evidence is separate and has a date; missing knowledge is reported as
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
#: the channels whose clients don't know evidence: there a delete succeeds and a header reports the use
DIALECT_CHANNELS: Final = frozenset({"confluent", "google", "spring"})
HEADER: Final = "X-Schemadesk-In-Use"
MAX_PARTS: Final = 50


@dataclass(frozen=True)
class Evidence:
    """One provider's knowledge of one version. `until`: needed at least until then; `as_of`: when that was seen.

    `names` is the part of the sentence that names something of the whole registry, such as a query.
    """

    kind: Kind
    in_use: InUse
    sentence: str
    until: datetime | None = None
    as_of: datetime | None = None
    names: str = ""

    def without_names(self) -> Evidence:
        """Return it without `names`, for an actor who may read the subject but not the whole registry."""
        sentence = self.sentence.replace(self.names, _GENERAL[self.kind]) if self.names else self.sentence
        return replace(self, sentence=sentence, names="")

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values, with times unchanged."""
        return {name: value for name, value in vars(self).items() if name != "names"}


#: called with paths of a schema; returns in words how much of the data has a value there: "" for a path that never had
#: one, and nothing if fields weren't counted
Filled = Callable[[Registry, SubjectName, Collection[str]], Mapping[str, str]]


@dataclass(frozen=True)
class EvidenceProvider:
    """A kind of evidence, and a function that returns it for a subject's versions, in a constant number of queries."""

    kind: Kind
    evidence: Callable[[Registry, SubjectName, Sequence[int]], Mapping[int, Sequence[Evidence]]]
    filled: Filled | None = None


def filled_fields(registry: Registry, subject: SubjectName, paths: Collection[str]) -> dict[str, str]:
    """Return how many messages have a value at a schema's paths, as `Filled` describes."""
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
    """Return the evidence on these versions, of all kinds or the given ones; an unavailable provider counts as unknown.

    With `by`, only what they may read is named.
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
    """Refuse to delete versions in use; `force` is the reason to delete them anyway, which needs a permission.

    Nothing is refused in the dialects: their clients expect what the real servers do. Raises VersionInUse, and
    NotAllowed for a `force` without the permission.
    """
    if by.channel in DIALECT_CHANNELS:
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
    """Return the header of a delete's response: `3;kind=data;until=2026-12-12T00:00:00Z, 4;kind=state`.

    For one version, or with None for the whole subject; empty if nothing is known to be in use, or if the version
    doesn't exist. Call it before the delete.
    """
    try:
        number = None if version is None else parse_version(version)
        numbers = list_versions(registry, subject, deleted=True)
    except (NotFound, InvalidVersion):
        return {}  # the delete itself reports it in the dialect's format
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
