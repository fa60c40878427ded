"""The check of what people of declared clients have said of a plan."""

from __future__ import annotations

from typing import Any

from registry.promotions.consumers import CODE, Hurt, acknowledged_check, hurt_by
from registry.promotions.models import Acknowledgement, PromotionRequest
from registry.promotions.plan import Check, Plan, Wish


def consumers_check(wish: Wish, plan: Plan) -> list[Check]:
    """The check of a plan that is whole but for it; one query where a client is hurt, none elsewhere."""
    hurt = hurt_by([check.to_dict() for check in plan.checks if check.concerned])
    if not hurt:
        return []
    given, voided = _said(wish.request_id, plan.hash) if wish.request_id else (set(), set())
    return acknowledged_check(hurt, given, voided, blocks=wish.target.clients_block)


def check_of(request: PromotionRequest) -> list[Check]:
    """The same of a request's stored plan, its target joined."""
    hurt = hurt_by(request.plan["checks"])
    if not hurt:
        return []
    return acknowledged_check(hurt, *_said(request.pk, request.plan_hash), blocks=request.target.clients_block)


def counted_anew(request: PromotionRequest) -> dict[str, Any]:
    """The stored plan of a request with that check as it is now."""
    others = [check for check in request.plan["checks"] if check.get("code") != CODE]
    return {**request.plan, "checks": [*others, *(check.to_dict() for check in check_of(request))]}


def _said(request_id: int, plan_hash: str) -> tuple[set[Hurt], set[Hurt]]:
    """Of which clients somebody has acknowledged this plan, and of which another one."""
    rows = Acknowledgement.objects.filter(request_id=request_id).values_list("subject", "client", "plan_hash")
    given, voided = set[Hurt](), set[Hurt]()
    for subject, client, said_of in rows:
        (given if said_of == plan_hash else voided).add(Hurt(subject, client))
    return given, voided
