"""The product's own API: the glossary of business terms, and the terms of a subject's fields."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.product.base import ProductView
from registry.api.product.description import many, shape
from registry.api.product.lifecycle import SubjectView
from registry.subjects.lifecycle import glossary
from registry.subjects.lifecycle.notes import NONE
from registry.subjects.models.glossary import MAX_MEANING, MAX_OWNER, MAX_TERM
from registry.subjects.models.registries import MAX_FIELD

LISTED: Final = shape("ListedTerm", glossary.TermInfo, without=("id",), fields=int)
TERM: Final = shape("BusinessTerm", glossary.TermInfo, without=("id",), fields=many(glossary.TermField))
FIELD_TERM: Final = shape("FieldTerm", path=str, term=str)
IF_MATCH: Final = OpenApiParameter("If-Match", str, OpenApiParameter.HEADER)


class TermFilterSerializer(serializers.Serializer[Any]):
    """Words that the name, the meaning or the owner has."""

    text = serializers.CharField(required=False, default="", allow_blank=True, max_length=200)


class TermSerializer(serializers.Serializer[Any]):
    """The meaning in Markdown and the owner; `name` renames the term."""

    name = serializers.CharField(required=False, max_length=2 * MAX_TERM)
    doc = serializers.CharField(max_length=2 * MAX_MEANING, trim_whitespace=False)
    owner = serializers.CharField(required=False, default="", allow_blank=True, max_length=2 * MAX_OWNER)


class FieldTermSerializer(serializers.Serializer[Any]):
    """A field and its term; an empty term removes it."""

    path = serializers.CharField(max_length=MAX_FIELD)
    term = serializers.CharField(allow_blank=True, max_length=2 * MAX_TERM)


class Terms(ProductView):
    """`/api/v1/terms`."""

    @extend_schema(
        operation_id="terms_list",
        parameters=[TermFilterSerializer],
        responses=shape("TermPage", terms=many(LISTED), total=int),
    )
    def get(self, request: Request) -> Response:
        """List the business terms by name, each with its number of fields."""
        chosen = self.filters_of(TermFilterSerializer, request.query_params.dict())
        terms, total = glossary.list_terms(by=self.actor, **chosen)
        return Response({"terms": [_body(term) | {"fields": number} for term, number in terms], "total": total})


class TermOne(ProductView):
    """`/api/v1/terms/{name}`."""

    @extend_schema(responses=TERM)
    def get(self, request: Request, name: str) -> Response:
        """Get a term with the fields that mean it. Send the ETag with `PUT`."""
        term = glossary.get_term(name, by=self.actor)
        fields = [asdict(field) for field in glossary.fields_of_term(term, by=self.actor)]
        return _response(term, {"fields": fields})

    @extend_schema(
        request=TermSerializer,
        responses=shape("ChangedTerm", glossary.TermInfo, without=("id",)),
        parameters=[IF_MATCH],
    )
    def put(self, request: Request, name: str) -> Response:
        """Add or replace a term.

        `If-Match` has the ETag of the state that was read, or `*` for any; without it the term must be new. If it
        changed since, the response is 412.
        """
        values = self.valid(TermSerializer)
        state = request.headers.get("If-Match", "").strip().removeprefix("W/").strip('"') or NONE
        former = name if "name" in values else ""
        return _response(
            glossary.set_term(by=self.actor, expected=state, former=former, **{"name": name, **values}), {}
        )

    def delete(self, request: Request, name: str) -> Response:
        """Remove a term from the glossary and from its fields."""
        glossary.remove_term(name=name, by=self.actor)
        return Response(status=204)


class FieldTerms(SubjectView):
    """`/api/v1/registries/{registry}/subjects/{subject}/terms`."""

    @extend_schema(responses=many(FIELD_TERM))
    def get(self, request: Request, registry: str, subject: str) -> Response:
        """List the fields of a subject that mean a business term."""
        terms = glossary.terms_of(*self.registry_and_subject(registry, subject))
        return Response([{"path": path, "term": term} for path, term in terms.items()])

    @extend_schema(request=FieldTermSerializer, responses=FIELD_TERM)
    def put(self, request: Request, registry: str, subject: str) -> Response:
        """Say which term a field means; an empty term removes it."""
        _, name = self.registry_and_subject(registry, subject)
        values = self.valid(FieldTermSerializer)
        glossary.set_field_term(registry=registry, subject=name, by=self.actor, **values)
        return Response(values)


def _body(term: glossary.TermInfo) -> dict[str, Any]:
    return {name: value for name, value in asdict(term).items() if name != "id"}


def _response(term: glossary.TermInfo, more: dict[str, Any]) -> Response:
    return Response({**_body(term), **more}, headers={"ETag": f'"{term.state}"'})
