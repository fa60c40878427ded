"""The page of people, groups and owners, and the page of API tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.forms import ServiceForm, fill_choices
from dashboard.components.frame import make_frame, page_actor
from dashboard.components.widgets import Frame, Problem, SearchBox
from dashboard.people.forms import TokenForm, people_forms
from dashboard.sources.labels import chosen_value
from registry.access.permission_filters import extent_of
from registry.access.roles import may
from registry.access.selectors import (
    GroupInfo,
    OwnershipInfo,
    PersonInfo,
    TokenInfo,
    list_groups,
    list_ownerships,
    list_people,
    list_tokens,
)
from registry.access.services import IssuedToken
from registry.promotions.reviews.linked_accounts import SamePersonInfo, same_person_statements
from registry.promotions.selectors import list_environments


@dataclass(frozen=True, slots=True, kw_only=True)
class PeoplePage:
    """The page; `forms` are by their `do`, and `made` is the name and password of a new person, shown once."""

    frame: Frame
    search: SearchBox
    people: Sequence[PersonInfo]
    groups: Sequence[GroupInfo]
    owners: Sequence[OwnershipInfo]
    same: Sequence[SamePersonInfo]
    forms: Mapping[str, ServiceForm]
    made: tuple[str, str] | None = None
    problem: Problem | None = None


def people_page(
    request: HttpRequest,
    sent: ServiceForm | None = None,
    *,
    made: tuple[str, str] | None = None,
    problem: Problem | None = None,
) -> PeoplePage:
    """The page; `sent` is a form that was refused."""
    query = request.GET.get("q", "").strip()
    people, groups = list_people(text=query), list_groups()
    active, names = [info.username for info in people if info.active], [info.name for info in groups]
    return PeoplePage(
        frame=make_frame(request, title=gettext("People and groups")),
        search=SearchBox(
            url=reverse("ui:people"),
            query=query,
            label=gettext("Search people"),
            placeholder=gettext("name or email address"),
        ),
        people=people,
        groups=groups,
        owners=list_ownerships(),
        same=same_person_statements(),
        forms=people_forms(active, names, list_environments(), sent),
        made=made,
        problem=sent.problem if sent else problem,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPage:
    """Tokens, and the form of a new one; `other_url` switches between one's own and everybody's, `made` is shown once."""

    frame: Frame
    tokens: Sequence[TokenInfo]
    form: TokenForm
    everybody: bool
    other_url: str
    made: IssuedToken | None = None


def token_page(request: HttpRequest, form: TokenForm | None = None, *, made: IssuedToken | None = None) -> TokenPage:
    """One's own tokens, or everybody's for admins on request; `form` was refused."""
    actor = page_actor(request)
    manages = may(actor, "token.manage")
    everybody = manages and chosen_value(request.GET, "of", ["everybody"]) == "everybody"
    base, form = reverse("ui:tokens"), form or TokenForm()
    readable = extent_of(actor, "schema.read")
    fill_choices([form], registry=[name for name in list_environments() if readable.has(name)])
    return TokenPage(
        frame=make_frame(request, title=gettext("API tokens")),
        tokens=list_tokens(user_id=None if everybody else actor.user_id),
        form=form,
        everybody=everybody,
        other_url=(base if everybody else f"{base}?of=everybody") if manages else "",
        made=made,
    )
