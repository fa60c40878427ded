"""What the description of the API (OpenAPI) says of signing in: the two ways that every call takes."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """A token as Bearer, or as the password of Basic with any user name (registry/api/authentication.py)."""

    target_class = "registry.api.authentication.TokenAuthentication"
    name = ["bearerToken", "basicToken"]

    def get_security_requirement(self, auto_schema: Any) -> list[dict[str, list[Any]]]:
        """Either of them."""
        return [{name: []} for name in self.name]

    def get_security_definition(self, auto_schema: Any) -> list[dict[str, Any]]:
        """Both, in the order of their names."""
        made = "Made on the page Tokens, or by `python3 manage.py issue_token USER NAME`."
        return [
            {"type": "http", "scheme": "bearer", "description": f"A token. {made}"},
            {"type": "http", "scheme": "basic", "description": f"Any user name, and a token as the password. {made}"},
        ]
