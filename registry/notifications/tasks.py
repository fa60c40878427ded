"""What Celery runs. Delivered twice, none of it does harm."""

from __future__ import annotations

from celery import shared_task

from registry.notifications import delivering, digests, job_log


@shared_task(acks_late=True)
def deliver(delivery_id: int) -> None:
    """Try once to deliver to a webhook; nothing where another worker does."""
    delivering.deliver(delivery_id)


@shared_task
def queue_due_deliveries() -> None:
    """Hand out what is due, what was lost included."""
    for number in delivering.due_deliveries():
        deliver.delay(number)


@shared_task(acks_late=True)
def send_digest(digest_id: int) -> None:
    """Send one person's digest; nothing where another worker does."""
    digests.send_digest(digest_id)


@shared_task
def queue_due_digests() -> None:
    """Hand out the digests that are due, what was lost included."""
    for number in digests.due_digests():
        send_digest.delay(number)


@shared_task
def prune_notices() -> None:
    """Remove what is older than it is kept."""
    while delivering.prune():
        continue
    digests.prune()
    job_log.prune()
