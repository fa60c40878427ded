"""The product's own API: promotion requests, their reviews, labels, discussions and evidence pack."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access.roles import Actor, may_somewhere, require
from registry.api.product import promotion_serializers as bodies
from registry.api.product.base import AT, ProductView, as_it_was
from registry.api.product.description import many, shape
from registry.errors import InvalidInput, NotSignedIn
from registry.promotions import selectors, services
from registry.promotions.hook_points import require_finding
from registry.promotions.models.requests import clean_label
from registry.promotions.requests.evidence_pack import evidence_of
from registry.subjects.versions.qualified_names import parse_subject

_OBJECTS: Final[dict[str, Any]] = {
    **dict.fromkeys(("request", "plan", "audit"), dict[str, Any]),
    **dict.fromkeys(("changes", "checks", "evidence", "rules", "read_back"), list[dict[str, Any]]),
}
EVIDENCE: Final = shape(
    "EvidencePack",
    **_OBJECTS,
    format=int,
    made_at=datetime,
    made_by=str,
    reviews=many(selectors.ReviewInfo),
    acknowledgements=many(selectors.AcknowledgementInfo),
    discussions=many(selectors.ThreadInfo),
    applied=many(selectors.StepInfo),
)


class Promotions(ProductView):
    """`/api/v1/promotions`."""

    @extend_schema(parameters=[bodies.RequestPageSerializer, AT], responses=many(bodies.ANSWER))
    @as_it_was
    def get(self, request: Request) -> Response:
        """List the requests that the caller can read, newest first.

        `after` is the last number of the previous page. `plan` has no schemas here.
        """
        chosen = self.filters_of(bodies.RequestPageSerializer, request.query_params.dict())
        subject = parse_subject(chosen["subject"]) if chosen["subject"] else None
        if not may_somewhere(self.actor, "schema.read"):
            require(self.actor, "schema.read")
        me = self.actor.user_id
        if me is None and (chosen["mine"] or chosen["waiting"]):
            raise NotSignedIn("Sign in to see what is yours.")
        if chosen["finding"] is not None:
            require_finding(chosen["finding"], self.actor)
        mine, waiting = chosen.pop("mine"), chosen.pop("waiting")
        chosen |= {"subject": subject, "label": clean_label(chosen["label"]) if chosen["label"] else ""}
        requests = selectors.list_requests(
            **chosen, requested_by=me if mine else None, waiting_for=me if waiting else None, by=self.actor
        )
        return Response(bodies.answers_of(requests, self.actor))

    @extend_schema(request=bodies.PromotionSerializer, responses={201: bodies.ANSWER})
    def post(self, request: Request) -> Response:
        """Request the promotion of versions from one environment to a later one, as one plan."""
        values = self.valid(bodies.PromotionSerializer)
        subject, version = values.pop("subject"), values.pop("version")
        values["items"] = [(parse_subject(item["subject"]), item["version"]) for item in values.pop("items", ())]
        if subject:
            values |= {"subject": parse_subject(subject), "version": version}
        number = services.request_promotion(by=self.actor, **values)
        return Response(bodies.answer_of(selectors.get_request(number), self.actor), status=201)


class Proposals(ProductView):
    """`/api/v1/proposals`."""

    @extend_schema(request=bodies.ProposalSerializer, responses={201: bodies.ANSWER})
    def post(self, request: Request) -> Response:
        """Propose a schema, which is registered in an environment after review."""
        values = self.valid(bodies.ProposalSerializer)
        number = services.propose_version(by=self.actor, **bodies.proposed(values))
        return Response(bodies.answer_of(selectors.get_request(number), self.actor), status=201)


class RollBacks(ProductView):
    """`/api/v1/roll-backs`."""

    @extend_schema(request=bodies.RollBackSerializer, responses={201: bodies.ANSWER})
    def post(self, request: Request) -> Response:
        """Request a rollback: an earlier version becomes the latest again, as a new version."""
        values = self.valid(bodies.RollBackSerializer)
        values["subject"] = parse_subject(values["subject"])
        number = services.request_roll_back(by=self.actor, **values)
        return Response(bodies.answer_of(selectors.get_request(number), self.actor), status=201)


class PromotionOne(ProductView):
    """`/api/v1/promotions/{id}`."""

    @extend_schema(parameters=[AT], responses=bodies.ANSWER)
    @as_it_was
    def get(self, request: Request, request_id: int) -> Response:
        """Get a request with its plan, checks, reviews, discussions and applied steps."""
        return Response(bodies.answer_of(bodies.readable(int(request_id), self.actor), self.actor))


#: a decision in an address → what it calls, with the body's values
DECISIONS: Final[Mapping[str, Callable[[int, Actor, dict[str, Any]], object]]] = {
    "approve": lambda number, by, values: services.approve(
        request_id=number,
        by=by,
        **{name: values[name] for name in ("comment", "plan_hash", "override", "typed", "resolve")},
    ),
    "request-changes": lambda number, by, values: services.request_changes(
        request_id=number, by=by, comment=values["comment"]
    ),
    "reject": lambda number, by, values: services.reject(request_id=number, by=by, comment=values["comment"]),
    "apply": lambda number, by, values: services.apply(request_id=number, by=by),
    "schedule": lambda number, by, values: services.schedule(
        request_id=number, by=by, at=_time(values), move_on=values["move_on"]
    ),
    "unschedule": lambda number, by, values: services.unschedule(request_id=number, by=by),
    "resume": lambda number, by, values: services.resume(request_id=number, by=by),
    "give-up": lambda number, by, values: services.give_up(request_id=number, by=by),
}


def _time(values: Mapping[str, Any]) -> Any:
    if values["at"] is None:
        raise InvalidInput("Give `at`: a time with a time zone, such as 2027-01-31T22:00:00Z.")
    return values["at"]


class Decision(ProductView):
    """`/api/v1/promotions/{id}/{decision}`, of those who review and apply."""

    @extend_schema(operation_id="promotions_decide", request=bodies.DecisionSerializer, responses=bodies.ANSWER)
    def post(self, request: Request, request_id: str, decision: str) -> Response:
        """Approve, reject, apply, schedule or otherwise decide on a request.

        The response has the request afterwards.
        """
        number = int(request_id)
        DECISIONS[decision](number, self.actor, self.valid(bodies.DecisionSerializer))
        return Response(bodies.answer_of(bodies.readable(number, self.actor), self.actor))


class _Step(ProductView):
    """What a requester does with a request."""

    step: Callable[..., str]

    def do_step(self, request_id: str) -> Response:
        """Do it, and answer the request as it is then."""
        type(self).step(request_id=int(request_id), by=self.actor)
        return Response(bodies.answer_of(bodies.readable(int(request_id), self.actor), self.actor))


class Submission(_Step):
    """`/api/v1/promotions/{id}/submit`."""

    step = staticmethod(services.submit)

    @extend_schema(responses=bodies.ANSWER)
    def post(self, request: Request, request_id: str) -> Response:
        """Submit a draft for review."""
        return self.do_step(request_id)


class Recheck(_Step):
    """`/api/v1/promotions/{id}/recheck`."""

    step = staticmethod(services.recheck)

    @extend_schema(responses=bodies.ANSWER)
    def post(self, request: Request, request_id: str) -> Response:
        """Run the checks again. If the plan changed, it is stored and earlier approvals no longer count."""
        return self.do_step(request_id)


class Withdrawal(_Step):
    """`/api/v1/promotions/{id}/withdraw`."""

    step = staticmethod(services.withdraw)

    @extend_schema(responses=bodies.ANSWER)
    def post(self, request: Request, request_id: str) -> Response:
        """Withdraw a request. Its requester and admins can."""
        return self.do_step(request_id)


class Again(ProductView):
    """`/api/v1/promotions/{id}/again`."""

    @extend_schema(request=bodies.AgainSerializer, responses={201: bodies.ANSWER})
    def post(self, request: Request, request_id: str) -> Response:
        """Request again what was rejected or withdrawn. The response has the new request."""
        values = self.valid(bodies.AgainSerializer)
        number = services.ask_again(request_id=int(request_id), by=self.actor, reason=values["reason"])
        return Response(bodies.answer_of(selectors.get_request(number), self.actor), status=201)


class Labels(ProductView):
    """`/api/v1/promotions/{id}/labels`."""

    @extend_schema(request=bodies.LabelsSerializer, responses=shape("RequestLabels", labels=many(str)))
    def put(self, request: Request, request_id: str) -> Response:
        """Replace the labels of a request. Its requester and reviewers can."""
        labels = services.set_labels(request_id=int(request_id), by=self.actor, **self.valid(bodies.LabelsSerializer))
        return Response({"labels": labels})


class Acknowledgements(ProductView):
    """`/api/v1/promotions/{id}/acknowledgements`."""

    @extend_schema(request=bodies.AcknowledgementSerializer, responses={200: bodies.ANSWER, 201: bodies.ANSWER})
    def post(self, request: Request, request_id: str) -> Response:
        """Acknowledge the plan for a client that it breaks. The people whom its contact names can, and reviewers.

        The call is idempotent: the status is 201 the first time, then 200.
        """
        number, values = int(request_id), self.valid(bodies.AcknowledgementSerializer)
        is_new = services.acknowledge(request_id=number, by=self.actor, **values)
        return Response(
            bodies.answer_of(bodies.readable(number, self.actor), self.actor), status=201 if is_new else 200
        )

    @extend_schema(parameters=[bodies.HurtSerializer])
    def delete(self, request: Request, request_id: str) -> Response:
        """Withdraw the caller's acknowledgement, unless the request is being applied. The call is idempotent."""
        values = self.filters_of(bodies.HurtSerializer, request.query_params.dict())
        services.withdraw_acknowledgement(request_id=int(request_id), by=self.actor, **values)
        return Response(status=204)


