"""The Celery application; workers consume the queues `default` and `scans`.

It tolerates outages of Valkey: a program that enqueues a task continues without it, because a row has the work and beat
picks it up; a worker reconnects a second after Valkey is back.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from typing import Any, Final

from celery import Celery
from celery.app.amqp import AMQP
from celery.contrib.django.task import DjangoTask
from celery.signals import worker_init
from django.db import transaction
from kombu.connection import Connection
from kombu.exceptions import OperationalError
from kombu.transport import redis
from redis import ConnectionPool
from redis.exceptions import ConnectionError, TimeoutError

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

#: seconds between attempts to connect; Celery's own interval grows to half a minute
BETWEEN: Final = 1.0

#: one retry, because a pooled connection may be to an earlier Valkey
ONCE_MORE: Final = {"max_retries": 1, "interval_start": 0, "interval_step": 0}

#: seconds without requests to a Valkey after a timeout
PAUSE: Final = 5.0
#: seconds after which a failure counts as a timeout; an absent Valkey fails immediately
LONG: Final = 0.5
#: timeouts for enqueuing a task
SENDING: Final = {"socket_connect_timeout": 1, "socket_timeout": 1}

logger = logging.getLogger(__name__)


class Pause:
    """A pause in requests to a hanging Valkey; one for all threads of a process."""

    def __init__(self) -> None:
        self._until = 0.0

    def is_on(self) -> bool:
        """Return whether Valkey hung recently."""
        return time.monotonic() < self._until

    def note_failure(self, began: float) -> None:
        """Start a pause if a request that began at `began` failed by a timeout."""
        moment = time.monotonic()
        if moment - began > LONG and not self.is_on():
            self._until = moment + PAUSE
            logger.warning("Valkey doesn't answer; nothing asks it for %.0f s, and tasks wait for beat", PAUSE)


VALKEY: Final = Pause()


class CachePool(ConnectionPool):
    """The cache's connections: none while Valkey hangs, so that a page doesn't wait for each value."""

    def get_connection(self, *args: Any, **kwargs: Any) -> Any:
        """Return a connection. Raises TimeoutError immediately while Valkey hangs."""
        if VALKEY.is_on():
            raise TimeoutError("Valkey doesn't answer")
        began = time.monotonic()
        try:
            connection: Any = super().get_connection(*args, **kwargs)
        except (ConnectionError, TimeoutError):
            VALKEY.note_failure(began)
            raise
        connection.began = began
        return connection

    def release(self, connection: Any) -> None:
        """Release a connection; one that failed is already disconnected."""
        began = vars(connection).pop("began", None)  # missing if it couldn't connect
        if began is not None and not connection.is_connected:
            VALKEY.note_failure(began)
        super().release(connection)


class SteadyCelery(Celery):
    """Enqueues no task while Valkey hangs."""

    def connection_for_write(
        self, url: str | None = None, transport_options: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> Any:
        """Return a connection with short timeouts, because a program waits for it."""
        options = {**SENDING, **(transport_options or {})}
        return super().connection_for_write(url, transport_options=options, **kwargs)

    def send_task(self, *args: Any, **kwargs: Any) -> Any:
        """Enqueue a task. Raises OperationalError immediately while Valkey hangs."""
        if VALKEY.is_on():
            raise OperationalError("Valkey doesn't answer")
        began = time.monotonic()
        try:
            return super().send_task(*args, **kwargs)
        except OperationalError:
            VALKEY.note_failure(began)
            raise


class SteadyChannel(redis.Channel):
    """A channel that reports a closed connection by an error that Celery expects."""

    def _connparams(self, asynchronous: bool = False) -> Any:
        """Return the connection parameters. Raises ConnectionError if the connection is closed.

        The base class accesses an attribute of None then: this ended a worker that acknowledged or returned a task
        after the broker had gone away. The broker delivers the task again.
        """
        if self.connection is None or self.connection.client is None:
            raise ConnectionError("the connection to the broker is closed")
        return super()._connparams(asynchronous)  # type: ignore[no-untyped-call]


class SteadyTransport(redis.Transport):
    """Kombu's transport for Valkey, with these channels."""

    Channel = SteadyChannel


class SteadyConnection(Connection):
    """A connection that reconnects at a fixed interval, and survives a broker that goes away during a task."""

    def get_transport_cls(self) -> type:
        """Return the transport, with channels that report a closed connection."""
        transport: type = super().get_transport_cls()  # type: ignore[no-untyped-call]
        return SteadyTransport if transport is redis.Transport else transport

    def _ensure_connection(
        self,
        errback: Any = None,
        max_retries: int | None = None,
        interval_start: float = BETWEEN,
        interval_step: float = 0.0,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """Connect with this class's default intervals."""
        return super()._ensure_connection(  # type: ignore[no-untyped-call]
            errback, max_retries, interval_start, interval_step, *args, **kwargs
        )


class SteadyAMQP(AMQP):
    """Celery's AMQP interface with these connections."""

    Connection = SteadyConnection


class RecordedTask(DjangoTask):
    """A task whose work is also in a row: if the broker is away, the request that enqueues it continues."""

    abstract = True

    def delay_on_commit(self, *args: Any, **kwargs: Any) -> None:
        """Enqueue the task after the commit; if that fails, beat enqueues it."""

        def send() -> None:
            try:
                self.apply_async(args, kwargs, retry=True, retry_policy=ONCE_MORE)
            except OperationalError as error:
                logger.warning("%s waits for beat, as the broker is away: %s", self.name, type(error).__name__)

        transaction.on_commit(send, robust=True)


def keep_what_tasks_log(**_: Any) -> None:
    """Store the logs of tasks for the page of jobs, once a worker starts."""
    from registry.notifications import job_log

    job_log.listen()


worker_init.connect(keep_what_tasks_log, weak=False)

app = SteadyCelery("schemadesk", amqp=SteadyAMQP, task_cls=RecordedTask)
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(
    [
        "registry.audit",
        "registry.drift",
        "registry.notifications",
        "registry.promotions",
        "registry.search",
        "registry.subjects",
        "dashboard",
    ]
)
