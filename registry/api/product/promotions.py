"""The product's own API: promotion requests, their reviews and discussions, and what applying them takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access.roles import Actor, may, may_somewhere, require
from registry.api.product.base import AT, ProductView, as_it_was
from registry.api.product.compatibility import ReferenceSerializer
from registry.errors import InvalidInput, NotSignedIn, RequestNotFound
from registry.formats.base import Reference
from registry.promotions import selectors, services
from registry.promotions.labels import MAX_LABEL, clean_label
from registry.promotions.models import PromotionRequest
from registry.promotions.models.acknowledgements import MAX_CLIENT
from registry.promotions.origins import origin_of, readable_findings, require_finding
from registry.promotions.reasons import reasons_of
from registry.promotions.selectors import RequestInfo
from registry.promotions.selectors.again import Again as AskedAgain
from registry.promotions.selectors.again import asked_again
from registry.promotions.services.acknowledging import MAX_NOTE
from registry.promotions.services.current import MAX_TEXT
from registry.promotions.services.requesting import MAX_ITEMS, MAX_REFERENCES
from registry.subjects.names import parse_subject

STATES: Final = (*PromotionRequest.STATES, "open")
MAX_NUMBER: Final = 2**63 - 1


def text_field(**more: Any) -> serializers.CharField:
    """A text that may be left out."""
    return serializers.CharField(required=False, allow_blank=True, max_length=MAX_TEXT, **{"default": "", **more})


def again_field() -> serializers.IntegerField:
    """The number of the request that is asked for again."""
    return serializers.IntegerField(
        required=False,
        default=None,
        allow_null=True,
        min_value=1,
        max_value=MAX_NUMBER,
        help_text="the request, rejected or withdrawn, that this one asks for again",
    )


def labels_field(**more: Any) -> serializers.ListField:
    """Labels of a request; what they may be the service says."""
    return serializers.ListField(child=serializers.CharField(max_length=MAX_TEXT), max_length=MAX_ITEMS, **more)


class PageSerializer(serializers.Serializer[Any]):
    """Which requests: an empty filter means all. `after` is the number of the last one of the page before."""

    state = serializers.ChoiceField(choices=STATES, required=False, default="", allow_blank=True)
    target = serializers.CharField(max_length=255, required=False, default="", allow_blank=True)
    subject = serializers.CharField(max_length=1280, required=False, default="", allow_blank=True)
    finding = serializers.IntegerField(
        required=False,
        default=None,
        allow_null=True,
        min_value=1,
        max_value=MAX_NUMBER,
        help_text="the drift finding that they answer",
    )
    label = serializers.CharField(  # type: ignore[assignment]  # a filter, not DRF's
        max_length=MAX_LABEL, required=False, default="", allow_blank=True
    )
    mine = serializers.BooleanField(required=False, default=False)
    waiting = serializers.BooleanField(required=False, default=False, help_text="for one's own review")
    after = serializers.IntegerField(required=False, default=None, allow_null=True, min_value=1, max_value=MAX_NUMBER)
    limit = serializers.IntegerField(required=False, default=100, min_value=1, max_value=200)


class ItemSerializer(serializers.Serializer[Any]):
    """A version to promote."""

    subject = serializers.CharField(max_length=1280)
    version = serializers.CharField(max_length=12, required=False, default="latest")


class PromotionSerializer(serializers.Serializer[Any]):
    """What to ask for: `subject` with `version`, or `items`, which become one plan. A draft is submitted later.

    A version that came to `source` for a drift finding takes it along as the request's `origin`.
    """

    source = serializers.CharField(max_length=255)  # type: ignore[assignment]  # a field of the body, not DRF's
    target = serializers.CharField(max_length=255)
    subject = serializers.CharField(max_length=1280, required=False, default="", allow_blank=True)
    version = serializers.CharField(max_length=12, required=False, default="latest")
    items = serializers.ListField(child=ItemSerializer(), required=False, max_length=MAX_ITEMS)
    with_config = serializers.BooleanField(required=False, default=False)
    reason = text_field()
    draft = serializers.BooleanField(required=False, default=False)
    again_of = again_field()
    labels = labels_field(required=False)


class ProposalSerializer(serializers.Serializer[Any]):
    """A schema that is to be the next version of a subject of the target. `draft_id` is the draft that ends with it.

    `finding` is the number of the drift finding that it answers. Both it and `reason` are the draft's where they are
    left out.
    """

    target = serializers.CharField(max_length=255)
    subject = serializers.CharField(max_length=1280)
    schema = serializers.CharField(trim_whitespace=False)
    schemaType = serializers.CharField(max_length=16, required=False, default="AVRO")  # noqa: N815 - the API's name
    references = serializers.ListField(child=ReferenceSerializer(), required=False, max_length=MAX_REFERENCES)
    reason = text_field(default=None, allow_null=True)
    draft_id = serializers.IntegerField(
        required=False, default=None, allow_null=True, min_value=1, max_value=MAX_NUMBER
    )
    finding = serializers.IntegerField(required=False, default=None, allow_null=True, min_value=1, max_value=MAX_NUMBER)
    again_of = again_field()
    labels = labels_field(required=False)


class RollBackSerializer(serializers.Serializer[Any]):
    """An earlier version of an environment."""

    environment = serializers.CharField(max_length=255)
    subject = serializers.CharField(max_length=1280)
    version = serializers.CharField(max_length=12)
    reason = serializers.CharField(max_length=MAX_TEXT)
    again_of = again_field()


class AgainSerializer(serializers.Serializer[Any]):
    """Why it is asked for again; empty: the reason of before."""

    reason = text_field()


class DecisionSerializer(serializers.Serializer[Any]):
    """A decision: `override` is the reason to approve in spite of failing checks, `at` the time of a schedule.

    `move_on` takes the first open time after it where the target is frozen then. `typed` is the subject's name, for the
    approval of what breaks a closed environment.
    """

    comment = text_field()
    plan_hash = serializers.CharField(required=False, default="", allow_blank=True, max_length=64)
    override = text_field()
    typed = serializers.CharField(required=False, default="", allow_blank=True, max_length=1280)
    at = serializers.DateTimeField(required=False, default=None, allow_null=True)
    move_on = serializers.BooleanField(required=False, default=False)


class LabelsSerializer(serializers.Serializer[Any]):
    """The labels that a request is to have; small letters and capitals are one."""

    labels = labels_field()


class HurtSerializer(serializers.Serializer[Any]):
    """The client of a subject that doesn't go on."""

    subject = serializers.CharField(max_length=1280)
    client = serializers.CharField(max_length=MAX_CLIENT)


