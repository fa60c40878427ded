"""Texts of the formats that JSON Schema names, as long as a length limit needs them where the format allows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

#: texts of each format, an ordinary one first (JSON Schema 2020-12, Validation, section 7.3)
_SAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    "date-time": ("2020-01-31T12:30:00Z",),
    "date": ("2020-01-31",),
    "time": ("12:30:00Z",),
    "duration": ("P1D", "P1Y2M3DT4H5M6S"),
    "email": ("user@example.com", "a@b.co"),
    "idn-email": ("user@example.com", "a@b.co"),
    "hostname": ("example.com", "a"),
    "idn-hostname": ("example.com", "a"),
    "ipv4": ("192.0.2.1", "127.0.0.1"),
    "ipv6": ("2001:db8::1", "::1"),
    "uri": ("https://example.com/a", "a:b"),
    "uri-reference": ("https://example.com/a", "/a"),
    "iri": ("https://example.com/a", "a:b"),
    "iri-reference": ("https://example.com/a", "/a"),
    "uuid": ("0f8fad5b-d9cb-469f-a165-70867728950e",),
    "uri-template": ("https://example.com/{a}", "/{a}"),
    "json-pointer": ("/a", ""),
    "relative-json-pointer": ("1/a", "0"),
    "regex": ("^a$", "a"),
}
#: what stands around the characters that fill a text of the format up to a length, and that character
_AROUND: Final[Mapping[str, tuple[str, str, str]]] = {
    "date-time": ("2020-01-31T12:30:00.", "1", "Z"),
    "time": ("12:30:00.", "1", "Z"),
    "email": ("", "a", "@example.com"),
    "idn-email": ("", "a", "@example.com"),
    "hostname": ("", "a", ".example.com"),
    "idn-hostname": ("", "a", ".example.com"),
    "uri": ("https://example.com/", "a", ""),
    "uri-reference": ("/", "a", ""),
    "iri": ("https://example.com/", "a", ""),
    "iri-reference": ("/", "a", ""),
    "uri-template": ("/", "a", ""),
    "json-pointer": ("/", "a", ""),
    "relative-json-pointer": ("1/", "a", ""),
    "regex": ("", "a", ""),
}


def format_samples(format: str, lengths: Iterator[int]) -> Iterator[str]:
    """Texts of a format, ordinary ones and then those of the lengths; none for a format that isn't known."""
    yield from _SAMPLES.get(format, ())
    around = _AROUND.get(format)
    if around is not None:
        before, filling, after = around
        for length in lengths:
            count = length - len(before) - len(after)
            if count > 0:
                yield before + filling * count + after
