"""What the product's API says of a body that can't be used: each problem at the place of its property."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework import serializers

from registry.api.product.base import ProductView, handle
from registry.errors import InvalidInput, SubjectNotFound

pytestmark = pytest.mark.requirement("CARD-4")


class PartSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()


class WholeSerializer(serializers.Serializer[Any]):
    side = serializers.ChoiceField(choices=["key", "value"], default="key")
    part = PartSerializer()
    parts = PartSerializer(many=True)
    numbers = serializers.ListField(child=serializers.IntegerField())


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"part": "a name"}, "part: Invalid data. Expected a dictionary, but got str."),
        ({"part": {}}, "part.name: This field is required."),
        ({"parts": [{"name": "a"}, {}]}, "parts[1].name: This field is required."),
        ({"side": "both"}, 'side: "both" is not a valid choice. It can be: key, value.'),
        ({"numbers": [1, "x"]}, "numbers[1]: A valid integer is required."),
    ],
)
def test_a_problem_names_its_place(changes: dict[str, Any], problem: str) -> None:
    body = {"part": {"name": "a"}, "parts": [], "numbers": [], **changes}
    with pytest.raises(InvalidInput) as refused:
        ProductView.valid_of(WholeSerializer, body, "body")
    assert refused.value.message == f"The body can't be used: {problem}"


def test_a_missing_subject_is_named_with_its_registry() -> None:
    response = handle(SubjectNotFound("Subject 'orders' not found.", registry="dev", subject="orders"), {})
    assert response is not None
    assert response.data["message"] == "Subject 'orders' not found in dev."
    assert response.data["details"] == {"subject": "orders"}
