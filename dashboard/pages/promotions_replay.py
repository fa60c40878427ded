"""The replay of a request: the newest messages of its target, read with the schema that it would bring."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.pages.data_evidence import weighed_evidence
from dashboard.pages.frame import make_frame, page_actor
from dashboard.pages.promotions_changes import chosen_step
from dashboard.pages.promotions_words import title_of
from dashboard.pages.sources_words import given_text
from dashboard.presenters.frame import Action, Crumb, Problem, Section
from dashboard.presenters.promotions_page import ReplayPage
from dashboard.presenters.report import DataEvidence
from registry.access.roles import Actor, refusal, require
from registry.drift.data_evidence import replay_and_weigh
from registry.errors import NotAllowed, SchemadeskError
from registry.promotions.plan import ADOPT, Step
from registry.promotions.selectors import RequestInfo
from registry.promotions.selectors.changes import places_of
from registry.promotions.selectors.readable import readable_request
from registry.subjects.names import parse_subject
from registry.subjects.selectors.places import get_registry


def replay_action(info: RequestInfo, actor: Actor, step: Step | None) -> Action | None:
    """The button that replays messages with the schema whose changes are shown; None where nothing is to be decided."""
    if step is None or not info.is_open:
        return None
    reason = refusal(actor, "source.scan", registry=info.target, subject=step.subject)
    return Action(
        label=gettext("Replay check"),
        url=f"{reverse('ui:promotion_replay', args=[info.id])}?{urlencode({'item': step.subject})}",
        method="post",
        allowed=not reason,
        reason=reason,
        icon="play",
    )


def replay_page(request: HttpRequest, request_id: int) -> ReplayPage:
    """What the newest messages at the target read as under a schema of the request; `item` names its subject.

    Raises NotSignedIn, NotAllowed, RequestNotFound.
    """
    actor = page_actor(request)
    info = readable_request(request_id, actor)
    step = chosen_step(info, given_text(request.GET, "item"))
    evidence, problem = None, None
    if step is None:
        problem = Problem(
            what=gettext("This request brings no schema to %(target)s, so there is nothing to read messages with.")
            % {"target": info.target}
        )
    else:
        try:
            evidence = _replayed(info, step, actor)
        except NotAllowed:
            raise
        except SchemadeskError as error:
            problem = Problem(what=error.message, where=info.target)
    address = reverse("ui:promotion", args=[info.id])
    subject = step.subject if step else info.subject.qualified
    return ReplayPage(
        frame=make_frame(
            request,
            title=gettext("Replay check of request %(number)s") % {"number": info.id},
            section=Section.PROMOTIONS,
            registry=info.target,
            crumbs=(
                Crumb(label=gettext("Promotions"), url=reverse("ui:promotions")),
                Crumb(label=f"#{info.id} {title_of(info)}", url=address),
            ),
        ),
        subject=subject,
        request_url=f"{address}?{urlencode({'item': subject})}#changes",
        again=replay_action(info, actor, step),
        evidence=evidence,
        problem=problem,
    )


def _replayed(info: RequestInfo, step: Step, actor: Actor) -> DataEvidence:
    """Raises NotAllowed for who may not read the schema where it comes from, or may not start scans at the target."""
    for place in places_of(info, step):
        require(actor, "schema.read", registry=place, subject=step.subject)
    registry, name = get_registry(info.target), parse_subject(step.subject)
    if step.kind == ADOPT:
        return weighed_evidence(replay_and_weigh(registry, name, by=actor, version=step.target_version))
    return weighed_evidence(
        replay_and_weigh(
            registry,
            name,
            by=actor,
            text=step.text,
            schema_type=step.schema_type,
            references=step.references,
        )
    )