class AcknowledgementSerializer(HurtSerializer):
    """The client of a subject that doesn't go on; `plan_hash` is the plan that was read."""

    note = serializers.CharField(required=False, default="", allow_blank=True, max_length=MAX_NOTE)
    plan_hash = serializers.CharField(required=False, default="", allow_blank=True, max_length=64)


class ThreadSerializer(serializers.Serializer[Any]):
    """A discussion to begin: of a field, a subject, or the request as a whole."""

    text = serializers.CharField(max_length=MAX_TEXT)
    subject = serializers.CharField(max_length=1280, required=False, default="", allow_blank=True)
    path = serializers.CharField(max_length=1024, required=False, default="", allow_blank=True)


class CommentSerializer(serializers.Serializer[Any]):
    """What to add to a discussion."""

    text = serializers.CharField(max_length=MAX_TEXT)


class Promotions(ProductView):
    """`/api/v1/promotions`."""

    @extend_schema(parameters=[PageSerializer, AT], responses=None)
    @as_it_was
    def get(self, request: Request) -> Response:
        """Requests that one may read, newest first; the next page begins `after` the last number. `plan` has no texts here."""
        chosen = self.valid_of(PageSerializer, request.query_params.dict())
        subject = parse_subject(chosen["subject"]) if chosen["subject"] else None
        if not may_somewhere(self.actor, "schema.read"):
            require(self.actor, "schema.read")
        me = self.actor.user_id
        if me is None and (chosen["mine"] or chosen["waiting"]):
            raise NotSignedIn("Sign in to see what is yours.")
        if chosen["finding"] is not None:
            require_finding(chosen["finding"], self.actor)
        found = selectors.list_requests(
            state=chosen["state"],
            target=chosen["target"],
            subject=subject,
            finding=chosen["finding"],
            label=clean_label(chosen["label"]) if chosen["label"] else "",
            requested_by=me if chosen["mine"] else None,
            waiting_for=me if chosen["waiting"] else None,
            by=self.actor,
            after=chosen["after"],
            limit=chosen["limit"],
        )
        return Response(answers_of(found, self.actor))

    @extend_schema(request=PromotionSerializer, responses=None)
    def post(self, request: Request) -> Response:
        """Ask for versions of one environment in a later one, as one plan."""
        values = self.valid(PromotionSerializer)
        subject, version = values.pop("subject"), values.pop("version")
        values["items"] = [(parse_subject(item["subject"]), item["version"]) for item in values.pop("items", ())]
        if subject:
            values |= {"subject": parse_subject(subject), "version": version}
        number = services.request_promotion(by=self.actor, **values)
        return Response(answer_of(selectors.get_request(number), self.actor), status=201)


