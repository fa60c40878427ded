"""Requesting versions in an environment: one, several, or a proposed text; as a draft or submitted immediately."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.db.models import F, Q
from django.utils import timezone

from registry.access.roles import Actor, require
from registry.access.selectors import owners_of_many
from registry.audit.context import record
from registry.errors import InvalidInput, NotAllowed, WrongState
from registry.formats import DEFAULT_FORMAT
from registry.formats.base import Reference
from registry.promotions.environments.locking import fresh
from registry.promotions.events import ask_for_reviews, tell
from registry.promotions.hook_points import require_finding
from registry.promotions.models import Draft, Environment, PromotionRequest, RequestItem
from registry.promotions.models.requests import clean_labels
from registry.promotions.plan import builder
from registry.promotions.plan.target_state import went_back
from registry.promotions.plan.types import CONFIG, ItemText, Plan, PromotionSpec, SpecItem
from registry.promotions.requests import state_machine
from registry.promotions.requests.linked_requests import finding_behind
from registry.promotions.requests.selectors import require_earlier
from registry.promotions.reviews.eligibility import needed_for
from registry.promotions.selectors import get_environment, get_environments
from registry.subjects.models import Registry, SchemaVersion
from registry.subjects.permissions import Visible, require_references
from registry.subjects.policy.effective_policy import config_and_settings
from registry.subjects.registration.locks import retried
from registry.subjects.registration.submission import prepare
from registry.subjects.selectors import get_version
from registry.subjects.versions.qualified_names import SubjectName
from registry.subjects.versions.versions import parse_version

MAX_ITEMS: Final = 200
MAX_REFERENCES: Final = 200
#: states from which a requester can withdraw; a partly written request is given up instead
WITHDRAWABLE: Final = frozenset({PromotionRequest.DRAFT, *PromotionRequest.PLANNED_STATES})
ItemKey = tuple[SubjectName, int | str]


@retried
def request_promotion(
    *,
    source: str,
    target: str,
    by: Actor,
    subject: SubjectName | None = None,
    version: int | str | None = None,
    items: Sequence[ItemKey] = (),
    with_config: bool = False,
    reason: str = "",
    draft: bool = False,
    again_of: int | None = None,
    labels: Iterable[str] = (),
) -> int:
    """Request a version of one environment in a later one, or several `items` as one plan; returns the number.

    `with_config` includes the subjects' settings. A draft is visible only to its requester until it is submitted. If
    the source got the versions for a drift finding, this request answers it too. `again_of` is the rejected or
    withdrawn request that this one resubmits; `labels` are its initial labels. Raises InvalidInput for a wrong order or
    set of items, WrongState if one of them is requested already or there is nothing to do, SubjectNotFound,
    VersionNotFound, NotAllowed, NotSignedIn.
    """
    keys = _requested_keys(subject, version, items)
    origin, goal = get_environments(source, target)
    require_requester(goal, [name for name, _ in keys], by)
    for name, _ in keys:
        require(by, "schema.read", registry=origin.registry.name, subject=name.qualified)
    if goal.position <= origin.position:
        raise InvalidInput(f"{target} doesn't come after {source} in the environment order.")
    rows = find_versions(origin.registry, keys)
    spec_items = tuple(SpecItem(name, row.version) for (name, _), row in zip(keys, rows, strict=True))
    spec = PromotionSpec(
        target=goal, items=spec_items, source=origin, kind=PromotionRequest.PROMOTE, with_config=with_config
    )
    finding = finding_behind(origin, rows)
    return add_request(
        spec, rows=rows, by=by, reason=reason, draft=draft, finding=finding, again_of=again_of, labels=labels
    )


@retried
def propose_version(
    *,
    target: str,
    subject: SubjectName,
    text: str,
    by: Actor,
    schema_type: str = DEFAULT_FORMAT,
    references: Sequence[Reference] = (),
    reason: str | None = None,
    draft_id: int | None = None,
    finding: int | None = None,
    again_of: int | None = None,
    labels: Iterable[str] = (),
) -> int:
    """Request a new text as the next version of a subject of the target; returns the number.

    The text is parsed under the limits of a registration, and registered when the approved request is applied.
    `draft_id` is the draft that it was written in, which is deleted. The draft's reason, finding and resubmitted
    request are the defaults. Raises InvalidSchema, SchemaTooLarge, SchemaTooCostly, InvalidReference, WrongState,
    NotAllowed, NotSignedIn, FindingNotFound.
    """
    goal = get_environment(target)
    _refuse_bad_names([subject])
    require_requester(goal, [subject], by)
    if len(references) > MAX_REFERENCES:
        raise InvalidInput(f"The schema has {len(references)} references. The maximum is {MAX_REFERENCES}.")
    state_machine.refuse_unstorable(text)
    draft = None if draft_id is None else Draft.objects.filter(pk=draft_id, author_id=by.user_id).first()
    begun_with = draft.finding if draft else None
    if finding is not None and finding != begun_with:
        require_finding(finding, by)
    settings = config_and_settings(goal.registry, subject)[1]
    is_new = settings.validate_new_schemas is not False
    require_references(Visible(goal.registry, by), references, context=subject.context)
    submission = prepare(goal.registry, subject, text, schema_type, references, is_new=is_new)
    proposed = ItemText(schema_type=submission.schema.schema_type, text=text, references=submission.references)
    item = SpecItem(subject, 0, proposed)
    spec = PromotionSpec(target=goal, items=(item,), kind=PromotionRequest.PROPOSE)
    number = add_request(
        spec,
        fingerprints=[submission.schema.fingerprint],
        by=by,
        reason=reason if reason is not None else draft.reason if draft else "",
        finding=finding if finding is not None else begun_with,
        again_of=again_of if again_of is not None else _begun_again(draft, goal, subject),
        labels=labels,
    )
    if draft:
        draft.delete()
    return number


def _begun_again(draft: Draft | None, goal: Environment, subject: SubjectName) -> int | None:
    """Return the request that a draft resubmits, if the draft's subject and target are still the original ones."""
    if draft is None or draft.registry_id != goal.registry_id:
        return None
    return draft.again_of_id if (draft.context_name, draft.subject_name) == (subject.context, subject.subject) else None


