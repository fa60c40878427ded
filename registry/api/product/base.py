"""The product's own API: base of its views, fields of its bodies, and errors as `{"error", "message", "details"}`."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import wraps
from http import HTTPStatus
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter
from rest_framework import exceptions, serializers
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.settings import api_settings
from rest_framework.views import APIView, exception_handler

from registry import errors
from registry.access.roles import Actor
from registry.api.outage import set_retry_after, unavailable_error
from registry.api.request_reading import number_words
from registry.audit.time_travel import as_of, moment_of
from registry.errors import InvalidInput
from registry.formats import FORMATS
from registry.subjects.versions.parsed_schemas import refuse_too_large


def refusal(status: int, message: str) -> dict[str, Any]:
    """The body of a refusal, such as 413 for a body that is too long; its name is the status's phrase."""
    name = "".join(word.capitalize() for word in HTTPStatus(status).phrase.replace("-", " ").split())
    return {"error": name, "message": message, "details": {}}


logger = logging.getLogger(__name__)

#: the nearest class in an error's ancestry decides
STATUSES: dict[type[Exception], int] = {
    errors.InvalidInput: 422,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.NoteChanged: 412,
    errors.PlanHashRequired: 428,
    errors.NotSignedIn: 401,
    errors.Forbidden: 403,
    errors.Unavailable: 503,
}


def status_of(error: Exception) -> int | None:
    """The HTTP status of a domain error, or None for any other exception."""
    return next((STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES), None)


def handle(error: Exception, context: dict[str, Any]) -> Response | None:
    """The answer for any exception; what isn't foreseen is logged and answered 500 without details."""
    if isinstance(error, exceptions.APIException):
        response = exception_handler(error, context)
        if response is not None:
            response.data = refusal(error.status_code, str(error.detail))
        return response
    if isinstance(error, RequestDataTooBig):
        most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        return Response(refusal(413, f"A request's body may have up to {most} bytes."), status=413)
    error = unavailable_error(error) or error
    status = status_of(error)
    if status is None or not isinstance(error, errors.SchemadeskError):
        logger.error("unforeseen error", exc_info=error)
        return Response({"error": "InternalError", "message": "Internal Server Error"}, status=500)
    message = error.placed
    if isinstance(error, errors.SubjectNotFound) and error.registry:
        message = f"{message.removesuffix('.')} in {error.registry}."
    body: dict[str, Any] = {"error": error.public_name, "message": message, "details": error.details}
    if isinstance(error, errors.InvalidSchema) and error.line is not None:
        body |= {"line": error.line, "column": error.column}
    return set_retry_after(Response(body, status=status), error)


#: in the description of a read that also answers as of a moment
AT: Final = OpenApiParameter(
    "at",
    str,
    description="A time, such as 2026-10-01T12:00Z. The response shows the state at that time.",
    required=False,
)
Read = Callable[..., Response]


def as_it_was(read: Read) -> Read:
    """Marks the `get` of a view that answers as of the moment in `?at=`, by today's rights."""

    @wraps(read)
    def get(self: ProductView, request: Request, *args: Any, **named: Any) -> Response:
        query = request.query_params.copy()
        text = query.pop("at", [""])[-1]
        if not text:
            return read(self, request, *args, **named)
        request._request.GET = query  # type: ignore[assignment]  # what the view reads of it has no such name
        request.user = replace(self.actor, past=f"This is how it was at {text[:40]}: nothing can be changed there.")  # type: ignore[assignment]
        with as_of(moment_of(text)):
            return read(self, request, *args, **named)

    get.answers_as_it_was = True  # type: ignore[attr-defined]
    return get


class AsciiRenderer(JSONRenderer):
    """JSON with an escape for each letter that isn't ASCII."""

    ensure_ascii = True


class ProductRenderer(JSONRenderer):
    """JSON in UTF-8; a text with half of a surrogate pair, which UTF-8 can't hold, makes it ASCII with escapes."""

    def render(self, data: Any, *args: Any, **named: Any) -> Any:
        """The answer's bytes."""
        try:
            return super().render(data, *args, **named)
        except UnicodeEncodeError:
            return AsciiRenderer().render(data, *args, **named)


class ProductView(APIView):
    """Knows who calls; `self.actor`."""

    channel = "product"
    renderer_classes: Sequence[type[BaseRenderer]] = (ProductRenderer,)

    def initial(self, request: Request, *args: Any, **named: Any) -> None:
        """As Django REST framework's. Raises InvalidInput where what is asked for as of a moment has no past."""
        super().initial(request, *args, **named)
        is_marked = getattr(getattr(self, "get", None), "answers_as_it_was", False)
        if request.method == "GET" and "at" in request.query_params and not is_marked:
            raise InvalidInput("This has no history. Leave out `at`.")

    @property
    def actor(self) -> Actor:
        """Who calls."""
        return self.request.user  # type: ignore[return-value]

    def valid(self, serializer: type[serializers.Serializer[Any]]) -> dict[str, Any]:
        """The body's values.

        Raises ParseError for an unknown property, InvalidInput, which names each that is wrong.
        """
        _refuse_unknown(serializer(), self.request.data)
        return self.valid_of(serializer, self.request.data, "body")

    @staticmethod
    def valid_of(serializer: type[serializers.Serializer[Any]], data: Any, what: str = "query") -> dict[str, Any]:
        """The values of a body or query. Raises InvalidInput, which names each property that is wrong."""
        bound = serializer(data=data)
        if not bound.is_valid():
            listed = {
                name: [*messages, *choices] if (choices := _choices(bound.fields.get(name))) else messages
                for name, messages in bound.errors.items()
            }
            problems = "; ".join(_problems(listed))
            raise InvalidInput(f"The {what} can't be used: {problems}", problems=bound.errors)
        return dict(bound.validated_data)

    @classmethod
    def filters_of(cls, serializer: type[serializers.Serializer[Any]], parameters: Mapping[str, str]) -> dict[str, Any]:
        """The values of a query that filters. Raises InvalidInput, for an unknown parameter too."""
        fields = serializer().fields
        unknown = sorted(set(parameters) - set(fields))
        if unknown:
            raise InvalidInput(f"There is no parameter {unknown[0][:40]!r}; the known ones are {', '.join(fields)}.")
        return cls.valid_of(serializer, parameters)


