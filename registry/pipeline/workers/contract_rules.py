"""Evaluates conditions of data contracts, written in CEL, on decoded messages. Nothing of a value leaves it.

As in Confluent's clients, `guard ; condition` holds where the guard is false. A `CEL` condition reads `message`. A
`CEL_FIELD` condition is evaluated for each primitive field that isn't null and has one of the rule's tags.

CEL's runtime limits each evaluation to 10,000 iterations and 32 levels, and its regular expressions don't backtrack.
Larger bodies and patterns that come from data aren't evaluated, and a rule that takes too long is given up for the rest
of the task. A call can't be interrupted, and thirty iterations that each double a text fill any memory: the operating
system ends a process that exceeds the limits of one evaluation, and the scan goes on without the rules.
"""

from __future__ import annotations

import re
import resource
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

LARGEST = 65_536  # bytes of a message
MOST_SECONDS = 30.0  # of a processor, per schema and task: its rules have equal shares
EVALUATION_SECONDS = 5.0  # of a processor
EVALUATION_BYTES = 512 << 20  # of memory that the process didn't have
FIRST = 200  # positions of broken messages
MOST_KEPT = 20  # reasons, and paths of fields
LONGEST_REASON = 300
NO_LIBRARY = "the Spark workers' Python has no cel_expr_python; install it"
TOO_LARGE = f"messages of more than {LARGEST // 1024} KB aren't evaluated"
TOO_SLOW = "evaluating the rule takes too long; it was given up for the rest of the messages"
TOO_DEEP = "the expression isn't valid: it has more than 32 levels"
NO_CONTAINER = " (in container '')"
OPEN_PATTERN = "the pattern of matches() isn't a literal"
#: the kinds that Confluent's clients call primitive, with their names there; enums and fixed aren't
TYPE_NAMES = {
    **dict.fromkeys(("int", "integer", "int32", "uint32", "sint32", "fixed32", "sfixed32"), "INT"),
    **dict.fromkeys(("long", "int64", "uint64", "sint64", "fixed64", "sfixed64"), "LONG"),
    **{"string": "STRING", "bytes": "BYTES", "float": "FLOAT", "double": "DOUBLE", "number": "DOUBLE"},
    **dict.fromkeys(("boolean", "bool"), "BOOLEAN"),
}
#: Confluent's own functions of a text, with the format of JSON Schema that decides each
FORMATS = {
    **{"isEmail": "email", "isHostname": "hostname", "isIpv4": "ipv4", "isIpv6": "ipv6"},
    **{"isUri": "uri", "isUriRef": "uri-reference", "isUuid": "uuid"},
}
_MATCHES = re.compile(r"\bmatches\s*\(")
_LITERAL = re.compile(r"""\bmatches\s*\(\s*[rR]?(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')\s*\)""")
_OVERLOAD = re.compile(
    r"No matching overloads found : (?P<signature>(?:\([\w.]*\)\.)?[\w+*/%<>=!&|?:\[\]@.-]+\([\w, .]*\))"
)


class NotEvaluated(Exception):
    """A condition that couldn't be evaluated on a message; the text has nothing of its content."""


class FieldOfMessage(NamedTuple):
    """A primitive value of a message with what a CEL_FIELD condition may know of it; `record` is the one around it."""

    value: Any
    name: str
    full_name: str
    type_name: str
    path: str
    record: Any


class Conditions:
    """The conditions of one schema in one task; `tags` are those of its fields, by path."""

    def __init__(self, rules: list[dict[str, Any]], tags: Mapping[str, tuple[str, ...]]) -> None:
        self._conditions = [Condition(rule, tags, MOST_SECONDS / len(rules)) for rule in rules]

    def check(self, decoded: Any, place: tuple[int, int], size: int) -> bool:
        """Evaluate all conditions on a message; return whether it is the first that breaks one of them."""
        firsts = [condition.check(decoded, place, size) for condition in self._conditions]
        return any(firsts)

    def rows(self) -> list[dict[str, Any]]:
        """Return the counts of each condition."""
        return [condition.row() for condition in self._conditions]


