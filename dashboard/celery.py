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
from django.db import transaction
from kombu.connection import Connection
from kombu.exceptions import OperationalError

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

#: seconds between two attempts to connect; Celery's own grow to half a minute
BETWEEN: Final = 1.0

#: a connection that was kept may have ended with the Valkey of before
ONCE_MORE: Final = {"max_retries": 1, "interval_start": 0, "interval_step": 0}

logger = logging.getLogger(__name__)


class SteadyConnection(Connection):
    """Connects again in even steps, and outlives a broker that went away with a task under way."""

    def maybe_close_channel(self, channel: Any) -> None:
        """As its base does it.

        A channel whose connection is gone fails as it gives its tasks back (kombu asks None for its address), which would
        end the worker. They aren't lost: the broker has them, and gives them back after its own time.
        """
        try:
            super().maybe_close_channel(channel)  # type: ignore[no-untyped-call]
        except AttributeError as error:
            logger.warning("tasks under way stay with the broker: %s", error)

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


class HandedOn(DjangoTask):
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


app = Celery("schemadesk", amqp=SteadyAMQP, task_cls=HandedOn)
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
