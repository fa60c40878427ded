"""The product's own API: what listeners of Spark jobs report about running queries, and how a query ran."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.utils import extend_schema
from rest_framework import exceptions, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.product.base import ProductView, WholeNumberField, ZonedTimeField
from registry.api.product.description import body_of, many, shape
from registry.streams.progress_history import RANGES, QueryProgress, RunInfo, get_progress
from registry.streams.query_progress import KINDS, MAX_EVENTS, MAX_OPERATORS, report_progress

MAX_BODY: Final = 2 * 1024 * 1024  # bytes
PROGRESS: Final = shape("QueryProgress", QueryProgress, runs=many(shape("QueryRun", RunInfo, run_id=str)))
REPORT: Final = shape("ProgressAccepted", accepted=int, unknown=many(str))


def _number(**more: Any) -> WholeNumberField:
    return WholeNumberField(min_value=0, **{"required": False, "default": 0, **more})


class OperatorProgressSerializer(serializers.Serializer[Any]):
    """The state of a stateful operator after a batch, as Spark reports it; `bytes` are of memory."""

    name = serializers.CharField(max_length=100)
    rows = _number()
    bytes = _number()
    partitions = _number()


class ProgressEventSerializer(serializers.Serializer[Any]):
    """An event of a query: `query` and `run` are Spark's ids, `age_ms` is how long ago it happened.

    A batch has its number and what follows it; `lag` counts the messages that a Kafka source hasn't read yet. `dropped`
    counts the events of this run that the listener had no room for.
    """

    kind = serializers.ChoiceField(choices=KINDS)
    query = serializers.UUIDField()
    run = serializers.UUIDField()
    age_ms = _number()
    dropped = _number()
    name = serializers.CharField(required=False, default="", allow_blank=True, max_length=200)
    error = serializers.CharField(required=False, default="", allow_blank=True, max_length=200)
    batch = _number()
    rows = _number()
    duration_ms = _number()
    watermark = ZonedTimeField(required=False, default=None, allow_null=True)
    lag = _number(default=None, allow_null=True)
    operators = serializers.ListField(
        child=OperatorProgressSerializer(), required=False, default=list, max_length=MAX_OPERATORS
    )


class ProgressReportSerializer(serializers.Serializer[Any]):
    """Events, oldest first."""

    events = serializers.ListField(child=ProgressEventSerializer(), max_length=MAX_EVENTS)


class ReportTooLarge(exceptions.APIException):
    """The body is larger than a listener sends."""

    status_code = 413
    default_detail = f"A report may have up to {MAX_BODY} bytes. Send fewer events."


class ProgressReports(ProductView):
    """`/api/v1/query-progress`."""

    @extend_schema(request=ProgressReportSerializer, responses=REPORT)
    def post(self, request: Request) -> Response:
        """Report how queries run; a report that arrives twice counts once.

        `unknown` lists queries that no scan has found where the caller may report. Their events aren't stored.
        """
        if int(request.META.get("CONTENT_LENGTH") or 0) > MAX_BODY:
            raise ReportTooLarge
        events = self.valid(ProgressReportSerializer)["events"]
        unknown = report_progress(events=events, by=self.actor)
        accepted = sum(str(event["query"]) not in unknown for event in events)
        return Response({"accepted": accepted, "unknown": unknown})


class RangeSerializer(serializers.Serializer[Any]):
    """How far back: an hour and a day by minutes, 90 days by hours."""

    range = serializers.ChoiceField(choices=list(RANGES), required=False, default="day")


class Progress(ProductView):
    """`/api/v1/queries/{id}/progress`."""

    @extend_schema(parameters=[RangeSerializer], responses=PROGRESS)
    def get(self, request: Request, query_id: int) -> Response:
        """Get how a query ran: its runs with their restarts and errors, and its batches by minute or by hour."""
        chosen = self.filters_of(RangeSerializer, request.query_params.dict())
        progress = get_progress(query_id, within=chosen["range"], by=self.actor)
        runs = [body_of(RunInfo, run) | {"run_id": str(run.run_id)} for run in progress.runs]
        return Response(body_of(PROGRESS, progress, runs=runs))
