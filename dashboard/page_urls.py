"""URLs of the pages."""

from __future__ import annotations

from typing import Final

from django.urls import include, path

from dashboard.audit import views as audit
from dashboard.compatibility.text_problems import text_problems
from dashboard.home import tour
from dashboard.home import views as home
from dashboard.jobs import views as jobs
from dashboard.lineage import page as lineage
from dashboard.notifications import views as notifications
from dashboard.notifications.forms import DigestForm
from dashboard.people import views as people
from dashboard.proposals import page as proposals
from dashboard.search import suggestions
from dashboard.search import views as search
from dashboard.sources import views as sources
from dashboard.streams import views as streams
from dashboard.subjects import glossary, team_figures
from dashboard.subjects import views as subjects
from dashboard.usage import views as usage
from dashboard.usage.rule_trial import RuleTrialView

#: pages about a subject
_SUBJECT: Final = [
    path("", subjects.subject_page, name="subject"),
    path("switch", subjects.switch, name="subject_switch"),
    path("compare", subjects.compare, name="compare"),
    path("report", subjects.compatibility_report, name="report"),
    path("simulate", subjects.simulate, name="simulate"),
    path("references", subjects.reference_graph, name="references"),
    path("try-rule", RuleTrialView.as_view(), name="try_rule"),
    path("usage", usage.usage, name="usage"),
    path("clients", usage.DeclareClientView.as_view(), name="client_declare"),
    path("clients/withdraw", usage.client_withdraw, name="client_withdraw"),
    path("retire", usage.evidence, name="retire"),
    path("retire/choose", usage.choose, name="retire_choose"),
    path("retire/confirm", usage.ConfirmRetirementView.as_view(), name="retire_confirm"),
    path("retire/done", usage.done, name="retire_done"),
    *(path(route, view, name=name) for route, name, view in subjects.SUBJECT_FORMS),
]
_SOURCES: Final = [
    path("clusters/add", sources.ClusterFormView.as_view(), name="cluster_add"),
    path("clusters/<int:cluster_id>/edit", sources.ClusterFormView.as_view(), name="cluster_edit"),
    path("clusters/<int:cluster_id>/remove", sources.ClusterRemoveView.as_view(), name="cluster_remove"),
    path("sources", sources.source_list, name="sources"),
    path("sources/add", sources.SourceAddView.as_view(), name="source_add"),
    path("sources/discover", sources.DiscoverView.as_view(), name="source_discover"),
    path("sources/<int:source_id>", sources.source_page, name="source"),
    path("sources/<int:source_id>/edit", sources.SourceEditView.as_view(), name="source_edit"),
    path("sources/<int:source_id>/remove", sources.SourceRemoveView.as_view(), name="source_remove"),
    path("sources/<int:source_id>/scan", sources.source_scan, name="source_scan"),
    path("scans/<int:scan_id>/progress", sources.scan_progress, name="scan_progress"),
    path("scans/<int:scan_id>/cancel", sources.scan_cancel, name="scan_cancel"),
]
_WEBHOOK: Final = [
    path("", notifications.webhook_page, name="webhook"),
    path("/edit", notifications.WebhookEditView.as_view(), name="webhook_edit"),
    path("/remove", notifications.WebhookRemoveView.as_view(), name="webhook_remove"),
    path("/rotate", notifications.webhook_rotate, name="webhook_rotate"),
    path("/test", notifications.webhook_test, name="webhook_test"),
    path("/switch", notifications.webhook_switch, name="webhook_switch"),
    path("/deliveries/<int:delivery_id>/replay", notifications.webhook_replay, name="webhook_replay"),
]

app_name = "ui"
urlpatterns = [
    path("", home.home, name="home"),
    path("demo", home.demo_load, name="demo_load"),
    path("theme", home.theme, name="theme"),
    path("tour/<int:number>", tour.tour, name="tour"),
    path("tour/end", tour.tour_end, name="tour_end"),
    path("", include("dashboard.environments.views")),
    path("audit", audit.audit, name="audit"),
    path("audit/export", audit.audit_export, name="audit_export"),
    path("jobs", jobs.jobs, name="jobs"),
    path("jobs/runs/<int:number>", jobs.job_run, name="job_run"),
    path("people", people.people, name="people"),
    path("people/change", people.PeopleFormView.as_view(), name="people_change"),
    path("tokens", people.TokenFormView.as_view(), name="tokens"),
    path("tokens/<int:token_id>/revoke", people.revoke, name="token_revoke"),
    path("", include("dashboard.registries.views")),
    path("registries/<segment:registry>/subjects", subjects.subject_list, name="subjects"),
    path("registries/<segment:registry>/export", subjects.export, name="subjects_export"),
    path("registries/<segment:registry>/deprecate", subjects.deprecate, name="subjects_deprecate"),
    path("registries/<segment:registry>/describe", subjects.describe_several, name="subjects_describe"),
    path("registries/<segment:registry>/subjects/<segment:subject>/", include(_SUBJECT)),
    path("registries/<segment:registry>/unused-subjects", usage.unused_subjects, name="unused_subjects"),
    path("descriptions", team_figures.descriptions, name="descriptions"),
    path("terms", glossary.TermsView.as_view(), name="terms"),
    path("terms/<segment:name>", glossary.TermView.as_view(), name="term"),
    path("terms/<segment:name>/remove", glossary.TermRemoveView.as_view(), name="term_remove"),
    path("map", lineage.lineage_map, name="map"),
    path("fields", subjects.field, name="field"),
    path("decode", usage.DecodeView.as_view(), name="decode"),
    path("search", search.search, name="search"),
    path("search/suggest", suggestions.suggest, name="search_suggest"),
    path("", include(_SOURCES)),
    path("", include("dashboard.findings.views")),
    path("queries", streams.query_list, name="queries"),
    path("queries/<int:query_id>", streams.query_page, name="query"),
    path("queries/<int:query_id>/variables/<int:variable_id>", streams.variable_page, name="state_variable"),
    path(
        "queries/<int:query_id>/variables/<int:variable_id>/compare",
        streams.variable_compare,
        name="state_variable_compare",
    ),
    path("state-checks/new", streams.StateCheckView.as_view(), name="state_check_new"),
    path("state-checks/<int:check_id>", streams.check_page, name="state_check"),
    path("state-checks/<int:check_id>/export", streams.check_export, name="state_check_export"),
    path("inbox", notifications.inbox, name="inbox"),
    path("inbox/read", notifications.mark_read, name="inbox_read"),
    path(
        "inbox/digest",
        notifications.SubscriptionFormView.as_view(form_class=DigestForm, http_method_names=["post"]),
        name="digest",
    ),
    path("digest/stop/<str:token>", notifications.digest_stop, name="digest_stop"),
    path("inbox/subscriptions", notifications.SubscriptionFormView.as_view(), name="subscriptions"),
    path("inbox/subscriptions/<int:subscription_id>/remove", notifications.unsubscribe, name="unsubscribe"),
    path("webhooks", notifications.webhook_list, name="webhooks"),
    path("webhooks/add", notifications.WebhookFormView.as_view(), name="webhook_add"),
    path("webhooks/<slug:webhook>", include(_WEBHOOK)),
    path("", include("dashboard.promotions.views")),
    path("problems", text_problems, name="text_problems"),
    path("proposals", proposals.drafts, name="proposals"),
    path("proposals/new", proposals.propose, name="propose"),
    path("proposals/<int:draft_id>", proposals.draft, name="draft"),
    path("proposals/<int:draft_id>/delete", proposals.draft_delete, name="draft_delete"),
]
