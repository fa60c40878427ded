"""The forms that connect, change and remove a cluster, and the test of a connection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.frame import make_frame, page_actor
from dashboard.components.translation import counted, later
from dashboard.components.widgets import Action, Choice, Crumb, Field, Problem, Section
from dashboard.sources.labels import given_text, read_by
from dashboard.sources.presenters import ClusterForm, ConfirmPage, FieldGroup
from registry.access.http_client import PREFIX
from registry.access.roles import refusal
from registry.drift import selectors, services
from registry.drift.models import SASL_MECHANISMS
from registry.drift.selectors import ClusterInfo
from registry.errors import ClusterNotFound, SchemadeskError

FIELDS: Final = ("name", "bootstrap", "security_protocol", "sasl_mechanism", "username", "secret", "ca_pem")
PROTOCOLS: Final = {
    "PLAINTEXT": later("PLAINTEXT: no encryption, no authentication"),
    "SSL": later("SSL: encryption"),
    "SASL_PLAINTEXT": later("SASL_PLAINTEXT: authentication, no encryption"),
    "SASL_SSL": later("SASL_SSL: encryption and authentication"),
}


def cluster_at(number: int) -> ClusterInfo:
    """The cluster of that number. Raises ClusterNotFound."""
    cluster = next((info for info in selectors.list_clusters() if info.id == number), None)
    if cluster is None:
        raise ClusterNotFound(gettext("Cluster %(number)s doesn’t exist.") % {"number": number}, cluster=str(number))
    return cluster


def sent_fields(post: Mapping[str, str]) -> dict[str, str]:
    """A cluster's fields as a form sent them; line ends of a certificate as they are in files."""
    fields = {name: given_text(post, name) for name in FIELDS}
    return {**fields, "ca_pem": fields["ca_pem"].replace("\r\n", "\n")}


def try_connection(request: HttpRequest, fields: Mapping[str, str]) -> str:
    """What a cluster of those fields answers, in words; nothing is kept.

    Raises InvalidSource, InvalidSecret, AddressRefused, BrokerUnavailable, NotAllowed.
    """
    brokers, topics = services.try_cluster(by=page_actor(request), **fields)
    return gettext("Found %(brokers)s and %(topics)s. Nothing was saved.") % {
        "brokers": counted(brokers, "%(n)s broker", "%(n)s brokers"),
        "topics": counted(topics, "%(n)s topic", "%(n)s topics"),
    }


def cluster_form(
    request: HttpRequest, number: int | None = None, *, problem: SchemadeskError | None = None, answered: str = ""
) -> ClusterForm:
    """The form of a new cluster, or of the one of that number. Raises ClusterNotFound."""
    info = cluster_at(number) if number is not None else None
    values: Mapping[str, str] = request.POST if request.method == "POST" else _stored(info)
    reason = refusal(page_actor(request), "cluster.manage")
    url = reverse("ui:cluster_edit", args=[info.id]) if info else reverse("ui:cluster_add")
    title = gettext("Edit %(info)s") % {"info": info.name} if info else gettext("Connect a cluster")
    return ClusterForm(
        frame=make_frame(request, title=title, section=Section.SOURCES, crumbs=_crumbs()),
        groups=_groups(values),
        submit=_action(gettext("Save") if info else gettext("Connect"), url, reason, tone="primary"),
        test=_action(gettext("Test connection"), url, reason),
        secrets=(
            f"{settings.SECRETS_DIR}/NAME" if settings.SECRETS_DIR else "",
            f"{PREFIX}NAME",
        ),
        answered=answered,
        warning=gettext("Its sources use the new settings from the next scan.") if info and info.sources else "",
        problem=Problem(what=problem.message, cure=gettext("Correct the form below. Nothing was saved."))
        if problem
        else None,
    )


def _stored(info: ClusterInfo | None) -> dict[str, str]:
    if info is None:
        return {"security_protocol": "PLAINTEXT"}
    return {name: str(getattr(info, name)) for name in FIELDS}


def _action(label: str, url: str, reason: str, tone: str = "plain") -> Action:
    return Action(label=label, url=url, method="post", allowed=not reason, reason=reason, tone=tone)


def _crumbs() -> tuple[Crumb, ...]:
    return (Crumb(label=gettext("Sources"), url=reverse("ui:sources")),)


def _groups(values: Mapping[str, str]) -> tuple[FieldGroup, ...]:
    def text(name: str, label: str, **more: object) -> Field:
        return Field(name=name, label=label, value=values.get(name, ""), code=True, **more)  # type: ignore[arg-type]

    where = (
        Field(
            name="name",
            label=gettext("Name"),
            value=values.get("name", ""),
            required=True,
            help=gettext("The name shown here."),
        ),
        text("bootstrap", gettext("Bootstrap servers"), required=True, placeholder="broker-1:9093,broker-2:9093"),
        _select(
            "security_protocol", gettext("Security protocol"), PROTOCOLS, values.get("security_protocol", "PLAINTEXT")
        ),
    )
    mechanisms = {"": gettext("none"), **{name: name for name in SASL_MECHANISMS}}
    sign_in = (
        _select("sasl_mechanism", gettext("SASL mechanism"), mechanisms, values.get("sasl_mechanism", "")),
        text("username", gettext("User")),
        text("secret", gettext("Secret name"), help=gettext("Only the name, never the password.")),
    )
    authority = text(
        "ca_pem",
        gettext("Certificate authority"),
        kind="textarea",
        rows=5,
        placeholder="-----BEGIN CERTIFICATE-----",
        help=gettext("PEM. Empty: the system’s certificate authorities."),
    )
    return (
        FieldGroup(title=gettext("Where"), fields=where),
        FieldGroup(title=gettext("Sign-in"), fields=sign_in, note=gettext("For SASL_SSL and SASL_PLAINTEXT.")),
        FieldGroup(title="TLS", fields=(authority,), note=gettext("For SSL and SASL_SSL.")),
    )


def _select(name: str, label: str, choices: Mapping[str, str], chosen: str) -> Field:
    shown = tuple(Choice(value=value, label=text, selected=value == chosen) for value, text in choices.items())
    return Field(name=name, label=label, kind="select", choices=shown, required=name == "security_protocol")


def remove_page(request: HttpRequest, number: int, problem: SchemadeskError | None) -> ConfirmPage:
    """What removing a cluster means. Raises ClusterNotFound."""
    info = cluster_at(number)
    reason = refusal(page_actor(request), "cluster.manage")
    if not reason and info.sources:
        reason = read_by(info.sources)
    return ConfirmPage(
        frame=make_frame(
            request, title=gettext("Remove %(name)s") % {"name": info.name}, section=Section.SOURCES, crumbs=_crumbs()
        ),
        sentence=gettext("Schemadesk forgets how to connect to %(info)s.") % {"info": info.name},
        losses=(gettext("its address, user and secret name"),),
        stays=(
            gettext("the secret itself, which the operator stores"),
            gettext("the cluster: nothing is written to it"),
        ),
        confirm=Action(
            label=gettext("Remove cluster"),
            url=reverse("ui:cluster_remove", args=[info.id]),
            method="post",
            allowed=not reason,
            reason=reason,
            tone="danger",
        ),
        back_url=reverse("ui:sources"),
        problem=Problem(what=problem.message) if problem else None,
    )
