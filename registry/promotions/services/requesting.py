"""Asking for versions in an environment: one or a set, or a proposed text; as a draft first, or at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from registry.access.roles import Actor, require
from registry.access.selectors import owners_of_many
from registry.audit.services import record
from registry.errors import InvalidInput, NotAllowed, WrongState
from registry.formats.base import Reference
from registry.promotions import planning
from registry.promotions.eligible import needed_for
from registry.promotions.labels import clean_labels
from registry.promotions.models import Draft, Environment, PromotionRequest, RequestItem
from registry.promotions.origins import require_finding
from registry.promotions.plan import CONFIG, ItemText, Plan, Wish, WishedItem
from registry.promotions.selectors import get_environment
from registry.promotions.selectors.answers import finding_behind
from registry.promotions.services.current import (
    ASKED_ALREADY,
    HOLDING,
    asked_subjects,
    locked_for,
    move,
    person,
    refresh,
    subject_of,
    words,
)
from registry.promotions.services.earlier import require_earlier
from registry.promotions.services.mirrored import fresh
from registry.promotions.telling import ask_for_reviews, tell
from registry.subjects.models import Registry, SchemaVersion
from registry.subjects.names import SubjectName
from registry.subjects.selectors import get_version
from registry.subjects.selectors.effective import config_and_settings
from registry.subjects.selectors.submission import prepare
from registry.subjects.selectors.versions import parse_version
from registry.subjects.selectors.visible import Visible, require_references
from registry.subjects.services.locks import retried

MAX_ITEMS: Final = 200
MAX_REFERENCES: Final = 200
#: from these a requester can take it back; one of which a part is written is given up instead
WITHDRAWABLE: Final = frozenset({PromotionRequest.DRAFT, *PromotionRequest.PLANNED_STATES})
Asked = tuple[SubjectName, int | str]


@retried
def request_promotion(
    *,
    source: str,
    target: str,
    by: Actor,
    subject: SubjectName | None = None,
    version: int | str | None = None,
    items: Sequence[Asked] = (),
    with_config: bool = False,
    reason: str = "",
    draft: bool = False,
    again_of: int | None = None,
    labels: Iterable[str] = (),
) -> int:
    """Ask for a version of one environment in a later one, or for several `items` as one plan; gives the number.

    `with_config` brings the subjects' settings along. A draft is its requester's alone until it is submitted. The drift
    finding for which the source got the versions is the one that this request answers, too. `again_of` is the request,
    rejected or withdrawn, that this one asks for again; `labels` are what it has from the beginning.
    Raises InvalidInput for an order or a set that doesn't fit, WrongState where one of them is asked for already or
    there is nothing to do, SubjectNotFound, VersionNotFound, NotAllowed, NotSignedIn.
    """
    asked = _asked(subject, version, items)
    origin, goal = get_environment(source), get_environment(target)
    require_requester(goal, [name for name, _ in asked], by)
    for name, _ in asked:
        require(by, "schema.read", registry=origin.registry.name, subject=name.qualified)
    if goal.position <= origin.position:
        raise InvalidInput(f"{target} doesn't come after {source} in the promotion order.")
    rows = find_versions(origin.registry, asked)
    wished = tuple(WishedItem(name, row.version) for (name, _), row in zip(asked, rows, strict=True))
    wish = Wish(target=goal, items=wished, source=origin, kind=PromotionRequest.PROMOTE, with_config=with_config)
    finding = finding_behind(origin, rows)
    return add_request(
        wish, rows=rows, by=by, reason=reason, draft=draft, finding=finding, again_of=again_of, labels=labels
    )


@retried
def propose_version(
    *,
    target: str,
    subject: SubjectName,
    text: str,
    by: Actor,
    schema_type: str = "AVRO",
    references: Sequence[Reference] = (),
    reason: str | None = None,
    draft_id: int | None = None,
    finding: int | None = None,
    again_of: int | None = None,
    labels: Iterable[str] = (),
) -> int:
    """Ask for a text as the next version of a subject of the target, which it has nowhere yet; gives the number.

    The text is read under the limits of a registration, and is registered when the approved request is applied.
    `draft_id` is the draft that it was written in, which ends with this: its reason, the drift finding that it answers
    and the request that it asks for again are the request's where none is given here.
    Raises InvalidSchema, SchemaTooLarge, SchemaTooCostly, InvalidReference, WrongState, NotAllowed, NotSignedIn,
    FindingNotFound.
    """
    goal = get_environment(target)
    _refuse_bad_names([subject])
    require_requester(goal, [subject], by)
    if len(references) > MAX_REFERENCES:
        raise InvalidInput(f"The schema has {len(references)} references; {MAX_REFERENCES} are taken.")
    _refuse_unstorable(text)
    draft = None if draft_id is None else Draft.objects.filter(pk=draft_id, author_id=by.user_id).first()
    begun_with = draft.finding if draft else None
    if finding is not None and finding != begun_with:
        require_finding(finding, by)
    settings = config_and_settings(goal.registry, subject)[1]
    is_new = settings.validate_new_schemas is not False
    require_references(Visible(goal.registry, by), references, context=subject.context)
    submission = prepare(goal.registry, subject, text, schema_type, references, is_new=is_new)
    proposed = ItemText(schema_type=submission.schema.schema_type, text=text, references=submission.references)
    item = WishedItem(subject, 0, proposed)
    wish = Wish(target=goal, items=(item,), kind=PromotionRequest.PROPOSE)
    number = add_request(
        wish,
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
    """The request that a draft asks for again, if it still is of the subject and the target that it was begun for."""
    if draft is None or draft.registry_id != goal.registry_id:
        return None
    return draft.again_of_id if (draft.context_name, draft.subject_name) == (subject.context, subject.subject) else None


def add_request(
    wish: Wish,
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
    """The rows of a request of any kind, whose right was asked before; gives the number. Inside a transaction.

    `rows` are the versions in the order of the wish's items, `fingerprints` those of proposed texts instead.
    Raises WrongState where there is nothing to do or a schema is asked for already, InvalidInput, and what `again_of`
    raises.
    """
    user_id, said, named = person(by), words(reason, "reason"), clean_labels(labels)
    if again_of is not None:
        require_earlier(again_of, target=str(wish.target), subjects=[item.subject for item in wish.items], by=by)
    plan = planning.make_plan(replace(wish, answers=finding))
    _refuse_nothing_to_do(wish, plan)
    first = wish.items[0]
    record(by=by, why=said or f"request {first.subject.qualified}{_numbered(first)} in {wish.target}")
    request = PromotionRequest.objects.create(
        kind=wish.kind,
        source=wish.source,
        target=wish.target,
        version=rows[0] if rows else None,
        context_name=first.subject.context,
        subject_name=first.subject.subject,
        version_number=first.version,
        fingerprint=rows[0].schema.fingerprint if rows else fingerprints[0],
        config=_config_of(plan) if wish.with_config else None,
        reason=said,
        state=PromotionRequest.DRAFT if draft else PromotionRequest.IN_REVIEW,
        plan=plan.to_dict(),
        plan_hash=plan.hash,
        requested_by_id=user_id,
        finding=finding,
        again_of_id=again_of,
        labels=named,
    )
    _add_items(_items_of(request, wish, rows, fingerprints), wish.target)
    if not draft:
        ask_for_reviews(request, by=by)
    return request.pk


@retried
def submit(*, request_id: int, by: Actor) -> str:
    """Ask for the review of a draft, with the plan as it is now; gives the state. Raises WrongState, NotAllowed."""
    request = locked_for(request_id, by)
    _require_own(request, by)
    if request.state != PromotionRequest.DRAFT:
        raise WrongState(f"Request {request.pk} is {request.state}; only a draft is submitted.")
    require_requester(request.target, [SubjectName(*name) for name in _names(request)], by)
    record(by=by, why=f"submit request {request.pk}")
    refresh(request, by)
    move(request, PromotionRequest.IN_REVIEW, moved="", requested_at=timezone.now())
    ask_for_reviews(request, by=by)
    return request.state


def recheck(*, request_id: int, by: Actor) -> str:
    """Run the checks of a request again, as anybody may who can ask for it; gives the state.

    A plan that moved is kept and shown, and its approvals no longer count. One that came back to what was reviewed
    before counts those reviews again. Raises WrongState, NotAllowed, RemoteUnavailable.
    """
    _refresh_mirror(request_id)
    with transaction.atomic():
        request = locked_for(request_id, by)
        for subject in asked_subjects(request):
            require(by, "promotion.request", registry=request.target.registry.name, subject=subject)
        if request.state not in WITHDRAWABLE:
            raise WrongState(f"Request {request.pk} is {request.state}; its checks aren't run any more.")
        record(by=by, why=f"run the checks of request {request.pk}")
        refresh(request, by)
        count_reviews(request, by)
        return request.state


def withdraw(*, request_id: int, by: Actor) -> str:
    """Take a request back, its requester or an administrator; gives the state. Raises WrongState, NotAllowed."""
    with transaction.atomic():
        request = locked_for(request_id, by)
        _require_own(request, by)
        if request.state not in WITHDRAWABLE:
            raise WrongState(f"Request {request.pk} is {request.state} and can't be withdrawn.")
        was_draft = request.state == PromotionRequest.DRAFT
        record(by=by, why=f"withdraw request {request.pk}")
        move(request, PromotionRequest.WITHDRAWN, apply_at=None)
        if not was_draft:
            tell(request, "promotion.withdrawn", f"{by.name} withdrew it.", by=by)
        return request.state


def count_reviews(request: PromotionRequest, by: Actor) -> None:
    """Approve a request in review that has all that it needs."""
    if request.state == PromotionRequest.IN_REVIEW and needed_for(request).is_met and _has_review(request):
        move(request, PromotionRequest.APPROVED, moved="")


def _has_review(request: PromotionRequest) -> bool:
    """Whether anybody approved the present plan: no rule at all isn't an approval."""
    return request.reviews.filter(verdict="approve", plan_hash=request.plan_hash).exists()


