"""Google's API: compatibility types and modes, of a registry, a context or a subject."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.google.base import RegistryView
from registry.api.google.names import check_subject
from registry.api.google.requests import CONFIG, MODE, flag, read
from registry.api.google.wire import COMPATIBILITY_TYPES, MODE_TYPES, enum
from registry.errors import InvalidCompatibility, InvalidMode
from registry.subjects import selectors
from registry.subjects.models import MODES_WITH_IDS
from registry.subjects.names import SubjectName
from registry.subjects.services import delete_config, delete_mode, set_config, set_mode


class PolicyView(RegistryView):
    """A call about the config or mode of what the address names."""

    follows_alias = False

    def named_scope(self) -> SubjectName | None:
        """The scope to change. Raises InvalidName for a subject that this dialect couldn't make."""
        return check_subject(self.scope) if self.scope and self.scope.subject else self.scope


class Config(PolicyView):
    """`…/config[/{subject}]`."""

    def get(self, request: Request, **address: Any) -> Response:
        """What counts for a registry; what a subject or context itself sets, unless `defaultToGlobal`."""
        if self.scope is None or flag(request, "defaultToGlobal"):
            config = selectors.effective_config(self.registry, self.scope)
            return self._answer(config.level, config.normalize)
        own = selectors.own_config(self.registry, self.scope)
        return self._answer(own.level, own.normalize, own.alias)

    def put(self, request: Request, **address: Any) -> Response:
        """Set it: at a subject what is left out is unset, at a registry it stays as it is."""
        body = read(request, CONFIG)
        scope, place = self.named_scope(), self.resource.key
        level, normalize = body.get("compatibility"), body.get("normalize")
        if scope is not None:
            values: dict[str, Any] = {"level": level, "normalize": normalize}
            left_out = [name for name, value in values.items() if value is None]
            own = set_config(registry=place, subject=scope, by=self.actor, unset=left_out, **values)
            return self._answer(own.level, own.normalize, own.alias)
        if level is None and normalize is None:
            raise InvalidCompatibility("compatibility is missing.", field="compatibility")
        set_config(registry=place, subject=None, by=self.actor, level=level, normalize=normalize)
        config = selectors.effective_config(self.registry)
        return self._answer(config.level, config.normalize)

    def delete(self, request: Request, **address: Any) -> Response:
        """Unset it, so that it is inherited; answers what it was."""
        old = delete_config(registry=self.resource.key, subject=self.scope, by=self.actor)
        return self._answer(old.level, old.normalize, old.alias)

    def _answer(self, level: str | None, normalize: bool | None, alias: str | None = None) -> Response:
        values: dict[str, Any] = {}
        if level is not None:
            values["compatibility"] = enum(self.request, level, COMPATIBILITY_TYPES)
        if normalize is not None:
            values["normalize"] = normalize
        if alias:
            values["alias"] = alias
        return Response(values)


class Mode(PolicyView):
    """`…/mode[/{subject}]`."""

    def get(self, request: Request, **address: Any) -> Response:
        """What counts for a registry; what a subject or context itself sets, unless `defaultToGlobal`."""
        if self.scope is None or flag(request, "defaultToGlobal"):
            return self._answer(selectors.effective_mode(self.registry, self.scope).mode)
        return self._answer(selectors.own_mode(self.registry, self.scope))

    def put(self, request: Request, **address: Any) -> Response:
        """Set it."""
        mode = read(request, MODE).get("mode", MODE_TYPES[0])
        if mode == MODE_TYPES[0]:
            raise InvalidMode(
                "mode is missing or NONE; send READONLY, READWRITE or IMPORT, or delete the mode to inherit it.",
                field="mode",
            )
        place = self.resource.key
        return self._answer(set_mode(registry=place, subject=self.named_scope(), by=self.actor, mode=mode))

    def delete(self, request: Request, **address: Any) -> Response:
        """Unset it, so that it is inherited; answers what it was."""
        return self._answer(delete_mode(registry=self.resource.key, subject=self.scope, by=self.actor))

    def _answer(self, mode: str) -> Response:
        # READONLY_OVERRIDE and FORWARD are another dialect's; here they are the modes that they have the effect of.
        shown = mode if mode in MODE_TYPES else ("IMPORT" if mode in MODES_WITH_IDS else "READONLY")
        return Response({"mode": enum(self.request, shown, MODE_TYPES)})
