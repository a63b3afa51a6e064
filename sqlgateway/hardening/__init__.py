"""Hardening of tenants' databases: idempotent and versioned.

cluster.py: requirements on the server. catalog.py: privileges revoked from PUBLIC inside a database
(once in the template, or in a database created without one). database.py: a database's ACL and the
privileges of its three roles. role.py: the attributes and settings of a role, and what a tenant
changed of them. scram.py: the verifiers of its passwords.
"""

from typing import Final

# Raised with every change below; `manage.py hardendatabases` brings older databases up to it.
VERSION: Final = 3
