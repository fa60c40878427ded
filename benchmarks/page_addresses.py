"""Every page of the product, by the name of its address, and what it is opened with; a page without an entry is an error."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpResponseNotAllowed
from django.test import RequestFactory
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from registry.errors import WrongState


@dataclass(frozen=True, slots=True)
class Page:
    """A page to open: what it is called, the name of its address, and what fills that, as `{names}` of things there."""

    what: str
    name: str
    parts: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)

    def address(self, there: Mapping[str, Any]) -> str:
        """The address, of things that are there."""
        parts = {key: text.format(**there) for key, text in self.parts.items()}
        query = urlencode({key: text.format(**there) for key, text in self.query.items()})
        return reverse(f"ui:{self.name}", kwargs=parts) + (f"?{query}" if query else "")


_PLACE: Final = {"registry": "dev"}
_USUAL: Final = {**_PLACE, "subject": "{usual}"}
_WIDE: Final = {**_PLACE, "subject": "{wide}"}
_REFERRED: Final = {**_PLACE, "subject": "{referred}"}
_REQUEST: Final = {"request_id": "{request}"}
_VARIABLE: Final = {"query_id": "{query}", "variable_id": "{variable}"}

PAGES: Final = (
    Page("home", "home"),
    Page("subjects", "subjects", _PLACE),
    Page("subjects, a later page", "subjects", _PLACE, {"sort": "changed", "after": "{middle}"}),
    Page("subjects, last change first", "subjects", _PLACE, {"sort": "changed"}),
    Page("subjects, most versions first", "subjects", _PLACE, {"sort": "versions"}),
    Page("subjects, found by a word", "subjects", _PLACE, {"q": "customer"}),
    Page("subjects, with a field", "subjects", _PLACE, {"q": "field:email"}),
    Page("subjects, with a field of a type", "subjects", _PLACE, {"q": "field:email type:decimal"}),
    Page("subjects, with all numbers", "subjects", _PLACE, {"counts": "1"}),
    Page("search", "search"),
    Page("search: customer email", "search", query={"q": "customer email"}),
    Page("search: field:id", "search", query={"q": "field:id"}),
    Page("names while one types", "search_suggest", query={"q": "orders"}),
    Page("map", "map"),
    Page("glossary", "terms"),
    Page("descriptions by team", "descriptions"),
    Page("business term", "term", {"name": "{term}"}),
    Page("tour, its first step", "tour", {"number": "1"}),
    Page("subject", "subject", _USUAL),
    Page("subject, its text", "subject", _USUAL, {"tab": "source"}),
    Page("subject, its settings", "subject", _USUAL, {"tab": "settings"}),
    Page("subject of {fields} fields", "subject", _WIDE),
    Page("subject of {fields} fields, its text", "subject", _WIDE, {"tab": "source"}),
    Page("subject, in another registry", "subject_switch", _USUAL),
    Page("rule, tried", "try_rule", _USUAL),
    Page("diff", "compare", _USUAL),
    Page("diff of {fields} fields, one changed", "compare", _WIDE, {"from": "1", "to": "2"}),
    Page("diff of {fields} fields, most changed", "compare", _WIDE, {"from": "2", "to": "3"}),
    Page("diff of {fields} fields, side by side", "compare", _WIDE, {"from": "2", "to": "3", "view": "split"}),
    Page("report, its form", "report", _USUAL),
    Page("report of {fields} fields, its form", "report", _WIDE),
    Page("report of {fields} fields", "report", _WIDE, {"version": "2"}),
    Page("simulator", "simulate", _USUAL),
    Page("simulator of {fields} fields", "simulate", _WIDE),
    Page("simulator of {fields} fields, modified", "simulate", _WIDE, {"part": "modify"}),
    Page("references", "references", _REFERRED),
    Page("field", "field", query={"registry": "dev", "subject": "{usual}", "path": "{path}"}),
    Page("field of {fields}", "field", query={"registry": "dev", "subject": "{wide}", "path": "{wide_path}"}),
    Page("usage", "usage", _USUAL),
    Page("retire, evidence", "retire", _USUAL),
    Page("retire, choice", "retire_choose", _USUAL),
    Page("retire, confirmation", "retire_confirm", _USUAL, {"do": "deprecate", "version": "1"}),
    Page("retire, done", "retire_done", _USUAL, {"did": "deprecate", "versions": "1"}),
    Page("unused subjects", "unused_subjects", _PLACE),
    Page("unapproved versions", "unapproved_versions"),
    Page("unapproved versions, undecided", "unapproved_versions", query={"state": "undecided"}),
    Page("policy", "policy", _PLACE),
    Page("what if, its form", "what_if", _PLACE),
    Page("decode", "decode"),
    Page("board", "environments"),
    Page("board, behind", "environments", query={"show": "behind"}),
    Page("environment", "environment", _PLACE),
    Page("promotions", "promotions"),
    Page("promotions, approved together", "promotions_approve", query={"request": "{request}"}),
    Page("promotion of {fields} fields", "promotion", _REQUEST),
    Page("promotion, its form", "promotion_request", query={"subject": "{usual}", "version": "2"}),
    Page("promotion, plan file", "promotion_plan",
         query={"source": "dev", "target": "staging", "subject": "{planned}", "version": "2"}),
    Page("promotion, evidence file", "promotion_evidence_html", _REQUEST),
    Page("promotion, evidence as JSON", "promotion_evidence_json", _REQUEST),
    Page("proposals", "proposals"),
    Page("editor", "propose", query={"subject": "{usual}"}),
    Page("draft of {fields} fields", "draft", {"draft_id": "{draft}"}),
    Page("sources", "sources"),
    Page("source", "source", {"source_id": "{source}"}),
    Page("source, add", "source_add"),
    Page("source, discover", "source_discover"),
    Page("source, edit", "source_edit", {"source_id": "{source}"}),
    Page("source, remove", "source_remove", {"source_id": "{source}"}),
    Page("scan's progress", "scan_progress", {"scan_id": "{scan}"}),
    Page("cluster, add", "cluster_add"),
    Page("cluster, edit", "cluster_edit", {"cluster_id": "{cluster}"}),
    Page("cluster, remove", "cluster_remove", {"cluster_id": "{cluster}"}),
    Page("findings", "findings"),
    Page("finding", "finding", {"finding_id": "{finding}"}),
    Page("finding, its messages", "finding_offsets", {"finding_id": "{finding}"}),
    Page("mutes", "mutes"),
    Page("queries", "queries"),
    Page("query", "query", {"query_id": "{query}"}),
    Page("state variable", "state_variable", _VARIABLE),
    Page("state variable, compared", "state_variable_compare", _VARIABLE),
    Page("state check, its form", "state_check_new"),
    Page("state check", "state_check", {"check_id": "{check}"}),
    Page("state check, exported", "state_check_export", {"check_id": "{check}"}),
    Page("inbox", "inbox"),
    Page("subscriptions", "subscriptions"),
    Page("registries", "registries"),
    Page("registry, export and import", "transfer", _PLACE),
    Page("deleted for good", "deleted", _PLACE),
    Page("copy, its plan", "copy", {**_PLACE, "copy_id": "{copy}"}),
    Page("copy, as a file", "copy_file", {**_PLACE, "copy_id": "{copy}"}),
    Page("registry, connect", "registry_connect"),
    Page("registry, its connection", "registry_connection", {"registry": "{mirror}"}),
    Page("registry, disconnect", "registry_disconnect", {"registry": "{mirror}"}),
    Page("digest, its link", "digest_stop", {"token": "{stop}"}),
    Page("webhooks", "webhooks"),
    Page("webhook, add", "webhook_add"),
    Page("webhook", "webhook", {"webhook": "{webhook}"}),
    Page("webhook, edit", "webhook_edit", {"webhook": "{webhook}"}),
    Page("webhook, remove", "webhook_remove", {"webhook": "{webhook}"}),
    Page("people", "people"),
    Page("tokens", "tokens"),
    Page("job, its last run", "job_run", {"number": "{run}"}),
    Page("jobs", "jobs"),
    Page("subjects, by name", "subjects", _PLACE, {"sort": "name"}),
    Page("subjects, deleted", "subjects", _PLACE, {"state": "deleted"}),
    Page("subjects, of a format", "subjects", _PLACE, {"format": "PROTOBUF"}),
    Page("subjects, of an owner", "subjects", _PLACE, {"owner": "user:{person}"}),
    Page("subjects, of a level", "subjects", _PLACE, {"level": "BACKWARD"}),
    Page("subjects, of a mode", "subjects", _PLACE, {"mode": "READONLY"}),
    Page("subjects, with a level of their own", "subjects", _PLACE, {"level_from": "own"}),
    Page("subjects, inheriting their level", "subjects", _PLACE, {"level_from": "inherited"}),
    Page("subjects, referring", "subjects", _PLACE, {"references": "refers"}),
    Page("subjects, referred to", "subjects", _PLACE, {"references": "referred"}),
    Page("subjects, unused", "subjects", _PLACE, {"use": "unused"}),
    Page("subjects, without an owner", "subjects", _PLACE, {"attention": "unowned"}),
    Page("audit", "audit"),
    Page("audit of a subject", "audit", query={**_USUAL}),
    Page("audit, saved", "audit_export", query={**_USUAL, "as": "csv"}),
)  # fmt: skip

#: files that are saved and parts of pages: no browser shows them by themselves, so that their server time alone counts
UNSEEN: Final = frozenset(
    {
        "promotion_plan",
        "promotion_evidence_html",
        "promotion_evidence_json",
        "state_check_export",
        "scan_progress",
        "audit_export",
        "copy_file",
    }
)


def all_pages() -> tuple[Page, ...]:
    """The table. Raises WrongState where it lacks a page of the product, or has one that there isn't."""
    there, opened = set(names_of_pages()), {page.name for page in PAGES}
    if there == opened:
        return PAGES
    problems = [f"{name} has no entry" for name in sorted(there - opened)]
    problems += [f"{name} is no page" for name in sorted(opened - there)]
    raise WrongState(f"The table of benchmarks/page_addresses.py isn't that of the product: {'; '.join(problems)}.")


