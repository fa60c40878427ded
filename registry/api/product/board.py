"""The product's own API: the board, drafts of schemas, and whether a subject could be promoted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from typing import Any, Final

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access.roles import Actor
from registry.api.product.base import AT, ProductView, SchemaTextField, VersionField, WholeNumberField, as_it_was
from registry.api.product.compatibility import ReferenceSerializer
from registry.api.product.description import body_of, many, shape
from registry.api.product.promotion_serializers import again_field, number_field, proposed, text_field
from registry.errors import NotSignedIn
from registry.formats import DEFAULT_FORMAT
from registry.promotions import selectors, services
from registry.promotions.board.readiness import NEEDS_APPROVAL, NO, YES, Readiness, can_promote
from registry.promotions.board.rows import FILTERS, MAX_ROWS, MAX_TEXT, BoardCell, BoardPlace, board_rows
from registry.promotions.hook_points import JobRelease
from registry.promotions.requests.drafts import MAX_ORIGIN, require_author
from registry.promotions.requests.submission import MAX_REFERENCES
from registry.subjects.versions.qualified_names import parse_subject

#: what a cell has for this database alone
_OURS: Final = ("row", "live")
CELL: Final = shape("BoardCell", BoardCell, without=_OURS, versions=many(int))
ROW: Final = shape("BoardRow", subject=str, cells=many(CELL))


class BoardSerializer(serializers.Serializer[Any]):
    """Filters; an empty one matches everything. `after` is the cursor from the previous page."""

    text = serializers.CharField(
        max_length=MAX_TEXT, required=False, default="", allow_blank=True, help_text="words in the name"
    )
    show = serializers.ChoiceField(choices=FILTERS, required=False, default="", allow_blank=True)
    after = serializers.CharField(max_length=1300, required=False, default="", allow_blank=True)
    limit = WholeNumberField(required=False, default=50, min_value=1, max_value=MAX_ROWS)


class Board(ProductView):
    """`/api/v1/board`."""

    @extend_schema(
        parameters=[BoardSerializer, AT],
        responses=shape("BoardPage", environments=many(BoardPlace), subjects=many(ROW), total=int, after=str),
    )
    @as_it_was
    def get(self, request: Request) -> Response:
        """List subjects with a cell for each environment: its newest version, how it differs, what could be promoted."""
        chosen = self.filters_of(BoardSerializer, request.query_params.dict())
        shown = chosen.pop("show")
        board = board_rows(by=self.actor, filters=[shown] if shown else [], **chosen)
        return Response(
            {
                "environments": [asdict(environment) for environment in board.environments],
                "subjects": [
                    {
                        "subject": row.subject.qualified,
                        "cells": [
                            body_of(CELL, cell, versions=[number for number, _ in cell.live]) for cell in row.cells
                        ],
                    }
                    for row in board.rows
                ],
                "total": board.total,
                "after": board.after,
            }
        )


BADGE: Final = "badge"
MAX_RELEASES: Final = 50
#: answer → colour of the badge; each is readable under white letters
_COLOURS: Final = {YES: "#1a7f37", NEEDS_APPROVAL: "#7d4e00", NO: "#b42318"}
_LETTER: Final = 6.6
_MAX_LABEL: Final = 60
_PADDING: Final = 12


class PromotedVersionSerializer(serializers.Serializer[Any]):
    """The version, and the environments to promote it from and to."""

    subject = serializers.CharField(max_length=1300)
    to = serializers.CharField(max_length=255)
    version = VersionField(required=False, default="latest")

    def get_fields(self) -> dict[str, Any]:
        """The fields, with the one whose name is a word of Python."""
        return {**super().get_fields(), "from": serializers.CharField(max_length=255)}


class CanPromoteSerializer(PromotedVersionSerializer):
    """The version and its environments, and the form of the answer."""

    format = serializers.ChoiceField(choices=["json", BADGE], required=False, default="json")


class JobReleaseSerializer(serializers.Serializer[Any]):
    """A streaming query of the target that is released too.

    `query` is its checkpoint's folder name or path, or Spark's id; `description` is what `schemadesk_spark` says of its
    next release, or a plan of its state.
    """

    query = serializers.CharField(max_length=4096)
    description = serializers.JSONField()


class CanReleaseSerializer(PromotedVersionSerializer):
    """The version, its environments, and the streaming queries that are released with it."""

    queries = serializers.ListField(child=JobReleaseSerializer(), max_length=MAX_RELEASES, allow_empty=False)


class CanPromote(ProductView):
    """`/api/v1/can-promote`."""

    @extend_schema(parameters=[CanPromoteSerializer], responses={200: Readiness, (200, "image/svg+xml"): str})
    def get(self, request: Request) -> Response | HttpResponse:
        """Check whether a version (by default the latest) could be promoted: yes, needs approval, or no, with reasons.

        `format=badge` gives an SVG image.
        """
        parameters = self.filters_of(CanPromoteSerializer, request.query_params.dict())
        readiness = self._readiness(parameters)
        if parameters["format"] != BADGE:
            return Response(readiness.to_dict())
        return HttpResponse(
            badge(readiness),
            content_type="image/svg+xml; charset=utf-8",
            headers={
                "Cache-Control": "no-cache",
                "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
            },
        )

    @extend_schema(request=CanReleaseSerializer, responses=Readiness)
    def post(self, request: Request) -> Response:
        """Check the same together with the next releases of streaming queries: also whether each can be restarted.

        Nothing is stored or started. State that isn't checked is never a yes.
        """
        values = self.valid(CanReleaseSerializer)
        releases = [JobRelease(**release) for release in values["queries"]]
        return Response(self._readiness(values, releases).to_dict())

    def _readiness(self, values: dict[str, Any], releases: Sequence[JobRelease] = ()) -> Readiness:
        return can_promote(
            subject=parse_subject(values["subject"]),
            source=values["from"],
            target=values["to"],
            version=values["version"],
            by=self.actor,
            releases=releases,
        )


def badge(readiness: Readiness) -> str:
    """The answer as an image: which version goes where, and the verdict in words, not by colour alone."""
    whole = f"{readiness.subject} v{readiness.version} → {readiness.target}"
    label = whole if len(whole) <= _MAX_LABEL else f"{whole[: _MAX_LABEL - 1]}…"
    left, right = _width(label), _width(readiness.verdict)
    title = escape(f"{whole}: {readiness.verdict}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" aria-label="{title}">'
        f"<title>{title}</title>"
        f'<rect width="{left}" height="20" fill="#3d444d"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{_COLOURS[readiness.verdict]}"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">'
        f'<text x="{left / 2}" y="14">{escape(label)}</text>'
        f'<text x="{left + right / 2}" y="14">{escape(readiness.verdict)}</text>'
        "</g></svg>"
    )


def _width(text: str) -> int:
    return int(len(text) * _LETTER) + _PADDING


class DraftSerializer(serializers.Serializer[Any]):
    """An unfinished schema. It replaces the caller's earlier draft for the subject.

    `reason` becomes the request's reason, `finding` is the number of the drift finding that it addresses, and `origin`
    is free text.
    `seen` is the `changed_at` of the draft that the caller read, empty if there was none: if it changed since, the
    response is 409.
    """

    registry = serializers.CharField(max_length=255, required=False, default="", allow_blank=True)
    subject = serializers.CharField(max_length=1280)
    schema = SchemaTextField(allow_blank=True)
    schemaType = serializers.CharField(max_length=16, required=False, default=DEFAULT_FORMAT)  # noqa: N815 - the API's name
    references = serializers.ListField(child=ReferenceSerializer(), required=False, max_length=MAX_REFERENCES)
    reason = text_field()
    origin = serializers.CharField(required=False, default="", allow_blank=True, max_length=MAX_ORIGIN)
    seen = serializers.CharField(required=False, default=None, allow_null=True, allow_blank=True, max_length=40)
    finding = number_field()
    again_of = again_field()


class Drafts(ProductView):
    """`/api/v1/drafts`."""

    @extend_schema(responses=many(selectors.DraftInfo))
    def get(self, request: Request) -> Response:
        """List the caller's drafts without their schemas, most recently changed first."""
        return Response([asdict(info) for info in selectors.list_drafts(_author(self.actor))])

    @extend_schema(request=DraftSerializer, responses={201: selectors.DraftInfo})
    def post(self, request: Request) -> Response:
        """Save a draft. It isn't parsed, so the schema may be incomplete."""
        values = self.valid(DraftSerializer)
        number = services.save_draft(state_read=values.pop("seen"), by=self.actor, **proposed(values))
        return Response(asdict(selectors.get_draft(number, user_id=_author(self.actor))), status=201)


class DraftOne(ProductView):
    """`/api/v1/drafts/{id}`."""

    @extend_schema(responses=selectors.DraftInfo)
    def get(self, request: Request, draft_id: str) -> Response:
        """Get one of the caller's drafts."""
        return Response(asdict(selectors.get_draft(int(draft_id), user_id=_author(self.actor))))

    def delete(self, request: Request, draft_id: str) -> Response:
        """Delete a draft."""
        services.delete_draft(draft_id=int(draft_id), by=self.actor)
        return Response(status=204)


def _author(by: Actor) -> int:
    """Who asks for their own. Raises NotSignedIn, NotAllowed."""
    require_author(by)
    if by.user_id is None:
        raise NotSignedIn("Sign in to see your drafts.")
    return by.user_id
