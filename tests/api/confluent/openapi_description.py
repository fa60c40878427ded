"""Confluent's API as OpenAPI, made from the table of addresses: what is generated from it reaches every one of them."""

from __future__ import annotations

import re
from typing import Any

from django.urls import get_resolver

_ROOT = get_resolver().url_patterns  # registers the converter that the addresses use

from registry.api.confluent.base import ConfluentView  # noqa: E402
from registry.api.confluent.urls import CALLS, WHOLE  # noqa: E402

_TEXT: dict[str, Any] = {"type": "string"}
_NUMBER: dict[str, Any] = {"type": "integer"}
_FLAG: dict[str, Any] = {"type": "string", "enum": ["true", "false", "True", ""]}
_FLAGS = [
    "normalize",
    "deleted",
    "deletedOnly",
    "deletedAsNegative",
    "lookupDeletedSchema",
    "permanent",
    "force",
    "verbose",
    "defaultToGlobal",
    "recursive",
    "latestOnly",
    "aliases",
    "fetchMaxId",
    "dryRun",
    "cascadeLifecycle",
    "includeSchemas",
]
_TEXTS = [
    "subjectPrefix",
    "subject",
    "format",
    "referenceFormat",
    "ruleType",
    "contextPrefix",
    "key",
    "value",
    "findTags",
]
#: query parameter → its type; each goes with each call, as any client may send it
QUERY = {
    **dict.fromkeys(_FLAGS, _FLAG),
    **dict.fromkeys(_TEXTS, _TEXT),
    "resourceType": {"enum": ["topic", "table", ""]},
    "associationType": {"enum": ["key", "value", "both", ""]},
    "lifecycle": {"enum": ["STRONG", "WEAK", "NONE", "x", ""]},
    "context": {"enum": [".lab", "lab", ":.lab:", "."]},
    "offset": _NUMBER,
    "limit": _NUMBER,
}
#: values of path segments that lead somewhere, so that what lies behind them is reached as well
SEGMENTS = {
    "subject": ["orders", "customer", "a/b", ":.lab:orders", ":.lab:", "none"],
    "version": ["1", "2", "latest", "-1", "0", "99", "2147483648"],
    "schema_id": ["1", "2", "3", "0", "-1", "99999999999"],
    "context": [".lab", ".", ".none", ":.lab:"],
    "guid": ["00000000-0000-0000-0000-000000000000", "x"],
    "resource_id": ["id1", "id2", "none", "a/b"],
    "namespace": ["lkc1", "-", "none"],
    "name": ["orders", "-", "none"],
    "registry": ["dev", "staging", "none"],
}
_TEXT_OR_NULL = {"type": ["string", "null"]}
_RULE = {
    "type": "object",
    "properties": {
        "name": {"anyOf": [{"enum": ["a", "b", "c"]}, _TEXT]},
        "kind": {"enum": ["TRANSFORM", "CONDITION", "x", None]},
        "mode": {"enum": ["WRITE", "READ", "UPGRADE", "UPDOWN", "x", None]},
        "type": {"anyOf": [{"enum": ["CEL"]}, _TEXT_OR_NULL]},
        "tags": {"type": "array", "items": _TEXT},
        "params": {"type": "object", "additionalProperties": _TEXT},
        "disabled": {"type": "boolean"},
    },
}
_RULES = {
    "type": ["object", "null"],
    "properties": {
        name: {"type": "array", "items": _RULE, "maxItems": 3}
        for name in ("migrationRules", "domainRules", "encodingRules")
    },
}
_METADATA = {
    "type": ["object", "null"],
    "properties": {
        "tags": {"type": "object", "additionalProperties": {"type": "array", "items": _TEXT}},
        "properties": {"type": "object", "additionalProperties": {"type": ["string", "integer", "number", "boolean"]}},
        "sensitive": {"type": "array", "items": _TEXT},
    },
}
_REFERENCE = {
    "type": "object",
    "properties": {
        "name": _TEXT,
        "subject": {"anyOf": [_TEXT, {"enum": ["orders", "customer"]}]},
        "version": {"anyOf": [_NUMBER, {"enum": [1, -1]}]},
    },
    "required": ["name", "subject", "version"],
}
_AVRO = [
    '"string"',
    '{"type":"record","name":"Order","fields":[]}',
    '{"type":"enum","name":"E","symbols":["A"]}',
    "",
    "{",
]
_TAGS = {
    "type": ["array", "null"],
    "maxItems": 2,
    "items": {
        "type": "object",
        "properties": {
            "schemaEntity": {
                "type": "object",
                "properties": {
                    "entityPath": {"anyOf": [{"enum": ["Order", "Order.id", ".Order", "object.a", ""]}, _TEXT]},
                    "entityType": {"enum": ["sr_record", "sr_field", "x"]},
                },
            },
            "tags": {"type": "array", "items": _TEXT, "maxItems": 2},
        },
    },
}
_ASSOCIATION = {
    "type": "object",
    "properties": {
        "opType": {"enum": ["CREATE", "UPSERT", "DELETE", "x", None]},
        "subject": {"anyOf": [{"enum": ["orders", "customer", ":.lkc1:orders-value", "", None]}, _TEXT]},
        "associationType": {"enum": ["key", "value", "both", "", None]},
        "lifecycle": {"enum": ["STRONG", "WEAK", "x", None]},
        "frozen": {"type": ["boolean", "null"]},
        "cascadeLifecycle": {"type": ["boolean", "null"]},
        "schema": {
            "type": ["object", "null"],
            "properties": {
                "schema": {"enum": _AVRO},
                "references": {"type": "array", "items": _REFERENCE, "maxItems": 1},
            },
        },
    },
}
_RESOURCE = {
    "resourceName": {"anyOf": [{"enum": ["orders", "payments", None]}, _TEXT]},
    "resourceNamespace": {"enum": ["lkc1", "", "a.b", None]},
    "resourceId": {"enum": ["id1", "id2", "", None]},
    "resourceType": {"enum": ["topic", "table", "", None]},
    "associations": {"type": ["array", "null"], "items": _ASSOCIATION, "maxItems": 3},
}
BODY = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "schema": {"anyOf": [_TEXT, {"enum": _AVRO}]},
        "schemaType": {"enum": ["AVRO", "JSON", "PROTOBUF", "avro", "XML", "", None]},
        "references": {"type": "array", "items": _REFERENCE, "maxItems": 2},
        "metadata": _METADATA,
        "ruleSet": _RULES,
        "ruleset": _RULES,
        "version": {"type": ["integer", "null"]},
        "id": {"type": ["integer", "null"]},
        "newVersion": {"type": ["integer", "null"]},
        "rulesToMerge": _RULES,
        "rulesToRemove": {"type": ["array", "null"], "items": _TEXT},
        "tagsToAdd": _TAGS,
        "tagsToRemove": _TAGS,
        "schemaTagsToAdd": _TAGS,
        "schemaTagsToRemove": _TAGS,
        "propagateSchemaTags": {"type": ["boolean", "null"]},
        "validateFields": {"type": ["boolean", "null"]},
        "validateNewSchemas": {"type": ["boolean", "null"]},
        "compatibilityPolicy": {"enum": ["strict", "LENIENT", "logical", "x", None]},
        **_RESOURCE,
        "requests": {
            "type": ["array", "null"],
            "items": {"type": "object", "properties": _RESOURCE},
            "maxItems": 2,
        },
        "compatibility": {"enum": ["NONE", "full", "x", None]},
        "normalize": {"type": ["boolean", "null"]},
        "alias": _TEXT_OR_NULL,
        "compatibilityGroup": _TEXT_OR_NULL,
        "defaultMetadata": _METADATA,
        "overrideRuleSet": _RULES,
        "mode": {"enum": ["READWRITE", "IMPORT", "READONLY", "x", None]},
    },
}


