"""The product's own API: promotion requests as JSON, and the bodies that callers send."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from rest_framework import serializers

from registry.access.roles import Actor, may, may_somewhere, require
from registry.api.product.base import SchemaTextField, VersionField, WholeNumberField, ZonedTimeField
from registry.api.product.compatibility import ReferenceSerializer
from registry.api.product.description import body_of, either, many, shape
from registry.errors import RequestNotFound
from registry.formats import DEFAULT_FORMAT
from registry.formats.base import Reference
from registry.promotions import selectors
from registry.promotions.hook_points import OriginFinding, origin_of, readable_findings, source_findings
from registry.promotions.models import PromotionRequest
from registry.promotions.models.decisions import MAX_CLIENT
from registry.promotions.models.requests import MAX_LABEL
from registry.promotions.requests.acknowledgements import MAX_NOTE
from registry.promotions.requests.preconditions import Condition, reasons_of
from registry.promotions.requests.resubmit import Resubmissions as AskedAgain
from registry.promotions.requests.resubmit import resubmissions_of
from registry.promotions.requests.state_machine import MAX_TEXT
from registry.promotions.requests.submission import MAX_ITEMS, MAX_REFERENCES
from registry.promotions.reviews.eligibility import ReviewNeeds
from registry.promotions.selectors import RequestInfo
from registry.subjects.versions.qualified_names import parse_subject

_ORIGIN: Final = shape("RequestOrigin", finding=OriginFinding)
ANSWER: Final = shape(
    "Promotion",
    RequestInfo,
    "release",
    "is_breaking",
    "can_run",
    without=("finding",),
    needed=shape("ReviewNeeds", ReviewNeeds, "is_met", "missing", without=("named_ids",)),
    origin=either(_ORIGIN, None),
    source_findings=many(OriginFinding),
    again_of=int | None,
    asked_again_by=many(int),
    reasons=dict[str, tuple[Condition, ...]],
)


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
    findings, again = readable_findings([info.finding for info in infos], by), resubmissions_of(infos, by)
    return [_request_dict(info, origin_of(findings.get(info.finding or 0)), again[info.id], by) for info in infos]


def _request_dict(
    info: RequestInfo, origin: dict[str, Any] | None, resubmissions: AskedAgain, by: Actor
) -> dict[str, Any]:
    """One of them; `reasons` say for each thing that may be done why the caller couldn't now."""
    return body_of(
        ANSWER,
        info,
        origin=origin,
        source_findings=[asdict(finding) for finding in source_findings(info, by)],
        again_of=resubmissions.earlier.id if resubmissions.earlier else None,
        asked_again_by=[later.id for later in resubmissions.later],
        reasons={name: [asdict(item) for item in against] for name, against in reasons_of(info, by).items()},
    )


STATES: Final = (*PromotionRequest.STATES, "open")
MAX_NUMBER: Final = 2**63 - 1


def text_field(**more: Any) -> serializers.CharField:
    """A text that may be left out."""
    return serializers.CharField(required=False, allow_blank=True, max_length=MAX_TEXT, **{"default": "", **more})


def number_field(**more: Any) -> WholeNumberField:
    """The number of something that may be left out."""
    return WholeNumberField(required=False, default=None, allow_null=True, min_value=1, max_value=MAX_NUMBER, **more)


def again_field() -> WholeNumberField:
    """The number of the request that is asked for again."""
    return number_field(help_text="the rejected or withdrawn request that this one repeats")


def labels_field(**more: Any) -> serializers.ListField:
    """Labels of a request; what they may be the service says."""
    return serializers.ListField(child=serializers.CharField(max_length=MAX_TEXT), max_length=MAX_ITEMS, **more)


class RequestPageSerializer(serializers.Serializer[Any]):
    """Filters; an empty one matches everything. `after` is the last number of the previous page."""

    state = serializers.ChoiceField(choices=STATES, required=False, default="", allow_blank=True)
    target = serializers.CharField(max_length=255, required=False, default="", allow_blank=True)
    subject = serializers.CharField(max_length=1280, required=False, default="", allow_blank=True)
    finding = number_field(help_text="the drift finding that they address")
    label = serializers.CharField(max_length=MAX_LABEL, required=False, default="", allow_blank=True)  # type: ignore[assignment]  # a filter, not DRF's
    mine = serializers.BooleanField(required=False, default=False)
    waiting = serializers.BooleanField(required=False, default=False, help_text="waiting for the caller's review")
    after = number_field()
    limit = WholeNumberField(required=False, default=100, min_value=1, max_value=200)


class ItemSerializer(serializers.Serializer[Any]):
    """The version to promote."""

    subject = serializers.CharField(max_length=1280)
    version = VersionField(required=False, default="latest")