def add_request(
    spec: PromotionSpec,
    *,
    by: Actor,
    reason: str,
    rows: Sequence[SchemaVersion] = (),
    fingerprints: Sequence[str] = (),
    draft: bool = False,
    finding: int | None = None,
    again_of: int | None = None,
    labels: Iterable[str] = (),
) -> int:
    """Create a request of any kind; returns the number. The caller has checked the rights and opened a transaction.

    `rows` are the versions in the order of the spec's items; proposed texts have `fingerprints` instead.
    Raises WrongState if there is nothing to do or a schema is requested already, InvalidInput, and what
    `require_earlier` raises.
    """
    user_id, remark, named = (
        state_machine.person(by),
        state_machine.checked_text(reason, "reason"),
        clean_labels(labels),
    )
    if again_of is not None:
        require_earlier(again_of, target=str(spec.target), subjects=[item.subject for item in spec.items], by=by)
    plan = builder.make_plan(replace(spec, answers=finding))
    _refuse_nothing_to_do(spec, plan)
    first = spec.items[0]
    sentence = f"request {first.subject.qualified}{_numbered(first)} in {spec.target}"
    record(by=by, why=f"{sentence}: {remark}" if remark else sentence)
    request = PromotionRequest.objects.create(
        kind=spec.kind,
        source=spec.source,
        target=spec.target,
        version=rows[0] if rows else None,
        context_name=first.subject.context,
        subject_name=first.subject.subject,
        version_number=first.version,
        fingerprint=rows[0].schema.fingerprint if rows else fingerprints[0],
        config=_config_of(plan) if spec.with_config else None,
        reason=remark,
        state=PromotionRequest.DRAFT if draft else PromotionRequest.IN_REVIEW,
        plan=plan.to_dict(),
        plan_hash=plan.hash,
        requested_by_id=user_id,
        finding=finding,
        again_of_id=again_of,
        labels=named,
    )
    _add_items(_items_of(request, spec, rows, fingerprints), spec.target)
    if not draft:
        ask_for_reviews(request, by=by)
    return request.pk


@retried
def submit(*, request_id: int, by: Actor) -> str:
    """Submit a draft for review, with a new plan; returns the state. Raises WrongState, NotAllowed."""
    request = state_machine.locked_for(request_id, by)
    _require_own(request, by)
    if request.state != PromotionRequest.DRAFT:
        raise WrongState(f"Request {request.pk} is {request.state}. Only a draft can be submitted.")
    require_requester(request.target, [SubjectName(*name) for name in _names(request)], by)
    record(by=by, why=f"submit request {request.pk}")
    state_machine.refresh(request, by)
    state_machine.move(request, PromotionRequest.IN_REVIEW, moved="", requested_at=timezone.now())
    ask_for_reviews(request, by=by)
    return request.state


