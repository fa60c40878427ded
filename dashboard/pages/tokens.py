"""The page of API tokens."""

from __future__ import annotations

from collections.abc import Mapping

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.pages.frame import make_frame, page_actor
from dashboard.presenters.frame import Action, Choice, Field, Problem
from dashboard.presenters.tokens import TokenPage, TokenRow
from registry.access.extent import extent_of
from registry.access.roles import Actor, may
from registry.access.scopes import SCOPE_WORDS
from registry.access.selectors import TokenInfo, list_tokens
from registry.access.services import IssuedToken
from registry.access.services.places import place_words
from registry.access.services.tokens import DEFAULT_DAYS, MAX_DAYS
from registry.errors import SchemadeskError
from registry.promotions.selectors import list_environments


def token_page(
    request: HttpRequest, *, made: IssuedToken | None = None, problem: SchemadeskError | None = None
) -> TokenPage:
    """One's own tokens, or everybody's for admins who ask; with the form for a new one."""
    actor = page_actor(request)
    manages = may(actor, "token.manage")
    everybody = manages and request.GET.get("of") == "everybody"
    infos = list_tokens(user_id=None if everybody else actor.user_id)
    base = reverse("ui:tokens")
    return TokenPage(
        frame=make_frame(request, title=gettext("API tokens")),
        rows=tuple(_row(info) for info in infos),
        fields=_fields(request.POST if problem else {}, actor),
        submit=Action(label=gettext("Make the token"), url=base, method="post", tone="primary", icon="plus"),
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


def _fields(given: Mapping[str, str], actor: Actor) -> tuple[Field, ...]:
    scope, registry = given.get("scope", "read"), given.get("registry", "")
    readable = extent_of(actor, "schema.read")
    names = [name for name in list_environments() if readable.has(name)]
    return (
        Field(
            name="name",
            label=gettext("What it is for"),
            value=given.get("name", ""),
            required=True,
            placeholder="orders CI",
        ),
        Field(
            name="scope",
            label=gettext("Scope"),
            kind="select",
            required=True,
            choices=tuple(
                Choice(value=name, label=f"{name}: {words}", selected=name == scope)
                for name, words in SCOPE_WORDS.items()
            ),
            help=gettext("It never may more than you may yourself."),
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
            value=given.get("subject_pattern", "*"),
            help=gettext("A pattern like orders-*; * is all."),
            code=True,
        ),
        Field(
            name="days",
            label=gettext("Days that it is good for"),
            value=given.get("days", str(DEFAULT_DAYS)),
            kind="number",
            required=True,
            help=gettext("%(max_days)s at most.") % {"max_days": MAX_DAYS},
        ),
    )