def require_requester(target: Environment, subjects: Sequence[SubjectName], by: Actor) -> None:
    """Raise NotAllowed or NotSignedIn for whoever may not ask for these there: by role, and by ownership where asked."""
    registry = target.registry.name
    for subject in subjects:
        require(by, "promotion.request", registry=registry, subject=subject.qualified)
    user_id = person(by)
    if not target.owners_only:
        return
    for name, owners in owners_of_many(registry, [subject.qualified for subject in subjects]).items():
        if user_id not in owners.user_ids:
            theirs = ", ".join(owner.username for owner in owners.people[:5]) or "nobody, so add an owner"
            raise NotAllowed(f"Only owners ask for {name} in {registry}: that is {theirs}.")


def find_versions(registry: Registry, asked: Sequence[Asked]) -> list[SchemaVersion]:
    """The live versions that are asked for, with their schemas, in order; two queries.

    Raises InvalidVersion, SubjectNotFound, VersionNotFound.
    """
    wanted = [(name, parse_version(version)) for name, version in asked]
    found: dict[tuple[SubjectName, int | None], SchemaVersion] = {}
    numbered, latest = Q(pk__in=()), Q(pk__in=())
    for name, number in wanted:
        here = Q(subject__context__name=name.context, subject__name=name.subject)
        if number is None:
            latest |= here
        else:
            numbered |= here & Q(version=number)
    rows = SchemaVersion.objects.filter(subject__context__registry=registry, deleted_at=None)
    rows = rows.select_related("schema", "subject__context")
    for row in rows.filter(numbered):
        found[_name_of(row), row.version] = row
    for row in rows.filter(latest).order_by("subject_id", "-version").distinct("subject_id"):
        found[_name_of(row), None] = row
    for name, number in wanted:
        if (name, number) not in found:
            get_version(registry, name, number or "latest")  # says what is missing
            return find_versions(registry, asked)  # it came between the two looks
    return [found[key] for key in wanted]