class PromotionSerializer(serializers.Serializer[Any]):
    """What to promote: `subject` with `version`, or `items`, which become one plan. A draft is submitted later.

    If a version came to `source` because of a drift finding, the finding becomes the request's `origin`.
    """

    source = serializers.CharField(max_length=255)  # type: ignore[assignment]  # a field of the body, not DRF's
    target = serializers.CharField(max_length=255)
    subject = serializers.CharField(max_length=1280, required=False, default="", allow_blank=True)
    version = VersionField(required=False, default="latest")
    items = serializers.ListField(child=ItemSerializer(), required=False, max_length=MAX_ITEMS)
    with_config = serializers.BooleanField(required=False, default=False)
    reason = text_field()
    draft = serializers.BooleanField(required=False, default=False)
    again_of = again_field()
    labels = labels_field(required=False)


class ProposalSerializer(serializers.Serializer[Any]):
    """The schema to register as the next version of a subject in the target. `draft_id` is the draft that it completes.

    `finding` is the number of the drift finding that it addresses. `finding` and `reason` default to the draft's.
    """

    target = serializers.CharField(max_length=255)
    subject = serializers.CharField(max_length=1280)
    schema = SchemaTextField()
    schemaType = serializers.CharField(max_length=16, required=False, default=DEFAULT_FORMAT)  # noqa: N815 - the API's name
    references = serializers.ListField(child=ReferenceSerializer(), required=False, max_length=MAX_REFERENCES)
    reason = text_field(default=None, allow_null=True)
    draft_id = number_field()
    finding = number_field()
    again_of = again_field()
    labels = labels_field(required=False)


class RollBackSerializer(serializers.Serializer[Any]):
    """The earlier version to return to."""

    environment = serializers.CharField(max_length=255)
    subject = serializers.CharField(max_length=1280)
    version = VersionField()
    reason = serializers.CharField(max_length=MAX_TEXT)
    again_of = again_field()


class AgainSerializer(serializers.Serializer[Any]):
    """The reason for the new request; by default that of the earlier one."""

    reason = text_field()


class DecisionSerializer(serializers.Serializer[Any]):
    """A decision about a request. Each decision reads the fields that its description names."""

    comment = text_field(
        help_text="Required to request changes, to reject, and to approve a breaking change or one whose source has open"
        " breaks, unless `override` gives the reason."
    )
    plan_hash = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=64,
        help_text="For approve: the hash of the plan that was read. Without it the response is 428, and 409 if the plan has"
        " changed.",
    )
    override = text_field(help_text="For approve: the reason to approve in spite of failing checks, a freeze included.")
    typed = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=1280,
        help_text="For approve: the subject's name, required if the change breaks a closed environment.",
    )
    resolve = serializers.BooleanField(
        required=False, default=False, help_text="For approve: resolve open discussions."
    )
    at = ZonedTimeField(
        required=False, default=None, allow_null=True, help_text="For schedule: the time, with its zone."
    )
    move_on = serializers.BooleanField(
        required=False,
        default=False,
        help_text="For schedule: take the first open time if the target is frozen at that time.",
    )


class LabelsSerializer(serializers.Serializer[Any]):
    """The labels of the request; case is ignored."""

    labels = labels_field()


class HurtSerializer(serializers.Serializer[Any]):
    """The client that the plan breaks."""

    subject = serializers.CharField(max_length=1280)
    client = serializers.CharField(max_length=MAX_CLIENT)


class AcknowledgementSerializer(HurtSerializer):
    """The client that the plan breaks.

    `plan_hash` is the hash of the plan that was read; without it the response is 428.
    """

    note = serializers.CharField(required=False, default="", allow_blank=True, max_length=MAX_NOTE)
    plan_hash = serializers.CharField(required=False, default="", allow_blank=True, max_length=64)


class ThreadSerializer(serializers.Serializer[Any]):
    """The discussion to start: about a field, a subject, or the request as a whole."""

    text = serializers.CharField(max_length=MAX_TEXT)
    subject = serializers.CharField(max_length=1280, required=False, default="", allow_blank=True)
    path = serializers.CharField(max_length=1024, required=False, default="", allow_blank=True)
    suggestion = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        trim_whitespace=False,
        help_text="Of a proposal: its whole text with a change, which the requester can take.",
    )


class CommentSerializer(serializers.Serializer[Any]):
    """The reply."""

    text = serializers.CharField(max_length=MAX_TEXT)


def proposed(values: Mapping[str, Any]) -> dict[str, Any]:
    """A body with a schema, as the arguments of the service. Raises InvalidName."""
    names = {"schema": "text", "schemaType": "schema_type"}
    references = [Reference(**reference) for reference in values.get("references", ())]
    renamed = {names.get(name, name): value for name, value in values.items()}
    return {**renamed, "subject": parse_subject(values["subject"]), "references": references}
