"""The gateway's tables, all in the control database."""

from sqlgateway.models.databases import Cluster, Database, RetiredDatabase
from sqlgateway.models.quotas import (
    OrganizationLimits,
    OrganizationQuota,
    SqlStorageDay,
    SqlUsage,
)
from sqlgateway.models.requests import InteractiveTransaction, RunningSql, SavedQuery, SqlRecord

__all__ = [
    "Cluster",
    "Database",
    "InteractiveTransaction",
    "OrganizationLimits",
    "OrganizationQuota",
    "RetiredDatabase",
    "RunningSql",
    "SavedQuery",
    "SqlRecord",
    "SqlStorageDay",
    "SqlUsage",
]
