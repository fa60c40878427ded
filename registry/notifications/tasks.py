"""The Celery tasks. All are safe to deliver twice."""

from __future__ import annotations

from celery import shared_task

from registry.notifications import digests, job_log, webhook_delivery


@shared_task(acks_late=True)
def deliver(delivery_id: int) -> None:
    """Attempt a delivery to a webhook once, unless another worker has it."""
    webhook_delivery.deliver(delivery_id)


@shared_task
def queue_due_deliveries() -> None:
    """Queue the due deliveries, including lost ones."""
    for number in webhook_delivery.due_deliveries():
        deliver.delay(number)


@shared_task(acks_late=True)
def send_digest(digest_id: int) -> None:
    """Send one person's digest, unless another worker has it."""
    digests.send_digest(digest_id)


@shared_task
def queue_due_digests() -> None:
    """Queue the due digests, including lost ones."""
    for number in digests.due_digests():
        send_digest.delay(number)


@shared_task
def prune_notices() -> None:
    """Delete notices, digests and job runs that are past their retention."""
    while webhook_delivery.prune():
        continue
    digests.prune()
    job_log.prune()
