"""Makes the roles of tenants, and keeps roles, databases and servers safe.

Door: cluster, database, quota_guard, scram, tenant_roles.
Imports: common, names.
"""

from typing import Final

# Raised with every change below; `manage.py hardendatabases` brings older databases up to it.
VERSION: Final = 4