def _name_of(row: SchemaVersion) -> SubjectName:
    return SubjectName(row.subject.context.name, row.subject.name)


def _asked(subject: SubjectName | None, version: int | str | None, items: Sequence[Asked]) -> list[Asked]:
    """What is asked for, the single one first. Raises InvalidInput for nothing, too many, or one subject twice."""
    asked = [*(((subject, "latest" if version is None else version),) if subject else ()), *items]
    if not asked:
        raise InvalidInput("Say what to promote: a subject with its version, or several items.")
    if len(asked) > MAX_ITEMS:
        raise InvalidInput(f"A request takes {MAX_ITEMS} items; these are {len(asked)}.")
    names = [name for name, _ in asked]
    _refuse_bad_names(names)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidInput(f"{twice.qualified} is there twice; a request takes one version of a subject.")
    return asked


def _refuse_bad_names(names: Sequence[SubjectName]) -> None:
    if any(not name.subject for name in names):
        raise InvalidInput("A subject needs a name.")


def _refuse_unstorable(text: str) -> None:
    """A text that the database can't hold is no schema of any format; the parsers would say less of it."""
    if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise InvalidInput("The schema has a character that can't be kept: NUL, or half of a surrogate pair.")


def _refuse_nothing_to_do(wish: Wish, plan: Plan) -> None:
    if plan.has_work:
        return
    first = wish.items[0]
    more = f" and the other {len(wish.items) - 1}" if len(wish.items) > 1 else ""
    raise WrongState(f"{wish.target} has {first.subject.qualified}{_numbered(first, ' version ')}{more} already.")


