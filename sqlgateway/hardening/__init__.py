"""What makes a tenant's database safe to hand out: idempotent, versioned, split by noun.

cluster.py: what the server itself must be like. catalog.py: what PUBLIC loses inside a database;
done once in the template, or in a database made without one. database.py: a database's own ACL and
what its three roles get. role.py: the attributes and settings of a role.
"""

from typing import Final

# Raised with every change below; `manage.py hardendatabases` brings older databases up to it.
VERSION: Final = 1
