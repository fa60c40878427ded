"""Names in this dialect's addresses, and what they are in the registry. Pure."""

from __future__ import annotations

import re

from registry.errors import InvalidName
from registry.subjects.names import DEFAULT_CONTEXT, SubjectName, check_context

#: what this dialect calls the context `.`, whose own name can't stand alone in an address
DEFAULT = "default"
_NAME = re.compile(r"[A-Za-z0-9.\-_+%~]{1,255}")


def parse_context(name: str) -> str:
    """The registry's name of a context (`lab` → `.lab`). Raises InvalidName."""
    bare = name.removeprefix(".")
    if name in (DEFAULT, DEFAULT_CONTEXT):
        return DEFAULT_CONTEXT
    if not _NAME.fullmatch(bare):
        raise InvalidName(_refusal("context", name), name=name[:80], field="context")
    return check_context(f".{bare}")


def context_name(context: str) -> str:
    """The name in an address (`.lab` → `lab`), the reverse of `parse_context`."""
    if context == DEFAULT_CONTEXT:
        return DEFAULT
    bare = context.removeprefix(".")
    return context if bare == DEFAULT else bare


def subject_label(subject: SubjectName, context: str) -> str:
    """The subject's name in answers below a context's address: bare there, qualified when it lies elsewhere."""
    return subject.subject if subject.context == context else subject.qualified


def check_subject(subject: SubjectName) -> SubjectName:
    """The subject, if this dialect may make one of that name. Raises InvalidName.

    Other dialects allow more; what they made is read and deleted here under its name.
    """
    if not _NAME.fullmatch(subject.subject):
        raise InvalidName(_refusal("subject", subject.subject), name=subject.subject[:80], field="subject")
    return subject


def _refusal(kind: str, name: str) -> str:
    return (
        f"{name[:80]!r} is not a {kind} name: it takes 1 to 255 characters, letters, digits and . - _ + % ~"
        f" ({len(name)} were given)."
    )