def recheck(*, request_id: int, by: Actor) -> str:
    """Run the checks of a request again, with the right to request it; returns the state.

    A changed plan is stored, and its approvals no longer count. If it returns to a state that was reviewed before,
    those reviews count again. Raises WrongState, NotAllowed, RemoteUnavailable.
    """
    _refresh_mirror(request_id)
    with transaction.atomic():
        request = state_machine.locked_for(request_id, by)
        for subject in state_machine.requested_subjects(request):
            require(by, "promotion.request", registry=request.target.registry.name, subject=subject)
        if request.state not in WITHDRAWABLE:
            raise WrongState(f"Request {request.pk} is {request.state}, so its checks can no longer be run.")
        record(by=by, why=f"run the checks of request {request.pk}")
        state_machine.refresh(request, by)
        count_reviews(request, by)
        return request.state


def withdraw(*, request_id: int, by: Actor) -> str:
    """Withdraw a request, as its requester or an admin; returns the state. Raises WrongState, NotAllowed."""
    with transaction.atomic():
        request = state_machine.locked_for(request_id, by)
        _require_own(request, by)
        if request.state not in WITHDRAWABLE:
            raise WrongState(f"Request {request.pk} is {request.state}, so it can't be withdrawn.")
        was_draft = request.state == PromotionRequest.DRAFT
        record(by=by, why=f"withdraw request {request.pk}")
        state_machine.move(request, PromotionRequest.WITHDRAWN, apply_at=None)
        if not was_draft:
            tell(request, "promotion.withdrawn", f"{by.name} withdrew it.", by=by)
        return request.state


def count_reviews(request: PromotionRequest, by: Actor) -> None:
    """Move a request in review to approved if it has all approvals that it needs."""
    if request.state == PromotionRequest.IN_REVIEW and needed_for(request).is_met:
        state_machine.move(request, PromotionRequest.APPROVED, moved="")


def count_reviews_in(environment: Environment, by: Actor) -> None:
    """Count the reviews of all requests in review again, after the environment's rules have changed."""
    rows = PromotionRequest.objects.select_for_update(of=("self",)).filter(
        target=environment, state=PromotionRequest.IN_REVIEW
    )
    for request in rows.select_related("source__registry", "target__registry", "requested_by").order_by("pk"):
        count_reviews(request, by)
        if request.state == PromotionRequest.APPROVED:
            tell(request, "promotion.reviewed", f"The rules of {environment} changed. It is approved now.", by=by)


def require_requester(target: Environment, subjects: Sequence[SubjectName], by: Actor) -> None:
    """Raise NotAllowed or NotSignedIn unless the actor may request these: by role, and by ownership if required."""
    registry = target.registry.name
    for subject in subjects:
        require(by, "promotion.request", registry=registry, subject=subject.qualified)
    user_id = state_machine.person(by)
    if not target.owners_only:
        return
    for name, owners in owners_of_many(registry, [subject.qualified for subject in subjects]).items():
        if user_id not in owners.user_ids:
            theirs = ", ".join(owner.username for owner in owners.people[:5]) or "nobody yet, so add an owner"
            raise NotAllowed(f"Only owners can request {name} in {registry}: {theirs}.")


def find_versions(registry: Registry, keys: Sequence[ItemKey]) -> list[SchemaVersion]:
    """Return the live versions of the keys, with their schemas, in order and with what a plan reads of each; one query.

    Raises InvalidVersion, SubjectNotFound, VersionNotFound.
    """
    numbered_keys = [(name, parse_version(version)) for name, version in keys]
    rows_by_key: dict[tuple[SubjectName, int | None], SchemaVersion] = {}
    condition = Q(pk__in=())
    for name, number in numbered_keys:
        here = Q(subject__context__name=name.context, subject__name=name.subject)
        condition |= here & Q(version=F("newest") if number is None else number)
    for row in builder.planned_versions(registry).filter(condition, deleted_at=None):
        name = _name_of(row)
        rows_by_key[name, row.version] = row
        if row.version == builder.newest_of(row):
            rows_by_key[name, None] = row
    for name, number in numbered_keys:
        if (name, number) not in rows_by_key:
            get_version(registry, name, number or "latest")  # raises for the missing part
            return find_versions(registry, keys)  # it was registered meanwhile
    return [rows_by_key[key] for key in numbered_keys]


