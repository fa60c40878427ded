"""The Celery application; workers consume the queues `default` and `scans`.

It is patient with Valkey: a program that only hands work on goes on without it, as a row says what is to be done and
beat sweeps it up; a worker connects again a second after Valkey is back.
"""

from __future__ import annotations

import logging
import os
from typing import Any, Final

from celery import Celery
from celery.app.amqp import AMQP
from celery.contrib.django.task import DjangoTask
from celery.signals import worker_init
from django.db import transaction
from kombu.connection import Connection
from kombu.exceptions import OperationalError
from kombu.transport import redis
from redis.exceptions import ConnectionError

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

#: seconds between two attempts to connect; Celery's own grow to half a minute
BETWEEN: Final = 1.0

#: a connection that was kept may have ended with the Valkey of before
ONCE_MORE: Final = {"max_retries": 1, "interval_start": 0, "interval_step": 0}

logger = logging.getLogger(__name__)


class SteadyChannel(redis.Channel):
    """Says that its connection is gone in an error that Celery expects."""

    def _connparams(self, asynchronous: bool = False) -> Any:
        """As its base does it.

        That asks None for an address once the connection is closed: so a worker ended where the broker had gone away
        with a task under way, which it then acknowledges or gives back. The broker gives such a task out again.
        """
        if self.connection is None or self.connection.client is None:
            raise ConnectionError("the connection to the broker is closed")
        return super()._connparams(asynchronous)  # type: ignore[no-untyped-call]


class SteadyTransport(redis.Transport):
    """Kombu's for Valkey, with such channels."""

    Channel = SteadyChannel


class SteadyConnection(Connection):
    """Connects again in even steps, and outlives a broker that went away with a task under way."""

    def get_transport_cls(self) -> type:
        """As its base does it, with channels that say what is wrong."""
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
        """As its base does it, with other numbers where none are given."""
        return super()._ensure_connection(  # type: ignore[no-untyped-call]
            errback, max_retries, interval_start, interval_step, *args, **kwargs
        )


class SteadyAMQP(AMQP):
    """Celery's parts that speak to the broker, with such connections."""

    Connection = SteadyConnection


class RecordedTask(DjangoTask):
    """A task that is told of by a row as well: where the broker is away, the request that made it goes on."""

    abstract = True

    def delay_on_commit(self, *args: Any, **kwargs: Any) -> None:
        """Enqueue once the transaction is committed; where that fails, beat does it."""

        def send() -> None:
            try:
                self.apply_async(args, kwargs, retry=True, retry_policy=ONCE_MORE)
            except OperationalError as error:
                logger.warning("%s waits for beat, as the broker is away: %s", self.name, type(error).__name__)

        transaction.on_commit(send, robust=True)


def keep_what_tasks_log(**_: Any) -> None:
    """Once a worker starts: what its tasks log is kept, for the page of jobs."""
    from registry.notifications import job_log

    job_log.listen()


worker_init.connect(keep_what_tasks_log, weak=False)

app = Celery("schemadesk", amqp=SteadyAMQP, task_cls=RecordedTask)
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