class Condition:
    """One condition with its counts: `broken` is of the `messages` that were evaluated."""

    def __init__(self, rule: dict[str, Any], tags: Mapping[str, tuple[str, ...]], seconds: float) -> None:
        self.rule, self.messages, self.broken = rule, 0, 0
        self.first: list[tuple[int, int]] = []
        self.paths: dict[str, int] = {}
        self.not_checked: dict[str, int] = {}
        self._tags, self._left, self._memory = tags, seconds, memory_limit()
        self._reads_message = "message" in rule["expression"]
        self._reason: str = rule["not_checked"]
        self._programs: list[Any] | None = None

    def row(self) -> dict[str, Any]:
        """Return the counts as JSON."""
        names = ("messages", "broken", "first", "paths", "not_checked")
        return {"name": self.rule["name"], **{name: getattr(self, name) for name in names}}

    def check(self, decoded: Any, place: tuple[int, int], size: int) -> bool:
        """Evaluate the condition on a message; return whether it is the first that breaks it."""
        began = time.thread_time()
        try:
            if self._programs is None and not self._reason:
                self._compile(decoded)
            if self._reason or size > LARGEST:
                raise NotEvaluated(self._reason or TOO_LARGE)
            with limited(self._memory):
                paths = self._broken_paths(decoded)
        except NotEvaluated as reason:
            _count(self.not_checked, str(reason))
            return False
        finally:
            self._left -= time.thread_time() - began
            if self._left < 0:
                self._reason = self._reason or TOO_SLOW
        self.messages += 1
        if paths is None:
            return False
        self.broken += 1
        for path in paths:
            _count(self.paths, path)
        if len(self.first) < FIRST:
            self.first.append(place)
        return self.broken == 1

    def _compile(self, decoded: Any) -> None:
        """Compile guard and condition; the reason why that isn't possible applies to all messages."""
        expression = self.rule["expression"]
        if len(_MATCHES.findall(expression)) != len(_LITERAL.findall(expression)):
            self._reason = OPEN_PATTERN
            return
        guard, mark, condition = expression.partition(";")
        texts = [guard, condition] if mark and guard.strip() else [condition if mark else guard]
        try:
            environment = _environment(decoded, is_field=self.rule["type"] == "CEL_FIELD")
            self._programs = [environment.compile(text) for text in texts]
        except ImportError:
            self._reason = NO_LIBRARY
        except Exception as error:  # noqa: BLE001  whatever the compiler raises: the text is about the expression
            self._reason = _invalid(str(error))

    def _broken_paths(self, decoded: Any) -> list[str] | None:
        """Return the fields that break the condition, empty for the message as a whole; None if it holds."""
        if self.rule["type"] == "CEL":
            message = decoded.value if decoded.message is None else decoded.message
            return None if self._holds({"message": message}) else []
        broken: dict[str, None] = {}
        reason: NotEvaluated | None = None
        for field in fields_of(decoded.value, decoded.shape):
            tags = _tags_at(self._tags, field.path)
            if self.rule["tags"] and set(tags).isdisjoint(self.rule["tags"]):
                continue
            try:
                if not self._holds(_variables(field, tags, field.record if self._reads_message else None)):
                    broken[field.path] = None
            except NotEvaluated as unknown:
                reason = unknown
        if reason is not None and not broken:
            raise reason
        return list(broken) or None

    def _holds(self, variables: dict[str, Any]) -> bool:
        results = []
        for program in self._programs or ():
            results.append(_evaluated(program, variables))
            if len(results) < len(self._programs or ()) and not results[-1]:
                return True  # the guard is false
        return results[-1]


def _invalid(error: str) -> str:
    """Return why an expression can't be compiled, from the compiler's text, without its marks for no position."""
    if "recursion limit exceeded" in error:
        return TOO_DEEP
    text = error.partition("<input>:")[2].partition("\n")[0] or error
    return f"the expression isn't valid: {text.removeprefix('-1:-1: ').replace(NO_CONTAINER, '')[:LONGEST_REASON]}"


def _environment(decoded: Any, *, is_field: bool) -> Any:
    from cel_expr_python import cel
    from cel_expr_python.ext import ext_strings

    variables = {"message": cel.Type.DYN}
    if is_field:
        texts = dict.fromkeys(("name", "fullName", "typeName"), cel.Type.STRING)
        variables |= {"value": cel.Type.DYN, "tags": cel.Type.List(cel.Type.STRING), **texts}
    pool = None if decoded.message is None else decoded.message.DESCRIPTOR.file.pool
    functions = [
        cel.FunctionDecl(name, [cel.Overload(f"{name}_string", cel.Type.BOOL, [cel.Type.STRING], True, is_format)])
        for name, is_format in _format_checks().items()
    ]
    extensions = [ext_strings.ExtStrings()]
    return cel.NewEnv(descriptor_pool=pool, variables=variables, extensions=extensions, functions=functions)