def _name_of(row: SchemaVersion) -> SubjectName:
    return SubjectName(row.subject.context.name, row.subject.name)


def _requested_keys(subject: SubjectName | None, version: int | str | None, items: Sequence[ItemKey]) -> list[ItemKey]:
    """Return the keys of the requested versions. Raises InvalidInput for none, too many, or a repeated subject."""
    keys = [*(((subject, "latest" if version is None else version),) if subject else ()), *items]
    if not keys:
        raise InvalidInput("Enter what to promote: a subject with a version, or several items.")
    if len(keys) > MAX_ITEMS:
        raise InvalidInput(f"A request can have {MAX_ITEMS} items, not {len(keys)}.")
    names = [name for name, _ in keys]
    _refuse_bad_names(names)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidInput(f"{twice.qualified} is listed twice. A request can have one version of a subject.")
    return keys


def _refuse_bad_names(names: Sequence[SubjectName]) -> None:
    if any(not name.subject for name in names):
        raise InvalidInput("A subject needs a name.")


def _refuse_nothing_to_do(spec: PromotionSpec, plan: Plan) -> None:
    if plan.has_work:
        return
    first = spec.items[0]
    for item in spec.items:
        if spec.source and (back := went_back(spec.source, spec.target, item.subject, item.version)):
            raise WrongState(f"{back.sentence} {back.cure}")
    more = f" and the other {len(spec.items) - 1}" if len(spec.items) > 1 else ""
    raise WrongState(f"{spec.target} already has {first.subject.qualified}{_numbered(first, ' version ')}{more}.")


def _numbered(item: SpecItem, word: str = " v") -> str:
    return f"{word}{item.version}" if item.version else ""


def _config_of(plan: Plan) -> dict[str, Any]:
    """Return the promoted settings by subject, for display; the plan is what runs."""
    return {step.subject: step.config for step in plan.steps if step.kind == CONFIG}


def _items_of(
    request: PromotionRequest, spec: PromotionSpec, rows: Sequence[SchemaVersion], fingerprints: Sequence[str]
) -> list[RequestItem]:
    new_items = []
    for position, item in enumerate(spec.items):
        text = item.text
        new_items.append(
            RequestItem(
                request=request,
                position=position,
                open_in=spec.target if request.state in state_machine.HOLDING else None,
                context_name=item.subject.context,
                subject_name=item.subject.subject,
                version_number=item.version,
                fingerprint=fingerprints[position] if text else rows[position].schema.fingerprint,
                schema_type=text.schema_type if text else rows[position].schema.schema_type,
                text=text.text if text else "",
                references=[asdict(reference) for reference in text.references] if text else [],
            )
        )
    return new_items


def _add_items(items: Sequence[RequestItem], target: Environment) -> None:
    """Insert the items in a fixed order, so that two requests can't deadlock. Raises WrongState."""
    ordered = sorted(items, key=lambda item: (item.context_name, item.subject_name, item.fingerprint))
    try:
        with transaction.atomic():
            RequestItem.objects.bulk_create(ordered)
    except IntegrityError as error:
        raise WrongState(state_machine.ALREADY_REQUESTED.format(target=target)) from error


def _names(request: PromotionRequest) -> list[tuple[str, str]]:
    return list(request.items.values_list("context_name", "subject_name"))


def _require_own(request: PromotionRequest, by: Actor) -> None:
    """Raise NotAllowed or NotSignedIn unless the actor is the requester, within their token, or an admin."""
    registry, subject = request.target.registry.name, state_machine.subject_of(request).qualified
    if by.user_id is not None and by.user_id == request.requested_by_id:
        require(by, "promotion.request", registry=registry, subject=subject)
    else:
        require(by, "registry.manage", registry=registry)


def _refresh_mirror(request_id: int) -> None:
    """Refresh the mirror of a remote target, before any transaction; an unknown number is refused later."""
    environment = Environment.objects.filter(pk__in=PromotionRequest.objects.filter(pk=request_id).values("target"))
    for target in environment.select_related("registry"):
        fresh(target)
