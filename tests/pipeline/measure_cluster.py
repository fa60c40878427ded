"""How much quicker two Spark workers scan ten topics than one: `python -m tests.pipeline.measure_cluster 40000`.

Each worker gets a share of a processor, with its executor; the rest is for the driver and the broker.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from benchmarks.scan import FIELDS, _scan, fill_topic, make_topics, observe
from dashboard.runtime.parts import kafka_broker
from tests.pipeline.cluster import connect_to, standalone_cluster
from tests.processor_quota import limited

TOPICS, PARTITIONS, SHARE, REPEATS = 10, 4, 0.3, 2
WARM_UP: Final = 2  # topics that are scanned first, without a limit, so that the executors have compiled what they run


def measure(messages: int) -> None:
    """Print the seconds of each scan, and the ratio of the best ones."""
    with tempfile.TemporaryDirectory(prefix="schemadesk-bench-") as base:
        (Path(base) / "kafka").mkdir()
        with limited("bench-others", os.getpid(), None), kafka_broker(Path(base) / "kafka") as bootstrap:
            names = make_topics(bootstrap, TOPICS, PARTITIONS)
            reads = [read for name in names for read in fill_topic(bootstrap, messages, PARTITIONS, name).reads]
            best: dict[int, float] = {}
            for workers in (2, 1):
                folder = Path(base) / str(workers)
                with standalone_cluster(folder, workers) as cluster, connect_to(cluster, folder / "server") as remote:
                    observe(_scan(bootstrap, reads[:WARM_UP], FIELDS), remote)
                    with ExitStack() as stack:
                        for number, worker in enumerate(cluster.workers):
                            stack.enter_context(limited(f"bench-spark{number}", worker.pid, SHARE))
                        for _ in range(REPEATS):
                            began = time.monotonic()
                            observe(_scan(bootstrap, reads, FIELDS), remote)
                            seconds = time.monotonic() - began
                            best[workers] = min(best.get(workers, seconds), seconds)
                            print(f"{workers} of {SHARE:.0%}: {seconds:.1f} s", flush=True)
    rates = {workers: TOPICS * messages / seconds for workers, seconds in best.items()}
    print(f"{rates[1]:,.0f} and {rates[2]:,.0f} messages a second, × {rates[2] / rates[1]:.2f}")


if __name__ == "__main__":
    measure(int(sys.argv[1]))
