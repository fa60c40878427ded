"""The page of API tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.frame import make_frame, page_actor
from dashboard.components.widgets import Action, Choice, Field, Frame, Problem
from registry.access.permission_filters import extent_of, place_words
from registry.access.roles import SCOPE_WORDS, Actor, may
from registry.access.selectors import TokenInfo, list_tokens
from registry.access.services import IssuedToken
from registry.access.tokens import DEFAULT_DAYS, MAX_DAYS
from registry.errors import SchemadeskError
from registry.promotions.selectors import list_environments


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRow:
    """A token; `state` is `live`, `expired` or `revoked`; `where` is its scope in words."""

    name: str
    who: str
    scope: str
    where: str
    state: str
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None
    used_from: str
    revoke: Action | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPage:
    """The list and the form; `made` is a token that was just made, shown once."""

    frame: Frame
    rows: tuple[TokenRow, ...]
    fields: tuple[Field, ...]
    submit: Action
    everybody: bool
    other_url: str
    made: str = ""
    made_until: datetime | None = None
    problem: Problem | None = None


def token_page(
    request: HttpRequest, *, made: IssuedToken | None = None, problem: SchemadeskError | None = None
) -> TokenPage:
    """One's own tokens, or everybody's for admins on request; with the form for a new one."""
    actor = page_actor(request)
    manages = may(actor, "token.manage")
    everybody = manages and request.GET.get("of") == "everybody"
    infos = list_tokens(user_id=None if everybody else actor.user_id)
    base = reverse("ui:tokens")
    return TokenPage(
        frame=make_frame(request, title=gettext("API tokens")),
        rows=tuple(_row(info) for info in infos),
        fields=_fields(request.POST if problem else {}, actor),
        submit=Action(label=gettext("Create token"), url=base, method="post", tone="primary", icon="plus"),
        everybody=everybody,
        other_url=(base if everybody else f"{base}?of=everybody") if manages else "",
        made=made.secret if made else "",
        made_until=made.expires_at if made else None,
        problem=Problem(what=problem.message) if problem else None,
    )


def _row(info: TokenInfo) -> TokenRow:
    address = reverse("ui:token_revoke", args=[info.token_id])
    return TokenRow(
        name=info.name,
        who=info.username,
        scope=info.scope,
        where=place_words(info.registry, info.subject_pattern),
        state=info.state,
        created_at=info.created_at,
        expires_at=info.expires_at,
        used_at=info.last_used_at,
        used_from=info.last_used_from,
        revoke=Action(label=gettext("Revoke"), url=address, method="post", tone="danger")
        if info.state == "live"
        else None,
    )


def _fields(posted: Mapping[str, str], actor: Actor) -> tuple[Field, ...]:
    scope, registry = posted.get("scope", "read"), posted.get("registry", "")
    readable = extent_of(actor, "schema.read")
    names = [name for name in list_environments() if readable.has(name)]
    return (
        Field(
            name="name",
            label=gettext("Name"),
            value=posted.get("name", ""),
            required=True,
            placeholder="orders CI",
        ),
        Field(
            name="scope",
            label=gettext("Scope"),
            kind="select",
            required=True,
            choices=tuple(
                Choice(value=name, label=f"{name}: {description}", selected=name == scope)
                for name, description in SCOPE_WORDS.items()
            ),
            help=gettext("A token never has more rights than you do."),
        ),
        Field(
            name="registry",
            label=gettext("Registry"),
            kind="select",
            choices=(
                Choice(value="", label=gettext("all"), selected=not registry),
                *(Choice(value=name, label=name, selected=name == registry) for name in names),
            ),
        ),
        Field(
            name="subject_pattern",
            label=gettext("Subjects"),
            value=posted.get("subject_pattern", "*"),
            help=gettext("A pattern such as orders-*. Use * for all subjects."),
            code=True,
        ),
        Field(
            name="days",
            label=gettext("Expires after (days)"),
            value=posted.get("days", str(DEFAULT_DAYS)),
            kind="number",
            required=True,
            help=gettext("Up to %(max_days)s.") % {"max_days": MAX_DAYS},
        ),
    )
