"""The audit, for auditors' programs: filtered, and exported whole as JSON lines or CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

from django.http import StreamingHttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from registry.access.roles import require
from registry.api.product.base import ProductView
from registry.audit.selectors import AuditFilter, stream_events
from registry.errors import InvalidInput

COLUMNS = (
    "id", "at", "actor", "door", "origin", "why", "operation", "table", "row_id", "before", "after",
    "transaction_id", "position", "seal",
)  # fmt: skip
# A spreadsheet takes a cell that begins with one of these for a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


class FilterSerializer(serializers.Serializer[Any]):
    """Which events."""

    text = serializers.CharField(required=False, default="", max_length=200)
    actor = serializers.CharField(required=False, default="", max_length=200)
    door = serializers.CharField(required=False, default="", max_length=20)
    table = serializers.CharField(required=False, default="", max_length=100)
    row_id = serializers.CharField(required=False, default="", max_length=100)
    since = serializers.DateTimeField(required=False, default=None, allow_null=True)
    until = serializers.DateTimeField(required=False, default=None, allow_null=True)


class Audit(ProductView):
    """`/api/v1/audit`."""

    @extend_schema(
        parameters=[FilterSerializer, OpenApiParameter("as", enum=["jsonl", "csv"], default="jsonl")], responses=None
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """All events that the filter names, oldest first, as JSON lines or CSV."""
        require(self.actor, "audit.read")
        given = request.query_params.dict()
        form = given.pop("as", "jsonl")
        if form not in FORMS:
            raise InvalidInput(f"The audit comes as {' or '.join(FORMS)}, not as {form[:20]!r}.")
        unknown = sorted(set(given) - set(FilterSerializer().fields))
        if unknown:
            raise InvalidInput(
                f"There is no filter {unknown[0][:40]!r}; known are {', '.join(FilterSerializer().fields)}."
            )
        chosen = AuditFilter(**self.valid_of(FilterSerializer, given))
        media, write = FORMS[form]
        response = StreamingHttpResponse(write(stream_events(chosen)), content_type=media)
        response["Content-Disposition"] = f'attachment; filename="audit.{form}"'
        return response


def _json_lines(rows: Iterator[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        yield json.dumps(row, ensure_ascii=False) + "\n"


def _csv(rows: Iterator[dict[str, Any]]) -> Iterator[str]:
    yield _csv_line(COLUMNS)
    for row in rows:
        yield _csv_line([_cell(row[name]) for name in COLUMNS])


def _csv_line(cells: Any) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"'{text}" if text.startswith(FORMULA) else text


FORMS = {
    "jsonl": ("application/x-ndjson; charset=utf-8", _json_lines),
    "csv": ("text/csv; charset=utf-8", _csv),
}
