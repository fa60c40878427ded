"""Running one scan."""

from __future__ import annotations

from registry.observations import Observation, PartitionRead, ScanSpec, TopicScan, TopicTotals
from registry.pipeline import slices
from registry.pipeline.control import Control, OnProgress
from registry.pipeline.readers import kafka
from registry.pipeline.session import USER_ID, close_session, open_session
from registry.pipeline.state import scan_state
from registry.pipeline.topic import scan_topic


def run(
    spec: ScanSpec,
    *,
    remote: str,
    deadline: float | None = None,
    on_progress: OnProgress | None = None,
    tag: str | None = None,
    session_id: str | None = None,
    user_id: str = USER_ID,
) -> list[Observation]:
    """Execute `spec` on the Spark Connect server at `remote` (`sc://…`) and return all that it observed.

    `deadline` is the seconds allowed (the specification's own when None). `on_progress(done, total, phase)` counts
    Spark tasks, and may be called from another thread; what it raises ends the scan and is raised from here. With `tag`,
    `session_id` (a UUID) and `user_id` another process can end the scan through `interrupt`. Raises InvalidSource,
    BrokerUnavailable, SparkUnavailable and ScanInterrupted.
    """
    if isinstance(spec, TopicScan):
        kafka.check_topic(spec.topic, spec.ranges)
        kafka.connection_options(spec.connection)
        asked = slices.clamp(spec.ranges)
        if slices.left(asked) == 0:
            read = [PartitionRead(part.partition, part.start, part.end, part.low, part.high, 0) for part in asked]
            return [*read, TopicTotals(spec.topic, 0, 0, None, 0.0)]
    seconds = deadline if deadline is not None else spec.bounds.deadline_seconds
    session = open_session(remote, session_id=session_id, user_id=user_id)
    try:
        with Control(session, seconds=seconds, tag=tag, on_progress=on_progress) as control:
            if isinstance(spec, TopicScan):
                return list(scan_topic(session, spec, control))
            return list(scan_state(session, spec, control))
    finally:
        close_session(session)