class Proposals(ProductView):
    """`/api/v1/proposals`."""

    @extend_schema(request=ProposalSerializer, responses=None)
    def post(self, request: Request) -> Response:
        """Ask for a schema to be registered in an environment once it is reviewed."""
        values = self.valid(ProposalSerializer)
        number = services.propose_version(
            target=values["target"],
            subject=parse_subject(values["subject"]),
            text=values["schema"],
            schema_type=values["schemaType"],
            references=references_of(values),
            reason=values["reason"],
            draft_id=values["draft_id"],
            finding=values["finding"],
            again_of=values["again_of"],
            labels=values.get("labels", ()),
            by=self.actor,
        )
        return Response(answer_of(selectors.get_request(number), self.actor), status=201)


class RollBacks(ProductView):
    """`/api/v1/roll-backs`."""

    @extend_schema(request=RollBackSerializer, responses=None)
    def post(self, request: Request) -> Response:
        """Ask for an earlier version of an environment to be its latest again, as a new version."""
        values = self.valid(RollBackSerializer)
        values["subject"] = parse_subject(values["subject"])
        number = services.request_roll_back(by=self.actor, **values)
        return Response(answer_of(selectors.get_request(number), self.actor), status=201)


class PromotionOne(ProductView):
    """`/api/v1/promotions/{id}`."""

    @extend_schema(parameters=[AT], responses=None)
    @as_it_was
    def get(self, request: Request, request_id: int) -> Response:
        """One request with its plan, checks, reviews, discussions, and steps that were applied."""
        return Response(answer_of(readable(int(request_id), self.actor), self.actor))


