"""Copy one tenant's database into another: data, owners and privileges, compared afterwards.

A tenant's database is hostile input: none of its code runs as a superuser. It is read by a role
made for this one copy (reading.py) and written by the target's own admin role (programs.py). The
administrator only sets owners and privileges (privileges.py), which runs no code of a tenant.
"""


class CopyFailed(Exception):
    """A copy is incomplete or differs; the sentence is for operators, not for tenants."""
