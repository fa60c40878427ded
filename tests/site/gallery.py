"""Every template in every state, with sample data: rendered by the tests, served and photographed by `python -m tests.site.shoot`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from django.template.loader import render_to_string

from tests.site.hostile import hostile
from tests.site.samples import (
    accounts,
    comparison,
    drift,
    drift_parts,
    drift_usage,
    environments,
    fields,
    ghosts,
    home,
    jobs,
    policy,
    promotions,
    registries,
    replay,
    report,
    retire,
    search,
    simulator,
    states,
    streams,
    subjects,
)

FORM_DATA = {"login": '<b>"steward"', "password": ""}


class SignIn(forms.Form):
    """The sign-in form's fields, as django-allauth names them, and those of changing a password."""

    login = forms.CharField()
    password = forms.CharField()
    remember = forms.BooleanField(required=False)
    oldpassword = forms.CharField()
    password1 = forms.CharField()
    password2 = forms.CharField()

    def clean(self) -> None:
        """Refuse, so that every error is shown."""
        raise forms.ValidationError("The user name or the password is wrong.")


@dataclass(frozen=True, slots=True)
class Sample:
    """A template and what it is shown with; `signed_in` is whether somebody is."""

    template: str
    page: Any
    signed_in: bool = True


class Person:
    """Somebody who is signed in, as templates see a user."""

    is_authenticated = True

    def get_username(self) -> str:
        """The name in the menu."""
        return "steward"


