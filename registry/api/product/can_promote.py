"""The product's own API: whether a subject could go from one environment to another, as JSON or as a badge."""

from __future__ import annotations

from html import escape
from typing import Any, Final

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.product.base import ProductView
from registry.promotions.can_promote import NEEDS_APPROVAL, NO, YES, Answer, can_promote
from registry.subjects.names import parse_subject

BADGE: Final = "badge"
#: answer → colour of the badge; each is readable under white letters
_COLOURS: Final = {YES: "#1a7f37", NEEDS_APPROVAL: "#7d4e00", NO: "#b42318"}
_LETTER: Final = 6.6
_MAX_LABEL: Final = 60
_PADDING: Final = 12


class AskedSerializer(serializers.Serializer[Any]):
    """What is asked, besides `from`, which is no name of Python's."""

    subject = serializers.CharField(max_length=1300)
    to = serializers.CharField(max_length=255)
    version = serializers.CharField(required=False, default="latest", max_length=12)
    format = serializers.ChoiceField(choices=["json", BADGE], required=False, default="json")

    def get_fields(self) -> dict[str, Any]:
        """The fields, with the one whose name is a word of Python."""
        return {**super().get_fields(), "from": serializers.CharField(max_length=255)}


class ReasonSerializer(serializers.Serializer[Any]):
    """A reason: what it is about, in words, and what would change it."""

    code = serializers.CharField()
    sentence = serializers.CharField()
    cure = serializers.CharField(allow_blank=True)


class AnswerSerializer(serializers.Serializer[Any]):
    """The answer; `plan_hash` is of the plan that a request would show."""

    subject = serializers.CharField()
    version = serializers.IntegerField()
    source = serializers.CharField()  # type: ignore[assignment]  # a field of the body, not DRF's
    target = serializers.CharField()
    verdict = serializers.ChoiceField(choices=[YES, NEEDS_APPROVAL, NO])
    reasons = ReasonSerializer(many=True)
    plan_hash = serializers.CharField(allow_blank=True)


class CanPromote(ProductView):
    """`/api/v1/can-promote`."""

    @extend_schema(
        parameters=[AskedSerializer],
        responses={200: OpenApiResponse(AnswerSerializer, description="the answer; with format=badge an SVG image")},
    )
    def get(self, request: Request) -> Response | HttpResponse:
        """Whether the version (default: the latest) could be promoted: yes, needs approval, or no, with reasons."""
        asked = self.valid_of(AskedSerializer, request.query_params.dict())
        answer = can_promote(
            subject=parse_subject(asked["subject"]),
            source=asked["from"],
            target=asked["to"],
            version=asked["version"],
            by=self.actor,
        )
        if asked["format"] != BADGE:
            return Response(answer.to_dict())
        return HttpResponse(
            badge(answer),
            content_type="image/svg+xml; charset=utf-8",
            headers={
                "Cache-Control": "no-cache",
                "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
            },
        )


def badge(answer: Answer) -> str:
    """The answer as an image: which version goes where, and the verdict in words, not by colour alone."""
    whole = f"{answer.subject} v{answer.version} → {answer.target}"
    label = whole if len(whole) <= _MAX_LABEL else f"{whole[: _MAX_LABEL - 1]}…"
    left, right = _width(label), _width(answer.verdict)
    said = escape(f"{whole}: {answer.verdict}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" aria-label="{said}">'
        f"<title>{said}</title>"
        f'<rect width="{left}" height="20" fill="#3d444d"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{_COLOURS[answer.verdict]}"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">'
        f'<text x="{left / 2}" y="14">{escape(label)}</text>'
        f'<text x="{left + right / 2}" y="14">{escape(answer.verdict)}</text>'
        "</g></svg>"
    )


def _width(text: str) -> int:
    return int(len(text) * _LETTER) + _PADDING
