"""The forms on the pages of people and of tokens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Final

from django import forms

from dashboard.components.forms import CodeField, NameChoiceField, ServiceForm, fill_choices
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.translation import lazy_format
from registry.access import services
from registry.access.contact_channels import MAX_CHANNEL
from registry.access.roles import ROLES, SCOPE_WORDS
from registry.access.tokens import DEFAULT_DAYS, MAX_DAYS
from registry.errors import Conflict, InvalidInput, NotFound
from registry.promotions.reviews.linked_accounts import state_same_person, withdraw_same_person

MANAGE: Final = "people.manage"


class PeopleForm(ServiceForm):
    """A form on the people page, identified by `do` in the POST.

    A form with a `title` is below the lists. The others are buttons in rows; `loses` says what they remove.
    """

    permission = MANAGE
    refusals = (Conflict, InvalidInput, NotFound)
    do: ClassVar[str]
    title: ClassVar[str] = ""
    loses: ClassVar[str] = ""


def _person(label: str = _("Person")) -> NameChoiceField:
    return NameChoiceField(label=label)


def _group() -> NameChoiceField:
    return NameChoiceField(label=_("Group"))


class _ScopedForm(PeopleForm):
    registry = NameChoiceField(label=_("Registry"), empty_label=_("all"))
    subject_pattern = CodeField(
        label=_("Subjects"), initial="*", required=False, help_text=_("A pattern such as orders-*.")
    )


class _RoleForm(_ScopedForm):
    role = forms.ChoiceField(label=_("Role"), choices=[(role, role) for role in ROLES])
    label = _("Grant role")
    success = _("Role granted.")


class AddPersonForm(PeopleForm):
    """A form that creates an account; the result is its password."""

    do, service = "add", staticmethod(services.add_person)
    title, label, success = _("Add a person"), _("Add person"), _("Person added.")

    username = forms.CharField(label=_("Username"))


class GrantForm(_RoleForm):
    """A form that grants a role to a person."""

    do, service = "grant", staticmethod(services.grant)
    title = _("Grant a role to a person")

    username = _person()
    field_order = ("username", "role", "registry", "subject_pattern")


class EmailForm(PeopleForm):
    """A form that sets a person's email address."""

    do, service = "mail", staticmethod(services.set_email)
    title = _("Set a person’s email address")
    label, success = _("Save address"), _("Email address saved.")

    username = _person()
    email = forms.CharField(label=_("Email address"), required=False, help_text=_("Leave empty to send no email."))


class MakeGroupForm(PeopleForm):
    """A form that creates a group."""

    do, service = "make_group", staticmethod(services.make_group)
    title, label, success = _("Create a group"), _("Create group"), _("Group created.")

    name = forms.CharField(label=_("Name"))


class GroupChannelForm(PeopleForm):
    """A form that says where the members of a group talk."""

    do, service = "group_channel", staticmethod(services.set_group_channel)
    title, label, success = _("Set a group’s channel"), _("Save channel"), _("Channel saved.")

    group = _group()
    channel = forms.CharField(
        label=_("Channel"),
        required=False,
        max_length=2 * MAX_CHANNEL,
        help_text=_(
            "Where the group talks: a URL, an email address or a name such as #orders. Leave it empty for none."
        ),
    )


class OwnerForm(_ScopedForm):
    """A form that makes a person an owner."""

    do, service = "own", staticmethod(services.add_owner)
    title, label, success = _("Add a person as owner"), _("Add owner"), _("Owner added.")

    username = _person()
    field_order = ("username", "registry", "subject_pattern")


class SamePersonForm(PeopleForm):
    """A form that links two accounts of one person."""

    do, service = "same", staticmethod(state_same_person)
    title = _("Link two accounts of the same person")
    label, success = _("Link accounts"), _("Accounts linked.")

    one = _person(_("Account"))
    other = _person(_("Other account of the same person"))
    reason = forms.CharField(
        label=_("Reason"),
        help_text=_("Recorded in the audit log. After this, neither account can approve what the other one requested."),
    )


class GroupGrantForm(_RoleForm):
    """A form that grants a role to a group."""

    do, service = "grant_to_group", staticmethod(services.grant_to_group)
    title = _("Grant a role to a group")

    group = _group()
    field_order = ("group", "role", "registry", "subject_pattern")


class JoinForm(PeopleForm):
    """A form that adds a person to a group."""

    do, service = "join", staticmethod(services.add_member)
    title, label, success = _("Add a person to a group"), _("Add member"), _("Member added.")

    group = _group()
    username = _person()


class GroupOwnerForm(_ScopedForm):
    """A form that makes a group an owner."""

    do, service = "own_group", staticmethod(services.add_owner)
    title, label, success = _("Add a group as owner"), _("Add owner"), _("Owner added.")

    group = _group()
    field_order = ("group", "registry", "subject_pattern")