#: a decision in an address → what it calls, with the body's values
DECISIONS: Final[Mapping[str, Callable[[int, Actor, dict[str, Any]], object]]] = {
    "approve": lambda number, by, values: services.approve(
        request_id=number,
        by=by,
        comment=values["comment"],
        plan_hash=values["plan_hash"],
        override=values["override"],
        typed=values["typed"],
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
        raise InvalidInput("Say when: `at` is a time with its zone, such as 2027-01-31T22:00:00Z.")
    return values["at"]


class Decision(ProductView):
    """`/api/v1/promotions/{id}/{decision}`, of those who review and apply."""

    @extend_schema(request=DecisionSerializer, responses=None)
    def post(self, request: Request, request_id: str, decision: str) -> Response:
        """Take a request a step further, or back; answers the request as it is then."""
        number = int(request_id)
        DECISIONS[decision](number, self.actor, self.valid(DecisionSerializer))
        return Response(answer_of(readable(number, self.actor), self.actor))


class _Step(ProductView):
    """What a requester does with a request."""

    step: Callable[..., str]

    def answer(self, request_id: str) -> Response:
        """Do it, and answer the request as it is then."""
        type(self).step(request_id=int(request_id), by=self.actor)
        return Response(answer_of(readable(int(request_id), self.actor), self.actor))


class Submission(_Step):
    """`/api/v1/promotions/{id}/submit`."""

    step = staticmethod(services.submit)

    @extend_schema(request=None, responses=None)
    def post(self, request: Request, request_id: str) -> Response:
        """Ask for the review of a draft."""
        return self.answer(request_id)


class Recheck(_Step):
    """`/api/v1/promotions/{id}/recheck`."""

    step = staticmethod(services.recheck)

    @extend_schema(request=None, responses=None)
    def post(self, request: Request, request_id: str) -> Response:
        """Run the checks again; a plan that moved is kept, and its approvals no longer count."""
        return self.answer(request_id)


class Withdrawal(_Step):
    """`/api/v1/promotions/{id}/withdraw`."""

    step = staticmethod(services.withdraw)

    @extend_schema(request=None, responses=None)
    def post(self, request: Request, request_id: str) -> Response:
        """Take a request back: its requester, or an administrator."""
        return self.answer(request_id)


class Again(ProductView):
    """`/api/v1/promotions/{id}/again`."""

    @extend_schema(request=AgainSerializer, responses=None)
    def post(self, request: Request, request_id: str) -> Response:
        """Ask again for what was rejected or withdrawn; answers the new request."""
        values = self.valid(AgainSerializer)
        number = services.ask_again(request_id=int(request_id), by=self.actor, reason=values["reason"])
        return Response(answer_of(selectors.get_request(number), self.actor), status=201)


class Labels(ProductView):
    """`/api/v1/promotions/{id}/labels`."""

    @extend_schema(request=LabelsSerializer, responses=None)
    def put(self, request: Request, request_id: str) -> Response:
        """Replace the labels of a request, as whoever asked for it or reviews it; answers those that it has then."""
        found = services.set_labels(request_id=int(request_id), by=self.actor, **self.valid(LabelsSerializer))
        return Response({"labels": found})


class Acknowledgements(ProductView):
    """`/api/v1/promotions/{id}/acknowledgements`."""

    @extend_schema(request=AcknowledgementSerializer, responses=None)
    def post(self, request: Request, request_id: str) -> Response:
        """Acknowledge the plan for a client that doesn't go on, as one of those whom its contact names; or a reviewer.

        Said again it has no second effect: then the status is 200, not 201.
        """
        number, values = int(request_id), self.valid(AcknowledgementSerializer)
        is_new = services.acknowledge(request_id=number, by=self.actor, **values)
        return Response(answer_of(readable(number, self.actor), self.actor), status=201 if is_new else 200)

    @extend_schema(parameters=[HurtSerializer], responses={204: None})
    def delete(self, request: Request, request_id: str) -> Response:
        """Take back what one has acknowledged, while the request isn't being applied; said again it has no effect."""
        values = self.valid_of(HurtSerializer, request.query_params.dict())
        services.take_back(request_id=int(request_id), by=self.actor, **values)
        return Response(status=204)


class Threads(ProductView):
    """`/api/v1/promotions/{id}/threads`."""

    @extend_schema(request=ThreadSerializer, responses=None)
    def post(self, request: Request, request_id: str) -> Response:
        """Begin a discussion; whoever may read the request may."""
        number = services.open_thread(request_id=int(request_id), by=self.actor, **self.valid(ThreadSerializer))
        return Response({"thread": number}, status=201)


class ThreadComments(ProductView):
    """`/api/v1/threads/{id}/comments`."""

    @extend_schema(request=CommentSerializer, responses=None)
    def post(self, request: Request, thread_id: str) -> Response:
        """Add to a discussion."""
        values = self.valid(CommentSerializer)
        number = services.answer(thread_id=int(thread_id), by=self.actor, text=values["text"])
        return Response({"comment": number}, status=201)


class ThreadResolution(ProductView):
    """`/api/v1/threads/{id}/resolve`."""

    @extend_schema(request=None, responses={204: None})
    def post(self, request: Request, thread_id: str) -> Response:
        """Resolve a discussion: who began it, the requester, and reviewers may."""
        services.resolve(thread_id=int(thread_id), by=self.actor)
        return Response(status=204)


class ThreadReopening(ProductView):
    """`/api/v1/threads/{id}/reopen`."""

    @extend_schema(request=None, responses={204: None})
    def post(self, request: Request, thread_id: str) -> Response:
        """Take a discussion up again; the same people may."""
        services.reopen(thread_id=int(thread_id), by=self.actor)
        return Response(status=204)


def references_of(values: Mapping[str, Any]) -> list[Reference]:
    """The references of a body."""
    return [Reference(**reference) for reference in values.get("references", ())]


def readable(request_id: int, by: Actor) -> RequestInfo:
    """The request for somebody who may read it; others can't tell it from one that isn't there.

    Raises NotSignedIn, NotAllowed, RequestNotFound.
    """
    if not may_somewhere(by, "schema.read"):
        require(by, "schema.read")
    info = selectors.get_request(request_id)
    subjects = [item.subject.qualified for item in info.items] or [info.subject.qualified]
    is_anothers_draft = info.state == PromotionRequest.DRAFT and info.requested_by_id != by.user_id
    if is_anothers_draft or not all(
        may(by, "schema.read", registry=info.target, subject=subject) for subject in subjects
    ):
        raise RequestNotFound(f"There is no promotion request {request_id}.", request=request_id)
    return info


def answer_of(info: RequestInfo, by: Actor) -> dict[str, Any]:
    """A request as JSON values; its `origin` is for those who may read the finding that it answers."""
    return answers_of([info], by)[0]


def answers_of(infos: Sequence[RequestInfo], by: Actor) -> list[dict[str, Any]]:
    """Requests as JSON values, their findings with one query, and those that ask for the same with another."""
    findings, again = readable_findings([info.finding for info in infos], by), asked_again(infos, by)
    return [_answer(info, origin_of(findings.get(info.finding or 0)), again[info.id], by) for info in infos]


def _answer(info: RequestInfo, origin: dict[str, Any] | None, asked: AskedAgain, by: Actor) -> dict[str, Any]:
    """One of them; `reasons` say for each thing that may be done why the caller couldn't now."""
    found = asdict(info)
    del found["finding"]  # its number is in the origin, for those who may read it
    found["needed"].pop("named_ids")
    found["needed"] |= {"is_met": info.needed.is_met, "missing": info.needed.missing}
    return {
        **found,
        "origin": origin,
        "again_of": asked.earlier.id if asked.earlier else None,
        "asked_again_by": [each.id for each in asked.later],
        "release": asdict(info.release) if info.release else None,
        "is_breaking": info.is_breaking,
        "can_run": info.can_run,
        "reasons": {name: [asdict(item) for item in against] for name, against in reasons_of(info, by).items()},
    }
