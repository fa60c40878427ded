"""Deployments that programs report: possible causes of findings. They block nothing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import urlsplit

from django.db import transaction
from django.utils import timezone

from registry.access.permission_filters import checked_pattern
from registry.access.roles import Actor, require
from registry.audit.context import record
from registry.drift.models import MAX_LABEL, MAX_URL, Deployment
from registry.errors import InvalidInput
from registry.subjects.models import Registry
from registry.subjects.models.registries import MAX_NAME
from registry.subjects.versions.lookup import get_registry

ACTION: Final = "deployment.tell"
#: for how long they are kept after they began
KEPT: Final = timedelta(days=90)
#: without a time of its own, the same label within that time is the same deployment: told again after no answer
TOLD_AGAIN: Final = timedelta(minutes=10)
#: how far a program's clock may be ahead of ours
AHEAD: Final = timedelta(minutes=5)
AT_A_TIME: Final = 5_000


@dataclass(frozen=True)
class DeploymentResult:
    """The deployment's number, and whether it is new."""

    id: int
    is_new: bool


@transaction.atomic
def tell_deployment(
    *,
    registry: str,
    label: str,
    by: Actor,
    at: datetime | None = None,
    url: str = "",
    subjects: str = "",
    topics: str = "",
    client: str = "",
) -> DeploymentResult:
    """Something is deployed to what a registry serves; `at` is when it began, now where it isn't given.

    Told twice it is there once: label and time name it. What is said otherwise the second time holds. Whoever may do so
    for some subjects alone names a pattern among them. Raises InvalidInput, NotAllowed, NotSignedIn, RegistryNotFound.
    """
    registry_row = get_registry(registry)
    subjects = _pattern(subjects, "subjects", 512)
    _require_all_of(subjects, registry_row, by)
    label = _text(label, "label", MAX_LABEL)
    if not label:
        raise InvalidInput("Give the deployment a label, such as the program and its version.", field="label")
    fields = {
        "url": _url(url),
        "subjects": subjects,
        "topics": _pattern(topics, "topics", 249),
        "client": _text(client, "client", MAX_NAME),
    }
    now = timezone.now()
    _check_time(at, now)
    # Two deliveries at once wait for each other; those who refer to the registry don't.
    Registry.objects.select_for_update(no_key=True).get(pk=registry_row.pk)
    record(by=by, why=f"report deployment {label} in {registry_row.name}")
    there = _there(registry_row, label, at, now)
    if there is not None:  # what it was told for is taken away by telling it otherwise
        _require_all_of(there.subjects, registry_row, by)
    else:
        row = Deployment.objects.create(registry=registry_row, label=label, at=at or now, told_by=by.name, **fields)
        return DeploymentResult(row.pk, is_new=True)
    changed = [field for field, value in fields.items() if getattr(there, field) != value]
    if changed:
        for field in changed:
            setattr(there, field, fields[field])
        there.told_by = by.name
        there.save(update_fields=[*changed, "told_by"])
    return DeploymentResult(there.pk, is_new=False)


@transaction.atomic
def prune_deployments(*, by: Actor) -> int:
    """Remove some of those that began longer ago than they are kept; gives how many."""
    over = Deployment.objects.filter(at__lt=timezone.now() - KEPT).order_by("at", "pk")
    numbers = list(over.values_list("pk", flat=True)[:AT_A_TIME])
    if numbers:
        record(by=by, why=f"deployments are kept for {KEPT.days} days")
        Deployment.objects.filter(pk__in=numbers).delete()
    return len(numbers)


def _require_all_of(subjects: str, registry: Registry, by: Actor) -> None:
    """A pattern is judged as a name would be: `orders-*` lies within the right to `orders-*`, `*` doesn't.

    Its star stands for no letter too, and for several: neither `orders-?` nor `orders-[!a]` has all of `orders-*`.
    """
    for letters in ("*", "", "**"):
        require(by, ACTION, registry=registry.name, subject=subjects.replace("*", letters))


def _there(registry: Registry, label: str, at: datetime | None, now: datetime) -> Deployment | None:
    same = Deployment.objects.filter(registry=registry, label=label)
    since = now - TOLD_AGAIN
    candidates = same.filter(at=at) if at else same.filter(told_at__gt=since, at__gt=since)
    return candidates.order_by("-at", "-pk").first()


def _check_time(at: datetime | None, now: datetime) -> None:
    if at is None:
        return
    if at.tzinfo is None or at > now + AHEAD:
        raise InvalidInput("The deployment starts in the future. Report it when it starts.", field="at")
    if at < now - KEPT:
        raise InvalidInput(f"Deployments are kept for {KEPT.days} days, and this one started earlier.", field="at")


def _text(text: str, what: str, most: int) -> str:
    cleaned = " ".join(text.split())
    if len(cleaned) > most:
        raise InvalidInput(f"The {what} has {len(cleaned)} characters; the maximum is {most}.", field=what)
    if not cleaned.isprintable():
        raise InvalidInput(f"The {what} has a character that can't be displayed. Remove it.", field=what)
    return cleaned


def _pattern(text: str, what: str, most: int) -> str:
    """A shell pattern; one of everything is the empty one."""
    pattern = checked_pattern(text, what, longest=most, field=what)
    return "" if pattern == "*" else pattern


def _url(text: str) -> str:
    """An address that a page may lead to. It is never fetched."""
    address = text.strip()
    try:
        parts = urlsplit(address)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None
    except ValueError:
        good = False
    if address and (not good or len(address) > MAX_URL or not address.isprintable() or " " in address):
        raise InvalidInput(f"The url must be an http or https address of up to {MAX_URL} characters.", field="url")
    return address
