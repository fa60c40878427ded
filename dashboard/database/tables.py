"""Which tables the answers depend on that are given before Django: every table of the product stands in a list here.

A table that stands nowhere counts as one that they depend on; a test holds both lists against the models, and the
first against what Django reads for those answers. By migrations the tables of the first list tell of changes from
elsewhere too.
"""

from __future__ import annotations

from typing import Final

#: what is registered, who may see it, and what stands between a repeated registration and its answer
ANSWERS: Final = frozenset(
    {
        "access_apitoken",
        "access_groupgrant",
        "access_rolegrant",
        "access_user",
        "access_user_groups",
        "auth_group",
        "promotions_breakglass",
        "promotions_environment",
        "subjects_association",
        "subjects_config",
        "subjects_context",
        "subjects_mode",
        "subjects_registry",
        "subjects_schema",
        "subjects_schemareference",
        "subjects_schemaversion",
        "subjects_subject",
        "subjects_versionstanding",
    }
)

#: of the tables above, columns that are bookkeeping: an UPDATE of nothing else changes no answer
BOOKKEEPING: Final = {
    "access_apitoken": frozenset({"last_used_at", "last_used_from"}),
    "access_user": frozenset({"last_login"}),
    "subjects_registry": frozenset(
        {"failing_since", "next_sync_at", "sync_error", "sync_lease_until", "sync_tag", "synced_at"}
    ),
}

#: what no answer reads that is given before Django
BESIDE: Final = frozenset(
    {
        "access_ownership",
        "access_user_user_permissions",
        "account_emailaddress",
        "account_emailconfirmation",
        "audit_auditevent",
        "audit_chainhead",
        "auth_group_permissions",
        "auth_permission",
        "django_content_type",
        "django_session",
        "drift_cluster",
        "drift_connector",
        "drift_deployment",
        "drift_fieldstatistic",
        "drift_finding",
        "drift_leastversion",
        "drift_mute",
        "drift_scan",
        "drift_schemause",
        "drift_source",
        "drift_topic",
        "notifications_attempt",
        "notifications_delivery",
        "notifications_digest",
        "notifications_digestwish",
        "notifications_inboxentry",
        "notifications_jobrun",
        "notifications_notice",
        "notifications_subscription",
        "notifications_webhook",
        "promotions_acknowledgement",
        "promotions_applystep",
        "promotions_boardchange",
        "promotions_boardstate",
        "promotions_boardsubject",
        "promotions_comment",
        "promotions_draft",
        "promotions_environmentchange",
        "promotions_freezewindow",
        "promotions_promotionoutlook",
        "promotions_promotionrequest",
        "promotions_recurringfreeze",
        "promotions_release",
        "promotions_renamedecision",
        "promotions_requestitem",
        "promotions_review",
        "promotions_reviewrule",
        "promotions_thread",
        "promotions_sameperson",
        "search_indexedfield",
        "search_indexedsubject",
        "search_searchterm",
        "search_stalesubject",
        "socialaccount_socialaccount",
        "socialaccount_socialapp",
        "socialaccount_socialtoken",
        "streams_carriedversion",
        "streams_checkpointstore",
        "streams_queryinput",
        "streams_statecheck",
        "streams_stateschema",
        "streams_statevariable",
        "streams_streamquery",
        "subjects_client",
        "subjects_keptcopy",
        "subjects_subjectactivity",
        "subjects_subjectnote",
    }
)

#: what triggers alone write, in the transaction of the first list's table that they follow: with that it is known
FOLLOWING: Final = {"subjects_subjectactivity": "subjects_schemaversion"}

#: functions of ours that a SELECT may call although they write: to which tables
WRITING_FUNCTIONS: Final = {"audit_seal": "audit_auditevent"}
