"""What open drift means for promotions: a subject whose data or state don't match it isn't a ground to build on."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from django.db.models import QuerySet

from registry.drift.curing import cured
from registry.drift.models import Finding
from registry.drift.redaction import redacted_text
from registry.promotions.plan import FAIL, PASS, WARN, Check, Step, Verdict
from registry.subjects.models import Registry

NAME: Final = "drift"
MAX_NAMED: Final = 3
_CURE: Final = "Resolve or acknowledge what is open, or have a reviewer override it with a reason."


def open_drift(target: Registry, steps: Sequence[Step], answers: int | None = None) -> list[Check]:
    """A check for every subject that the plan changes and that has open breaks or risks at the target; one query.

    A break fails, unless the environment lets it pass; a risk warns. What was acknowledged or muted was decided already.
    What a request that answers a finding cures holds up nothing; two queries more for such a one.
    """
    subjects = {step.subject: None for step in steps if step.adds}
    rows = list(_open([target]).filter(subject_name__in=subjects).order_by("pk")) if subjects else []
    mended = cured(answers, target, steps, rows) if rows else frozenset()
    found: dict[str, list[Finding]] = {}
    for row in rows:
        found.setdefault(row.subject_name, []).append(row)
    return [_check(subject, found[subject], mended) for subject in subjects if subject in found]


def drift_facts(targets: Collection[Registry], subjects: Collection[str] | None) -> dict[int, dict[str, str]]:
    """The open findings of each subject by number and severity, by the registry's key; one query."""
    rows = _open(targets) if subjects is None else _open(targets).filter(subject_name__in=subjects)
    found: dict[int, dict[str, list[str]]] = {}
    for registry, subject, key, severity in rows.order_by("pk").values_list(
        "source__registry", "subject_name", "pk", "severity"
    ):
        found.setdefault(registry, {}).setdefault(subject, []).append(f"{key} {severity}")
    return {registry: {name: ", ".join(items) for name, items in said.items()} for registry, said in found.items()}


def open_breaks_of(registry: Registry, subjects: Collection[str]) -> dict[str, list[int]]:
    """The open break findings of the subjects there, by number; one query."""
    found: dict[str, list[int]] = {}
    rows = _open([registry]).filter(subject_name__in=subjects, severity="break").order_by("pk")
    for subject, number in rows.values_list("subject_name", "pk"):
        found.setdefault(subject, []).append(number)
    return found


def _open(targets: Collection[Registry]) -> QuerySet[Finding]:
    rows = Finding.objects.select_related("topic").filter(
        source__registry__in=targets, state="open", muted=False, severity__in=("break", "risk")
    )
    return rows.exclude(subject_name="")


def _check(subject: str, found: Sequence[Finding], mended: Collection[int]) -> Check:
    left = [row for row in found if row.pk not in mended]
    breaks = [_sentence(row) for row in left if row.severity == "break"]
    said = [_listed("Open at the target:", breaks or [_sentence(row) for row in left])] if left else []
    if mended:
        said.append(_listed("Will be resolved by this request:", [_sentence(row) for row in found if row.pk in mended]))
    verdict: Verdict = FAIL if breaks else WARN if left else PASS
    cure = _CURE if left else ""
    text = " ".join(said)
    return Check("drift", f"drift of {subject}", verdict, text, cure, overridable=bool(breaks), subject=subject)


def _sentence(row: Finding) -> str:
    """Everybody who may read the request reads the check, and so it names no other subject."""
    return redacted_text(row.sentence, row.evidence, row.subject_name)


def _listed(begin: str, sentences: Sequence[str]) -> str:
    more = f" And {len(sentences) - MAX_NAMED} more." if len(sentences) > MAX_NAMED else ""
    return f"{begin} {' '.join(sentences[:MAX_NAMED])}{more}"
