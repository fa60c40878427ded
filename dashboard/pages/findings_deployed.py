"""What was deployed in the hours that a finding's messages carry."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from django.utils import timezone
from django.utils.translation import gettext

from registry.drift.hours import ByHour
from registry.drift.selectors import FindingInfo, deployments_about
from registry.drift.selectors.deployments import Concerned

HOUR: Final = timedelta(hours=1)
#: deployments that an hour names
SHOWN: Final = 3
_FORM: Final = "%Y-%m-%d %H:%M"


def deployed_by_hour(info: FindingInfo) -> Mapping[str, tuple[str, ...]]:
    """Hour → what was deployed in it, from an hour before the first message on; no query without hours."""
    hours = sorted(filter(None, map(_moment, ByHour.of_evidence(info.evidence).counts)))
    if not hours:
        return {}
    concerned = Concerned(info.registry, info.subject, info.topic)
    # A producer's clock may be thousands of years ahead; nothing is deployed later than now.
    until = min(hours[-1], timezone.now()) + HOUR
    labels: dict[str, list[str]] = {}
    for deployment in deployments_about(concerned, hours[0] - HOUR, until):
        hour = deployment.at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        labels.setdefault(hour.strftime(_FORM), []).append(f"{deployment.at.astimezone(UTC):%H:%M} {deployment.label}")
    return {hour: _shown(found[::-1]) for hour, found in labels.items()}


def _shown(labels: list[str]) -> tuple[str, ...]:
    if len(labels) <= SHOWN:
        return tuple(labels)
    return (*labels[:SHOWN], gettext("%(number)s more") % {"number": len(labels) - SHOWN})


def _moment(hour: str) -> datetime | None:
    try:
        return datetime.strptime(hour, _FORM).replace(tzinfo=UTC)
    except ValueError:
        return None