SAMPLES: dict[str, Sample] = {
    "subjects": Sample("subjects/list.html", subjects.LIST),
    "subjects-large": Sample("subjects/list.html", subjects.LIST_LARGE),
    "subjects-counted": Sample("subjects/list.html", subjects.LIST_COUNTED),
    "subjects-prod": Sample("subjects/list.html", subjects.LIST_PROD, signed_in=False),
    "subjects-deleted": Sample("subjects/list.html", subjects.LIST_DELETED),
    "subjects-empty": Sample("subjects/list.html", subjects.LIST_EMPTY),
    "subjects-unanswered": Sample("subjects/list.html", subjects.LIST_UNANSWERED),
    "subjects-no-match": Sample("subjects/list.html", subjects.LIST_NO_MATCH),
    "subject": Sample("subjects/subject.html", subjects.SUBJECT),
    "subject-words": Sample("subjects/subject.html", subjects.SUBJECT_WORDS),
    "subject-source": Sample("subjects/subject.html", subjects.SUBJECT_SOURCE),
    "subject-settings": Sample("subjects/subject.html", subjects.SUBJECT_SETTINGS),
    "subject-broken": Sample("subjects/subject.html", subjects.SUBJECT_BROKEN),
    "subject-then": Sample("subjects/subject.html", subjects.SUBJECT_THEN),
    "subject-deleted": Sample("subjects/subject.html", subjects.SUBJECT_DELETED),
    "compare": Sample("subjects/compare.html", comparison.COMPARE),
    "compare-words": Sample("subjects/compare.html", comparison.COMPARE_WORDS),
    "compare-split": Sample("subjects/compare.html", comparison.COMPARE_SPLIT),
    "compare-same": Sample("subjects/compare.html", comparison.COMPARE_SAME),
    "compare-equal": Sample("subjects/compare.html", comparison.COMPARE_EQUAL),
    "compare-problem": Sample("subjects/compare.html", comparison.COMPARE_PROBLEM),
    "compare-other": Sample("subjects/compare.html", comparison.COMPARE_OTHER),
    "compare-formats": Sample("subjects/compare.html", comparison.COMPARE_FORMATS),
    "compare-one-side": Sample("subjects/compare.html", comparison.COMPARE_ONE_SIDE),
    "simulate": Sample("subjects/simulate.html", simulator.READ),
    "simulate-stops": Sample("subjects/simulate.html", simulator.READ_STOPS),
    "simulate-error": Sample("subjects/simulate.html", simulator.READ_ERROR),
    "simulate-modify": Sample("subjects/simulate.html", simulator.MODIFY),
    "simulate-modify-safe": Sample("subjects/simulate.html", simulator.MODIFY_SAFE),
    "simulate-modify-stops": Sample("subjects/simulate.html", simulator.MODIFY_STOPS),
    "simulate-modify-error": Sample("subjects/simulate.html", simulator.MODIFY_ERROR),
    "simulate-too-few": Sample("subjects/simulate.html", simulator.TOO_FEW),
    "simulate-problem": Sample("subjects/simulate.html", simulator.PROBLEM),
    "report-semantic": Sample("subjects/report.html", report.REPORT_SEMANTIC),
    "report": Sample("subjects/report.html", report.REPORT),
    "report-words": Sample("subjects/report.html", report.REPORT_WORDS),
    "report-empty": Sample("subjects/report.html", report.REPORT_EMPTY),
    "report-syntax": Sample("subjects/report.html", report.REPORT_SYNTAX),
    "report-ok": Sample("subjects/report.html", report.REPORT_OK),
    "report-first": Sample("subjects/report.html", report.REPORT_FIRST),
    "home": Sample("home/home.html", home.HOME),
    "home-quiet": Sample("home/home.html", home.HOME_QUIET),
    "home-signed-out": Sample("home/home.html", home.HOME_SIGNED_OUT, signed_in=False),
    "home-first": Sample("home/home.html", home.HOME_FIRST),
    "home-first-forbidden": Sample("home/home.html", home.HOME_FIRST_FORBIDDEN, signed_in=False),
    "home-first-loading": Sample("home/home.html", home.HOME_FIRST_LOADING),
    "sources": Sample("drift/sources.html", drift.SOURCE_LIST),
    "sources-empty": Sample("drift/sources.html", drift.SOURCE_LIST_EMPTY),
    "source-add": Sample("drift/source_add.html", drift.TOPIC_FORM),
    "source-add-state": Sample("drift/source_add.html", drift.STATE_FORM),
    "source-edit": Sample("drift/source_add.html", drift.EDIT_FORM),
    "source-remove": Sample("drift/confirm.html", drift_parts.REMOVE),
    "source-remove-refused": Sample("drift/confirm.html", drift_parts.REMOVE_REFUSED),
    "cluster": Sample("drift/cluster_form.html", drift_parts.CLUSTER),
    "cluster-answers": Sample("drift/cluster_form.html", drift_parts.CLUSTER_ANSWERS),
    "cluster-fails": Sample("drift/cluster_form.html", drift_parts.CLUSTER_FAILS),
    "cluster-forbidden": Sample("drift/cluster_form.html", drift_parts.CLUSTER_FORBIDDEN),
    "source": Sample("drift/source.html", drift_parts.SOURCE),
    "source-older": Sample("drift/source.html", drift_parts.SOURCE_OLDER),
    "source-no-topic": Sample("drift/source.html", drift_parts.SOURCE_NO_TOPIC),
    "source-no-match": Sample("drift/source.html", drift_parts.SOURCE_NO_MATCH),
    "source-debezium": Sample("drift/source.html", drift_parts.SOURCE_DEBEZIUM),
    "source-registry": Sample("drift/source.html", drift_parts.SOURCE_REGISTRY),
    "source-running": Sample("drift/source.html", drift.SOURCE_RUNNING),
    "source-queued": Sample("drift/source.html", drift.SOURCE_QUEUED),
    "source-never": Sample("drift/source.html", drift.SOURCE_NEVER),
    "source-read-nothing": Sample("drift/source.html", drift.SOURCE_EMPTY),
    "source-failed": Sample("drift/source.html", drift.SOURCE_FAILED),
    "findings": Sample("drift/findings.html", drift_parts.FINDING_LIST),
    "findings-reader": Sample("drift/findings.html", drift_parts.FINDING_LIST_READER),
    "mutes": Sample("drift/mutes.html", drift_parts.MUTES),
    "mutes-empty": Sample("drift/mutes.html", drift_parts.MUTES_EMPTY),
    "findings-clean": Sample("drift/findings.html", drift.FINDING_LIST_CLEAN),
    "findings-not-scanned": Sample("drift/findings.html", drift.FINDING_LIST_UNKNOWN),
    "findings-no-match": Sample("drift/findings.html", drift.FINDING_LIST_NO_MATCH),
    "finding": Sample("drift/finding.html", drift_parts.FINDING),
    "finding-acknowledged": Sample("drift/finding.html", drift_parts.FINDING_ACKNOWLEDGED),
    "finding-state": Sample("drift/finding.html", drift.FINDING_STATE),
    "finding-resolved": Sample("drift/finding.html", drift.FINDING_DONE),
    "usage": Sample("subjects/usage.html", drift_usage.USAGE),
    "usage-stored": Sample("subjects/usage.html", drift_usage.USAGE_STORED),
    "usage-problem": Sample("subjects/usage.html", drift_usage.USAGE_PROBLEM),
    "usage-nothing": Sample("subjects/usage.html", drift_usage.USAGE_NOTHING),
    "retire": Sample("subjects/retire.html", retire.EVIDENCE),
    "retire-nothing": Sample("subjects/retire.html", retire.NOTHING),
    "retire-choose": Sample("subjects/retire.html", retire.CHOOSE),
    "retire-confirm": Sample("subjects/retire.html", retire.CONFIRM),
    "retire-refused": Sample("subjects/retire.html", retire.REFUSED),
    "retire-deprecate": Sample("subjects/retire.html", retire.DEPRECATE),
    "retire-not-allowed": Sample("subjects/retire.html", retire.NOT_ALLOWED),
    "retire-done": Sample("subjects/retire.html", retire.DONE),
    "retire-done-badly": Sample("subjects/retire.html", retire.DONE_BADLY),
    "orphans": Sample("subjects/orphans.html", retire.ORPHANS),
    "orphans-none": Sample("subjects/orphans.html", retire.ORPHANS_NONE),
    "orphans-unknown": Sample("subjects/orphans.html", retire.ORPHANS_UNKNOWN),
    "search": Sample("search/search.html", search.START),
    "search-found": Sample("search/search.html", search.FOUND),
    "search-paged": Sample("search/search.html", search.PAGED),
    "search-nothing": Sample("search/search.html", search.NOTHING),
    "search-refused": Sample("search/search.html", search.REFUSED),
    "search-schema": Sample("search/search.html", search.PASTED_SCHEMA),
    "search-message": Sample("search/search.html", search.PASTED_MESSAGE),
    "search-wrong": Sample("search/search.html", search.PASTED_WRONG),
    "policy": Sample("policy/policy.html", policy.POLICY),
    "policy-empty": Sample("policy/policy.html", policy.POLICY_EMPTY),
    "policy-reader": Sample("policy/policy.html", policy.POLICY_READER),
    "what-if": Sample("policy/what_if.html", policy.WHAT_IF),
    "what-if-form": Sample("policy/what_if.html", policy.WHAT_IF_FORM),
    "what-if-nothing": Sample("policy/what_if.html", policy.WHAT_IF_NOTHING),
    "what-if-wrong": Sample("policy/what_if.html", policy.WHAT_IF_WRONG),
    "field": Sample("fields/field.html", fields.FIELD),
    "field-unseen": Sample("fields/field.html", fields.FIELD_UNSEEN),
    "field-unknown": Sample("fields/field.html", fields.FIELD_UNKNOWN),
    "references": Sample("subjects/references.html", fields.REFERENCES),
    "references-none": Sample("subjects/references.html", fields.REFERENCES_NONE),
    "describe": Sample("subjects/describe.html", fields.DESCRIBE),
    "deprecate": Sample("subjects/deprecate.html", fields.DEPRECATE),
    "deprecate-refused": Sample("subjects/deprecate.html", fields.DEPRECATE_REFUSED),
    "deprecate-done": Sample("subjects/deprecate.html", fields.DEPRECATE_DONE),
    "describe-refused": Sample("subjects/describe.html", fields.DESCRIBE_REFUSED),
    "describe-reader": Sample("subjects/describe.html", fields.DESCRIBE_READER),
    "decode": Sample("drift/decode.html", drift_usage.DECODE),
    "decode-found": Sample("drift/decode.html", drift_usage.DECODED),
    "decode-unknown": Sample("drift/decode.html", drift_usage.DECODED_UNKNOWN),
    "decode-json": Sample("drift/decode.html", drift_usage.DECODED_JSON),
    "decode-refused": Sample("drift/decode.html", drift_usage.DECODE_REFUSED),
    "promotions": Sample("promotions/list.html", promotions.LIST),
    "promotions-waiting": Sample("promotions/list.html", promotions.LIST_WAITING),
    "promotions-waiting-none": Sample("promotions/list.html", promotions.LIST_WAITING_NONE),
    "ghosts": Sample("promotions/ghosts.html", ghosts.GHOSTS),
    "ghosts-reader": Sample("promotions/ghosts.html", ghosts.GHOSTS_READER),
    "ghosts-none": Sample("promotions/ghosts.html", ghosts.GHOSTS_NONE),
    "ghosts-alone": Sample("promotions/ghosts.html", ghosts.GHOSTS_ALONE),
    "ghosts-no-match": Sample("promotions/ghosts.html", ghosts.GHOSTS_NO_MATCH),
    "promotions-together": Sample("promotions/together.html", promotions.TOGETHER_PAGE),
    "promotions-together-none": Sample("promotions/together.html", promotions.TOGETHER_NONE),
    "promotions-together-left": Sample("promotions/together.html", promotions.TOGETHER_ALL_LEFT),
    "promotions-empty": Sample("promotions/list.html", promotions.LIST_EMPTY),
    "promotions-no-match": Sample("promotions/list.html", promotions.LIST_NO_MATCH),
    "promotion-request": Sample("promotions/request.html", promotions.FORM),
    "promotion-request-errors": Sample("promotions/request.html", promotions.FORM_EMPTY),
    "promotion": Sample("promotions/promotion.html", promotions.PROMOTION),
    "replay": Sample("promotions/replay.html", replay.REPLAYED),
    "replay-failed": Sample("promotions/replay.html", replay.REPLAY_FAILED),
    "promotion-own": Sample("promotions/promotion.html", promotions.PROMOTION_OWN),
    "promotion-breaks": Sample("promotions/promotion.html", promotions.PROMOTION_BREAKS),
    "promotion-rejected": Sample("promotions/promotion.html", promotions.PROMOTION_REJECTED),
    "promotion-approved": Sample("promotions/promotion.html", promotions.PROMOTION_APPROVED),
    "promotion-failed": Sample("promotions/promotion.html", promotions.PROMOTION_FAILED),
    "promotion-scheduled": Sample("promotions/promotion.html", promotions.PROMOTION_SCHEDULED),
    "environments": Sample("environments/board.html", environments.BOARD),
    "environments-empty": Sample("environments/board.html", environments.BOARD_EMPTY),
    "environments-no-match": Sample("environments/board.html", environments.BOARD_NO_MATCH),
    "environments-alone": Sample("environments/board.html", environments.BOARD_ALONE),
    "environments-reader": Sample("environments/board.html", environments.BOARD_READER),
    "environment": Sample("environments/environment.html", environments.PAGE),
    "environment-open": Sample("environments/environment.html", environments.PAGE_OPEN),
    "environment-reader": Sample("environments/environment.html", environments.PAGE_READER),
    "proposals": Sample("proposals/list.html", environments.DRAFTS),
    "proposals-empty": Sample("proposals/list.html", environments.DRAFTS_EMPTY),
    "propose": Sample("proposals/propose.html", environments.EDITOR),
    "propose-result": Sample("proposals/propose.html", environments.EDITOR_RESULT),
    "propose-syntax": Sample("proposals/propose.html", environments.EDITOR_SYNTAX),
    "propose-equal": Sample("proposals/propose.html", environments.EDITOR_EQUAL),
    "jobs": Sample("jobs/jobs.html", jobs.PAGE),
    "jobs-quiet": Sample("jobs/jobs.html", jobs.PAGE_QUIET),
    "jobs-partial": Sample("jobs/jobs.html", jobs.PAGE_BROKEN),
    "audit": Sample("audit/list.html", promotions.AUDIT),
    "audit-empty": Sample("audit/list.html", promotions.AUDIT_EMPTY),
    "inbox": Sample("notifications/inbox.html", accounts.INBOX),
    "inbox-empty": Sample("notifications/inbox.html", accounts.INBOX_EMPTY),
    "inbox-all-read": Sample("notifications/inbox.html", accounts.INBOX_READ),
    "subscriptions": Sample("notifications/subscriptions.html", accounts.SUBSCRIPTIONS),
    "subscriptions-empty": Sample("notifications/subscriptions.html", accounts.SUBSCRIPTIONS_EMPTY),
    "subscriptions-refused": Sample("notifications/subscriptions.html", accounts.SUBSCRIPTIONS_REFUSED),
    "registries": Sample("registries/list.html", registries.LIST),
    "registries-empty": Sample("registries/list.html", registries.EMPTY),
    "registries-reader": Sample("registries/list.html", registries.READER),
    "registry-form": Sample("registries/form.html", registries.TESTED),
    "registry-form-fails": Sample("registries/form.html", registries.FAILED),
    "registry-form-new": Sample("registries/form.html", registries.NEW),
    "digest-stop": Sample("notifications/stopped.html", accounts.STOP, signed_in=False),
    "digest-stopped": Sample("notifications/stopped.html", accounts.STOPPED, signed_in=False),
    "job-run": Sample("jobs/run.html", jobs.RUN),
    "job-run-quiet": Sample("jobs/run.html", jobs.RUN_QUIET),
    "webhooks": Sample("notifications/webhooks.html", accounts.WEBHOOKS),
    "webhooks-empty": Sample("notifications/webhooks.html", accounts.WEBHOOKS_EMPTY),
    "webhook": Sample("notifications/webhook.html", accounts.WEBHOOK),
    "webhook-new": Sample("notifications/webhook.html", accounts.WEBHOOK_NEW),
    "webhook-off": Sample("notifications/webhook.html", accounts.WEBHOOK_OFF),
    "webhook-add": Sample("notifications/webhook_form.html", accounts.WEBHOOK_FORM),
    "webhook-add-refused": Sample("notifications/webhook_form.html", accounts.WEBHOOK_FORM_REFUSED),
    "people": Sample("people/people.html", accounts.PEOPLE),
    "people-alone": Sample("people/people.html", accounts.PEOPLE_ALONE),
    "people-no-match": Sample("people/people.html", accounts.PEOPLE_NO_MATCH),
    "tokens": Sample("tokens/tokens.html", accounts.TOKENS),
    "tokens-empty": Sample("tokens/tokens.html", accounts.TOKENS_EMPTY),
    "tokens-made": Sample("tokens/tokens.html", accounts.TOKENS_MADE),
    "tokens-refused": Sample("tokens/tokens.html", accounts.TOKENS_REFUSED),
    "queries": Sample("streams/queries.html", streams.QUERIES),
    "queries-empty": Sample("streams/queries.html", streams.QUERIES_EMPTY),
    "queries-reader": Sample("streams/queries.html", streams.QUERIES_READER),
    "query": Sample("streams/query.html", streams.QUERY),
    "query-no-state": Sample("streams/query.html", streams.QUERY_NO_STATE),
    "query-broken": Sample("streams/query.html", streams.QUERY_BROKEN),
    "variable": Sample("streams/variable.html", streams.VARIABLE),
    "variable-fixed": Sample("streams/variable.html", streams.VARIABLE_FIXED),
    "variable-unread": Sample("streams/variable.html", streams.VARIABLE_UNREAD),
    "variable-compare": Sample("streams/compare.html", streams.COMPARED),
    "variable-compare-no-avro": Sample("streams/compare.html", streams.COMPARED_NO_AVRO),
    "state-check": Sample("streams/check.html", streams.REPORT),
    "state-check-refused": Sample("streams/check.html", streams.REPORT_REFUSED),
    "state-check-no-state": Sample("streams/check.html", streams.REPORT_NO_STATE),
    "state-check-new": Sample("streams/check_new.html", streams.CHECK_FORM),
    "state-check-new-refused": Sample("streams/check_new.html", streams.CHECK_FORM_REFUSED),
    "state-check-new-reader": Sample("streams/check_new.html", streams.CHECK_FORM_READER),
    "discover": Sample("drift/discover.html", streams.DISCOVER),
    "discovered": Sample("drift/discover.html", streams.DISCOVERED),
    "discovered-nothing": Sample("drift/discover.html", streams.DISCOVERED_NOTHING),
    "discover-refused": Sample("drift/discover.html", streams.DISCOVER_REFUSED),
    "oidc-failed": Sample("account/oidc_failed.html", None, signed_in=False),
    "subjects-partial": Sample("subjects/list.html", states.SUBJECTS_PARTIAL),
    "home-partial": Sample("home/home.html", states.HOME_PARTIAL),
    "queries-damaged": Sample("streams/queries.html", states.QUERIES_DAMAGED),
    "sources-partial": Sample("drift/sources.html", states.SOURCES_PARTIAL),
    "sources-reader": Sample("drift/sources.html", states.SOURCES_READER),
    "source-add-reader": Sample("drift/source_add.html", states.SOURCE_ADD_READER),
    "source-reader": Sample("drift/source.html", states.SOURCE_READER),
    "findings-partial": Sample("drift/findings.html", states.FINDINGS_PARTIAL),
    "finding-reader": Sample("drift/finding.html", states.FINDING_READER),
    "mutes-reader": Sample("drift/mutes.html", states.MUTES_READER),
    "report-reader": Sample("subjects/report.html", states.REPORT_READER),
    "promotion-applying": Sample("promotions/promotion.html", states.PROMOTION_APPLYING),
    "promotion-request-reader": Sample("promotions/request.html", states.REQUEST_READER),
    "propose-reader": Sample("proposals/propose.html", states.PROPOSE_READER),
    "webhooks-reader": Sample("notifications/webhooks.html", states.WEBHOOKS_READER),
    "message-not-found": Sample("errors/message.html", home.NOT_FOUND),
    "message-no-role": Sample("errors/message.html", home.NO_ROLE),
    "message-forbidden": Sample("errors/message.html", home.FORBIDDEN, signed_in=False),
    "login": Sample("account/login.html", None, signed_in=False),
    "logout": Sample("account/logout.html", None),
    "password-change": Sample("account/password_change.html", None),
    "account-inactive": Sample("account/account_inactive.html", None, signed_in=False),
    "signup-closed": Sample("account/signup_closed.html", None, signed_in=False),
    "error-400": Sample("400.html", None),
    "error-403": Sample("403.html", None),
    "error-403-csrf": Sample("403_csrf.html", None),
    "error-404": Sample("404.html", None),
    "error-500": Sample("500.html", None),
    "away": Sample("503.html", states.AWAY),
    "away-unknown": Sample("503.html", states.AWAY_UNKNOWN),
}

#: of each template the first sample, which is the fullest, and the last: what costs a browser is done with these
FIRST = list({sample.template: key for key, sample in reversed(SAMPLES.items())}.values())
ENDS = list(dict.fromkeys([*FIRST, *{sample.template: key for key, sample in SAMPLES.items()}.values()]))


def render(key: str, request: HttpRequest, part: str = "", *, harmful: bool = False) -> str:
    """A sample as HTML; `part` renders only that partial of its template, `harmful` fills it with hostile texts."""
    sample = SAMPLES[key]
    page = hostile(sample.page) if harmful else sample.page
    request.user = Person() if sample.signed_in else AnonymousUser()  # type: ignore[assignment]
    context: dict[str, Any] = {"form": SignIn(FORM_DATA)} if page is None else {"page": page}
    return render_to_string(f"{sample.template}#{part}" if part else sample.template, context, request)
