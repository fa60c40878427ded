"""The page of people, groups and owners."""

from __future__ import annotations

from collections.abc import Iterable

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.pages.frame import make_frame
from dashboard.pages.people_forms import change_forms
from dashboard.presenters.frame import Problem, Search
from dashboard.presenters.people import Change, GrantRow, GroupRow, OwnerRow, PeoplePage, PersonRow, SamePersonRow
from dashboard.texts import joined, later
from registry.access.selectors import (
    GrantInfo,
    GroupInfo,
    OwnershipInfo,
    PersonInfo,
    list_groups,
    list_ownerships,
    list_people,
)
from registry.access.services.places import place_words
from registry.errors import SchemadeskError
from registry.promotions.selectors import list_environments
from registry.promotions.selectors.same_person import SamePersonInfo, same_person_statements

WAYS = {"password": later("password"), "oidc": later("single sign-on")}


def people_page(
    request: HttpRequest, *, made: tuple[str, str] | None = None, problem: SchemadeskError | None = None
) -> PeoplePage:
    """Everybody with their roles; `made` is a name with its new password."""
    query = request.GET.get("q", "").strip()
    people, groups = list_people(text=query), list_groups()
    return PeoplePage(
        frame=make_frame(request, title=gettext("People and groups")),
        search=Search(
            url=reverse("ui:people"),
            query=query,
            label=gettext("Search people"),
            placeholder=gettext("name or address"),
        ),
        people=tuple(map(_person, people)),
        groups=tuple(map(_group, groups)),
        owners=tuple(map(_owner, list_ownerships())),
        same=tuple(map(_same, same_person_statements())),
        forms=change_forms(
            people=[info.username for info in people if info.active],
            groups=[info.name for info in groups],
            registries=list_environments(),
        ),
        change_url=reverse("ui:people_change"),
        made=made,
        problem=Problem(what=problem.message) if problem else None,
    )


def _person(info: PersonInfo) -> PersonRow:
    do, label, loses = (
        (
            "shut",
            gettext("Shut the account"),
            gettext("They are signed out and can’t sign in, and their tokens are refused."),
        )
        if info.active
        else ("open", gettext("Open again"), "")
    )
    return PersonRow(
        username=info.username,
        email=info.email,
        active=info.active,
        ways=joined(WAYS[way] for way in info.signs_in_by) or gettext("cannot sign in"),
        last_sign_in=info.last_sign_in,
        groups=info.groups,
        grants=_grants(info.grants),
        switch=Change(label=label, do=do, values=(("username", info.username),), loses=loses),
    )


def _grants(infos: Iterable[GrantInfo], *, of_group: bool = False) -> tuple[GrantRow, ...]:
    do = "revoke from group" if of_group else "revoke"
    return tuple(
        GrantRow(
            role=info.role,
            where=place_words(info.registry, info.subject_pattern),
            through="" if of_group else info.group,
            remove=Change(
                label=gettext("Take away"),
                do=do,
                values=(("grant_id", str(info.grant_id)),),
                loses=gettext("All members lose what the role allows there.")
                if of_group
                else gettext("They lose what the role allows there."),
            )
            if of_group or not info.group
            else None,
        )
        for info in infos
    )


def _group(info: GroupInfo) -> GroupRow:
    return GroupRow(
        name=info.name,
        members=tuple(
            (
                name,
                Change(
                    label=gettext("Take out"),
                    do="leave",
                    values=(("group", info.name), ("username", name)),
                    loses=gettext("They lose the roles and subjects that they have through the group."),
                ),
            )
            for name in info.members
        ),
        grants=_grants(info.grants, of_group=True),
        remove=Change(
            label=gettext("Remove the group"),
            do="remove group",
            values=(("name", info.name),),
            loses=gettext("Its members lose the roles that it has, and what it owns has that owner no more."),
        ),
    )


def _owner(info: OwnershipInfo) -> OwnerRow:
    return OwnerRow(
        owner=info.username or info.group,
        is_group=bool(info.group),
        where=place_words(info.registry, info.subject_pattern),
        remove=Change(
            label=gettext("End"),
            do="disown",
            values=(("ownership_id", str(info.ownership_id)),),
            loses=gettext("They are no longer asked and told about these subjects."),
        ),
    )


def _same(info: SamePersonInfo) -> SamePersonRow:
    return SamePersonRow(
        one=info.one,
        other=info.other,
        reason=info.reason,
        by=info.stated_by,
        at=info.stated_at,
        remove=Change(
            label=gettext("Count as two"),
            do="two",
            values=(("statement_id", str(info.id)),),
            loses=gettext("Each account may then approve what the other asked for."),
        ),
    )
