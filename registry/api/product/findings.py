"""The product's own API: findings, mutes, and decisions on suspected renames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from django.db import transaction
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access.permission_filters import require_extent
from registry.access.roles import Actor, require
from registry.api.product.base import ProductView, WholeNumberField
from registry.api.product.description import FILE, body_of, either, many, shape
from registry.api.product.lifecycle import SubjectView
from registry.drift import selectors, services
from registry.drift.findings.promotion_check import decided_breaks_block
from registry.drift.findings.suspicions import Suspicions, suspicions_of
from registry.drift.models import FINDING_STATES, SEVERITIES
from registry.errors import InvalidInput
from registry.promotions.models.decisions import MAX_PATH
from registry.promotions.requests import schema_changes
from registry.promotions.selectors import ReleaseInfo, requests_for_finding
from registry.subjects.versions.lookup import get_subject
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

_DRAFT: Final = shape("FindingDraft", id=int, registry=str, subject=SubjectName)
_REQUEST: Final = shape(
    "FindingRequest", id=int, state=str, target=str, subject=SubjectName, release=ReleaseInfo | None
)
_ANSWERS: Final = shape("FindingAnswers", drafts=many(_DRAFT), requests=many(_REQUEST))
FOUND: Final = shape("Finding", selectors.FindingInfo, still_blocks=bool, answers=_ANSWERS, suspected=Suspicions)


class FindingFilterSerializer(serializers.Serializer[Any]):
    """Filters; an empty one matches everything. With `fail_on` the response says whether a rollout can proceed."""

    registry = serializers.CharField(required=False, default="", allow_blank=True, max_length=255)
    subject = serializers.CharField(required=False, default="", allow_blank=True, max_length=1024)
    topic = serializers.CharField(required=False, default="", allow_blank=True, max_length=249)
    rule = serializers.CharField(required=False, default="", allow_blank=True, max_length=64)
    severity = serializers.ChoiceField(choices=SEVERITIES, required=False, default="", allow_blank=True)
    state = serializers.ChoiceField(choices=FINDING_STATES, required=False, default="open", allow_blank=True)
    kind = serializers.CharField(required=False, default="", allow_blank=True, max_length=16)
    source_id = WholeNumberField(required=False, default=None, allow_null=True)
    assigned_to = serializers.CharField(required=False, default="", allow_blank=True, max_length=150)
    muted = serializers.BooleanField(required=False, default=False, allow_null=True)
    text = serializers.CharField(required=False, default="", allow_blank=True, max_length=200)
    group_of = WholeNumberField(required=False, default=None, allow_null=True)
    limit = WholeNumberField(required=False, default=200, min_value=1, max_value=1000)
    fail_on = serializers.ChoiceField(choices=SEVERITIES, required=False, default="")


#: filters that `fail_on` goes with: it asks about what is open, whoever has it
GATE_FILTERS = frozenset({"fail_on", "registry", "subject", "source_id", "limit"})


class Findings(ProductView):
    """`/api/v1/findings`."""

    @extend_schema(
        parameters=[FindingFilterSerializer],
        responses={200: either(many(selectors.FindingInfo), selectors.Gate), 409: selectors.Gate},
    )
    def get(self, request: Request) -> Response:
        """List the findings that the caller can read, worst first.

        Findings that aren't about a subject are listed only for callers who can read the whole registry. Findings of a
        source with the same `cause_group` probably have one cause; `group_of=12` lists those of finding 12.

        With `fail_on=break|risk|notice` the status is 200 if a rollout can proceed, otherwise 409. The caller must be
        able to read everything in scope; with a role for one registry or subject, name it. A rollout can't proceed while
        a finding of that severity or worse is open, or while something in scope wasn't scanned. `unscanned` names
        registries without a source, sources that weren't scanned, topics that the last scan couldn't read, and the
        `subject` if no topic of it was read; without `subject` and `source_id`, every such subject that no other refers
        to. `more_findings` is how many findings beyond `limit` aren't listed. The status is 404 for a registry, subject
        or source that doesn't exist.
        """
        parameters = request.query_params.dict()
        chosen = self.filters_of(FindingFilterSerializer, parameters)
        require_extent(self.actor, "schema.read", registry=chosen["registry"])
        fail_on = chosen.pop("fail_on")
        if fail_on:
            return _gate(parameters, fail_on, chosen, self.actor)
        return Response([asdict(finding) for finding in selectors.list_findings(**chosen, by=self.actor)])


def _gate(parameters: Mapping[str, str], fail_on: str, chosen: Mapping[str, Any], by: Actor) -> Response:
    more = sorted(set(parameters) - GATE_FILTERS)
    if more:
        raise InvalidInput(f"fail_on can't be combined with {more[0]}, only with {', '.join(sorted(GATE_FILTERS))}.")
    require(by, "schema.read", registry=chosen["registry"], subject=chosen["subject"])
    scope = {name: chosen[name] for name in ("registry", "subject", "source_id", "limit")}
    gate = selectors.check_rollout_gate(fail_on=fail_on, **scope, by=by)
    return Response(asdict(gate), status=200 if gate.passed else 409)


class FindingView(ProductView):
    """`/api/v1/findings/{id}`."""

    @extend_schema(responses=FOUND)
    def get(self, request: Request, finding_id: int) -> Response:
        """Get a finding with its evidence. Samples of messages need the permission to see them.

        `sentence`, `location`, `evidence` and `last_scan_count` are from the last scan that saw it; `count`,
        `first_seen` and `last_seen` cover all scans. `not_checked` says why scans can't tell whether it still holds.

        `answers` has the caller's drafts, and the requests that the caller can read, that address it. `suspected` is
        what happened in the hour before it began. If `still_blocks` is true, the break fails requests to its closed
        environment even when it is acknowledged or muted.
        """
        finding = _finding(finding_id, self.actor)
        answers = body_of(_ANSWERS, requests_for_finding(finding_id, self.actor))
        return Response({**finding, "answers": answers, "suspected": asdict(suspicions_of(finding_id))})


class FindingOffsetsSerializer(serializers.Serializer[Any]):
    """`after` is the `next` of the page before."""

    after = serializers.CharField(required=False, default="", allow_blank=True, max_length=40)
    limit = WholeNumberField(required=False, default=1_000, min_value=1, max_value=10_000)


class FindingOffsetsView(ProductView):
    """`/api/v1/findings/{id}/offsets`."""

    @extend_schema(
        parameters=[FindingOffsetsSerializer, OpenApiParameter("as", enum=[*selectors.MEDIA], default="json")],
        responses={(200, "application/json"): selectors.FindingOffsets, (200, "text/csv"): FILE},
    )
    def get(self, request: Request, finding_id: int) -> Response | HttpResponse:
        """List a finding's messages as ranges of offsets, by partition. `as=csv` exports all of them.

        Every offset from `first_offset` to `last_offset` is a message of the finding. `listed` is how many of its
        `messages` are listed: a finding keeps the 10,000 newest ranges. If `collected` is false, scans only count the
        messages: shares and changes of a field's values have no offsets, and `as=csv` is a 422.
        """
        parameters = request.query_params.dict()
        form = parameters.pop("as", "json")
        if form != "json":
            text = selectors.offsets_file(finding_id, form, by=self.actor)
            return HttpResponse(text, content_type=selectors.MEDIA[form])
        chosen = self.filters_of(FindingOffsetsSerializer, parameters)
        return Response(asdict(selectors.finding_offsets(finding_id, by=self.actor, **chosen)))


def _finding(finding_id: int, by: Actor) -> dict[str, Any]:
    finding = selectors.get_finding(finding_id, by=by)
    return {**asdict(finding), "still_blocks": finding.severity == "break" and decided_breaks_block(finding.registry)}


class FindingDecisionSerializer(serializers.Serializer[Any]):
    """`reason` and `until` are for an acknowledgement, `to` is for an assignment (empty to unassign).

    With `group`, the decision is also made about all other open findings that probably have the same cause.
    """

    reason = serializers.CharField(required=False, default="", allow_blank=True)
    until = serializers.DateTimeField(required=False, default=None, allow_null=True)
    to = serializers.CharField(required=False, default="", allow_blank=True, max_length=150)
    group = serializers.BooleanField(required=False, default=False)


class FindingDecision(ProductView):
    """`/api/v1/findings/{id}/{acknowledge,reopen,assign}`."""

    @extend_schema(
        operation_id="findings_decide",
        request=FindingDecisionSerializer,
        responses=shape("DecidedFinding", selectors.FindingInfo, still_blocks=bool),
    )
    def post(self, request: Request, finding_id: int, decision: str) -> Response:
        """Acknowledge, reopen or assign a finding; with `group`, all that probably have its cause, all or none.

        Findings that the caller can read but not decide on stay as they are.
        """
        values = self.valid(FindingDecisionSerializer)
        names = {"acknowledge": ("reason", "until"), "assign": ("to",), "reopen": ()}[decision]
        arguments = {name: values[name] for name in names}
        with transaction.atomic():
            for number in self._members(int(finding_id), decision) if values["group"] else [finding_id]:
                getattr(services, decision)(finding_id=number, by=self.actor, **arguments)
        return Response(_finding(finding_id, self.actor))

    def _members(self, finding_id: int, decision: str) -> list[int]:
        """Return the finding and those with its cause that the decision can be made about, in the order of locks."""
        state = "acknowledged" if decision == "reopen" else "open"
        return sorted({finding_id, *selectors.decidable_group(finding_id, state=state, by=self.actor)})


class MuteSerializer(serializers.Serializer[Any]):
    """Shell patterns of the findings to mute."""

    registry = serializers.CharField(max_length=255, required=False, default="")
    rule = serializers.CharField(max_length=64, required=False, default="", allow_blank=True)
    subject = serializers.CharField(max_length=512, required=False, default="", allow_blank=True)
    location = serializers.CharField(max_length=1024, required=False, default="", allow_blank=True)
    reason = serializers.CharField()
    until = serializers.DateTimeField(required=False, default=None, allow_null=True)


class Mutes(ProductView):
    """`/api/v1/mutes`."""

    @extend_schema(responses=many(selectors.MuteInfo))
    def get(self, request: Request) -> Response:
        """List the mutes of registries that the caller can read, newest first.

        `registry` limits the list to one registry.
        """
        registry = request.query_params.get("registry", "")
        require_extent(self.actor, "schema.read", registry=registry)
        return Response([asdict(mute) for mute in selectors.list_mutes(registry, by=self.actor)])

    @extend_schema(request=MuteSerializer, responses={201: shape("NewMute", mute=int, hides=int, still_blocks=bool)})
    def post(self, request: Request) -> Response:
        """Mute present and future findings that match all patterns.

        `hides` is the number of open findings that match. If `still_blocks` is true, muted breaks still fail requests
        to this closed environment.
        """
        values = self.valid(MuteSerializer)
        mute = services.mute(by=self.actor, **values)
        still_blocks, hides = decided_breaks_block(values["registry"]), services.hidden_by(mute)
        return Response({"mute": mute, "hides": hides, "still_blocks": still_blocks}, status=201)


class MuteView(ProductView):
    """`/api/v1/mutes/{id}`."""

    def delete(self, request: Request, mute_id: int) -> Response:
        """Remove a mute."""
        services.unmute(mute_id=mute_id, by=self.actor)
        return Response(status=204)


class PairSerializer(serializers.Serializer[Any]):
    """The removed field and the added one, as the diff names them."""

    from_path = serializers.CharField(max_length=2 * MAX_PATH)
    to_path = serializers.CharField(max_length=2 * MAX_PATH)


class RenameSerializer(PairSerializer):
    """Whether the added field is the removed one under a new name, and why."""

    is_rename = serializers.BooleanField()
    reason = serializers.CharField(
        required=False, default="", allow_blank=True, max_length=2 * schema_changes.MAX_REASON
    )


class Renames(SubjectView):
    """`/api/v1/registries/{registry}/subjects/{subject}/renames`."""

    @extend_schema(responses=many(schema_changes.RenameInfo))
    def get(self, request: Request, registry: str, subject: str) -> Response:
        """List the decisions about suspected renames, oldest first."""
        registry_row, name = self.registry_and_subject(registry, subject)
        get_subject(registry_row, name, deleted=True)
        return Response([asdict(info) for info in schema_changes.renames_of(registry_row, name)])

    @extend_schema(request=RenameSerializer)
    def put(self, request: Request, registry: str, subject: str) -> Response:
        """Decide whether one pair is a rename. The call is idempotent."""
        name = parse_subject(subject)
        require(self.actor, schema_changes.ACTION, registry=registry, subject=name.qualified)
        schema_changes.decide_rename(registry=registry, subject=name, by=self.actor, **self.valid(RenameSerializer))
        return Response(status=204)

    @extend_schema(request=PairSerializer)
    def delete(self, request: Request, registry: str, subject: str) -> Response:
        """Withdraw the decision about one pair; it is a suspected rename again."""
        name = parse_subject(subject)
        require(self.actor, schema_changes.ACTION, registry=registry, subject=name.qualified)
        schema_changes.undecide_rename(registry=registry, subject=name, by=self.actor, **self.valid(PairSerializer))
        return Response(status=204)
