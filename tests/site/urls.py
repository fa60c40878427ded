"""The names of pages that templates link to, and the gallery's own pages; for the gallery alone."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import include, path

from tests.site import gallery


def show(request: HttpRequest, key: str) -> HttpResponse:
    """A sample page as a browser gets it; with `?harmful` its texts are hostile ones."""
    if key not in gallery.SAMPLES:
        raise Http404(key)
    return HttpResponse(gallery.render(key, request, harmful="harmful" in request.GET))


def usage(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """What a page of usage asks for once it is there: its answer with what the clusters say."""
    return HttpResponse(gallery.render("usage", request, "usage"))


def index(request: HttpRequest) -> HttpResponse:
    """All sample pages by name."""
    return HttpResponse("".join(f'<p><a href="/gallery/{key}">{key}</a></p>' for key in gallery.SAMPLES))


ENVIRONMENT_FORMS = ("change", "changes", "rules", "freezes", "recurring_freezes", "break_glass")
ENVIRONMENT_PARTS = (
    "change_approve", "change_reject", "change_withdraw", "rule_remove", "freeze_remove", "recurring_freeze_remove",
    "break_glass_close", "break_glass_confirm",
)  # fmt: skip
REQUEST_FORMS = (
    "evidence_html", "evidence_json", "approve", "reject", "withdraw", "apply", "schedule", "labels", "acknowledge", "take_back", "threads",
)  # fmt: skip
SUBJECT_FORMS = (
    "rename",
    "client_declare",
    "client_withdraw",
    "adopt",
    "roll_back",
    "reactivate",
    "version_status",
    "describe",
    "field_term",
    "minimum_version",
    "minimum_version_clear",
)
WEBHOOK_PARTS = ("test", "edit", "switch", "rotate", "remove")
UI = [
    path("", index, name="home"),
    path("demo", index, name="demo_load"),
    path("theme", index, name="theme"),
    path("tour/<int:number>", index, name="tour"),
    path("search/suggest", index, name="search_suggest"),
    path("problems", index, name="text_problems"),
    path("tour/end", index, name="tour_end"),
    path("registries/<path:registry>/subjects", index, name="subjects"),
    path("registries/<path:registry>/subjects/<str:subject>/usage", usage, name="usage"),
    *(path(f"registries/<path:registry>/subjects/<path:subject>/{name}", index, name=name) for name in SUBJECT_FORMS),
    path("registries/<path:registry>/describe", index, name="subjects_describe"),
    path("registries/<path:registry>/deprecate", index, name="subjects_deprecate"),
    path("decode", index, name="decode"),
    path("clusters/add", index, name="cluster_add"),
    *(path(f"clusters/<int:number>/{name}", index, name=f"cluster_{name}") for name in ("edit", "remove")),
    path("sources", index, name="sources"),
    path("sources/add", index, name="source_add"),
    path("sources/<int:source_id>", index, name="source"),
    path("sources/discover", index, name="source_discover"),
    *(path(f"sources/<int:source_id>/{name}", index, name=f"source_{name}") for name in ("scan", "edit", "remove")),
    *(path(f"scans/<int:scan_id>/{name}", index, name=f"scan_{name}") for name in ("progress", "cancel")),
    path("queries/<int:query_id>", index, name="query"),
    path("findings", index, name="findings"),
    path("findings/<int:finding_id>", index, name="finding"),
    path("findings/decide", index, name="findings_decide"),
    *(
        path(f"findings/<int:finding_id>/{name}", index, name=f"finding_{name}")
        for name in ("acknowledge", "reopen", "assign")
    ),
    path("mutes/<int:mute_id>/end", index, name="mute_end"),
    path("unapproved-versions", index, name="unapproved_versions"),
    path("promotions", index, name="promotions"),
    path("promotions/request", index, name="promotion_request"),
    path("promotions/<int:request_id>", index, name="promotion"),
    path("proposals/new", index, name="propose"),
    path("proposals/<int:draft_id>", index, name="draft"),
    path("proposals/<int:draft_id>/delete", index, name="draft_delete"),
    *(path(f"promotions/<int:request_id>/{name}", index, name=f"promotion_{name}") for name in REQUEST_FORMS),
    *(
        path(f"promotions/<int:request_id>/<int:thread_id>/{name}", index, name=f"promotion_thread_{name}")
        for name in ("answer", "resolve", "reopen", "take")
    ),
    path("map", index, name="map"),
    path("descriptions", index, name="descriptions"),
    path("terms", index, name="terms"),
    path("terms/<path:name>/remove", index, name="term_remove"),
    path("terms/<path:name>", index, name="term"),
    path("queries", index, name="queries"),
    path("queries/<int:query_id>", index, name="query"),
    path("queries/<int:query_id>/variables/<int:variable_id>", index, name="state_variable"),
    path("queries/<int:query_id>/variables/<int:variable_id>/compare", index, name="state_variable_compare"),
    path("state-checks/new", index, name="state_check_new"),
    path("state-checks/<int:check_id>/export", index, name="state_check_export"),
    path("inbox", index, name="inbox"),
    path("inbox/read", index, name="inbox_read"),
    path("subscriptions", index, name="subscriptions"),
    path("subscriptions/<int:subscription_id>/remove", index, name="unsubscribe"),
    path("digest", index, name="digest"),
    path("registries", index, name="registries"),
    path("registries/connect", index, name="registry_connect"),
    *(
        path(f"registries/<path:registry>/{name}", index, name=f"registry_{name}")
        for name in ("test", "connection", "disconnect", "refresh")
    ),
    path("webhooks", index, name="webhooks"),
    path("webhooks/<str:webhook>", index, name="webhook"),
    path("webhooks/<str:webhook>/deliveries/<int:delivery_id>/replay", index, name="webhook_replay"),
    *(path(f"webhooks/<str:webhook>/{name}", index, name=f"webhook_{name}") for name in WEBHOOK_PARTS),
    path("people", index, name="people"),
    path("people/change", index, name="people_change"),
    path("tokens", index, name="tokens"),
    path("tokens/<int:token_id>/revoke", index, name="token_revoke"),
    path("mutes", index, name="mutes"),
    path("environments", index, name="environments"),
    *(path(f"environments/<path:registry>/{name}", index, name=f"environment_{name}") for name in ENVIRONMENT_FORMS),
    *(
        path(f"environments/<path:registry>/{name}/<int:number>", index, name=f"environment_{name}")
        for name in ENVIRONMENT_PARTS
    ),
    path("environments/<path:registry>", index, name="environment"),
    *(
        path(f"registries/<path:registry>/{name}", index, name=name)
        for name in (
            "registry_export",
            "registry_import",
            "deleted",
            "policy",
            "policy_change",
            "policy_reset",
            "what_if",
        )
    ),
    *(
        path(f"registries/<path:registry>/copies/<int:copy_id>/{name}", index, name=name)
        for name in ("copy", "copy_file", "copy_restore", "copy_delete")
    ),
    path("search", index, name="search"),
    path("audit", index, name="audit"),
    path("fields", index, name="field"),
    path("registries/<path:registry>/transfer", index, name="transfer"),
    path("registries/<path:registry>/unused-subjects", index, name="unused_subjects"),
    path("jobs", index, name="jobs"),
    path("jobs/runs/<int:number>", index, name="job_run"),
]

urlpatterns = [
    path("gallery/", index),
    path("gallery/<str:key>", show),
    path("ui/", include((UI, "ui"))),
    path("accounts/login/", index, name="account_login"),
    path("accounts/oidc/login/", index, name="oidc_login"),
    path("accounts/logout/", index, name="account_logout"),
    path("accounts/password/change/", index, name="account_change_password"),
]
