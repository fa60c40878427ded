"""Confluent's registry API: compatibility levels and modes."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.confluent.base import ConfluentView
from registry.api.confluent.requests import flag, object_body
from registry.errors import InvalidCompatibility, InvalidInput, InvalidMode
from registry.subjects import selectors
from registry.subjects.services import delete_config, delete_mode, set_config, set_mode


class ConfigView(ConfluentView):
    """`/config[/{subject}]`."""

    def get(self, request: Request, **address: Any) -> Response:
        """The level; a subject's own unless `defaultToGlobal`. 40408 where it has none."""
        if self.subject is None or flag(request, "defaultToGlobal"):
            config = selectors.effective_config(self.registry, self.subject)
            return Response(_config(config.level, config.normalize or None))
        own = selectors.own_config(self.registry, self.subject)
        return Response(_config(own.level, own.normalize))

    def put(self, request: Request, **address: Any) -> Response:
        """Set the level; echoes the request."""
        body = object_body(request)
        level, normalize = body.get("compatibility"), body.get("normalize")
        if level is not None and not isinstance(level, str):
            raise InvalidCompatibility("/compatibility takes the name of a level as a string.")
        if normalize is not None and not isinstance(normalize, bool):
            raise InvalidInput("/normalize takes true or false.")
        if level is None and normalize is None:
            raise InvalidCompatibility('Send {"compatibility": LEVEL}, {"normalize": true} or both.')
        set_config(registry=self.registry.name, subject=self.subject, by=self.actor, level=level, normalize=normalize)
        return Response({key: body[key] for key in ("compatibility", "normalize") if body.get(key) is not None})

    def delete(self, request: Request, **address: Any) -> Response:
        """Unset it; answers what it was."""
        old = delete_config(registry=self.registry.name, subject=self.subject, by=self.actor)
        return Response(_config(old.level, old.normalize))


def _config(level: str | None, normalize: bool | None) -> dict[str, Any]:
    values = {"compatibilityLevel": level, "normalize": normalize}
    return {name: value for name, value in values.items() if value is not None}


class ModeView(ConfluentView):
    """`/mode[/{subject}]`."""

    def get(self, request: Request, **address: Any) -> Response:
        """The mode; a subject's own unless `defaultToGlobal`. 40409 where it has none."""
        if self.subject is None or flag(request, "defaultToGlobal"):
            return Response({"mode": selectors.effective_mode(self.registry, self.subject).mode})
        return Response({"mode": selectors.own_mode(self.registry, self.subject)})

    def put(self, request: Request, **address: Any) -> Response:
        """Set the mode; echoes the request."""
        mode = object_body(request).get("mode")
        if not isinstance(mode, str):
            raise InvalidMode('Send {"mode": MODE}.')
        return Response({"mode": set_mode(registry=self.registry.name, subject=self.subject, by=self.actor, mode=mode)})

    def delete(self, request: Request, **address: Any) -> Response:
        """Unset it; answers what it was."""
        return Response({"mode": delete_mode(registry=self.registry.name, subject=self.subject, by=self.actor)})
