"""Policies beside the seven levels: rule sets of products with a store of their own, each a table with its cases.

`POLICIES` holds those that judge the versions of a subject, by the name that a configuration uses. What a Spark
query's state store does with a planned schema is asked of `spark_state.plan_restart`: it looks at state variables, not
at subjects.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from registry.formats.policies.base import PolicyItem, PolicyReport, PolicyRule, SchemaPolicy
from registry.formats.policies.oracle_nosql import ORACLE_NOSQL, ORACLE_NOSQL_LENIENT

__all__ = ["POLICIES", "PolicyItem", "PolicyReport", "PolicyRule", "SchemaPolicy"]

POLICIES: Final[Mapping[str, SchemaPolicy]] = {policy.name: policy for policy in (ORACLE_NOSQL, ORACLE_NOSQL_LENIENT)}
