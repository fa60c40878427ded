"""Qualified subject names: `:.context:subject` ↔ (context, subject). Pure."""

from __future__ import annotations

from dataclasses import dataclass

from registry.errors import InvalidName

DEFAULT_CONTEXT = "."
MAX_LENGTH = 1024
#: limits in UTF-8 bytes: a name is indexed together with its context, and an index row of PostgreSQL has at most 2,704
#: bytes
MAX_BYTES, MAX_CONTEXT_BYTES = 1900, 500
RESERVED = ("__GLOBAL", "__EMPTY")
GLOBAL_CONTEXT = ".__GLOBAL"


@dataclass(frozen=True)
class SubjectName:
    """A subject in a context; if a call allows it, an empty subject means the context itself."""

    context: str
    subject: str

    @property
    def qualified(self) -> str:
        """The name in the REST dialects: without a prefix in the default context."""
        return self.subject if self.context == DEFAULT_CONTEXT else f":{self.context}:{self.subject}"


def parse_subject(text: str, *, context: str = DEFAULT_CONTEXT) -> SubjectName:
    """Parse a name into context and subject, relative to the context of the URL; raises InvalidName.

    Source: Confluent's qualified subjects (`:.ctx:subject`; `:.:` is the default context).
    """
    _check_characters(text)
    if not text.startswith(":."):
        if text in RESERVED:
            raise InvalidName(f"The subject name {text!r} is reserved.", name=text)
        return SubjectName(context, _of_bytes(text, MAX_BYTES))
    context_name, colon, subject = text[1:].partition(":")
    if not colon:
        raise InvalidName(
            f"{text!r} starts like a context but has no ':' after it. Write :.context:subject.", name=text
        )
    if subject in RESERVED or context_name == GLOBAL_CONTEXT:
        raise InvalidName(f"The name {text!r} is reserved.", name=text)
    return SubjectName(check_context(context_name), _of_bytes(subject, MAX_BYTES))


def parse_scope(text: str, *, context: str = DEFAULT_CONTEXT) -> SubjectName | None:
    """Parse the scope of a config or mode: a subject, a context (empty subject), or None for the whole registry.

    `:.:` and `:.__GLOBAL:` mean the whole registry, and so does an empty text in the default context. Raises
    InvalidName.
    """
    if text in ("", f":{DEFAULT_CONTEXT}:", f":{GLOBAL_CONTEXT}:"):
        return None if text or context == DEFAULT_CONTEXT else SubjectName(context, "")
    return parse_subject(text, context=context)


def check_context(name: str) -> str:
    """Return the context's name with its dot; raises InvalidName. `ctx`, `.ctx` and `:.ctx:` are equivalent."""
    bare = name.strip(":") if name.startswith(":") else name
    dotted = bare if bare.startswith(".") else f".{bare}"
    if ":" in dotted or len(dotted) > 256:
        raise InvalidName(
            f"{name[:80]!r} is not a valid context name: it can't contain ':' and can have at most 255 characters.",
            name=name,
        )
    _check_characters(dotted)
    return _of_bytes(dotted, MAX_CONTEXT_BYTES)


def _check_characters(text: str) -> None:
    if len(text) > MAX_LENGTH:
        raise InvalidName(f"A name of {len(text)} characters is too long; {MAX_LENGTH} are allowed.", name=text[:80])
    for position, char in enumerate(text):
        if ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 or 0xD800 <= ord(char) < 0xE000:
            raise InvalidName(f"The name {text!r} has a control character at position {position + 1}.", name=text)


def _of_bytes(text: str, most: int) -> str:
    """Return the text if it isn't longer than that in UTF-8. Raises InvalidName."""
    count = len(text.encode())
    if count > most:
        raise InvalidName(f"A name of {count} bytes in UTF-8 is too long; {most} are allowed.", name=text[:80])
    return text
