"""Confluent's registry API: compatibility levels, the other settings of a config, and modes."""

from __future__ import annotations

import contextlib
from typing import Any

from registry.api.confluent.base import ConfluentView
from registry.api.confluent.http import Request, Response
from registry.api.confluent.serializers import config_answer, flag, object_body
from registry.errors import (
    InvalidCompatibility,
    InvalidMode,
    SubjectConfigNotFound,
    SubjectModeNotFound,
    SubjectNotFound,
)
from registry.subjects import selectors
from registry.subjects.models import FORWARD
from registry.subjects.policy.effective_policy import DEFAULT_LEVEL, config_and_settings
from registry.subjects.remote.remote_client import SETTINGS
from registry.subjects.services import delete_config, delete_mode, set_config, set_mode
from registry.subjects.versions.qualified_names import GLOBAL_CONTEXT, SubjectName, parse_scope

#: property of a PUT → setting: the level has another name than in the response of a GET
PUT_PROPERTIES = {
    "compatibility" if name == "compatibilityLevel" else name: setting for name, setting in SETTINGS.items()
}


class PolicyView(ConfluentView):
    """The config or mode of a subject, a context, or (no name) the registry; aliases aren't followed."""

    reads_its_subject = True

    def read_subject(self, text: str) -> SubjectName | None:
        """Return the scope in the URL. Raises InvalidName."""
        return parse_scope(text, context=self.context)

    def read_address(self, **kwargs: Any) -> None:
        """Read the URL; below a context, no subject means the context."""
        super().read_address(**kwargs)
        if "subject" not in kwargs:
            self.subject = parse_scope("", context=self.context)

    def sought(self) -> None:
        """Return None: no alias is followed."""

    def not_found(self) -> SubjectNotFound:
        """Return the error of a DELETE for a scope without settings."""
        name = self.named_subject.qualified
        return SubjectNotFound(f"Subject '{name}' not found.", subject=name)


class ConfigView(PolicyView):
    """`/config[/{subject}]`."""

    def get(self, request: Request, **address: Any) -> Response:
        """Return the settings; a subject's own unless `defaultToGlobal`. 40408 if it has none."""
        in_scope = flag(request, "defaultToGlobal")
        config, settings = config_and_settings(self.registry, self.subject)
        if self.subject is not None and not in_scope:
            settings = selectors.own_config(self.registry, self.subject)
        return Response(config_answer(self.visible.settings(settings, self.subject), level=config.level))

    def put(self, request: Request, **address: Any) -> Response:
        """Change the settings in the body; null unsets one. Echoes the request."""
        body = object_body(request)
        properties = {name: body[name] for name in PUT_PROPERTIES if name in body}
        level = properties.get("compatibility")
        if level is not None and not isinstance(level, str):
            raise InvalidCompatibility("/compatibility must be the name of a level as a string.")
        set_config(
            registry=self.registry.name,
            subject=self.subject,
            by=self.actor,
            unset=[PUT_PROPERTIES[name] for name, value in properties.items() if value is None],
            **{PUT_PROPERTIES[name]: value for name, value in properties.items() if value is not None},
        )
        return Response({name: value for name, value in properties.items() if value is not None})

    def delete(self, request: Request, **address: Any) -> Response:
        """Unset the config and return the old one. 40401 for a scope without settings."""
        try:
            old = delete_config(registry=self.registry.name, subject=self.subject, by=self.actor)
        except SubjectConfigNotFound as error:
            raise self.not_found() from error
        return Response(config_answer(self.visible.settings(old, self.subject), level=DEFAULT_LEVEL))


class ModeView(PolicyView):
    """`/mode[/{subject}]`."""

    def get(self, request: Request, **address: Any) -> Response:
        """Return the mode; a subject's own unless `defaultToGlobal`. 40409 if it has none."""
        if self.subject is None or flag(request, "defaultToGlobal"):
            return Response({"mode": selectors.effective_mode(self.registry, self.subject).mode})
        return Response({"mode": selectors.own_mode(self.registry, self.subject)})

    def put(self, request: Request, **address: Any) -> Response:
        """Set the mode, or unset it with null; echoes the request."""
        body, force = object_body(request), flag(request, "force")
        mode = body.get("mode")
        if mode is None and "mode" in body:
            with contextlib.suppress(SubjectModeNotFound):
                delete_mode(registry=self.registry.name, subject=self.subject, by=self.actor)
            return Response({})
        if not isinstance(mode, str):
            raise InvalidMode('Send {"mode": MODE}.')
        if mode.upper() == FORWARD and self.kwargs.get("subject") != f":{GLOBAL_CONTEXT}:":
            # Confluent accepts it only under this name; there, `/mode` is the default context.
            raise InvalidMode("Forward mode only supported on global level", mode=mode)
        set_mode(registry=self.registry.name, subject=self.subject, by=self.actor, mode=mode, force=force)
        return Response({"mode": mode})

    def delete(self, request: Request, **address: Any) -> Response:
        """Unset the mode and return the old one. 40401 for a scope without a mode, unless `recursive`."""
        try:
            old = delete_mode(
                registry=self.registry.name,
                subject=self.subject,
                by=self.actor,
                recursive=flag(request, "recursive"),
            )
        except SubjectModeNotFound as error:
            raise self.not_found() from error
        return Response({"mode": old} if old else {})
