"""What the views of the product's own API share."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.views import APIView

from registry.access.roles import Actor
from registry.errors import InvalidInput


class ProductView(APIView):
    """Knows who calls; `self.actor`."""

    door = "product"

    @property
    def actor(self) -> Actor:
        """Who calls."""
        return self.request.user  # type: ignore[return-value]

    def valid(self, serializer: type[serializers.Serializer[Any]]) -> dict[str, Any]:
        """The body's values. Raises InvalidInput, which names each property that is wrong."""
        return self.valid_of(serializer, self.request.data, "body")

    @staticmethod
    def valid_of(serializer: type[serializers.Serializer[Any]], given: Any, what: str = "query") -> dict[str, Any]:
        """The values of a body or query. Raises InvalidInput, which names each property that is wrong."""
        bound = serializer(data=given)
        if not bound.is_valid():
            places = "; ".join(f"{name}: {' '.join(map(str, problems))}" for name, problems in bound.errors.items())
            raise InvalidInput(f"The {what} can't be used: {places}", problems=bound.errors)
        return dict(bound.validated_data)
