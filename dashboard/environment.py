"""The environment variables of the settings, declared with their purpose; environs parses and validates them.

The declarations are also docs/reference/settings.md. An empty number means the default, and an empty switch means off.
A secret can be in a file named by `NAME_FILE`; the file takes precedence.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from django.core.exceptions import ImproperlyConfigured
from environs import Env, EnvValidationError, FileAwareEnv, validate

_ON, _OFF = ("1", "true", "yes", "on"), ("0", "false", "no", "off", "")
_PLAIN: Final = Env()
_SECRETS: Final = FileAwareEnv(strip_whitespace=True)


@dataclass(frozen=True)
class Variable:
    """A variable in the reference: its values, default and purpose."""

    values: str
    default: str
    purpose: str


#: name → its entry in the reference, in the order of the settings
VARIABLES: Final[dict[str, Variable]] = {}


def text(name: str, default: str, purpose: str, *, choices: Collection[str] = (), shown: str | None = None) -> str:
    """Read a text, one of `choices` if there are any. `shown` is the default in the reference."""
    values = ", ".join(f"`{choice}`" for choice in choices) or "text"
    rule = validate.OneOf(choices) if choices else None
    return str(_value(_PLAIN.str, name, default, Variable(values, _code(default, shown), purpose), validate=rule))


def words(name: str, default: str, purpose: str, *, separator: str = ",", shown: str | None = None) -> tuple[str, ...]:
    """Read a list of texts, stripped, without empty ones."""
    kind = {",": "comma-separated", ":": "colon-separated", " ": "separated by spaces"}[separator]
    parts = _value(_PLAIN.str, name, default, Variable(kind, _code(default, shown), purpose)).split(separator)
    return tuple(part.strip() for part in parts if part.strip())


def whole(name: str, default: int, purpose: str) -> int:
    """Read an integer of at least 0."""
    return int(_number(_PLAIN.int, name, default, Variable("whole number", f"`{default}`", purpose)))


def decimal(name: str, default: float, purpose: str) -> float:
    """Read a number of at least 0."""
    return float(_number(_PLAIN.float, name, default, Variable("number", f"`{default:g}`", purpose)))


def switch(name: str, purpose: str, *, default: bool = False, shown: str | None = None) -> bool:
    """Read an on/off switch."""
    variable = Variable("`1` or `0`", _code("1" if default else "0", shown), purpose)
    return bool(_value(_PLAIN.bool, name, default, variable, truthy=set(_ON), falsy=set(_OFF)))


def secret(name: str, purpose: str) -> str:
    """Read a secret from the variable, or from the file that `name` with `_FILE` names; "" if neither is set."""
    VARIABLES[f"{name}_FILE"] = Variable("path", "none", f"a file with {name}, which it replaces")
    return str(_value(_SECRETS.str, name, "", Variable("text", "none", purpose)))


def _number(read: Any, name: str, default: float, variable: Variable) -> Any:
    if os.environ.get(name) == "":
        VARIABLES[name] = variable
        return default
    return _value(read, name, default, variable, validate=validate.Range(min=0))


def _value(read: Any, name: str, default: Any, variable: Variable, **options: Any) -> Any:
    """Read a variable. Raises ImproperlyConfigured with its name, the problem and valid values; never its value."""
    VARIABLES[name] = variable
    try:
        return read(name, default, **options)
    except EnvValidationError as error:
        problem = " ".join(str(message) for message in error.error_messages)
    except (ValueError, OSError) as error:  # the file of a secret
        problem = str(error)
    raise ImproperlyConfigured(
        f"The environment variable {name} can't be used. {problem} Values: {variable.values.replace('`', '')}; "
        f"default: {variable.default.replace('`', '')}. It sets {variable.purpose}."
    )


def _code(default: str, shown: str | None) -> str:
    return (f"`{default}`" if default else "none") if shown is None else shown
