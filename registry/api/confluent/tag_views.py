"""Confluent's registry API: a new version that changes tags, metadata and rules alone."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.confluent.requests import number_between, object_body, read_tags, takes_more_than_the_id, typed
from registry.api.confluent.subject_views import VersionView, registered
from registry.errors import InvalidInput, InvalidRuleSet
from registry.subjects.contracts import (
    Contract,
    merge_rule_sets,
    read_metadata,
    read_rule_set,
    with_version,
    without_rules,
)
from registry.subjects.selectors.versions import get_version
from registry.subjects.services import register_version

LATEST = -1


class Tags(VersionView):
    """`/subjects/{subject}/versions/{version}/tags`."""

    def post(self, request: Request, version: str, **address: Any) -> Response:
        """Register the version's schema again with other tags and another contract."""
        body, whole = object_body(request), takes_more_than_the_id(request)
        following = number_between(body, "newVersion", 0)
        metadata, rules = read_metadata(body.get("metadata")), self._rules(body, following)
        schema = self.version(version).schema
        done = register_version(
            registry=self.registry.name,
            subject=self.named_subject,
            text=schema.text,
            by=self.actor,
            schema_type=schema.schema_type,
            references=schema.references,
            metadata=with_version(schema.metadata if metadata is None else metadata, following),
            rule_set=rules,
            version=following,
            tags_to_add=read_tags(body, "tagsToAdd"),
            tags_to_remove=read_tags(body, "tagsToRemove"),
        )
        return registered(self, done, whole=whole)

    def _rules(self, body: dict[str, Any], following: int) -> Contract | None:
        """The rule set that is asked for: whole, or as changes of the version before. Raises InvalidRuleSet."""
        whole = read_rule_set(body.get("ruleSet"))
        merged = read_rule_set(body.get("rulesToMerge"), "rulesToMerge")
        removed = typed(body, "rulesToRemove", list, None)
        if merged is None and removed is None:
            return whole
        if whole is not None:
            raise InvalidRuleSet("ruleSet should be omitted if specifying rulesToMerge or rulesToRemove")
        if not all(isinstance(name, str) for name in removed or ()):
            raise InvalidInput("/rulesToRemove takes an array of strings.")
        before = get_version(self.registry, self.named_subject, following - 1 if following > 1 else LATEST)
        return without_rules(merge_rule_sets(before.schema.rule_set, merged), removed or ())
