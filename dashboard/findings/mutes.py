"""Mutes: those there are, and a new one with how many findings it would cover."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.frame import environment_of, make_frame, page_actor
from dashboard.components.translation import counted, later
from dashboard.components.widgets import Action, Choice, Crumb, Field, Link, Problem, Section
from dashboard.findings.presenters import MutePage, MuteRow
from dashboard.sources.labels import given_text
from registry.access.permission_filters import require_extent
from registry.access.roles import Actor, refusal
from registry.drift import selectors
from registry.drift.findings.promotion_check import decided_breaks_block
from registry.drift.scan.aggregation import MutePattern, is_muted
from registry.drift.selectors import FindingInfo, MuteInfo
from registry.drift.services.findings import MAX_STARS
from registry.errors import SchemadeskError
from registry.promotions.selectors import list_environments
from registry.subjects.selectors import registry_names

LOOKED_AT: Final = 1000
SHOWN: Final = 10
MAX_PATTERN: Final = 1024
PATTERNS: Final = {"rule": later("Rule"), "subject": later("Subject"), "location": later("Place")}


def mute_page(request: HttpRequest, problem: SchemadeskError | None = None) -> MutePage:
    """The mutes and the form; patterns in the address or the form are tried on the findings. Raises NotAllowed."""
    actor = page_actor(request)
    form = request.POST if request.method == "POST" else request.GET
    registry = given_text(form, "registry")
    require_extent(actor, "schema.read", registry=registry)
    order = list_environments()
    names = registry_names(actor)
    chosen = registry or (names[0] if names else "")
    reason = refusal(actor, "finding.mute", registry=chosen)
    preview, covered = _preview(form, chosen, actor)
    return MutePage(
        frame=make_frame(
            request,
            title=gettext("Mutes"),
            section=Section.FINDINGS,
            crumbs=(Crumb(label=gettext("Findings"), url=reverse("ui:findings")),),
        ),
        rows=tuple(_row(actor, info, order) for info in selectors.list_mutes(registry, by=actor)),
        fields=_fields(form, names, chosen),
        submit=Action(
            label=gettext("Mute"),
            url=reverse("ui:mutes"),
            method="post",
            allowed=not reason,
            reason=reason,
            tone="primary",
        ),
        preview_url=reverse("ui:mutes"),
        preview=preview,
        covered=tuple(Link(label=info.sentence, url=reverse("ui:finding", args=[info.id])) for info in covered),
        problem=Problem(what=problem.message) if problem else None,
    )


def _preview(form: Mapping[str, str], registry: str, actor: Actor) -> tuple[str, list[FindingInfo]]:
    """How many findings that aren't resolved the patterns cover, in words, and the first of them."""
    pattern = MutePattern(*(form.get(name, "").strip() for name in PATTERNS))
    texts = (pattern.rule, pattern.subject, pattern.location)
    if not any(texts):
        return "", []
    if any(len(text) > MAX_PATTERN or text.count("*") > MAX_STARS for text in texts):
        return gettext("A pattern must have at most %(max_pattern)s characters and %(max_stars)s '*'.") % {
            "max_pattern": MAX_PATTERN,
            "max_stars": MAX_STARS,
        }, []
    listed = selectors.list_findings(state="", registry=registry, muted=None, limit=LOOKED_AT, by=actor)
    lasting = [info for info in listed if info.state != "resolved"]
    covered = [info for info in lasting if is_muted([pattern], info.rule, info.subject, info.location)]
    hidden = sum(1 for info in covered if info.muted)
    return _covers(len(covered), len(lasting), hidden, all_looked_at=len(listed) < LOOKED_AT), covered[:SHOWN]


def _covers(covered: int, lasting: int, hidden: int, *, all_looked_at: bool) -> str:
    total = f"{lasting:,}"
    sentence = (
        counted(
            covered,
            "Matches %(n)s of %(total)s findings, and future ones.",
            "Matches %(n)s of %(total)s findings, and future ones.",
            total=total,
        )
        if all_looked_at
        else counted(
            covered,
            "Matches %(n)s of the %(total)s findings checked, and future ones.",
            "Matches %(n)s of the %(total)s findings checked, and future ones.",
            total=total,
        )
    )
    muted = counted(hidden, "%(n)s of them is already muted.", "%(n)s of them are already muted.")
    return f"{sentence} {muted}" if hidden else sentence


def _fields(form: Mapping[str, str], names: list[str], chosen: str) -> tuple[Field, ...]:
    def text(name: str, placeholder: str) -> Field:
        value = form.get(name, "")
        return Field(name=name, label=PATTERNS[name], value=value, code=True, placeholder=placeholder)

    choices = tuple(Choice(value=name, label=name, selected=name == chosen) for name in names)
    return (
        Field(name="registry", label=gettext("Registry"), kind="select", choices=choices, required=True),
        text("rule", "UNKNOWN_SCHEMA_ID"),
        text("subject", "test-*"),
        text("location", "orders:*"),
        Field(
            name="reason",
            label=gettext("Reason to mute them"),
            value=form.get("reason", ""),
            help=still_blocking(chosen),
            kind="textarea",
            rows=2,
            required=True,
        ),
        Field(
            name="until",
            label=gettext("Until"),
            kind="date",
            value=form.get("until", ""),
            help=gettext("Empty: until the mute is removed."),
        ),
    )


def still_blocking(registry: str) -> str:
    """That breaks of a closed environment block even after one person's decision, as sentences; "" elsewhere."""
    if not decided_breaks_block(registry):
        return ""
    return gettext(
        "%(registry)s is a closed environment: a break still fails requests afterwards, until it is resolved. A reviewer"
        " can override the check with a reason."
    ) % {"registry": registry}


def _row(actor: Actor, info: MuteInfo, order: list[str]) -> MuteRow:
    reason = refusal(actor, "finding.mute", registry=info.registry)
    patterns = tuple((PATTERNS[name], getattr(info, name)) for name in PATTERNS if getattr(info, name))
    return MuteRow(
        number=info.id,
        environment=environment_of(info.registry, order),
        patterns=patterns,
        reason=info.reason,
        by=info.created_by,
        since=info.created_at,
        until=info.until,
        end=Action(
            label=gettext("Remove mute"),
            url=reverse("ui:mute_end", args=[info.id]),
            method="post",
            allowed=not reason,
            reason=reason,
        ),
    )