def names_of_pages() -> list[str]:
    """The names of the addresses that are opened, and not only sent forms to."""
    _, pages = get_resolver().namespace_dict["ui"]
    patterns = list(_patterns(pages.url_patterns))
    logger = logging.getLogger("django.request")
    logger.disabled, before = True, logger.disabled  # each refusal would be told
    try:
        return [str(pattern.name) for pattern in patterns if _is_opened(pattern)]
    finally:
        logger.disabled = before


def _patterns(parts: Iterable[URLPattern | URLResolver]) -> Iterator[URLPattern]:
    for part in parts:
        if isinstance(part, URLPattern):
            yield part
        else:
            yield from _patterns(part.url_patterns)


def _is_opened(pattern: URLPattern) -> bool:
    """Whether a view takes GET: by its methods, or its own answer to a method that none takes.

    Raises WrongState for one that takes any.
    """
    if view := getattr(pattern.callback, "view_class", None):
        methods = getattr(pattern.callback, "view_initkwargs", {}).get("http_method_names", view.http_method_names)
        return "get" in methods and hasattr(view, "get")
    try:
        response = pattern.callback(RequestFactory().generic("MEASURE", "/"))
    except TypeError as error:
        raise WrongState(f"The view of {pattern.name} says of no method whether it takes it.") from error
    if not isinstance(response, HttpResponseNotAllowed):
        raise WrongState(f"The view of {pattern.name} takes any method.")
    return "GET" in response["Allow"]
