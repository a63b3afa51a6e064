"""Webhooks: what happens in an organization, sent to its own servers.

A room of accounts, since members and sign-ins are here and every layer above, which has events as
well, may import it.
"""
