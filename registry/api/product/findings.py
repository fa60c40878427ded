"""The product's own API: findings, mutes, and decisions on suspected renames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access.permission_filters import require_extent
from registry.access.roles import Actor, require
from registry.api.product.base import ProductView, WholeNumberField
from registry.api.product.description import body_of, either, many, shape
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
    """Which findings: an empty filter means all. With `fail_on` the answer says whether a rollout may go on."""

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
        """Findings that the caller may read, worst first: those about subjects, the others with the whole registry.

        With `fail_on=break|risk|notice`: 200 where a rollout may go on, 409 where not, for whoever may read all that is
        asked about: name the registry, or the subject, where the role is for that alone. A rollout may not go on while a
        finding of that severity or a worse one is open, nor while something in scope wasn't read:
        `{"passed", "fail_on", "findings", "unscanned", "more_findings"}`. `unscanned` names registries without a source,
        sources that weren't really scanned, topics that the last scan couldn't read, and the `subject` (without one and
        without `source_id`, each subject but those that others refer to) of which scans read no topic. `more_findings`
        is how many findings beyond `limit` aren't listed. 404 for a registry, subject or source that doesn't exist.
        """
        parameters = request.query_params.dict()
        chosen = self.filters_of(FindingFilterSerializer, parameters)
        require_extent(self.actor, "schema.read", registry=chosen["registry"])
        fail_on = chosen.pop("fail_on")
        return _gate(parameters, fail_on, chosen, self.actor) if fail_on else _listed(chosen, self.actor)


def _listed(chosen: Mapping[str, Any], by: Actor) -> Response:
    return Response([asdict(finding) for finding in selectors.list_findings(**chosen, by=by)])


def _gate(parameters: Mapping[str, str], fail_on: str, chosen: Mapping[str, Any], by: Actor) -> Response:
    more = sorted(set(parameters) - GATE_FILTERS)
    if more:
        raise InvalidInput(f"fail_on can't be combined with {more[0]}, only with {', '.join(sorted(GATE_FILTERS))}.")
    require(by, "schema.read", registry=chosen["registry"], subject=chosen["subject"])
    scope = {name: chosen[name] for name in ("registry", "subject", "source_id", "limit")}
    gate = selectors.hold_rollout(fail_on=fail_on, **scope, by=by)
    return Response(asdict(gate), status=200 if gate.passed else 409)


class FindingView(ProductView):
    """`/api/v1/findings/{id}`."""

    @extend_schema(responses=FOUND)
    def get(self, request: Request, finding_id: int) -> Response:
        """One finding with its evidence; samples of messages are for those who may see them.

        `sentence`, `location`, `evidence` and `last_scan_count` are about the last scan that saw it; `count`,
        `first_seen` and `last_seen` are about all scans. `not_checked` says why scans can't tell whether it still holds.

        `answers` are one's own drafts and the requests that one may read which were begun from it; `suspected` is what
        was done in the hour before it began. A break that `still_blocks` fails requests to its closed environment even
        when it is acknowledged or muted.
        """
        finding = _finding(finding_id, self.actor)
        answers = body_of(_ANSWERS, requests_for_finding(finding_id, self.actor))
        return Response({**finding, "answers": answers, "suspected": asdict(suspicions_of(finding_id))})


def _finding(finding_id: int, by: Actor) -> dict[str, Any]:
    finding = selectors.get_finding(finding_id, by=by)
    return {**asdict(finding), "still_blocks": finding.severity == "break" and decided_breaks_block(finding.registry)}


class FindingDecisionSerializer(serializers.Serializer[Any]):
    """A decision: `reason` and `until` of an acknowledgement, `to` of an assignment (empty: to nobody)."""

    reason = serializers.CharField(required=False, default="", allow_blank=True)
    until = serializers.DateTimeField(required=False, default=None, allow_null=True)
    to = serializers.CharField(required=False, default="", allow_blank=True, max_length=150)


class FindingDecision(ProductView):
    """`/api/v1/findings/{id}/{acknowledge,reopen,assign}`."""

    @extend_schema(
        operation_id="findings_decide",
        request=FindingDecisionSerializer,
        responses=shape("DecidedFinding", selectors.FindingInfo, still_blocks=bool),
    )
    def post(self, request: Request, finding_id: int, decision: str) -> Response:
        """Acknowledge a finding, open it again, or give it to somebody."""
        values = self.valid(FindingDecisionSerializer)
        if decision == "acknowledge":
            services.acknowledge(finding_id=finding_id, reason=values["reason"], until=values["until"], by=self.actor)
        elif decision == "reopen":
            services.reopen(finding_id=finding_id, by=self.actor)
        else:
            services.assign(finding_id=finding_id, to=values["to"], by=self.actor)
        return Response(_finding(finding_id, self.actor))


class MuteSerializer(serializers.Serializer[Any]):
    """Findings to mute, by shell patterns."""

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
        """The mutes of registries that the caller may read, newest first; `registry` names whose."""
        registry = request.query_params.get("registry", "")
        require_extent(self.actor, "schema.read", registry=registry)
        return Response([asdict(mute) for mute in selectors.list_mutes(registry, by=self.actor)])

    @extend_schema(request=MuteSerializer, responses={201: shape("NewMute", mute=int, hides=int, still_blocks=bool)})
    def post(self, request: Request) -> Response:
        """Mute what fits all patterns, also what is found later.

        `hides` is how many open findings that are. With `still_blocks`, muted breaks fail requests to this closed environment as before.
        """
        values = self.valid(MuteSerializer)
        mute = services.mute(by=self.actor, **values)
        still_blocks, hides = decided_breaks_block(values["registry"]), services.hidden_by(mute)
        return Response({"mute": mute, "hides": hides, "still_blocks": still_blocks}, status=201)


class MuteView(ProductView):
    """`/api/v1/mutes/{id}`."""

    def delete(self, request: Request, mute_id: int) -> Response:
        """End a mute."""
        services.unmute(mute_id=mute_id, by=self.actor)
        return Response(status=204)


class PairSerializer(serializers.Serializer[Any]):
    """The field that went and the one that came, as the diff names them."""

    from_path = serializers.CharField(max_length=2 * MAX_PATH)
    to_path = serializers.CharField(max_length=2 * MAX_PATH)


class RenameSerializer(PairSerializer):
    """Whether the two are one field under two names, and why."""

    is_rename = serializers.BooleanField()
    reason = serializers.CharField(
        required=False, default="", allow_blank=True, max_length=2 * schema_changes.MAX_REASON
    )


class Renames(SubjectView):
    """`/api/v1/registries/{registry}/subjects/{subject}/renames`."""

    @extend_schema(responses=many(schema_changes.RenameInfo))
    def get(self, request: Request, registry: str, subject: str) -> Response:
        """What was decided, in the order in which it was."""
        registry_row, name = self.registry_and_subject(registry, subject)
        get_subject(registry_row, name, deleted=True)
        return Response([asdict(info) for info in schema_changes.renames_of(registry_row, name)])

    @extend_schema(request=RenameSerializer)
    def put(self, request: Request, registry: str, subject: str) -> Response:
        """Decide of one pair. Said twice it has one effect."""
        name = parse_subject(subject)
        require(self.actor, schema_changes.ACTION, registry=registry, subject=name.qualified)
        schema_changes.decide_rename(registry=registry, subject=name, by=self.actor, **self.valid(RenameSerializer))
        return Response(status=204)

    @extend_schema(request=PairSerializer)
    def delete(self, request: Request, registry: str, subject: str) -> Response:
        """Take back what was decided of one pair: it is suspected again."""
        name = parse_subject(subject)
        require(self.actor, schema_changes.ACTION, registry=registry, subject=name.qualified)
        schema_changes.undecide_rename(registry=registry, subject=name, by=self.actor, **self.valid(PairSerializer))
        return Response(status=204)
