"""Copy tenants' databases: move, clone, dump and restore them.

A tenant's database is hostile input: none of its code runs as a superuser. A role that exists for
this copy only reads it (reading.py), and the target's own admin role writes it (programs.py). The
administrator only sets owners and privileges (privileges.py), which runs no code of a tenant.

verified_copy.py copies one database into another, and compares the two.
"""


class CopyFailed(Exception):
    """A copy is incomplete or differs. The message is for administrators, not for tenants."""
