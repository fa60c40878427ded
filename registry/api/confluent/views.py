"""Confluent's registry API: the server itself, its formats and contexts."""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path
from typing import Any

from django.conf import settings
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.confluent.base import ConfluentView
from registry.api.confluent.requests import page
from registry.formats import FORMATS
from registry.subjects import selectors
from registry.subjects.services import delete_context


class Root(ConfluentView):
    """`GET /`."""

    reads_parts = True

    def get(self, request: Request, **address: Any) -> Response:
        """An empty object, by which clients see that the server is there."""
        return Response({})

    def post(self, request: Request, **address: Any) -> Response:
        """The same."""
        return Response({})


class SchemaTypes(ConfluentView):
    """`GET /schemas/types`."""

    reads_parts = True

    def get(self, request: Request, **address: Any) -> Response:
        """The formats that can be registered."""
        return Response(sorted(FORMATS))


class Contexts(ConfluentView):
    """`GET /contexts`."""

    reads_parts = True

    def get(self, request: Request, **address: Any) -> Response:
        """The contexts' names, `.` among them."""
        prefix = request.query_params.get("contextPrefix", "")
        names = [name for name in selectors.list_contexts(self.registry, self.visible) if name.startswith(prefix)]
        return Response(page(request, names))


class ContextView(ConfluentView):
    """`/contexts/{context}`."""

    def delete(self, request: Request, **address: Any) -> Response:
        """Remove a context without subjects; 42211 where it has some."""
        delete_context(registry=self.registry.name, context=self.context, by=self.actor)
        return Response(status=204)


class ClusterId(ConfluentView):
    """`GET /v1/metadata/id`."""

    reads_parts = True

    def get(self, request: Request, **address: Any) -> Response:
        """Which registry this is: clients tell servers apart by it."""
        clusters = {
            "kafka-cluster": f"{self.registry.project}.{self.registry.location}",
            "schema-registry-cluster": self.registry.name,
        }
        return Response({"scope": {"path": [], "clusters": clusters}})


class ServerVersion(ConfluentView):
    """`GET /v1/metadata/version`."""

    reads_parts = True

    def get(self, request: Request, **address: Any) -> Response:
        """The product's version."""
        return Response({"version": product_version(), "commitId": settings.COMMIT_ID})


class Deployment(ConfluentView):
    """`GET /v1/metadata/deployment`."""

    reads_parts = True

    def get(self, request: Request, **address: Any) -> Response:
        """Nothing is told of how it is deployed."""
        return Response({"attributes": {}})


@functools.cache
def product_version() -> str:
    """The version that pyproject.toml says."""
    project = tomllib.loads((Path(settings.BASE_DIR) / "pyproject.toml").read_text(encoding="utf-8"))
    return str(project["project"]["version"])