def _numbered(item: WishedItem, word: str = " v") -> str:
    return f"{word}{item.version}" if item.version else ""


def _config_of(plan: Plan) -> dict[str, Any]:
    """The settings that come along, by subject; for people, as the plan is what runs."""
    return {step.subject: step.config for step in plan.steps if step.kind == CONFIG}


def _items_of(
    request: PromotionRequest, wish: Wish, rows: Sequence[SchemaVersion], fingerprints: Sequence[str]
) -> list[RequestItem]:
    found = []
    for position, item in enumerate(wish.items):
        text = item.text
        found.append(
            RequestItem(
                request=request,
                position=position,
                open_in=wish.target if request.state in HOLDING else None,
                context_name=item.subject.context,
                subject_name=item.subject.subject,
                version_number=item.version,
                fingerprint=fingerprints[position] if text else rows[position].schema.fingerprint,
                schema_type=text.schema_type if text else rows[position].schema.schema_type,
                text=text.text if text else "",
                references=[asdict(reference) for reference in text.references] if text else [],
            )
        )
    return found


def _add_items(items: Sequence[RequestItem], target: Environment) -> None:
    """Insert them in one order for everybody, so that two sets wait for each other only one way round."""
    ordered = sorted(items, key=lambda item: (item.context_name, item.subject_name, item.fingerprint))
    try:
        with transaction.atomic():
            RequestItem.objects.bulk_create(ordered)
    except IntegrityError as error:
        raise WrongState(ASKED_ALREADY.format(target=target)) from error


def _names(request: PromotionRequest) -> list[tuple[str, str]]:
    return list(request.items.values_list("context_name", "subject_name"))


def _require_own(request: PromotionRequest, by: Actor) -> None:
    """The requester, within what a token lets them do, or an administrator."""
    registry, subject = request.target.registry.name, subject_of(request).qualified
    if by.user_id is not None and by.user_id == request.requested_by_id:
        require(by, "promotion.request", registry=registry, subject=subject)
    else:
        require(by, "registry.manage", registry=registry)


def _refresh_mirror(request_id: int) -> None:
    """Look at a remote target again, before any transaction; a number that nothing has is refused later."""
    environment = Environment.objects.filter(pk__in=PromotionRequest.objects.filter(pk=request_id).values("target"))
    for target in environment.select_related("registry"):
        fresh(target)