def _format_checks() -> dict[str, Callable[[str], bool]]:
    """Return a check for each of FORMATS; none, if the Spark workers lack jsonschema_rs."""
    try:
        from jsonschema_rs import Draft202012Validator
    except ImportError:
        return {}
    schemas = {name: {"type": "string", "format": kind} for name, kind in FORMATS.items()}
    return {name: Draft202012Validator(schema, validate_formats=True).is_valid for name, schema in schemas.items()}


def memory_limit() -> int:
    """Return how much memory one evaluation may leave this process with; no limit where that can't be told."""
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except OSError:
        return soft
    wanted = pages * resource.getpagesize() + EVALUATION_BYTES
    return wanted if soft == resource.RLIM_INFINITY else min(soft, wanted)


@contextmanager
def limited(memory: int) -> Iterator[None]:
    """Let the operating system end the process if what runs inside takes too much memory or time."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (memory, before[1]))
    signal.setitimer(signal.ITIMER_VIRTUAL, EVALUATION_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, before)


def _evaluated(program: Any, variables: dict[str, Any]) -> bool:
    """Return the result; raises NotEvaluated, without the runtime's text, which may contain keys of the message."""
    try:
        result = program.eval(data=variables)
        value, is_error = result.plain_value(), result.type().name() == "ERROR"
    except Exception as error:  # noqa: BLE001  an iteration too many, a text that isn't Unicode
        raise NotEvaluated(_reason(str(error))) from None
    if isinstance(value, bool):
        return value
    raise NotEvaluated(_reason(value) if is_error else "its result isn't true or false")


def _reason(text: str) -> str:
    overload = _OVERLOAD.search(text)
    if overload is not None:
        return f"no operator or function takes these types: {overload['signature'][:100]}"
    if text.startswith("NOT_FOUND"):
        return "the message lacks a field or key that the expression reads"
    if "invalid regular expression: " in text:  # a literal of the expression, see OPEN_PATTERN
        return f"the pattern of matches() isn't valid: {text.partition('expression: ')[2][:100]}"
    if "budget exceeded" in text:
        return "the expression takes more than 10,000 iterations"
    return "divide by zero" if "divide by zero" in text else "the expression can't be evaluated on the message"


def _variables(field: FieldOfMessage, tags: tuple[str, ...], message: Any) -> dict[str, Any]:
    names = {"name": field.name, "fullName": field.full_name, "typeName": field.type_name}
    return {"value": field.value, "tags": list(tags), "message": message, **names}


def _tags_at(tags: Mapping[str, tuple[str, ...]], path: str) -> tuple[str, ...]:
    """Return the tags of the field at a path; those of a list or map count for what is in it."""
    while path not in tags and path.endswith(("[]", "{}")):
        path = path[:-2]
    return tags.get(path, ())


def fields_of(value: Any, shape: Any) -> Iterator[FieldOfMessage]:
    """Yield the primitive fields of a decoded message that aren't null, also within records, lists and maps."""
    stack: list[tuple[Any, Any, str, tuple[str, str, Any] | None]] = [(value, shape, "", None)]
    while stack:
        inner, kind, path, field = stack.pop()
        if isinstance(inner, dict) and kind.keyed:
            stack += [(item, kind.item(), f"{path}{{}}", field) for item in inner.values()]
        elif isinstance(inner, dict):
            record = _record_name(kind, path)
            for name, item in inner.items():
                around = (str(name), f"{record}.{name}", inner)
                stack.append((item, kind.child(name), f"{path}.{name}" if path else str(name), around))
        elif isinstance(inner, list):
            stack += [(item, kind.item(), f"{path}[]", field) for item in inner]
        elif field is not None and kind.labels.get(type(inner)) in TYPE_NAMES:
            name, full_name, around_it = field
            yield FieldOfMessage(inner, name, full_name, TYPE_NAMES[kind.labels[type(inner)]], path, around_it)


def _record_name(shape: Any, path: str) -> str:
    """Return the full name of an Avro record or a Protobuf message; of JSON its path, from `$`."""
    for branch in getattr(shape, "branches", ()):
        if isinstance(branch, dict) and "fields" in branch:
            return str(branch["name"])
    descriptor = getattr(shape, "descriptor", None)
    return str(descriptor.full_name) if descriptor is not None else f"$.{path}" if path else "$"


def _count(counts: dict[str, int], name: str) -> None:
    if name in counts or len(counts) < MOST_KEPT:
        counts[name] = counts.get(name, 0) + 1
