"""Agreement of verdicts on random pairs: `python -m tests.formats.json_schema.measure N [draft] [first seed]`.

For every pair, in both directions: the established verdict, the truth, and what an independent validator says of them:
a counterexample for each "yes", and each witness for each "no".
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

from registry.errors import InvalidSchema
from registry.formats.base import ParsedSchema, Truth
from registry.formats.json_schema import JSON_SCHEMA
from tests.formats.json_schema.random_schemas import counterexample, is_valid, random_pair, validator_of

TRIES = 60


@dataclass
class Measured:
    """What was counted; `wrong` are seeds whose truth an independent check refutes."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[tuple[int, str]] = field(default_factory=list)
    unknown: list[tuple[int, str]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def add(self, seed: int, reader: ParsedSchema, writer: ParsedSchema) -> None:
        start = time.perf_counter()
        truth = JSON_SCHEMA.truth(reader, writer)
        self.seconds.append(time.perf_counter() - start)
        verdict = "yes" if JSON_SCHEMA.judge(reader, writer).is_compatible else "no"
        self.counts[f"truth {truth.answer}"] += 1
        self.counts[f"established {verdict}, truth {truth.answer}"] += 1
        if truth.answer == "unknown":
            self.unknown.append((seed, truth.how))
        problem = refuted(truth, reader.text, writer.text, seed)
        if problem:
            self.wrong.append((seed, problem))


def refuted(truth: Truth, reader_text: str, writer_text: str, seed: int, tries: int = TRIES) -> str:
    """Why the truth of a pair is wrong, as the `jsonschema` package sees it; empty if it stands."""
    reader, writer = json.loads(reader_text), json.loads(writer_text)
    if truth.answer == "yes":
        datum = counterexample(writer, reader, seed, tries)
        return f"yes, but {datum[0]!r} is valid under the writer alone" if datum else ""
    ours, theirs = validator_of(writer), validator_of(reader)
    for item in truth.findings:
        if item.witness is None or not item.witness.found:
            return f"no without a witness at {item.path}"
        if is_valid(ours, item.witness.datum) is False or is_valid(theirs, item.witness.datum) is True:
            return f"no, but the witness {item.witness.datum!r} doesn't break"
    return "no without a finding" if truth.answer == "no" and not truth.findings else ""


def measure(count: int, draft: int = 7, first: int = 0) -> Measured:
    """Measures `count` pairs, both directions."""
    measured = Measured()
    for seed in range(first, first + count):
        try:
            pair = [JSON_SCHEMA.parse(text) for text in random_pair(seed, draft)]
        except InvalidSchema:
            measured.counts["invalid"] += 1
            continue
        measured.add(seed, pair[1], pair[0])
        measured.add(seed, pair[0], pair[1])
    return measured


def main() -> None:
    """Prints the counts, the times and the seeds worth a look."""
    numbers = [int(text) for text in sys.argv[1:]]
    measured = measure(*numbers) if numbers else measure(500)
    for name, count in sorted(measured.counts.items()):
        print(f"{count:7,} {name}")
    times = sorted(measured.seconds)
    print(f"truth: median {times[len(times) // 2] * 1000:.1f} ms, 99 % {times[int(len(times) * 0.99)] * 1000:.0f} ms, "
          f"most {times[-1] * 1000:.0f} ms")  # fmt: skip
    print(f"refuted by the independent validator: {measured.wrong[:10] or 'none'}")
    for seed, how in measured.unknown[:10]:
        print(f"unknown, seed {seed}: {how}")


if __name__ == "__main__":
    main()
