"""What a test knows of the server that it runs on, and of the programs that call it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.clients.programs import LANGUAGES, run
from tests.toolchains import require_tools


@dataclass
class Server:
    """Where our server listens, whose token the next program gets, and what it was asked."""

    url: str
    token: Callable[[str], str]
    asked: list[str] = field(default_factory=list)

    def environment(self, *, who: str = "admin", registry: str = "", context: str = "") -> dict[str, str]:
        """What tells a program where to go and who calls; nobody in particular where `who` is empty."""
        found = {"REGISTRY_URL": f"{self.url}/registries/{registry}" if registry else self.url}
        if who:
            found["REGISTRY_TOKEN"] = self.token(who)
        if context:
            found["REGISTRY_CONTEXT"] = context
        return found


@dataclass
class Program:
    """One of the programs, on this server."""

    name: str
    server: Server

    def steps(self, phase: str, schema_type: str, *words: str, **place: str) -> dict[str, dict[str, Any]]:
        """What it says of its steps, by their names."""
        said = run(self.name, phase, schema_type, *words, **self.server.environment(**place))
        return {step["step"]: step for step in said}

    def all_steps(self, phase: str, schema_type: str, **place: str) -> list[dict[str, Any]]:
        """The same as a list, for steps that come more than once."""
        return run(self.name, phase, schema_type, **self.server.environment(**place))


def available(name: str, server: Server) -> Program:
    """The program, where its toolchain is (see `require_tools`)."""
    require_tools(LANGUAGES[name].client, LANGUAGES[name].tools)
    return Program(name, server)