class DeactivateForm(PeopleForm):
    """A form that deactivates an account."""

    do, service = "shut", staticmethod(services.set_active)
    label, success = _("Deactivate account"), _("Account deactivated.")
    loses = _(
        "This person is signed out and can no longer sign in. Their API tokens are revoked and stay revoked"
        " after a reactivation."
    )
    active: ClassVar[bool] = False

    username = forms.CharField()

    def arguments(self) -> dict[str, Any]:
        """Return the service's arguments."""
        return {**self.cleaned_data, "active": self.active}


class EndSessionsForm(PeopleForm):
    """A form that signs a person out everywhere."""

    do, service = "end", staticmethod(services.end_sessions)
    label, success = _("End sessions"), _("Sessions ended.")
    loses = _("This person is signed out everywhere and can sign in again. Their API tokens stay valid.")

    username = forms.CharField()


class ReopenForm(DeactivateForm):
    """A form that reactivates an account."""

    do, active = "open", True
    label, success, loses = _("Reactivate account"), _("Account reactivated."), ""


class RevokeForm(PeopleForm):
    """A form that revokes a role of a person."""

    do, service = "revoke", staticmethod(services.revoke_grant)
    label, success = _("Revoke role"), _("Role revoked.")
    loses = _("This person loses the permissions of this role there.")

    grant_id = forms.IntegerField()


class GroupRevokeForm(RevokeForm):
    """A form that revokes a role of a group."""

    do, service = "revoke_from_group", staticmethod(services.remove_group_grant)
    loses = _("All members lose the permissions of this role there.")


class LeaveForm(PeopleForm):
    """A form that removes a person from a group."""

    do, service = "leave", staticmethod(services.remove_member)
    label, success = _("Remove member"), _("Member removed.")
    loses = _("This person loses the roles and subjects that come from the group.")

    group = forms.CharField()
    username = forms.CharField()


class RemoveGroupForm(PeopleForm):
    """A form that removes a group."""

    do, service = "remove_group", staticmethod(services.remove_group)
    label, success = _("Remove group"), _("Group removed.")
    loses = _("Its members lose the group’s roles, and the group no longer owns its subjects.")

    name = forms.CharField()


class RemoveOwnerForm(PeopleForm):
    """A form that removes an owner."""

    do, service = "disown", staticmethod(services.remove_owner)
    label, success = _("Remove owner"), _("Owner removed.")
    loses = _("This owner is no longer asked about these subjects or notified of changes.")

    ownership_id = forms.IntegerField()


class UnlinkForm(PeopleForm):
    """A form that unlinks two accounts."""

    do, service = "two", staticmethod(withdraw_same_person)
    label, success = _("Unlink accounts"), _("Accounts unlinked.")
    loses = _("After this, each account can approve what the other one requested.")

    statement_id = forms.IntegerField()


FORMS: Final[dict[str, type[PeopleForm]]] = {
    form.do: form
    for form in (
        *(AddPersonForm, GrantForm, EmailForm, MakeGroupForm, OwnerForm, SamePersonForm),
        *(GroupGrantForm, JoinForm, GroupOwnerForm, GroupChannelForm),
        *(
            DeactivateForm,
            EndSessionsForm,
            ReopenForm,
            RevokeForm,
            GroupRevokeForm,
            LeaveForm,
            RemoveGroupForm,
            RemoveOwnerForm,
            UnlinkForm,
        ),
    )
}


def people_forms(
    people: Iterable[str], groups: list[str], registries: Iterable[str], sent: ServiceForm | None = None
) -> dict[str, ServiceForm]:
    """Return the page's forms by `do`, with their choices; those for groups only if there are groups."""
    page = {do: sent if type(sent) is kind else kind() for do, kind in FORMS.items()}
    names = list(people)
    fill_choices(page.values(), username=names, one=names, other=names, group=groups, registry=registries)
    return {
        do: form for do, form in page.items() if groups or not isinstance(form.fields.get("group"), NameChoiceField)
    }


class TokenForm(ServiceForm):
    """A form that creates a token."""

    service = staticmethod(services.make_token)
    label = _("Create token")

    name = forms.CharField(label=_("Name"), widget=forms.TextInput(attrs={"placeholder": "orders CI"}))
    scope = forms.ChoiceField(
        label=_("Scope"),
        choices=[(name, f"{name}: {words}") for name, words in SCOPE_WORDS.items()],
        initial="read",
        help_text=_("A token never has more rights than you do."),
    )
    registry = NameChoiceField(label=_("Registry"), empty_label=_("all"))
    subject_pattern = CodeField(
        label=_("Subjects"),
        initial="*",
        required=False,
        help_text=_("A pattern such as orders-*. Use * for all subjects."),
    )
    days = forms.IntegerField(
        label=_("Expires after (days)"),
        initial=DEFAULT_DAYS,
        help_text=lazy_format(_("Up to %(max_days)s."), max_days=MAX_DAYS),
    )
