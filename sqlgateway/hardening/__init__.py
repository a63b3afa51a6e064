"""Create the roles of tenants' databases, and harden roles and databases: idempotent and versioned.

tenant_roles.py: creates a role with its attributes and settings; finds what its tenant changed.
database.py: a database's ACL and the privileges of its three roles.
catalog.py: privileges revoked from PUBLIC inside a database (once in the template, or in a database
that was created without one).
cluster.py: requirements on the server.
quota_guard.py: triggers that stop the growth of a database above its disk quota.
scram.py: the verifiers of passwords.
"""

from typing import Final

# Raised with every change below; `manage.py hardendatabases` brings older databases up to it.
VERSION: Final = 3