def _refuse_unknown(field: Any, value: Any, property_path: str = "") -> None:
    """Raise ParseError for a property that no serializer reads: a misspelt one would be ignored without a word."""
    if isinstance(value, Mapping) and isinstance(field, serializers.Serializer):
        for name, inner in value.items():
            path = _inside(property_path, name)
            if name not in field.fields:
                raise exceptions.ParseError(
                    f"There is no property {path[-80:]!r}; the known ones are {', '.join(field.fields)}."
                )
            _refuse_unknown(field.fields[name], inner, path)
    elif isinstance(value, list) and (child := getattr(field, "child", None)):
        for number, inner in enumerate(value):
            _refuse_unknown(child, inner, f"{property_path}[{number}]")


def _choices(field: Any) -> list[str]:
    """The allowed values of a field that has only some, as a sentence."""
    values = [str(value) for value in getattr(field, "choices", ()) if value]
    if isinstance(field, serializers.BooleanField):
        values = ["true", "false"]
    return [f"It can be: {', '.join(values)}."] if values else []


def _problems(errors: Any, property_path: str = "") -> Iterator[str]:
    """What serializers say, each problem with the place of its property: `items[0].subject: This field is required.`"""
    if isinstance(errors, Mapping):
        for name, inner in errors.items():
            yield from _problems(inner, _inside(property_path, name))
    elif errors and all(isinstance(item, str) for item in errors):
        yield f"{property_path}: {' '.join(errors)}" if property_path else " ".join(errors)
    else:
        for number, inner in enumerate(errors):
            yield from _problems(inner, f"{property_path}[{number}]")


def _inside(property_path: str, name: str | int) -> str:
    if name == api_settings.NON_FIELD_ERRORS_KEY:
        return property_path
    if isinstance(name, int):
        return f"{property_path}[{name}]"
    return f"{property_path}.{name}" if property_path else name


_MAX_NUMBER: Final = 2**63 - 1  # what PostgreSQL's bigint takes
_MAX_VERSION: Final = 2**31 - 1


class FormatField(serializers.ChoiceField):
    """One of the registered formats, as they are when a form is made."""

    def __init__(self, **options: Any) -> None:
        super().__init__(choices=sorted(FORMATS), **options)


class ZonedTimeField(serializers.DateTimeField):
    """A time with its zone; one without is refused, because nobody knows whose zone it means."""

    def enforce_timezone(self, value: datetime) -> datetime:
        """The time. Raises ValidationError."""
        if timezone.is_naive(value):
            raise serializers.ValidationError("Give the time with its zone, such as 2027-01-31T22:00:00Z.")
        return super().enforce_timezone(value)


class WholeNumberField(serializers.IntegerField):
    """A whole number that the database can hold; what isn't one is named, and no truth value passes for one."""

    def to_internal_value(self, data: Any) -> int:
        """The number. Raises ValidationError."""
        if isinstance(data, bool) or (isinstance(data, float) and not (math.isfinite(data) and data.is_integer())):
            raise serializers.ValidationError(f"This is {number_words(data)}; it must be a whole number.")
        if isinstance(data, str) and len(data) <= self.MAX_STRING_LENGTH and not _is_whole(data):
            raise serializers.ValidationError(f"This is {data[:40]!r}; it must be a whole number.")
        number: int = super().to_internal_value(data)
        if abs(number) > _MAX_NUMBER:
            raise serializers.ValidationError(f"This is {number_words(number)}; it must be at most 2^63-1.")
        return number


def _is_whole(text: str) -> bool:
    digits = text.strip().removeprefix("-").removeprefix("+")
    return digits.isascii() and digits.isdigit()


class VersionField(serializers.CharField):
    """A version's number, as a number or as text, or `latest`; the service knows which versions there are."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"max_length": 12, **options})

    def to_internal_value(self, data: Any) -> str:
        """The text. Raises ValidationError."""
        is_number = isinstance(data, bool | float | int)
        if is_number and (isinstance(data, bool | float) or abs(data) > _MAX_VERSION):
            raise serializers.ValidationError(
                f"This is {number_words(data)}; it must be a version's number, at most 2^31-1, or latest."
            )
        text: str = super().to_internal_value(data)
        return text


class SchemaTextField(serializers.CharField):
    """A schema's text, untrimmed; its size is measured before anything looks at its letters."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"trim_whitespace": False, **options})

    def to_internal_value(self, data: Any) -> str:
        """The text. Raises SchemaTooLarge, ValidationError."""
        if isinstance(data, str):
            refuse_too_large(data)
        text: str = super().to_internal_value(data)
        return text