def description() -> dict[str, Any]:
    """The OpenAPI description, with every method that a view answers."""
    routes = {**CALLS, **WHOLE}
    below = {f"contexts/<segment:context>/{address}": view for address, view in CALLS.items()}
    paths = {
        "/" + re.sub(r"<segment:(\w+)>", r"{\1}", address): _item(address, view)
        for address, view in {**routes, **below}.items()
    }
    return {"openapi": "3.1.0", "info": {"title": "Confluent's dialect", "version": "1"}, "paths": paths}


def _item(address: str, view: type[ConfluentView]) -> dict[str, Any]:
    names = re.findall(r"<segment:(\w+)>", address)
    segments = [{"name": name, "in": "path", "required": True, "schema": {"enum": SEGMENTS[name]}} for name in names]
    query = [{"name": name, "in": "query", "schema": kind} for name, kind in QUERY.items()]
    methods = [method for method in ("get", "post", "put", "delete") if hasattr(view, method)]
    return {method: _call(method, [*segments, *query]) for method in methods}


def _call(method: str, parameters: list[dict[str, Any]]) -> dict[str, Any]:
    call: dict[str, Any] = {"parameters": parameters, "responses": {"200": {"description": "done"}}}
    if method in ("post", "put"):
        call["requestBody"] = {"content": {"application/json": {"schema": BODY}}, "required": True}
    return call


def addresses() -> list[tuple[str, str]]:
    """Every path of the description with each of its methods."""
    return [(path, method) for path, item in description()["paths"].items() for method in item]