class Threads(ProductView):
    """`/api/v1/promotions/{id}/threads`."""

    @extend_schema(request=bodies.ThreadSerializer, responses={201: shape("NewThread", thread=int)})
    def post(self, request: Request, request_id: str) -> Response:
        """Start a discussion. Everybody who can read the request can."""
        number = services.open_thread(request_id=int(request_id), by=self.actor, **self.valid(bodies.ThreadSerializer))
        return Response({"thread": number}, status=201)


class ThreadComments(ProductView):
    """`/api/v1/threads/{id}/comments`."""

    @extend_schema(request=bodies.CommentSerializer, responses={201: shape("NewComment", comment=int)})
    def post(self, request: Request, thread_id: str) -> Response:
        """Reply to a discussion."""
        values = self.valid(bodies.CommentSerializer)
        number = services.reply(thread_id=int(thread_id), by=self.actor, text=values["text"])
        return Response({"comment": number}, status=201)


class ThreadResolution(ProductView):
    """`/api/v1/threads/{id}/resolve`."""

    def post(self, request: Request, thread_id: str) -> Response:
        """Resolve a discussion. The person who started it, the requester and reviewers can."""
        services.resolve(thread_id=int(thread_id), by=self.actor)
        return Response(status=204)


class SuggestionTaking(ProductView):
    """`/api/v1/threads/{id}/take`."""

    def post(self, request: Request, thread_id: str) -> Response:
        """Take the suggested change of a proposal. Its requester can; the checks run again, and approvals don't count."""
        services.take_suggestion(thread_id=int(thread_id), by=self.actor)
        return Response(status=204)


class ThreadReopening(ProductView):
    """`/api/v1/threads/{id}/reopen`."""

    def post(self, request: Request, thread_id: str) -> Response:
        """Reopen a discussion. The same people as for resolving it can."""
        services.reopen(thread_id=int(thread_id), by=self.actor)
        return Response(status=204)


class Evidence(ProductView):
    """`/api/v1/promotions/{id}/evidence`."""

    @extend_schema(responses=EVIDENCE)
    def get(self, request: Request, request_id: str) -> Response:
        """Get what the request changed, who approved it, what is registered now, and the audit events with their seals."""
        return Response(evidence_of(int(request_id), self.actor))
