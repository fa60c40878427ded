"""What came of an endurance run: of each fault, and whether it stayed as quick and as large as it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from dashboard.bench.endurance_seen import FAULTS, Error, Fault, Seen, percentile
from dashboard.bench.endurance_site import MEMORY, Site
from dashboard.bench.engines import milliseconds

SLOWER: Final = 1.5  # times the second quarter's
FLAT: Final = 0.05  # of the mean, that memory may rise by in the last quarter
FLAT_BYTES: Final = 4 * 2**20  # or by this, which says nothing of a part as small as Valkey


@dataclass(frozen=True, slots=True)
class Verdict:
    """Something that was to be held, what was seen, and whether it was held; None where nothing was asked of it."""

    what: str
    said: str
    is_held: bool | None = None


@dataclass(frozen=True, slots=True)
class Trouble:
    """A fault's time: from when until when something was wrong, and until when the part was away (None: it still is)."""

    fault: Fault
    begin: float
    back: float | None
    end: float
    errors: tuple[Error, ...]
    longest: float
    read: int
    read_errors: int


def troubles(seen: Seen, site: Site) -> list[Trouble]:
    """What each fault did, until the next one."""
    found = []
    ends = [*(at for _, at in seen.faults[1:]), seen.seconds[-1].at]
    for (fault, begin), limit in zip(seen.faults, ends, strict=True):
        back = site.ready_after(fault.part, begin)
        away = min(limit, back or limit)
        errors = tuple(each for each in seen.errors if begin <= each.at < limit)
        # The last answer to what was asked while the part was away: it may have waited for it.
        late = [
            each.at
            for each in seen.seconds
            if begin < each.at <= limit and each.taken and each.at - max(each.taken) <= away
        ]
        end = max([away, *(each.at for each in errors), *late])
        within = [each for each in seen.seconds if begin < each.at <= end + 1]
        found.append(
            Trouble(
                fault, begin, back, end, errors,
                longest=max((max(each.taken) for each in within if each.taken), default=0.0),
                read=sum(each.steady for each in seen.seconds if begin < each.at <= away + 0.5),
                read_errors=sum(begin <= each.at <= away for each in seen.steady_errors),
            )
        )  # fmt: skip
    return found


def verdicts(seen: Seen, seconds: float, site: Site) -> Iterator[Verdict]:
    """What came of the faults, and whether it stayed as quick and as large."""
    found = troubles(seen, site)
    for trouble in found:
        yield _fault(trouble)
        yield _reads(trouble)
    for fault in FAULTS[len(found) :]:
        yield Verdict(fault.name, "wasn't done: the one before it wasn't over in time", False)
    outside = [each for each in seen.errors if not any(each_.begin <= each.at <= each_.end for each_ in found)]
    said = f"{len(outside):,}{_statuses(outside)}"
    yield Verdict("errors at other times", said, not outside)
    yield _steady_p99(seen, seconds, found)
    yield from (_flat(name, seen, seconds) for name in MEMORY)


def _fault(trouble: Trouble) -> Verdict:
    errors = trouble.errors
    back = "is still away" if trouble.back is None else f"back after {trouble.back - trouble.begin:.1f} s"
    if not errors:
        return Verdict(
            trouble.fault.name,
            f"{back}; no error, the longest answer took {milliseconds(trouble.longest)}",
            trouble.back is not None,
        )
    first, last = errors[0].at - trouble.begin, errors[-1].at - trouble.begin
    documented = [each for each in errors if each.is_told and each.what in trouble.fault.told]
    others = [each for each in errors if each not in documented]
    said = (
        f"{back}; from {first:.1f} to {last:.1f} s after it {len(documented):,} answers as documented"
        f"{_statuses(documented)}, {len(others):,} other errors{_statuses(others)}; the longest answer took "
        f"{milliseconds(trouble.longest)}"
    )
    return Verdict(trouble.fault.name, said, not others and trouble.back is not None)


def _statuses(errors: Sequence[Error]) -> str:
    if not errors:
        return ""
    counts = Counter(each.what for each in errors).most_common()
    first = {each.what: each.said[:120] for each in reversed(errors)}
    return ": " + "; ".join(f"{count:,} × {what} ({' '.join(first[what].split())})" for what, count in counts)


def _reads(trouble: Trouble) -> Verdict:
    """One schema that was read all the time, by one connection to each web server."""
    seconds = (trouble.back or trouble.end) - trouble.begin
    said = f"{trouble.read:,} answers in {seconds:.1f} s, {trouble.read_errors:,} errors"
    return Verdict(f"cached reads meanwhile, {trouble.fault.name}", said, trouble.read > 0)


def _steady_p99(seen: Seen, seconds: float, found: Sequence[Trouble]) -> Verdict:
    def p99(quarter: int) -> float:
        begin, end = seen.began + quarter * seconds / 4, seen.began + (quarter + 1) * seconds / 4
        taken = [
            took
            for each in seen.seconds
            if begin < each.at <= end and not any(one.begin <= each.at <= one.end + 1 for one in found)
            for took in each.taken
        ]
        return percentile(sorted(taken), 0.99)

    what = f"p99 of the last quarter within {SLOWER} × of the second's"
    second, last = p99(1), p99(3)
    if not second or not last:
        return Verdict(what, "too short a run to say: a quarter has no time apart from the faults")
    said = f"{milliseconds(second)}, then {milliseconds(last)}, apart from the faults"
    return Verdict(what, said, last <= SLOWER * second)


def _flat(name: str, seen: Seen, seconds: float) -> Verdict:
    """Whether the memory of a part stays in the last quarter, when the caches of all have had time to fill."""
    samples = [(at, each[name]) for at, each in seen.memory if at >= seen.began + 0.75 * seconds and each[name]]
    what = f"memory of {name} flat in the last quarter"
    if len(samples) < 3:
        return Verdict(what, "too short a run to say")
    growth, mean = growth_of(samples)
    said = (
        f"{mean / 2**20:,.0f} MiB, {growth / 2**20:+.1f} MiB ({growth / mean:+.1%}) in "
        f"{(samples[-1][0] - samples[0][0]) / 60:.1f} minutes"
    )
    return Verdict(what, said, growth <= max(FLAT * mean, FLAT_BYTES))


def growth_of(samples: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """How much a line through the samples rises from the first to the last, and the mean."""
    mean_at = sum(at for at, _ in samples) / len(samples)
    mean = sum(value for _, value in samples) / len(samples)
    spread = sum((at - mean_at) ** 2 for at, _ in samples)
    slope = sum((at - mean_at) * (value - mean) for at, value in samples) / spread if spread else 0.0
    return slope * (samples[-1][0] - samples[0][0]), mean
