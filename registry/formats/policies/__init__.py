"""Policies in addition to the seven levels: the rules of products with their own stores, as tables with their cases.

`POLICIES` maps configuration names to the policies that judge the versions of a subject. The effect of a planned schema
on a Spark query's state store comes from `spark_state.plan_restart`, which considers state variables, not subjects.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from registry.formats.policies.base import PolicyItem, PolicyReport, PolicyRule, SchemaPolicy
from registry.formats.policies.oracle_nosql import ORACLE_NOSQL, ORACLE_NOSQL_LENIENT

__all__ = ["POLICIES", "PolicyItem", "PolicyReport", "PolicyRule", "SchemaPolicy"]

POLICIES: Final[Mapping[str, SchemaPolicy]] = {policy.name: policy for policy in (ORACLE_NOSQL, ORACLE_NOSQL_LENIENT)}
