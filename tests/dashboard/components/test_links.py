"""Addresses of subjects, whatever their name."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

import pytest
from django.test import override_settings

from dashboard.components.links import subject_url

pytestmark = pytest.mark.requirement("CARD-4")


@pytest.fixture(autouse=True)
def _addresses() -> object:
    with override_settings(ROOT_URLCONF="tests.site.urls"):
        yield


@pytest.mark.parametrize(
    "subject",
    ["orders-value", "a/versions/1", "100%", "a b?c#d", 'q"<>&\'', "طلبات", ":.ctx:name", "..a", "a\\b", "\u202e", "a" * 10_000, "%2F", "+"],
)  # fmt: skip
def test_a_name_is_one_segment_and_comes_back(subject: str) -> None:
    path = urlsplit(subject_url("dev", subject, "compare", from_=3, to=4)).path
    before, segment, page = path.rsplit("/", 2)
    assert before == "/ui/registries/dev/subjects"
    assert unquote(segment) == subject
    assert page == "compare"
    assert all(char not in segment for char in '/?#"<> \\')


@pytest.mark.parametrize("subject", ["", ".", ".."])
def test_names_that_browsers_fold_away_are_qualified(subject: str) -> None:
    segment = urlsplit(subject_url("dev", subject)).path.split("/")[-2]
    assert unquote(segment) == f":.:{subject}"


def test_query() -> None:
    assert subject_url("dev", "s", "compare", from_=3, to=4).endswith("/s/compare?from=3&to=4")
    assert subject_url("dev", "s", version=None).endswith("/s/")
    assert subject_url("a/b", "s").startswith("/ui/registries/a%2Fb/subjects/")


def test_an_unknown_page_is_refused() -> None:
    with pytest.raises(ValueError, match="settings"):
        subject_url("dev", "s", "settings")
