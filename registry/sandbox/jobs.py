"""What a child can be asked: verbs of the engines, over schemas given as text.

A verb has the arguments of the engine's method of that name, with a `Source` for each schema.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from registry.errors import InvalidInput, InvalidSchema, SchemaTooCostly
from registry.formats import FORMATS, assessment, compatibility, read_modify_write
from registry.formats.base import ParsedSchema
from registry.formats.policies import POLICIES, PolicyReport
from registry.formats.schema_format import SchemaFormat
from registry.sandbox.cache import WeighedCache
from registry.sandbox.codec import Source

#: characters of text whose parsed forms a child keeps
_KEPT_CHARACTERS: Final = 4_000_000

#: methods of an engine; the first schema among the arguments names the format
ENGINE_VERBS: Final = frozenset(
    {
        "normalize",
        "diff",
        "outline",
        "self_contained",
        "judge",
        "incompatibilities",
        "truth",
        "witness",
        "example",
        "resolve",
        "repair",
        "accept_rename",
        "position",
        "tags",
        "with_tags",
        "has_top_level_field",
        "lint",
        "decode_body",
    }
)


def _assess(
    engine: SchemaFormat, new: ParsedSchema, history: compatibility.History, level: str, source: Source, **options: Any
) -> assessment.Assessment:
    """`source` is the new schema once more, unparsed: edits of it are read with its references."""
    return assessment.assess(
        engine, new, history, level, parse=lambda text: engine.parse(text, source.references), **options
    )


def _check_policy(engine: SchemaFormat, new: ParsedSchema, history: compatibility.History, policy: str) -> PolicyReport:
    return POLICIES[policy].check(new, history)


#: functions of an engine over several schemas
CHECK_VERBS: Final[Mapping[str, Callable[..., Any]]] = {
    "check": compatibility.check,
    "check_all_levels": compatibility.check_all_levels,
    "assess": _assess,
    "check_policy": _check_policy,
    "simulate_read_modify_write": read_modify_write.simulate_read_modify_write,
    "find_resets": read_modify_write.find_resets,
}

_parsed: Final = WeighedCache[ParsedSchema](_KEPT_CHARACTERS, lambda parsed: len(parsed.text))


def perform(verb: str, arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """The answer of a verb. Raises the engine's errors, LookupError for a verb or a format that doesn't exist."""
    if verb == "parse":
        (source,) = arguments
        return _parse(source, **options)
    sources = list(_sources(arguments))
    is_lenient = bool(options.get("lenient"))
    options = {name: value for name, value in options.items() if name != "lenient"}
    engine = FORMATS[sources[0].schema_type]
    engine = engine.lenient if is_lenient else engine
    ready = [_ready(argument) for argument in arguments]
    if verb == "assess":
        ready.append(sources[0])
    if verb in CHECK_VERBS:
        return CHECK_VERBS[verb](engine, *ready, **options)
    if verb not in {*ENGINE_VERBS, *engine.forms.values()}:
        raise LookupError(f"no verb {verb!r}")
    return getattr(engine, verb)(*ready, **options)


def forget() -> None:
    """Frees what is kept between jobs."""
    _parsed.clear()


def refusal_of(error: Exception) -> InvalidInput | None:
    """The error that the caller is to see, None for one that no engine documents."""
    if isinstance(error, InvalidInput):
        return error
    if isinstance(error, RecursionError):
        return SchemaTooCostly("the schema is nested too deep for this process: nest less")
    return None


def refusal_values(error: InvalidInput) -> dict[str, Any]:
    """An error as plain values; details that aren't plain stay behind."""
    details = {name: value for name, value in error.details.items() if isinstance(value, str | int | float | bool)}
    values: dict[str, Any] = {"kind": type(error).__name__, "message": error.message, "details": details}
    if isinstance(error, InvalidSchema):
        values |= {"line": error.line, "column": error.column}
    return values


def _sources(value: Any) -> Iterator[Source]:
    """The schemas among the arguments, also those in a history."""
    if isinstance(value, Source):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _sources(item)


def _ready(argument: Any) -> Any:
    if isinstance(argument, Source):
        return _parse(argument)
    if isinstance(argument, tuple):
        return tuple(_ready(item) for item in argument)
    return argument


def _parse(source: Source, is_new: bool = False) -> ParsedSchema:
    """The parsed schema. It is weighed by its own text: what it refers to is in memory as long as it is.

    What isn't new was accepted once, with defaults that Avro doesn't take any more perhaps.
    """

    def read() -> ParsedSchema:
        return FORMATS[source.schema_type].parse(source.text, source.references, is_new=is_new)

    return _parsed.get((source.schema_type, is_new, _digest(source)), read)


def _digest(source: Source) -> str:
    """What tells a source from all others: its text, and every reference with where it leads."""
    digest = hashlib.sha256()

    def add(*parts: object) -> None:
        for part in parts:
            data = str(part).encode("utf-8", "surrogatepass")
            digest.update(b"%d:" % len(data) + data)

    add(source.text, len(source.references))
    visited = set()
    stack = list(reversed(source.references))
    while stack:
        node = stack.pop()
        key = (node.name, node.subject, node.version, node.text)
        add(node.name, node.subject, node.version, len(node.references))
        if key not in visited:
            visited.add(key)
            add(node.text)
            stack.extend(reversed(node.references))
    return digest.hexdigest()
