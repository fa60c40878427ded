"""The product's own API: the board, subjects by environment, a page at a time."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.product.base import AT, ProductView, as_it_was
from registry.promotions.selectors.board import FILTERS, MAX_ROWS, MAX_TEXT, BoardCell, board_rows

#: of a cell what is of this database alone
_OURS: Final = ("row", "live")


class BoardSerializer(serializers.Serializer[Any]):
    """Which subjects: an empty filter means all. `after` is what the page before answered."""

    text = serializers.CharField(
        max_length=MAX_TEXT, required=False, default="", allow_blank=True, help_text="words of the name"
    )
    show = serializers.ChoiceField(choices=FILTERS, required=False, default="", allow_blank=True)
    after = serializers.CharField(max_length=1300, required=False, default="", allow_blank=True)
    limit = serializers.IntegerField(required=False, default=50, min_value=1, max_value=MAX_ROWS)


class Board(ProductView):
    """`/api/v1/board`."""

    @extend_schema(parameters=[BoardSerializer, AT], responses=None)
    @as_it_was
    def get(self, request: Request) -> Response:
        """Subjects by name with a cell for each environment: its newest version, what differs, what could go on."""
        chosen = self.filters_of(BoardSerializer, request.query_params.dict())
        found = board_rows(
            by=self.actor,
            text=chosen["text"],
            filters=[chosen["show"]] if chosen["show"] else [],
            after=chosen["after"],
            limit=chosen["limit"],
        )
        return Response(
            {
                "environments": [asdict(place) for place in found.places],
                "subjects": [
                    {"subject": row.subject.qualified, "cells": [_cell(cell) for cell in row.cells]}
                    for row in found.rows
                ],
                "total": found.total,
                "after": found.after,
            }
        )


def _cell(cell: BoardCell) -> dict[str, Any]:
    """A cell as JSON values; `versions` are its live ones."""
    kept = {name: value for name, value in asdict(cell).items() if name not in _OURS}
    return {**kept, "versions": [number for number, _ in cell.live]}
