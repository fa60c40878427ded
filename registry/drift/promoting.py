"""What open drift means for promotions: a subject whose data or state don't match it isn't a ground to build on."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from django.db.models import QuerySet

from registry.drift.models import Finding
from registry.promotions.plan import FAIL, WARN, Check, Step, Verdict
from registry.subjects.models import Registry

NAME: Final = "drift"
MAX_NAMED: Final = 3
_CURE: Final = "Resolve or acknowledge what is open, or have a reviewer override it with a reason."


def open_drift(target: Registry, steps: Sequence[Step]) -> list[Check]:
    """A check for every subject that the plan changes and that has open breaks or risks at the target; one query.

    A break fails, unless the environment lets it pass; a risk warns. What was acknowledged or muted was decided already.
    """
    subjects = {step.subject: None for step in steps if step.adds}
    rows = _open([target]).filter(subject_name__in=subjects) if subjects else Finding.objects.none()
    found: dict[str, list[tuple[str, str]]] = {}
    for subject, severity, sentence in rows.order_by("pk").values_list("subject_name", "severity", "sentence"):
        found.setdefault(subject, []).append((severity, sentence))
    return [_check(subject, found[subject]) for subject in subjects if subject in found]


def drift_facts(targets: Collection[Registry], subjects: Collection[str] | None) -> dict[int, dict[str, str]]:
    """The open findings of each subject by number and severity, by the registry's key; one query."""
    rows = _open(targets) if subjects is None else _open(targets).filter(subject_name__in=subjects)
    found: dict[int, dict[str, list[str]]] = {}
    for registry, subject, key, severity in rows.order_by("pk").values_list(
        "source__registry", "subject_name", "pk", "severity"
    ):
        found.setdefault(registry, {}).setdefault(subject, []).append(f"{key} {severity}")
    return {registry: {name: ", ".join(items) for name, items in said.items()} for registry, said in found.items()}


def _open(targets: Collection[Registry]) -> QuerySet[Finding]:
    rows = Finding.objects.filter(
        source__registry__in=targets, state="open", muted=False, severity__in=("break", "risk")
    )
    return rows.exclude(subject_name="")


def _check(subject: str, found: Sequence[tuple[str, str]]) -> Check:
    breaks = [sentence for severity, sentence in found if severity == "break"]
    named = breaks or [sentence for _, sentence in found]
    more = f" And {len(named) - MAX_NAMED} more." if len(named) > MAX_NAMED else ""
    said = f"Open at the target: {' '.join(named[:MAX_NAMED])}{more}"
    verdict: Verdict = FAIL if breaks else WARN
    return Check("drift", f"drift of {subject}", verdict, said, _CURE, overridable=bool(breaks), subject=subject)
