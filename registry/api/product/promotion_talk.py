"""The product's own API: what is said of a promotion request: labels, acknowledgements and discussions."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.product.base import ProductView
from registry.api.product.promotion_answers import answer_of, readable
from registry.api.product.promotion_bodies import (
    AcknowledgementSerializer,
    CommentSerializer,
    HurtSerializer,
    LabelsSerializer,
    ThreadSerializer,
)
from registry.promotions import services


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
