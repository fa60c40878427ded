"""Running one scan."""

from __future__ import annotations

from registry.errors import InvalidSource
from registry.observations import Observation, ScanSpec, TopicScan
from registry.pipeline import slices
from registry.pipeline.control import Control, OnProgress
from registry.pipeline.framing import raw_mark
from registry.pipeline.readers import kafka
from registry.pipeline.session import USER_ID, close_session, open_session
from registry.pipeline.state import scan_state
from registry.pipeline.topic import nothing_to_read, scan_topics


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
        kafka.check_topics(spec.topics)
        kafka.connection_options(spec.connection)
        _check_marks(spec)
        if slices.left(slices.pieces(spec.topics)) == 0:
            return nothing_to_read(spec)
    seconds = deadline if deadline is not None else spec.bounds.deadline_seconds
    session = open_session(remote, session_id=session_id, user_id=user_id)
    try:
        with Control(session, seconds=seconds, tag=tag, on_progress=on_progress) as control:
            if isinstance(spec, TopicScan):
                return list(scan_topics(session, spec, control))
            return list(scan_state(session, spec, control))
    finally:
        close_session(session)


def _check_marks(spec: TopicScan) -> None:
    for writer in spec.writers:
        try:
            raw_mark(writer.framing, writer.mark)
        except ValueError as error:
            raise InvalidSource(f"{writer.mark[:80]!r} is no mark of a schema: {error}") from error
